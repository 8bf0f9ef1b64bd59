/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "unit.h"

static void sets_code_and_message(void **state)
{
	struct error err = ERROR_INIT;

	assert_int_equal(error_set(&err, ENOENT, "no %s number %d", "disk", 3), -ENOENT);
	assert_int_equal(err.code, ENOENT);
	assert_string_equal(err.message, "no disk number 3");
	assert_int_equal(error_errno(&err, EACCES, "cannot open %s", "/x"), -EACCES);
	assert_string_equal(err.message, "cannot open /x: Permission denied");
}

static void works_without_an_error(void **state)
{
	assert_int_equal(error_set(NULL, EIO, "x"), -EIO);
	assert_int_equal(error_errno(NULL, EIO, "x"), -EIO);
	assert_int_equal(error_prefix(NULL, "x"), -EIO);
	assert_string_equal(error_text(NULL, -ENOENT), "No such file or directory");
	assert_string_equal(error_text(NULL, -99999), "unknown error");
}

static void prefix_keeps_what_was_said(void **state)
{
	struct error err = ERROR_INIT;

	error_set(&err, EBUSY, "device in use");
	assert_int_equal(error_prefix(&err, "node %s", "n1"), -EBUSY);
	assert_string_equal(err.message, "node n1: device in use");
	err = ERROR_INIT;
	assert_int_equal(error_prefix(&err, "pool"), -EIO);
	assert_string_equal(err.message, "pool: Input/output error");
}

static void cuts_what_is_too_long(void **state)
{
	struct error err = ERROR_INIT;
	char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&err, EIO, "%s", text);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
	error_errno(&err, EIO, "%s", text);
	error_prefix(&err, "%s", text);
	assert_int_equal(strlen(err.message), sizeof(err.message) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sets_code_and_message),
		cmocka_unit_test(works_without_an_error),
		cmocka_unit_test(prefix_keeps_what_was_said),
		cmocka_unit_test(cuts_what_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
