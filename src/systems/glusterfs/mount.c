/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/mount.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "systems/glusterfs/device.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define MOUNT_TIMEOUT_MS 120000 /* a log to replay takes its time */
#define MARKER ".quartermaster.json"

struct mount_call {
	const char *device, *mountpoint, *options;
};

static int mount_child(void *arg)
{
	const struct mount_call *m = arg;

	return mount(m->device, m->mountpoint, "xfs", MS_NOATIME, m->options) < 0 ? -errno : 0;
}

static int unmount_child(void *arg)
{
	return umount2(arg, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

static int detach_child(void *arg)
{
	return umount2(arg, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 ? -errno : 0;
}

bool mountinfo_device(const char *text, const char *mountpoint, dev_t *ret)
{
	cleanup_free char *want = xasprintf(" %s ", mountpoint);
	bool found = false;

	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += !!line) {
		unsigned maj, min;
		int at = 0;

		/* ID PARENT MAJOR:MINOR ROOT MOUNTPOINT …; the last one is the uppermost */
		if (sscanf(line, "%*d %*d %u:%u %*s%n", &maj, &min, &at) == 2 && at > 0 &&
		    str_has_prefix(line + at, want)) {
			*ret = makedev(maj, min);
			found = true;
		}
	}
	return found;
}

char *mount_resolve(const char *mountpoint)
{
	const char *slash = strrchr(mountpoint, '/');
	cleanup_free char *before = xstrndup(mountpoint, slash ? (size_t)(slash - mountpoint) : 0),
			  *parent = realpath(before[0] ? before : "/", NULL);

	if (!slash || !parent)
		return xstrdup(mountpoint);
	return xasprintf("%s%s", streq(parent, "/") ? "" : parent, slash);
}

/* The kernel's table is asked, not the file system: one whose disk is gone answers with errors. */
int mount_device_at(const char *mountpoint, dev_t *ret, struct error *err)
{
	cleanup_free char *text = NULL, *resolved = mount_resolve(mountpoint);
	int rc = file_read("/proc/self/mountinfo", 0, &text, NULL, err);

	return rc < 0 ? rc : mountinfo_device(text, resolved, ret);
}

/*
 * What is mounted there and is not to be: only when its device is no more does it go. It is ours by
 * the place, and nothing can be read from or written to it. Whoever still has files of it open
 * keeps them; a brick's process ends by itself as soon as its health check fails.
 */
static int detach_dead(const char *device, const char *mountpoint, dev_t dead, struct error *err)
{
	int rc;

	if (!device_gone(major(dead), minor(dead)))
		return error_set(
			err, EBUSY,
			"Cannot mount %s on %s: another file system is mounted there; unmount it",
			device, mountpoint);
	rc = spawn_call(detach_child, (void *)mountpoint, MOUNT_TIMEOUT_MS, NULL);
	if (rc < 0)
		return error_errno(err, -rc, "Cannot detach %s, whose disk %u:%u is gone",
				   mountpoint, major(dead), minor(dead));
	log_info("detached %s: its disk %u:%u is gone, and has come back as %s", mountpoint,
		 major(dead), minor(dead), device);
	return 0;
}

/* A kernel without project quota refuses the option; what that means is reported with the quota. */
static int mount_with(struct mount_call *m, const char *quota, const char *plain)
{
	int rc;

	m->options = quota;
	rc = spawn_call(mount_child, m, MOUNT_TIMEOUT_MS, NULL);
	if (rc != -EINVAL)
		return rc;
	m->options = plain;
	return spawn_call(mount_child, m, MOUNT_TIMEOUT_MS, NULL);
}

int brick_mount(const char *device, const char *mountpoint, struct error *err)
{
	struct mount_call m = { .device = device, .mountpoint = mountpoint };
	dev_t there = 0;
	struct stat dev;
	int rc, old = mount_device_at(mountpoint, &there, err);

	if (old < 0)
		return old;
	if (stat(device, &dev) < 0)
		return error_errno(err, errno, "Cannot mount %s on %s", device, mountpoint);
	if (old && there == dev.st_rdev)
		return 1;
	rc = old ? detach_dead(device, mountpoint, there, err) :
		   mkdir_parents(mountpoint, 0700, err);
	if (rc < 0)
		return rc;
	rc = mount_with(&m, "inode64,prjquota", "inode64");
	/*
	 * the kernel takes it for a second one of that UUID while somebody has files of the dead
	 * one open
	 */
	if (rc == -EINVAL && old)
		rc = mount_with(&m, "inode64,nouuid,prjquota", "inode64,nouuid");
	return rc < 0 ? error_errno(err, -rc, "Cannot mount %s on %s", device, mountpoint) : 0;
}

int brick_unmount(const char *mountpoint, struct error *err)
{
	int rc = spawn_call(unmount_child, (void *)mountpoint, MOUNT_TIMEOUT_MS, NULL);

	if (rc == -EINVAL || rc == -ENOENT)
		rc = 0;
	if (rc < 0)
		return error_errno(err, -rc, "Cannot unmount %s", mountpoint);
	rmdir(mountpoint);
	return 0;
}

/* ---- marker -------------------------------------------------------------------------------- */
/* What mkfs and our own interrupted steps leave does not count. */
static bool foreign_name(const char *name)
{
	return !streq(name, ".") && !streq(name, "..") && !streq(name, "brick") &&
	       !streq(name, "lost+found") && !str_has_prefix(name, MARKER);
}

static bool holds_files(const char *root)
{
	cleanup_free char *brick = xasprintf("%s/brick", root);
	const char *dirs[] = { root, brick };
	bool found = false;

	for (size_t i = 0; i < ARRAY_SIZE(dirs) && !found; i++) {
		DIR *dir = opendir(dirs[i]);
		const struct dirent *e;

		while (dir && !found && (e = readdir(dir)))
			found = foreign_name(e->d_name);
		if (dir)
			closedir(dir);
	}
	return found;
}

int marker_read(const char *root, json_t **ret, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/" MARKER, root), *text = NULL;
	size_t len;
	int rc = file_read(path, 64 * 1024, &text, &len, err);

	if (rc == -ENOENT && holds_files(root))
		return error_set(err, ENOTEMPTY, "%s holds files but no marker of ours", root);
	return rc < 0 ? rc : json_parse(text, len, ret, err);
}

int marker_write(const char *root, const json_t *marker, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/" MARKER, root),
			  *brick = xasprintf("%s/brick", root);
	cleanup_free char *text = json_text(marker);
	int rc = mkdir_parents(brick, 0755, err);

	return rc < 0 ? rc : file_write(path, text, strlen(text), 0600, err);
}

int marker_tree_remove(const char *root, const char *id, struct error *err)
{
	cleanup_free char *tail = xasprintf("/.quartermaster-%s", id),
			  *gone = xasprintf("%s.gone", root);
	cleanup_json json_t *marker = NULL;
	struct stat st;
	int rc;

	if (!str_has_suffix(root, tail))
		return error_set(err, EINVAL, "%s is not the tree of brick %s: it stays untouched",
				 root, id);
	/* renamed first, so that a removal that is cut short is known as such without its marker */
	if (lstat(gone, &st) == 0 && (rc = remove_tree(gone, err)) < 0)
		return rc;
	if (lstat(root, &st) < 0 && errno == ENOENT)
		return 0;
	rc = marker_read(root, &marker, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	if (rc == 0 && !streq(jstr(marker, "id"), id))
		return error_set(err, EPERM, "%s is marked as brick %s, not %s: it stays untouched",
				 root, jstr(marker, "id") ? jstr(marker, "id") : "?", id);
	if (rename(root, gone) < 0)
		return error_errno(err, errno, "Cannot remove %s", root);
	return remove_tree(gone, err);
}
