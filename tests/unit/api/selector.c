/* SPDX-License-Identifier: Apache-2.0 */
#include "api/selector.h"
#include "unit.h"

static int matches(const struct kind *kind, const char *labels, const char *fields,
		   const json_t *object)
{
	struct selector *s;
	int rc = selector_parse(kind, labels, fields, &s, &err);

	if (rc < 0)
		return rc;
	rc = selector_match(s, object);
	selector_free(s);
	return rc;
}

static void test_labels(void **state)
{
	static const struct {
		const char *selector;
		int result;
	} cases[] = {
		{ "", 1 },
		{ "a=1", 1 },
		{ "a==1", 1 },
		{ "a=2", 0 },
		{ "a!=1", 0 },
		{ "a!=2", 1 },
		{ "none!=2", 1 },
		{ "a", 1 },
		{ "!a", 0 },
		{ "! none", 1 },
		{ "none", 0 },
		{ "a in (0,1)", 1 },
		{ "a in (0, 2)", 0 },
		{ "a notin (1)", 0 },
		{ "none notin (1)", 1 },
		{ "a=1,x.y/z=v", 1 },
		{ " a = 1 , !none ", 1 },
		{ "a=1,none", 0 },
		{ "e=", 1 },
		{ "a=1,", -EINVAL },
		{ "=1", -EINVAL },
		{ "a in 1", -EINVAL },
		{ "a in (1", -EINVAL },
		{ "a like 1", -EINVAL },
		{ "!a=1", -EINVAL },
		{ "a=1;b", -EINVAL },
		{ ",", -EINVAL },
		{ "a=1)", -EINVAL },
	};
	cleanup_json json_t *o = quoted("{'metadata':{'labels':{'a':'1','x.y/z':'v','e':''}}}");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int rc = matches(&KIND_CONFIGMAP, cases[i].selector, NULL, o);

		if (rc != cases[i].result)
			fail_msg("\"%s\" gives %d", cases[i].selector, rc);
	}
}

static void test_fields(void **state)
{
	static const struct {
		const char *selector;
		int result;
	} cases[] = {
		{ "metadata.name=e", 1 },
		{ "metadata.name!=e", 0 },
		{ "metadata.name==e,involvedObject.uid=u", 1 },
		{ "involvedObject.kind=Pod", 0 },
		{ "involvedObject.fieldPath=", 1 },
		{ "involvedObject.fieldPath!=x", 1 },
		{ "spec.any=1", -EINVAL },
		{ "metadata.name", -EINVAL },
		{ "=x", -EINVAL },
	};
	cleanup_json json_t *o =
		quoted("{'metadata':{'name':'e'},'involvedObject':{'uid':'u','kind':'Node'}}");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int rc = matches(&KIND_EVENT, NULL, cases[i].selector, o);

		if (rc != cases[i].result)
			fail_msg("\"%s\" gives %d", cases[i].selector, rc);
	}
	assert_int_equal(matches(&KIND_STORAGENODE, NULL, "involvedObject.uid=u", o), -EINVAL);
	assert_string_equal(err.message, "field label not supported: involvedObject.uid");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_labels),
					    cmocka_unit_test(test_fields) };
	int rc = cmocka_run_group_tests_name("api selector", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
