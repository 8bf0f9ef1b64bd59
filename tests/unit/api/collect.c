/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

static json_t *child_of(const char *name, const char *uid, const char *uid2, bool block)
{
	json_t *o = configmap(name);
	json_t *refs = json_array();

	json_array_append_new(refs,
			      quoted("{'apiVersion':'v1','kind':'ConfigMap','name':'p','uid':'%s',"
				     "'blockOwnerDeletion':%s}",
				     uid, block ? "true" : "false"));
	if (uid2)
		json_array_append_new(
			refs, quoted("{'apiVersion':'v1','kind':'ConfigMap','name':'q','uid':'%s'}",
				     uid2));
	jset(o, refs, "metadata", "ownerReferences");
	return o;
}

static bool there(const struct kind *kind, const char *name)
{
	json_t *o = get(kind, name);

	json_decref(o);
	return o;
}

static void test_background(void **state)
{
	cleanup_json json_t *p = created(&KIND_CONFIGMAP, configmap("p"));
	cleanup_json json_t *c =
		created(&KIND_CONFIGMAP, child_of("c", jstr(p, "metadata", "uid"), NULL, false));

	(void)state;
	json_decref(
		created(&KIND_CONFIGMAP, child_of("g", jstr(c, "metadata", "uid"), NULL, false)));
	assert_int_equal(store_collect(S), 0);
	assert_int_equal(drop(&KIND_CONFIGMAP, "p", "Background"), 0);
	assert_true(there(&KIND_CONFIGMAP, "c"));
	assert_int_equal(store_collect(S), 2);
	assert_false(there(&KIND_CONFIGMAP, "c"));
	assert_false(there(&KIND_CONFIGMAP, "g"));
}

static void test_one_of_two_owners(void **state)
{
	cleanup_json json_t *p = created(&KIND_CONFIGMAP, configmap("p"));
	cleanup_json json_t *q = created(&KIND_CONFIGMAP, configmap("q"));
	cleanup_json json_t *c = NULL;

	(void)state;
	json_decref(created(&KIND_CONFIGMAP, child_of("c", jstr(p, "metadata", "uid"),
						      jstr(q, "metadata", "uid"), false)));
	assert_int_equal(drop(&KIND_CONFIGMAP, "p", NULL), 0);
	assert_int_equal(store_collect(S), 0);
	c = get(&KIND_CONFIGMAP, "c");
	assert_int_equal(json_array_size(jget(c, "metadata", "ownerReferences")), 1);
	assert_int_equal(drop(&KIND_CONFIGMAP, "q", NULL), 0);
	assert_int_equal(store_collect(S), 1);
}

static void test_owner_never_was(void **state)
{
	(void)state;
	json_decref(created(&KIND_CONFIGMAP,
			    child_of("c", "00000000-0000-4000-8000-000000000000", NULL, false)));
	assert_int_equal(store_collect(S), 1);
}

static void test_orphan(void **state)
{
	cleanup_json json_t *p = created(&KIND_CONFIGMAP, configmap("p"));
	cleanup_json json_t *c = NULL;

	(void)state;
	json_decref(
		created(&KIND_CONFIGMAP, child_of("c", jstr(p, "metadata", "uid"), NULL, true)));
	assert_int_equal(drop(&KIND_CONFIGMAP, "p", "Orphan"), 0);
	assert_int_equal(store_collect(S), 0);
	c = get(&KIND_CONFIGMAP, "c");
	assert_non_null(c);
	assert_null(jget(c, "metadata", "ownerReferences"));
}

