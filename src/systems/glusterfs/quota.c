/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/quota.h"

#include "base/file.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#define PROJECT_QUOTA 2 /* PRJQUOTA of linux/quota.h, which cannot be included beside sys/quota.h */
#define SECTOR 512
#define DEPTH_MAX 400 /* levels of a tree: each holds a descriptor open */
#define PROJECT_TRIES 64

static int project_quota(int fd, unsigned cmd, uint32_t id, void *data)
{
	unsigned full = cmd << SUBCMDSHIFT | PROJECT_QUOTA; /* QCMD() shifts into an int's sign */

	return syscall(SYS_quotactl_fd, fd, full, id, data) < 0 ? -errno : 0;
}

/* ---- support ------------------------------------------------------------------------------- */
static void unsupported(struct quota_support *s, const char *reason, const char *message)
{
	snprintf(s->reason, sizeof(s->reason), "%s", reason);
	snprintf(s->message, sizeof(s->message), "%s", message);
}

void quota_support(const char *brick, struct quota_support *ret)
{
	cleanup_close int fd = open(brick, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_quota_stat state = { 0 };
	struct statfs fs;
	uint32_t format;
	int rc;

	*ret = (struct quota_support){ 0 };
	if (fd < 0 || fstatfs(fd, &fs) < 0) {
		unsupported(ret, "NotMounted", "the brick is not mounted");
		return;
	}
	if (fs.f_type != XFS_SUPER_MAGIC) {
		unsupported(ret, "NotXfs",
			    "the brick is a directory of a file system other than XFS");
		return;
	}
	rc = project_quota(fd, Q_XGETQSTAT, 0, &state);
	/* ENOSYS also says that quota is merely off; of the two only a kernel that has it knows formats */
	if (rc == -ENOSYS && project_quota(fd, Q_GETFMT, 0, &format) == -ESRCH)
		rc = 0;
	if (rc == 0 && state.qs_flags & FS_QUOTA_PDQ_ENFD)
		ret->enforced = true;
	else if (rc == 0)
		unsupported(ret, "NoQuotaOption",
			    "the brick's file system is mounted without project quota (prjquota)");
	else if (rc == -ENOSYS)
		unsupported(ret, "NoKernelSupport",
			    "this kernel has no XFS project quota (CONFIG_XFS_QUOTA)");
	else
		unsupported(ret, "QuotaFailed", strerror(-rc));
}

/* ---- projects ------------------------------------------------------------------------------ */
static int open_tree(const char *brick, const char *dir, struct error *err)
{
	cleanup_close int root = open(brick, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve =
					RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV };
	int fd;

	if (root < 0)
		return error_errno(err, errno, "Cannot open the brick %s", brick);
	fd = (int)syscall(SYS_openat2, root, dir, &how, sizeof(how));
	return fd < 0 ? error_errno(err, errno, "Cannot open %s in the brick %s", dir, brick) : fd;
}

static int quota_read(int fd, uint32_t id, struct fs_disk_quota *ret)
{
	int rc = project_quota(fd, Q_XGETQUOTA, id, ret);

	if (rc == -ENOENT)
		*ret = (struct fs_disk_quota){ 0 };
	return rc == -ENOENT ? 0 : rc;
}

static int quota_write(int fd, uint32_t id, int64_t bytes, int64_t inodes)
{
	struct fs_disk_quota q = { .d_version = FS_DQUOT_VERSION,
				   .d_flags = FS_PROJ_QUOTA,
				   .d_fieldmask = FS_DQ_BHARD | FS_DQ_IHARD,
				   .d_id = id,
				   .d_blk_hardlimit = ((uint64_t)bytes + SECTOR - 1) / SECTOR,
				   .d_ino_hardlimit = (uint64_t)inodes };

	return project_quota(fd, Q_XSETQLIM, id, &q);
}

static bool has_limit(const struct fs_disk_quota *q)
{
	return q->d_blk_hardlimit > 0 || q->d_ino_hardlimit > 0;
}

static int project_of(int fd, uint32_t *ret)
{
	struct fsxattr x;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
		return -errno;
	*ret = x.fsx_projid;
	return 0;
}

static int project_assign(int fd, uint32_t id, bool directory)
{
	struct fsxattr x;

	if (ioctl(fd, FS_IOC_FSGETXATTR, &x) < 0)
		return -errno;
	x.fsx_projid = id;
	if (directory)
		x.fsx_xflags |= FS_XFLAG_PROJINHERIT;
	return ioctl(fd, FS_IOC_FSSETXATTR, &x) < 0 ? -errno : 0;
}

/* Two inode numbers may share their low bits: an id that holds files or has a limit is another's. */
static int project_choose(int fd, uint32_t *ret)
{
	struct fs_disk_quota q;
	struct stat st;
	uint32_t id;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	id = st.st_ino & 0x7fffffff;
	for (int i = 0; i < PROJECT_TRIES; i++, id = (id + 1) & 0x7fffffff) {
		if (id == 0)
			continue;
		rc = quota_read(fd, id, &q);
		if (rc < 0)
			return rc;
		if (q.d_icount == 0 && !has_limit(&q)) {
			*ret = id;
			return 0;
		}
	}
	return -EADDRINUSE;
}

/* ---- the walk ------------------------------------------------------------------------------ */
static int walk(int fd, uint32_t id, int depth);

/* Links, sockets and devices hold no blocks worth counting and cannot be opened without effect. */
static int walk_entry(int dir, const char *name, uint32_t id, int depth)
{
	cleanup_close int fd = -1;
	struct stat st;
	uint32_t project = 0;
	int rc;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT || errno == ELOOP ? 0 : -errno;
	rc = project_of(fd, &project);
	if (rc < 0 || (project != 0 && project != id))
		return rc;
	if (project == 0 && (rc = project_assign(fd, id, S_ISDIR(st.st_mode))) < 0)
		return rc;
	return S_ISDIR(st.st_mode) ? walk(fd, id, depth + 1) : 0;
}

static int walk(int fd, uint32_t id, int depth)
{
	int copy = depth > DEPTH_MAX ? -1 : openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	const struct dirent *e;
	int rc = 0;

	if (!dir)
		return depth > DEPTH_MAX ? -ENAMETOOLONG : -errno;
	while (rc == 0 && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			rc = walk_entry(dirfd(dir), e->d_name, id, depth);
	closedir(dir);
	return rc;
}

/* The directory's project; made, and the tree walked, where no limit says that this was done. */
static int project_ensure(int fd, uint32_t *ret)
{
	struct fs_disk_quota q;
	uint32_t id = 0;
	int rc = project_of(fd, &id);

	if (rc == 0 && id == 0 && (rc = project_choose(fd, &id)) == 0)
		rc = project_assign(fd, id, true);
	if (rc < 0)
		return rc;
	rc = quota_read(fd, id, &q);
	if (rc == 0 && !has_limit(&q))
		rc = walk(fd, id, 0);
	if (rc == 0)
		*ret = id;
	return rc;
}

int quota_set(const char *brick, const char *dir, int64_t bytes, int64_t inodes, struct error *err)
{
	cleanup_close int fd = open_tree(brick, dir, err);
	struct fs_disk_quota q;
	uint32_t id = 0;
	int rc;

	if (fd < 0)
		return fd;
	rc = project_ensure(fd, &id);
	if (rc == 0)
		rc = quota_read(fd, id, &q);
	if (rc == 0 && (q.d_blk_hardlimit != ((uint64_t)bytes + SECTOR - 1) / SECTOR ||
			q.d_ino_hardlimit != (uint64_t)inodes))
		rc = quota_write(fd, id, bytes, inodes);
	return rc < 0 ? error_errno(err, -rc, "Cannot limit %s in the brick %s", dir, brick) : 0;
}

int quota_get(const char *brick, const char *dir, struct quota_usage *ret, struct error *err)
{
	cleanup_close int fd = open_tree(brick, dir, err);
	struct fs_disk_quota q = { 0 };
	uint32_t id = 0;
	int rc;

	if (fd < 0)
		return fd;
	rc = project_of(fd, &id);
	if (rc == 0 && id != 0)
		rc = quota_read(fd, id, &q);
	if (rc < 0)
		return error_errno(err, -rc, "Cannot read the quota of %s in the brick %s", dir,
				   brick);
	*ret = (struct quota_usage){ .project = id,
				     .bytes_limit = (int64_t)q.d_blk_hardlimit * SECTOR,
				     .bytes_used = (int64_t)q.d_bcount * SECTOR,
				     .inodes_limit = (int64_t)q.d_ino_hardlimit,
				     .inodes_used = (int64_t)q.d_icount };
	return 0;
}

int quota_sweep(const char *brick, struct error *err)
{
	cleanup_close int fd = open(brick, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct fs_disk_quota q;
	int swept = 0, rc;

	if (fd < 0)
		return error_errno(err, errno, "Cannot open the brick %s", brick);
	for (uint32_t id = 1; (rc = project_quota(fd, Q_XGETNEXTQUOTA, id, &q)) == 0;
	     id = q.d_id + 1) {
		/* a directory that is alive is itself a file of its project */
		if (q.d_icount == 0 && has_limit(&q) && quota_write(fd, q.d_id, 0, 0) == 0)
			swept++;
		if (q.d_id == UINT32_MAX)
			break;
	}
	if (rc < 0 && rc != -ENOENT && rc != -ESRCH)
		return error_errno(err, -rc, "Cannot list the projects of the brick %s", brick);
	return swept;
}
