/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_attr.h"

#include "base/mem.h"

#include <errno.h>

#define LIST_MAX (COPY_BUFFER / 2)
#define VALUE_MAX (COPY_BUFFER / 2)
#define ACL_DEFAULT "system.posix_acl_default"

int attr_set(glfs_t *fs, glfs_object_t *o, const struct stat *st, struct error *err)
{
	struct stat set = *st;
	int valid = GFAPI_SET_ATTR_UID | GFAPI_SET_ATTR_GID | GFAPI_SET_ATTR_ATIME |
		    GFAPI_SET_ATTR_MTIME;
	if (!S_ISLNK(st->st_mode))
		valid |= GFAPI_SET_ATTR_MODE;
	if (glfs_h_setattrs(fs, o, &set, valid) < 0)
		return error_errno(err, errno, "cannot set owner, mode and times of a copy");
	return 0;
}

static bool copied(const char *name)
{
	return str_has_prefix(name, "user.") || streq(name, "system.posix_acl_access") ||
	       streq(name, ACL_DEFAULT) || streq(name, "security.capability");
}

static int copy_one(glfs_t *from_fs, glfs_object_t *from, glfs_t *fs, glfs_object_t *to,
		    const char *name, char *value, struct error *err)
{
	int len = glfs_h_getxattrs(from_fs, from, name, value, VALUE_MAX);
	if (len < 0)
		return errno == ENODATA ? 0
					: error_errno(err, errno, "cannot read attribute %s", name);
	if (glfs_h_setxattrs(fs, to, name, value, (size_t)len, 0) < 0)
		return error_errno(err, errno, "cannot set attribute %s of a copy", name);
	return 0;
}

int attr_copy_extended(glfs_t *from_fs, glfs_object_t *from, glfs_t *fs, glfs_object_t *to,
		       char *buffer, struct error *err)
{
	char *list = buffer, *value = buffer + LIST_MAX;
	int len = glfs_h_getxattrs(from_fs, from, NULL, list, LIST_MAX), rc = 0;
	if (len < 0)
		return errno == ENODATA || errno == ENOTSUP
			       ? 0
			       : error_errno(err, errno, "cannot list attributes");
	for (char *name = list; rc == 0 && name < list + len; name += strlen(name) + 1) {
		if (copied(name))
			rc = copy_one(from_fs, from, fs, to, name, value, err);
	}
	return rc;
}

void attr_drop_default_acl(glfs_t *fs, glfs_object_t *dir)
{
	/* most have none: that is no trouble, and any other shows at the next step */
	if (glfs_h_removexattrs(fs, dir, ACL_DEFAULT) < 0)
		return;
}
