/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "kube/controller.h"
#include "kube/election.h"

#define T0 1794776400000

static json_t *step(const json_t *lease, const char *who, int64_t after_ms, bool *held)
{
	return lease_step(lease, "n", "l", who, 15, T0 + after_ms, held);
}

static void first_takes_it(void **state)
{
	bool held;
	cleanup_json json_t *lease = step(NULL, "a", 0, &held);

	assert_false(held);
	assert_string_equal(object_name(lease), "l");
	assert_string_equal(object_namespace(lease), "n");
	assert_string_equal(jstr(lease, "spec", "holderIdentity"), "a");
	assert_int_equal(jint(lease, "spec", "leaseTransitions"), 1);
	assert_int_equal(jint(lease, "spec", "leaseDurationSeconds"), 15);
}

static void renewed_at_a_third(void **state)
{
	bool held;
	cleanup_json json_t *lease = step(NULL, "a", 0, &held);
	cleanup_json json_t *next = NULL;

	assert_null(step(lease, "a", 4999, &held));
	assert_true(held);
	next = step(lease, "a", 9999, &held);
	assert_non_null(next);
	assert_true(held);
	assert_int_equal(jint(next, "spec", "leaseTransitions"), 1);
	assert_string_not_equal(jstr(next, "spec", "renewTime"), jstr(lease, "spec", "renewTime"));
	json_decref(next);
	next = step(lease, "a", 10001,
		    &held); /* too late to be certain, though nobody has it yet */
	assert_false(held);
	assert_non_null(next);
}

static void another_waits(void **state)
{
	bool held;
	cleanup_json json_t *lease = step(NULL, "a", 0, &held);
	cleanup_json json_t *next = NULL;

	assert_null(step(lease, "b", 15000, &held));
	assert_false(held);
	next = step(lease, "b", 15001, &held);
	assert_false(held); /* not before it is written */
	assert_string_equal(jstr(next, "spec", "holderIdentity"), "b");
	assert_int_equal(jint(next, "spec", "leaseTransitions"), 2);
	assert_null(step(next, "b", 15001, &held));
	assert_true(held);
	assert_null(step(next, "a", 15002, &held));
	assert_false(held);
}

static void given_up(void **state)
{
	bool held;
	cleanup_json json_t *lease = step(NULL, "a", 0, &held);
	cleanup_json json_t *next = NULL;

	jset(lease, json_string(""), "spec", "holderIdentity");
	next = step(lease, "b", 1, &held);
	assert_string_equal(jstr(next, "spec", "holderIdentity"), "b");
	assert_int_equal(jint(next, "spec", "leaseTransitions"), 2);
}

/* Whoever waits looks when the lease runs out, not a round of looking later: 10 s and 3 s make 13 s. */
static void looks_when_it_runs_out(void **state)
{
	char seen[] = "a then";
	struct election e = { .duration_s = 10, .seen = seen, .seen_ms = 1000 };

	assert_int_equal(election_wait_ms(&e, 0, 1000), 3333);
	for (int64_t now = 1000; now <= 11000; now += election_wait_ms(&e, 0, now))
		assert_true(now + election_wait_ms(&e, 0, now) < 11100);
	assert_int_equal(election_wait_ms(&e, 0, 12000), 3333);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_takes_it),
		cmocka_unit_test(renewed_at_a_third),
		cmocka_unit_test(another_waits),
		cmocka_unit_test(given_up),
		cmocka_unit_test(looks_when_it_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
