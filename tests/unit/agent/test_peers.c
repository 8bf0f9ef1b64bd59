/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes whom into the trusted pool, and what goes with a node that leaves it. */
#include "agent/state.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* A glusterd with peers, and perhaps a volume; and what was asked of it. */
struct cluster {
	struct node_host host;
	struct reader reader;
	struct kube kube;
	struct agent agent;
	struct reconcile r;
	json_t *pools, *plan;
	int peers; /* 10.0.0.2 and so on */
	bool knows; /* the volumes */
	bool cold; /* the cache has no pool yet */
	bool silent; /* the API does not answer */
	enum gluster_volume_state state; /* of them */
	const char *elsewhere; /* a node of another trusted pool */
	int probed, detached, yielded, deleted;
};

static int get_peers(struct node_host *h, struct gluster_peers *ret, struct error *err)
{
	const struct cluster *c = (struct cluster *)h;

	*ret = (struct gluster_peers){ .items = xcalloc((size_t)c->peers + 1, sizeof(*ret->items)),
				       .count = (size_t)c->peers };
	for (int i = 0; i < c->peers; i++)
		ret->items[i] = (struct gluster_peer){ .uuid = xstrdup("u"),
						       .address = xasprintf("10.0.0.%d", i + 2),
						       .connected = true,
						       .state = GLUSTER_PEER_BEFRIENDED,
						       .state_text = xstrdup("Peer in Cluster") };
	return 0;
}

static int peer_probe(struct node_host *h, const char *address, struct error *err)
{
	struct cluster *c = (struct cluster *)h;

	c->probed++;
	return c->elsewhere && streq(address, c->elsewhere) ? -EXDEV : 0;
}

static int peer_detach(struct node_host *h, const char *address, struct error *err)
{
	((struct cluster *)h)->detached++;
	return 0;
}

static int volume_get(struct node_host *h, const char *name, enum volume_look look,
		      struct gluster_volume *ret, struct error *err)
{
	const struct cluster *c = (struct cluster *)h;

	if (!c->knows)
		return -ENOENT;
	*ret = (struct gluster_volume){ .name = xstrdup(name),
					.id = xstrdup("v"),
					.state = c->state };
	return 0;
}

static int volume_apply(struct node_host *h, const struct volume_step *step, struct error *err)
{
	assert_int_equal(step->kind, STEP_DELETE);
	assert_string_equal(step->volume, "p-1");
	((struct cluster *)h)->deleted++;
	return 0;
}

static int record_list(struct node_host *h, const char *prefix, struct strv *ret, struct error *err)
{
	strv_add(ret, "b-1");
	return 0;
}

static int record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	*ret = json_pack("{s:s, s:s, s:s}", "id", "b-1", "path", "/bricks/b-1/brick", "pool",
			 "p-1");
	return 0;
}

static const struct node_host_ops host_ops = {
	.peers = get_peers,
	.peer_probe = peer_probe,
	.peer_detach = peer_detach,
	.volume_get = volume_get,
	.volume_apply = volume_apply,
	.record_list = record_list,
	.record_get = record_get,
};

static int each(struct reader *r, const struct kind *kind, const char *ns,
		int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	const struct cluster *c = (struct cluster *)((char *)r - offsetof(struct cluster, reader));
	const json_t *o;
	size_t i;
	int rc = 0;

	json_array_foreach (c->pools, i, o)
		if (rc == 0)
			rc = fn(o, userdata);
	return rc;
}

static json_t *get(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	const struct cluster *c = (struct cluster *)((char *)r - offsetof(struct cluster, reader));

	return c->cold ? NULL : json_incref(json_array_get(c->pools, 0));
}

static int api_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		   json_t **ret, struct error *err)
{
	const struct cluster *c = (struct cluster *)((char *)k - offsetof(struct cluster, kube));

	if (c->silent)
		return -ETIMEDOUT;
	*ret = json_incref(json_array_get(c->pools, 0));
	return *ret ? 0 : -ENOENT;
}

static const struct kube_ops kube_ops = { .get = api_get };

static const struct reader_ops reader_ops = { .each = each, .get = get };

static void yield(struct agent *a)
{
	((struct cluster *)((char *)a - offsetof(struct cluster, agent)))->yielded++;
}

