/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "core/mountinfo.h"

#include <stdbool.h>

/*
 * A directory shown at a second place. Paths are walked once, to descriptors, without following a
 * symbolic link; what may hang runs in a child with a deadline.
 */

/* Shows what stands at sub below root ("": root itself) at target; both are directories. */
int bind_mount(const char *root, const char *sub, const char *target, int timeout_ms,
	       struct error *err);
/* -EBUSY while it is in use, unless detach. */
int bind_unmount(const char *target, bool detach, int timeout_ms, struct error *err);
/* Whether the file system there answers: 0, -ENOTCONN for one whose client died, … */
int bind_probe(const char *target, int timeout_ms);
/* The uppermost mount at path: 1 and the entry, 0 for none. */
int bind_find(const char *path, struct mount_entry *ret, struct error *err);

/*
 * The directory that a person typed as an absolute path, its parents' links resolved. It is not
 * touched itself: a dead file system may be mounted there. A link is refused. Missing parents are
 * made where make is set, else -ENOENT. Caller frees.
 */
int bind_target(const char *typed, bool make, char **ret, struct error *err);
