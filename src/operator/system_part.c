/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/system.h"

/* ---- what was read -------------------------------------------------------------------------- */

void part_add_node(struct system *s, json_t *node)
{
	s->reported = s->reported || jstr(node, "status", "agent", "heartbeat");
	parts_add_node(&s->parts, node);
}

static void note_number(struct system *s, const json_t *pool)
{
	const char *dash = strrchr(object_name(pool), '-');
	long number = dash ? strtol(dash + 1, NULL, 10) : 0;

	if (number > s->last_number)
		s->last_number = number;
}

void part_add_pool(struct system *s, json_t *pool)
{
	note_number(s, pool);
	parts_add_pool(&s->parts, pool);
}

/* ---- what is left of a part ----------------------------------------------------------------- */

static void keep(json_t *brief, const json_t *object, const char *section, const char *field)
{
	json_t *value = jget(object, section, field);

	if (value)
		jset(brief, json_incref(value), section, field);
}

/* Of a node, what the StorageStatus is made from. */
static json_t *brief_node(const json_t *node)
{
	const char *cluster = jstr(node, "status", "plan", "cluster");
	json_t *brief = json_object();

	keep(brief, node, "metadata", "name");
	keep(brief, node, "status", "phase");
	if (cluster)
		jset(brief, json_string(cluster), "status", "plan", "cluster");
	return brief;
}

static json_t *brief_pool(const json_t *pool)
{
	static const char *const fields[][2] = {
		{ "metadata", "name" },	       { "metadata", "deletionTimestamp" },
		{ "spec", "cluster" },	       { "spec", "volumeType" },
		{ "status", "phase" },	       { "status", "message" },
		{ "status", "capacityBytes" }, { "status", "usedBytes" },
		{ "status", "healPending" },
	};
	json_t *brief = json_object(), *bricks = json_array(), *b;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(fields); i++)
		keep(brief, pool, fields[i][0], fields[i][1]);
	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		json_array_append_new(bricks, json_pack("{s:s*}", "node", jstr(b, "node")));
	jset(brief, bricks, "spec", "bricks");
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

static void part_unload(struct system *s, json_t *nodes, json_t *pools)
{
	size_t i;
	json_t *o;

	json_array_foreach (s->nodes, i, o)
		json_array_append_new(nodes, brief_node(o));
	json_array_foreach (s->pools, i, o) {
		note_number(s, o); /* one may be new */
		json_array_append_new(pools, brief_pool(o));
	}
	json_decref(s->nodes);
	json_decref(s->pools);
	s->nodes = s->pools = NULL;
	plan_output_done(&s->plan);
	s->plan = (struct plan_output){ 0 };
}

static int part_look(struct system *s)
{
	int (*const steps[])(struct system *) = { nodes_set_aside, nodes_prepare, make_plan,
						  pools_apply, nodes_finish };
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(steps); i++)
		rc = steps[i](s);
	if (rc == 0)
		status_findings(s);
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

int parts_look(struct system *s)
{
	json_t *nodes = json_array(), *pools = json_array();
	int rc = 0;

	parts_join(&s->parts);
	for (size_t i = 0; rc == 0 && i < s->parts.count; i++) {
		if (parts_of(&s->parts, i) != i)
			continue;
		part_load(s, i);
		rc = part_look(s);
		part_unload(s, nodes, pools);
	}
	s->nodes = sorted(nodes);
	s->pools = sorted(pools);
	return rc;
}