static void test_foreground(void **state)
{
	cleanup_json json_t *p = created(&KIND_CONFIGMAP, configmap("p"));
	json_t *c = child_of("c", jstr(p, "metadata", "uid"), NULL, true);

	(void)state;
	jset(c, quoted("['a.b/hold']"), "metadata", "finalizers");
	json_decref(created(&KIND_CONFIGMAP, c));
	assert_int_equal(drop(&KIND_CONFIGMAP, "p", "Foreground"), 1);
	json_decref(p);
	p = get(&KIND_CONFIGMAP, "p");
	assert_string_equal(json_string_value(json_array_get(jget(p, "metadata", "finalizers"), 0)),
			    "foregroundDeletion");
	assert_int_equal(store_collect(S), 0);
	/* the child waits for its own finalizer, and the owner for the child */
	assert_true(there(&KIND_CONFIGMAP, "p"));
	assert_int_equal(
		patch(&KIND_CONFIGMAP, "c", NULL, quoted("{'metadata':{'finalizers':null}}"), NULL),
		0);
	assert_int_equal(store_collect(S), 1);
	assert_false(there(&KIND_CONFIGMAP, "p"));
}

static void test_namespace(void **state)
{
	struct store_write w = write_to(&KIND_CONFIGMAP, NULL);
	cleanup_json json_t *o = configmap("c"), *ns = NULL, *patch_body = NULL;

	(void)state;
	json_decref(created(&KIND_NAMESPACE, quoted("{'metadata':{'name':'team'}}")));
	jset(o, quoted("['a.b/hold']"), "metadata", "finalizers");
	w.ns = "team";
	assert_int_equal(store_create(S, &w, o, NULL, &err), 0);
	assert_int_equal(drop(&KIND_NAMESPACE, "team", NULL), 1);
	ns = get(&KIND_NAMESPACE, "team");
	assert_string_equal(jstr(ns, "status", "phase"), "Terminating");
	store_collect(S);
	assert_true(there(&KIND_NAMESPACE, "team"));
	/* nothing new in it */
	jset(o, json_string("d"), "metadata", "name");
	w = write_to(&KIND_CONFIGMAP, NULL);
	w.ns = "team";
	assert_int_equal(store_create(S, &w, o, NULL, &err), -EPERM);
	assert_non_null(strstr(err.message, "because it is being terminated"));
	w = write_to(&KIND_CONFIGMAP, "c");
	w.ns = "team";
	patch_body = quoted("{'metadata':{'finalizers':null}}");
	assert_int_equal(store_patch(S, &w, patch_body, NULL, &err), 0);
	assert_int_equal(store_collect(S), 1);
	assert_false(there(&KIND_NAMESPACE, "team"));
	assert_int_equal(drop(&KIND_NAMESPACE, "default", NULL), -EPERM);
}

static void test_many(void **state)
{
	cleanup_json json_t *p = created(&KIND_CONFIGMAP, configmap("p"));

	(void)state;
	for (int i = 0; i < 250; i++) {
		char name[16];

		snprintf(name, sizeof(name), "c%d", i);
		json_decref(created(&KIND_CONFIGMAP,
				    child_of(name, jstr(p, "metadata", "uid"), NULL, false)));
	}
	assert_int_equal(drop(&KIND_CONFIGMAP, "p", NULL), 0);
	assert_int_equal(store_collect(S), 250);
}

static void test_events_expire(void **state)
{
	(void)state;
	json_decref(
		created(&KIND_EVENT,
			quoted("{'metadata':{'name':'e'},'involvedObject':{'name':'x','namespace':"
			       "'default'},'reason':'R','message':'m','type':'Normal'}")));
	json_decref(created(&KIND_CONFIGMAP, configmap("c")));
	store_collect(S);
	assert_true(there(&KIND_EVENT, "e"));
	unit_now_ms += 3601 * 1000;
	assert_int_equal(store_collect(S), 1);
	assert_false(there(&KIND_EVENT, "e"));
	assert_true(there(&KIND_CONFIGMAP, "c"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_background),
		store_test(test_one_of_two_owners),
		store_test(test_owner_never_was),
		store_test(test_orphan),
		store_test(test_foreground),
		store_test(test_namespace),
		store_test(test_many),
		store_test(test_events_expire),
	};
	int rc = cmocka_run_group_tests_name("api collect", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
