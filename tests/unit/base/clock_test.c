/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/rand.h"
#include "unit.h"

static void texts(void **state)
{
	char buf[TIME_TEXT_MAX];

	assert_string_equal(time_text(0, buf), "1970-01-01T00:00:00Z");
	assert_string_equal(time_text(INT64_C(1794775926123), buf), "2026-11-15T20:52:06Z");
	assert_string_equal(time_text_micro(INT64_C(1794775926123), buf),
			    "2026-11-15T20:52:06.123000Z");
	assert_string_equal(time_text_micro(-1, buf), "1969-12-31T23:59:59.999000Z");
	time_text(INT64_MAX, buf);
	time_text_micro(INT64_MIN, buf);
}

static void parses(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2026-11-15T20:52:06Z", INT64_C(1794775926000) },
		{ "2026-11-15T20:52:06.123456789Z", INT64_C(1794775926123) },
		{ "2026-11-15t20:52:06.1z", INT64_C(1794775926100) },
		{ "2026-11-15 22:22:06+01:30", INT64_C(1794775926000) },
		{ "2026-11-15T19:52:06-01:00", INT64_C(1794775926000) },
		{ "2024-02-29T00:00:00Z", INT64_C(1709164800000) },
		{ "1969-12-31T23:59:59.999Z", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t ms = 77;

		if (time_parse(cases[i].text, &ms) != 0 || ms != cases[i].ms)
			fail_msg("%s gave %lld", cases[i].text, (long long)ms);
	}
}

static void refuses(void **state)
{
	static const char *const bad[] = { "",
					   "now",
					   "2026-11-15",
					   "2026-11-15T20:52:06",
					   "2026-13-15T20:52:06Z",
					   "2026-00-15T20:52:06Z",
					   "2026-02-29T20:52:06Z",
					   "2100-02-29T00:00:00Z",
					   "2026-11-31T20:52:06Z",
					   "2026-11-15T24:52:06Z",
					   "2026-11-15T20:60:06Z",
					   "2026-11-15T20:52:61Z",
					   "2026-11-15T20:52:06.Z",
					   "2026-11-15T20:52:06Zx",
					   "2026-11-15T20:52:06+0100",
					   "2026-11-15T20:52:06+24:00",
					   "2026-11-15X20:52:06Z",
					   "26-11-15T20:52:06Z" };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int64_t ms = 77;

		if (time_parse(bad[i], &ms) != -EINVAL || ms != 77)
			fail_msg("\"%s\" was accepted", bad[i]);
	}
}

static void ages_as_kubectl(void **state)
{
	static const struct {
		int64_t s;
		const char *text;
	} cases[] = {
		{ -5, "0s" },	    { 0, "0s" },	  { 119, "119s" },     { 120, "2m" },
		{ 192, "3m12s" },   { 599, "9m59s" },	  { 600, "10m" },      { 10799, "179m" },
		{ 10800, "3h" },    { 11000, "3h3m" },	  { 28800, "8h" },     { 172799, "47h" },
		{ 172800, "2d" },   { 180000, "2d2h" },	  { 691200, "8d" },    { 1036800, "12d" },
		{ 63072000, "2y" }, { 63158400, "2y1d" }, { 252288000, "8y" },
	};
	char buf[TIME_TEXT_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(age_text(cases[i].s * 1000, buf), cases[i].text);
	age_text(INT64_MAX, buf);
}

static int64_t fixed(void *userdata)
{
	return *(int64_t *)userdata;
}

static void clocks(void **state)
{
	int64_t now = 42, before = clock_mono_ms(&clock_real);
	struct clock c = { .wall_ms = fixed, .mono_ms = fixed, .userdata = &now };

	assert_int_equal(clock_wall_ms(&c), 42);
	now = 43;
	assert_int_equal(clock_mono_ms(&c), 43);
	assert_true(clock_mono_ms(&clock_real) >= before);
	assert_true(clock_wall_ms(&clock_real) > INT64_C(1700000000000));
}

static void random_numbers(void **state)
{
	char a[UUID_TEXT_MAX], b[UUID_TEXT_MAX];
	struct prng p = { 0 }, q = { 0 };
	int seen[10] = { 0 };

	uuid_text(a);
	uuid_text(b);
	assert_int_equal(strlen(a), 36);
	assert_int_equal(a[14], '4');
	assert_non_null(strchr("89ab", a[19]));
	assert_string_not_equal(a, b);
	/* splitmix64's published first output for the seed 0 */
	assert_true(prng_next(&p) == UINT64_C(0xe220a8397b1dcdaf));
	prng_next(&q);
	for (int i = 0; i < 10000; i++) {
		uint64_t n = prng_below(&p, 10);

		assert_true(n == prng_below(&q, 10));
		assert_true(n < 10);
		seen[n]++;
	}
	for (int i = 0; i < 10; i++)
		assert_in_range(seen[i], 850, 1150);
	assert_true(prng_below(&p, 1) == 0);
	assert_true(prng_below(&p, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),   cmocka_unit_test(parses),
		cmocka_unit_test(refuses), cmocka_unit_test(ages_as_kubectl),
		cmocka_unit_test(clocks),  cmocka_unit_test(random_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
