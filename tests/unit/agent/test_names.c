/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An agent whose cache has stood still: pool p-1 was deleted, and another one has its name by now.
 * What it decided for the old one is neither said of the new one nor done to its volume. The API is
 * the real store.
 */
#include "agent/state.h"
#include "api/store.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define NS "default"

struct world {
	struct node_host host;
	struct reader reader;
	struct agent agent;
	struct reconcile r;
	struct store *store;
	struct kube *api;
	struct prng ids;
	json_t *node, *pool; /* in the cache */
	const char *volume, *mark; /* id and mark of gluster's volume p-1; NULL: there is none */
	int looks, applied;
};
#define OF(p, member) ((struct world *)((char *)(p) - offsetof(struct world, member)))

static int peers(struct node_host *h, struct gluster_peers *ret, struct error *err)
{
	*ret = (struct gluster_peers){ 0 };
	return 0;
}

static int volume_get(struct node_host *h, const char *name, enum volume_look look,
		      struct gluster_volume *ret, struct error *err)
{
	struct world *w = OF(h, host);

	w->looks++;
	if (!w->volume)
		return error_set(err, ENOENT, "no such volume");
	*ret = (struct gluster_volume){ .name = xstrdup(name),
					.id = xstrdup(w->volume),
					.state = VOLUME_STARTED,
					.replica = 1,
					.options = json_object() };
	if (w->mark)
		json_object_set_new(ret->options, "user.quartermaster-pool", json_string(w->mark));
	return 0;
}

static int volume_apply(struct node_host *h, const struct volume_step *step, struct error *err)
{
	OF(h, host)->applied++;
	return error_set(err, EIO, "one is enough");
}

static const struct node_host_ops host_ops = { .peers = peers,
					       .volume_get = volume_get,
					       .volume_apply = volume_apply };

static json_t *cached(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	struct world *w = OF(r, reader);

	return json_deep_copy(kind == &KIND_STORAGENODE ? w->node : w->pool);
}

static int each(struct reader *r, const struct kind *kind, const char *ns,
		int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return 0;
}

static void learned(struct reader *r, const struct kind *kind, const json_t *object)
{
}

static const struct reader_ops reader_ops = { .get = cached, .each = each, .learned = learned };

static bool leads(struct agent *a, const char *deployment, const char *cluster, int64_t *ret_epoch)
{
	*ret_epoch = 1;
	return true;
}

/* ---- the API -------------------------------------------------------------------------------- */
static json_t *api_pool(struct world *w)
{
	json_t *o = NULL;

	assert_int_equal(kube_get(w->api, &KIND_STORAGEPOOL, NS, "p-1", &o, NULL), 0);
	return o;
}

static json_t *make_pool(struct world *w)
{
	cleanup_json json_t *o = json_pack(
		"{s:s, s:s, s:{s:s, s:s, s:[s]}, s:{s:s, s:s, s:s, s:s, s:[]}}", "apiVersion",
		"coreos.com/v1", "kind", "StoragePool", "metadata", "name", "p-1", "namespace", NS,
		"finalizers", "quartermaster.storage/pool", "spec", "type", "glusterfs",
		"deployment", "p", "cluster", "c", "volumeType", "none", "bricks");
	json_t *made = NULL;
	struct error err = ERROR_INIT;

	if (kube_create(w->api, &KIND_STORAGEPOOL, o, &made, &err) < 0)
		fail_msg("%s", err.message);
	return made;
}

static void patch(struct world *w, const char *subresource, json_t *p)
{
	struct error err = ERROR_INIT;

	if (kube_patch(w->api, &KIND_STORAGEPOOL, NS, "p-1", subresource, KUBE_PATCH_MERGE, p, NULL,
		       &err) < 0)
		fail_msg("%s", err.message);
	json_decref(p);
}

static void end_pool(struct world *w)
{
	patch(w, NULL,
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations", POOL_ANNOTATION_EMPTY, "true"));
	assert_int_equal(kube_delete(w->api, &KIND_STORAGEPOOL, NS, "p-1", NULL, NULL), 0);
}

/* The old one, with a volume, is to go: that is all that the cache has heard. */
static void world_init(struct world *w)
{
	struct store_options options = { .path = ":memory:", .clock = &clock_real };
	struct error err = ERROR_INIT;

	*w = (struct world){ .host.ops = &host_ops,
			     .reader.ops = &reader_ops,
			     .agent = { .ns = NS, .node = "n1", .leads = leads },
			     .ids.state = 3,
			     .volume = "v-old" };
	options.ids = &w->ids;
	if (store_open(&options, &w->store, &err) < 0 || store_bootstrap(w->store, &err) < 0)
		fail_msg("%s", err.message);
	w->api = store_client(w->store, "agent");
	w->agent.host = &w->host;
	agent_init(&w->agent);
	w->agent.state->glusterd_ms = -100000;
	w->r = (struct reconcile){
		.kube = w->api, .cache = &w->reader, .clock = &clock_real, .app = &w->agent
	};
	w->node = json_loads("{\"metadata\": {\"name\": \"n1\", \"namespace\": \"" NS
			     "\"}, \"status\": {\"plan\": {\"cluster\": \"c\", \"address\": "
			     "\"10.0.0.1\", \"peers\": [\"10.0.0.1\"]}}}",
			     0, NULL);
	assert_non_null(w->node);
	json_decref(make_pool(w));
	patch(w, "status", json_pack("{s:{s:s, s:s}}", "status", "volumeId", "v-old", "phase",
				     "Online"));
	end_pool(w);
	w->pool = api_pool(w);
}

static void make_anew(struct world *w)
{
	patch(w, NULL, json_pack("{s:{s:[]}}", "metadata", "finalizers"));
	json_decref(make_pool(w));
}

static void world_done(struct world *w)
{
	agent_done(&w->agent);
	kube_free(w->api);
	store_close(w->store);
	json_decref(w->node);
	json_decref(w->pool);
}

static int reconcile(struct world *w)
{
	w->r.error = ERROR_INIT;
	return AGENT_POOL.reconcile(&w->r, NS "/p-1");
}

/* ---- what is said of it -------------------------------------------------------------------- */
/* The old one's volume is there, or gone, or another's: nothing of that is said of the new one. */
static void late_status_of_the_old_pool(void **state)
{
	static const char *const volumes[] = { "v-old", "v-new", NULL };

	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
		struct world w;

		world_init(&w);
		make_anew(&w);
		w.volume = volumes[i];
		assert_int_equal(reconcile(&w), -ESTALE);
		assert_non_null(strstr(w.r.error.message, "another one"));
		cleanup_json json_t *now = api_pool(&w);
		assert_null(jget(now, "status"));
		assert_int_equal(w.applied, 0);
		world_done(&w);
	}
}

