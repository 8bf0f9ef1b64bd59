/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/store.h"
#include "base/log.h"
#include "base/rand.h"
#include "kube/controller.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

/* The runner with its threads, on a store in memory whose watches break all the time. */
#define OBJECTS 100

struct test {
	struct store *store;
	struct kube *direct; /* unharmed */
	struct kube flaky; /* what the runner gets */
	atomic_int watches, events;
	atomic_int busy[OBJECTS]; /* keys in work */
	atomic_int twice;
	atomic_int seen[OBJECTS]; /* the value that the loop saw last, -1: gone */
	atomic_int failures; /* that the loop still has to make */
	atomic_int calls;
	atomic_int enqueued;
};
static struct test t;

/* ---- a client whose watches end early, in every way ---------------------------------------------- */

static int flaky_list(struct kube *k, const struct kind *kind, const char *ns,
		      const struct kube_selector *sel, json_t **ret, char **ret_version,
		      struct error *err)
{
	return t.direct->ops->list(t.direct, kind, ns, sel, ret, ret_version, err);
}

static int flaky_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		     json_t **ret, struct error *err)
{
	return t.direct->ops->get(t.direct, kind, ns, name, ret, err);
}

static int flaky_watch(struct kube *k, const struct kind *kind, const char *ns,
		       const struct kube_selector *sel, const char *version,
		       struct kube_watch **ret, struct error *err)
{
	int n = atomic_fetch_add(&t.watches, 1);

	if (n % 5 == 1)
		return -EAGAIN;
	if (n % 7 == 2)
		return -EIDRM;
	return t.direct->ops->watch(t.direct, kind, ns, sel, version, ret, err);
}

static int flaky_next(struct kube_watch *w, int timeout_ms, struct kube_event *ret,
		      struct error *err)
{
	int n = atomic_fetch_add(&t.events, 1), rc;

	if (n % 13 == 12)
		return 0;
	if (n % 31 == 30)
		return -EIDRM;
	rc = t.direct->ops->watch_next(w, timeout_ms, ret, err);
	if (rc == 1 && n % 17 == 16) { /* came, but broke off while it was read */
		json_decref(ret->object);
		return -EAGAIN;
	}
	return rc;
}

static void flaky_cancel(struct kube_watch *w)
{
	t.direct->ops->watch_cancel(w);
}

static void flaky_close(struct kube_watch *w)
{
	t.direct->ops->watch_close(w);
}

static const struct kube_ops flaky_ops = { .get = flaky_get,
					   .list = flaky_list,
					   .watch = flaky_watch,
					   .watch_next = flaky_next,
					   .watch_cancel = flaky_cancel,
					   .watch_close = flaky_close };

/* ---- the loop -------------------------------------------------------------------------------------- */

static int reconcile(struct reconcile *r, const char *key)
{
	cleanup_json json_t *o = NULL;
	char ns[254], name[254];
	int i;

	key_split(key, ns, name);
	atomic_fetch_add(&t.calls, 1);
	if (streq(name, "extra")) {
		atomic_fetch_add(&t.enqueued, 1);
		return 0;
	}
	i = atoi(name + 1);
	if (atomic_fetch_add(&t.busy[i], 1) != 0)
		atomic_store(&t.twice, 1);
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	o = reader_get(r->cache, &KIND_CONFIGMAP, ns, name);
	atomic_store(&t.seen[i], o ? atoi(jstr(o, "data", "value")) : -1);
	atomic_fetch_sub(&t.busy[i], 1);
	if (atomic_fetch_sub(&t.failures, 1) > 0)
		return error_set(&r->error, EIO, "not yet");
	return 0;
}

static const struct controller_watch watches[] = { { .kind = &KIND_CONFIGMAP }, { 0 } };
static const struct controller loop = { "loop", watches, 3, reconcile };
static const struct controller *const loops[] = { &loop, NULL };

