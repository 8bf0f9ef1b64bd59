/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/*
 * The file of an ephemeral volume, ephemeral/<node>/<id> below the root of a pool that is mounted here.
 * Walked by descriptors; a symbolic link is never followed. Each in a child with a deadline.
 */
#define EPHEMERAL_DIR "ephemeral"

struct ephemeral_file {
	const char *root, *node, *id; /* node and id are one name each */
};

/*
 * Makes it, sparse and of that size, with its directories. One that was finished is kept, with what
 * is in it; one that was not is emptied, whatever a formatting that was interrupted has left: no
 * device may be on it. -ENOSPC: the pool has less room than that.
 */
int ephemeral_file_make(const struct ephemeral_file *f, int64_t size, struct error *err);
/* A file system is in it: from now on it is kept. */
int ephemeral_file_finish(const struct ephemeral_file *f, struct error *err);
/* It is still used: nobody may take it for what a machine has left behind. */
int ephemeral_file_touch(const struct ephemeral_file *f, struct error *err);
/* 0 too where there is none. */
int ephemeral_file_remove(const struct ephemeral_file *f, struct error *err);
