/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "kube/cache.h"

static const struct kind thing = {
	.group = "", .version = "v1", .kind = "Thing", .plural = "things", .namespaced = true
};

struct heard {
	int added, modified, gone;
	char last[64];
};

static void hear(const json_t *old, const json_t *object, void *userdata)
{
	struct heard *h = userdata;

	if (!object)
		h->gone++;
	else if (!old)
		h->added++;
	else
		h->modified++;
	snprintf(h->last, sizeof(h->last), "%s", object_name(object ? object : old));
}

static json_t *object(const char *name, int version)
{
	return json_pack("{s{ss ss so s[s]} si}", "metadata", "name", name, "namespace", "n",
			 "resourceVersion", json_sprintf("%d", version), "managedFields", "x",
			 "value", version);
}

static void event(struct cache *c, enum kube_event_type type, const char *name, int version)
{
	cleanup_json json_t *o = object(name, version);

	cache_event(c, &(struct kube_event){ type, o });
}

static void item(struct cache *c, const char *name, int version)
{
	cleanup_json json_t *o = object(name, version);

	cache_list_item(c, o);
}

static void learned(struct cache *c, const char *name, int version)
{
	cleanup_json json_t *o = object(name, version);

	cache_learned(c, o);
}

/* The value that the cache has for a name, -1 for none. */
static int value(struct cache *c, const char *name)
{
	cleanup_json json_t *o = cache_get(c, "n", name);

	return o ? (int)jint(o, "value") : -1;
}

static void setup(struct cache *c, struct heard *h)
{
	*c = (struct cache){ .kind = &thing, .changed = hear, .userdata = h, .wants_old = true };
	cache_init(c);
	cache_list_begin(c);
	item(c, "a", 1);
	item(c, "b", 2);
	cache_list_end(c, "5");
}

static void list_and_events(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;
	cleanup_json json_t *o = NULL;

	setup(&c, &h);
	assert_int_equal(h.added, 2);
	assert_string_equal(c.version, "5");
	event(&c, KUBE_ADDED, "c", 6);
	event(&c, KUBE_MODIFIED, "a", 7);
	event(&c, KUBE_DELETED, "b", 8);
	event(&c, KUBE_BOOKMARK, "", 20);
	assert_int_equal(h.added, 3);
	assert_int_equal(h.modified, 1);
	assert_int_equal(h.gone, 1);
	assert_string_equal(h.last, "b");
	assert_int_equal(value(&c, "a"), 7);
	assert_int_equal(value(&c, "b"), -1);
	assert_int_equal(value(&c, "c"), 6);
	assert_string_equal(c.version, "20");
	o = cache_get(&c, "n", "a");
	assert_null(jget(o, "metadata", "managedFields"));
}

static void repeated_events(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	event(&c, KUBE_MODIFIED, "a", 7);
	event(&c, KUBE_DELETED, "b", 8);
	event(&c, KUBE_MODIFIED, "b", 3); /* from before its deletion */
	assert_int_equal(value(&c, "b"), -1);
	event(&c, KUBE_MODIFIED, "a", 6);
	assert_int_equal(value(&c, "a"), 7);
	assert_string_equal(c.version, "8");
}

static void relist(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	h = (struct heard){ 0 };
	cache_list_begin(&c);
	item(&c, "b", 2);
	item(&c, "d", 9);
	cache_list_end(&c, "10");
	assert_int_equal(h.added, 1); /* d; b is as it was */
	assert_int_equal(h.modified, 0);
	assert_int_equal(h.gone, 1); /* a, while nobody looked */
	assert_string_equal(h.last, "a");
	assert_int_equal(cache_count(&c), 2);
}

static void learned_is_newer(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	learned(&c, "a", 9);
	learned(&c, "new", 10);
	assert_int_equal(value(&c, "a"), 9);
	assert_int_equal(value(&c, "new"), 10);
	event(&c, KUBE_MODIFIED, "a", 6); /* lags */
	assert_int_equal(value(&c, "a"), 9);
	learned(&c, "a", 8);
	assert_int_equal(value(&c, "a"), 9);
	event(&c, KUBE_DELETED, "a", 12);
	assert_int_equal(value(&c, "a"), -1);
	learned(&c, "a", 11); /* the write's answer came later than the news of the deletion */
	assert_int_equal(value(&c, "a"), -1);
}