static void put(int i, int value)
{
	cleanup_free char *name = xasprintf("o%d", i);
	cleanup_free char *text = xasprintf("%d", value);
	cleanup_json json_t *o =
		json_pack("{ss ss s{ss ss} s{ss}}", "apiVersion", "v1", "kind", "ConfigMap",
			  "metadata", "name", name, "namespace", "default", "data", "value", text);
	cleanup_json json_t *patch = json_pack("{s{ss}}", "data", "value", text);

	if (kube_create(t.direct, &KIND_CONFIGMAP, o, NULL, NULL) == -EEXIST)
		assert_int_equal(kube_patch(t.direct, &KIND_CONFIGMAP, "default", name, NULL,
					    KUBE_PATCH_MERGE, patch, NULL, NULL),
				 0);
}

static bool all_seen(const int *wanted)
{
	for (int i = 0; i < OBJECTS; i++) {
		if (atomic_load(&t.seen[i]) != wanted[i])
			return false;
	}
	return true;
}

static bool wait_for(bool (*done)(const void *arg), const void *arg)
{
	for (int i = 0; i < 1500; i++) {
		if (done(arg))
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return false;
}

static bool seen_as(const void *arg)
{
	return all_seen(arg);
}

static bool synced(const void *arg)
{
	return runner_synced((struct runner *)arg);
}

static bool extra_came(const void *arg)
{
	return atomic_load(&t.enqueued) >= 2;
}

static void follows_everything(void **state)
{
	struct runner_options options = { .kube = &t.flaky, .controllers = loops };
	struct prng p = { 1 };
	struct runner *r;
	int wanted[OBJECTS];

	for (int i = 0; i < OBJECTS; i++)
		put(i, wanted[i] = 0);
	atomic_store(&t.failures, 50);
	assert_int_equal(runner_start(&options, &r, NULL), 0);
	assert_true(wait_for(synced, r));
	for (int round = 1; round < 400; round++) {
		int i = (int)prng_below(&p, OBJECTS);

		if (prng_below(&p, 4) == 0) {
			cleanup_free char *name = xasprintf("o%d", i);

			kube_delete(t.direct, &KIND_CONFIGMAP, "default", name, NULL, NULL);
			wanted[i] = -1;
		} else {
			put(i, wanted[i] = round);
		}
		nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
	}
	assert_true(wait_for(seen_as, wanted));
	assert_int_equal(atomic_load(&t.twice), 0);
	assert_true(atomic_load(&t.watches) > 5);
	runner_enqueue(r, "loop", "default/extra", 0);
	runner_enqueue(r, "nobody", "default/extra", 0);
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	runner_enqueue(r, "loop", "default/extra", 30);
	assert_true(wait_for(extra_came, NULL));
	runner_stop(r);
}

/* ---- selectors that come and go ----------------------------------------------------------------------- */

static int count_one(const json_t *object, void *userdata)
{
	++*(int *)userdata;
	return 0;
}

static int in_cache(struct runner *r)
{
	int count = 0;

	reader_each(runner_cache(r), &KIND_CONFIGMAP, "default", count_one, &count);
	return count;
}

static bool saw_first(const void *arg)
{
	return atomic_load(&t.seen[0]) == *(const int *)arg;
}

static void follows_what_is_named(void **state)
{
	static const struct controller_watch named_only[] = {
		{ .kind = &KIND_CONFIGMAP, .follows = true }, { 0 }
	};
	static const struct controller following = { "loop", named_only, 1, reconcile };
	static const struct controller *const one[] = { &following, NULL };
	static const struct kube_selector named[] = { { .fields = "metadata.name=o0" },
						      { .fields = "metadata.name=o1" },
						      { 0 } };
	struct runner_options options = { .kube = &t.flaky, .controllers = one };
	int values[] = { 1001, 1002 };
	struct runner *r;

	for (int i = 0; i < OBJECTS; i++)
		put(i, 1000);
	atomic_store(&t.failures, 0);
	assert_int_equal(runner_start(&options, &r, NULL), 0);
	assert_int_equal(in_cache(r), 0);
	assert_true(runner_follow(r, &KIND_CONFIGMAP, named, 2, NULL) >= 0);
	assert_true(wait_for(synced, r));
	assert_int_equal(runner_follow(r, &KIND_CONFIGMAP, named, 2, NULL), 1);
	assert_int_equal(in_cache(r), 2);
	put(0, values[0]);
	assert_true(wait_for(saw_first, &values[0]));
	/* all of them: those that are named too are read once */
	assert_true(runner_follow(r, &KIND_CONFIGMAP, named, 3, NULL) >= 0);
	assert_true(wait_for(synced, r));
	assert_int_equal(in_cache(r), OBJECTS);
	/* and the first alone again */
	assert_int_equal(runner_follow(r, &KIND_CONFIGMAP, named, 1, NULL), 1);
	assert_int_equal(in_cache(r), 1);
	put(0, values[1]);
	assert_true(wait_for(saw_first, &values[1]));
	runner_stop(r);
}

/* ---- an end while there is work -------------------------------------------------------------------- */

static pthread_key_t quiet_key;
static atomic_bool quiet_began, quiet_ended, chatting;

static void quiet_ends(void *value)
{
	atomic_store(&quiet_ended, true);
}

static int quiet_reconcile(struct reconcile *r, const char *key)
{
	pthread_setspecific(quiet_key, &quiet_key);
	atomic_store(&quiet_began, true);
	return 0;
}

/* Goes on putting keys on the other's queue after that one's thread has ended. */
static int chatty_reconcile(struct reconcile *r, const char *key)
{
	atomic_store(&chatting, true);
	r->enqueue(r, "quiet", "default/later", 60000);
	for (int after = 0; after < 1000; after += atomic_load(&quiet_ended)) {
		r->enqueue(r, "quiet", "default/later still", 90000);
		sched_yield();
	}
	return 0;
}

static bool is_true(const void *arg)
{
	return atomic_load((atomic_bool *)arg);
}

static void ends_while_loops_talk(void **state)
{
	static const struct controller_watch none[] = { { 0 } };
	static const struct controller quiet = { "quiet", none, 1, quiet_reconcile };
	static const struct controller chatty = { "chatty", none, 1, chatty_reconcile };
	static const struct controller *const both[] = { &quiet, &chatty, NULL };
	struct runner_options options = { .kube = t.direct, .controllers = both };
	struct runner *r;

	assert_int_equal(pthread_key_create(&quiet_key, quiet_ends), 0);
	assert_int_equal(runner_start(&options, &r, NULL), 0);
	runner_enqueue(r, "quiet", "default/now", 0);
	runner_enqueue(r, "chatty", "default/now", 0);
	assert_true(wait_for(is_true, &quiet_began));
	assert_true(wait_for(is_true, &chatting));
	runner_stop(r); /* the sanitizers, and valgrind, see what it frees too early */
	assert_true(atomic_load(&quiet_ended));
	pthread_key_delete(quiet_key);
}

/* ---- leases ------------------------------------------------------------------------------------------ */

static struct lease *lease_of(const char *identity)
{
	struct lease_options options = { .kube = t.direct,
					 .ns = "default",
					 .name = "l",
					 .identity = identity,
					 .duration_s = 1 };
	struct lease *l;

	assert_int_equal(lease_start(&options, &l, NULL), 0);
	return l;
}

static bool is_held(const void *arg)
{
	return lease_held((struct lease *)arg, NULL);
}

static void one_holds_the_lease(void **state)
{
	struct lease *a = lease_of("a"), *b;
	int64_t epoch_a = 0, epoch_b = 0;

	assert_true(wait_for(is_held, a));
	b = lease_of("b");
	for (int i = 0; i < 20; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		assert_true(lease_held(a, &epoch_a));
		assert_false(lease_held(b, NULL));
	}
	lease_stop(a, true);
	assert_true(wait_for(is_held, b));
	lease_held(b, &epoch_b);
	assert_int_equal(epoch_b, epoch_a + 1);
	lease_stop(b, false);
	a = lease_of("c"); /* b gave nothing back: it has to be waited for */
	assert_false(lease_held(a, NULL));
	assert_true(wait_for(is_held, a));
	lease_held(a, &epoch_a);
	assert_int_equal(epoch_a, epoch_b + 1);
	lease_stop(a, true);

	/* deleted: whoever makes it again is not taken for one from before */
	assert_int_equal(kube_delete(t.direct, &KIND_LEASE, "default", "l", NULL, NULL), 0);
	b = lease_of("d");
	assert_true(wait_for(is_held, b));
	lease_held(b, &epoch_b);
	assert_true(epoch_b > epoch_a);
	lease_stop(b, true);
}

/* A renewal that is answered late, once: its holder has lost the lease by then, and has it again at once. */
static atomic_bool late;

static int late_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		    json_t **ret, struct error *err)
{
	return t.direct->ops->get(t.direct, kind, ns, name, ret, err);
}

