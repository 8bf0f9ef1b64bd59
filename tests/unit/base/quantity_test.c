/* SPDX-License-Identifier: Apache-2.0 */
#include "base/quantity.h"
#include "unit.h"

static void parses_as_kubernetes(void **state)
{
	static const struct {
		const char *text;
		int64_t bytes;
	} cases[] = {
		{ "0", 0 },
		{ "1", 1 },
		{ "+5", 5 },
		{ "1k", 1000 },
		{ "1Ki", 1024 },
		{ "10Gi", INT64_C(10737418240) },
		{ "1.5G", 1500000000 },
		{ "1.5Gi", 1610612736 },
		{ ".5Ki", 512 },
		{ "5.", 5 },
		{ "0.1Ki", 103 }, /* 102.4, rounded up */
		{ "100m", 1 },
		{ "1000m", 1 },
		{ "1001m", 2 },
		{ "1n", 1 },
		{ "5u", 1 },
		{ "0m", 0 },
		{ "1e3", 1000 },
		{ "1E3", 1000 },
		{ "1.25e+2", 125 },
		{ "12e-1", 2 },
		{ "1E", INT64_C(1000000000000000000) },
		{ "7Ei", INT64_C(8070450532247928832) },
		{ "9223372036854775807", INT64_MAX },
		{ "9223372036854775806.5", INT64_MAX },
		{ "000000000000000000000000000000000000000000000000000000000000000000000000012",
		  12 },
		{ "0.000000000000000000000000000001", 1 },
		{ "1.0000000000000000000000000", 1 },
		{ "0e99999999999", 0 },
		{ "1e-99999999999", 1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		int64_t bytes = -1;

		if (quantity_parse(cases[i].text, &bytes, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.message);
		if (bytes != cases[i].bytes)
			fail_msg("%s gave %lld", cases[i].text, (long long)bytes);
	}
}

static void refuses(void **state)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{ "", EINVAL },
		{ "x", EINVAL },
		{ "Gi", EINVAL },
		{ "1 Gi", EINVAL },
		{ "1gi", EINVAL },
		{ "1GB", EINVAL },
		{ "1ki", EINVAL },
		{ "1K", EINVAL },
		{ "-1", EINVAL },
		{ "-1Gi", EINVAL },
		{ ".", EINVAL },
		{ "1..2", EINVAL },
		{ "1e", EINVAL },
		{ "1e+", EINVAL },
		{ "1e5x", EINVAL },
		{ "0x10", EINVAL },
		{ "1Gi ", EINVAL },
		{ "++1", EINVAL },
		{ "1.2.3", EINVAL },
		{ "8Ei", ERANGE },
		{ "10E", ERANGE },
		{ "1e19", ERANGE },
		{ "9223372036854775808", ERANGE },
		{ "1e999999999999999", ERANGE },
		{ "9223372036854775807Ki", ERANGE },
		{ "99999999999999999999", ERANGE },
		{ "9223372036854775807.1", ERANGE },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct error err = ERROR_INIT;
		int64_t bytes = 77;

		if (quantity_parse(cases[i].text, &bytes, &err) != -cases[i].code)
			fail_msg("\"%s\" was not refused with %d", cases[i].text, cases[i].code);
		assert_int_equal(bytes, 77);
		assert_int_equal(err.code, cases[i].code);
		assert_non_null(strstr(err.message, cases[i].text));
	}
}

static void texts(void **state)
{
	char buf[QUANTITY_TEXT_MAX];

	assert_string_equal(quantity_text(0, buf), "0");
	assert_string_equal(quantity_text(1000, buf), "1000");
	assert_string_equal(quantity_text(1024, buf), "1Ki");
	assert_string_equal(quantity_text(INT64_C(10737418240), buf), "10Gi");
	assert_string_equal(quantity_text(INT64_C(10737418241), buf), "10737418241");
	assert_string_equal(quantity_text(INT64_C(7) << 60, buf), "7Ei");
	assert_string_equal(quantity_text(INT64_MAX, buf), "9223372036854775807");
	assert_string_equal(quantity_text(INT64_MIN, buf), "-8Ei");
	assert_string_equal(quantity_human(0, buf), "0");
	assert_string_equal(quantity_human(999, buf), "999");
	assert_string_equal(quantity_human(1023, buf), "1023");
	assert_string_equal(quantity_human(1024, buf), "1.0Ki");
	assert_string_equal(quantity_human(INT64_C(10522669875), buf), "9.8Gi");
	assert_string_equal(quantity_human(INT64_C(10737418239), buf), "10Gi");
	assert_string_equal(quantity_human(INT64_C(1073741823), buf), "1.0Gi");
	assert_string_equal(quantity_human(INT64_MAX, buf), "8.0Ei");
	assert_string_equal(quantity_human(-2048, buf), "-2.0Ki");
}

static void text_is_exact(void **state)
{
	char buf[QUANTITY_TEXT_MAX];
	int64_t back;

	for (int64_t n = 1; n > 0 && n < INT64_MAX / 5; n = n * 5 + 3) {
		assert_int_equal(quantity_parse(quantity_text(n, buf), &back, NULL), 0);
		assert_int_equal(back, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_as_kubernetes),
		cmocka_unit_test(refuses),
		cmocka_unit_test(texts),
		cmocka_unit_test(text_is_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
