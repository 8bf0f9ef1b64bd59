/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/filesystem.h"

#include "base/mem.h"
#include "base/spawn.h"
#include "mounts/bind.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#define TRIES 20
#define PROBE_MS 20000
#define MOUNT_MS 60000
#define FORMAT_MS 120000
#define CHECK_MS 600000
#define GROW_MS 120000
#define GROW_UNMOUNTED_MS (12 * 3600 * 1000) /* it is long on slow storage, and must not be killed */

/* What a child finds out is left in memory that is shared with it. */
struct answer {
	char text[400];
};

static struct answer *answer_new(void)
{
	void *a = mmap(NULL, sizeof(struct answer), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return a == MAP_FAILED ? NULL : a;
}

static void answer_free(struct answer **a)
{
	if (*a)
		munmap(*a, sizeof(**a));
}

/* ---- what is there ---------------------------------------------------------------------------- */

#define EDGE (256 * 1024) /* signatures lie within it, at both ends */

struct probe {
	const char *device;
	struct answer *answer;
};

/* All of it must be readable: what cannot be read is not empty. */
static int read_all(int fd, off_t from, size_t len)
{
	char block[4096];

	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, block, sizeof(block), from + (off_t)done);

		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

static int read_edges(int fd)
{
	uint64_t size = 0;
	int r;

	if (ioctl(fd, BLKGETSIZE64, &size) < 0)
		return -errno;
	if (size < EDGE)
		return -ENOSPC;
	r = read_all(fd, 0, EDGE);
	return r < 0 ? r : read_all(fd, (off_t)(size - EDGE), EDGE);
}

static void remember(struct answer *a, blkid_probe pr, const char *name)
{
	const char *value;

	if (!a->text[0] && blkid_probe_lookup_value(pr, name, &value, NULL) == 0)
		snprintf(a->text, FS_NAME_MAX, "%s", value);
}

/*
 * A killed mkfs.xfs leaves a superblock that says "in progress", which the kernel never mounts, and
 * which would be taken for a file system for ever. (mkfs.ext4 writes its superblock last.) Others
 * leave that mark, too (xfs_copy): so only one without any files counts, where nothing but the
 * root and the two inodes of the realtime part, or not even these, are in use.
 */
#define XFS_IN_PROGRESS 126 /* places in the superblock; numbers are big-endian */
#define XFS_INODES 128
#define XFS_INODES_FREE 136
#define XFS_INODES_OWN 3
#define SECTOR 512

static uint64_t be64(const unsigned char *p)
{
	uint64_t v = 0;

	for (int i = 0; i < 8; i++)
		v = v << 8 | p[i];
	return v;
}

static int is_unfinished_xfs(int fd)
{
	unsigned char sb[SECTOR];

	if (pread(fd, sb, sizeof(sb), 0) != sizeof(sb))
		return -EIO;
	return memcmp(sb, "XFSB", 4) == 0 && sb[XFS_IN_PROGRESS] &&
	       be64(sb + XFS_INODES) - be64(sb + XFS_INODES_FREE) <= XFS_INODES_OWN;
}

/* What is tried next must not find it. -EBUSY while its maker is still there. */
static int do_erase_unfinished(void *arg)
{
	static const char zeros[SECTOR];
	cleanup_close int fd = open(arg, O_RDWR | O_EXCL | O_CLOEXEC);
	int r = fd < 0 ? -errno : is_unfinished_xfs(fd);

	if (r > 0)
		r = pwrite(fd, zeros, sizeof(zeros), 0) != sizeof(zeros) || fsync(fd) < 0 ? -EIO
											   : 0;
	return r;
}

/* 1: something; it is named in the answer. */
static int do_probe(void *arg)
{
	struct probe *p = arg;
	cleanup_close int fd = open(p->device, O_RDONLY | O_CLOEXEC);
	blkid_probe pr;
	int r;

	if (fd < 0)
		return -errno;
	r = read_edges(fd);
	if (r < 0)
		return r;
	pr = blkid_new_probe();
	if (!pr || blkid_probe_set_device(pr, fd, 0, 0) != 0)
		return -EIO;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(pr, 1);
	r = blkid_do_probe(pr);
	if (r != 0)
		return r == 1 ? 0 : -EIO;
	r = is_unfinished_xfs(fd);
	if (r != 0)
		return r < 0 ? r : 0;
	remember(p->answer, pr, "TYPE");
	remember(p->answer, pr, "PTTYPE");
	return 1;
}

int filesystem_probe(const char *device, char ret[static FS_NAME_MAX], struct error *err)
{
	cleanup_with(answer_free) struct answer *a = answer_new();
	struct probe p = { .device = device, .answer = a };
	int r = a ? spawn_call_keeping(do_probe, &p, -1, device, PROBE_MS, NULL) : -ENOMEM;

	if (r == -ENOSPC)
		return error_set(err, EINVAL, "%s is too small for a file system", device);
	if (r < 0)
		return error_errno(err, -r, "cannot read what is on %s", device);
	if (r > 0)
		snprintf(ret, FS_NAME_MAX, "%.31s", a->text[0] ? a->text : "something unknown");
	return r;
}

/* ---- programs --------------------------------------------------------------------------------- */

/*
 * Who looks for a free loop device claims ours for a moment, before he is told that it is taken; no
 * event says when that is over.
 */
static void pause_shortly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
}

