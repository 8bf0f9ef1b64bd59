/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/queue.h"

#include "base/mem.h"

void queue_init(struct queue *q, uint64_t seed)
{
	*q = (struct queue){ .jitter = { seed } };
	TAILQ_INIT(&q->waiting);
}

void queue_done(struct queue *q)
{
	for (size_t i = 0; i < q->items.count; i++) {
		struct queue_item *item = q->items.items[i];

		free(item->key);
		free(item);
	}
	keyed_done(&q->items);
}

static void wait_until(struct queue *q, struct queue_item *item, int64_t due_ms)
{
	struct queue_item *other;

	item->due_ms = due_ms;
	item->waiting = true;
	/* most additions are due now or last: from the back it is found at once */
	TAILQ_FOREACH_REVERSE(other, &q->waiting, queue_list, list)
	{
		if (other->due_ms <= due_ms) {
			TAILQ_INSERT_AFTER(&q->waiting, other, item, list);
			return;
		}
	}
	TAILQ_INSERT_HEAD(&q->waiting, item, list);
}

bool queue_add(struct queue *q, const char *key, int64_t due_ms)
{
	bool found;
	size_t at = keyed_find(&q->items, key, &found);
	struct queue_item *item;

	if (!found) {
		item = xcalloc(1, sizeof(*item));
		item->key = xstrdup(key);
		keyed_insert(&q->items, at, item);
	} else {
		item = q->items.items[at];
	}
	if (item->in_work) {
		if (!item->again || due_ms < item->due_ms)
			item->due_ms = due_ms;
		item->again = true;
		return false;
	}
	if (item->waiting) {
		if (item->due_ms <= due_ms)
			return false;
		TAILQ_REMOVE(&q->waiting, item, list);
	}
	wait_until(q, item, due_ms);
	return TAILQ_FIRST(&q->waiting) == item;
}

struct queue_item *queue_take(struct queue *q, int64_t now_ms, int64_t *ret_due_ms)
{
	struct queue_item *item = TAILQ_FIRST(&q->waiting);

	*ret_due_ms = -1;
	if (!item)
		return NULL;
	if (item->due_ms > now_ms) {
		*ret_due_ms = item->due_ms;
		return NULL;
	}
	TAILQ_REMOVE(&q->waiting, item, list);
	item->waiting = false;
	item->in_work = true;
	return item;
}

int64_t queue_backoff_ms(struct prng *jitter, int failures)
{
	int64_t ms = QUEUE_BACKOFF_MAX_MS;

	if (failures < 1)
		failures = 1;
	if (failures <= 13) /* 10 ms << 12 is 41 s */
		ms = (int64_t)QUEUE_BACKOFF_MIN_MS << (failures - 1);
	return ms - (int64_t)prng_below(jitter, (uint64_t)ms / 4 + 1);
}

void queue_finish(struct queue *q, struct queue_item *item, bool failed, int again_ms,
		  int64_t now_ms)
{
	int64_t due_ms = -1;
	bool found;

	item->in_work = false;
	item->failures = failed ? item->failures + 1 : 0;
	if (failed)
		due_ms = now_ms + queue_backoff_ms(&q->jitter, item->failures);
	else if (again_ms > 0)
		due_ms = now_ms + again_ms;
	if (item->again && (due_ms < 0 || item->due_ms < due_ms))
		due_ms = item->due_ms;
	item->again = false;
	if (due_ms >= 0) {
		wait_until(q, item, due_ms);
		return;
	}
	keyed_remove(&q->items, keyed_find(&q->items, item->key, &found));
	free(item->key);
	free(item);
}
