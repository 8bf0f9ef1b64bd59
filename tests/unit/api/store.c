/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

static void test_create(void **state)
{
	json_t *o = created(&KIND_STORAGENODE, storagenode("n1"));

	(void)state;
	assert_int_equal(strlen(jstr(o, "metadata", "uid")), 36);
	assert_string_equal(jstr(o, "metadata", "namespace"), "default");
	assert_string_equal(jstr(o, "metadata", "creationTimestamp"), "2025-06-15T15:06:40Z");
	assert_int_equal(jint(o, "metadata", "generation"), 1);
	assert_string_equal(jstr(o, "metadata", "resourceVersion"), "3");
	assert_int_equal(jint(o, "spec", "glusterfs", "zone"), 1); /* the default */
	assert_json(get(&KIND_STORAGENODE, "n1"), o);
}

static void test_create_refusals(void **state)
{
	static const struct {
		const char *object, *message;
		int rc, http;
	} cases[] = {
		{ "{'metadata':{'name':'there'}}", "configmaps \"there\" already exists", EEXIST,
		  409 },
		{ "{'metadata':{}}",
		  "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName "
		  "is "
		  "required",
		  EINVAL, 422 },
		{ "{'metadata':{'name':'A_b'}}",
		  "ConfigMap \"A_b\" is invalid: metadata.name: Invalid", EINVAL, 422 },
		{ "{'metadata':{'name':'x','resourceVersion':'5'}}",
		  "resourceVersion should not be set on objects to be created", EINVAL, 400 },
		{ "{'metadata':{'name':'x','namespace':'other'}}",
		  "the namespace of the provided object does not match", EINVAL, 400 },
		{ "{'kind':'Secret','metadata':{'name':'x'}}",
		  "the kind in the data (Secret) does not match", EINVAL, 400 },
		{ "{'apiVersion':'v2','metadata':{'name':'x'}}",
		  "the API version in the data (v2) does not", EINVAL, 400 },
		{ "{'metadata':[]}", "metadata: it must be an object", EINVAL, 400 },
		{ "[]", "the body is not an object", EINVAL, 400 },
	};

	(void)state;
	json_decref(created(&KIND_CONFIGMAP, configmap("there")));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int64_t before = store_version(S);

		assert_int_equal(create(&KIND_CONFIGMAP, quoted("%s", cases[i].object), NULL),
				 -cases[i].rc);
		if (strncmp(err.message, cases[i].message, strlen(cases[i].message)) != 0)
			fail_msg("is \"%s\" not \"%s\"", err.message, cases[i].message);
		assert_int_equal(jint(status, "code"), cases[i].http);
		assert_string_equal(jstr(status, "message"), err.message);
		assert_int_equal(store_version(S), before);
	}
}

static void test_namespace_must_exist(void **state)
{
	struct store_write w = write_to(&KIND_CONFIGMAP, NULL);
	cleanup_json json_t *o = configmap("x");

	(void)state;
	w.ns = "nowhere";
	assert_int_equal(store_create(S, &w, o, NULL, &err), -ENOENT);
	assert_string_equal(err.message, "namespaces \"nowhere\" not found");
	assert_string_equal(jstr(status, "details", "kind"), "namespaces");
}

static void test_generate_name(void **state)
{
	cleanup_json json_t *a =
		created(&KIND_CONFIGMAP, quoted("{'metadata':{'generateName':'x-'}}"));
	cleanup_json json_t *b =
		created(&KIND_CONFIGMAP, quoted("{'metadata':{'generateName':'x-'}}"));

	(void)state;
	assert_int_equal(strlen(jstr(a, "metadata", "name")), 7);
	assert_string_not_equal(jstr(a, "metadata", "name"), jstr(b, "metadata", "name"));
}

