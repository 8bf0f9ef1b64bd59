/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what lay on a disk is known to be on others, before that disk may be formatted. */
#include "base/mem.h"
#include "systems/glusterfs/plan_model.h"

static bool is_data(const json_t *spec, const char *id)
{
	const json_t *b = pool_brick(spec, id);

	return b && !jbool(b, "arbiter");
}

static int whole_without(const struct plan_pool *p, const char *id)
{
	const json_t *spec = jget(p->object, "spec", "bricks");
	int whole = 0;
	size_t i;
	json_t *b;

	json_array_foreach (jget(p->object, "status", "bricks"), i, b)
		whole += !streq(jstr(b, "id"), id) && is_data(spec, jstr(b, "id")) &&
			 jbool(b, "online") && jbool(b, "whole");
	return whole;
}

/* As its leader gives a brick up (cluster.c): enough others are whole, or a person says so. */
static bool can_spare(const struct plan_pool *p, const char *id)
{
	const json_t *now = jget(p->object, "status", "bricks");

	if (!pool_brick(now, id))
		return !p->made || json_array_size(now) > 0;
	return !is_data(jget(p->object, "spec", "bricks"), id) ||
	       whole_without(p, id) >= p->type.data ||
	       streq(jstr(p->object, "metadata", "annotations", POOL_ANNOTATION_LOST), id);
}

/* The brick of a volume beside the pool that lies on this one of the pool; NULL: there is none. */
static const char *beside(const struct plan_pool *child, const struct plan_pool *p, const char *id)
{
	size_t i;
	json_t *b;

	if (!streq(jstr(child->object, "spec", "parent"), p->name))
		return NULL;
	json_array_foreach (jget(child->object, "spec", "bricks"), i, b)
		if (streq(jstr(b, "parent"), id))
			return jstr(b, "id");
	return NULL;
}

struct needed plan_needed(const struct plan_model *m, const struct plan_pool *p, const char *id)
{
	if (!can_spare(p, id))
		return (struct needed){ p, id };
	for (size_t i = 0; i < m->children_count; i++) {
		const struct plan_pool *c = &m->children[i];
		const char *own = beside(c, p, id);

		if (own && !can_spare(c, own))
			return (struct needed){ c, own };
	}
	return (struct needed){ NULL, NULL };
}
