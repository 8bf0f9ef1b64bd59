/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch.h"
#include "unit.h"

static json_t *patched(const struct kind *kind, const char *object, const char *type,
		       const char *text, int want)
{
	cleanup_json json_t *o = quoted("%s", object), *p = quoted("%s", text);
	json_t *ret = NULL;
	int rc = patch_object(kind, o, p, type, &ret, &err);

	if (rc != want)
		fail_msg("%s: %d, not %d: %s", text, rc, want, err.message);
	return ret;
}

static void test_merge(void **state)
{
	static const struct {
		const char *object, *patch, *result;
	} cases[] = {
		{ "{'a':'b'}", "{'a':'c'}", "{'a':'c'}" },
		{ "{'a':'b'}", "{'b':'c'}", "{'a':'b','b':'c'}" },
		{ "{'a':'b','b':'c'}", "{'a':null}", "{'b':'c'}" },
		{ "{'a':['b']}", "{'a':'c'}", "{'a':'c'}" },
		{ "{'a':{'b':'c'}}", "{'a':{'b':'d','c':null}}", "{'a':{'b':'d'}}" },
		{ "{'a':[{'b':'c'}]}", "{'a':[1]}", "{'a':[1]}" },
		{ "{}", "{'a':{'bb':{'ccc':null}}}", "{'a':{'bb':{}}}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_json(
			patched(&KIND_STORAGENODE, cases[i].object, PATCH_MERGE, cases[i].patch, 0),
			quoted("%s", cases[i].result));
	patched(&KIND_STORAGENODE, "{}", PATCH_MERGE, "[1]", -EINVAL);
}

static void test_json(void **state)
{
	static const struct {
		const char *object, *patch, *result; /* result NULL: it fails */
		int rc;
	} cases[] = {
		{ "{'a':1}", "[{'op':'add','path':'/b','value':[1]}]", "{'a':1,'b':[1]}", 0 },
		{ "{'a':[1,3]}", "[{'op':'add','path':'/a/1','value':2}]", "{'a':[1,2,3]}", 0 },
		{ "{'a':[1]}", "[{'op':'add','path':'/a/-','value':2}]", "{'a':[1,2]}", 0 },
		{ "{'a':[1]}", "[{'op':'add','path':'/a/3','value':2}]", NULL, -ERANGE },
		{ "{'a':[1,2]}", "[{'op':'remove','path':'/a/0'}]", "{'a':[2]}", 0 },
		{ "{'a':1}", "[{'op':'remove','path':'/b'}]", NULL, -ERANGE },
		{ "{'a':1}", "[{'op':'replace','path':'/a','value':2}]", "{'a':2}", 0 },
		{ "{'a':1}", "[{'op':'replace','path':'/b','value':2}]", NULL, -ERANGE },
		{ "{'a~b':1,'c/d':2}",
		  "[{'op':'replace','path':'/a~0b','value':3},{'op':'remove','path':'/c~1d'}]",
		  "{'a~b':3}", 0 },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a/b','path':'/c'}]", "{'a':{},'c':1}",
		  0 },
		{ "{'a':{'b':1}}", "[{'op':'move','from':'/a','path':'/a/b'}]", NULL, -ERANGE },
		{ "{'a':{'b':1}}", "[{'op':'copy','from':'/a','path':'/c'}]",
		  "{'a':{'b':1},'c':{'b':1}}", 0 },
		{ "{'a':1}", "[{'op':'test','path':'/a','value':1}]", "{'a':1}", 0 },
		{ "{'a':1}", "[{'op':'test','path':'/a','value':2}]", NULL, -ERANGE },
		{ "{'a':1}", "[{'op':'spin','path':'/a','value':2}]", NULL, -EINVAL },
		{ "{'a':1}", "[{'op':'add','path':'a','value':2}]", NULL, -EINVAL },
		{ "{'a':1}", "[{'op':'add','path':'/a'}]", NULL, -EINVAL },
		{ "{'a':1}", "[{'op':'copy','path':'/a'}]", NULL, -EINVAL },
		{ "{'a':1}", "[1]", NULL, -EINVAL },
		{ "{'a':1}", "[{'op':'replace','path':'','value':[]}]", NULL, -ERANGE },
		{ "{'a':[1]}", "[{'op':'remove','path':'/a/01'}]", NULL, -ERANGE },
		{ "{'a':1}", "[{'op':'add','path':'/b/c','value':1}]", NULL, -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		json_t *r = patched(&KIND_STORAGENODE, cases[i].object,
				    PATCH_JSON "; charset=utf-8", cases[i].patch, cases[i].rc);

		if (cases[i].result)
			assert_json(r, quoted("%s", cases[i].result));
	}
}

/* Copies of copies: each doubles, thirty would fill the memory. */
static void test_json_bomb(void **state)
{
	cleanup_json json_t *p = quoted("[{'op':'add','path':'/a0','value':'0123456789'}]"),
			    *o = json_object(), *ret = NULL;

	(void)state;
	for (int i = 0; i < 60; i++)
		json_array_append_new(p, quoted("{'op':'copy','from':'','path':'/a%d'}", i + 1));
	assert_int_equal(patch_object(&KIND_CONFIGMAP, o, p, PATCH_JSON, &ret, &err), -ERANGE);
}

static void test_strategic(void **state)
{
	static const struct {
		const char *object, *patch, *result;
	} cases[] = {
		{ "{'data':{'a':'1','b':'2'}}", "{'data':{'a':null,'c':'3'}}",
		  "{'data':{'b':'2','c':'3'}}" },
		{ "{'data':{'a':'1'}}", "{'data':{'$patch':'replace','b':'2'}}",
		  "{'data':{'b':'2'}}" },
		{ "{'data':{'a':'1'}}", "{'data':{'$patch':'delete'}}", "{'data':{}}" },
		{ "{'data':{'a':'1','b':'2'}}", "{'data':{'$retainKeys':['c'],'c':'3'}}",
		  "{'data':{'c':'3'}}" },
		{ "{'metadata':{'finalizers':['a','b']}}",
		  "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a'],'finalizers':['c']}}",
		  "{'metadata':{'finalizers':['b','c']}}" },
		{ "{'metadata':{'finalizers':['a']}}",
		  "{'metadata':{'finalizers':['a','c'],"
		  "'$setElementOrder/finalizers':['c','a']}}",
		  "{'metadata':{'finalizers':['c','a']}}" },
		{ "{'metadata':{'ownerReferences':[{'uid':'1','name':'x'},{'uid':'2','name':'y'}]}"
		  "}",
		  "{'metadata':{'ownerReferences':[{'uid':'2','name':'z'},{'uid':'1','$patch':'"
		  "delete'},"
		  "{'uid':'3','name':'n'}]}}",
		  "{'metadata':{'ownerReferences':[{'uid':'2','name':'z'},{'uid':'3','name':'n'}]}"
		  "}" },
		{ "{'metadata':{'ownerReferences':[{'uid':'1'}]}}",
		  "{'metadata':{'ownerReferences':[{'$patch':'replace'},{'uid':'9'}]}}",
		  "{'metadata':{'ownerReferences':[{'uid':'9'}]}}" },
		{ "{'other':[1,2]}", "{'other':[3]}", "{'other':[3]}" },
		{ "{}", "{'data':{'$patch':'merge','a':'1'}}", "{'data':{'a':'1'}}" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_json(patched(&KIND_CONFIGMAP, cases[i].object, PATCH_STRATEGIC,
				    cases[i].patch, 0),
			    quoted("%s", cases[i].result));
	patched(&KIND_CONFIGMAP, "{}", PATCH_STRATEGIC, "{'data':{'$patch':'explode'}}", -EINVAL);
	patched(&KIND_CONFIGMAP, "{'metadata':{'ownerReferences':[]}}", PATCH_STRATEGIC,
		"{'metadata':{'ownerReferences':[{'name':'x'}]}}", -EINVAL);
	patched(&KIND_STORAGENODE, "{}", PATCH_STRATEGIC, "{}", -ENOTSUP);
	patched(&KIND_CONFIGMAP, "{}", "application/xml", "{}", -ENOTSUP);
}

static void test_through_the_store(void **state)
{
	cleanup_json json_t *next = NULL;

	(void)state;
	json_decref(created(&KIND_STORAGENODE, storagenode("n1")));
	assert_int_equal(
		patch(&KIND_STORAGENODE, "n1", PATCH_MERGE,
		      quoted("{'spec':{'glusterfs':{'zone':5}},'status':{'phase':'Ready'}}"),
		      &next),
		0);
	assert_int_equal(jint(next, "spec", "glusterfs", "zone"), 5);
	assert_int_equal(jint(next, "metadata", "generation"), 2);
	assert_null(jget(next, "status"));
	/* a version in the patch is a precondition */
	assert_int_equal(patch(&KIND_STORAGENODE, "n1", PATCH_MERGE,
			       quoted("{'metadata':{'resourceVersion':'1'},'spec':{}}"), NULL),
			 -ESTALE);
	assert_int_equal(patch(&KIND_STORAGENODE, "n1", PATCH_JSON,
			       quoted("[{'op':'test','path':'/spec/type','value':'x'}]"), NULL),
			 -EINVAL);
	assert_int_equal(jint(status, "code"), 422);
	assert_int_equal(patch(&KIND_STORAGENODE, "n1", PATCH_STRATEGIC, json_object(), NULL),
			 -EINVAL);
	assert_int_equal(jint(status, "code"), 415);
	assert_int_equal(patch(&KIND_STORAGENODE, "none", PATCH_MERGE, json_object(), NULL),
			 -ENOENT);
}

static int say(const json_t *object, json_t **ret)
{
	cleanup_json json_t *p =
		json_pack("{s:{s:O}, s:{s:s}}", "metadata", "uid", jget(object, "metadata", "uid"),
			  "status", "phase", "Ready");
	struct store_write w = write_to(&KIND_STORAGENODE, "n1");

	w.subresource = "status";
	w.patch_type = PATCH_MERGE;
	return store_patch(S, &w, p, ret, &err);
}

/* What is said of an object is not said of the next one of its name. */
static void test_of_another_object(void **state)
{
	cleanup_json json_t *old = created(&KIND_STORAGENODE, storagenode("n1")), *next = NULL,
			    *said = NULL;

	(void)state;
	assert_int_equal(drop(&KIND_STORAGENODE, "n1", NULL), 0);
	next = created(&KIND_STORAGENODE, storagenode("n1"));
	assert_int_equal(say(old, NULL), -ESTALE);
	assert_int_equal(jint(status, "code"), 409);
	assert_int_equal(say(next, &said), 0);
	assert_string_equal(jstr(said, "status", "phase"), "Ready");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_merge),	    cmocka_unit_test(test_json),
		cmocka_unit_test(test_json_bomb),   cmocka_unit_test(test_strategic),
		store_test(test_through_the_store), store_test(test_of_another_object),
	};
	int rc = cmocka_run_group_tests_name("api patch", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
