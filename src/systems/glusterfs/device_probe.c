/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "systems/glusterfs/device.h"

#include <blkid/blkid.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PROBE_TIMEOUT_MS 15000
#define FORMAT_TIMEOUT_MS 120000

/*
 * A failing disk can hold a reader in the kernel for minutes. So looking happens in a child with a
 * deadline, which leaves what it found in memory shared with us.
 */
struct look {
	const char *source;
	void (*fn)(const char *source, struct device_facts *f);
	struct device_facts *facts;
};

static int look_child(void *arg)
{
	struct look *l = arg;

	l->fn(l->source, l->facts);
	return 0;
}

static void look(const char *source, void (*fn)(const char *, struct device_facts *),
		 struct device_facts *ret)
{
	struct device_facts *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct look l = { .source = source, .fn = fn, .facts = shared };
	int rc;

	*ret = (struct device_facts){ 0 };
	if (shared == MAP_FAILED) {
		ret->error = errno;
		return;
	}
	rc = spawn_call(look_child, &l, PROBE_TIMEOUT_MS, NULL);
	/* who it is was asked before it was read: one that hangs can still be told from others */
	*ret = *shared;
	if (rc < 0)
		ret->error = -rc;
	munmap(shared, sizeof(*shared));
}

/* ---- signatures ---------------------------------------------------------------------------- */
static void add_signature(struct device_facts *f, const char *type)
{
	size_t len = strlen(f->signature);

	if (!strstr(f->signature, type))
		snprintf(f->signature + len, sizeof(f->signature) - len, "%s%s", len ? ", " : "",
			 type);
}

/* All of them: a device may carry a partition table and the rest of an old file system. */
static int read_signatures(int fd, struct device_facts *f)
{
	blkid_probe pr = blkid_new_probe();
	const char *value;
	int rc, rounds = 0;

	if (!pr)
		return -ENOMEM;
	if (blkid_probe_set_device(pr, fd, 0, 0) != 0) {
		blkid_free_probe(pr);
		return -EIO;
	}
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_UUID |
						      BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(pr, 1);
	while ((rc = blkid_do_probe(pr)) == 0 && rounds++ < 32) {
		if (blkid_probe_lookup_value(pr, "TYPE", &value, NULL) == 0) {
			add_signature(f, value);
			if (streq(value, "xfs") &&
			    blkid_probe_lookup_value(pr, "UUID", &value, NULL) == 0)
				snprintf(f->uuid, sizeof(f->uuid), "%.36s", value);
		}
		if (blkid_probe_lookup_value(pr, "PTTYPE", &value, NULL) == 0)
			add_signature(f, value);
	}
	blkid_free_probe(pr);
	return rc < 0 ? -EIO : 0;
}

/* ---- devices ------------------------------------------------------------------------------- */
/* An identity that the disk itself gives; the same on every path to it. */
static void read_wwn(unsigned major, unsigned minor, char wwn[static 128])
{
	static const char *const files[] = { "wwid", "device/wwid" };

	for (size_t i = 0; i < ARRAY_SIZE(files) && !wwn[0]; i++) {
		cleanup_free char *path =
			xasprintf("/sys/dev/block/%u:%u/%s", major, minor, files[i]);
		cleanup_free char *text = NULL;

		if (file_read(path, 128, &text, NULL, NULL) < 0)
			continue;
		text[strcspn(text, "\r\n")] = '\0';
		snprintf(wwn, 128, "%s", text);
	}
}

static bool has_entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir)))
		found = e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return found;
}

/*
 * A map of a whole disk holds the disk, not the partitions that the kernel sees on each path to it.
 */
bool device_held(const char *sysfs, const char *name)
{
	cleanup_free char *own = xasprintf("%s/class/block/%s/holders", sysfs, name),
			  *partition = xasprintf("%s/class/block/%s/partition", sysfs, name),
			  *disk = xasprintf("%s/class/block/%s/../holders", sysfs, name);

	return has_entries(own) || (access(partition, F_OK) == 0 && has_entries(disk));
}

bool device_gone(unsigned major, unsigned minor)
{
	cleanup_free char *path = xasprintf("/sys/dev/block/%u:%u", major, minor);

	if (major == 0) /* tmpfs, NFS, btrfs, FUSE: they have no device that could be gone */
		return false;
	return access("/sys/dev/block", F_OK) == 0 && access(path, F_OK) < 0 && errno == ENOENT;
}