/* The first of so many nodes, with the pools of a JSON array. */
static void cluster_init(struct cluster *c, int nodes, int peers, const char *pools)
{
	json_t *addresses = json_array();

	*c = (struct cluster){ .host.ops = &host_ops,
			       .reader.ops = &reader_ops,
			       .kube.ops = &kube_ops,
			       .agent.yield = yield,
			       .pools = json_loads(pools, 0, NULL),
			       .peers = peers };
	assert_non_null(c->pools);
	c->agent.host = &c->host;
	c->r.cache = &c->reader;
	c->r.kube = &c->kube;
	for (int i = 1; i <= nodes; i++)
		json_array_append_new(addresses, json_sprintf("10.0.0.%d", i));
	c->plan = json_pack("{s:s, s:s, s:o}", "cluster", "home", "address", "10.0.0.1", "peers",
			    addresses);
}

static void cluster_done(struct cluster *c)
{
	json_decref(c->pools);
	json_decref(c->plan);
}

static int converge(struct cluster *c)
{
	struct looking l = { .r = &c->r, .agent = &c->agent, .plan = c->plan };
	struct error err = ERROR_INIT;
	int rc = peers_converge(&l, &err);

	assert_int_equal(rc, -err.code);
	cluster_done(c);
	return rc;
}

#define PLANNED "{\"metadata\": {\"name\": \"p-1\"}, \"spec\": {\"cluster\": \"home\"}}"
#define MADE                                                                                       \
	"{\"metadata\": {\"name\": \"p-1\"}, \"spec\": {\"cluster\": \"home\"},"                   \
	" \"status\": {\"volumeId\": \"v\"}}"
#define GOING                                                                                      \
	"{\"metadata\": {\"name\": \"p-1\", \"deletionTimestamp\": \"2026-11-15T21:00:00Z\","      \
	" \"annotations\": {\"" POOL_ANNOTATION_EMPTY "\": \"true\"}},"                            \
	" \"spec\": {\"cluster\": \"home\"}, \"status\": {\"volumeId\": \"v\"}}"
#define OTHERS                                                                                     \
	"{\"metadata\": {\"name\": \"p-1\"}, \"spec\": {\"cluster\": \"work\"},"                   \
	" \"status\": {\"volumeId\": \"v\"}}"

/*
 * Two of four have the volume. The other two, each in its turn, would take the other in, then find the rest
 * elsewhere and leave the lead, and be found in another trusted pool by those who have the volume.
 */
static void who_has_no_volume_takes_nobody_in(void **state)
{
	struct cluster c;

	cluster_init(&c, 4, 0, "[" MADE "]");
	assert_int_equal(converge(&c), -EXDEV);
	assert_int_equal(c.probed, 0);
	assert_int_equal(c.yielded, 1);

	/* and those that one did take in before are let go */
	cluster_init(&c, 4, 1, "[" MADE "]");
	assert_int_equal(converge(&c), -EXDEV);
	assert_int_equal(c.probed, 0);
	assert_int_equal(c.detached, 1);
	assert_int_equal(c.yielded, 1);
}

static void who_has_the_volume_takes_the_others_in(void **state)
{
	struct cluster c;

	cluster_init(&c, 4, 1, "[" MADE "]");
	c.knows = true;
	assert_int_equal(converge(&c), 0);
	assert_int_equal(c.probed, 2);
	assert_int_equal(c.detached + c.yielded, 0);
}

/* A volume of another cluster is none, nor is one that is to be made, or to go: the nodes that had it may be lost. */
static void the_first_takes_the_others_in(void **state)
{
	static const char *const pools[] = { "[]", "[" PLANNED "]", "[" GOING "]", "[" OTHERS "]" };

	for (size_t i = 0; i < ARRAY_SIZE(pools); i++) {
		struct cluster c;

		cluster_init(&c, 3, 0, pools[i]);
		assert_int_equal(converge(&c), 0);
		assert_int_equal(c.probed, 2);
		assert_int_equal(c.detached + c.yielded, 0);
	}
}

