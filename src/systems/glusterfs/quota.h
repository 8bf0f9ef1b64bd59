/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "systems/glusterfs/host.h"

/*
 * Project quota of XFS, by system calls. A volume's directory on a brick is one project, whose id
 * stands in the directory itself (and so needs no list): the low 31 bits of its inode number, or
 * the next free one. The limit is set last, when the whole tree belongs to the project; a limit
 * that is there therefore says that an earlier walk came to its end.
 */
void quota_support(const char *brick, struct quota_support *ret);

/* Limits brick/dir (relative, no symlink followed, no other file system entered); 0: no limit.
 * Files of other projects in it are left alone. -ENOENT: the directory is not there. */
int quota_set(const char *brick, const char *dir, int64_t bytes, int64_t inodes, struct error *err);

struct quota_usage {
	uint32_t project;
	int64_t bytes_limit, bytes_used, inodes_limit, inodes_used;
};
int quota_get(const char *brick, const char *dir, struct quota_usage *ret, struct error *err);

/* Takes the limits from projects without files; returns how many. */
int quota_sweep(const char *brick, struct error *err);
