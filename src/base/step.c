/* SPDX-License-Identifier: Apache-2.0 */
#include "base/step.h"

#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILL_WAIT_MS 1000 /* for a killed child to end; one in an uninterruptible call is left */
#define STACK_SIZE (56 << 10)

/*
 * At the lower end of a mapping; above it a page that nobody may touch, and the child's stack. What a
 * page is the machine says: 64 KiB on ppc64el and on many arm64 kernels.
 */
struct child {
	int (*fn)(void *arg);
	void *arg;
	pid_t parent, pid;
	int pidfd;
	int value; /* what fn returned */
	bool done;
};
_Static_assert(sizeof(struct child) <= 4096, "it fits into the smallest page that there is");

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t block_size(void)
{
	size_t page = page_size();

	return 2 * page + (STACK_SIZE + page - 1) / page * page;
}

/*
 * Tools that follow each thread's memory cannot follow such a child; there it gets a copy.
 */
static bool can_share(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	return false;
#endif
#endif
	const char *preload = getenv("LD_PRELOAD");

	return !preload || !strstr(preload, "vgpreload");
}

static struct child *block_new(bool share)
{
	size_t page = page_size(), size = block_size();
	char *block = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_ANONYMOUS | (share ? MAP_PRIVATE : MAP_SHARED), -1, 0);

	if (block == MAP_FAILED)
		return NULL;
	if (mprotect(block + page, page, PROT_NONE) < 0) {
		munmap(block, size);
		return NULL;
	}
	return (struct child *)block;
}

/* ---- in the child ----------------------------------------------------------------------------- */

static int child_main(void *block)
{
	struct child *c = block;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != c->parent)
		return 1;
	c->value = close_range(3, ~0U, 0) < 0 ? -errno : c->fn(c->arg);
	c->done = true;
	return 0;
}

/* ---- in the parent ---------------------------------------------------------------------------- */

/*
 * errno is the child's as well: nothing here reads it while a child may run. Signals are held by
 * the caller's programs as they please; a wait that one breaks off goes on.
 */
static bool has_ended(const struct child *c, int64_t until)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
	int64_t left;
	int n;

	do {
		left = until - clock_mono_ms(&clock_real);
		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && left > 0);
	return n > 0;
}

static void child_free(struct child *c)
{
	siginfo_t info;
	int r;

	do
		r = waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | __WALL);
	while (r < 0 && errno == EINTR);
	close(c->pidfd);
	munmap(c, block_size());
}

/* Its stack is the upper part of the block in either case: the same code runs, on a copy or not. */
static int start(struct child *c, bool share)
{
	int flags = CLONE_PIDFD | (share ? CLONE_VM : 0);
	sigset_t all, old;
	int r;

	/* no handler of ours may run in the child; it has no signal for us at its end either */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	c->pid = clone(child_main, (char *)c + block_size(), flags, c, &c->pidfd);
	r = c->pid < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

static struct child *child_new(const struct step *s, bool share, int *ret_r)
{
	struct child *c = block_new(share);

	if (!c) {
		*ret_r = -ENOMEM;
		return NULL;
	}
	c->fn = s->fn;
	c->arg = s->arg;
	c->parent = getpid();
	*ret_r = start(c, share);
	if (*ret_r == 0)
		return c;
	munmap(c, block_size());
	return NULL;
}

static int finish(struct child *c, const struct step *s, struct error *err)
{
	int value;

	if (!has_ended(c, clock_mono_ms(&clock_real) + s->timeout_ms)) {
		kill(c->pid, SIGKILL);
		if (has_ended(c, clock_mono_ms(&clock_real) + KILL_WAIT_MS)) {
			child_free(c);
		} else {
			close(c->pidfd);
			hung_leave(c->pid, s->fn, s->about, c, block_size());
		}
		return error_set(err, ETIMEDOUT, "no answer within %d ms", s->timeout_ms);
	}
	value = c->done ? c->value
			: error_set(err, EIO, "the process that was to do it was killed");
	child_free(c);
	return value;
}

int step_run(const struct step *s, struct error *err)
{
	bool share = can_share();
	struct child *c;
	int r = hung_check(s->fn, s->about, err);

	if (r < 0)
		return r;
	c = child_new(s, share, &r);
	/* an emulated kernel may know threads and processes only, and nothing between them */
	if (!c && share && r == -EINVAL)
		c = child_new(s, false, &r);
	return c ? finish(c, s, err) : error_errno(err, -r, "cannot start a process");
}
