/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fieldset.h"
#include "api/patch.h"
#include "unit.h"

static int apply_as(const char *manager, bool force, const char *sub, json_t *config, json_t **ret)
{
	struct store_write w = write_to(&KIND_STORAGENODE, "n1");
	int rc;

	w.manager = manager;
	w.force = force;
	w.subresource = sub;
	w.patch_type = PATCH_APPLY;
	rc = store_patch(S, &w, config, ret, &err);
	json_decref(config);
	return rc;
}

static int patch_as(const char *manager, const char *sub, json_t *p)
{
	struct store_write w = write_to(&KIND_STORAGENODE, "n1");
	int rc;

	w.manager = manager;
	w.subresource = sub;
	w.patch_type = PATCH_MERGE;
	rc = store_patch(S, &w, p, NULL, &err);
	json_decref(p);
	return rc;
}

static json_t *config(const char *spec)
{
	return quoted("{'apiVersion':'coreos.com/v1','kind':'StorageNode','metadata':{'name':'n1'},"
		      "'spec':%s}",
		      spec);
}

#define BASE "'type':'glusterfs','storageNetwork':{'ips':['10.0.0.1']},'devices':['/dev/vdb']"

static const json_t *entry(const json_t *o, const char *manager, const char *operation)
{
	const json_t *e;
	size_t i;

	json_array_foreach (jget(o, "metadata", "managedFields"), i, e)
		if (streq(jstr(e, "manager"), manager) && streq(jstr(e, "operation"), operation))
			return e;
	return NULL;
}

static void test_create_and_own(void **state)
{
	cleanup_json json_t *o = NULL, *again = NULL;

	(void)state;
	assert_int_equal(apply_as("m", false, NULL, config("{" BASE "}"), &o), 1);
	assert_json(json_incref(jget(entry(o, "m", "Apply"), "fieldsV1")),
		    quoted("{'f:spec':{'f:type':{},'f:storageNetwork':{'f:ips':{}},"
			   "'f:devices':{}}}"));
	/* again: nothing new */
	assert_int_equal(apply_as("m", false, NULL, config("{" BASE "}"), &again), 0);
	assert_string_equal(jstr(o, "metadata", "resourceVersion"),
			    jstr(again, "metadata", "resourceVersion"));
}

static void test_conflict_and_force(void **state)
{
	cleanup_json json_t *o = NULL;

	(void)state;
	assert_int_equal(apply_as("m", false, NULL,
				  config("{" BASE ",'glusterfs':{'cluster':'c','zone':1}}"), NULL),
			 1);
	assert_int_equal(patch_as("other", NULL, quoted("{'spec':{'glusterfs':{'zone':2}}}")), 0);
	assert_int_equal(apply_as("m", false, NULL,
				  config("{" BASE ",'glusterfs':{'cluster':'c','zone':1}}"), NULL),
			 -ESTALE);
	assert_string_equal(err.message,
			    "Apply failed with 1 conflict: conflict with \"other\" using "
			    "coreos.com/v1: .spec.glusterfs.zone");
	assert_int_equal(jint(status, "code"), 409);
	assert_string_equal(jstr(json_array_get(jget(status, "details", "causes"), 0), "reason"),
			    "FieldManagerConflict");
	/* the same value is no conflict */
	assert_int_equal(apply_as("m", false, NULL,
				  config("{" BASE ",'glusterfs':{'cluster':'c','zone':2}}"), NULL),
			 0);
	assert_int_equal(apply_as("m", true, NULL,
				  config("{" BASE ",'glusterfs':{'cluster':'c','zone':1}}"), &o),
			 0);
	assert_int_equal(jint(o, "spec", "glusterfs", "zone"), 1);
	assert_null(entry(o, "other", "Update"));
}

static void test_remove(void **state)
{
	cleanup_json json_t *o = NULL, *shared = NULL;

	(void)state;
	assert_int_equal(
		apply_as("m", false, NULL,
			 config("{" BASE ",'nodeSelector':{'a':'1','b':'2'},'maintenance':true}"),
			 NULL),
		1);
	assert_int_equal(apply_as("n", false, NULL, config("{'nodeSelector':{'b':'2'}}"), NULL), 0);
	/* m lets go of both: what n wants too stays */
	assert_int_equal(apply_as("m", false, NULL, config("{" BASE "}"), &o), 0);
	assert_json(json_incref(jget(o, "spec", "nodeSelector")), quoted("{'b':'2'}"));
	assert_false(jbool(o, "spec", "maintenance"));
	/* n lets go as well: it goes, and the map with it */
	assert_int_equal(apply_as("n", false, NULL, config("{}"), &shared), 0);
	assert_null(jget(shared, "spec", "nodeSelector"));
}

/* Lists of devices are one value: what the last applier does not name is gone. */
static void test_whole_list(void **state)
{
	cleanup_json json_t *o = NULL;

	(void)state;
	assert_int_equal(apply_as("m", false, NULL,
				  config("{'type':'glusterfs','devices':['/dev/a','/dev/b']}"),
				  NULL),
			 1);
	assert_int_equal(apply_as("n", false, NULL, config("{'devices':['/dev/b']}"), NULL),
			 -ESTALE);
	assert_int_equal(apply_as("n", true, NULL, config("{'devices':['/dev/b']}"), &o), 0);
	assert_json(json_incref(jget(o, "spec", "devices")), quoted("['/dev/b']"));
}