static int run(const char *const *argv, int timeout_ms, struct error *err)
{
	return spawn_check(&(struct spawn){ .argv = argv, .timeout_ms = timeout_ms }, NULL, err);
}

static int erase_unfinished(const char *device, struct error *err)
{
	int r = -EBUSY;

	for (int i = 0; i < TRIES && r == -EBUSY; i++) {
		if (i)
			pause_shortly();
		r = spawn_call_keeping(do_erase_unfinished, (void *)device, -1, device, PROBE_MS,
				       NULL);
	}
	return r < 0 ? error_errno(err, -r, "cannot prepare %s for a file system", device) : 0;
}

int filesystem_make(const char *device, const char *type, struct error *err)
{
	/* it is empty, and mostly a file with holes: there is nothing to discard */
	const char *ext[] = { "mkfs.ext4", "-q",
			      "-m",	   "0",
			      "-t",	   type,
			      "-E",	   "nodiscard,lazy_itable_init=1,lazy_journal_init=1",
			      device,	   NULL };
	const char *xfs[] = { "mkfs.xfs", "-q", "-K", device, NULL };

	const char *const *argv = streq(type, "ext4") || streq(type, "ext3") ? ext
				  : streq(type, "xfs")			     ? xfs
									     : NULL;
	int r;

	if (!argv)
		return error_set(err, EINVAL, "%s is not made here: use ext4, ext3 or xfs", type);
	r = erase_unfinished(device, err);
	if (r < 0)
		return r;
	r = run(argv, FORMAT_MS, err);
	if (r == -EIO) {
		pause_shortly();
		r = run(argv, FORMAT_MS, err);
	}
	return r;
}

static bool is_ext(const char *type)
{
	return streq(type, "ext4") || streq(type, "ext3") || streq(type, "ext2");
}

#define FSCK_UNCORRECTED 4 /* of e2fsck's status, with all above; 1 and 2: it was mended */
#define FSCK_ERROR 8 /* it could not work: the device is in use, … */

/* full: although it says that it is clean. */
static int check(const char *device, bool full, struct error *err)
{
	const char *argv[] = { "e2fsck", full ? "-fp" : "-p", device, NULL };
	int status = 0;

	for (int i = 0; i < TRIES; i++) {
		cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
		int r = spawn_run(&(struct spawn){ .argv = argv, .timeout_ms = CHECK_MS }, &result,
				  err);

		if (r < 0)
			return r == -ENOENT ? 0 : r;
		status = result.status;
		if (status != FSCK_ERROR)
			break;
		pause_shortly();
	}
	if (status < FSCK_UNCORRECTED)
		return 0;
	if (status & FSCK_UNCORRECTED)
		return error_set(err, EIO, "the file system on %s needs e2fsck by hand", device);
	return error_set(err, EIO, "e2fsck of %s failed with status %d", device, status);
}

int filesystem_check(const char *device, const char *type, struct error *err)
{
	return is_ext(type) ? check(device, false, err) : 0;
}

/*
 * resize2fs does nothing, and asks for no check, where there is nothing to do; else it may ask for a full one. It is
 * not to be ended on its way: what it moves is in no journal.
 */
static int grow_checked(const char *device, struct error *err)
{
	const char *argv[] = { "resize2fs", device, NULL };
	int r = run(argv, GROW_UNMOUNTED_MS, err);

	if (r != -EIO)
		return r;
	r = check(device, true, err);
	return r < 0 ? r : run(argv, GROW_UNMOUNTED_MS, err);
}

bool filesystem_grows_unmounted(const char *type)
{
	return is_ext(type);
}

int filesystem_grow_unmounted(const char *device, const char *type, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = is_ext(type) ? grow_checked(device, err) : -EOPNOTSUPP;

	if (r == -EOPNOTSUPP)
		return error_set(err, EOPNOTSUPP, "%s on %s is grown while it is mounted", type,
				 device);
	/* what was tried, or found, may be half of something: that is not for use */
	if (r < 0 && check(device, false, &why) < 0)
		return error_set(err, EUCLEAN, "%s", why.message);
	return r;
}

