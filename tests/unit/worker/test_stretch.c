/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/rand.h"
#include "worker/stretch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MAX (5 * STRETCH_BLOCK + 1000)

/* What is written gives the same bytes on a file of zeros, and no whole block of zeros is in it. */
static void check(const char *data, size_t len, char *copy)
{
	memset(copy, 0, MAX);
	size_t before = 0;
	for (size_t at = 0, end; stretch_next(data, len, &at, &end); at = end) {
		assert_true(at >= before && at < end && end <= len);
		assert_int_equal(at % STRETCH_BLOCK, 0);
		assert_true(end == len || end % STRETCH_BLOCK == 0);
		assert_true(before == 0 || at > before); /* neighbours are one */
		for (size_t b = at; b < end; b += STRETCH_BLOCK) {
			size_t n = end - b < STRETCH_BLOCK ? end - b : STRETCH_BLOCK;
			size_t zeros = 0;
			while (zeros < n && !data[b + zeros])
				zeros++;
			assert_true(zeros < n);
		}
		memcpy(copy + at, data + at, end - at);
		before = end;
	}
	assert_memory_equal(copy, data, len);
}

static void zeros_are_left_out(void **state)
{
	cleanup_free char *data = xcalloc(1, MAX), *copy = xcalloc(1, MAX);
	size_t at = 0, end;
	assert_false(stretch_next(data, 0, &at, &end));
	assert_false(stretch_next(data, MAX, &at, &end));
	data[MAX - 1] = 1;
	assert_true(stretch_next(data, MAX, &at, &end));
	assert_int_equal(at, 5 * STRETCH_BLOCK);
	assert_int_equal(end, MAX);
	check(data, MAX, copy);
	data[STRETCH_BLOCK] = data[3 * STRETCH_BLOCK - 1] = 1;
	at = 0;
	assert_true(stretch_next(data, MAX, &at, &end));
	assert_int_equal(at, STRETCH_BLOCK);
	assert_int_equal(end, 3 * STRETCH_BLOCK);
	check(data, MAX, copy);
	data[0] = 1;
	check(data, 1, copy);
}

static void any_bytes(void **state)
{
	struct prng random = { 20261116 };
	cleanup_free char *data = xcalloc(1, MAX), *copy = xcalloc(1, MAX);
	for (int i = 0; i < 300; i++) {
		memset(data, 0, MAX);
		for (uint64_t n = prng_below(&random, 6); n; n--)
			data[prng_below(&random, MAX)] = (char)(1 + prng_below(&random, 255));
		check(data, prng_below(&random, MAX + 1), copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(zeros_are_left_out),
					    cmocka_unit_test(any_bytes) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