/* What others have written to the same one since the cache heard of it is no obstacle. */
static void same_pool_is_spoken_of(void **state)
{
	struct world w;

	world_init(&w);
	patch(&w, "status", json_pack("{s:{s:s}}", "status", "message", "something else"));
	assert_int_equal(reconcile(&w), -EIO);
	cleanup_json json_t *now = api_pool(&w);
	assert_string_equal(jstr(now, "status", "message"), "one is enough");
	assert_string_equal(jstr(now, "status", "volumeId"), "v-old");
	world_done(&w);
}

/* ---- what is done -------------------------------------------------------------------------- */
/* As if all of that had been said already: what remains is the step. */
static void say_before(struct world *w)
{
	json_t *status = json_pack("{s:s, s:s, s:i, s:i, s:s, s:[], s:i}", "phase", "Offline",
				   "volumeId", "v-old", "observedGeneration",
				   (int)jint(w->pool, "metadata", "generation"), "epoch", 0,
				   "message", "The pool is being deleted", "bricks", "healPending",
				   0);

	json_object_set_new(status, "display",
			    json_pack("{s:s, s:s, s:s, s:s}", "bricks", "0/0", "heal", "0",
				      "capacity", "-", "used", "-"));
	json_object_set_new(w->pool, "status", status);
}

static void stalled_cache_deletes_no_volume(void **state)
{
	struct world w;

	/* it is what it was decided for */
	world_init(&w);
	say_before(&w);
	assert_int_equal(reconcile(&w), -EIO);
	assert_int_equal(w.applied, 1);
	world_done(&w);
	/* the same volume is the new one's by now */
	world_init(&w);
	make_anew(&w);
	say_before(&w);
	reconcile(&w);
	assert_int_equal(w.applied, 0);
	world_done(&w);
	/* and a new volume is the new one's in any case */
	world_init(&w);
	make_anew(&w);
	say_before(&w);
	w.volume = "v-new";
	reconcile(&w);
	assert_int_equal(w.applied, 0);
	world_done(&w);
	/* the pool is gone altogether */
	world_init(&w);
	patch(&w, NULL, json_pack("{s:{s:[]}}", "metadata", "finalizers"));
	say_before(&w);
	reconcile(&w);
	assert_int_equal(w.applied, 0);
	world_done(&w);
	/* the order was taken back */
	world_init(&w);
	patch(&w, NULL,
	      json_pack("{s:{s:{s:n}}}", "metadata", "annotations", POOL_ANNOTATION_EMPTY));
	say_before(&w);
	assert_int_equal(reconcile(&w), 0);
	assert_int_equal(w.applied, 0);
	assert_true(w.r.again_ms > 0 && w.r.again_ms <= 5000);
	world_done(&w);
}

/* A volume of the pool's name, which was never the pool's own, does not go with it. */
static void volume_of_another_is_not_deleted(void **state)
{
	struct world w;

	world_init(&w);
	w.volume = "v-new";
	w.mark = "uid-of-another";
	assert_int_equal(reconcile(&w), 0);
	assert_int_equal(w.applied, 0);
	cleanup_json json_t *now = api_pool(&w);
	assert_string_equal(jstr(now, "status", "phase"), "Deleted");
	assert_string_equal(jstr(now, "status", "volumeId"), "v-old");
	world_done(&w);
}

/* The next one of the name has the same generation, and yet nobody has looked at it. */
static void next_of_the_name_is_looked_at(void **state)
{
	struct world w;
	int looks;

	world_init(&w);
	w.volume = NULL;
	json_object_del(jget(w.pool, "metadata"), "deletionTimestamp");
	json_object_del(jget(w.pool, "metadata"), "annotations");
	json_object_del(w.pool, "status");
	assert_int_equal(reconcile(&w), 0);
	looks = w.looks;
	assert_int_equal(reconcile(&w), 0);
	assert_int_equal(w.looks, looks); /* nothing is new */
	make_anew(&w);
	cleanup_json json_t *next = api_pool(&w);
	jset(w.pool, json_string(object_uid(next)), "metadata", "uid");
	reconcile(&w);
	assert_true(w.looks > looks);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late_status_of_the_old_pool),
		cmocka_unit_test(same_pool_is_spoken_of),
		cmocka_unit_test(stalled_cache_deletes_no_volume),
		cmocka_unit_test(volume_of_another_is_not_deleted),
		cmocka_unit_test(next_of_the_name_is_looked_at),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