/* While it is mounted. */
static int grow_ext(const char *device, struct error *err)
{
	const char *argv[] = { "resize2fs", device, NULL };
	struct error why = ERROR_INIT;
	int r = run(argv, GROW_MS, &why);

	return r < 0 ? error_set(err, -r,
				 "%s; end its pods and start them again: what the kernel refuses "
				 "is done when it is staged, while it is not mounted",
				 error_text(&why, r))
		     : 0;
}

int filesystem_grow(const char *device, const char *type, const char *mount_point,
		    struct error *err)
{
	const char *xfs[] = { "xfs_growfs", "-d", mount_point, NULL };

	if (is_ext(type))
		return grow_ext(device, err);
	if (streq(type, "xfs"))
		return run(xfs, GROW_MS, err);
	return error_set(err, EOPNOTSUPP, "%s on %s cannot be grown here", type, device);
}

/* ---- mounting --------------------------------------------------------------------------------- */

struct mounting {
	const struct filesystem_mount *m;
	struct answer *answer;
};

/* What the kernel says of it, "e EXT4-fs: …"; the last line is the reason. */
static void read_log(int fs, struct answer *a)
{
	char line[sizeof(a->text)];
	ssize_t n;

	while ((n = read(fs, line, sizeof(line) - 1)) > 0) {
		line[n] = '\0';
		if (n > 2 && line[0] == 'e')
			snprintf(a->text, sizeof(a->text), "%s", line + 2);
	}
}

static int set_options(int fs, const char *options)
{
	char copy[1024], *save = NULL;

	if (strlen(options) >= sizeof(copy))
		return -E2BIG;
	strcpy(copy, options);
	for (char *o = strtok_r(copy, ",", &save); o; o = strtok_r(NULL, ",", &save)) {
		char *value = strchr(o, '=');
		int r;

		if (value)
			*value++ = '\0';
		r = value ? fsconfig(fs, FSCONFIG_SET_STRING, o, value, 0)
			  : fsconfig(fs, FSCONFIG_SET_FLAG, o, NULL, 0);
		if (r < 0)
			return -errno;
	}
	return 0;
}

static int configure(int fs, const struct filesystem_mount *m)
{
	int r;

	if (fsconfig(fs, FSCONFIG_SET_STRING, "source", m->device, 0) < 0)
		return -errno;
	if (m->read_only && fsconfig(fs, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0)
		return -errno;
	/* a clone has the identity of its source, which the kernel mounts only once otherwise */
	if (streq(m->type, "xfs") && fsconfig(fs, FSCONFIG_SET_FLAG, "nouuid", NULL, 0) < 0)
		return -errno;
	r = set_options(fs, m->options);
	if (r < 0)
		return r;
	return fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ? -errno : 0;
}

static int do_mount(void *arg)
{
	const struct mounting *g = arg;
	const struct filesystem_mount *m = g->m;
	uint64_t attributes = m->attributes | (m->read_only ? MOUNT_ATTR_RDONLY : 0);
	cleanup_close int to = place_open(AT_FDCWD, m->target, PLACE_DIRECTORY, 0), fs = -1,
			  tree = -1;
	int r;

	if (to < 0)
		return to;
	fs = fsopen(m->type, FSOPEN_CLOEXEC);
	if (fs < 0)
		return -errno;
	r = configure(fs, m);
	if (r < 0) {
		read_log(fs, g->answer);
		return r;
	}
	tree = fsmount(fs, FSMOUNT_CLOEXEC, (unsigned)attributes);
	if (tree < 0 ||
	    move_mount(tree, "", to, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return -errno;
	return 0;
}

int filesystem_mount(const struct filesystem_mount *m, struct error *err)
{
	cleanup_with(answer_free) struct answer *a = answer_new();
	struct mounting g = { .m = m, .answer = a };
	int r = a ? spawn_call_keeping(do_mount, &g, -1, m->device, MOUNT_MS, NULL) : -ENOMEM;

	for (int i = 0; i < TRIES && r == -EBUSY; i++) {
		pause_shortly();
		r = spawn_call_keeping(do_mount, &g, -1, m->device, MOUNT_MS, NULL);
	}
	if (r < 0 && a && a->text[0])
		return error_set(err, -r, "cannot mount %s (%s): %.*s", m->device, m->type,
				 (int)strcspn(a->text, "\n"), a->text);
	return r < 0 ? error_errno(err, -r, "cannot mount %s (%s) on %s", m->device, m->type,
				   m->target)
		     : 0;
}
