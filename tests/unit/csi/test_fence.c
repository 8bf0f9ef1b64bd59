/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of fence.h on a model of a target's persistent reservations (SPC-4, registrants only). */
#include "csi/fence.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NODES 3
#define PATHS 2

struct nexus {
	uint64_t key; /* 0: not registered */
	bool dead; /* what is registered stays, and nothing comes through */
};

static struct target {
	struct nexus nexus[NODES][PATHS];
	struct nexus *holder;
	uint32_t generation;
	int calls, fail_at; /* the call that fails; 0: none */
	int interrupt_at; /* before that call another node does something; 0: none */
	void (*interrupt)(void);
} target;

struct node {
	struct fence_device device;
	size_t number;
};

static struct nexus *nexus_of(struct fence_device *d, size_t path)
{
	return &target.nexus[((struct node *)d)->number][path];
}

/* The first path that answers. */
static struct nexus *nexus_any(struct fence_device *d)
{
	for (size_t i = 0; i < PATHS; i++)
		if (!nexus_of(d, i)->dead)
			return nexus_of(d, i);
	return NULL;
}

static int begin(void)
{
	void (*interrupt)(void) = target.interrupt;

	target.calls++;
	if (interrupt && target.calls == target.interrupt_at) {
		target.interrupt = NULL;
		interrupt();
	}
	return target.fail_at && target.calls == target.fail_at ? -EIO : 0;
}

static int model_look(struct fence_device *d, struct fence_view *ret)
{
	struct nexus *all = &target.nexus[0][0];
	int r = begin();

	if (r < 0 || !nexus_any(d))
		return r < 0 ? r : -ENXIO;
	*ret = (struct fence_view){ .generation = target.generation,
				    .holder = target.holder ? target.holder->key : 0 };
	for (size_t i = 0; i < (size_t)NODES * PATHS; i++)
		if (all[i].key)
			ret->keys[ret->count++] = all[i].key;
	return 0;
}

static int model_enroll(struct fence_device *d, size_t path, uint64_t old, uint64_t key)
{
	struct nexus *n = nexus_of(d, path);
	int r = begin();

	if (r < 0 || n->dead)
		return r < 0 ? r : -ENXIO;
	if (old && old != n->key)
		return -EBUSY;
	n->key = key;
	if (!key && target.holder == n)
		target.holder = NULL;
	target.generation++;
	return 0;
}

static int model_reserve(struct fence_device *d, uint64_t key)
{
	struct nexus *n = nexus_any(d);
	int r = begin();

	if (r < 0 || !n)
		return r < 0 ? r : -ENXIO;
	if (n->key != key || (target.holder && target.holder != n))
		return -EBUSY;
	target.holder = n;
	return 0;
}

static int model_preempt(struct fence_device *d, uint64_t key, uint64_t victim)
{
	struct nexus *n = nexus_any(d), *all = &target.nexus[0][0];
	bool found = false;
	int r = begin();

	if (r < 0 || !n)
		return r < 0 ? r : -ENXIO;
	if (n->key != key)
		return -EBUSY;
	for (size_t i = 0; i < (size_t)NODES * PATHS; i++) {
		if (all[i].key != victim)
			continue;
		found = true;
		if (target.holder == &all[i])
			target.holder = n;
		if (&all[i] != n)
			all[i].key = 0;
	}
	target.generation++;
	return found ? 0 : -EBUSY;
}

static int model_clear(struct fence_device *d, uint64_t key)
{
	struct nexus *n = nexus_any(d);
	int r = begin();

	if (r < 0 || !n)
		return r < 0 ? r : -ENXIO;
	if (n->key != key)
		return -EBUSY;
	memset(target.nexus, 0, sizeof(target.nexus));
	target.holder = NULL;
	target.generation++;
	return 0;
}

static const struct fence_ops model = { model_look, model_enroll, model_reserve, model_preempt,
					model_clear };
static struct node nodes[NODES];
static uint64_t keys[NODES];

static int setup(void **state)
{
	char name[8];

	target = (struct target){ 0 };
	for (size_t i = 0; i < NODES; i++) {
		nodes[i] =
			(struct node){ .device = { .ops = &model, .paths = PATHS }, .number = i };
		snprintf(name, sizeof(name), "node-%zu", i);
		keys[i] = fence_key(name, "machine");
	}
	return 0;
}

static int take(size_t node, uint64_t lapsed)
{
	return fence_take(&nodes[node].device, keys[node], lapsed, NULL);
}

static int renew(size_t node)
{
	return fence_renew(&nodes[node].device, keys[node], NULL);
}

static int drop(size_t node)
{
	return fence_drop(&nodes[node].device, keys[node], NULL);
}

static uint64_t holder(void)
{
	return target.holder ? target.holder->key : 0;
}

/* The target's own rule: without a reservation everybody writes, with one who is registered. */
static bool can_write(size_t node)
{
	return !target.holder || target.nexus[node][0].key;
}

