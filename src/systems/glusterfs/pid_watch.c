/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "systems/glusterfs/glusterd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#define WATCHED_MAX 256

struct pid_watch {
	pthread_mutex_t lock;
	pthread_t thread;
	int wake; /* eventfd: the list changed, or the end has come */
	bool ending;
	void (*changed)(void *userdata);
	void *userdata;
	struct {
		int pid, fd;
	} items[WATCHED_MAX];
	int count;
};

/* The list under lock into poll's form; slot 0 is the wake-up. */
static int collect(struct pid_watch *w, struct pollfd fds[static WATCHED_MAX + 1])
{
	int n = 0;

	fds[n++] = (struct pollfd){ .fd = w->wake, .events = POLLIN };
	for (int i = 0; i < w->count; i++)
		fds[n++] = (struct pollfd){ .fd = w->items[i].fd, .events = POLLIN };
	return n;
}

/* Only the watching thread closes, so a descriptor in poll is never reused under it. */
static bool drop_ended(struct pid_watch *w, const struct pollfd *fds, int n)
{
	bool any = false;

	for (int i = n - 1; i >= 1; i--) {
		if (!fds[i].revents)
			continue;
		close(w->items[i - 1].fd);
		w->items[i - 1] = w->items[--w->count];
		any = true;
	}
	return any;
}

static void *watch_thread(void *arg)
{
	struct pid_watch *w = arg;
	struct pollfd fds[WATCHED_MAX + 1];

	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		int n = collect(w, fds);
		uint64_t value;
		bool ended = false;

		pthread_mutex_unlock(&w->lock);
		if (poll(fds, (nfds_t)n, -1) < 0 && errno != EINTR)
			return NULL;
		pthread_mutex_lock(&w->lock);
		if (fds[0].revents && read(w->wake, &value, sizeof(value)) < 0)
			continue;
		/* n entries were in the list then, and only additions at its end can have come since */
		ended = drop_ended(w, fds, n);
		if (ended && !w->ending) {
			pthread_mutex_unlock(&w->lock);
			w->changed(w->userdata);
			pthread_mutex_lock(&w->lock);
		}
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct pid_watch *pid_watch_new(void (*changed)(void *userdata), void *userdata)
{
	struct pid_watch *w = xcalloc(1, sizeof(*w));
	pthread_attr_t attr;

	w->changed = changed;
	w->userdata = userdata;
	pthread_mutex_init(&w->lock, NULL);
	w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	if (w->wake < 0 || pthread_create(&w->thread, &attr, watch_thread, w) != 0)
		abort();
	pthread_attr_destroy(&attr);
	return w;
}

static void wake(struct pid_watch *w)
{
	uint64_t one = 1;

	while (write(w->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

void pid_watch_add(struct pid_watch *w, int pid)
{
	bool known = pid <= 0;
	int fd;

	pthread_mutex_lock(&w->lock);
	for (int i = 0; i < w->count; i++)
		known |= w->items[i].pid == pid;
	if (!known && w->count < WATCHED_MAX) {
		fd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (fd >= 0) {
			w->items[w->count].pid = pid;
			w->items[w->count++].fd = fd;
			wake(w);
		}
	}
	pthread_mutex_unlock(&w->lock);
}

void pid_watch_free(struct pid_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	wake(w);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	for (int i = 0; i < w->count; i++)
		close(w->items[i].fd);
	close(w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
