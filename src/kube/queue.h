/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rand.h"
#include "kube/keyed.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/*
 * A controller's work queue, without threads or clock: the runner puts a lock and a condition
 * around it, the simulation its virtual time. A key is in it at most once; while it is in work it
 * is not given out again, and what was added meanwhile is due when it is done. A key that failed
 * waits 10 ms, 20 ms, … 60 s with jitter, unless something new happens to it before.
 */
struct queue_item {
	char *key; /* first: struct keyed */
	int64_t due_ms;
	int failures;
	bool waiting;    /* in the list */
	bool in_work;
	bool again;      /* added while in work, due at due_ms */
	TAILQ_ENTRY(queue_item) list;
};

TAILQ_HEAD(queue_list, queue_item);

struct queue {
	struct keyed items;
	struct queue_list waiting; /* by due_ms */
	struct prng jitter;
};

#define QUEUE_BACKOFF_MIN_MS 10
#define QUEUE_BACKOFF_MAX_MS 60000

void queue_init(struct queue *q, uint64_t seed);
void queue_done(struct queue *q);
/* An earlier time wins where the key waits already. True if it is now the first that is due. */
bool queue_add(struct queue *q, const char *key, int64_t due_ms);
/* The next key that is due (in work until queue_finish), or NULL; *ret_due_ms: when the next one is, -1 for never. */
struct queue_item *queue_take(struct queue *q, int64_t now_ms, int64_t *ret_due_ms);
/* Ends the work on a key: failed means back-off; else again_ms > 0 puts it back after that time. */
void queue_finish(struct queue *q, struct queue_item *item, bool failed, int again_ms,
		  int64_t now_ms);
/* The time after so many failures in a row (1: the first). */
int64_t queue_backoff_ms(struct prng *jitter, int failures);
