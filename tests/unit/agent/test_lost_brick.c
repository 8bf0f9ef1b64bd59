/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When an agent that leads gives up a brick: what it has written down of the copies, what another
 * leader has, and what the brick's own node tells. Two copies on n1 and n2; that on n2 is to make
 * way for one on n3.
 */
#include "agent/state.h"
#include "base/mem.h"
#include "systems/glusterfs/options.h"
#include "systems/glusterfs/plan.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define PATH(n) "/b/.quartermaster-b-" #n "/brick"

struct world {
	struct node_host host;
	struct kube kube;
	struct reader reader;
	struct clock clock;
	struct agent agent;
	struct reconcile r;
	int64_t now_ms;
	json_t *pool, *cached; /* in the API, and what the cache has of it (NULL: the same) */
	int version;
	bool meddle; /* somebody else writes to the pool while it is looked at */
	bool unmark; /* that the first copy is not whole */
	bool gone; /* the cache has no pool */
	bool busy; /* gluster has another transaction */
	bool second; /* the brick on n2 is online, as glusterd knows */
	bool glusterd; /* that of n2 answers */
	bool connected; /* and a client reaches it */
	bool n2_lives, n2_online; /* its agent renews its lease; and tells that the brick runs */
	int64_t indexed, pending; /* what the first copy lists: by its index, and by a crawl */
	int pid; /* of the second */
	bool dead; /* its disk: its process runs for a while, but is of no use */
	bool replaced;
	int exact; /* looks */
};
#define OF(p, member) ((struct world *)((char *)(p) - offsetof(struct world, member)))

/* ---- gluster --------------------------------------------------------------------------------- */
static int peers(struct node_host *h, struct gluster_peers *ret, struct error *err)
{
	*ret = (struct gluster_peers){ .items = xcalloc(2, sizeof(*ret->items)), .count = 2 };
	for (int i = 0; i < 2; i++)
		ret->items[i] = (struct gluster_peer){ .uuid = xstrdup("u"),
						       .address = xasprintf("10.0.0.%d", i + 2),
						       .connected = i || OF(h, host)->glusterd,
						       .state = GLUSTER_PEER_BEFRIENDED,
						       .state_text = xstrdup("Peer in Cluster") };
	return 0;
}

static int volume_get(struct node_host *h, const char *name, enum volume_look look,
		      struct gluster_volume *ret, struct error *err)
{
	struct world *w = OF(h, host);
	struct gluster_brick *b;

	*ret = (struct gluster_volume){ .name = xstrdup(name),
					.id = xstrdup("v"),
					.state = VOLUME_STARTED,
					.replica = 2,
					.options = volume_options_for(LAYOUT_REPLICATE) };
	json_object_set_new(ret->options, VOLUME_OPTION_POOL, json_string("u"));
	b = gluster_volume_add_brick(ret, "10.0.0.1", PATH(1));
	b->online = true;
	b->pid = 7;
	b->pending = look == VOLUME_LOOK_EXACT ? w->pending : w->indexed;
	b = gluster_volume_add_brick(ret, w->replaced ? "10.0.0.3" : "10.0.0.2",
				     w->replaced ? PATH(3) : PATH(2));
	b->online = w->second || w->replaced;
	b->connected = look == VOLUME_LOOK_EXACT && w->connected;
	b->pid = b->online ? w->pid : 0;
	b->pending = b->online && (!w->dead || w->replaced) ? 0 : -1;
	w->exact += look == VOLUME_LOOK_EXACT;
	if (w->meddle)
		w->version++;
	if (w->unmark)
		jset(json_array_get(jget(w->pool, "status", "bricks"), 0), json_false(), "whole");
	return 0;
}

static int volume_apply(struct node_host *h, const struct volume_step *step, struct error *err)
{
	if (OF(h, host)->busy)
		return -EBUSY;
	if (step->kind == STEP_REPLACE_BRICK)
		OF(h, host)->replaced = true;
	else
		assert_int_equal(step->kind, STEP_HEAL);
	return 0;
}

static const struct node_host_ops host_ops = { .peers = peers,
					       .volume_get = volume_get,
					       .volume_apply = volume_apply };

