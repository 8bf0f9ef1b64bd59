/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "unit.h"

static void buf_grows_and_stays_terminated(void **state)
{
	struct buf b = { 0 };
	char *text;

	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%d,", i);
	buf_add(&b, "a\0b", 3);
	buf_puts(&b, "end");
	assert_int_equal(b.len, 10 * 2 + 90 * 3 + 900 * 4 + 3 + 3);
	assert_int_equal(b.data[b.len], '\0');
	assert_memory_equal(b.data, "0,1,2,", 6);
	assert_memory_equal(b.data + b.len - 6, "a\0bend", 6);
	text = buf_take(&b);
	assert_null(b.data);
	assert_int_equal(b.len, 0);
	free(text);
	text = buf_take(&b); /* of an empty one: an empty string */
	assert_string_equal(text, "");
	free(text);
	buf_done(&b);
}

static void strv_keeps_order_and_end(void **state)
{
	struct strv v = { 0 };

	assert_false(strv_contains(&v, "1"));
	for (int i = 0; i < 300; i++) {
		strv_add_take(&v, xasprintf("%d", i));
		assert_null(v.items[v.count]);
	}
	strv_add(&v, "last");
	assert_int_equal(v.count, 301);
	assert_string_equal(v.items[17], "17");
	assert_true(strv_contains(&v, "299"));
	assert_true(strv_contains(&v, "last"));
	assert_false(strv_contains(&v, "300"));
	assert_false(strv_remove(&v, "300"));
	assert_true(strv_remove(&v, "17"));
	assert_false(strv_contains(&v, "17"));
	assert_int_equal(v.count, 300);
	assert_null(v.items[300]);
	strv_done(&v);
	assert_null(v.items);
}

static void prefix_and_suffix(void **state)
{
	assert_true(str_has_prefix("glusterfs", "gluster"));
	assert_false(str_has_prefix("glu", "gluster"));
	assert_false(str_has_prefix(NULL, ""));
	assert_true(str_has_suffix("a.yaml", ".yaml"));
	assert_false(str_has_suffix("yaml", ".yaml"));
	assert_false(str_has_suffix(NULL, "x"));
	assert_true(str_has_suffix("x", ""));
}

static void suggests_what_is_near(void **state)
{
	static const char *const fields[] = { "devices", "directories", "nodeSelector",
					      "type",	 "ip",		NULL };

	assert_string_equal(str_suggest("device", fields), "devices");
	assert_string_equal(str_suggest("devcies", fields), "devices");
	assert_string_equal(str_suggest("nodeselector", fields), "nodeSelector");
	assert_string_equal(str_suggest("tpye", fields), "type");
	assert_string_equal(str_suggest("directorys", fields), "directories");
	assert_null(str_suggest("replicas", fields));
	assert_null(str_suggest("", fields));
	assert_null(str_suggest("xy", fields));
	assert_null(str_suggest(
		"a-word-that-is-much-longer-than-anything-that-a-person-would-write-here", fields));
	assert_null(str_suggest("type", (const char *const[]){ NULL }));
}

static void names_as_kubernetes_has_them(void **state)
{
	static const char *const good[] = { "a", "9", "node-1", "a--b", "x.y-z.9", NULL };
	static const char *const bad[] = { "",	   "-a",   "a-",   "A",	  "a_b", ".a",	   "a.",
					   "a..b", "a.-b", "a-.b", "a/b", "ü",	 "../etc", NULL };
	char longest[256];

	for (const char *const *s = good; *s; s++)
		assert_true(name_is_subdomain(*s));
	for (const char *const *s = bad; *s; s++)
		assert_false(name_is_subdomain(*s));
	assert_false(name_is_label("a.b"));
	assert_true(name_is_label("a-b"));
	assert_false(name_is_label(NULL));
	memset(longest, 'a', sizeof(longest));
	longest[63] = '\0';
	assert_true(name_is_label(longest));
	longest[63] = 'a';
	longest[64] = '\0';
	assert_false(name_is_label(longest));
	longest[64] = 'a';
	longest[253] = '\0';
	assert_true(name_is_subdomain(longest));
	longest[253] = 'a';
	longest[254] = '\0';
	assert_false(name_is_subdomain(longest));
}

static void allocation_of_nothing(void **state)
{
	cleanup_free void *a = xmalloc(0), *b = xcalloc(0, 8), *c = xrealloc(NULL, 0);
	cleanup_free char *d = xstrndup("quarter", 4);

	assert_non_null(a);
	assert_non_null(b);
	assert_non_null(c);
	assert_string_equal(d, "quar");
	assert_true(streq(NULL, NULL));
	assert_false(streq("a", NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf_grows_and_stays_terminated),
		cmocka_unit_test(strv_keeps_order_and_end),
		cmocka_unit_test(prefix_and_suffix),
		cmocka_unit_test(suggests_what_is_near),
		cmocka_unit_test(names_as_kubernetes_has_them),
		cmocka_unit_test(allocation_of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
