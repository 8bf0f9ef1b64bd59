/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_pool.h"

/*
 * A volume of kind whole, which is a Gluster volume of its own beside the pool, as the source or the target of a copy. Its root
 * is the volume. What is copied into it is made in a place of its own there, .quartermaster-copy/PLACE, and moved to the root when it is
 * complete.
 *
 * Another worker, whose time is over, may be stopped at any step and go on later. What it does by name in the root is
 * to move something from its own place or into it, and whoever takes over deletes all other places, with all that is in them, before he touches
 * the root: then each such step fails on the bricks. So that this holds
 * - the name of a place is never used again, and the info says it before the place is made;
 * - a place is used when the info was seen to be ours after it was made: then whoever takes over finds it;
 * - of the other places those are deleted whose names were read before the info was seen to be ours;
 * - what places share, .quartermaster-copy, is removed by an rmdir that refuses where something is in it.
 */
struct whole_copy {
	struct pool_fs *w;
	const char *place;
	/* 0: the info that is there is still this copy's own. */
	int (*check)(void *userdata, struct error *err);
	void *userdata;
};

/* -EAGAIN: not now. */
int whole_open(const struct pool_fs *p, const char *name, struct pool_fs **ret, struct error *err);
/* NULL-safe. answers: its last step did; one that does not is left alone until the process ends, since closing it may hang. */
void whole_close(struct pool_fs *w, bool answers);

/* -EINVAL: the tree has a name of ours at its top, which the root of a whole volume cannot have. */
int whole_check_source(glfs_t *fs, glfs_object_t *tree, struct error *err);
/* Makes the place, which is w->own then; anew: all that the volume has beside it is deleted. */
int whole_begin(const struct whole_copy *c, bool anew, struct error *err);
/*
 * What is in the copy, a directory of that name in the place, goes to the root, which gets the source's attributes, and nothing of
 * ours stays. Can be done again wherever it was interrupted. buffer: COPY_BUFFER bytes to work in.
 */
int whole_settle(const struct whole_copy *c, const char *name, glfs_t *from_fs, glfs_object_t *from,
		 char *buffer, struct error *err);
