/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#define POLL_MAX_MS 20 /* flock has no time limit, and a library may not use signals for one */

/* 1: held; 0: another has it, or it was removed while we waited. */
static int try_lock(const char *path, int *ret_fd)
{
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat ours, there;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (fstat(fd, &ours) < 0)
		return -errno;
	if (stat(path, &there) < 0 || there.st_ino != ours.st_ino)
		return 0;
	*ret_fd = TAKE_FD(fd);
	return 1;
}

int lock_take(const struct call *c, const char *kind, const char *id, struct lock *ret,
	      struct error *err)
{
	cleanup_free char *dir = NULL, *path = NULL;
	int r, wait_ms = 1;

	r = text_format(&dir, err, "%s/locks", c->h->run_dir);
	if (r < 0)
		return r;
	r = text_format(&path, err, "%s/%s-%s", dir, kind, id);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r < 0)
		return error_errno(err, -r, "cannot make %s", dir);
	for (;;) {
		r = try_lock(path, &ret->fd);
		if (r < 0)
			return error_errno(err, -r, "cannot lock %s", path);
		if (r > 0)
			break;
		r = call_left(c, 0, err);
		if (r == -ECANCELED)
			return r;
		if (r < 0)
			return error_set(
				err, ETIMEDOUT,
				"another process has been working on this volume's target for "
				"%d ms (lock %s)",
				c->h->deadline_ms, path);
		c->host->sleep_ms(c->host, wait_ms);
		wait_ms = wait_ms * 2 > POLL_MAX_MS ? POLL_MAX_MS : wait_ms * 2;
	}
	ret->path = TAKE_PTR(path);
	return 0;
}

void lock_release(struct lock *l)
{
	if (l->fd < 0)
		return;
	/* removed while held: whoever waits on this file sees that it is not the one any more */
	unlink(l->path);
	close(l->fd);
	free(l->path);
	*l = LOCK_INIT;
}
