/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "worker/path.h"
#include "worker/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void known_vectors(void **state)
{
	cleanup_free char *a = volume_path("subvol", "pvc-b219f250-ff12-49d0-8049-21c69641f87a");
	cleanup_free char *b = volume_path("subvol", "pvc-d6e49018-4ddb-40c2-b36c-0e718fee9c26");
	assert_string_equal(a, "subvol/46/fc/pvc-b219f250-ff12-49d0-8049-21c69641f87a");
	assert_string_equal(b, "subvol/20/36/pvc-d6e49018-4ddb-40c2-b36c-0e718fee9c26");
}

static void names(void **state)
{
	char longest[VOLUME_NAME_MAX + 2];
	memset(longest, 'a', sizeof(longest));
	longest[VOLUME_NAME_MAX + 1] = 0;
	assert_true(volume_name_ok("pvc-1"));
	static const char *const bad[] = { "",	".",  "..",  "a/b", "../x", "a.b",
					   "A", "-a", "a b", "a\n", "ä" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(volume_name_ok(bad[i]));
	assert_false(volume_name_ok(longest));
	longest[VOLUME_NAME_MAX] = 0;
	assert_true(volume_name_ok(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(known_vectors),
					    cmocka_unit_test(names) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
