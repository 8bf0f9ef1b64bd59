/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

static void names(void **state)
{
	cleanup_json json_t *o =
		quoted("{'metadata':{'name':'a','namespace':'n','uid':'u','resourceVersion':'7',"
		       "'labels':{'x/y':'1'},'annotations':{'p':'q'}}}");
	cleanup_json json_t *bare = json_object();
	cleanup_free char *key = object_key(o);

	assert_string_equal(key, "n/a");
	assert_string_equal(object_version(o), "7");
	assert_string_equal(object_label(o, "x/y"), "1");
	assert_null(object_label(o, "x"));
	assert_string_equal(object_annotation(o, "p"), "q");
	assert_string_equal(object_name(bare), "");
	assert_string_equal(object_namespace(bare), "");
	assert_false(object_deleting(o));
}

static void keys(void **state)
{
	char ns[254], name[254], longer[600];

	key_split("n/a", ns, name);
	assert_string_equal(ns, "n");
	assert_string_equal(name, "a");
	key_split("a", ns, name);
	assert_string_equal(ns, "");
	assert_string_equal(name, "a");
	memset(longer, 'x', sizeof(longer));
	longer[599] = 0;
	key_split(longer, ns, name);
	assert_int_equal(strlen(name), 253);
}

static void finalizers(void **state)
{
	cleanup_json json_t *o = quoted("{'metadata':{'name':'a'}}");

	assert_false(object_has_finalizer(o, "f"));
	assert_true(object_add_finalizer(o, "f"));
	assert_false(object_add_finalizer(o, "f"));
	assert_true(object_add_finalizer(o, "g"));
	assert_true(object_remove_finalizer(o, "f"));
	assert_false(object_remove_finalizer(o, "f"));
	assert_true(object_has_finalizer(o, "g"));
	assert_int_equal(json_array_size(jget(o, "metadata", "finalizers")), 1);
}

static void conditions(void **state)
{
	cleanup_json json_t *list = json_array();
	const int64_t t = 1794776400000;

	assert_true(condition_set(list, "Ready", false, "Waiting", "for a node", 1, t));
	assert_false(condition_set(list, "Ready", false, "Waiting", "for a node", 1, t + 5000));
	assert_true(condition_set(list, "Ready", false, "Waiting", "for two nodes", 1, t + 5000));
	assert_string_equal(jstr(condition_get(list, "Ready"), "lastTransitionTime"),
			    "2026-11-15T21:00:00Z");
	assert_false(condition_is_true(list, "Ready"));
	assert_true(condition_set(list, "Ready", true, "Ready", "", 2, t + 60000));
	assert_string_equal(jstr(condition_get(list, "Ready"), "lastTransitionTime"),
			    "2026-11-15T21:01:00Z");
	assert_true(condition_is_true(list, "Ready"));
	assert_false(condition_is_true(list, "Other"));
	assert_int_equal(json_array_size(list), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(keys),
		cmocka_unit_test(finalizers),
		cmocka_unit_test(conditions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
