/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "csi/handle.h"

#include <stdint.h>

/*
 * The operator's side of qm-gluster: one worker process per pool in use, started on demand, gone
 * after 30 s without work, at most 8 at a time: where more pools are in use they take turns. Calls block with a deadline and may be made from
 * many threads; a pool whose worker hangs is killed after the deadline and delays nobody else's calls.
 */
struct workers;

struct worker_pool { /* how to reach a pool; what a ConnectionInfo says */
	const char *name; /* pool (volume) name */
	const char *const *hosts; /* ended by NULL; the first that answers serves the volfile */
};

struct workers_options {
	const char *program; /* path of qm-gluster */
	const char *log_dir;
	int max; /* 0: 8 */
	int idle_ms; /* 0: 30000 */
	int deadline_ms; /* of a call, and before that to get a worker; 0: 30000 each */
	int least_ms; /* that a worker has before it makes way for others while it copies or has calls; 0: 60000 */
	/*
	 * The epoch of the lease under which a worker is started (NULL: 0). A worker leaves alone what one of a later
	 * epoch makes, and begins anew what one of an earlier epoch did not give back: that one may
	 * still run, cut off or stopped. Below 0: we do not lead; none is started then, and the call fails with -EAGAIN:
	 * it would take over what the one who leads has begun.
	 */
	int64_t (*epoch)(void *userdata);
	void *epoch_userdata;
};

/*
 * A volume in its pool; name is [a-z0-9-] only. Where names come again (an orchestrator's), owner says whose volume of that
 * name is meant: the uid of its record. It stands in the info file from the making on, and what another owner's order would make,
 * grow, archive or remove is left alone, also when that order was given long ago. NULL: the name comes but once. What versions before made has no
 * owner, and is anybody's.
 */
struct worker_volume {
	enum volume_kind kind;
	const char *name;
	const char *owner;
};

/*
 * Replaceable in the simulation. All are idempotent. What is said of a volume is an object
 * {"name", "kind": "d"|"f"|"b"|"w", "size", "ready", of a copy "source", "sourceKind", and where it has one "owner"}; of a snapshot
 * {"name", "source", "kind": its source's, "size", "created": RFC 3339, "ready", and where it
 * has one "owner"}.
 */
struct worker_ops {
	/*
	 * A directory below subvol/, or a sparse file of that size below virtblock/ or rawblock/ (mode 0600), and its
	 * info file. Of a whole volume, which is a Gluster volume of its own, that alone. Exists already: fine, and grown to the size where that is larger. -EEXIST: it is a copy
	 * that is still in the making. -ESTALE: it is another owner's.
	 */
	int (*create)(struct workers *w, const struct worker_pool *pool,
		      const struct worker_volume *v, int64_t size, struct error *err);
	/*
	 * The first half of create for a directory below subvol/, which is all that a PersistentVolume needs: the directory, on
	 * disk, without its info file. Who calls it has a record that complete is still to be called.
	 */
	int (*make)(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *v, struct error *err);
	/* The second half: the info file, where it is missing. -ENOENT: there is no such directory, and nothing is made. */
	int (*complete)(struct workers *w, const struct worker_pool *pool,
			const struct worker_volume *v, int64_t size, struct error *err);
	/* Grows it; smaller than it is: nothing changes. -ENOENT: missing; -EEXIST: still in the making; -ESTALE: another owner's. */
	int (*resize)(struct workers *w, const struct worker_pool *pool,
		      const struct worker_volume *v, int64_t size, struct error *err);
	/* Renamed into the trash directory at once, purged in the background; missing, or another owner's by now: fine. Stops its copying. */
	int (*remove)(struct workers *w, const struct worker_pool *pool,
		      const struct worker_volume *v, struct error *err);
	/* Renamed to archived-name beside it, or archived-name-2, … where that is taken; kept for ever; missing: fine. */
	int (*archive)(struct workers *w, const struct worker_pool *pool,
		       const struct worker_volume *v, struct error *err);
	/* What is said of it, new reference; -ENOENT: missing. */
	int (*find)(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *v, json_t **ret, struct error *err);

	/*
	 * A new volume with the content of a snapshot (VOLUME_SNAPSHOT), or of a volume, of the same pool. A whole volume and a
	 * directory can each be made of the other; the Gluster volume of the former is there already. 0: it is complete
	 * and on disk; 1: under way, ask again. Whoever asks keeps it going: what was interrupted goes on with the
	 * next call. size: at least the source's. A copy that failed says why, once, and is tried again by
	 * the call after that. -ENOENT: no such source; -EAGAIN: the source is itself still in the making; -EEXIST: the volume is there and not a copy of that;
	 * -EINVAL: a source of another kind, or larger; -EBUSY: a file was written to while it was copied, each time
	 * that it was tried, so there is no moment that the copy would be of: its writer has to stop or to be frozen.
	 * -EBUSY also: what was copied of a directory came to more than twice its size and 16 MiB.
	 * A directory is not copied at one moment: what is written meanwhile is in the copy or is not, file by file.
	 */
	int (*copy)(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *v, int64_t size, const struct worker_volume *from,
		    struct error *err);
	/*
	 * A copy below snap/, in the same way; of v only name and owner are looked at. *ret,
	 * where it is 0 or 1: what is said of it, new reference. -ESTALE: it is another owner's.
	 */
	int (*snapshot)(struct workers *w, const struct worker_pool *pool,
			const struct worker_volume *from, const struct worker_volume *v,
			json_t **ret, struct error *err);
	/* Missing, or another owner's by now: fine. */
	int (*snapshot_remove)(struct workers *w, const struct worker_pool *pool,
			       const struct worker_volume *v, struct error *err);
	/* All of them, complete or not; new reference. */
	int (*snapshots)(struct workers *w, const struct worker_pool *pool, json_t **ret,
			 struct error *err);

	/* {"capacityBytes", "usedBytes", "freeBytes"} of the pool; new reference. */
	int (*stat)(struct workers *w, const struct worker_pool *pool, json_t **ret,
		    struct error *err);
	/* The volumes that have an info file, and the ephemeral ones ("kind": "e", "node"); new reference. */
	int (*list)(struct workers *w, const struct worker_pool *pool, json_t **ret,
		    struct error *err);
	/* Ends all that run, at once; their calls fail with -ENOTCONN. The next call starts one again. */
	void (*end_all)(struct workers *w);
	void (*free)(struct workers *w);
};

struct workers {
	const struct worker_ops *ops;
};

int workers_start(const struct workers_options *options, struct workers **ret, struct error *err);

/* "subvol", "virtblock", "rawblock", "whole", "snap"; NULL for what has no place of its own in a pool. */
const char *volume_prefix(enum volume_kind kind);
/* "subvol/46/fc/pvc-…": where a volume of that name lives below the pool's root; caller frees. */
char *volume_path(const char *prefix, const char *name);