static void test_validation(void **state)
{
	struct store_write w = write_to(&KIND_STORAGENODE, NULL);
	cleanup_json json_t *o = storagenode("n1"), *stored = NULL;
	char *warning = NULL;

	(void)state;
	jset(o, json_string("x"), "spec", "devicess");
	w.strict = true;
	assert_int_equal(store_create(S, &w, o, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.message, "strict decoding error: "));
	assert_int_equal(jint(status, "code"), 400);
	w = write_to(&KIND_STORAGENODE, NULL);
	w.ret_warning = &warning;
	assert_int_equal(store_create(S, &w, o, &stored, &err), 0);
	assert_non_null(strstr(warning, "devicess"));
	assert_null(jget(stored, "spec", "devicess"));
	free(warning);

	jset(o, json_string("n2"), "metadata", "name");
	jset(o, json_string("bad"), "spec", "type");
	assert_int_equal(create(&KIND_STORAGENODE, json_incref(o), NULL), -EINVAL);
	assert_int_equal(jint(status, "code"), 422);
	assert_string_equal(jstr(json_array_get(jget(status, "details", "causes"), 0), "field"),
			    "spec.type");
}

static void test_update(void **state)
{
	cleanup_json json_t *o = created(&KIND_STORAGENODE, storagenode("n1")), *next = NULL,
			    *same = NULL, *labelled = NULL;
	cleanup_free char *uid = xstrdup(jstr(o, "metadata", "uid"));

	(void)state;
	jset(o, json_integer(2), "spec", "glusterfs", "zone");
	jset(o, json_integer(99), "metadata", "generation");
	jset(o, json_string("2000-01-01T00:00:00Z"), "metadata", "creationTimestamp");
	assert_int_equal(update(&KIND_STORAGENODE, o, NULL, &next), 0);
	assert_int_equal(jint(next, "metadata", "generation"), 2);
	assert_string_equal(jstr(next, "metadata", "creationTimestamp"), "2025-06-15T15:06:40Z");
	assert_string_equal(jstr(next, "metadata", "uid"), uid);

	/* the same again changes nothing, not even the version */
	assert_int_equal(update(&KIND_STORAGENODE, next, NULL, &same), 0);
	assert_string_equal(jstr(same, "metadata", "resourceVersion"),
			    jstr(next, "metadata", "resourceVersion"));
	/* metadata is no new generation */
	jset(next, json_string("b"), "metadata", "labels", "a");
	assert_int_equal(update(&KIND_STORAGENODE, next, NULL, &labelled), 0);
	assert_int_equal(jint(labelled, "metadata", "generation"), 2);
	assert_string_not_equal(jstr(labelled, "metadata", "resourceVersion"),
				jstr(next, "metadata", "resourceVersion"));
	/* what was read before is old */
	assert_int_equal(update(&KIND_STORAGENODE, o, NULL, NULL), -ESTALE);
	assert_string_equal(
		err.message,
		"Operation cannot be fulfilled on storagenodes.coreos.com \"n1\": the object "
		"has been modified; please apply your changes to the latest version and try "
		"again");
	assert_string_equal(jstr(status, "reason"), "Conflict");
}

static void test_update_preconditions(void **state)
{
	cleanup_json json_t *o = created(&KIND_STORAGENODE, storagenode("n1"));
	cleanup_json json_t *cm = created(&KIND_CONFIGMAP, configmap("c")), *next = NULL;

	(void)state;
	json_object_del(jget(o, "metadata"), "resourceVersion");
	assert_int_equal(update(&KIND_STORAGENODE, o, NULL, NULL), -EINVAL);
	assert_int_equal(jint(status, "code"), 422);
	/* built-in kinds may be written blindly */
	json_object_del(jget(cm, "metadata"), "resourceVersion");
	jset(cm, json_string("2"), "data", "a");
	assert_int_equal(update(&KIND_CONFIGMAP, cm, NULL, &next), 0);
	assert_null(jget(next, "metadata", "generation"));
	jset(cm, json_string("00000000-0000-4000-8000-000000000000"), "metadata", "uid");
	assert_int_equal(update(&KIND_CONFIGMAP, cm, NULL, NULL), -ESTALE);
	jset(cm, json_string("none"), "metadata", "name");
	assert_int_equal(update(&KIND_CONFIGMAP, cm, NULL, NULL), -ENOENT);
	assert_string_equal(err.message, "configmaps \"none\" not found");
}

