/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "kube/kube.h"
#include "unit.h"

#include <inttypes.h>

static struct buf seen;

/* "+n1 ~n1 -n1" */
static void note(const struct kube_event *e, void *userdata)
{
	static const char marks[] = {
		[KUBE_ADDED] = '+', [KUBE_MODIFIED] = '~', [KUBE_DELETED] = '-'
	};

	(void)userdata;
	buf_printf(&seen, "%s%c%s", seen.len ? " " : "", marks[e->type],
		   jstr(e->object, "metadata", "name"));
}

static void assert_seen(const char *wanted)
{
	assert_string_equal(seen.data ? seen.data : "", wanted);
	buf_done(&seen);
	seen = (struct buf){ 0 };
}

static struct store_watch *watch(struct store_query q, const char *version)
{
	struct store_watch *w;

	if (!q.kind)
		q.kind = &KIND_CONFIGMAP;
	if (store_watch_start(S, &q, version, note, NULL, &w, &err) < 0)
		fail_msg("%s", err.message);
	return w;
}

static void make(const char *name, const char *labels)
{
	json_decref(created(&KIND_CONFIGMAP,
			    quoted("{'metadata':{'name':'%s','labels':%s}}", name, labels)));
}

static void relabel(const char *name, const char *labels)
{
	assert_int_equal(patch(&KIND_CONFIGMAP, name, NULL,
			       quoted("{'metadata':{'labels':%s}}", labels), NULL),
			 0);
}

static void test_live(void **state)
{
	struct store_watch *w;

	(void)state;
	make("a", "{}");
	w = watch((struct store_query){ .ns = "default" }, "");
	assert_seen("+a");
	make("b", "{}");
	relabel("b", "{'x':'1'}");
	relabel("b", "{'x':'1'}"); /* no change, no event */
	assert_int_equal(drop(&KIND_CONFIGMAP, "a", NULL), 0);
	json_decref(created(&KIND_STORAGENODE, storagenode("other-kind")));
	assert_seen("+b ~b -a");
	store_watch_stop(w);
	make("c", "{}");
	assert_seen("");
	w = watch((struct store_query){ .ns = "kube-system" }, "0");
	make("d", "{}");
	assert_seen("");
	store_watch_stop(w);
}

static void test_from_version(void **state)
{
	char version[24];
	struct store_watch *w;

	(void)state;
	make("a", "{}");
	snprintf(version, sizeof(version), "%" PRId64, store_version(S));
	make("b", "{}");
	assert_int_equal(drop(&KIND_CONFIGMAP, "a", NULL), 0);
	w = watch((struct store_query){ 0 }, version);
	assert_seen("+b -a");
	make("c", "{}");
	assert_seen("+c");
	store_watch_stop(w);
}

static void test_selector(void **state)
{
	struct store_watch *w;
	char version[24];

	(void)state;
	make("a", "{'x':'1'}");
	snprintf(version, sizeof(version), "%" PRId64, store_version(S));
	w = watch((struct store_query){ .labels = "x=1" }, "");
	make("b", "{}");
	relabel("b", "{'x':'1'}"); /* comes into view */
	relabel("b", "{'y':'1'}");
	relabel("b", "{'x':'2'}"); /* leaves it */
	relabel("b", "{'x':'3'}");
	assert_int_equal(drop(&KIND_CONFIGMAP, "b", NULL), 0);
	assert_int_equal(drop(&KIND_CONFIGMAP, "a", NULL), 0);
	assert_seen("+a +b ~b -b -a");
	store_watch_stop(w);
	/* history tells the same */
	w = watch((struct store_query){ .labels = "x=1" }, version);
	assert_seen("+b ~b -b -a");
	store_watch_stop(w);
	w = watch((struct store_query){ .fields = "metadata.name=b" }, version);
	assert_seen("+b ~b ~b ~b ~b -b");
	store_watch_stop(w);
}

static int try_watch(const char *version)
{
	struct store_query q = { .kind = &KIND_CONFIGMAP };
	struct store_watch *w;
	int rc = store_watch_start(S, &q, version, note, NULL, &w, &err);

	if (rc >= 0)
		store_watch_stop(w);
	buf_done(&seen);
	seen = (struct buf){ 0 };
	return rc;
}

static void test_too_old(void **state)
{
	char version[24];

	(void)state;
	make("a", "{}");
	snprintf(version, sizeof(version), "%" PRId64, store_version(S));
	for (int i = 0; i < 90; i++)
		relabel("a", i % 2 ? "{'x':'1'}" : "{'x':'2'}");
	assert_int_equal(try_watch(version), 0);
	for (int i = 0; i < 50; i++)
		relabel("a", i % 2 ? "{'x':'1'}" : "{'x':'2'}");
	assert_int_equal(try_watch(version), -EIDRM);
	assert_non_null(strstr(err.message, "too old resource version: "));
	assert_int_equal(try_watch("999999"), -EIDRM); /* of another store */
	assert_int_equal(try_watch("abc"), -EINVAL);
	assert_int_equal(try_watch("-5"), -EINVAL);
}

