/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/gluster_data.h"

#include <sys/stat.h>

/* Owner, mode and times of st. */
int attr_set(glfs_t *fs, glfs_object_t *o, const struct stat *st, struct error *err);
/* user.*, POSIX ACLs and file capabilities; nothing that GlusterFS keeps for itself. buffer: COPY_BUFFER bytes to work in. */
int attr_copy_extended(glfs_t *from_fs, glfs_object_t *from, glfs_t *fs, glfs_object_t *to,
		       char *buffer, struct error *err);
void attr_drop_default_acl(glfs_t *fs, glfs_object_t *dir);
