/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_pool.h"

/*
 * A volume of kind whole, which is a Gluster volume of its own beside the pool, as the source or the target of a copy. Its root
 * is the volume. What is copied into it is made in a directory of its own there and moved to the root when it is
 * complete: one of another epoch, that may still run, has no way to that directory once it was thrown away.
 */

/* -EAGAIN: not now. */
int whole_open(const struct pool_fs *p, const char *name, struct pool_fs **ret, struct error *err);
/* NULL-safe. answers: its last step did; one that does not is left alone until the process ends, since closing it may hang. */
void whole_close(struct pool_fs *w, bool answers);

/* -EINVAL: the tree has names of ours at its top, which the root of a whole volume cannot have. */
int whole_check_source(glfs_t *fs, glfs_object_t *tree, struct error *err);
/* The directory to make the copy in; anew: all that the volume has beside it is thrown away. Caller closes. */
int whole_begin(struct pool_fs *w, bool anew, glfs_object_t **ret, struct error *err);
/* The copy of that name in the directory, into the trash. */
int whole_discard(struct pool_fs *w, glfs_object_t *dir, const char *name, struct error *err);
/*
 * What is in the copy goes to the root, which gets the source's attributes, and nothing of ours stays. Can be done again
 * wherever it was interrupted. buffer: COPY_BUFFER bytes to work in.
 */
int whole_settle(struct pool_fs *w, const char *name, glfs_t *from_fs, glfs_object_t *from,
		 char *buffer, struct error *err);
