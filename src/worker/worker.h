/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdint.h>

/*
 * The operator's side of qm-gluster: one worker process per pool in use, started on demand, gone
 * after 30 s without work, at most 8 at a time. Calls block with a deadline and may be made from
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
	int deadline_ms; /* of a call; 0: 30000 */
};

/* Replaceable in the simulation. All are idempotent. name is the PV's name, [a-z0-9-] only. */
struct worker_ops {
	/* Directory subvol/<h>/<h>/name and its info file with the size; exists already: fine, size updated. */
	int (*create)(struct workers *w, const struct worker_pool *pool, const char *name,
		      int64_t size, struct error *err);
	/* Renamed into the trash directory at once, purged in the background; missing: fine. */
	int (*remove)(struct workers *w, const struct worker_pool *pool, const char *name,
		      struct error *err);
	/* Renamed to archived-name beside it, kept for ever; missing: fine. */
	int (*archive)(struct workers *w, const struct worker_pool *pool, const char *name,
		       struct error *err);
	/* {"capacityBytes", "usedBytes", "freeBytes"} of the pool; new reference. */
	int (*stat)(struct workers *w, const struct worker_pool *pool, json_t **ret,
		    struct error *err);
	/* Names and sizes of the volumes that have an info file: [{"name","size"}]; new reference. */
	int (*list)(struct workers *w, const struct worker_pool *pool, json_t **ret,
		    struct error *err);
	void (*free)(struct workers *w);
};

struct workers {
	const struct worker_ops *ops;
};

int workers_start(const struct workers_options *options, struct workers **ret, struct error *err);

/* "subvol/46/fc/pvc-…": where a volume of that name lives below the pool's root; caller frees. */
char *volume_path(const char *prefix, const char *name);