static void test_status_apart(void **state)
{
	static const struct kind *const with_status[] = { &KIND_STORAGENODE, &KIND_PVC };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(with_status); i++) {
		const struct kind *kind = with_status[i];
		json_t *o = kind->custom
				    ? storagenode("x")
				    : quoted("{'metadata':{'name':'x'},'spec':{'accessModes':["
					     "'ReadWriteMany'],'resources':{'requests':{'storage':"
					     "'1Gi'}}}}");
		cleanup_json json_t *stored = NULL, *main = NULL, *sub = NULL;

		jset(o, json_string("Bound"), "status", "phase");
		stored = created(kind, o);
		assert_string_not_equal(jstr(stored, "status", "phase") ?: "", "Bound");
		/* the object ignores status */
		jset(stored, json_string(kind->custom ? "Ready" : "Bound"), "status", "phase");
		jset(stored, json_string("1"), "metadata", "labels", "l");
		assert_int_equal(update(kind, stored, NULL, &main), 0);
		assert_string_not_equal(jstr(main, "status", "phase") ?: "",
					jstr(stored, "status", "phase"));
		/* status ignores all but status */
		jset(stored, json_string(jstr(main, "metadata", "resourceVersion")), "metadata",
		     "resourceVersion");
		jset(stored, json_string("2"), "metadata", "labels", "l");
		if (kind->custom)
			jset(stored, json_integer(7), "spec", "glusterfs", "zone");
		else
			jset(stored, json_string("2Gi"), "spec", "resources", "requests",
			     "storage");
		assert_int_equal(update(kind, stored, "status", &sub), 0);
		assert_string_equal(jstr(sub, "status", "phase"), jstr(stored, "status", "phase"));
		assert_string_equal(jstr(sub, "metadata", "labels", "l"), "1");
		assert_true(json_equal(jget(sub, "spec"), jget(main, "spec")));
		assert_true(json_equal(jget(sub, "metadata", "generation") ?: json_true(),
				       jget(main, "metadata", "generation") ?: json_true()));
	}
}

static void test_finalizers(void **state)
{
	json_t *o = storagenode("n1");
	cleanup_json json_t *marked = NULL;

	(void)state;
	jset(o, quoted("['quartermaster.storage/node']"), "metadata", "finalizers");
	json_decref(created(&KIND_STORAGENODE, o));
	assert_int_equal(drop(&KIND_STORAGENODE, "n1", NULL), 1);
	marked = get(&KIND_STORAGENODE, "n1");
	assert_non_null(jstr(marked, "metadata", "deletionTimestamp"));
	assert_int_equal(jint(marked, "metadata", "generation"), 2);
	assert_int_equal(drop(&KIND_STORAGENODE, "n1", NULL), 1); /* again: no change */
	json_decref(marked);
	marked = get(&KIND_STORAGENODE, "n1");
	assert_int_equal(jint(marked, "metadata", "generation"), 2);
	/* no new finalizer now */
	json_array_append_new(jget(marked, "metadata", "finalizers"), json_string("a.b/c"));
	assert_int_equal(update(&KIND_STORAGENODE, marked, NULL, NULL), -EINVAL);
	assert_non_null(strstr(err.message, "no new finalizers can be added"));
	/* deletionTimestamp cannot be taken back */
	json_array_remove(jget(marked, "metadata", "finalizers"), 1);
	json_object_del(jget(marked, "metadata"), "deletionTimestamp");
	assert_int_equal(update(&KIND_STORAGENODE, marked, NULL, NULL), 0);
	json_array_clear(jget(marked, "metadata", "finalizers"));
	assert_int_equal(update(&KIND_STORAGENODE, marked, NULL, NULL), 0);
	assert_null(get(&KIND_STORAGENODE, "n1"));
}

