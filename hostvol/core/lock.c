/* SPDX-License-Identifier: Apache-2.0 */
#include "lock.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>

#define POLL_MAX_MS 20 /* flock has no time limit, and a library may not use signals for one */

/*
 * Who waits. A storage that does not answer holds its lock for as long as a call may take, and would get
 * all threads of a service that has only so many: those of others' storage, too. Where calls come to
 * their end, however slowly, all wait.
 */
struct waiter {
	struct waiter *next;
	const char *path;
	int64_t since_ms; /* it began to wait, or a call that had the lock ended; 0: just now */
};

static struct {
	pthread_mutex_t lock;
	struct waiter *first;
} waiters = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void wait_begin(struct waiter *w)
{
	pthread_mutex_lock(&waiters.lock);
	w->next = waiters.first;
	waiters.first = w;
	pthread_mutex_unlock(&waiters.lock);
}

static void remove_waiter(struct waiter *w)
{
	struct waiter **p = &waiters.first;

	while (*p && *p != w)
		p = &(*p)->next;
	if (*p)
		*p = w->next;
}

static void wait_end(struct waiter *w)
{
	pthread_mutex_lock(&waiters.lock);
	remove_waiter(w);
	pthread_mutex_unlock(&waiters.lock);
}

/* Whether this one is to go; then it is counted no more. */
static bool is_too_many(struct waiter *w, int64_t now)
{
	int same = 0;

	pthread_mutex_lock(&waiters.lock);
	if (w->since_ms == 0)
		w->since_ms = now;
	if (now - w->since_ms < LOCK_PATIENCE_MS) {
		pthread_mutex_unlock(&waiters.lock);
		return false;
	}
	for (const struct waiter *other = waiters.first; other; other = other->next)
		same += streq(other->path, w->path);
	if (same > LOCK_WAITERS_MAX)
		remove_waiter(w);
	pthread_mutex_unlock(&waiters.lock);
	return same > LOCK_WAITERS_MAX;
}

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

/* 0: time has passed, try again. */
static int wait_a_little(const struct call *c, struct waiter *w, int *wait_ms, struct error *err)
{
	int r = call_left(c, 0, err);

	if (r == -ECANCELED)
		return r;
	if (r < 0)
		return error_set(err, ETIMEDOUT,
				 "another process has been working on this volume's target for "
				 "%d ms (lock %s)",
				 c->h->deadline_ms, w->path);
	if (is_too_many(w, c->host->mono_ms(c->host)))
		return error_set(err, EAGAIN,
				 "%d calls wait for this volume's target already, which has not been "
				 "free for %d ms (lock %s): try again later",
				 LOCK_WAITERS_MAX, LOCK_PATIENCE_MS, w->path);
	c->host->sleep_ms(c->host, *wait_ms);
	*wait_ms = *wait_ms * 2 > POLL_MAX_MS ? POLL_MAX_MS : *wait_ms * 2;
	return 0;
}

static int wait_for_lock(const struct call *c, const char *path, int *ret_fd, struct error *err)
{
	struct waiter w = { .path = path };
	int r, wait_ms = 1;

	wait_begin(&w);
	do {
		r = wait_a_little(c, &w, &wait_ms, err);
		if (r < 0)
			break;
		r = try_lock(path, ret_fd);
		if (r < 0)
			error_errno(err, -r, "cannot lock %s", path);
	} while (r == 0);
	wait_end(&w);
	return r < 0 ? r : 0;
}

int lock_take(const struct call *c, const char *kind, const char *id, struct lock *ret,
	      struct error *err)
{
	cleanup_free char *dir = NULL, *path = NULL;
	int r;

	r = text_format(&dir, err, "%s/locks", c->h->run_dir);
	if (r < 0)
		return r;
	r = text_format(&path, err, "%s/%s-%s", dir, kind, id);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r < 0)
		return error_errno(err, -r, "cannot make %s", dir);
	r = try_lock(path, &ret->fd);
	if (r < 0)
		return error_errno(err, -r, "cannot lock %s", path);
	if (r == 0)
		r = wait_for_lock(c, path, &ret->fd, err);
	if (r < 0)
		return r;
	ret->path = TAKE_PTR(path);
	return 0;
}

static void wait_anew(const char *path)
{
	pthread_mutex_lock(&waiters.lock);
	for (struct waiter *w = waiters.first; w; w = w->next)
		if (streq(w->path, path))
			w->since_ms = 0;
	pthread_mutex_unlock(&waiters.lock);
}

void lock_release(struct lock *l)
{
	if (l->fd < 0)
		return;
	wait_anew(l->path);
	/* removed while held: whoever waits on this file sees that it is not the one any more */
	unlink(l->path);
	close(l->fd);
	free(l->path);
	*l = LOCK_INIT;
}
