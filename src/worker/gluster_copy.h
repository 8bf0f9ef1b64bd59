/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_pool.h"

#include <stdatomic.h>

/* One copy, of a volume or a snapshot, from its info file that says "ready": false to the one that says true. */
struct copy_request {
	enum volume_kind kind, from_kind;
	char *name, *from;
	char *owner; /* of who asks (worker.h); for copy_prepare alone, may be NULL */
	int64_t size; /* 0: the source's */
};

/*
 * Checks it and writes the first info file. 0: it is complete already; 1: it is to be run.
 * Errors: worker.h.
 */
int copy_prepare(struct pool_fs *p, const struct copy_request *r, struct error *err);
/* Does it, from where it is; -ECANCELED once *stop is set. */
int copy_run(struct pool_fs *p, const struct copy_request *r, const atomic_bool *stop,
	     struct error *err);
/* One that is in the making and that nobody here works on any more is anybody's. */
void copy_release(struct pool_fs *p, enum volume_kind kind, const char *name);
/* What it keeps beside the copy; of one that is removed. */
int copy_forget(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
		struct error *err);
