/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/plan_model.h"

#include "base/mem.h"

static bool contains(const json_t *array, const char *text)
{
	size_t i;
	json_t *v;
	json_array_foreach ((json_t *)array, i, v)
		if (streq(json_string_value(v), text))
			return true;
	return false;
}

static void add_once(json_t *array, const char *text)
{
	if (text && !contains(array, text))
		json_array_append_new(array, json_string(text));
}

/* A node that belongs to the trusted pool: it has bricks there, or its glusterd is up and it is to stay. */
static bool is_peer(const struct plan_node *n, const char *cluster)
{
	if (!n->address || !streq(n->cluster, cluster))
		return false;
	const json_t *agent = jget(n->object, "status", "agent");
	bool down = json_is_false(jget(agent, "glusterd", "running"));
	return n->has_bricks || (!n->deleting && agent && !down);
}

static json_t *peers_of(struct plan_model *m, const char *cluster)
{
	json_t *peers = json_array();
	for (size_t i = 0; i < m->nodes_count; i++)
		if (is_peer(&m->nodes[i], cluster))
			add_once(peers, m->nodes[i].address);
	return peers;
}

/*
 * Addresses that are to leave the trusted pool: nodes that are being deleted and are empty, old
 * addresses of nodes that got another one, and what earlier plans said (the node's object may be
 * gone before the peer is).
 */
static json_t *detach_of(struct plan_model *m, const char *cluster, const json_t *peers)
{
	cleanup_json json_t *all = json_array();
	size_t k;
	json_t *v;

	for (size_t i = 0; i < m->nodes_count; i++) {
		const struct plan_node *n = &m->nodes[i];
		const char *known = jstr(n->object, "status", "address");
		const char *planned = jstr(n->object, "status", "plan", "cluster");
		if (streq(planned, cluster) &&
		    (n->deleting || !streq(n->cluster, cluster) || !streq(known, n->address)))
			add_once(all, known);
		if (streq(planned, cluster))
			json_array_foreach (jget(n->object, "status", "plan", "detach"), k, v)
				add_once(all, json_string_value(v));
	}
	json_t *detach = json_array();
	json_array_foreach (all, k, v)
		if (!contains(peers, json_string_value(v)))
			json_array_append(detach, v);
	return detach;
}

/* ---- bricks ----------------------------------------------------------------------------------- */

static const char *source_name(const json_t *b)
{
	const char *device = jstr(b, "device");
	return device ? device : jstr(b, "directory");
}

/* An order names the very pool that it is for: another one may have had its name before. */
static json_t *node_brick(const json_t *b, const char *pool, const char *pool_uid, bool wipe)
{
	return json_pack("{s:s, s:s, s:s*, s:s*, s:s*, s:b, s:s*}", "id", jstr(b, "id"),
			 jstr(b, "device") ? "device" : "directory", source_name(b), "path",
			 jstr(b, "path"), "pool", pool, "poolUid", pool_uid, "wipe", wipe, "parent",
			 jstr(b, "parent"));
}

/* A signature may be wiped only before the brick has ever been prepared: never a brick that holds data. */
static bool may_wipe(const struct plan_node *n, const json_t *b)
{
	const json_t *d;
	size_t i;

	/* nor what has taken the place of a brick's disk: nobody has seen that when wipe was written */
	json_array_foreach (jget(n->object, "status", "agent", "devices"), i, d)
		if (streq(jstr(d, "device"), source_name(b)) && json_array_size(jget(d, "lost")) > 0)
			return false;
	return !jbool(b, "prepared") &&
	       contains(jget(n->object, "spec", "glusterfs", "wipe"), source_name(b));
}

/* A volume without any brick is not one that has let go of this one: nobody has looked, or could. */
static bool unknown(const json_t *pool)
{
	const char *id = jstr(pool, "status", "volumeId");

	return id && *id && json_array_size(jget(pool, "status", "bricks")) == 0 &&
	       !streq(jstr(pool, "status", "phase"), "Deleted");
}

bool plan_is_of_pool(const json_t *brick, const struct plan_pool *p)
{
	const char *uid = jstr(brick, "poolUid"), *own = jstr(p->object, "metadata", "uid");

	return streq(jstr(brick, "pool"), p->name) && (!uid || !own || streq(uid, own));
}

/* Whether its volume has the brick; where it is said to be the pool's: or may still need that copy. */
static bool held_by(const struct plan_pool *p, const json_t *brick)
{
	const json_t *o = p->object;

	if (!o)
		return false;
	if (pool_brick(jget(o, "status", "bricks"), jstr(brick, "id")))
		return true;
	return plan_is_of_pool(brick, p) &&
	       (unknown(o) || jint(o, "status", "healPending") != 0 ||
		jint(o, "status", "observedGeneration") < jint(o, "metadata", "generation") ||
		streq(p->action, "change"));
}

