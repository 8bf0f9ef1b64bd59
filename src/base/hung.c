/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hung.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>

struct hung {
	struct hung *next;
	int (*fn)(void *arg);
	pid_t pid;
	int64_t since_ms; /* wall */
	void *block;
	size_t size;
	char about[];
};

static struct {
	pthread_mutex_t lock;
	struct hung *first;
	int count;
} all = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Also one that tells nobody of its end (__WALL). */
static bool has_ended(const struct hung *h)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | __WALL) < 0 || info.si_pid;
}

/* The lock is held. The oldest that does the same on the same path; NULL: none. */
static const struct hung *collect(int (*fn)(void *arg), const char *about)
{
	const struct hung *same = NULL;

	for (struct hung **p = &all.first; *p;) {
		struct hung *h = *p;

		if (has_ended(h)) {
			*p = h->next;
			all.count--;
			if (h->block)
				munmap(h->block, h->size);
			free(h);
			continue;
		}
		if (about && h->fn == fn && streq(h->about, about))
			same = h;
		p = &h->next;
	}
	return same;
}

int hung_check(int (*fn)(void *arg), const char *about, struct error *err)
{
	char since[TIME_TEXT_MAX];
	const struct hung *same;
	int r = 0;

	pthread_mutex_lock(&all.lock);
	same = collect(fn, about);
	if (same)
		r = error_set(err, ETIMEDOUT,
			      "an earlier attempt still hangs in the kernel, since %s; no other is "
			      "made until it ends",
			      time_text(same->since_ms, since));
	else if (all.count >= HUNG_MAX)
		r = error_set(err, ETIMEDOUT,
			      "%d processes hang in the kernel, and no more are started until some "
			      "end; see what their storage does",
			      all.count);
	pthread_mutex_unlock(&all.lock);
	return r;
}

/* One that there is no memory for is never reaped: it is init's when we end. */
void hung_leave(pid_t pid, int (*fn)(void *arg), const char *about, void *block, size_t size)
{
	size_t len = about ? strlen(about) : 0;
	struct hung *h = calloc(1, sizeof(*h) + len + 1);

	if (!h)
		return;
	h->fn = fn;
	h->pid = pid;
	h->since_ms = clock_wall_ms(&clock_real);
	h->block = block;
	h->size = size;
	if (about)
		memcpy(h->about, about, len);
	pthread_mutex_lock(&all.lock);
	h->next = all.first;
	all.first = h;
	all.count++;
	pthread_mutex_unlock(&all.lock);
}
