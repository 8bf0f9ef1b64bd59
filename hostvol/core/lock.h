/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "handle.h"

/*
 * Locks shared by all processes of the host: flock on RUN/locks/KIND-ID. Always taken in the order
 * record, target. The file goes away with its lock.
 */
struct lock {
	int fd; /* -1: not held */
	char *path;
};
#define LOCK_INIT ((struct lock){ .fd = -1 })

/*
 * Waits until the call's deadline: -ETIMEDOUT. Of the threads of a process not more than
 * LOCK_WAITERS_MAX do so for one lock; others are told -EAGAIN when none of them has ended with it for
 * LOCK_PATIENCE_MS.
 */
#define LOCK_WAITERS_MAX 16
#define LOCK_PATIENCE_MS 5000
int lock_take(const struct call *c, const char *kind, const char *id, struct lock *ret,
	      struct error *err);
void lock_release(struct lock *l);
#define cleanup_lock __attribute__((cleanup(lock_release)))
