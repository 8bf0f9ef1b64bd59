/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts/bind.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/step.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

static int open_path(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC | flags,
				.resolve = resolve | RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

int place_open(int dir, const char *path, enum place_kind kind, uint64_t resolve)
{
	return open_path(dir, path, kind == PLACE_DIRECTORY ? O_DIRECTORY : 0, resolve);
}

int place_open_parent(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	char parent[PATH_MAX];
	int n = slash ? snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path) : -1;

	if (n < 0 || n >= (int)sizeof(parent) || !slash[1])
		return -EINVAL;
	*ret_name = slash + 1;
	return open_path(AT_FDCWD, n ? parent : "/", O_DIRECTORY, 0);
}

/* A symbolic link is none either: these descriptors are opened without following one. */
static int check_mode(int fd, mode_t type)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return (st.st_mode & S_IFMT) == type ? 0 : type == S_IFBLK ? -ENOTBLK : -EINVAL;
}

/* ---- places ----------------------------------------------------------------------------------- */

struct place {
	const char *path;
	enum place_kind kind;
	mode_t mode;
};

static int do_make(void *arg)
{
	const struct place *p = arg;
	const char *name;
	cleanup_close int parent = place_open_parent(p->path, &name), fd = -1;
	int r;

	if (parent < 0)
		return parent;
	if (p->kind == PLACE_DIRECTORY) {
		if (mkdirat(parent, name, p->mode) < 0 && errno != EEXIST)
			return -errno;
	} else {
		fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    p->mode);
		if (fd < 0 && errno != EEXIST)
			return -errno;
		cleanup_close_p(&fd);
		fd = -1;
	}
	fd = open_path(parent, name, 0, 0);
	if (fd < 0)
		return fd;
	r = check_mode(fd, p->kind == PLACE_DIRECTORY ? S_IFDIR : S_IFREG);
	return r == -EINVAL && p->kind == PLACE_DIRECTORY ? -ENOTDIR : r;
}

static int remove_at(int parent, const char *name)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode) && !(S_ISREG(st.st_mode) && st.st_size == 0))
		return S_ISREG(st.st_mode) ? -ENOTEMPTY : -EINVAL;
	if (unlinkat(parent, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static int do_remove(void *arg)
{
	const char *name;
	cleanup_close int parent = place_open_parent(arg, &name);

	if (parent < 0)
		return parent == -ENOENT ? 0 : parent;
	return remove_at(parent, name);
}

int place_make(const char *path, enum place_kind kind, mode_t mode, int timeout_ms,
	       struct error *err)
{
	struct place p = { .path = path, .kind = kind, .mode = mode };
	struct error why = ERROR_INIT;
	int r = step_run(&(struct step){ do_make, &p, path, timeout_ms }, &why);

	if (r == -ELOOP)
		return error_set(err, ELOOP,
				 "%s is or leads over a symbolic link, which is refused", path);
	return r < 0 ? error_set(err, -r, "cannot make %s: %s", path, error_text(&why, r)) : 0;
}

int place_remove(const char *path, int timeout_ms, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = step_run(&(struct step){ do_remove, (void *)path, path, timeout_ms }, &why);

	if (r == -EINVAL || r == -ENOTEMPTY)
		return error_set(err, -r, "%s is not removed: it is no empty directory or file",
				 path);
	return r < 0 ? error_set(err, -r, "cannot remove %s: %s", path, error_text(&why, r)) : 0;
}

/* ---- mounts ----------------------------------------------------------------------------------- */

static int bind_to(const struct bind *b)
{
	struct mount_attr attr = { .attr_set = b->set, .attr_clr = b->clear };
	bool device = b->kind == PLACE_DEVICE;
	cleanup_close int root = -1, from = -1, to = -1, tree = -1;
	int r;

	root = place_open(AT_FDCWD, b->root, b->sub[0] ? PLACE_DIRECTORY : b->kind, 0);
	if (root < 0)
		return root;
	from = b->sub[0] ? place_open(root, b->sub, b->kind, RESOLVE_BENEATH) : TAKE_FD(root);
	if (from < 0)
		return from;
	to = place_open(AT_FDCWD, b->target, b->kind, 0);
	if (to < 0)
		return to;
	r = device ? check_mode(from, S_IFBLK) : 0;
	if (r == 0 && device)
		r = check_mode(to, S_IFREG);
	if (r < 0)
		return r;
	tree = open_tree(from, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree < 0)
		return -errno;
	if ((b->set || b->clear) && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -errno;
	if (move_mount(tree, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

/* What was made, or was there and empty, does not stay without what it is for. */
static int do_bind(void *arg)
{
	const struct bind *b = arg;
	struct place place = { .path = b->target, .kind = b->kind, .mode = b->make };
	int r = b->make ? do_make(&place) : 0;

	if (r < 0)
		return r;
	r = bind_to(b);
	if (r < 0 && b->make)
		(void)do_remove((void *)b->target);
	return r;
}

int bind_mount(const struct bind *b, int timeout_ms, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = step_run(&(struct step){ do_bind, (void *)b, b->target, timeout_ms }, &why);

	if (r == -ELOOP)
		return error_set(err, ELOOP,
				 "%s or %s%s%s is or leads over a symbolic link, which is refused",
				 b->target, b->root, *b->sub ? "/" : "", b->sub);
	return r < 0 ? error_set(err, -r, "cannot mount %s%s%s on %s: %s", b->root,
				 *b->sub ? "/" : "", b->sub, b->target, error_text(&why, r))
		     : 0;
}

/*
 * From within its directory: a descriptor of the mount itself would keep it in use, and a path
 * could lead elsewhere by now.
 */
static int unmount_at(const char *target, int flags)
{
	const char *name;
	cleanup_close int parent = place_open_parent(target, &name);

	if (parent < 0)
		return parent;
	if (fchdir(parent) < 0 || umount2(name, flags | UMOUNT_NOFOLLOW) < 0)
		return -errno;
	return 0;
}

static int do_unmount(void *arg)
{
	return unmount_at(arg, 0);
}

static int do_detach(void *arg)
{
	return unmount_at(arg, MNT_DETACH);
}

int bind_unmount(const char *target, bool detach, int timeout_ms, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = step_run(&(struct step){ detach ? do_detach : do_unmount, (void *)target, target,
					 timeout_ms },
			 &why);

	if (r == -EBUSY)
		return error_set(
			err, EBUSY,
			"%s is in use; see by whom: fuser -vm %s; then try again, or add --force",
			target, target);
	return r < 0 ? error_set(err, -r, "cannot unmount %s: %s", target, error_text(&why, r)) : 0;
}

static int do_end(void *arg)
{
	const char *name;
	cleanup_close int parent = place_open_parent(arg, &name);

	if (parent < 0)
		return parent;
	if (fchdir(parent) < 0 || umount2(name, UMOUNT_NOFOLLOW) < 0)
		return -errno;
	return remove_at(parent, name);
}

int bind_end(const char *target, int timeout_ms)
{
	return step_run(&(struct step){ do_end, (void *)target, target, timeout_ms }, NULL);
}

static int do_probe(void *arg)
{
	struct statfs fs;
	struct stat st;

	return statfs(arg, &fs) < 0 || stat(arg, &st) < 0 ? -errno : 0;
}

int bind_probe(const char *target, int timeout_ms)
{
	return step_run(&(struct step){ do_probe, (void *)target, target, timeout_ms }, NULL);
}

bool bind_is_dead(int r)
{
	return r == -ENOTCONN || r == -ESTALE || r == -EHOSTDOWN || r == -ESHUTDOWN;
}

/* ---- what is there ---------------------------------------------------------------------------- */

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