/* ---- the API and the cache ----------------------------------------------------------------- */
static json_t *node_of(struct world *w, const char *name)
{
	cleanup_free char *address = xasprintf("10.0.0.%c", name[1]);
	cleanup_free char *path = xasprintf("/b/.quartermaster-b-%c/brick", name[1]);
	cleanup_free char *id = xasprintf("b-%c", name[1]);

	return json_pack("{s:{s:s, s:s, s:s}, s:{s:{s:s, s:s, s:[s, s, s]}, "
			 "s:{s:[{s:s, s:s, s:b, s:b}]}}}",
			 "metadata", "name", name, "namespace", "qm", "uid", name, "status", "plan",
			 "cluster", "c", "address", address, "peers", "10.0.0.1", "10.0.0.2",
			 "10.0.0.3", "agent", "bricks", "id", id, "path", path, "mounted",
			 !(w->dead && streq(name, "n2")), "online", !streq(name, "n2") || w->n2_online);
}

static int api_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		   json_t **ret, struct error *err)
{
	struct world *w = OF(k, kube);

	if (kind == &KIND_LEASE) {
		cleanup_free char *time = xasprintf("%lld", (long long)w->now_ms);

		*ret = json_pack("{s:{s:s}}", "spec", "renewTime", w->n2_lives ? time : "0");
		return 0;
	}
	*ret = kind == &KIND_STORAGENODE ? node_of(w, name) : json_deep_copy(w->pool);
	if (kind == &KIND_STORAGEPOOL)
		jset(*ret, json_sprintf("%d", w->version), "metadata", "resourceVersion");
	return 0;
}

static int api_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		     const char *subresource, enum kube_patch type, const json_t *patch,
		     json_t **ret, struct error *err)
{
	struct world *w = OF(k, kube);
	cleanup_free char *version = xasprintf("%d", w->version);

	if (jget(patch, "metadata", "resourceVersion") &&
	    !streq(jstr(patch, "metadata", "resourceVersion"), version))
		return error_set(err, ESTALE, "the object has been modified");
	w->version++;
	json_object_update(jget(w->pool, "status"), jget(patch, "status"));
	return api_get(k, kind, ns, name, ret, err);
}

static const struct kube_ops kube_ops = { .get = api_get, .patch = api_patch };

static json_t *cached(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	struct world *w = OF(r, reader);

	if (kind == &KIND_STORAGENODE)
		return node_of(w, name);
	return w->gone ? NULL : json_deep_copy(w->cached ? w->cached : w->pool);
}

static int each(struct reader *r, const struct kind *kind, const char *ns,
		int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	static const char *const names[] = { "n1", "n2", "n3" };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(names); i++) {
		cleanup_json json_t *node = node_of(OF(r, reader), names[i]);

		rc = fn(node, userdata);
	}
	return rc;
}

static void learned(struct reader *r, const struct kind *kind, const json_t *object)
{
}

static const struct reader_ops reader_ops = { .get = cached, .each = each, .learned = learned };

/* ---- the world ------------------------------------------------------------------------------ */
static bool leads(struct agent *a, const char *deployment, const char *cluster, int64_t *ret_epoch)
{
	*ret_epoch = 1;
	return true;
}

static int64_t now(void *userdata)
{
	return ((struct world *)userdata)->now_ms;
}

static json_t *spec_brick(int n)
{
	cleanup_free char *id = xasprintf("b-%d", n), *node = xasprintf("n%d", n);
	cleanup_free char *address = xasprintf("10.0.0.%d", n);
	cleanup_free char *path = xasprintf("/b/.quartermaster-b-%d/brick", n);

	return json_pack("{s:s, s:s, s:s, s:s, s:b}", "id", id, "node", node, "address", address,
			 "path", path, "prepared", 1);
}

static void world_init(struct world *w)
{
	*w = (struct world){ .host.ops = &host_ops,
			     .kube = { .ops = &kube_ops },
			     .reader.ops = &reader_ops,
			     .agent = { .ns = "qm", .node = "n1", .leads = leads },
			     .now_ms = 1000000,
			     .version = 1,
			     .second = true,
			     .glusterd = true,
			     .n2_lives = true,
			     .n2_online = true,
			     .pid = 8 };
	w->clock = (struct clock){ now, now, w };
	w->kube.clock = &w->clock;
	w->agent.host = &w->host;
	agent_init(&w->agent);
	w->r = (struct reconcile){
		.kube = &w->kube, .cache = &w->reader, .clock = &w->clock, .app = &w->agent
	};
	w->pool = json_pack("{s:{s:s, s:s, s:s}, s:{s:s, s:s, s:[o, o]}, s:{}}", "metadata", "name",
			    "p-1", "namespace", "qm", "uid", "u", "spec", "cluster", "c",
			    "volumeType", "replicate:2", "bricks", spec_brick(1), spec_brick(2),
			    "status");
}