/* Is the brick still part of some pool's volume, or may its copy still be needed there? */
static bool still_held(struct plan_model *m, const json_t *brick)
{
	/* one that has lost its label is not ours to judge, nor are its bricks */
	if (contains(m->in->foreign_pools, jstr(brick, "pool")))
		return true;
	for (size_t i = 0; i < m->pools_count; i++)
		if (held_by(&m->pools[i], brick))
			return true;
	for (size_t i = 0; i < m->children_count; i++)
		if (held_by(&m->children[i], brick))
			return true;
	return false;
}

/*
 * The node still has the brick for a pool that had the name before, and this one has never used it:
 * the old one's goes first, with all that is in it.
 */
static bool is_of_former(const struct plan_node *n, const struct plan_pool *p, const json_t *brick)
{
	const json_t *had = pool_brick(jget(n->object, "status", "agent", "bricks"),
				       jstr(brick, "id"));
	const char *uid = jstr(had, "poolUid"), *own = jstr(p->object, "metadata", "uid");

	return uid && !streq(uid, own) && !jbool(brick, "prepared") &&
	       !pool_brick(jget(p->object, "status", "bricks"), jstr(brick, "id"));
}

static void plan_brick(const struct plan_node *n, const struct plan_pool *p, const json_t *b,
		       bool wipe, json_t *bricks)
{
	if (!is_of_former(n, p, b))
		json_array_append_new(bricks, node_brick(b, p->name,
							 jstr(p->object, "metadata", "uid"), wipe));
}

/* Bricks of the last plan, or that the agent has, which no pool names any more: kept while a volume needs them. */
static void plan_leftovers(struct plan_model *m, const struct plan_node *n, const json_t *from,
			   json_t *bricks, json_t *release, json_t *pools)
{
	size_t i;
	json_t *b;

	json_array_foreach ((json_t *)from, i, b) {
		const char *id = jstr(b, "id");
		if (!id || pool_brick(bricks, id) || contains(release, id))
			continue;
		if (!still_held(m, b) && !plan_brick_carries(n, b)) {
			json_array_append_new(release, json_string(id));
			if (jstr(b, "poolUid"))
				json_object_set(pools, id, jget(b, "poolUid"));
			plan_step(m, "node %s: release brick %s, which left pool %s", n->name, id,
				  jstr(b, "pool") ? jstr(b, "pool") : "?");
		} else if (source_name(b)) {
			json_array_append_new(bricks, node_brick(b, jstr(b, "pool"),
							 jstr(b, "poolUid"), false));
		}
	}
}

static json_t *plan_node(struct plan_model *m, const struct plan_node *n)
{
	json_t *bricks = json_array(), *release = json_array(), *pools = json_object(),
	       *peers = peers_of(m, n->cluster);
	size_t k;
	json_t *b;

	for (size_t i = 0; i < m->pools_count; i++) {
		json_array_foreach (jget(m->pools[i].spec, "bricks"), k, b) {
			const struct source *s = model_source(m, jstr(b, "id"));
			if (s && s->node == n && s->pool == &m->pools[i])
				plan_brick(n, &m->pools[i], b, may_wipe(n, b), bricks);
		}
	}
	for (size_t i = 0; i < m->children_count; i++)
		if (!m->children[i].odd || m->children[i].made)
			json_array_foreach (jget(m->children[i].spec, "bricks"), k, b)
				if (streq(jstr(b, "node"), n->name))
					plan_brick(n, &m->children[i], b, false, bricks);
	plan_leftovers(m, n, jget(n->object, "status", "agent", "bricks"), bricks, release, pools);
	plan_leftovers(m, n, jget(n->object, "status", "plan", "bricks"), bricks, release, pools);

	json_t *plan = json_pack("{s:I, s:s, s:s, s:s*, s:b, s:o, s:o, s:o, s:o}", "epoch",
				 (json_int_t)m->in->epoch, "deployment", m->in->deployment,
				 "cluster", n->cluster, "address", n->address, "maintenance",
				 n->maintenance, "peers", peers, "detach",
				 detach_of(m, n->cluster, peers), "bricks", bricks, "release",
				 release);
	if (json_object_size(pools))
		json_object_set(plan, "releasePools", pools);
	json_decref(pools);
	return plan;
}

json_t *plan_nodes(struct plan_model *m)
{
	json_t *plans = json_object();
	for (size_t i = 0; i < m->nodes_count; i++)
		json_object_set_new(plans, m->nodes[i].name, plan_node(m, &m->nodes[i]));
	return plans;
}
