/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "worker/sighting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define DAY 86400

static struct sighting seen(int64_t used, const char *boot, int64_t at)
{
	struct sighting s = { .used = { .tv_sec = used, .tv_nsec = 7 }, .at = at };

	strcpy(s.boot, boot);
	return s;
}

static void test_text(void **state)
{
	struct sighting s = seen(1700000000, "7c3e-boot", 4711), back;
	char text[SIGHTING_MAX];

	s.unused = 99;
	sighting_text(&s, text);
	assert_true(sighting_parse(text, &back));
	assert_memory_equal(&s, &back, sizeof(s));
	assert_false(sighting_parse("", &back));
	assert_false(sighting_parse("1 2 boot", &back));
	assert_false(sighting_parse("1 2 boot 3 -4", &back));
}

/* A user whose clock is years behind, and one whose clock is years ahead: the first look says nothing. */
static void test_clocks_are_not_compared(void **state)
{
	struct sighting now;

	for (int64_t used = 0; used < 4000000000; used += 999999999) {
		struct sighting look = seen(used, "a", 100 * DAY);

		assert_true(sighting_next(NULL, &look, &now));
		assert_int_equal(now.unused, 0);
	}
}

static void test_counts_what_one_machine_measured(void **state)
{
	struct sighting mark = seen(5, "a", 1000), look, now;

	look = seen(5, "a", 1000 + 8 * DAY);
	assert_true(sighting_next(&mark, &look, &now));
	assert_int_equal(now.unused, 8 * DAY);
	mark = now;
	look = seen(5, "a", mark.at + DAY);
	assert_true(sighting_next(&mark, &look, &now));
	assert_int_equal(now.unused, 9 * DAY);
}

static void test_use_begins_anew(void **state)
{
	struct sighting mark = seen(5, "a", 1000), look, now;

	mark.unused = 6 * DAY;
	/* also where the new time is an earlier one: its user's clock was set back */
	for (int64_t used = 4; used <= 6; used += 2) {
		look = seen(used, "a", 1000 + 3 * DAY);
		assert_true(sighting_next(&mark, &look, &now));
		assert_int_equal(now.unused, 0);
		assert_int_equal(now.used.tv_sec, used);
		/* and at once, though it is not written down yet */
		look.at = 1000 + 60;
		assert_false(sighting_next(&mark, &look, &now));
		assert_int_equal(now.unused, 0);
	}
}

/* Another machine's count, or that of the same one before its restart, says nothing about the time in between. */
static void test_other_machines(void **state)
{
	struct sighting mark = seen(5, "a", 1000), look, now;

	mark.unused = 3 * DAY;
	look = seen(5, "b", 900 * DAY);
	assert_true(sighting_next(&mark, &look, &now));
	assert_int_equal(now.unused, 3 * DAY);
	look = seen(5, "a", 10);
	assert_true(sighting_next(&mark, &look, &now));
	assert_int_equal(now.unused, 3 * DAY);
}

/*
 * Nobody has looked for a long time, since the pool was down or the machine slept: its user comes back with us, and has
 * time to say so.
 */
static void test_long_between_looks(void **state)
{
	struct sighting mark = seen(5, "a", 1000), look = seen(5, "a", 1000 + 30 * DAY), now, again;

	assert_true(sighting_next(&mark, &look, &now));
	assert_false(sighting_is_left(&mark, &now, 7 * DAY));
	assert_false(sighting_is_left(NULL, &now, 7 * DAY));
	look.at += 60;
	assert_false(sighting_next(&now, &look, &again));
	assert_false(sighting_is_left(&now, &again, 7 * DAY));
	look.at += SIGHTING_STEP_S;
	assert_true(sighting_next(&now, &look, &again));
	assert_true(sighting_is_left(&now, &again, 7 * DAY));
	look.used.tv_sec++;
	assert_true(sighting_next(&now, &look, &again));
	assert_false(sighting_is_left(&now, &again, 7 * DAY));
	/* another machine has not measured that step */
	look = seen(5, "b", look.at);
	assert_true(sighting_next(&now, &look, &again));
	assert_false(sighting_is_left(&now, &again, 7 * DAY));
}

static void test_seldom_written(void **state)
{
	struct sighting mark = seen(5, "a", 1000), look = seen(5, "a", 1000 + SIGHTING_STEP_S - 1),
			now;

	mark.unused = 42;
	assert_false(sighting_next(&mark, &look, &now));
	assert_memory_equal(&now, &mark, sizeof(now));
}

static void test_this_machine(void **state)
{
	struct sighting a, b;

	sighting_now(&a);
	sighting_now(&b);
	assert_true(a.boot[0] && b.at >= a.at);
	assert_string_equal(a.boot, b.boot);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_clocks_are_not_compared),
		cmocka_unit_test(test_counts_what_one_machine_measured),
		cmocka_unit_test(test_use_begins_anew),
		cmocka_unit_test(test_other_machines),
		cmocka_unit_test(test_long_between_looks),
		cmocka_unit_test(test_seldom_written),
		cmocka_unit_test(test_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