static void world_done(struct world *w)
{
	agent_done(&w->agent);
	json_decref(w->pool);
	json_decref(w->cached);
}

/* Looks every ten seconds, for so long. */
static void pass(struct world *w, int seconds)
{
	for (int i = 0; i <= seconds; i += 10) {
		json_object_del(jget(w->agent.state->pools, "p-1"), "next");
		assert_int_equal(AGENT_POOL.reconcile(&w->r, "qm/p-1"), 0);
		w->now_ms += 10000;
	}
}

static bool whole(const struct world *w, size_t i)
{
	return jbool(json_array_get(jget(w->pool, "status", "bricks"), i), "whole");
}

static void second_is_to_go(struct world *w)
{
	json_array_set_new(jget(w->pool, "spec", "bricks"), 1, spec_brick(3));
}

static void second_dies(struct world *w)
{
	w->second = w->glusterd = w->n2_lives = false; /* its node had no time to tell */
	w->indexed = w->pending = 4; /* which it misses */
	second_is_to_go(w);
}

/* ---- tests --------------------------------------------------------------------------------- */
static void lost_with_a_whole_one_left(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 10);
	assert_false(whole(&w, 0)); /* what is missing may not be known yet */
	pass(&w, 10);
	assert_true(whole(&w, 0) && whole(&w, 1));
	assert_int_equal(w.exact, 2);
	pass(&w, 100);
	assert_int_equal(w.exact, 2); /* they cost, and nothing has changed */
	second_dies(&w);
	pass(&w, 280);
	assert_false(w.replaced);
	assert_true(whole(&w, 0) && !whole(&w, 1));
	pass(&w, 40);
	assert_true(w.replaced);
	assert_true(whole(&w, 0) && !whole(&w, 1));
	world_done(&w);
}

/* The index lags: that it lists nothing makes no copy whole. */
static void whole_by_an_exact_look_only(void **state)
{
	struct world w;

	world_init(&w);
	w.pending = 3;
	pass(&w, 100);
	assert_false(whole(&w, 0) || whole(&w, 1));
	second_dies(&w);
	pass(&w, 400);
	assert_false(w.replaced);
	assert_non_null(strstr(jstr(w.pool, "status", "message"), POOL_ANNOTATION_LOST "=b-2"));
	world_done(&w);
}

/* A part that took another's place is empty, which shows in the second look only. */
static void whole_by_two_looks(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 10);
	w.pending = 3;
	pass(&w, 60);
	w.pending = 0;
	pass(&w, 20);
	assert_false(whole(&w, 0) || whole(&w, 1));
	/* nor are they those of another process */
	w.pid++;
	pass(&w, 20);
	assert_false(whole(&w, 0) || whole(&w, 1));
	pass(&w, 40);
	assert_true(whole(&w, 0) && whole(&w, 1));
	world_done(&w);
}

/* Another agent led, and has seen the copy here go and come; the cache does not have it yet. */
static void marks_are_those_of_the_api(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	w.cached = json_deep_copy(w.pool);
	json_object_set_new(json_array_get(jget(w.pool, "status", "bricks"), 0), "whole",
			    json_false());
	w.second = w.glusterd = w.n2_lives = false;
	json_array_set_new(jget(w.cached, "spec", "bricks"), 1, spec_brick(3));
	pass(&w, 400);
	assert_false(w.replaced);
	world_done(&w);
}

/* Whoever was held up does not write over what others have written since. */
static void stale_marks_are_refused(void **state)
{
	struct world w;

	world_init(&w);
	w.meddle = true;
	assert_int_equal(AGENT_POOL.reconcile(&w.r, "qm/p-1"), -ESTALE);
	assert_null(jget(w.pool, "status", "bricks"));
	w.meddle = false;
	pass(&w, 40);
	assert_true(whole(&w, 0));
	world_done(&w);
}

