/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Whole file to a NUL-terminated string; -EFBIG beyond limit (0: 16 MiB). */
int file_read(const char *path, size_t limit, char **ret, size_t *ret_len, struct error *err);
/* Atomic and durable: temporary file beside it, fsync, rename, fsync of the directory. */
int file_write(const char *path, const void *data, size_t len, mode_t mode, struct error *err);
int mkdir_parents(const char *path, mode_t mode, struct error *err);
/*
 * Removes a tree without ever leaving it: no symlink followed, no other file system entered
 * (-EXDEV where something is mounted in it). 0 where there was nothing.
 */
int remove_tree(const char *path, struct error *err);
/* An absolute path without "." or ".." parts, doubled slashes or control characters. */
bool path_is_clean(const char *path);
/*
 * Exclusive lock file (flock), created if missing: a descriptor, or -EWOULDBLOCK if taken (with
 * wait: still taken after 30 s).
 */
int lock_file(const char *path, bool wait, struct error *err);
