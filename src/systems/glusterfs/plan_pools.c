/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/plan_model.h"

#include "base/mem.h"
#include "base/quantity.h"

#include <stdint.h>

static const char *brick_source(const json_t *brick)
{
	const char *device = jstr(brick, "device");
	return device ? device : jstr(brick, "directory");
}

/* ---- editing ---------------------------------------------------------------------------------- */

void plan_pool_change(struct plan_model *m, struct plan_pool *p, char *why)
{
	p->action = "change";
	free(p->why);
	p->why = why;
	json_object_set_new(p->spec, "epoch", json_integer(m->in->epoch));
}

/* "prepared" is set once and for ever: from then on nobody may format that device for this brick. */
void plan_note_prepared(struct plan_model *m, struct plan_pool *p)
{
	size_t i, k;
	json_t *b, *a;

	json_array_foreach (jget(p->spec, "bricks"), i, b) {
		const struct plan_node *n = model_node(m, jstr(b, "node"));
		if (!n || jbool(b, "prepared"))
			continue;
		const struct source *s = model_source(m, jstr(b, "id"));
		if (!jstr(b, "parent") && (!s || s->pool != p))
			continue; /* another pool has it, and it is prepared for that one */
		json_array_foreach (jget(n->object, "status", "agent", "bricks"), k, a) {
			if (!streq(jstr(a, "id"), jstr(b, "id")) || !jbool(a, "mounted"))
				continue;
			if (jstr(a, "poolUid") && !plan_is_of_pool(a, p))
				continue; /* it was, for one that had the name before */
			json_object_set_new(b, "prepared", json_true());
			plan_pool_change(m, p, xasprintf("brick %s is prepared", jstr(b, "id")));
		}
	}
}

static bool is_empty(const struct plan_model *m, const struct plan_pool *p)
{
	return m->in->volumes && jint(m->in->volumes, p->name) == 0 && !plan_has_children(m, p);
}

/*
 * Another disk has the place of the brick's own, which is gone. Of a pool with one copy that was
 * the data: it is waited for while anything is in the pool. Nor is anything placed on a node in
 * maintenance, or moved away.
 */
static bool was_replaced(const struct plan_model *m, const struct plan_pool *p,
			 const struct source *s, const char *id)
{
	return s->replaced && streq(s->replaced, id) && !s->node->maintenance &&
	       !s->node->offline && (p->type.layout != LAYOUT_NONE || is_empty(m, p));
}

/* The disk in its place, where that will do for the pool. */
static struct source *choose_same_place(struct plan_model *m, const struct plan_pool *p,
					const json_t *b, int64_t need)
{
	struct source *s = model_source(m, jstr(b, "id"));

	if (!s || !s->listed || s->node->deleting || s->pool != p || s->same ||
	    p->type.layout == LAYOUT_NONE || !was_replaced(m, p, s, jstr(b, "id")) ||
	    !streq(s->node->wanted, p->cluster) || (!jbool(b, "arbiter") && s->size < need))
		return NULL;
	if (s->unsure && plan_needed(m, p, jstr(b, "id")).pool)
		return NULL;
	source_next_id(s);
	s->replaced = NULL;
	return s;
}

/* Why a brick should leave its pool; NULL: it should stay. */
static char *leaving_reason(struct plan_model *m, const struct plan_pool *p, const json_t *brick)
{
	const char *node = jstr(brick, "node");
	const struct plan_node *n = model_node(m, node);
	const struct source *s = model_source(m, jstr(brick, "id"));

	if (!n)
		return xasprintf("node %s is gone", node);
	if (n->deleting)
		return xasprintf("node %s is being deleted", node);
	if (!s || !s->listed)
		return xasprintf("%s was removed from node %s", brick_source(brick), node);
	if (s->pool && s->pool != p)
		return xasprintf("%s of node %s belongs to pool %s", brick_source(brick), node,
				 s->pool->name);
	if (!streq(n->wanted, p->cluster))
		return xasprintf("node %s moves to cluster %s", node, n->wanted);
	if (was_replaced(m, p, s, jstr(brick, "id")))
		return xasprintf("another disk is in the place of %s of node %s", s->name, node);
	return NULL;
}

/*
 * The volume, or one that lies beside its bricks, still has to follow an earlier change: one brick at a time, so that
 * copies never run short. But while a brick is offline no change is finished that it does not belong to: where that is
 * the one that leaves, the coming ones are what the volume waits for. In which order they come, and whether the lost one
 * can be spared, is decided on what the volume has then (cluster.c).
 */
