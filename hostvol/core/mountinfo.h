/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

struct mount_entry {
	char *device; /* "major:minor": two entries with the same are one file system */
	char *root; /* what of it is mounted: "/", or the directory that was bound */
	char *fs_type, *source;
	char *mount_point;
	char *options; /* of this mount, not of its file system: "rw,nosuid,relatime" */
};

/*
 * The uppermost mount at mount_point in the text of a mountinfo file. 1 and the entry, 0 for none,
 * or -ENOMEM.
 */
int mountinfo_find(const char *text, const char *mount_point, struct mount_entry *ret);
/*
 * Calls fn for every mount in the text, those below first, until it returns other than 0; that, or
 * -ENOMEM. The entry is lent.
 */
int mountinfo_each(const char *text, int (*fn)(const struct mount_entry *e, void *userdata),
		   void *userdata);
void mount_entry_done(struct mount_entry *e);
