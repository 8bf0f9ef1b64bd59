/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/hub.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>

#define STACK_SIZE (256 * 1024)

struct hub *hub_new(void)
{
	struct hub *hub;
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (fd < 0)
		return NULL;
	hub = xcalloc(1, sizeof(*hub));
	hub->event_fd = fd;
	atomic_init(&hub->refs, 1);
	pthread_mutex_init(&hub->lock, NULL);
	TAILQ_INIT(&hub->posted);
	return hub;
}

struct hub *hub_ref(struct hub *hub)
{
	atomic_fetch_add_explicit(&hub->refs, 1, memory_order_relaxed);
	return hub;
}

void hub_unref(struct hub *hub)
{
	if (!hub || atomic_fetch_sub_explicit(&hub->refs, 1, memory_order_acq_rel) != 1)
		return;
	pthread_mutex_destroy(&hub->lock);
	close(hub->event_fd);
	free(hub);
}

void hub_lock(struct hub *hub)
{
	pthread_mutex_lock(&hub->lock);
}

void hub_unlock(struct hub *hub)
{
	bool wake = hub->wake;
	int fd = hub->event_fd;

	hub->wake = false;
	pthread_mutex_unlock(&hub->lock);
	if (wake) {
		/* Can only fail when the counter is full, and then it is readable already. */
		ssize_t n = write(fd, &(uint64_t){ 1 }, sizeof(uint64_t));
		(void)n;
	}
}

void hub_wake(struct hub *hub)
{
	if (hub->woken || hub->closed)
		return;
	hub->woken = true;
	hub->wake = true;
}

bool hub_post(struct hub *hub, struct hub_item *item)
{
	if (hub->closed)
		return false;
	hub_wake(hub);
	if (item->posted)
		return false;
	item->posted = true;
	TAILQ_INSERT_TAIL(&hub->posted, item, entry);
	return true;
}

void hub_quiet(struct hub *hub)
{
	uint64_t count;
	ssize_t n = read(hub->event_fd, &count, sizeof(count));

	/* Only now: cleared before, a wake-up could come in between and be read away. */
	(void)n;
	hub_lock(hub);
	hub->woken = false;
	hub_unlock(hub);
}

struct hub_item *hub_next(struct hub *hub)
{
	struct hub_item *item;

	hub_lock(hub);
	item = TAILQ_FIRST(&hub->posted);
	if (item) {
		TAILQ_REMOVE(&hub->posted, item, entry);
		item->posted = false;
	}
	hub_unlock(hub);
	return item;
}

void hub_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

bool hub_wait(struct hub *hub, pthread_cond_t *cond, int64_t until_ms)
{
	struct timespec at;

	if (until_ms == INT64_MAX) {
		pthread_cond_wait(cond, &hub->lock);
		return true;
	}
	at.tv_sec = until_ms / 1000;
	at.tv_nsec = until_ms % 1000 * 1000000;
	return pthread_cond_timedwait(cond, &hub->lock, &at) != ETIMEDOUT;
}

int hub_thread(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	/* SIGPIPE has to be blocked where OpenSSL writes; the others are for the program's own
	 * threads. Faults stay deliverable. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = pthread_create(ret, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (r == 0)
		pthread_setname_np(*ret, name);
	return -r;
}

int64_t hub_now_ms(void)
{
	return clock_mono_ms(&clock_real);
}

int64_t hub_deadline(int timeout_ms)
{
	return timeout_ms < 0 ? INT64_MAX : hub_now_ms() + timeout_ms;
}