static bool change_under_way(const struct plan_model *m, const struct plan_pool *p,
			     const json_t *leaving)
{
	const json_t *now = jget(p->object, "status", "bricks"), *spec = jget(p->spec, "bricks"),
		     *b = pool_brick(now, jstr(leaving, "id"));

	if (b ? !jbool(b, "online") : !plan_children_lie_on(m, p, jstr(leaving, "id")))
		return false; /* or it never came into any volume: nothing is lost by another choice */
	if (plan_children_follow(m, p))
		return true;
	return jstr(p->object, "status", "volumeId") && b && !bricks_same(now, spec);
}

/* The smallest data brick that stays: what replaces another must hold as much. */
static int64_t size_needed(struct plan_model *m, const struct plan_pool *p, const json_t *leaving)
{
	int64_t min = INT64_MAX, own = 0;
	size_t i;
	json_t *b;

	json_array_foreach (jget(p->spec, "bricks"), i, b) {
		const struct source *s = model_source(m, jstr(b, "id"));
		if (b == leaving)
			own = s && !s->replaced ? s->size : 0;
		else if (s && s->size > 0 && !jbool(b, "arbiter") && s->size < min)
			min = s->size;
	}
	if (own > 0 && own < min)
		min = own;
	return min == INT64_MAX ? own : min;
}

static void replace_brick(struct plan_model *m, struct plan_pool *p, size_t index, struct source *s,
			  const char *why)
{
	json_t *bricks = jget(p->spec, "bricks"), *old = json_array_get(bricks, index);
	const char *node = jstr(old, "node");

	plan_finding(m, node, brick_source(old), p->name, "Moving",
		     "%s: its brick of pool %s moves to %s of node %s", why, p->name, s->name,
		     s->node->name);
	plan_step(m, "pool %s: move the brick on %s of node %s to %s of node %s (%s)", p->name,
		  brick_source(old), node, s->name, s->node->name, why);
	plan_pool_change(m, p, xasprintf("%s", why));
	s->pool = p;
	s->taken = true;
	json_array_append(m->replaced, old);
	json_array_set_new(bricks, index, brick_json(s, jbool(old, "arbiter")));
}

static void give_up_pool(struct plan_model *m, struct plan_pool *p, const char *why)
{
	plan_step(m, "pool %s: delete it; it holds no volume (%s)", p->name, why);
	p->action = "delete";
	free(p->why);
	p->why = xasprintf("%s, nothing can take its place, and the pool holds no volume", why);
}

static void hold_brick(struct plan_model *m, const struct plan_pool *p, const json_t *b,
		       int64_t need, const char *why)
{
	char size[QUANTITY_TEXT_MAX];
	const char *node = jstr(b, "node");
	const struct plan_node *n = model_node(m, node);
	const char *kind = jbool(b, "arbiter") ? "any size" : quantity_human(need, size);
	long volumes = (long)jint(m->in->volumes, p->name);
	/* its own node will do, too, unless that is to go */
	cleanup_free char *same = n && !n->deleting ? xasprintf("node %s or ", node) : xstrdup("");

	plan_finding(m, node, brick_source(b), p->name, "Held",
		     "held: %s, but pool %s with %ld volume%s needs its brick; add a device (%s or "
		     "more) to %sa node without a brick of this pool, or delete the claims of the "
		     "pool",
		     why, p->name, volumes, volumes == 1 ? "" : "s", kind, same);
}

/* True: what seems to be another disk may be the brick's own, and is not used yet. */
static bool hold_unsure(struct plan_model *m, const struct plan_pool *p, const json_t *b)
{
	const struct source *s = model_source(m, jstr(b, "id"));
	struct needed n = plan_needed(m, p, jstr(b, "id"));

	if (!s || !s->unsure || !was_replaced(m, p, s, jstr(b, "id")) || !n.pool)
		return false;
	plan_finding(m, jstr(b, "node"), s->name, p->name, "Held",
		     "held: another disk seems to be in the place of %s of node %s, but it may be "
		     "the old one, damaged, and too few others of pool %s are known to be whole: "
		     "bring the old disk back; or give up what only it has: annotate StoragePool "
		     "%s with " POOL_ANNOTATION_LOST "=%s",
		     s->name, s->node->name, n.pool->name, n.pool->name, n.id);
	return true;
}

static void edit_pool(struct plan_model *m, struct plan_pool *p)
{
	size_t i;
	json_t *b;

	json_array_foreach (jget(p->spec, "bricks"), i, b) {
		cleanup_free char *why = leaving_reason(m, p, b);
		if (!why)
			continue;
		if (change_under_way(m, p, b)) {
			plan_finding(m, jstr(b, "node"), brick_source(b), p->name, "Moving",
				     "%s: pool %s finishes an earlier change first", why, p->name);
			continue;
		}
		int64_t need = size_needed(m, p, b);
		struct source *s = choose_same_place(m, p, b, need);
		if (!s)
			s = choose_replacement(m, p, jstr(b, "id"), need);
		if (s) {
			replace_brick(m, p, i, s, why);
			return;
		}
		if (hold_unsure(m, p, b))
			continue;
		if (is_empty(m, p)) {
			if (!p->deleting)
				give_up_pool(m, p, why);
			return;
		}
		hold_brick(m, p, b, need, why);
	}
}

