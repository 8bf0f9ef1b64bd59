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
/* The same, made (mode 0755) where missing. Tries mkdir first: one round trip when it is new. */
int dir_make(glfs_t *fs, glfs_object_t *parent, const char *name, glfs_object_t **ret,
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

/* A new file with that content, still open. -EEXIST: something has that name. */
int file_make(glfs_t *fs, glfs_object_t *dir, const char *name, const char *text, glfs_fd_t **ret,
	      struct error *err);
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
