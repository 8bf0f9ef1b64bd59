/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_fs.h"

/*
 * Copies of volumes and snapshots, made in the background: at most COPY_THREADS at a time, others wait their turn.
 * The info file says first that the copy is not ready, and in the end, when all is on disk, that it is; so a
 * process that ends in the middle has said nothing wrong, and the next call goes on from what is there.
 */
#define COPY_THREADS 2

/* changed: called when copies begin (true) to be there and when the last has ended (false). */
int copies_start(struct pool_fs *p, void (*changed)(bool busy), struct error *err);

/* worker.h's copy and snapshot (kind VOLUME_SNAPSHOT, size 0). 0: complete; 1: under way. *ret: of a
 * snapshot, what is said of it. */
int copies_ask(enum volume_kind kind, const char *name, const char *owner, int64_t size,
	       enum volume_kind from_kind, const char *from, json_t **ret, struct error *err);
/* Stops all copies, for another worker to go on with; when no more requests come. */
void copies_release(void);
/* Stops the copying into this volume or snapshot and waits until it has; what failed is forgotten. */
void copies_stop(enum volume_kind kind, const char *name);