static void test_set(void **state)
{
	cleanup_json json_t *o = NULL;
	json_t *c = config("{'type':'glusterfs'}");

	(void)state;
	jset(c, quoted("['a.b/one','a.b/two']"), "metadata", "finalizers");
	assert_int_equal(apply_as("m", false, NULL, c, NULL), 1);
	c = config("{}");
	jset(c, quoted("['a.b/two']"), "metadata", "finalizers");
	assert_int_equal(apply_as("n", false, NULL, c, NULL), 0);
	/* m lets go of both: what n wants too stays */
	assert_int_equal(apply_as("m", false, NULL, config("{'type':'glusterfs'}"), &o), 0);
	assert_json(json_incref(jget(o, "metadata", "finalizers")), quoted("['a.b/two']"));
}

static void test_list_by_key(void **state)
{
	cleanup_json json_t *o = NULL;
	json_t *c;

	(void)state;
	json_decref(created(&KIND_STORAGENODE, storagenode("n1")));
	for (int i = 0; i < 2; i++) {
		const char *type = i ? "Online" : "Ready";

		c = quoted(
			"{'apiVersion':'coreos.com/"
			"v1','kind':'StorageNode','metadata':{'name':'n1'},"
			"'spec':{'type':'ignored'},'status':{'conditions':[{'type':'%s','status':'"
			"True',"
			"'reason':'R','message':'','lastTransitionTime':'2026-01-01T00:00:00Z'}]}}",
			type);
		json_decref(o);
		o = NULL;
		assert_int_equal(apply_as(i ? "b" : "a", false, "status", c, &o), 0);
	}
	assert_int_equal(json_array_size(jget(o, "status", "conditions")), 2);
	assert_string_equal(jstr(o, "spec", "type"), "glusterfs");
	assert_string_equal(jstr(entry(o, "a", "Apply"), "subresource"), "status");
	/* a lets go of its condition only */
	json_decref(o);
	o = NULL;
	c = quoted("{'apiVersion':'coreos.com/v1','kind':'StorageNode','metadata':{'name':'n1'},"
		   "'status':{}}");
	assert_int_equal(apply_as("a", false, "status", c, &o), 0);
	assert_int_equal(json_array_size(jget(o, "status", "conditions")), 1);
	assert_string_equal(jstr(json_array_get(jget(o, "status", "conditions"), 0), "type"),
			    "Online");
}

static void test_before_first_apply(void **state)
{
	struct store_write w = write_to(&KIND_STORAGENODE, NULL);
	cleanup_json json_t *o = storagenode("n1");

	(void)state;
	w.manager = NULL; /* not tracked */
	assert_int_equal(store_create(S, &w, o, NULL, &err), 0);
	assert_int_equal(apply_as("m", false, NULL, config("{'glusterfs':{'zone':3}}"), NULL),
			 -ESTALE);
	assert_non_null(strstr(err.message, "\"before-first-apply\""));
}

static void test_refusals(void **state)
{
	json_t *c = config("{" BASE "}");

	(void)state;
	assert_int_equal(apply_as("", false, NULL, config("{}"), NULL), -EINVAL);
	jset(c, quoted("[{'manager':'x'}]"), "metadata", "managedFields");
	assert_int_equal(apply_as("m", false, NULL, c, NULL), -EINVAL);
	assert_string_equal(err.message, "metadata.managedFields must be nil");
	c = config("{" BASE "}");
	jset(c, json_string("n2"), "metadata", "name");
	assert_int_equal(apply_as("m", false, NULL, c, NULL), -EINVAL);
	assert_int_equal(apply_as("m", false, NULL, quoted("{'spec':{}}"), NULL), -EINVAL);
	assert_int_equal(apply_as("m", false, NULL, json_array(), NULL), -EINVAL);
	assert_int_equal(apply_as("m", false, "status", config("{}"), NULL), -ENOENT);
}

static void test_updates_are_tracked(void **state)
{
	cleanup_json json_t *o = created(&KIND_STORAGENODE, storagenode("n1")), *after = NULL;

	(void)state;
	assert_non_null(jget(entry(o, "test", "Update"), "fieldsV1", "f:spec", "f:type"));
	assert_int_equal(
		patch_as("other", NULL, quoted("{'spec':{'devices':null,'directories':['/a']}}")),
		0);
	after = get(&KIND_STORAGENODE, "n1");
	assert_null(jget(entry(after, "test", "Update"), "fieldsV1", "f:spec", "f:devices"));
	assert_non_null(
		jget(entry(after, "other", "Update"), "fieldsV1", "f:spec", "f:directories"));
}

static void test_sets(void **state)
{
	cleanup_json json_t *a = quoted("{'f:a':{},'f:b':{'.':{},'f:c':{}}}");
	cleanup_json json_t *b = quoted("{'f:b':{'f:c':{}},'f:d':{}}");

	(void)state;
	assert_json(fieldset_union(a, b), quoted("{'f:a':{},'f:b':{'.':{},'f:c':{}},'f:d':{}}"));
	assert_json(fieldset_minus(a, b), quoted("{'f:a':{},'f:b':{}}"));
	assert_json(fieldset_both(a, b), quoted("{'f:b':{'f:c':{}}}"));
	assert_null(fieldset_minus(a, a));
	assert_null(fieldset_both(a, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_create_and_own),
		store_test(test_conflict_and_force),
		store_test(test_remove),
		store_test(test_whole_list),
		store_test(test_set),
		store_test(test_list_by_key),
		store_test(test_before_first_apply),
		store_test(test_refusals),
		store_test(test_updates_are_tracked),
		cmocka_unit_test(test_sets),
	};
	int rc = cmocka_run_group_tests_name("api apply", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
