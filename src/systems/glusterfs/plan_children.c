/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole volumes: pools with a parent. Each has one brick beside each brick of the parent, on the same
 * file system, and follows it: when the parent's brick moves, so does the child's. What holds a child's
 * brick is not given up before the child has left it.
 */
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/plan_model.h"

/* What holds the brick and its marker: the file system's root, or a directory of ours. New string. */
static char *root_of(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? xstrndup(path, (size_t)(slash - path)) : NULL;
}

/* The child's brick beside the parent's brick `b`. */
static json_t *child_brick(const char *child, const json_t *b)
{
	cleanup_free char *root = root_of(jstr(b, "path")), *path = NULL;
	char id[16];

	brick_id(child, jstr(b, "id"), id);
	path = xasprintf("%s/.quartermaster-%s/brick", root ? root : "", id);
	return json_pack("{s:s, s:s*, s:s*, s:s, s:s, s:i, s:b, s:b, s:s}", "id", id, "node",
			 jstr(b, "node"), "address", jstr(b, "address"), "directory",
			 root ? root : "", "path", path, "zone", (int)jint(b, "zone"), "arbiter",
			 (int)jbool(b, "arbiter"), "prepared", 0, "parent", jstr(b, "id"));
}

static struct plan_pool *parent_of(struct plan_model *m, const struct plan_pool *child)
{
	const char *name = jstr(child->object, "spec", "parent");

	for (size_t i = 0; i < m->pools_count; i++)
		if (streq(m->pools[i].name, name))
			return &m->pools[i];
	return NULL;
}

bool plan_has_children(const struct plan_model *m, const struct plan_pool *p)
{
	for (size_t i = 0; i < m->children_count; i++)
		if (streq(jstr(m->children[i].object, "spec", "parent"), p->name))
			return true;
	return false;
}

/* Its volume has bricks that its spec has not, or the other way round. */
static bool follows(const struct plan_pool *child)
{
	return !bricks_same(jget(child->object, "status", "bricks"),
			    jget(child->object, "spec", "bricks"));
}

bool plan_children_follow(const struct plan_model *m, const struct plan_pool *p)
{
	for (size_t i = 0; i < m->children_count; i++) {
		const struct plan_pool *c = &m->children[i];

		if (c->made && !c->deleting && streq(jstr(c->object, "spec", "parent"), p->name) &&
		    follows(c))
			return true;
	}
	return false;
}

bool plan_children_lie_on(const struct plan_model *m, const struct plan_pool *p, const char *id)
{
	size_t k;
	json_t *b;

	for (size_t i = 0; i < m->children_count; i++) {
		const struct plan_pool *c = &m->children[i];

		if (!streq(jstr(c->object, "spec", "parent"), p->name))
			continue;
		json_array_foreach (jget(c->object, "spec", "bricks"), k, b)
			if (streq(jstr(b, "parent"), id) &&
			    pool_brick(jget(c->object, "status", "bricks"), jstr(b, "id")))
				return true;
	}
	return false;
}

/* ---- nodes ------------------------------------------------------------------------------------ */

static bool in_some_child(const struct plan_model *m, const char *id, const char **ret_cluster)
{
	for (size_t i = 0; i < m->children_count; i++) {
		const struct plan_pool *c = &m->children[i];

		if (pool_brick(jget(c->object, "status", "bricks"), id) ||
		    pool_brick(jget(c->spec, "bricks"), id)) {
			*ret_cluster = c->cluster;
			return true;
		}
	}
	return false;
}

void plan_children_mark(struct plan_model *m)
{
	static const char *const held_by[] = { "agent", "plan" };
	const char *cluster;
	size_t i;
	json_t *b;

	for (size_t n = 0; m->children_count && n < m->nodes_count; n++)
		for (size_t k = 0; k < ARRAY_SIZE(held_by); k++)
			json_array_foreach (
				jget(m->nodes[n].object, "status", held_by[k], "bricks"), i, b) {
				if (!in_some_child(m, jstr(b, "id"), &cluster))
					continue;
				if (!m->nodes[n].has_bricks)
					m->nodes[n].cluster = cluster;
				m->nodes[n].has_bricks = true;
			}
}

bool plan_brick_carries(const struct plan_node *n, const json_t *brick)
{
	static const char *const held_by[] = { "agent", "plan" };
	cleanup_free char *root = root_of(jstr(brick, "path"));
	cleanup_free char *below = root ? xasprintf("%s/.quartermaster-", root) : NULL;
	size_t i;
	json_t *b;

	for (size_t k = 0; below && k < ARRAY_SIZE(held_by); k++)
		json_array_foreach (jget(n->object, "status", held_by[k], "bricks"), i, b)
			if (jstr(b, "path") && str_has_prefix(jstr(b, "path"), below))
				return true;
	return false;
}

/* ---- the plan --------------------------------------------------------------------------------- */

/* A brick that stays keeps what is known of it. */
static json_t *bricks_beside(const struct plan_pool *child, const struct plan_pool *parent)
{
	json_t *bricks = json_array(), *b;
	size_t i;

	json_array_foreach (jget(parent->spec, "bricks"), i, b) {
		json_t *fresh = child_brick(child->name, b);
		const json_t *known = pool_brick(jget(child->spec, "bricks"), jstr(fresh, "id"));

		if (known) {
			json_decref(fresh);
			fresh = json_incref((json_t *)known);
		}
		json_array_append_new(bricks, fresh);
	}
	return bricks;
}

void plan_children(struct plan_model *m)
{
	for (size_t i = 0; i < m->children_count; i++) {
		struct plan_pool *c = &m->children[i];
		const struct plan_pool *parent = parent_of(m, c);

		if (c->odd || (c->deleting && !c->made))
			continue;
		if (!parent || parent->odd) {
			plan_finding(
				m, NULL, NULL, c->name, "Odd",
				"volume %s is set aside: its pool %s is not there, or makes no "
				"sense; delete it, or put that right",
				c->name, jstr(c->object, "spec", "parent"));
			c->odd = true;
			continue;
		}
		json_t *bricks = bricks_beside(c, parent);
		if (!bricks_same(bricks, jget(c->spec, "bricks"))) {
			plan_step(m, "volume %s: its bricks lie beside those of pool %s", c->name,
				  parent->name);
			json_object_set(c->spec, "bricks", bricks);
			plan_pool_change(
				m, c,
				xasprintf("its bricks lie beside those of pool %s", parent->name));
		}
		json_decref(bricks);
		plan_note_prepared(m, c);
	}
}
