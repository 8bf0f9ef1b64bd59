/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_dir.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define REPLACED_MAX 8
#define FILE_MAX 65536

int dir_open(glfs_t *fs, glfs_object_t *parent, const char *name, glfs_object_t **ret,
	     struct error *err)
{
	struct stat st;
	glfs_object_t *o = glfs_h_lookupat(fs, parent, name, &st, 0);
	if (!o)
		return error_errno(err, errno, "cannot open directory %s of the pool", name);
	if (!S_ISDIR(st.st_mode)) {
		glfs_h_close(o);
		return error_set(err, ENOTDIR,
				 "%s in the pool is %s, not a directory; nothing was touched, look "
				 "who put it there",
				 name, S_ISLNK(st.st_mode) ? "a symbolic link" : "a file");
	}
	*ret = o;
	return 0;
}

/*
 * Names are looked up before they are made. One whose maker died half-way may be on some bricks only: looking
 * it up heals it, but making it anew would give it another identity on the others, a split brain.
 */
int dir_make(glfs_t *fs, glfs_object_t *parent, const char *name, bool *fresh, glfs_object_t **ret,
	     struct error *err)
{
	struct stat st;
	struct error why = ERROR_INIT;
	int rc = fresh && *fresh ? -ENOENT : dir_open(fs, parent, name, ret, &why);
	if (fresh)
		*fresh = false;
	if (rc != -ENOENT)
		return rc < 0 ? error_set(err, -rc, "%s", why.message) : 0;
	glfs_object_t *o = glfs_h_mkdir(fs, parent, name, 0755, &st);
	if (!o && errno == EEXIST)
		return dir_open(fs, parent, name, ret, err);
	if (!o)
		return error_errno(err, errno, "cannot make directory %s in the pool", name);
	if (fresh)
		*fresh = true;
	*ret = o;
	return 0;
}

int dir_read(glfs_t *fs, glfs_object_t *dir, struct dir_entry *entries, int max, struct error *err)
{
	glfs_fd_t *fd = glfs_h_opendir(fs, dir);
	if (!fd)
		return error_errno(err, errno, "cannot read a directory of the pool");

	int count = 0, rc = 0;
	while (count < max) {
		struct stat st = { 0 };
		struct dirent entry, *got = NULL;
		if (glfs_readdirplus_r(fd, &st, &entry, &got) < 0) {
			rc = error_errno(err, errno, "cannot read a directory of the pool");
			break;
		}
		if (!got)
			break;
		if (streq(got->d_name, ".") || streq(got->d_name, ".."))
			continue;
		struct dir_entry *e = &entries[count++];
		memcpy(e->name, got->d_name, strlen(got->d_name) + 1);
		e->is_dir = S_ISDIR(st.st_mode);
		e->is_file = S_ISREG(st.st_mode);
	}
	glfs_closedir(fd);
	return rc < 0 ? rc : count;
}

int dir_each(glfs_t *fs, glfs_object_t *dir, dir_fn fn, void *userdata, struct error *err)
{
	glfs_fd_t *fd = glfs_h_opendir(fs, dir);
	if (!fd)
		return error_errno(err, errno, "cannot read a directory of the pool");

	int rc = 0;
	while (rc == 0) {
		struct stat st = { 0 };
		struct dirent entry, *got = NULL;
		if (glfs_readdirplus_r(fd, &st, &entry, &got) < 0)
			rc = error_errno(err, errno, "cannot read a directory of the pool");
		if (rc < 0 || !got)
			break;
		if (streq(got->d_name, ".") || streq(got->d_name, ".."))
			continue;
		struct dir_entry e = { .is_dir = S_ISDIR(st.st_mode),
				       .is_file = S_ISREG(st.st_mode) };
		memcpy(e.name, got->d_name, strlen(got->d_name) + 1);
		rc = fn(dir, &e, userdata, err);
	}
	glfs_closedir(fd);
	return rc;
}

static int write_all(glfs_fd_t *fd, const char *text)
{
	size_t len = strlen(text), done = 0;
	while (done < len) {
		ssize_t n = glfs_write(fd, text + done, len - done, 0);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		done += (size_t)n;
	}
	return 0;
}

int file_create(glfs_t *fs, glfs_object_t *dir, const char *name, int flags, bool fresh,
		glfs_fd_t **ret, struct error *err)
{
	struct stat st;
	glfs_fd_t *fd = NULL;
	cleanup_object glfs_object_t *there = fresh ? NULL : glfs_h_lookupat(fs, dir, name, &st, 0);
	if (there)
		return error_set(err, EEXIST, "file %s is in the pool already", name);
	if (!fresh && errno != ENOENT)
		return error_errno(err, errno, "cannot look for file %s in the pool", name);
	cleanup_object glfs_object_t *o = glfs_h_creat_open(
		fs, dir, name, O_CREAT | O_EXCL | O_WRONLY | flags, 0644, &st, &fd);
	if (!o)
		return error_errno(err, errno, "cannot make file %s in the pool", name);
	*ret = fd;
	return 0;
}

int file_make(glfs_t *fs, glfs_object_t *dir, const char *name, const char *text, glfs_fd_t **ret,
	      struct error *err)
{
	glfs_fd_t *fd;
	int rc = file_create(fs, dir, name, 0, false, &fd, err);
	if (rc < 0)
		return rc;
	rc = write_all(fd, text);
	if (rc < 0) {
		glfs_close(fd);
		return error_errno(err, -rc, "cannot write file %s in the pool", name);
	}
	*ret = fd;
	return 0;
}

static int file_close(glfs_fd_t *fd, int rc, struct error *err)
{
	if (glfs_close(fd) < 0 && rc == 0)
		rc = -errno;
	return rc < 0 ? error_errno(err, -rc, "cannot write a file in the pool") : 0;
}

int file_keep(glfs_fd_t *fd, struct error *err)
{
	return file_close(fd, glfs_fsync(fd, NULL, NULL) < 0 ? -errno : 0, err);
}

int file_finish(glfs_fd_t *fd, const char *text, struct error *err)
{
	return file_close(fd, write_all(fd, text), err);
}

static int file_read_once(glfs_t *fs, glfs_object_t *dir, const char *name, struct buf *ret,
			  struct error *err)
{
	struct stat st;
	cleanup_object glfs_object_t *o = glfs_h_lookupat(fs, dir, name, &st, 0);
	if (!o)
		return error_errno(err, errno, "cannot open file %s in the pool", name);
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX)
		return error_set(err, EINVAL, "%s in the pool is not a small plain file", name);
	glfs_fd_t *fd = glfs_h_open(fs, o, O_RDONLY | O_NOFOLLOW);
	if (!fd)
		return error_errno(err, errno, "cannot open file %s in the pool", name);

	char chunk[4096];
	ssize_t n;
	while ((n = glfs_read(fd, chunk, sizeof(chunk), 0)) > 0 && ret->len < FILE_MAX)
		buf_add(ret, chunk, (size_t)n);
	int rc = n < 0 ? error_errno(err, errno, "cannot read file %s in the pool", name) : 0;
	glfs_close(fd);
	return rc;
}

/* One that is replaced (by rename) between the lookup and the open is stale: its successor has the name by then. */
int file_get(glfs_t *fs, glfs_object_t *dir, const char *name, struct buf *ret, struct error *err)
{
	int rc = -ESTALE;

	for (int i = 0; i < REPLACED_MAX && rc == -ESTALE; i++) {
		buf_done(ret);
		*ret = (struct buf){ 0 };
		rc = file_read_once(fs, dir, name, ret, err);
	}
	return rc;
}
