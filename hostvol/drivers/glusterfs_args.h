/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stddef.h>

#define GLUSTER_PROGRAM "glusterfs"

/* The command line of the client. */
struct gluster_args {
	char *items[96]; /* owned, ended by NULL */
	size_t count;
};

/* Mount options as mount.glusterfs takes them: -EINVAL for one that it does not know. */
int gluster_check_options(const char *options, struct error *err);
/*
 * The kernel keeps no attributes, names or, over an open, pages of the mount, unless options say so
 * (attribute-timeout, entry-timeout, fopen-keep-cache).
 */
int gluster_args_build(struct gluster_args *args, const char *source, const char *options,
		       const char *log, const char *mount_point, struct error *err);
/* The server that this word of the command line names, or NULL. */
const char *gluster_server(const char *word);
void gluster_args_done(struct gluster_args *args);