static void learned_during_a_list(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	cache_list_begin(&c);
	learned(&c, "old", 8); /* written and deleted again before the list's snapshot */
	learned(&c, "new", 15); /* written after it */
	learned(&c, "a", 16);
	item(&c, "a", 1);
	cache_list_end(&c, "10");
	assert_int_equal(value(&c, "old"), -1);
	assert_int_equal(value(&c, "new"), 15);
	assert_int_equal(value(&c, "a"), 16);
	assert_int_equal(value(&c, "b"), -1);
}

static void learned_is_told_by_a_list(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	learned(&c, "new", 8);
	h = (struct heard){ 0 };
	cache_list_begin(&c); /* the watch broke before it told of the write */
	item(&c, "a", 1);
	item(&c, "b", 2);
	item(&c, "new", 8);
	cache_list_end(&c, "10");
	assert_string_equal(h.last, "new");
	assert_int_equal(h.added + h.modified, 1);
	h = (struct heard){ 0 };
	cache_list_begin(&c); /* and once is enough */
	item(&c, "new", 8);
	cache_list_end(&c, "11");
	assert_int_equal(h.added + h.modified, 0);
}

static void recreated(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	learned(&c, "a", 9); /* deleted at 8 and made anew by us, of which we know first */
	event(&c, KUBE_DELETED, "a", 8);
	assert_int_equal(value(&c, "a"), 9);
}

static void with_selector(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;

	setup(&c, &h);
	c.selector.labels = "x=y";
	learned(&c, "other", 9);
	assert_int_equal(value(&c, "other"), -1);
	learned(&c, "a", 9);
	assert_int_equal(value(&c, "a"), 9);
}

static int count_until_two(const json_t *o, void *userdata)
{
	return ++*(int *)userdata == 2 ? 42 : 0;
}

static void each(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c;
	int seen = 0;

	setup(&c, &h);
	event(&c, KUBE_ADDED, "c", 6);
	assert_int_equal(cache_each(&c, "n", count_until_two, &seen), 42);
	seen = 5;
	assert_int_equal(cache_each(&c, NULL, count_until_two, &seen), 0);
	assert_int_equal(seen, 8);
	seen = 5;
	assert_int_equal(cache_each(&c, "nn", count_until_two, &seen), 0);
	assert_int_equal(seen, 5);
}

static bool is_even(const struct kind *kind, const json_t *o)
{
	return strtoul(object_version(o), NULL, 10) % 2 == 0;
}

static int add_version(const json_t *o, void *userdata)
{
	*(int *)userdata += atoi(object_version(o));
	return 0;
}

/* The mark follows the object: gained and lost with what an event or a write says. */
static void marked(void **state)
{
	struct heard h = { 0 };
	cleanup_with(cache_done) struct cache c = { 0 };
	int sum = 0;

	setup(&c, &h);
	c.mark = is_even;
	event(&c, KUBE_ADDED, "x", 6);
	event(&c, KUBE_ADDED, "y", 8);
	event(&c, KUBE_ADDED, "z", 9);
	cache_each_marked(&c, NULL, add_version, &sum);
	assert_int_equal(sum, 6 + 8);
	event(&c, KUBE_MODIFIED, "x", 11);
	learned(&c, "z", 12);
	sum = 0;
	cache_each_marked(&c, "n", add_version, &sum);
	assert_int_equal(sum, 8 + 12);
	sum = 0;
	cache_each_marked(&c, "nn", add_version, &sum);
	assert_int_equal(sum, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_and_events),
		cmocka_unit_test(repeated_events),
		cmocka_unit_test(relist),
		cmocka_unit_test(learned_is_newer),
		cmocka_unit_test(learned_during_a_list),
		cmocka_unit_test(recreated),
		cmocka_unit_test(learned_is_told_by_a_list),
		cmocka_unit_test(with_selector),
		cmocka_unit_test(each),
		cmocka_unit_test(marked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