static void test_delete_preconditions(void **state)
{
	cleanup_json json_t *o = created(&KIND_CONFIGMAP, configmap("c")), *result = NULL;
	struct kube_delete_options options = { .uid = "00000000-0000-4000-8000-000000000000" };
	struct store_write w = write_to(&KIND_CONFIGMAP, "c");

	(void)state;
	assert_int_equal(store_delete(S, &w, &options, NULL, &err), -ESTALE);
	options = (struct kube_delete_options){ .resource_version = "1" };
	w = write_to(&KIND_CONFIGMAP, "c");
	assert_int_equal(store_delete(S, &w, &options, NULL, &err), -ESTALE);
	options = (struct kube_delete_options){ .uid = jstr(o, "metadata", "uid"),
						.resource_version =
							jstr(o, "metadata", "resourceVersion") };
	w = write_to(&KIND_CONFIGMAP, "c");
	assert_int_equal(store_delete(S, &w, &options, &result, &err), 0);
	assert_string_equal(jstr(result, "status"), "Success");
	assert_string_equal(jstr(result, "details", "uid"), jstr(o, "metadata", "uid"));
	w = write_to(&KIND_CONFIGMAP, "c");
	assert_int_equal(store_delete(S, &w, NULL, NULL, &err), -ENOENT);
}

static void test_dry_run(void **state)
{
	struct store_write w = write_to(&KIND_CONFIGMAP, NULL);
	cleanup_json json_t *o = configmap("c"), *ret = NULL;
	int64_t before = store_version(S);

	(void)state;
	w.dry_run = true;
	assert_int_equal(store_create(S, &w, o, &ret, &err), 0);
	assert_non_null(jstr(ret, "metadata", "uid"));
	assert_null(get(&KIND_CONFIGMAP, "c"));
	assert_int_equal(store_version(S), before);
	json_decref(created(&KIND_CONFIGMAP, configmap("c")));
	w = write_to(&KIND_CONFIGMAP, "c");
	w.dry_run = true;
	assert_int_equal(store_delete(S, &w, NULL, NULL, &err), 0);
	json_decref(ret);
	ret = get(&KIND_CONFIGMAP, "c");
	assert_non_null(ret);
}

static void test_too_large(void **state)
{
	json_t *o = configmap("c");
	char *big = xmalloc(1600 * 1024);

	(void)state;
	memset(big, 'x', 1600 * 1024 - 1);
	big[1600 * 1024 - 1] = '\0';
	for (int i = 0; i < 2; i++) {
		char key[8];

		snprintf(key, sizeof(key), "k%d", i);
		jset(o, json_stringn(big, 800 * 1024), "data", key);
	}
	free(big);
	assert_int_equal(create(&KIND_CONFIGMAP, o, NULL), -E2BIG);
	assert_int_equal(jint(status, "code"), 413);
	assert_string_equal(jstr(status, "reason"), "RequestEntityTooLarge");
}

static int deny(const json_t *old, const json_t *new, void *userdata, struct error *e)
{
	(void)userdata;
	if (!old || !new)
		return 0;
	return error_set(e, EPERM, "not you");
}

static void test_guard(void **state)
{
	cleanup_json json_t *o = created(&KIND_CONFIGMAP, configmap("c"));
	struct store_write w = write_to(&KIND_CONFIGMAP, "c");

	(void)state;
	w.guard = deny;
	jset(o, json_string("2"), "data", "a");
	assert_int_equal(store_update(S, &w, o, NULL, &err), -EPERM);
	assert_int_equal(jint(status, "code"), 403);
	assert_int_equal(update(&KIND_CONFIGMAP, o, NULL, NULL), 0);
}

static void test_nulls(void **state)
{
	cleanup_json json_t *o =
		created(&KIND_CONFIGMAP, quoted("{'metadata':{'name':'c','labels':null,'"
						"annotations':{}},'data':{'a':null}}"));

	(void)state;
	assert_null(jget(o, "metadata", "labels"));
	assert_null(jget(o, "metadata", "annotations"));
	assert_null(jget(o, "data", "a"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_create),
		store_test(test_create_refusals),
		store_test(test_namespace_must_exist),
		store_test(test_generate_name),
		store_test(test_validation),
		store_test(test_update),
		store_test(test_update_preconditions),
		store_test(test_status_apart),
		store_test(test_finalizers),
		store_test(test_delete_preconditions),
		store_test(test_dry_run),
		store_test(test_too_large),
		store_test(test_guard),
		store_test(test_nulls),
	};
	int rc = cmocka_run_group_tests_name("api store", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
