/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/bind.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

struct bind {
	const char *root, *sub, *target;
};

static int open_path(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = resolve | RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int do_bind(void *arg)
{
	const struct bind *b = arg;
	cleanup_close int root = open_path(AT_FDCWD, b->root, 0), from = -1, to = -1, tree = -1;

	if (root < 0)
		return root;
	from = b->sub[0] ? open_path(root, b->sub, RESOLVE_BENEATH) : TAKE_FD(root);
	if (from < 0)
		return from;
	to = open_path(AT_FDCWD, b->target, 0);
	if (to < 0)
		return to;
	tree = open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree < 0 ||
	    move_mount(tree, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int bind_mount(const char *root, const char *sub, const char *target, int timeout_ms,
	       struct error *err)
{
	struct bind b = { .root = root, .sub = sub, .target = target };
	int r = spawn_call(do_bind, &b, timeout_ms, NULL);

	return r < 0 ? error_errno(err, -r, "cannot mount %s%s%s on %s", root, *sub ? "/" : "", sub,
				   target)
		     : 0;
}

static int do_unmount(void *arg)
{
	return umount2(arg, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

static int do_detach(void *arg)
{
	return umount2(arg, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 ? -errno : 0;
}

int bind_unmount(const char *target, bool detach, int timeout_ms, struct error *err)
{
	int r = spawn_call(detach ? do_detach : do_unmount, (void *)target, timeout_ms, NULL);

	if (r == -EBUSY)
		return error_set(
			err, EBUSY,
			"%s is in use; see by whom: fuser -vm %s; then try again, or add --force",
			target, target);
	return r < 0 ? error_errno(err, -r, "cannot unmount %s", target) : 0;
}

static int do_probe(void *arg)
{
	struct statfs fs;
	struct stat st;

	return statfs(arg, &fs) < 0 || stat(arg, &st) < 0 ? -errno : 0;
}

int bind_probe(const char *target, int timeout_ms)
{
	return spawn_call(do_probe, (void *)target, timeout_ms, NULL);
}

int bind_find(const char *path, struct mount_entry *ret, struct error *err)
{
	cleanup_free char *text = NULL;
	int r = file_read("/proc/self/mountinfo", 0, &text, NULL, err);

	if (r < 0)
		return r;
	r = mountinfo_find(text, path, ret);
	return r < 0 ? error_errno(err, -r, "cannot read the mount table") : r;
}

int bind_target(const char *typed, bool make, char **ret, struct error *err)
{
	cleanup_free char *copy = xstrdup(typed), *parent = NULL;
	char *slash, *name;
	size_t len = strlen(copy);
	const char *above = ".";
	struct stat st;
	int r;

	while (len > 1 && copy[len - 1] == '/')
		copy[--len] = '\0';
	slash = strrchr(copy, '/');
	name = slash ? slash + 1 : copy;
	if (!*name || streq(name, ".") || streq(name, ".."))
		return error_set(err, EINVAL, "\"%s\" does not name a directory to mount on",
				 typed);
	if (lstat(copy, &st) == 0 && S_ISLNK(st.st_mode))
		return error_set(err, ELOOP, "%s is a symbolic link; name the directory itself",
				 typed);
	if (slash) {
		*slash = '\0';
		above = slash == copy ? "/" : copy;
	}
	if (make) {
		r = mkdir_parents(above, 0755, err);
		if (r < 0)
			return r;
	}
	parent = realpath(above, NULL);
	if (!parent)
		return error_errno(err, errno, "cannot find the directory of %s", typed);
	*ret = xasprintf("%s/%s", streq(parent, "/") ? "" : parent, name);
	return 0;
}
