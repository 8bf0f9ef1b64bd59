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
#define RESIDENT_KIB (5 * 1024)
#define GROWTH_KIB 256
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
	long kept = RESIDENT_KIB - GROWTH_KIB;
	sigset_t set;
	int sig;

	ends(&set);
	while ((sig = sigtimedwait(&set, NULL, &tick)) < 0) {
		/* what could not be given back is needed: tried again only when there is more */
		if (errno != EAGAIN || memory_resident_kib() < kept + GROWTH_KIB)
			continue;
		memory_trim(0);
		kept = memory_resident_kib();
		if (kept < RESIDENT_KIB - GROWTH_KIB)
			kept = RESIDENT_KIB - GROWTH_KIB;
	}
	return sig;
}
