/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/thread.h"

#include <signal.h>
#include <time.h>

#define STACK_SIZE (256 * 1024)

int thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg, struct error *err)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int rc;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(ret, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return rc ? error_errno(err, rc, "cannot start a thread") : 0;
}

void cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t mono_ms)
{
	struct timespec until = { .tv_sec = mono_ms / 1000, .tv_nsec = mono_ms % 1000 * 1000000 };

	if (mono_ms < 0)
		pthread_cond_wait(cond, lock);
	else
		pthread_cond_timedwait(cond, lock, &until);
}
