/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "systems/glusterfs/cluster.h"
#include "systems/glusterfs/gluster.h"

/*
 * The cluster through the command line of this node's glusterd. -EBUSY: another transaction is
 * under way; -ENOTCONN: glusterd does not answer; -ENOENT: no such volume; other failures are -EIO
 * with gluster's own words.
 */
int cli_peers(struct gluster_peers *ret, struct error *err);
int cli_peer_probe(const char *address, struct error *err);
int cli_peer_detach(const char *address, struct error *err);
int cli_volume_get(const char *name, enum volume_look look, struct gluster_volume *ret,
		   struct error *err);
int cli_volume_apply(const struct volume_step *step, struct error *err);
/* "10.3" */
int cli_version(char *ret, size_t size, struct error *err);