/* ---- growing ---------------------------------------------------------------------------------- */

static void create_pool(struct plan_model *m, const char *cluster, const struct set *set)
{
	struct plan_pool *p = model_add_pool(m, cluster);
	if (!p)
		return;
	json_t *bricks = json_array();
	for (int i = 0; i < set->count; i++) {
		set->bricks[i]->taken = true;
		set->bricks[i]->pool = p;
		json_array_append_new(bricks, brick_json(set->bricks[i], i == set->arbiter));
		plan_step(m, "pool %s: brick on %s of node %s (zone %d)%s", p->name,
			  set->bricks[i]->name, set->bricks[i]->node->name,
			  set->bricks[i]->node->zone, i == set->arbiter ? ", the arbiter" : "");
	}
	p->why = xasprintf("%d free devices on distinct nodes", set->count);
	p->spec =
		json_pack("{s:s, s:s, s:s, s:s, s:I, s:o, s:{}}", "type", "glusterfs", "deployment",
			  m->in->deployment, "cluster", cluster, "volumeType", m->in->volume_type,
			  "epoch", (json_int_t)m->in->epoch, "bricks", bricks, "options");
	if (m->in->tls_allow)
		json_object_set_new(p->spec, "tlsAllow", json_string(m->in->tls_allow));
}

static void grow_cluster(struct plan_model *m, const char *cluster)
{
	struct set set;
	while (m->pools_count < m->pools_cap && choose_set(m, cluster, &m->type, &set))
		create_pool(m, cluster, &set);
}

/* ---- what is not used, and why ---------------------------------------------------------------- */

static const json_t *report_of(const struct source *s)
{
	size_t i;
	json_t *d;
	json_array_foreach (jget(s->node->object, "status", "agent", "devices"), i, d)
		if (streq(jstr(d, s->directory ? "directory" : "device"), s->name))
			return d;
	return NULL;
}

static void explain_unfit(struct plan_model *m, const struct source *s)
{
	const json_t *report = report_of(s);
	const char *state = jstr(report, "state"), *message = jstr(report, "message");

	if (s->same) {
		plan_finding(m, s->node->name, s->name, NULL, "Refused",
			     "%s of node %s is the same %s as %s of node %s, which is on the same "
			     "machine: name it once",
			     s->name, s->node->name, s->directory ? "directory" : "device",
			     s->same->name, s->same->node->name);
		return;
	}
	if (!state) {
		plan_finding(m, s->node->name, s->name, NULL, "Waiting",
			     "%s of node %s: its agent has not reported yet", s->name,
			     s->node->name);
		return;
	}
	plan_finding(m, s->node->name, s->name, s->pool ? s->pool->name : NULL, state,
		     "%s of node %s: %s", s->name, s->node->name,
		     message		      ? message
		     : jstr(report, "reason") ? jstr(report, "reason")
					      : state);
}

static void explain_unused(struct plan_model *m)
{
	for (size_t i = 0; i < m->nodes_count; i++) {
		const struct plan_node *n = &m->nodes[i];
		if (!streq(n->cluster, n->wanted))
			plan_finding(
				m, n->name, NULL, NULL, "ClusterChanged",
				"node %s stays in cluster %s until it is empty, then moves to %s",
				n->name, n->cluster, n->wanted);
		for (size_t j = 0; j < n->sources_count; j++) {
			const struct source *s = &n->sources[j];
			if (!s->fit)
				explain_unfit(m, s);
			else if (source_is_free(s, n->cluster))
				plan_finding(
					m, n->name, s->name, NULL, "Unused",
					"%s of node %s waits for others: %s needs free devices on "
					"%d nodes of cluster "
					"%s; add a device or node",
					s->name, n->name, m->in->volume_type, m->type.bricks,
					n->cluster);
		}
	}
}

void plan_pools(struct plan_model *m)
{
	size_t existing = m->pools_count;

	for (size_t i = 0; i < existing; i++) {
		struct plan_pool *p = &m->pools[i];
		/* one that a person deleted goes on while anything is in it, be it an archive */
		if (p->odd || streq(p->action, "delete") || volume_is_to_go(p->object))
			continue;
		plan_note_prepared(m, p);
		edit_pool(m, p);
	}
	for (size_t i = 0; i < m->nodes_count; i++)
		grow_cluster(m, m->nodes[i].cluster);
	plan_children(m);
	explain_unused(m);
}