static void test_pages_show_one_moment(void **state)
{
	struct store_query q = { .kind = &KIND_CONFIGMAP, .ns = "default", .limit = 2 };
	cleanup_json json_t *one = NULL, *two = NULL, *three = NULL;

	(void)state;
	make("a", "{}");
	make("b", "{}");
	make("d", "{}");
	make("e", "{'v':'old'}");
	make("f", "{}");
	assert_int_equal(store_list(S, &q, &one, &err), 0);
	assert_int_equal(json_array_size(jget(one, "items")), 2);
	make("c", "{}"); /* came later: not in this list */
	assert_int_equal(drop(&KIND_CONFIGMAP, "d", NULL), 0);
	relabel("e", "{'v':'new'}");
	assert_int_equal(drop(&KIND_CONFIGMAP, "f", NULL), 0);
	make("f", "{'v':'reborn'}");
	q.continue_token = jstr(one, "metadata", "continue");
	assert_int_equal(store_list(S, &q, &two, &err), 0);
	assert_string_equal(jstr(json_array_get(jget(two, "items"), 0), "metadata", "name"), "d");
	assert_string_equal(jstr(json_array_get(jget(two, "items"), 1), "metadata", "labels", "v"),
			    "old");
	assert_string_equal(jstr(two, "metadata", "resourceVersion"),
			    jstr(one, "metadata", "resourceVersion"));
	q.continue_token = jstr(two, "metadata", "continue");
	assert_int_equal(store_list(S, &q, &three, &err), 0);
	assert_int_equal(json_array_size(jget(three, "items")), 1);
	assert_null(jget(json_array_get(jget(three, "items"), 0), "metadata", "labels"));
	assert_null(jget(three, "metadata", "continue"));
	/* too old now */
	for (int i = 0; i < 150; i++)
		relabel("a", i % 2 ? "{'x':'1'}" : "{'x':'2'}");
	json_decref(three);
	three = NULL;
	assert_int_equal(store_list(S, &q, &three, &err), -EIDRM);
	q.continue_token = "nonsense";
	assert_int_equal(store_list(S, &q, &three, &err), -EINVAL);
}

static void test_list_across_namespaces(void **state)
{
	struct store_query q = { .kind = &KIND_CONFIGMAP, .limit = 1 };
	cleanup_json json_t *one = NULL, *two = NULL;
	struct store_write w = write_to(&KIND_CONFIGMAP, NULL);
	cleanup_json json_t *o = configmap("z");

	(void)state;
	make("a", "{}");
	w.ns = "kube-system";
	assert_int_equal(store_create(S, &w, o, NULL, &err), 0);
	assert_int_equal(store_list(S, &q, &one, &err), 0);
	q.continue_token = jstr(one, "metadata", "continue");
	assert_int_equal(store_list(S, &q, &two, &err), 0);
	assert_string_equal(jstr(json_array_get(jget(two, "items"), 0), "metadata", "name"), "z");
	assert_string_equal(jstr(two, "kind"), "ConfigMapList");
	assert_string_equal(jstr(two, "apiVersion"), "v1");
}

static void test_client(void **state)
{
	struct kube *k = store_client(S, "client");
	cleanup_json json_t *o = NULL, *items = NULL;
	cleanup_free char *version = NULL;
	const struct kube_selector sel = { .labels = "x" };
	struct kube_watch *w;
	struct kube_event e;

	(void)state;
	assert_int_equal(k->ops->watch(k, &KIND_CONFIGMAP, NULL, &sel, "", &w, &err), 0);
	assert_int_equal(k->ops->watch_next(w, 10, &e, &err), -ETIMEDOUT);
	o = quoted("{'metadata':{'name':'a','namespace':'default','labels':{'x':'1'}}}");
	assert_int_equal(kube_create(k, &KIND_CONFIGMAP, o, NULL, &err), 0);
	assert_int_equal(k->ops->watch_next(w, 1000, &e, &err), 1);
	assert_int_equal(e.type, KUBE_ADDED);
	/* the event's object is the reader's own */
	jset(e.object, json_string("2"), "data", "b");
	json_decref(e.object);
	assert_int_equal(kube_list(k, &KIND_CONFIGMAP, "default", &sel, &items, &version, &err), 0);
	assert_int_equal(json_array_size(items), 1);
	assert_null(jget(json_array_get(items, 0), "data"));
	assert_int_equal(kube_patch(k, &KIND_CONFIGMAP, "default", "a", NULL, KUBE_PATCH_MERGE,
				    jget(o, "metadata"), NULL, &err),
			 0);
	assert_int_equal(kube_delete(k, &KIND_CONFIGMAP, "default", "a", NULL, &err), 0);
	assert_int_equal(k->ops->watch_next(w, 1000, &e, &err), 1);
	assert_int_equal(e.type, KUBE_DELETED);
	json_decref(e.object);
	k->ops->watch_cancel(w);
	assert_int_equal(k->ops->watch_next(w, 1000, &e, &err), 0);
	k->ops->watch_close(w);
	kube_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		store_test(test_live),
		store_test(test_from_version),
		store_test(test_selector),
		store_test(test_too_old),
		store_test(test_pages_show_one_moment),
		store_test(test_list_across_namespaces),
		store_test(test_client),
	};
	int rc = cmocka_run_group_tests_name("api watch", tests, NULL, NULL);

	json_decref(status);
	return rc;
}
