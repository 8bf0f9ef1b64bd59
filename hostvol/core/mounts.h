/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "driver.h"

/*
 * Volumes that live in a file system: one mount for each export and options, shared by all
 * volumes (sub paths) and consumers of it; the last one unmounts. The mount point is
 * BASE/<hash of the target>.
 */
struct mount_type {
	const char *const *fs_types; /* as the mount table calls it, ended by NULL */
	/* Mounts detail "source" at "mountPoint" with "options"; the directory is there. */
	int (*mount)(const struct call *c, struct attachment *a, struct error *err);
	/* Waits for the helper that serves the mount point to end; kill: ends it. Or NULL. */
	void (*end_helper)(const struct call *c, struct attachment *a, bool kill);
	/* Whether the mount table means this one by source. NULL: it says detail "source". */
	bool (*is_source)(const struct attachment *a, const char *source);
	/*
	 * The mount point is the base itself, a place of the administrator's: what was mounted there
	 * before is used, and stays when the last volume goes; so does the directory.
	 */
	bool in_place;
	/*
	 * The program that stays and serves the mount. Where a host has several installations of it
	 * (clients in containers), one by another is another mount: those that exist stay as they
	 * are, and what is connected from now on moves. NULL: the kernel serves it.
	 */
	const char *client;
};

/* Parameters that all of them have, to be listed in their tables. */
#define MOUNT_PARAM_NAME                                                                           \
	{                                                                                          \
		.name = "name", .aliases = (const char *const[]){ "subPath", NULL },               \
		.identity = true, .check = check_sub_path,                                         \
		.help = "A directory or file below the export; the export itself where it is "     \
			"missing. "                                                                \
			"It is reached without following any symbolic link.",                      \
		.example = "volumes/pvc-0f3a"                                                      \
	}
#define MOUNT_PARAM_BASE                                                                           \
	{                                                                                          \
		.name = "mountPointBase", .check = check_clean_path, .fallback = "STATE/mnt",      \
		.help = "The directory below which the file system is mounted.",                   \
		.example = "/var/lib/quartermaster/hostvol/mnt"                                    \
	}

int mount_prepare(const struct call *c, struct attachment *a, struct error *err);
/* The same for a source that is not the export; sub_path: the volume's, NULL for its name. */
int mount_prepare_as(const struct call *c, struct attachment *a, const char *source,
		     const char *sub_path, struct error *err);
int mount_connect(const struct call *c, struct attachment *a, struct error *err);
int mount_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err);
int mount_verify(const struct call *c, struct attachment *a, struct error *err);
/* "host:/export/" and "host:/export" are one; a whole GlusterFS volume is shown with or without its slash. */
bool mount_same_source(const char *a, const char *b);

/* Which of several clients serves or is to serve it: for struct host_command. */
const char *mount_client(const struct attachment *a);

/*
 * Runs a mount helper to its end. A helper that is not there is -ENOENT and names its package, one
 * that fails -EIO with the first line of what it said.
 */
int mount_run_helper(const struct call *c, struct attachment *a, const char *package,
		     const struct host_command *command, struct error *err);

/* Whether options (comma separated) have one of that name, with or without a value. */
bool option_is_set(const char *options, const char *name);
