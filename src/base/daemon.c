/* SPDX-License-Identifier: Apache-2.0 */
#include "base/daemon.h"

#include "base/trim.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* Often enough that nobody sees what a burst took, and too rare to be seen itself. */
#define TICK_S 5
/* Below this it is the working set, which would only have to be read again. */
#define RESIDENT_KIB (6 * 1024)
/* What could not be given back is in use: tried again when there is more, or else now and then. */
#define GROWTH_KIB 512
#define SELDOM 12 /* ticks */
#define ARENAS 2
/* Fixed, else the first large block that is freed makes glibc keep all that are smaller. */
#define MMAP_THRESHOLD (64 * 1024)
#define TRIM_THRESHOLD (128 * 1024)

static void ends(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
}

void daemon_begin(void)
{
	sigset_t set;

	ends(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	unsetenv("GLIBC_TUNABLES"); /* ours, not that of the programs that we run */
	mallopt(M_ARENA_MAX, ARENAS);
	mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
	mallopt(M_TRIM_THRESHOLD, TRIM_THRESHOLD);
}

int daemon_wait(void)
{
	const struct timespec tick = { .tv_sec = TICK_S };
	long kept = 0; /* what was left the last time */
	int ticks = 0;
	sigset_t set;
	int sig;

	ends(&set);
	while ((sig = sigtimedwait(&set, NULL, &tick)) < 0) {
		long now = errno == EAGAIN ? memory_resident_kib() : 0;

		ticks++;
		if (now < RESIDENT_KIB || (now < kept + GROWTH_KIB && ticks < SELDOM))
			continue;
		memory_trim(0);
		kept = memory_resident_kib();
		ticks = 0;
	}
	return sig;
}
