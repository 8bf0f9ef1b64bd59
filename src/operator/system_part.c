/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/system.h"

/* ---- what was read -------------------------------------------------------------------------- */

static void at_least(struct system *s, long number)
{
	if (number > s->last_number)
		s->last_number = number;
}

void part_add_node(struct system *s, const json_t *node)
{
	at_least(s, plan_node_number(s->op->deployment, node));
	s->reported = s->reported || jstr(node, "status", "agent", "heartbeat");
	parts_add_node(&s->parts, node, node_urgency(s, node));
}

static void note_number(struct system *s, const json_t *pool)
{
	if (!pool_parent(pool))
		at_least(s, plan_pool_number(s->op->deployment, object_name(pool)));
}

void part_add_pool(struct system *s, const json_t *pool)
{
	note_number(s, pool);
	parts_add_pool(&s->parts, pool, jget(s->changed, object_name(pool)) != NULL);
}

void part_add_foreign(struct system *s, const char *pool)
{
	at_least(s, plan_pool_number(s->op->deployment, pool));
	json_array_append_new(s->foreign_pools, json_string(pool));
}

/* ---- what is left of a part ----------------------------------------------------------------- */

static void keep(json_t *brief, const json_t *object, const char *section, const char *field)
{
	json_t *value = jget(object, section, field);

	if (value)
		jset(brief, json_incref(value), section, field);
}

/* Many are alike, and all of them are in memory together: the same value is there once. */
static json_t *share(json_t *shared, json_t *value /* stolen */)
{
	cleanup_free char *text = json_dumps(value, 0);
	json_t *same = json_object_get(shared, text);

	if (!same)
		json_object_set(shared, text, same = value);
	json_incref(same);
	json_decref(value);
	return same;
}

/* Of a node, what the StorageStatus is made from. */
static json_t *brief_node(json_t *shared, const json_t *node)
{
	json_t *brief = json_object(),
	       *status = json_pack("{s:s*, s:{s:s*}}", "phase", jstr(node, "status", "phase"),
				   "plan", "cluster", jstr(node, "status", "plan", "cluster"));

	keep(brief, node, "metadata", "name");
	json_object_set_new(brief, "status", share(shared, status));
	return brief;
}

/* How many of a pool's bricks are on nodes that are there and not silent; these are of its part. */
static int count_heard(const struct system *s, const json_t *pool)
{
	size_t i, k;
	json_t *b, *node;
	int count = 0;

	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		json_array_foreach (s->nodes, k, node)
			count += streq(object_name(node), jstr(b, "node")) &&
				 !streq(jstr(node, "status", "phase"), "Offline");
	return count;
}

static json_t *brief_pool(const struct system *s, json_t *shared, const json_t *pool)
{
	static const char *const fields[][2] = {
		{ "metadata", "name" },	       { "metadata", "deletionTimestamp" },
		{ "status", "phase" },	       { "status", "message" },
		{ "status", "capacityBytes" }, { "status", "usedBytes" },
		{ "status", "healPending" },
	};
	json_t *brief = json_object(),
	       *spec = json_pack("{s:s*, s:s*}", "cluster", jstr(pool, "spec", "cluster"),
				 "volumeType", jstr(pool, "spec", "volumeType"));

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		keep(brief, pool, fields[i][0], fields[i][1]);
	json_object_set_new(brief, "spec", share(shared, spec));
	jset(brief, json_integer(count_heard(s, pool)), "heard");
	return brief;
}

/* ---- part by part --------------------------------------------------------------------------- */

static int make_plan(struct system *s)
{
	cleanup_json json_t *volumes = pools_volumes(s);
	struct plan_input in = {
		.deployment = s->op->deployment,
		.volume_type = s->op->volume_type,
		.overcommit = s->op->overcommit,
		.nodes = s->nodes,
		.pools = s->pools,
		.foreign_pools = s->foreign_pools,
		.volumes = volumes,
		.last_number = s->last_number,
		.epoch = s->epoch,
		.tls_allow = s->op->tls_allow,
	};
	return glusterfs_plan(&in, &s->plan, &s->r->error);
}

