/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/ephemeral_file.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "base/step.h"
#include "mounts/bind.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define FILE_MS 10000
#define UNFINISHED 0600
#define FINISHED 0640 /* the mark is in the file itself, so that it cannot be lost without it */

struct step_args {
	const struct ephemeral_file *f;
	int64_t size;
	bool make; /* directories, too */
};

static int enter(int dir, const char *name, bool make)
{
	int fd;

	if (make && mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int open_dir(const struct step_args *a)
{
	cleanup_close int root = place_open(AT_FDCWD, a->f->root, PLACE_DIRECTORY, 0), top = -1;

	if (root < 0)
		return root;
	top = enter(root, EPHEMERAL_DIR, a->make);
	return top < 0 ? top : enter(top, a->f->node, a->make);
}

static int open_file(int dir, const char *id, int flags)
{
	struct stat st;
	int fd = openat(dir, id, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, UNFINISHED);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

static int check_room(int fd, int64_t size)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return -errno;
	return (int64_t)fs.f_bavail < size / fs.f_bsize ? -ENOSPC : 0;
}

static int do_make(void *arg)
{
	const struct step_args *a = arg;
	cleanup_close int dir = open_dir(a), fd = -1;
	struct stat st;
	int r;

	if (dir < 0)
		return dir;
	fd = open_file(dir, a->f->id, O_RDWR | O_CREAT);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((st.st_mode & 0777) == FINISHED)
		return 0;
	r = check_room(fd, a->size);
	if (r == -ENOSPC)
		(void)unlinkat(dir, a->f->id, 0);
	if (r < 0)
		return r;
	return ftruncate(fd, 0) < 0 || ftruncate(fd, a->size) < 0 ? -errno : 0;
}

static int do_finish(void *arg)
{
	cleanup_close int dir = open_dir(arg), fd = -1;

	if (dir < 0)
		return dir;
	fd = open_file(dir, ((struct step_args *)arg)->f->id, O_RDONLY);
	if (fd < 0)
		return fd;
	return fchmod(fd, FINISHED) < 0 ? -errno : 0;
}

static int do_touch(void *arg)
{
	cleanup_close int dir = open_dir(arg);

	if (dir < 0)
		return dir;
	return utimensat(dir, ((struct step_args *)arg)->f->id, NULL, AT_SYMLINK_NOFOLLOW) < 0
		       ? -errno
		       : 0;
}

static int do_remove(void *arg)
{
	cleanup_close int dir = open_dir(arg);

	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	if (unlinkat(dir, ((struct step_args *)arg)->f->id, 0) < 0 && errno != ENOENT)
		return -errno;
	return 0;
}

static int run(int (*fn)(void *), struct step_args *a, const char *what, struct error *err)
{
	struct error why = ERROR_INIT;
	int r = step_run(&(struct step){ fn, a, a->f->root, FILE_MS }, &why);

	return r < 0 ? error_set(err, -r, "cannot %s " EPHEMERAL_DIR "/%s/%s in %s: %s", what,
				 a->f->node, a->f->id, a->f->root, error_text(&why, r))
		     : 0;
}

int ephemeral_file_make(const struct ephemeral_file *f, int64_t size, struct error *err)
{
	struct step_args a = { .f = f, .size = size, .make = true };
	char text[QUANTITY_TEXT_MAX];
	int r = run(do_make, &a, "make", err);

	return r == -ENOSPC ? error_set(err, ENOSPC, "the pool has no room for %s",
					quantity_text(size, text))
			    : r;
}

int ephemeral_file_finish(const struct ephemeral_file *f, struct error *err)
{
	return run(do_finish, &(struct step_args){ .f = f }, "finish", err);
}

int ephemeral_file_touch(const struct ephemeral_file *f, struct error *err)
{
	return run(do_touch, &(struct step_args){ .f = f }, "touch", err);
}

int ephemeral_file_remove(const struct ephemeral_file *f, struct error *err)
{
	return run(do_remove, &(struct step_args){ .f = f }, "remove", err);
}
