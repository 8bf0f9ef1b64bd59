/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/clock.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* hostvol uses this file, so nothing here may end the program for want of memory. */

static int read_all(int fd, size_t limit, char **ret, size_t *ret_len)
{
	cleanup_free char *data = NULL;
	size_t len = 0, cap = 4096;

	for (;;) {
		char *bigger = realloc(data, cap + 1);
		ssize_t n;

		if (!bigger)
			return -ENOMEM;
		data = bigger;
		while (len < cap) {
			n = read(fd, data + len, cap - len);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return -errno;
			if (n == 0) {
				data[len] = '\0';
				*ret = TAKE_PTR(data);
				*ret_len = len;
				return 0;
			}
			len += (size_t)n;
			if (len > limit)
				return -EFBIG;
		}
		cap *= 2;
	}
}

int file_read(const char *path, size_t limit, char **ret, size_t *ret_len, struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t len = 0;
	int r;

	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	if (!limit)
		limit = 16 << 20;
	r = read_all(fd, limit, ret, &len);
	if (r == -EFBIG)
		return error_set(err, EFBIG, "%s is bigger than %zu bytes", path, limit);
	if (r < 0)
		return error_errno(err, -r, "cannot read %s", path);
	if (ret_len)
		*ret_len = len;
	return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The directory part ("." where there is none) to dir; returns the name part. */
static const char *split_path(const char *path, char dir[static PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		strcpy(dir, ".");
	else if (slash == path)
		strcpy(dir, "/");
	else
		snprintf(dir, PATH_MAX, "%.*s", (int)(slash - path), path);
	return slash ? slash + 1 : path;
}

/* Renamed and fsynced: after this a crash shows the old content or the new, never a mixture. */
static int put_in_place(int fd, const char *temporary, const char *path, const char *dir,
			const void *data, size_t len, mode_t mode)
{
	cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (dir_fd < 0)
		return -errno;
	r = write_all(fd, data, len);
	if (r < 0)
		return r;
	if (fchmod(fd, mode) < 0 || fsync(fd) < 0 || rename(temporary, path) < 0 ||
	    fsync(dir_fd) < 0)
		return -errno;
	return 0;
}

int file_write(const char *path, const void *data, size_t len, mode_t mode, struct error *err)
{
	char dir[PATH_MAX], temporary[PATH_MAX];
	cleanup_close int fd = -1;
	const char *name;
	int r;

	if (strlen(path) + sizeof("/..XXXXXX") > sizeof(temporary))
		return error_errno(err, ENAMETOOLONG, "cannot write %.100s…", path);
	name = split_path(path, dir);
	r = snprintf(temporary, sizeof(temporary), "%s/.%s.XXXXXX", dir, name);
	if (r < 0 || (size_t)r >= sizeof(temporary))
		return error_errno(err, ENAMETOOLONG, "cannot write %.100s…", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return error_errno(err, errno, "cannot write %s", path);
	r = put_in_place(fd, temporary, path, dir, data, len, mode);
	if (r < 0) {
		unlink(temporary);
		return error_errno(err, -r, "cannot write %s", path);
	}
	return 0;
}

static int make_directory(const char *path, mode_t mode)
{
	struct stat st;

	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		/* "/" of a read-only system says EROFS although it is there */
		return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? 0 : -errno;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int mkdir_parents(const char *path, mode_t mode, struct error *err)
{
	char part[PATH_MAX];
	size_t len = strlen(path);
	struct stat st;
	int r;

	if (len == 0 || len >= sizeof(part))
		return error_errno(err, len ? ENAMETOOLONG : EINVAL,
				   "cannot make the directory %.100s", path);
	/* nearly always it is there: one question instead of two for each of its parents */
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return 0;
	for (size_t i = 0; i <= len; i++) {
		part[i] = '\0';
		if ((path[i] == '/' || !path[i]) && i > 0 && path[i - 1] != '/') {
			r = make_directory(part, mode);
			if (r < 0)
				return error_errno(err, -r, "cannot make the directory %s", part);
		}
		part[i] = path[i];
	}
	return 0;
}

/* Opens a directory only if it is one, reached without a link and without crossing a mount. */
static int open_within(int dir_fd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dir_fd, name, &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

static int remove_entry(int dir_fd, const char *name, struct error *err);

/* Takes over fd. */
static int empty_directory(int fd, struct error *err)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;
	int r = 0;

	if (!dir) {
		r = -errno;
		close(fd);
		return error_errno(err, -r, "cannot list");
	}
	while (r == 0) {
		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			r = errno ? error_errno(err, errno, "cannot list") : 0;
			break;
		}
		if (!streq(entry->d_name, ".") && !streq(entry->d_name, ".."))
			r = remove_entry(dirfd(dir), entry->d_name, err);
	}
	closedir(dir);
	return r;
}

static int remove_entry(int dir_fd, const char *name, struct error *err)
{
	int fd, r;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return error_errno(err, errno, "cannot remove %s", name);
	fd = open_within(dir_fd, name);
	if (fd == -EXDEV)
		return error_set(err, EXDEV, "%s is a mount point: unmount it first", name);
	if (fd < 0)
		return error_errno(err, -fd, "cannot remove %s", name);
	r = empty_directory(fd, err);
	if (r < 0)
		return r;
	if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot remove %s", name);
	return 0;
}

int remove_tree(const char *path, struct error *err)
{
	struct error inner = ERROR_INIT;
	cleanup_close int dir_fd = -1;
	char copy[PATH_MAX], dir[PATH_MAX];
	size_t len = strlen(path);
	const char *name;
	int r;

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len >= sizeof(copy))
		return error_errno(err, ENAMETOOLONG, "cannot remove %.100s…", path);
	snprintf(copy, sizeof(copy), "%.*s", (int)len, path);
	name = split_path(copy, dir);
	if (!*name || streq(name, ".") || streq(name, ".."))
		return error_set(err, EINVAL, "refusing to remove %s", path);
	dir_fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0 && errno == ENOENT)
		return 0;
	if (dir_fd < 0)
		return error_errno(err, errno, "cannot remove %s", path);
	r = remove_entry(dir_fd, name, &inner);
	if (r < 0)
		return error_set(err, -r, "cannot remove %s: %s", path, error_text(&inner, r));
	return 0;
}

bool path_is_clean(const char *path)
{
	size_t len = path ? strlen(path) : 0, part = 0;

	if (len == 0 || len >= PATH_MAX || path[0] != '/')
		return false;
	for (size_t i = 1; len > 1 && i <= len; i++) {
		if ((unsigned char)path[i] < ' ' && path[i])
			return false;
		if (path[i] == 0x7f)
			return false;
		if (path[i] != '/' && path[i]) {
			part++;
			continue;
		}
		if (part == 0 || part > NAME_MAX || (part == 1 && path[i - 1] == '.') ||
		    (part == 2 && path[i - 1] == '.' && path[i - 2] == '.'))
			return false;
		part = 0;
	}
	return true;
}

#define LOCK_WAIT_MS 30000
#define LOCK_POLL_MS 20

/* Whether the file that was locked is still the one of that name. */
static bool is_current(int fd, const char *path)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
	       a.st_ino == b.st_ino;
}

int lock_file(const char *path, bool wait, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + LOCK_WAIT_MS;

	for (;;) {
		cleanup_close int fd =
			open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600);

		if (fd < 0)
			return error_errno(err, errno, "cannot open the lock file %s", path);
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			if (is_current(fd, path))
				return TAKE_FD(fd);
			continue; /* removed by the one who held it */
		}
		if (errno != EWOULDBLOCK && errno != EINTR)
			return error_errno(err, errno, "cannot lock %s", path);
		if (!wait || clock_mono_ms(&clock_real) >= end)
			return error_set(err, EWOULDBLOCK, "%s is locked by another process", path);
		poll(NULL, 0, LOCK_POLL_MS);
	}
}