static void part_load(struct system *s, size_t part)
{
	s->nodes = json_array();
	s->pools = json_array();
	for (size_t i = part; i < s->parts.count; i++)
		if (parts_of(&s->parts, i) == part)
			json_array_append_new(parts_is_pool(&s->parts, i) ? s->pools : s->nodes,
					      parts_take(&s->parts, i));
}

static void part_unload(struct system *s, json_t *nodes, json_t *pools, json_t *shared)
{
	size_t i;
	json_t *o;

	json_array_foreach (s->nodes, i, o)
		json_array_append_new(nodes, brief_node(shared, o));
	json_array_foreach (s->pools, i, o) {
		note_number(s, o); /* one may be new */
		json_array_append_new(pool_parent(o) ? s->wholes : pools, brief_pool(s, shared, o));
	}
	json_decref(s->nodes);
	json_decref(s->pools);
	s->nodes = s->pools = NULL;
	plan_output_done(&s->plan);
	s->plan = (struct plan_output){ 0 };
}

static int part_pass_over(struct system *s)
{
	size_t i;
	json_t *node;

	json_array_foreach (s->nodes, i, node)
		node_pass_over(s, node);
	return 0;
}

static int part_look(struct system *s)
{
	int (*const steps[])(struct system *) = { nodes_set_aside, nodes_prepare, make_plan,
						  pools_apply, nodes_finish };
	json_t *pool;
	size_t i;
	int rc = 0;

	for (i = 0; rc == 0 && i < ARRAY_SIZE(steps); i++)
		rc = steps[i](s);
	if (rc == 0)
		status_findings(s);
	json_array_foreach (s->pools, i, pool)
		if (rc == 0)
			json_object_del(s->changed, object_name(pool));
	return rc;
}

static int by_name(const void *a, const void *b)
{
	json_t *const *x = a, *const *y = b;

	return strcmp(object_name(*x), object_name(*y));
}

/* In the order in which the API lists them, whatever part they are of. */
static json_t *sorted(json_t *objects /* stolen */)
{
	size_t count = json_array_size(objects), i;
	cleanup_free json_t **items = xcalloc(count + 1, sizeof(*items));
	json_t *result = json_array();

	for (i = 0; i < count; i++)
		items[i] = json_array_get(objects, i);
	qsort(items, count, sizeof(*items), by_name);
	for (i = 0; i < count; i++)
		json_array_append(result, items[i]);
	json_decref(objects);
	return result;
}

/* The most urgent first; those that are equally so take turns in coming next. Gives their number. */
static size_t order_parts(const struct system *s, size_t *ret)
{
	size_t count = 0, all = s->parts.count, first = all ? memory_turn(s->op->memory) % all : 0;

	for (int urgency = NODE_URGENCY_MAX; urgency >= 0; urgency--)
		for (size_t k = 0; k < all; k++) {
			size_t i = (first + k) % all;

			if (parts_of(&s->parts, i) == i && parts_urgency(&s->parts, i) == urgency)
				ret[count++] = i;
		}
	return count;
}

int parts_look(struct system *s)
{
	json_t *nodes = json_array(), *pools = json_array();
	cleanup_json json_t *shared = json_object();
	int64_t began = clock_mono_ms(s->r->clock);
	int rc = 0;

	parts_join(&s->parts);
	cleanup_free size_t *order = xcalloc(s->parts.count + 1, sizeof(*order));
	size_t count = order_parts(s, order);
	for (size_t i = 0; rc == 0 && i < count; i++) {
		part_load(s, order[i]);
		rc = i > 0 && system_time_is_up(s, began) ? part_pass_over(s) : part_look(s);
		part_unload(s, nodes, pools, shared);
	}
	s->nodes = sorted(nodes);
	s->pools = sorted(pools);
	return rc;
}