static bool writes_alone(size_t node)
{
	for (size_t i = 0; i < NODES; i++)
		if (can_write(i) != (i == node))
			return false;
	return true;
}

static size_t registrations(void)
{
	size_t count = 0;

	for (size_t i = 0; i < NODES; i++)
		for (size_t p = 0; p < PATHS; p++)
			count += target.nexus[i][p].key != 0;
	return count;
}

static void test_keys(void **state)
{
	uint64_t key = fence_key("a", "");

	assert_int_equal(key >> 48, 0x514d);
	assert_int_equal(key & FENCE_MARKS, 0);
	assert_true(key == fence_key("a", ""));
	assert_true(key != fence_key("b", "") && key != fence_key("a", "m"));
	assert_true(fence_is_rival(fence_key("b", ""), key));
	assert_false(fence_is_rival(key, key) || fence_is_rival(key | FENCE_TAKEN, key));
	assert_false(fence_is_rival(fence_key("b", "") | FENCE_LEFT, key));
	assert_false(fence_is_rival(0, key));
	assert_false(fence_is_rival(1, key));
}

static void test_one_after_the_other(void **state)
{
	uint32_t before;

	assert_int_equal(take(0, 0), 0);
	assert_true(writes_alone(0));
	assert_int_equal(registrations(), PATHS);
	before = target.generation;
	assert_int_equal(renew(0), 0);
	assert_true(target.generation != before);
	assert_int_equal(take(1, 0), -EBUSY);
	assert_int_equal(registrations(), PATHS);
	assert_int_equal(drop(0), 0);
	assert_int_equal(registrations(), 0);
	assert_int_equal(renew(0), 1);
	assert_int_equal(take(1, 0), 0);
	assert_true(writes_alone(1));
	/* who has nothing takes nothing away */
	assert_int_equal(drop(0), 1);
	assert_true(writes_alone(1));
}

static void test_put_out(void **state)
{
	assert_int_equal(take(0, 0), 0);
	assert_int_equal(take(1, keys[2]), -EBUSY);
	assert_int_equal(take(1, keys[0]), 0);
	assert_true(writes_alone(1));
	assert_int_equal(renew(0), -ESTALE);
	assert_true(writes_alone(1));
	assert_int_equal(renew(1), 0);
	/* it is never free for the one that was put out, who may have something to write still */
	assert_int_equal(drop(1), 0);
	assert_int_equal(renew(1), 1);
	assert_false(can_write(0));
	assert_int_equal(drop(0), 1);
	assert_false(can_write(0));
	/* but for whom it is staged next, at once */
	assert_int_equal(take(2, 0), 0);
	assert_true(writes_alone(2));
	assert_int_equal(take(1, 0), -EBUSY);
	assert_int_equal(drop(2), 0);
	assert_false(can_write(0));
	assert_int_equal(take(2, 0), 0);
	assert_true(writes_alone(2));
	assert_int_equal(take(0, holder()), 0);
	assert_true(writes_alone(0));
}

/* After a reboot: the sessions are others, the key is the same. */
static void test_own_of_an_earlier_life(void **state)
{
	struct nexus *earlier = &target.nexus[2][1];

	earlier->key = keys[0];
	target.holder = earlier;
	assert_int_equal(take(0, 0), 0);
	assert_int_equal(holder(), keys[0]);
	assert_ptr_equal(target.holder, &target.nexus[0][0]);
	assert_int_equal(registrations(), PATHS);
	assert_true(writes_alone(0));
	/* on the same sessions, too */
	assert_int_equal(take(0, 0), 0);
	assert_int_equal(registrations(), PATHS);
	assert_int_equal(drop(0), 0);
	assert_int_equal(registrations(), 0);
}

static void second_puts_out(void)
{
	assert_int_equal(take(1, keys[0]), 0);
}

/* A path that came after the device was taken is not registered; that does not mean to be put out. */
static void test_late_path(void **state)
{
	uint32_t before;

	assert_int_equal(take(0, 0), 0);
	target.holder = &target.nexus[0][1];
	target.nexus[0][0].key = 0;
	before = target.generation;
	assert_int_equal(renew(0), 0);
	assert_true(target.generation != before);
	assert_int_equal(holder(), keys[0]);
	/* and nothing is registered anew by that */
	assert_int_equal(target.nexus[0][0].key, 0);
	/* put out between the look and the renewal: no path is left */
	target.nexus[0][1].key = keys[0];
	target.calls = 0;
	target.interrupt_at = 2;
	target.interrupt = second_puts_out;
	assert_int_equal(renew(0), -ESTALE);
}

static void test_others(void **state)
{
	target.nexus[2][0].key = 0xabcdef;
	assert_int_equal(take(0, 0), -EBUSY);
	assert_int_equal(take(0, 0xabcdef), -EBUSY);
	assert_int_equal(registrations(), 1);
	/* one of ours that died between registering and reserving is in nobody's way */
	target.nexus[2][0].key = keys[2];
	assert_int_equal(take(0, 0), 0);
	assert_true(writes_alone(0));
}

