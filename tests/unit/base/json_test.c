/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "base/str.h"
#include "unit.h"

static json_t *parsed(const char *text)
{
	struct error err = ERROR_INIT;
	json_t *o = NULL;

	if (json_parse(text, strlen(text), &o, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return o;
}

static void refused(const char *text, size_t len, const char *part)
{
	struct error err = ERROR_INIT;
	json_t *o = (json_t *)&err;

	assert_int_equal(json_parse(text, len, &o, &err), -EINVAL);
	assert_ptr_equal(o, &err); /* untouched */
	if (!strstr(err.message, part))
		fail_msg("\"%s\" does not say \"%s\"", err.message, part);
}

static void getters_walk_and_forgive(void **state)
{
	cleanup_json json_t *o =
		parsed("{\"a\":{\"b\":{\"s\":\"x\",\"n\":7,\"t\":true}},\"l\":[1]}");

	assert_string_equal(jstr(o, "a", "b", "s"), "x");
	assert_int_equal(jint(o, "a", "b", "n"), 7);
	assert_true(jbool(o, "a", "b", "t"));
	assert_null(jstr(o, "a", "b", "n"));
	assert_null(jget(o, "a", "x", "s"));
	assert_null(jget(o, "l", "s"));
	assert_null(jstr(NULL, "a"));
	assert_int_equal(jint(o, "none"), 0);
	assert_false(jbool(o, "a"));
}

static void set_makes_the_way(void **state)
{
	cleanup_json json_t *o = json_object();
	cleanup_free char *text = NULL;

	assert_int_equal(jset(o, json_string("v"), "spec", "a", "b"), 0);
	assert_int_equal(jset(o, json_integer(2), "spec", "c"), 0);
	assert_int_equal(jset(o, json_true(), "spec", "a", "b", "d"), 0); /* a text gives way */
	text = json_text(o);
	assert_string_equal(text, "{\"spec\":{\"a\":{\"b\":{\"d\":true}},\"c\":2}}");
	assert_int_equal(jset(NULL, json_string("v"), "x"), -EINVAL);
	assert_int_equal(jset(NULL, json_string("v"), "x", "y"), -EINVAL);
	assert_int_equal(jset_path(o, json_string("v"), (const char *const[]){ NULL }), -EINVAL);
}

static void refuses_what_is_wrong(void **state)
{
	refused("{\"a\":1,\n\"a\":2}", 13, "line 2");
	refused("{\"key\":1,\"key\":2}", 17, "duplicate object key near '\"key\"'");
	refused("{\"a\":", 5, "line 1");
	refused("", 0, "not valid JSON");
	refused("{} x", 4, "end of file expected");
	refused("\"\\u0000\"", 8, "not valid JSON");
	refused("\"\xff\"", 3, "not valid JSON");
	refused("{\0}", 3, "not valid JSON");
	refused("1e999", 5, "not valid JSON");
	refused("99999999999999999999", 20, "not valid JSON");
	refused("{\"a\":1}", 6, "not valid JSON"); /* len counts, not the NUL */
}

static void errors_show_no_content(void **state)
{
	static const char text[] = "{\"password\": hunter2}";
	struct error err = ERROR_INIT;
	json_t *o;

	assert_int_equal(json_parse(text, sizeof(text) - 1, &o, &err), -EINVAL);
	assert_null(strstr(err.message, "hunter2"));
}

static void depth_is_limited(void **state)
{
	struct buf b = { 0 };
	json_t *o = NULL;

	for (int i = 0; i < 64; i++)
		buf_puts(&b, "[");
	buf_puts(&b, "\"[[[[{{{{\\\"[[[[\"");
	for (int i = 0; i < 64; i++)
		buf_puts(&b, "]");
	assert_int_equal(json_parse(b.data, b.len, &o, NULL), 0);
	json_decref(o);
	buf_done(&b);
	buf_puts(&b, "\n");
	for (int i = 0; i < 100000; i++)
		buf_puts(&b, "[");
	refused(b.data, b.len, "line 2: JSON is nested deeper");
	buf_done(&b);
}

static void text_keeps_order(void **state)
{
	cleanup_json json_t *o = parsed("{\"z\":1,\"a\":[\"\\u00e4\",null],\"m\":1.5}");
	cleanup_free char *text = json_text(o), *pretty = json_text_pretty(o),
			  *none = json_text(NULL);

	assert_string_equal(text, "{\"z\":1,\"a\":[\"ä\",null],\"m\":1.5}");
	assert_string_equal(
		pretty, "{\n  \"z\": 1,\n  \"a\": [\n    \"ä\",\n    null\n  ],\n  \"m\": 1.5\n}");
	assert_string_equal(none, "null");
}

static void tamed(const char *text, const char *expected)
{
	cleanup_free char *copy = xstrdup(text);

	json_tame(copy, strlen(copy));
	assert_string_equal(copy, expected);
}

/* What others may write must not keep us from reading the rest. */
static void tame_makes_it_readable(void **state)
{
	struct buf deep = { 0 };
	json_t *o = NULL;

	tamed("{\"a\":9223372036854775807,\"b\":-9223372036854775808}",
	      "{\"a\":9223372036854775807,\"b\":-9223372036854775808}");
	tamed("[9223372036854775808,-9223372036854775809]",
	      "[92233720368547758e2,-92233720368547758e2]");
	tamed("100000000000000000000", "1000000000000000000e2");
	tamed("[1.00000000000000000000001,1e+21,-0.5]", "[1.00000000000000000000001,1e+21,-0.5]");
	tamed("[\"99999999999999999999\",\"a\\u0000b\\\\u0000\\\"\",7]",
	      "[\"99999999999999999999\",\"a\\ufffdb\\\\u0000\\\"\",7]");
	tamed("\"half\\u00", "\"half\\u00");
	tamed("\"half\\", "\"half\\");
	json_tame(NULL, 0);

	for (int i = 0; i < 63; i++)
		buf_puts(&deep, "{\"a\":");
	buf_puts(&deep, "[1,{\"b\":[\"}\",{}]},2]");
	for (int i = 0; i < 63; i++)
		buf_puts(&deep, "}");
	assert_true(json_parse(deep.data, deep.len, &o, NULL) < 0);
	json_tame(deep.data, deep.len);
	assert_int_equal(json_parse(deep.data, deep.len, &o, NULL), 0);
	json_decref(o);
	buf_done(&deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(getters_walk_and_forgive),
		cmocka_unit_test(set_makes_the_way),
		cmocka_unit_test(refuses_what_is_wrong),
		cmocka_unit_test(errors_show_no_content),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(text_keeps_order),
		cmocka_unit_test(tame_makes_it_readable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
