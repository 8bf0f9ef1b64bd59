/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/plan_model.h"

#include "base/mem.h"

#include <stdint.h>

/*
 * Placement. A set is built greedily around an anchor, the biggest brick that it may hold: the
 * zone with the fewest bricks so far comes first, then the biggest device. Every size that is
 * there (in steps of 1 %) is tried as the anchor, and the best set wins: spread over zones, then capacity (that of
 * the smallest brick), then least waste, so that like goes with like.
 */
bool source_is_free(const struct source *s, const char *cluster)
{
	const struct plan_node *n = s->node;
	return s->listed && s->fit && !s->taken && n->address && !n->deleting && !n->maintenance &&
	       !n->offline && streq(n->cluster, cluster) && streq(n->wanted, cluster);
}

static bool set_has_node(const struct set *set, const struct plan_node *node)
{
	for (int i = 0; i < set->count; i++)
		if (set->bricks[i]->node == node)
			return true;
	return false;
}

static int set_in_zone(const struct set *set, int zone)
{
	int count = 0;
	for (int i = 0; i < set->count; i++)
		count += set->bricks[i]->node->zone == zone;
	return count;
}

static void count_free(struct plan_model *m, const char *cluster)
{
	for (size_t i = 0; i < m->nodes_count; i++) {
		struct plan_node *n = &m->nodes[i];
		n->free_count = 0;
		for (size_t j = 0; j < n->sources_count; j++)
			n->free_count += source_is_free(&n->sources[j], cluster);
	}
}

/* Is a the better next brick of the set than b (NULL: none yet)? Names decide in the end. */
static bool better_brick(const struct set *set, const struct source *a, const struct source *b,
			 bool smallest)
{
	if (!b)
		return true;
	int zone_a = set_in_zone(set, a->node->zone), zone_b = set_in_zone(set, b->node->zone);
	if (zone_a != zone_b)
		return zone_a < zone_b;
	if (a->size != b->size)
		return (a->size > b->size) != smallest;
	if (a->node->free_count != b->node->free_count)
		return a->node->free_count > b->node->free_count;
	int order = strcmp(a->node->name, b->node->name);
	return order ? order < 0 : strcmp(a->name, b->name) < 0;
}

static struct source *best_brick(struct plan_model *m, const char *cluster, const struct set *set,
				 int64_t max_size, bool smallest)
{
	struct source *best = NULL;
	for (size_t i = 0; i < m->nodes_count; i++) {
		struct plan_node *n = &m->nodes[i];
		if (set_has_node(set, n))
			continue;
		for (size_t j = 0; j < n->sources_count; j++) {
			struct source *s = &n->sources[j];
			if (source_is_free(s, cluster) && s->size <= max_size &&
			    better_brick(set, s, best, smallest))
				best = s;
		}
	}
	return best;
}

/* The set around one anchor size; an arbiter comes last, small and from any size. */
static bool build_set(struct plan_model *m, const char *cluster, const struct volume_type *type,
		      int64_t anchor, struct set *ret)
{
	*ret = (struct set){ .arbiter = -1 };
	int data = type->layout == LAYOUT_ARBITER ? 2 : type->bricks;

	while (ret->count < type->bricks) {
		bool arbiter = ret->count >= data;
		struct source *s =
			best_brick(m, cluster, ret, arbiter ? INT64_MAX : anchor, arbiter);
		if (!s)
			return false;
		if (arbiter)
			ret->arbiter = ret->count;
		ret->bricks[ret->count++] = s;
	}
	return true;
}

struct score {
	int crowding; /* sum of squares of the bricks in each zone: lowest when evenly spread */
	int64_t capacity; /* of the smallest data brick */
	int64_t waste; /* what bigger ones have beyond that */
};

static struct score set_score(const struct set *set)
{
	struct score s = { .capacity = INT64_MAX };
	for (int i = 0; i < set->count; i++) {
		s.crowding += set_in_zone(set, set->bricks[i]->node->zone);
		if (i != set->arbiter && set->bricks[i]->size < s.capacity)
			s.capacity = set->bricks[i]->size;
	}
	for (int i = 0; i < set->count; i++)
		s.waste += i == set->arbiter ? set->bricks[i]->size
					     : set->bricks[i]->size - s.capacity;
	return s;
}

static bool better_score(struct score a, struct score b)
{
	if (a.crowding != b.crowding)
		return a.crowding < b.crowding;
	if (a.capacity != b.capacity)
		return a.capacity > b.capacity;
	return a.waste < b.waste;
}

/* The biggest size below limit of a free source in the cluster; -1: none. */
static int64_t next_anchor(struct plan_model *m, const char *cluster, int64_t limit)
{
	int64_t size = -1;
	for (size_t i = 0; i < m->nodes_count; i++) {
		for (size_t j = 0; j < m->nodes[i].sources_count; j++) {
			const struct source *s = &m->nodes[i].sources[j];
			if (source_is_free(s, cluster) && s->size < limit && s->size > size)
				size = s->size;
		}
	}
	return size;
}

bool choose_set(struct plan_model *m, const char *cluster, const struct volume_type *type,
		struct set *ret)
{
	bool found = false;
	struct score best = { 0 };

	count_free(m, cluster);
	for (int64_t anchor = next_anchor(m, cluster, INT64_MAX); anchor >= 0;
	     anchor = next_anchor(m, cluster, anchor - anchor / 100)) {
		struct set set;
		if (!build_set(m, cluster, type, anchor, &set))
			break; /* smaller anchors have fewer candidates still */
		struct score score = set_score(&set);
		if (!found || better_score(score, best)) {
			best = score;
			*ret = set;
			found = true;
		}
	}
	return found;
}

struct source *choose_replacement(struct plan_model *m, const struct plan_pool *p,
				  const char *leaving, int64_t min_size)
{
	struct set rest = { .arbiter = -1 };
	struct source *best = NULL;
	size_t i;
	json_t *b;

	json_array_foreach (jget(p->spec, "bricks"), i, b) {
		struct source *s =
			streq(jstr(b, "id"), leaving) ? NULL : model_source(m, jstr(b, "id"));
		if (s && rest.count < SET_MAX)
			rest.bricks[rest.count++] = s;
	}
	count_free(m, p->cluster);
	bool arbiter = jbool(pool_brick(jget(p->spec, "bricks"), leaving), "arbiter");
	for (i = 0; i < m->nodes_count; i++) {
		struct plan_node *n = &m->nodes[i];
		for (size_t j = 0; j < n->sources_count && !set_has_node(&rest, n); j++) {
			struct source *s = &n->sources[j];
			/* smallest that suffices: bigger ones are for new sets */
			if (source_is_free(s, p->cluster) && s->size >= (arbiter ? 0 : min_size) &&
			    better_brick(&rest, s, best, true))
				best = s;
		}
	}
	return best;
}

json_t *brick_json(const struct source *s, bool arbiter)
{
	/* the directory between is on the brick's own file system: while that is not mounted, gluster, which would make
	 * the brick's directory, cannot */
	cleanup_free char *at = s->directory
					? xstrdup(s->name)
					: xasprintf("/var/lib/quartermaster/bricks/%s", s->id),
			  *path = xasprintf("%s/.quartermaster-%s/brick", at, s->id);
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:b, s:b}", "id", s->id, "node",
			 s->node->name, "address", s->node->address,
			 s->directory ? "directory" : "device", s->name, "path", path, "zone",
			 s->node->zone, "arbiter", arbiter, "prepared", 0);
}
