/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

struct mount_entry {
	char *device; /* "major:minor": two entries with the same are one file system */
	char *root; /* what of it is mounted: "/", or the directory that was bound */
	char *fs_type, *source;
};

/*
 * The uppermost mount at mount_point in the text of a mountinfo file. 1 and the entry, 0 for none,
 * or -ENOMEM.
 */
int mountinfo_find(const char *text, const char *mount_point, struct mount_entry *ret);
void mount_entry_done(struct mount_entry *e);
