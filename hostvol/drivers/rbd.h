/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "block/sysfs.h"
#include "core/attachment.h"

/* Images of Ceph that the kernel maps, as sysfs shows them. */

#define RBD_NAME_MAX 128

struct rbd_image {
	char pool[RBD_NAME_MAX], space[RBD_NAME_MAX], image[RBD_NAME_MAX]; /* space: "" for none */
};

struct rbd_mapping {
	unsigned id; /* of sysfs; the disk is rbdID */
	char fsid[64], image_id[64]; /* of its cluster; of the image in it */
	struct disk disk;
};

/* POOL/IMAGE or POOL/NAMESPACE/IMAGE. Pure. */
int rbd_name_parse(const char *name, struct rbd_image *ret, struct error *err);
/*
 * "HOST:PORT,HOST:PORT" of lists of hosts and ports, IPv6 in brackets; *ret_v2: all of them speak
 * the second version of the protocol (port 3300). Pure.
 */
int rbd_monitors(const char *hosts, const char *ports, char **ret, bool *ret_v2, struct error *err);
/*
 * The key in a keyring's text, or the text itself where it is just a key, decoded. A length, or
 * -EINVAL. Pure.
 */
int rbd_key_parse(const char *keyring, unsigned char *buf, size_t size, struct error *err);
/*
 * The mapping of the image: pool, namespace and image, not a snapshot, in the cluster with this
 * fsid, or, where it is "", one with a monitor of the list. 1, or 0 for none.
 */
int rbd_find(const struct call *c, const struct rbd_image *image, const char *fsid,
	     const char *monitors, struct rbd_mapping *ret);