static void second_takes(void)
{
	(void)take(1, keys[2]);
}

/* Whenever another node begins, at most one of both believes that it has the device, and it is right. */
static void test_race(void **state)
{
	for (int stale = 0; stale < 2; stale++)
		for (int at = 1; at < 16; at++) {
			int r;

			(void)setup(NULL);
			if (stale)
				assert_int_equal(take(2, 0), 0);
			target.calls = 0;
			target.interrupt_at = at;
			target.interrupt = second_takes;
			r = take(0, keys[2]);
			if (r == 0)
				assert_true(writes_alone(0));
			else
				assert_true(r == -EBUSY && writes_alone(1));
			assert_int_equal(registrations(), PATHS);
		}
}

/* Whatever fails: it is taken whole or not at all, and the next attempt takes it. */
static void test_faults(void **state)
{
	for (int stale = 0; stale < 2; stale++)
		for (int at = 1; at < 12; at++) {
			int r;

			(void)setup(NULL);
			if (stale)
				assert_int_equal(take(2, 0), 0);
			target.calls = 0;
			target.fail_at = at;
			r = take(0, keys[2]);
			if (r == 0)
				assert_true(writes_alone(0));
			target.fail_at = 0;
			if (stale && holder() && !fence_is_rival(keys[2], holder()))
				assert_int_not_equal(r, 0);
			assert_int_equal(take(0, keys[2]), 0);
			assert_true(writes_alone(0));
			/* who was put out stays out */
			assert_int_equal(drop(0), 0);
			assert_int_equal(can_write(2), !stale);
		}
}

/* A path that died costs neither the reservation nor its end, and leaves nothing by which it could write. */
static void test_dead_path(void **state)
{
	for (size_t dead = 0; dead < PATHS; dead++)
		for (int stale = 0; stale < 2; stale++) {
			struct nexus *n = &target.nexus[0][dead];

			(void)setup(NULL);
			if (stale)
				assert_int_equal(take(2, 0), 0);
			assert_int_equal(take(0, keys[2]), 0);
			n->dead = true;
			assert_int_equal(renew(0), 0);
			assert_true(fence_is_rival(holder(), keys[1]));
			assert_int_equal(drop(0), 0);
			assert_int_equal(n->key, 0);
			assert_int_equal(registrations(), stale);
			assert_int_equal(can_write(2), !stale);
			/* nobody has to wait for the path that does not say that it has ended */
			assert_false(fence_is_rival(holder(), keys[1]));
			assert_int_equal(take(1, 0), 0);
			assert_true(writes_alone(1));
			n->dead = false;
			assert_true(writes_alone(1));
		}
}

/* Without a path it stays, whole. */
static void test_dead_paths(void **state)
{
	assert_int_equal(take(0, 0), 0);
	for (size_t i = 0; i < PATHS; i++)
		target.nexus[0][i].dead = true;
	assert_int_equal(drop(0), -ENXIO);
	assert_int_equal(renew(0), -ENXIO);
	assert_int_equal(registrations(), PATHS);
	assert_int_equal(take(1, 0), -EBUSY);
	assert_int_equal(take(1, keys[0]), 0);
	assert_true(writes_alone(1));
}

/* One that joined the map later has no key: renewal and mark come by the other one. */
static void test_late_path_leaves(void **state)
{
	assert_int_equal(take(2, 0), 0);
	assert_int_equal(take(0, keys[2]), 0);
	target.nexus[0][0].key = 0;
	target.holder = &target.nexus[0][1];
	assert_int_equal(renew(0), 0);
	assert_int_equal(drop(0), 0);
	assert_int_equal(registrations(), 1);
	assert_false(fence_is_rival(holder(), keys[1]));
	assert_false(can_write(2));
}

static int no_look(struct fence_device *d, struct fence_view *ret)
{
	return -EOPNOTSUPP;
}

static void test_without(void **state)
{
	static const struct fence_ops none = { .look = no_look };
	struct fence_device d = { .ops = &none, .paths = 1 };

	assert_int_equal(fence_take(&d, keys[0], 0, NULL), -EOPNOTSUPP);
	assert_int_equal(fence_renew(&d, keys[0], NULL), -EOPNOTSUPP);
	assert_int_equal(fence_drop(&d, keys[0], NULL), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_keys, setup),
		cmocka_unit_test_setup(test_one_after_the_other, setup),
		cmocka_unit_test_setup(test_put_out, setup),
		cmocka_unit_test_setup(test_own_of_an_earlier_life, setup),
		cmocka_unit_test_setup(test_late_path, setup),
		cmocka_unit_test_setup(test_others, setup),
		cmocka_unit_test_setup(test_race, setup),
		cmocka_unit_test_setup(test_faults, setup),
		cmocka_unit_test_setup(test_dead_path, setup),
		cmocka_unit_test_setup(test_dead_paths, setup),
		cmocka_unit_test_setup(test_late_path_leaves, setup),
		cmocka_unit_test_setup(test_without, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
