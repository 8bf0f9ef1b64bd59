/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "core/mountinfo.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A directory or a device shown at a second place. Paths are absolute; they are walked once, to
 * descriptors, without following a symbolic link, so that nobody can turn them to another place
 * meanwhile. What may hang runs in a child with a deadline.
 */

/* What a place is; also what is shown there must be. */
enum place_kind { PLACE_DIRECTORY, PLACE_DEVICE /* a device on an empty regular file */ };

struct bind {
	const char *root, *sub; /* what is shown: sub below root, "": root itself */
	const char *target;
	enum place_kind kind;
	/* MOUNT_ATTR_… of the new mount; in force before it is seen */
	uint64_t set, clear;
	/* the place is made first, as place_make does, and removed where the mount fails; 0: it is there */
	mode_t make;
};
int bind_mount(const struct bind *b, int timeout_ms, struct error *err);
/* -EBUSY while it is in use, unless detach. */
int bind_unmount(const char *target, bool detach, int timeout_ms, struct error *err);
/*
 * Unmounts what is there and removes the place, in one step and without a look at the mount table:
 * 0, or -errno where any of that was not to be, for the caller to take the steps one by one.
 */
int bind_end(const char *target, int timeout_ms);
/* Whether the file system there answers: 0, -ENOTCONN for one whose client died, … */
int bind_probe(const char *target, int timeout_ms);
/* Whether an answer of bind_probe is that of a file system which will never answer again. */
bool bind_is_dead(int r);
/* The uppermost mount at path: 1 and the entry, 0 for none. */
int bind_find(const char *path, struct mount_entry *ret, struct error *err);

/* Makes the place in its directory, which must be there; what is there is kept where it is of that kind. */
int place_make(const char *path, enum place_kind kind, mode_t mode, int timeout_ms,
	       struct error *err);
/* Removes an empty directory or an empty file, nothing else; 0 where there was nothing. */
int place_remove(const char *path, int timeout_ms, struct error *err);

/*
 * The directory that a person typed as an absolute path, its parents' links resolved. It is not
 * touched itself: a dead file system may be mounted there. A link is refused. Missing parents are
 * made where make is set, else -ENOENT. Caller frees.
 */
int bind_target(const char *typed, bool make, char **ret, struct error *err);

/* For what else works on such places, in a child: a descriptor (O_PATH), or -errno. */
int place_open(int dir, const char *path, enum place_kind kind, uint64_t resolve);
/* The directory that path stands in, and its name there (a part of path). */
int place_open_parent(const char *path, const char **ret_name);