static int late_create(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		       struct error *err)
{
	return t.direct->ops->create(t.direct, kind, object, ret, err);
}

static int late_update(struct kube *k, const struct kind *kind, const char *sub,
		       const json_t *object, json_t **ret, struct error *err)
{
	if (atomic_exchange(&late, false))
		nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
	return t.direct->ops->update(t.direct, kind, sub, object, ret, err);
}

static atomic_int gained, lost;

static void count_changes(bool held, int64_t epoch, void *userdata)
{
	atomic_fetch_add(held ? &gained : &lost, 1);
}

static bool gained_twice(const void *arg)
{
	return atomic_load(&gained) == 2;
}

static void a_late_renewal_is_told(void **state)
{
	static const struct kube_ops ops = { .get = late_get,
					     .create = late_create,
					     .update = late_update };
	struct kube slow = { .ops = &ops, .clock = &clock_real };
	struct lease_options options = { .kube = &slow,
					 .ns = "default",
					 .name = "late",
					 .identity = "a",
					 .duration_s = 1,
					 .changed = count_changes };
	struct lease *l;

	assert_int_equal(lease_start(&options, &l, NULL), 0);
	assert_true(wait_for(is_held, l));
	atomic_store(&late, true);
	assert_true(wait_for(gained_twice, NULL));
	assert_true(atomic_load(&lost) >= 1);
	lease_stop(l, true);
}

