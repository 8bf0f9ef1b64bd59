/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <pthread.h>
#include <stdint.h>

/* A thread with a stack of 256 KiB and all signals blocked: they are the main thread's. */
int thread_start(pthread_t *ret, void *(*fn)(void *arg), void *arg, struct error *err);
/* A condition whose timed waits count on the monotonic clock. */
void cond_init(pthread_cond_t *cond);
/* Waits until signalled or until that monotonic time (ms; < 0: for ever). */
void cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t mono_ms);
