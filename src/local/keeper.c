/* SPDX-License-Identifier: Apache-2.0 */
#include "local/keeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/pidfd.h>

enum {
	STACK_SIZE = 256 * 1024,
	FIRST_PAUSE_MS = 200,
	LONGEST_PAUSE_MS = 30000,
	LIVED_LONG_MS = 10000, /* a program that lived this long has not "ended early" */
};

struct kept {
	struct program *program;
	int pidfd; /* -1 while it does not run */
	int64_t started_ms;
	int64_t next_ms; /* when to start it, while it does not run */
	int pause_ms;
	struct kept *next;
};

struct keeper {
	pthread_t thread;
	pthread_mutex_t lock;
	struct kept *list;
	size_t count;
	int wake;
	bool stop;
};

static void wake(struct keeper *k)
{
	uint64_t one = 1;

	if (write(k->wake, &one, sizeof(one)) < 0 && errno != EAGAIN)
		log_warn("waking the keeper: %s", strerror(errno));
}

static void start(struct kept *p, int64_t now)
{
	struct error err = ERROR_INIT;
	pid_t pid;
	int r;

	p->started_ms = now;
	p->pause_ms = p->pause_ms ? p->pause_ms * 2 : FIRST_PAUSE_MS;
	if (p->pause_ms > LONGEST_PAUSE_MS)
		p->pause_ms = LONGEST_PAUSE_MS;
	p->next_ms = now + p->pause_ms;
	r = program_start(p->program, &pid, &err);
	if (r < 0) {
		log_at(r == -ECANCELED ? LOG_LEVEL_DEBUG : LOG_LEVEL_ERROR, "%s", err.message);
		return;
	}
	p->pidfd = pidfd_open(pid, 0);
	if (p->pidfd < 0)
		log_warn("%s ended as soon as it was started; see its log", p->program->name);
}

static void ended(struct kept *p, int64_t now)
{
	close(p->pidfd);
	p->pidfd = -1;
	if (now - p->started_ms >= LIVED_LONG_MS) {
		p->pause_ms = 0;
		p->next_ms = now;
	}
	log_warn("%s ended; starting it again%s", p->program->name,
		 p->next_ms > now ? " after a pause" : "");
}

/* Starts what is due and collects what to wait for; the time to the next start, or -1. */
static int prepare(struct keeper *k, struct pollfd *fds, size_t *ret_count)
{
	int64_t now = clock_mono_ms(&clock_real), soonest = -1;
	size_t n = 0;

	fds[n++] = (struct pollfd){ .fd = k->wake, .events = POLLIN };
	for (struct kept *p = k->list; p; p = p->next) {
		if (p->pidfd < 0 && p->next_ms <= now)
			start(p, now);
		if (p->pidfd >= 0)
			fds[n++] = (struct pollfd){ .fd = p->pidfd, .events = POLLIN };
		else if (soonest < 0 || p->next_ms < soonest)
			soonest = p->next_ms;
	}
	*ret_count = n;
	if (soonest < 0)
		return -1;
	return soonest > now ? (int)(soonest - now) : 0;
}

static void note_ends(struct keeper *k, const struct pollfd *fds, size_t count)
{
	int64_t now = clock_mono_ms(&clock_real);

	for (struct kept *p = k->list; p; p = p->next)
		for (size_t i = 1; i < count; i++)
			if (p->pidfd >= 0 && fds[i].fd == p->pidfd && fds[i].revents) {
				ended(p, now);
				break;
			}
}

static void *run(void *arg)
{
	struct keeper *k = arg;

	pthread_mutex_lock(&k->lock);
	while (!k->stop) {
		struct pollfd *fds = xcalloc(k->count + 1, sizeof(*fds));
		size_t count;
		uint64_t drained;
		int timeout = prepare(k, fds, &count);

		pthread_mutex_unlock(&k->lock);
		if (poll(fds, count, timeout) > 0 && fds[0].revents &&
		    read(k->wake, &drained, sizeof(drained)) < 0 && errno != EAGAIN)
			log_warn("the keeper's wake-up: %s", strerror(errno));
		pthread_mutex_lock(&k->lock);
		note_ends(k, fds, count);
		free(fds);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

int keeper_start(struct keeper **ret, struct error *err)
{
	struct keeper *k = xcalloc(1, sizeof(*k));
	pthread_attr_t attr;
	int r;

	pthread_mutex_init(&k->lock, NULL);
	k->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(&k->thread, &attr, run, k);
	pthread_attr_destroy(&attr);
	if (r != 0) {
		close(k->wake);
		free(k);
		return error_errno(err, r, "starting the keeper's thread");
	}
	*ret = k;
	return 0;
}

static struct kept **find(struct keeper *k, const char *name)
{
	struct kept **p = &k->list;

	while (*p && !streq((*p)->program->name, name))
		p = &(*p)->next;
	return p;
}

void keeper_add(struct keeper *k, struct program *program)
{
	struct kept **p;

	pthread_mutex_lock(&k->lock);
	p = find(k, program->name);
	if (*p) {
		program_free((*p)->program);
	} else {
		*p = xcalloc(1, sizeof(**p));
		(*p)->pidfd = -1;
		k->count++;
	}
	(*p)->program = program;
	pthread_mutex_unlock(&k->lock);
	wake(k);
}

static void drop(struct keeper *k, struct kept **p)
{
	struct kept *gone = *p;

	*p = gone->next;
	k->count--;
	if (gone->pidfd >= 0)
		close(gone->pidfd);
	program_free(gone->program);
	free(gone);
}

void keeper_forget(struct keeper *k, const char *name)
{
	struct kept **p;

	pthread_mutex_lock(&k->lock);
	p = find(k, name);
	if (*p)
		drop(k, p);
	pthread_mutex_unlock(&k->lock);
	wake(k);
}

void keeper_free(struct keeper *k)
{
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_mutex_unlock(&k->lock);
	wake(k);
	pthread_join(k->thread, NULL);
	while (k->list)
		drop(k, &k->list);
	close(k->wake);
	pthread_mutex_destroy(&k->lock);
	free(k);
}
