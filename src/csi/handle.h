/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/*
 * The id of a volume, "v1.<pool>.<kind>.<name>", or of a snapshot, whose kind is 's'. It comes from
 * whoever calls, so it is taken apart strictly: [a-z0-9-] only, at most 128 bytes in all. What is
 * not of that form is the id of nothing, never a part of a path.
 */
#define HANDLE_MAX 128

enum volume_kind {
	VOLUME_DIRECTORY = 'd', /* a directory with a quota */
	VOLUME_FILE = 'f', /* a file with a file system of its own in it */
	VOLUME_BLOCK = 'b', /* a file that is a block device */
	VOLUME_WHOLE = 'w', /* a volume of the storage system itself, beside its pool */
	VOLUME_SNAPSHOT = 's', /* not a volume: what a snapshot's id has */
};

/* Whether it is a tree of files that any number of machines may use at once. */
static inline bool volume_is_tree(enum volume_kind kind)
{
	return kind == VOLUME_DIRECTORY || kind == VOLUME_WHOLE;
}

/* Whether one can begin with the content of the other. */
static inline bool volume_kinds_fit(enum volume_kind a, enum volume_kind b)
{
	return a == b || (volume_is_tree(a) && volume_is_tree(b));
}

struct handle {
	char pool[HANDLE_MAX + 1], name[HANDLE_MAX + 1];
	enum volume_kind kind;
};

/* The storage system's own volume that is connected for it: the pool's, but one of kind whole is one itself. */
static inline const char *volume_in_system(enum volume_kind kind, const char *pool,
					   const char *name)
{
	return kind == VOLUME_WHOLE ? name : pool;
}

/* -ENOENT where it is no handle. */
int handle_parse(const char *text, struct handle *ret, struct error *err);
/* Caller frees. */
char *handle_format(const char *pool, enum volume_kind kind, const char *name);
