/* SPDX-License-Identifier: Apache-2.0 */
/* What the node service says of a pod's volume becomes an Event of that pod. */
#include "help.h"

#include "api/store.h"
#include "cli/pod_events.h"

static struct store *store;
static struct kube *kube;

static int setup(void **state)
{
	struct store_options options = { .path = ":memory:", .clock = &clock_real };

	if (store_open(&options, &store, NULL) < 0 || store_bootstrap(store, NULL) < 0)
		return -1;
	kube = store_client(store, "quartermaster");
	return 0;
}

static int teardown(void **state)
{
	kube_free(kube);
	store_close(store);
	return 0;
}

static json_t *one(const char *list, const char *key, const char *value)
{
	json_t *what = json_pack("{s:[{s:s, s:s, s:s, s:s}]}", list, "name", "p", "namespace",
				 "default", "uid", "u-1", key, value);

	assert_non_null(what);
	return what;
}

/* The only one of that reason; new reference. */
static json_t *event_of(const char *reason)
{
	cleanup_json json_t *all = NULL;
	json_t *event, *found = NULL;
	size_t i;

	assert_int_equal(kube_list(kube, &KIND_EVENT, "default", NULL, &all, NULL, NULL), 0);
	json_array_foreach (all, i, event)
		if (streq(jstr(event, "reason"), reason)) {
			assert_null(found);
			found = json_incref(event);
		}
	return found;
}

static void assert_of_pod(const json_t *event, const char *message)
{
	assert_non_null(event);
	assert_string_equal(jstr(event, "type"), "Warning");
	assert_string_equal(jstr(event, "involvedObject", "kind"), "Pod");
	assert_string_equal(jstr(event, "involvedObject", "name"), "p");
	assert_string_equal(jstr(event, "involvedObject", "namespace"), "default");
	assert_string_equal(jstr(event, "involvedObject", "uid"), "u-1");
	assert_non_null(strstr(jstr(event, "message"), message));
}

/* Said again it is counted, and no second one. */
static void test_ungrown(void **state)
{
	cleanup_json json_t *what = one("ungrown", "message", "it could not be grown: no room");

	for (int i = 1; i <= 2; i++) {
		cleanup_json json_t *event = NULL;

		assert_int_equal(pod_events_tell(kube, "default", what, NULL), 0);
		event = event_of("FileSystemResizeFailed");
		assert_of_pod(event, "could not be grown: no room");
		assert_int_equal(jint(event, "count"), i);
	}
}

static void test_lost(void **state)
{
	cleanup_json json_t *what = one("lost", "volume", "v1.pool.f.pvc-1"), *event = NULL;

	assert_int_equal(pod_events_tell(kube, "default", what, NULL), 0);
	event = event_of("VolumeClientDied");
	assert_of_pod(event, "v1.pool.f.pvc-1");
}

/* What says nothing makes none. */
static void test_nothing(void **state)
{
	cleanup_json json_t *what = one("ungrown", "volume", "v"), *none = json_object();
	cleanup_json json_t *before = NULL, *after = NULL;

	kube_list(kube, &KIND_EVENT, "default", NULL, &before, NULL, NULL);
	assert_int_equal(pod_events_tell(kube, "default", what, NULL), 0);
	assert_int_equal(pod_events_tell(kube, "default", none, NULL), 0);
	kube_list(kube, &KIND_EVENT, "default", NULL, &after, NULL, NULL);
	assert_int_equal(json_array_size(before), json_array_size(after));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ungrown),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