/* Nor does it give up a copy on what it knew before that: the look takes its time. */
static void no_copy_goes_on_stale_marks(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	second_dies(&w);
	w.busy = true;
	pass(&w, 400); /* its status says already what it is about to do */
	w.busy = false;
	w.unmark = true;
	pass(&w, 20);
	assert_false(w.replaced);
	assert_non_null(strstr(jstr(w.pool, "status", "message"), POOL_ANNOTATION_LOST "=b-2"));
	world_done(&w);
}

/* Its glusterd cannot be asked; the brick goes on, and takes in what the other may miss. */
static void running_brick_is_not_given_up(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	w.second = w.glusterd = false;
	second_is_to_go(&w);
	pass(&w, 1000);
	assert_false(w.replaced);
	assert_non_null(strstr(jstr(w.pool, "status", "message"), "it runs, but"));
	assert_false(whole(&w, 0));
	/* its machine dies: what it alone took in is not given up unasked */
	w.n2_lives = false;
	pass(&w, 1000);
	assert_false(w.replaced);
	jset(w.pool, json_string("b-2"), "metadata", "annotations", POOL_ANNOTATION_LOST);
	pass(&w, 0);
	assert_true(w.replaced);
	world_done(&w);
}

/* Its process is gone, as its agent or its glusterd says: five minutes are enough. */
static void dead_brick_of_a_living_node(void **state)
{
	for (int glusterd = 0; glusterd < 2; glusterd++) {
		struct world w;

		world_init(&w);
		pass(&w, 40);
		second_dies(&w);
		w.n2_lives = true;
		w.glusterd = glusterd;
		w.n2_online = glusterd; /* an agent that hangs says what it said before */
		pass(&w, 320);
		assert_true(w.replaced);
		world_done(&w);
	}
}

/* Gluster calls it online, and goes on to: but its node says that its disk is gone. */
static void disk_that_died_under_its_brick(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	w.dead = true;
	w.indexed = w.pending = 4;
	second_is_to_go(&w);
	pass(&w, 280);
	assert_true(whole(&w, 0) && !whole(&w, 1));
	assert_false(w.replaced);
	pass(&w, 40);
	assert_true(w.replaced);
	world_done(&w);
}

/* That another pool has gone does not make a brick's time begin anew. */
static void other_pools_do_not_matter(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	second_dies(&w);
	w.n2_lives = true;
	w.glusterd = true;
	for (int i = 0; i < 32; i++) {
		pass(&w, 0);
		w.gone = true;
		assert_int_equal(AGENT_POOL.reconcile(&w.r, "qm/p-2"), 0);
		w.gone = false;
	}
	assert_true(w.replaced);
	world_done(&w);
}

/* One that has come again at the place of another was not offline then. */
static void time_of_a_pool_that_went(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	second_dies(&w);
	w.n2_lives = true;
	w.glusterd = true;
	pass(&w, 280);
	w.gone = true;
	assert_int_equal(AGENT_POOL.reconcile(&w.r, "qm/p-1"), 0);
	w.gone = false;
	pass(&w, 280);
	assert_false(w.replaced);
	pass(&w, 40);
	assert_true(w.replaced);
	world_done(&w);
}

/* No word of its node, but a client reaches it. */
static void connected_brick_is_not_given_up(void **state)
{
	struct world w;

	world_init(&w);
	pass(&w, 40);
	second_dies(&w);
	w.connected = true;
	pass(&w, 1000);
	assert_false(w.replaced);
	w.connected = false;
	pass(&w, 320);
	assert_true(w.replaced);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_with_a_whole_one_left),
		cmocka_unit_test(whole_by_an_exact_look_only),
		cmocka_unit_test(whole_by_two_looks),
		cmocka_unit_test(marks_are_those_of_the_api),
		cmocka_unit_test(stale_marks_are_refused),
		cmocka_unit_test(no_copy_goes_on_stale_marks),
		cmocka_unit_test(running_brick_is_not_given_up),
		cmocka_unit_test(dead_brick_of_a_living_node),
		cmocka_unit_test(disk_that_died_under_its_brick),
		cmocka_unit_test(other_pools_do_not_matter),
		cmocka_unit_test(time_of_a_pool_that_went),
		cmocka_unit_test(connected_brick_is_not_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