static void read_held(struct device_facts *f)
{
	cleanup_free char *link = xasprintf("/sys/dev/block/%u:%u", f->major, f->minor),
			  *path = realpath(link, NULL);

	f->held = path && device_held("/sys", strrchr(path, '/') + 1);
}

bool device_part_of(const char *sysfs, struct device_facts *f)
{
	cleanup_free char *device = xasprintf("%s/dev/block/%u:%u", sysfs, f->major, f->minor),
			  *partition = xasprintf("%s/partition", device),
			  *disk = xasprintf("%s/../dev", device), *text = NULL;

	f->partition = access(partition, F_OK) == 0 &&
		       file_read(disk, 64, &text, NULL, NULL) == 0 &&
		       sscanf(text, "%u:%u", &f->disk_major, &f->disk_minor) == 2;
	return f->partition;
}

static void device_look(const char *device, struct device_facts *f)
{
	cleanup_close int fd = -1;
	struct stat st;
	uint64_t size = 0;
	int read_only = 0, rc;

	if (stat(device, &st) < 0) {
		f->error = errno;
		return;
	}
	f->block = S_ISBLK(st.st_mode);
	if (!f->block)
		return;
	f->major = major(st.st_rdev);
	f->minor = minor(st.st_rdev);
	read_wwn(f->major, f->minor, f->wwn);
	read_held(f);
	if (device_part_of("/sys", f))
		read_wwn(f->disk_major, f->disk_minor, f->disk_wwn);
	fd = open(device, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == EBUSY) {
		f->in_use = true;
		fd = open(device, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	}
	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &size) < 0 || ioctl(fd, BLKROGET, &read_only) < 0) {
		f->error = errno;
		return;
	}
	f->size = (int64_t)size;
	f->read_only = read_only != 0;
	rc = size > 0 ? read_signatures(fd, f) : 0;
	if (rc < 0)
		f->error = -rc;
}

void device_probe(const char *device, struct device_facts *ret)
{
	look(device, device_look, ret);
}

/*
 * The last look before the only write: whatever was said of the device since it was decided is
 * believed by nobody.
 */
static int look_again(const char *device, const char *path, const struct device_facts *seen,
		      struct error *err)
{
	struct device_facts now;

	device_probe(path, &now);
	if (now.error)
		return error_errno(err, now.error, "Cannot format %s", device);
	if (!now.block)
		return error_set(err, ENOTBLK, "Cannot format %s: it is not a block device",
				 device);
	if (now.in_use)
		return error_set(err, EBUSY, "Cannot format %s: it is in use; free it first",
				 device);
	if (!device_unchanged(seen, &now))
		return error_set(err, ESTALE,
				 "%s is not formatted: it is not as it was when that was decided "
				 "(then %s %s, now %s %s); it is looked at again",
				 device, seen->wwn[0] ? seen->wwn : "a device without a name",
				 seen->signature[0] ? seen->signature : "without data",
				 now.wwn[0] ? now.wwn : "a device without a name",
				 now.signature[0] ? now.signature : "without data");
	return 0;
}

/*
 * It is held open, and everything happens through that: whatever its name leads to a moment later,
 * this device it is, and while it is held its number goes to no other. mkfs.xfs takes O_EXCL, and
 * looks for signatures once more where none was seen.
 */
