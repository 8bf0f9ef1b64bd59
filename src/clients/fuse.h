/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * The asking side of FUSE file systems whose server can take over a descriptor (client.h): mounts
 * them, and keeps a duplicate of each descriptor, so that neither a client container that dies nor
 * an asker that does ends the mount. No driver of libhostvol has such a server yet: glusterfs holds
 * in its memory what the kernel refers to.
 */
struct fuse_keeper;

/* dir: the client's (client.h). */
struct fuse_keeper *fuse_keeper_new(const char *dir);
/* Closes the descriptors; what a client has of them stays with it. NULL-safe. */
void fuse_keeper_free(struct fuse_keeper *k);

/* Mounts at point, a directory, and has argv serve it, which finds the descriptor as /dev/fd/3. */
int fuse_keeper_mount(struct fuse_keeper *k, const char *point, const char *source,
		      const char *const *argv, struct error *err);
/*
 * To be called at the beginning, and whenever a client was started: takes what the client has and
 * this keeper has not, gives it what it has not, forgets what is unmounted. What neither has is
 * lost: its users get ENOTCONN.
 */
int fuse_keeper_renew(struct fuse_keeper *k, struct error *err);