/* Of two trusted pools the smaller one falls apart, or the larger one when the other has the volumes. */
static void one_of_two_falls_apart(void **state)
{
	static const struct {
		int peers;
		const char *pools;
		bool knows;
		int detached;
	} cases[] = {
		{ 1, "[" PLANNED "]", false, 1 }, { 3, "[" PLANNED "]", false, 0 },
		{ 3, "[" MADE "]", false, 3 },	  { 3, "[" MADE "]", true, 0 },
		{ 1, "[" MADE "]", true, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cluster c;

		cluster_init(&c, 6, cases[i].peers, cases[i].pools);
		c.knows = cases[i].knows;
		c.elsewhere = cases[i].peers == 1 ? "10.0.0.3" : "10.0.0.5";
		assert_int_equal(converge(&c), -EXDEV);
		assert_int_equal(c.probed, 1);
		assert_int_equal(c.detached, cases[i].detached);
		assert_int_equal(c.yielded, 1);
	}
}

/* What of the pool can be read. */
enum sight { SEES, COLD, SILENT };

/* The first node, which has a volume, is to release b-1; detach: it leaves the cluster of 10.0.0.2 … 5. */
static int forget_with(enum sight sight, bool detach, int peers, const char *pools,
		       enum gluster_volume_state state, const char *released)
{
	struct strv ids cleanup_with(strv_done) = { 0 };
	struct cluster c;
	struct looking l = { .r = &c.r, .agent = &c.agent };

	cluster_init(&c, 5, peers, pools);
	c.cold = sight == COLD;
	c.silent = sight == SILENT;
	c.knows = true;
	c.state = state;
	l.plan = c.plan;
	if (detach) {
		json_array_remove(jget(c.plan, "peers"), 0);
		json_object_set_new(c.plan, "detach", json_pack("[s]", "10.0.0.1"));
	}
	assert_int_equal(agent_leaves(c.plan), detach);
	strv_add(&ids, released);
	peers_forget_unreported(&l, &ids);
	cluster_done(&c);
	return c.deleted;
}

static int forget(bool detach, int peers, const char *pools, enum gluster_volume_state state,
		  const char *released)
{
	return forget_with(SEES, detach, peers, pools, state, released);
}

/* A volume is not somebody's or nobody's because a cache has not heard of its pool yet. */
static void cold_cache_deletes_no_volume(void **state)
{
	assert_int_equal(forget_with(COLD, true, 0, "[" MADE "]", VOLUME_CREATED, "b-1"), 0);
	assert_int_equal(forget_with(SILENT, true, 0, "[" PLANNED "]", VOLUME_CREATED, "b-1"), 0);
	assert_int_equal(forget_with(COLD, true, 0, "[" PLANNED "]", VOLUME_CREATED, "b-1"), 1);
}

/* Its maker lost power before it could tell anybody, and the pool went to other nodes. */
static void volume_that_nobody_knows_goes(void **state)
{
	assert_int_equal(forget(true, 0, "[" PLANNED "]", VOLUME_CREATED, "b-1"), 1);
	assert_int_equal(forget(true, 0, "[]", VOLUME_CREATED, "b-1"), 1);
	/* not where it is somebody's: reported, started, or seen by a member of the cluster */
	assert_int_equal(forget(true, 0, "[" MADE "]", VOLUME_CREATED, "b-1"), 0);
	assert_int_equal(forget(true, 0, "[" PLANNED "]", VOLUME_STARTED, "b-1"), 0);
	assert_int_equal(forget(true, 0, "[" PLANNED "]", VOLUME_STOPPED, "b-1"), 0);
	assert_int_equal(forget(true, 1, "[" PLANNED "]", VOLUME_CREATED, "b-1"), 0);
	/* nor where the node stays, or its brick does */
	assert_int_equal(forget(false, 0, "[" PLANNED "]", VOLUME_CREATED, "b-1"), 0);
	assert_int_equal(forget(true, 0, "[" PLANNED "]", VOLUME_CREATED, "b-2"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_has_no_volume_takes_nobody_in),
		cmocka_unit_test(who_has_the_volume_takes_the_others_in),
		cmocka_unit_test(the_first_takes_the_others_in),
		cmocka_unit_test(one_of_two_falls_apart),
		cmocka_unit_test(volume_that_nobody_knows_goes),
		cmocka_unit_test(cold_cache_deletes_no_volume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
