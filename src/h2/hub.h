/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/*
 * Where the threads of a client or a server meet: one lock, and a list of things that the I/O
 * thread shall look at, with an eventfd that wakes it. It is counted, so that a stream or call
 * which its user still holds can outlive the client or server it came from.
 */
struct hub_item {
	TAILQ_ENTRY(hub_item) entry;
	bool posted;
};

struct hub {
	pthread_mutex_t lock;
	atomic_uint refs;
	int event_fd;
	/* below: under the lock */
	TAILQ_HEAD(, hub_item) posted;
	bool woken; /* the I/O thread was told and has not looked yet */
	bool wake; /* tell it at the next unlock */
	bool closed; /* there is no I/O thread any more */
	size_t held; /* bytes of requests in memory */
};

/* NULL with errno set where the kernel gives no eventfd. */
struct hub *hub_new(void);
struct hub *hub_ref(struct hub *hub);
void hub_unref(struct hub *hub);

void hub_lock(struct hub *hub);
/* Unlocks, and wakes the I/O thread where hub_post or hub_wake asked for it. */
void hub_unlock(struct hub *hub);

/* Under the lock. True where the item was not in the list yet: the caller then counts a reference
 * for the I/O thread. False also when the hub is closed. */
bool hub_post(struct hub *hub, struct hub_item *item);
void hub_wake(struct hub *hub);

/* For the I/O thread. When the eventfd is readable, hub_quiet comes first; hub_next gives the items
 * one by one, NULL at the end. */
void hub_quiet(struct hub *hub);
struct hub_item *hub_next(struct hub *hub);

/* A condition variable on CLOCK_MONOTONIC; waiting until an absolute time of that clock in ms,
 * INT64_MAX being for ever. False when the time has passed. */
void hub_cond_init(pthread_cond_t *cond);
bool hub_wait(struct hub *hub, pthread_cond_t *cond, int64_t until_ms);

/* A thread with a small stack in which no signal is handled. Returns 0 or -errno. */
int hub_thread(pthread_t *ret, const char *name, void *(*fn)(void *), void *arg);

/* The monotonic clock. */
int64_t hub_now_ms(void);
/* The absolute time timeout_ms from now; below 0: INT64_MAX. */
int64_t hub_deadline(int timeout_ms);

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
