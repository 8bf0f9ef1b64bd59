/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "csi/handle.h"
#include "csi/node_args.h"

/*
 * How pools are reached today. A PersistentVolume cannot change, hosts do: so the operator keeps a
 * directory (a ConfigMap on Kubernetes, mounted into the node service) with a file per pool, of its name:
 *   {"driverVolumeType": "GLUSTERFS", "export": "HOST:/POOL", "options": "…", "ephemeral": true}
 * "ephemeral": volumes of pods may be made in it now. All else is what a connection of the driver
 * has. What is not there, is not readable or is of no directory (dir NULL) is as if it had never been: the volume's
 * own attributes stand.
 */

/* 1 and the pool (new reference), or 0. */
int pool_lookup(const char *dir, const char *pool, json_t **ret);
/* The names of those that take ephemeral volumes, in order. */
void pools_ephemeral(const char *dir, struct strv *ret);
/* {"driverVolumeType", "consumer", "data"} of the whole pool, for hostvol. New reference. */
json_t *pool_connection(const json_t *pool, const char *id, const char *consumer);

/*
 * The export of a volume today, where its pool is reached as `pool` says; caller frees. type and export are those that the
 * volume was made with. NULL: it only has the name of a pool's volume: it is a person's, and stays as that wrote it.
 */
char *pool_place(const json_t *pool, const struct handle *h, const char *type, const char *export);

/* A volume's context as its pool is reached today. */
struct placed {
	struct map context;
	bool moved; /* from where the volume is connected already: that is still tried first */
	json_t *pool;
	char *export; /* of the volume today */
	struct map_entry own[2];
};
/*
 * Of a volume whose id is a handle of ours, in a pool that is there under the same name: with the
 * pool's export and options, or of a whole volume (its export names itself) with the pool's hosts. Of all others as it was. record: by which it is connected already, or
 * NULL: its export stays, since the same volume is not connected from two places; with
 * anew it does not. Borrows context.
 */
void placed_context(const char *dir, const char *id, struct map context, const json_t *record,
		    bool anew, struct placed *ret);
void placed_done(struct placed *p);
