/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "kube/queue.h"

static struct queue_item *take(struct queue *q, int64_t now)
{
	int64_t due;

	return queue_take(q, now, &due);
}

static void once_and_in_order(void **state)
{
	cleanup_with(queue_done) struct queue q;
	struct queue_item *item;

	queue_init(&q, 1);
	assert_true(queue_add(&q, "b", 5));
	assert_false(queue_add(&q, "a", 5));
	assert_false(queue_add(&q, "b", 5));
	assert_null(take(&q, 4));
	item = take(&q, 5);
	assert_string_equal(item->key, "b");
	queue_finish(&q, item, false, 0, 5);
	item = take(&q, 5);
	assert_string_equal(item->key, "a");
	queue_finish(&q, item, false, 0, 5);
	assert_null(take(&q, 100000));
	assert_int_equal(q.items.count, 0);
}

static void never_twice_at_once(void **state)
{
	cleanup_with(queue_done) struct queue q;
	struct queue_item *item;

	queue_init(&q, 1);
	queue_add(&q, "a", 1);
	item = take(&q, 1);
	queue_add(&q, "a", 2);
	assert_null(take(&q, 10));
	queue_finish(&q, item, false, 0, 10);
	item = take(&q, 10);
	assert_non_null(item);
	queue_finish(&q, item, false, 0, 10);
	assert_null(take(&q, 10));
}

static void earlier_wins(void **state)
{
	cleanup_with(queue_done) struct queue q;
	struct queue_item *item;
	int64_t due;

	queue_init(&q, 1);
	queue_add(&q, "a", 1000);
	assert_null(queue_take(&q, 1, &due));
	assert_int_equal(due, 1000);
	assert_true(queue_add(&q, "a", 10));
	assert_false(queue_add(&q, "a", 500));
	item = take(&q, 10);
	queue_finish(&q, item, false, 300, 10); /* again_ms */
	assert_null(queue_take(&q, 309, &due));
	assert_int_equal(due, 310);
	queue_finish(&q, take(&q, 310), false, 0, 310);
	assert_null(queue_take(&q, 99999, &due));
	assert_int_equal(due, -1);
}

static void back_off(void **state)
{
	cleanup_with(queue_done) struct queue q;
	int64_t now = 0, due, last = 0;

	queue_init(&q, 7);
	queue_add(&q, "a", 0);
	for (int i = 1; i <= 16; i++) {
		struct queue_item *item = take(&q, now);
		int64_t most = i <= 13 ? 10 << (i - 1) : 60000;

		assert_non_null(item);
		queue_finish(&q, item, true, 0, now);
		assert_null(queue_take(&q, now, &due));
		assert_in_range(due - now, most - most / 4, most);
		last = due - now;
		now = due;
	}
	assert_true(last >= 45000);
	/* news comes before the back-off is over; success forgets the failures */
	queue_finish(&q, take(&q, now), true, 0, now);
	queue_add(&q, "a", now + 1);
	now++;
	queue_finish(&q, take(&q, now), false, 0, now);
	assert_int_equal(q.items.count, 0);
}

static void many_keys(void **state)
{
	cleanup_with(queue_done) struct queue q;
	struct prng p = { 3 };
	struct queue_item *item;
	int taken = 0;

	queue_init(&q, 1);
	for (int i = 0; i < 5000; i++) {
		char key[32];

		snprintf(key, sizeof(key), "k%d", (int)prng_below(&p, 1000));
		queue_add(&q, key, (int64_t)prng_below(&p, 100));
	}
	for (int64_t now = 0, last = 0; now <= 100; now++) {
		while ((item = take(&q, now))) {
			assert_true(item->due_ms >= last);
			last = item->due_ms;
			queue_finish(&q, item, false, 0, now);
			taken++;
		}
	}
	assert_in_range(taken, 900, 1000);
	assert_int_equal(q.items.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_and_in_order), cmocka_unit_test(never_twice_at_once),
		cmocka_unit_test(earlier_wins),	     cmocka_unit_test(back_off),
		cmocka_unit_test(many_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
