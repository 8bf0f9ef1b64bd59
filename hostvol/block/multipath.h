/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sysfs.h"

/*
 * Device mapper's multipath maps, made by multipathd. The kernel gives the names dm-N to others
 * again, so a map is always found from one of its paths, and known by its UUID (mpath-WWID).
 */
struct map {
	struct disk disk; /* dm-N */
	char name[128]; /* mpatha, or the WWID */
	char uuid[160];
};

/* The map on top of a path: 1, or 0 for none. */
int map_of_path(const struct call *c, const char *path_disk, struct map *ret);
/* Calls fn with the name of every path of the map. */
int map_each_path(const struct call *c, const struct map *m,
		  int (*fn)(const char *name, void *userdata), void *userdata);
int map_count_paths(const struct call *c, const struct map *m);
/*
 * multipathd remembers the name of every map for ever (/etc/multipath/wwids), and takes such a disk
 * as soon as it sees it. So what it remembers because of us goes with the map; what it remembered
 * before stays. All that it remembers, before the paths come; caller frees. NULL: that cannot be said.
 */
char *map_names(const struct call *c);
/*
 * Has multipathd make a map of these paths, and waits until it has all of them; with fewer it is
 * taken after some seconds, with a word to the log. before: of map_names.
 */
int map_await(const struct call *c, const char (*paths)[DISK_NAME_MAX], int count,
	      const char *before, struct map *ret, struct error *err);
/* Flushes and removes the map, which nobody may use; force: or which stays until its last user. */
int map_remove(const struct call *c, const struct map *m, bool force, struct error *err);
/* When a map and its paths are gone: multipathd forgets the name that it has because of us. */
void map_forget(const struct call *c, const struct map *m);
/* Gives the map the size that its paths have. */
int map_resize(const struct call *c, const struct map *m, struct error *err);