int device_format(const char *device, const struct device_facts *seen, const char *uuid,
		  const char *label, struct error *err)
{
	cleanup_close int fd = open(device, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	cleanup_free char *option = xasprintf("uuid=%s", uuid),
			  *path = xasprintf("/proc/%d/fd/%d", (int)getpid(), fd);
	const char *plain[] = { "mkfs.xfs", "-q", "-K",	 "-i", "size=512", "-m",
				option,	    "-L", label, path, NULL };
	const char *forced[] = { "mkfs.xfs", "-f",   "-q", "-K",  "-i", "size=512",
				 "-m",	     option, "-L", label, path, NULL };
	int rc;

	if (fd < 0)
		return error_errno(err, errno, "Cannot format %s", device);
	rc = look_again(device, path, seen, err);
	if (rc < 0)
		return rc;
	rc = spawn_check(&(struct spawn){ .argv = seen->signature[0] ? forced : plain,
					  .timeout_ms = FORMAT_TIMEOUT_MS },
			 NULL, err);
	return rc < 0 ? error_prefix(err, "Cannot format %s", device) : 0;
}

struct wipe {
	const char *device, *uuid;
};

static int wipe_child(void *arg)
{
	static char *const xfs[] = { (char *)"xfs", NULL };
	const struct wipe *w = arg;
	cleanup_close int fd = open(w->device, O_RDWR | O_EXCL | O_CLOEXEC);
	blkid_probe pr;
	const char *value;
	int rc;

	if (fd < 0)
		return -errno;
	pr = blkid_new_probe();
	if (!pr || blkid_probe_set_device(pr, fd, 0, 0) != 0)
		return -EIO;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_filter_superblocks_type(pr, BLKID_FLTR_ONLYIN, (char **)xfs);
	/* as it is found: a damaged one is the brick's, too, and would keep its device for ever */
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_UUID | BLKID_SUBLKS_TYPE |
						      BLKID_SUBLKS_MAGIC | BLKID_SUBLKS_BADCSUM);
	rc = blkid_do_probe(pr);
	if (rc != 0)
		rc = rc < 0 ? -EIO : 0; /* there is none: it was wiped before */
	else if (blkid_probe_lookup_value(pr, "UUID", &value, NULL) != 0 ||
		 strcasecmp(value, w->uuid) != 0)
		rc = -EPERM;
	else if (blkid_do_wipe(pr, 0) != 0 || fsync(fd) < 0)
		rc = -EIO;
	blkid_free_probe(pr);
	return rc;
}

int device_wipe(const char *device, const char *uuid, struct error *err)
{
	struct wipe w = { device, uuid };
	int rc = spawn_call(wipe_child, &w, PROBE_TIMEOUT_MS, err);

	if (rc == -EPERM)
		return error_set(err, EPERM,
				 "Cannot free %s: its file system is not the brick's (%s); it "
				 "stays untouched",
				 device, uuid);
	if (rc < 0)
		return error_errno(err, -rc, "Cannot free %s by removing the brick's signature",
				   device);
	return 0;
}

/* ---- directories --------------------------------------------------------------------------- */
static int open_plain(const char *path)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS };

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

static bool marked(int fd)
{
	struct stat st;

	return fstatat(fd, ".quartermaster.json", &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool same_inode(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static bool inside_brick(int dir)
{
	cleanup_close int fd = openat(dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	for (int level = 0; fd >= 0 && level < 64; level++) {
		cleanup_close int up = -1;

		if (marked(fd))
			return true;
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0 || same_inode(fd, up))
			break;
		close(fd);
		fd = TAKE_FD(up);
	}
	return false;
}

static void directory_look(const char *directory, struct device_facts *f)
{
	cleanup_free char *parent = xstrdup(directory);
	cleanup_close int fd = open_plain(directory);
	struct statvfs vfs;
	struct stat st;
	char *slash = strrchr(parent, '/');

	f->directory = true;
	f->block = true;
	if (fd >= 0) {
		if (fstat(fd, &st) == 0)
			f->inode = st.st_ino;
	} else if (errno == ENOENT && slash && slash > parent) {
		*slash = '\0';
		fd = open_plain(parent);
	}
	if (fd < 0) {
		f->symlink = errno == ELOOP;
		f->block = errno != ENOTDIR;
		f->error = errno == ELOOP || errno == ENOTDIR ? 0 : errno;
		return;
	}
	if (fstat(fd, &st) < 0 || fstatvfs(fd, &vfs) < 0) {
		f->error = errno;
		return;
	}
	f->major = major(st.st_dev);
	f->minor = minor(st.st_dev);
	f->size = (int64_t)vfs.f_blocks * (int64_t)vfs.f_frsize;
	f->free = (int64_t)vfs.f_bavail * (int64_t)vfs.f_frsize;
	f->read_only = vfs.f_flag & ST_RDONLY;
	f->inside_brick = inside_brick(fd);
}

void directory_probe(const char *directory, struct device_facts *ret)
{
	look(directory, directory_look, ret);
	ret->directory = true;
}
