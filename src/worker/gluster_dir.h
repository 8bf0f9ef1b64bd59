/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <glusterfs/api/glfs-handles.h>
#include <glusterfs/api/glfs.h>
#include <stdbool.h>

/* Small steps on libgfapi handles; none follows a symbolic link. Objects are closed with glfs_h_close. */

/* The directory `name` in parent. -ENOENT: missing; -ENOTDIR: something else is there. */
int dir_open(glfs_t *fs, glfs_object_t *parent, const char *name, glfs_object_t **ret,
	     struct error *err);
/*
 * The same, made (mode 0755) where missing. *fresh before: nothing of that name can be in parent, which we made
 * ourselves and where nobody has tried it since, so it is not looked for; after: it was made now. NULL: nothing is known.
 */
int dir_make(glfs_t *fs, glfs_object_t *parent, const char *name, bool *fresh, glfs_object_t **ret,
	     struct error *err);

struct dir_entry {
	char name[256];
	bool is_dir, is_file;
};
/* Up to max entries of the directory, "." and ".." left out; the number. */
int dir_read(glfs_t *fs, glfs_object_t *dir, struct dir_entry *entries, int max, struct error *err);
/* Calls fn for each entry, in batches; stops where it fails. */
typedef int (*dir_fn)(glfs_object_t *dir, const struct dir_entry *entry, void *userdata,
		      struct error *err);
int dir_each(glfs_t *fs, glfs_object_t *dir, dir_fn fn, void *userdata, struct error *err);

/* A new file, empty and open, with these flags. -EEXIST: something has that name. fresh: as for dir_make, before. */
int file_create(glfs_t *fs, glfs_object_t *dir, const char *name, int flags, bool fresh,
		glfs_fd_t **ret, struct error *err);
/* The same with that content. */
int file_make(glfs_t *fs, glfs_object_t *dir, const char *name, const char *text, glfs_fd_t **ret,
	      struct error *err);
/* Writes it to a file that was created with O_SYNC, and closes that; what file_keep says of the disk holds. */
int file_finish(glfs_fd_t *fd, const char *text, struct error *err);
/* Closes it when it is on disk, and with it what was made in the pool before: bricks log in order. */
int file_keep(glfs_fd_t *fd, struct error *err);
/* A whole small file. */
int file_get(glfs_t *fs, glfs_object_t *dir, const char *name, struct buf *ret, struct error *err);

static inline void cleanup_object_p(glfs_object_t **o)
{
	if (*o)
		glfs_h_close(*o);
}
#define cleanup_object __attribute__((cleanup(cleanup_object_p)))