/* ---- events ------------------------------------------------------------------------------------------ */

static void events_count(void **state)
{
	cleanup_json json_t *o =
		quoted("{'metadata':{'name':'x','namespace':'default','uid':'u'}}");
	cleanup_json json_t *items = NULL;
	json_t *e;

	for (int i = 0; i < 3; i++)
		event_record(t.direct, &KIND_CONFIGMAP, o, "test", true, "Failed", "no %s", "luck");
	event_record(t.direct, &KIND_CONFIGMAP, o, "test", false, "Done", "all is well");
	assert_int_equal(kube_list(t.direct, &KIND_EVENT, "default", NULL, &items, NULL, NULL), 0);
	assert_int_equal(json_array_size(items), 2);
	e = json_array_get(items, 0);
	if (!streq(jstr(e, "reason"), "Failed"))
		e = json_array_get(items, 1);
	assert_int_equal(jint(e, "count"), 3);
	assert_string_equal(jstr(e, "type"), "Warning");
	assert_string_equal(jstr(e, "message"), "no luck");
	assert_string_equal(jstr(e, "involvedObject", "name"), "x");
}

static int start(void **state)
{
	struct store_options options = { .path = ":memory:", .clock = &clock_real };

	if (store_open(&options, &t.store, NULL) < 0 || store_bootstrap(t.store, NULL) < 0)
		return -1;
	t.direct = store_client(t.store, "test");
	t.flaky = (struct kube){ .ops = &flaky_ops, .clock = &clock_real };
	return 0;
}

static int stop(void **state)
{
	kube_free(t.direct);
	store_close(t.store);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_everything),	  cmocka_unit_test(follows_what_is_named),
		cmocka_unit_test(ends_while_loops_talk),  cmocka_unit_test(one_holds_the_lease),
		cmocka_unit_test(a_late_renewal_is_told), cmocka_unit_test(events_count),
	};

	log_init("test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, start, stop);
}
