/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/plan_model.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define POOL_DIGITS 9 /* no deployment makes as many pools */

void plan_finding(struct plan_model *m, const char *node, const char *device, const char *pool,
		  const char *reason, const char *format, ...)
{
	char text[500];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);

	json_t *f = json_pack("{s:s*, s:s, s:s}", "node", node, "reason", reason, "message", text);
	if (device)
		json_object_set_new(f, "device", json_string(device));
	if (pool)
		json_object_set_new(f, "pool", json_string(pool));
	json_array_append_new(m->findings, f);
}

void plan_step(struct plan_model *m, const char *format, ...)
{
	char text[500];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	json_array_append_new(m->steps, json_string(text));
}

struct plan_node *model_node(struct plan_model *m, const char *name)
{
	for (size_t i = 0; i < m->nodes_count; i++)
		if (streq(m->nodes[i].name, name))
			return &m->nodes[i];
	return NULL;
}

struct source *model_source(struct plan_model *m, const char *brick_id)
{
	for (size_t i = 0; i < m->nodes_count; i++)
		for (size_t j = 0; j < m->nodes[i].sources_count; j++)
			if (streq(m->nodes[i].sources[j].id, brick_id))
				return &m->nodes[i].sources[j];
	return NULL;
}

const json_t *pool_brick(const json_t *bricks, const char *id)
{
	size_t i;
	json_t *b;
	json_array_foreach ((json_t *)bricks, i, b)
		if (streq(jstr(b, "id"), id))
			return b;
	return NULL;
}

bool bricks_same(const json_t *a, const json_t *b)
{
	size_t i;
	json_t *x;

	json_array_foreach ((json_t *)a, i, x)
		if (!pool_brick(b, jstr(x, "id")))
			return false;
	json_array_foreach ((json_t *)b, i, x)
		if (!pool_brick(a, jstr(x, "id")))
			return false;
	return true;
}

bool volume_is_to_go(const json_t *pool)
{
	return jget(pool, "metadata", "deletionTimestamp") &&
	       streq(jstr(pool, "metadata", "annotations", POOL_ANNOTATION_EMPTY), "true");
}

/* ---- nodes ------------------------------------------------------------------------------------ */

static struct source *node_source(struct plan_node *n, const char *name)
{
	for (size_t i = 0; i < n->sources_count; i++)
		if (streq(n->sources[i].name, name))
			return &n->sources[i];
	return NULL;
}

/* What the agent says about a device or directory; NULL: nothing yet. */
static const json_t *source_report(const struct plan_node *n, const char *name)
{
	size_t i;
	json_t *d;
	json_array_foreach (jget(n->object, "status", "agent", "devices"), i, d)
		if (streq(jstr(d, "device"), name) || streq(jstr(d, "directory"), name))
			return d;
	return NULL;
}

static bool is_lost(const struct source *s)
{
	size_t i;
	json_t *v;
	json_array_foreach (jget(source_report(s->node, s->name), "lost"), i, v)
		if (streq(json_string_value(v), s->id))
			return true;
	return false;
}

/*
 * An id is a file system once and for all: what is made on a disk that took another's name gets the
 * next one.
 */
void source_next_id(struct source *s)
{
	const struct plan_node *n = s->node;
	do {
		cleanup_free char *after = xasprintf("%s\n%s", s->name, s->id);
		brick_id(n->uid ? n->uid : n->name, after, s->id);
	} while (is_lost(s));
}

static struct source *node_add_source(struct plan_node *n, const char *name, bool directory,
				      bool listed)
{
	struct source *s = node_source(n, name);
	if (s)
		return s;
	s = &n->sources[n->sources_count++];
	*s = (struct source){ .node = n, .name = name, .directory = directory, .listed = listed };
	brick_id(n->uid ? n->uid : n->name, name, s->id);

	const json_t *report = source_report(n, name);
	const char *state = jstr(report, "state");
	s->size = jint(report, "sizeBytes");
	s->fit = streq(state, "Available") || streq(state, "Ready");
	if (streq(state, "Missing") && streq(jstr(report, "reason"), "Replaced"))
		s->replaced = jstr(report, "brick");
	s->unsure = s->replaced && jbool(report, "unsure");
	if (is_lost(s))
		source_next_id(s);
	return s;
}

static void node_build(struct plan_model *m, struct plan_node *n, const json_t *object,
		       size_t brick_count)
{
	const json_t *devices = jget(object, "spec", "devices"),
		     *dirs = jget(object, "spec", "directories");
	const json_t *zone = jget(object, "spec", "glusterfs", "zone");
	const char *wanted = jstr(object, "spec", "glusterfs", "cluster");
	size_t i;
	json_t *v;

	*n = (struct plan_node){
		.object = object,
		.name = jstr(object, "metadata", "name"),
		.uid = jstr(object, "metadata", "uid"),
		.wanted = wanted ? wanted : m->in->deployment,
		.zone = zone ? (int)json_integer_value(zone) : 1,
		.deleting = jget(object, "metadata", "deletionTimestamp") != NULL,
		.maintenance = jbool(object, "spec", "maintenance"),
		.offline = streq(jstr(object, "status", "phase"), "Offline"),
		.sources =
			xcalloc(json_array_size(devices) + json_array_size(dirs) + brick_count + 1,
				sizeof(struct source)),
	};
	n->cluster = n->wanted;
	json_array_foreach (devices, i, v)
		node_add_source(n, json_string_value(v), false, true);
	json_array_foreach (dirs, i, v)
		node_add_source(n, json_string_value(v), true, true);
}

static int by_node_name(const void *a, const void *b)
{
	const struct plan_node *x = a, *y = b;
	return strcmp(x->name, y->name);
}

/* The address that is in force: the first of the spec, but while bricks exist the one they were made with. */
static void node_address(struct plan_model *m, struct plan_node *n, const char *brick_address)
{
	const char *declared = json_string_value(
		json_array_get(jget(n->object, "spec", "storageNetwork", "ips"), 0));
	const char *known = jstr(n->object, "status", "address");

	n->address = declared;
	if (n->has_bricks)
		n->address = brick_address ? brick_address : known ? known : declared;
	if (!n->address) {
		plan_finding(m, n->name, NULL, NULL, "NoAddress",
			     "node %s has no address in its storage network; set "
			     "spec.storageNetwork.ips",
			     n->name);
	} else if (!streq(n->address, declared)) {
		plan_finding(
			m, n->name, NULL, NULL, "AddressChanged",
			"node %s keeps its address %s, since its bricks are known to GlusterFS by "
			"it, instead of "
			"%s; set the old address again, or empty the node first by removing its "
			"devices",
			n->name, n->address, declared ? declared : "none");
	}
}

static void drop_equal_addresses(struct plan_model *m)
{
	for (size_t i = 0; i < m->nodes_count; i++) {
		for (size_t j = 0; j < m->nodes_count; j++) {
			struct plan_node *n = &m->nodes[i], *other = &m->nodes[j];
			bool first = other->has_bricks > n->has_bricks ||
				     (other->has_bricks == n->has_bricks && j < i);
			if (i == j || !first || !n->address || !streq(n->address, other->address))
				continue;
			plan_finding(
				m, n->name, NULL, NULL, "AddressConflict",
				"node %s is not used: its address %s is that of node %s; give each "
				"node its own",
				n->name, n->address, other->name);
			n->address = NULL;
		}
	}
}

/* ---- pools ------------------------------------------------------------------------------------ */

/* Whoever has a volume comes first, so that no pool that a person wrote can take its bricks. */
static int by_pool_number(const void *a, const void *b)
{
	const struct plan_pool *x = a, *y = b;
	if (x->made != y->made)
		return x->made ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return strcmp(x->name, y->name);
}

long plan_pool_number(const char *deployment, const char *name)
{
	const char *digits =
		name && str_has_prefix(name, deployment) ? name + strlen(deployment) : "";
	size_t len = strlen(digits);

	if (*digits != '-' || len < 2 || len > 1 + POOL_DIGITS ||
	    strspn(digits + 1, "0123456789") != len - 1)
		return 0;
	return strtol(digits + 1, NULL, 10);
}

long plan_node_number(const char *deployment, const json_t *node)
{
	static const char *const named_by[] = { "plan", "agent" };
	long highest = 0;
	size_t i;
	json_t *b;

	for (size_t k = 0; k < ARRAY_SIZE(named_by); k++)
		json_array_foreach (jget(node, "status", named_by[k], "bricks"), i, b) {
			long number = plan_pool_number(deployment, jstr(b, "pool"));

			highest = number > highest ? number : highest;
		}
	return highest;
}

/* Why a pool cannot be one that was planned here; NULL: it can. */
static const char *pool_oddity(const struct plan_model *m, const struct plan_pool *p)
{
	const char *deployment = jstr(p->object, "spec", "deployment");
	const json_t *bricks = jget(p->spec, "bricks");
	size_t i;
	json_t *b;

	if (jstr(p->object, "spec", "parent"))
		return NULL; /* its bricks follow from its parent's */
	if (!p->number)
		return "its name is not that of the deployment and a number";
	if (deployment && !streq(deployment, m->in->deployment))
		return "spec.deployment is another one";
	if (!json_array_size(bricks))
		return "it has no bricks";
	json_array_foreach ((json_t *)bricks, i, b)
		if (!jstr(b, "id") || !jstr(b, "node") ||
		    (!jstr(b, "device") && !jstr(b, "directory")))
			return "one of its bricks has no id, node or device";
	return NULL;
}

/*
 * A pool that makes no sense is left exactly as it is: nothing of it is changed or moved. Where it
 * has a volume, its bricks stay its own; where not, it gets none.
 */
static void judge_pool(struct plan_model *m, struct plan_pool *p)
{
	const char *type = jstr(p->object, "spec", "volumeType");
	struct error err = ERROR_INIT;
	int rc = volume_type_parse(type ? type : m->in->volume_type, &p->type, &err);
	const char *why = rc < 0 ? err.message : pool_oddity(m, p);

	if (!why)
		return;
	if (rc < 0)
		p->type = m->type;
	p->odd = true;
	plan_finding(m, NULL, NULL, p->name, "Odd",
		     "pool %s is set aside: %s; delete it, or put it right", p->name, why);
}

static void pool_build(struct plan_model *m, struct plan_pool *p, const json_t *object)
{
	const char *name = jstr(object, "metadata", "name"),
		   *id = jstr(object, "status", "volumeId");

	*p = (struct plan_pool){
		.object = object,
		.name = xstrdup(name),
		.number = plan_pool_number(m->in->deployment, name),
		.made = id && *id,
		.cluster = jstr(object, "spec", "cluster"),
		.spec = json_deep_copy(jget(object, "spec")),
		.action = "keep",
		.deleting = jget(object, "metadata", "deletionTimestamp") != NULL,
	};
	if (!p->cluster)
		p->cluster = m->in->deployment;
	judge_pool(m, p);
}

static void at_least(long *number, long other)
{
	if (other > *number)
		*number = other;
}

/* What was written down of it may be lost: all that is there counts too. */
static long last_number(const struct plan_model *m)
{
	const char *deployment = m->in->deployment;
	long number = m->in->last_number;
	size_t i;
	json_t *v;

	for (i = 0; i < m->pools_count; i++)
		at_least(&number, m->pools[i].number);
	for (i = 0; i < m->nodes_count; i++)
		at_least(&number, plan_node_number(deployment, m->nodes[i].object));
	json_array_foreach ((json_t *)m->in->foreign_pools, i, v)
		at_least(&number, plan_pool_number(deployment, json_string_value(v)));
	return number;
}

struct plan_pool *model_add_pool(struct plan_model *m, const char *cluster)
{
	long number = last_number(m) + 1;

	if (m->pools_count == m->pools_cap)
		return NULL;
	struct plan_pool *p = &m->pools[m->pools_count++];
	*p = (struct plan_pool){
		.name = xasprintf("%s-%ld", m->in->deployment, number),
		.number = number,
		.cluster = cluster,
		.type = m->type,
		.action = "create",
	};
	return p;
}

/* How much a pool has of a brick already: it is in its volume, it may be, or it is only named. */
enum hold { HOLD_VOLUME, HOLD_PREPARED, HOLD_NAMED, HOLD_COUNT };

static enum hold pool_hold(const struct plan_pool *p, const json_t *b)
{
	if (pool_brick(jget(p->object, "status", "bricks"), jstr(b, "id")))
		return HOLD_VOLUME;
	return jbool(b, "prepared") ? HOLD_PREPARED : HOLD_NAMED;
}

/*
 * Gives each brick of the pool's spec to its source. A brick is known by node and device, not by
 * its id alone: a node that was deleted and declared again has another uid, yet the same disks.
 * Of two pools that name one device (two operators at once, or a write that the API carried out after it was
 * given up and planned anew) the one that has more of it keeps it, else the older.
 */
static void pool_take_sources(struct plan_model *m, struct plan_pool *p, enum hold hold)
{
	size_t i;
	json_t *b;
	if (p->odd && !p->made)
		return;
	json_array_foreach (jget(p->spec, "bricks"), i, b) {
		const char *device = jstr(b, "device"), *dir = jstr(b, "directory");
		if (pool_hold(p, b) != hold)
			continue;
		struct plan_node *n = model_node(m, jstr(b, "node"));
		if (!n || (!device && !dir))
			continue;
		struct source *s = node_add_source(n, device ? device : dir, !device, false);
		if (s->pool) {
			plan_finding(m, n->name, s->name, p->name, "Conflict",
				     "device %s of node %s is named by pools %s and %s", s->name,
				     n->name, s->pool->name, p->name);
			if (!p->deleting && !jstr(p->object, "status", "volumeId")) {
				p->action = "delete";
				free(p->why);
				p->why = xasprintf("%s of node %s belongs to pool %s", s->name,
						   n->name, s->pool->name);
			}
			continue;
		}
		s->pool = p;
		s->taken = true;
		snprintf(s->id, sizeof(s->id), "%s", jstr(b, "id") ? jstr(b, "id") : "");
		if (!n->has_bricks) {
			n->has_bricks = true;
			n->cluster = p->cluster;
		}
	}
}

/* What a pool has not yet let go of, or its node not yet released, is not free. */
static void mark_lingering(struct plan_model *m)
{
	static const char *const held_by[][4] = {
		{ "status", "agent", "bricks", NULL },
		{ "status", "plan", "bricks", NULL },
	};
	size_t i, k;
	json_t *b;

	for (size_t p = 0; p < m->pools_count; p++) {
		json_array_foreach (jget(m->pools[p].object, "status", "bricks"), i, b) {
			struct source *s = model_source(m, jstr(b, "id"));
			if (s) {
				s->taken = s->node->has_bricks = true;
				if (!s->pool)
					s->node->cluster = m->pools[p].cluster;
			}
		}
	}
	for (size_t n = 0; n < m->nodes_count; n++) {
		for (k = 0; k < ARRAY_SIZE(held_by); k++) {
			json_array_foreach (jget_path(m->nodes[n].object, held_by[k]), i, b) {
				struct source *s = model_source(m, jstr(b, "id"));
				if (s)
					s->taken = true;
			}
		}
	}
}

/* ---- one device, two nodes ------------------------------------------------------------------- */

/* By the boot id too: machines that were made from one image may share their machine id. */
static bool same_machine(const struct plan_node *a, const struct plan_node *b)
{
	static const char *const ids[] = { "machineId", "bootId" };
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		const char *x = jstr(a->object, "status", "agent", ids[i]);
		if (!x || !*x || !streq(x, jstr(b->object, "status", "agent", ids[i])))
			return false;
	}
	return true;
}

static bool same_source(const struct source *a, const struct source *b)
{
	static const char *const ids[] = { "majorMinor", "wwn" };
	const json_t *x = source_report(a->node, a->name), *y = source_report(b->node, b->name);

	if (a->directory || b->directory)
		return a->directory && b->directory && streq(a->name, b->name);
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		if (jstr(x, ids[i]) && streq(jstr(x, ids[i]), jstr(y, ids[i])))
			return true;
	return false;
}

/* Several nodes may be one machine. A device that two of them name goes to the one that has it, else to the first. */
static void refuse_shared(struct plan_node *a, struct plan_node *b)
{
	for (size_t i = 0; i < a->sources_count; i++) {
		for (size_t j = 0; j < b->sources_count; j++) {
			struct source *keeps = &a->sources[i], *loses = &b->sources[j];
			if (keeps->same || loses->same || !same_source(keeps, loses))
				continue;
			if (loses->taken && !keeps->taken) {
				keeps = &b->sources[j];
				loses = &a->sources[i];
			}
			if (loses->taken)
				continue;
			loses->same = keeps;
			loses->fit = false;
		}
	}
}

static void find_shared(struct plan_model *m)
{
	for (size_t i = 0; i < m->nodes_count; i++)
		for (size_t k = i + 1; k < m->nodes_count; k++)
			if (same_machine(&m->nodes[i], &m->nodes[k]))
				refuse_shared(&m->nodes[i], &m->nodes[k]);
}

/* ---- the whole --------------------------------------------------------------------------------- */

static const char *brick_address(struct plan_model *m, const struct plan_node *n)
{
	size_t i;
	json_t *b;
	for (size_t p = 0; p < m->pools_count; p++)
		json_array_foreach (jget(m->pools[p].object, "spec", "bricks"), i, b)
			if ((!m->pools[p].odd || m->pools[p].made) &&
			    streq(jstr(b, "node"), n->name) && jstr(b, "address"))
				return jstr(b, "address");
	return NULL;
}

static size_t count_bricks(const json_t *pools)
{
	size_t i, count = 0;
	json_t *p;
	json_array_foreach ((json_t *)pools, i, p)
		count += json_array_size(jget(p, "spec", "bricks"));
	return count;
}

static size_t build_nodes(struct plan_model *m)
{
	size_t i, sources = 0, bricks = count_bricks(m->in->pools);
	json_t *o;

	m->nodes = xcalloc(json_array_size(m->in->nodes) + 1, sizeof(*m->nodes));
	json_array_foreach ((json_t *)m->in->nodes, i, o)
		if (jstr(o, "metadata", "name"))
			node_build(m, &m->nodes[m->nodes_count++], o, bricks);
	qsort(m->nodes, m->nodes_count, sizeof(*m->nodes), by_node_name);
	for (size_t n = 0; n < m->nodes_count; n++) {
		for (i = 0; i < m->nodes[n].sources_count; i++)
			m->nodes[n].sources[i].node = &m->nodes[n];
		sources += m->nodes[n].sources_count;
	}
	return sources;
}

int model_build(struct plan_model *m, const struct plan_input *in, struct error *err)
{
	size_t i;
	json_t *o;

	*m = (struct plan_model){
		.in = in, .findings = json_array(), .steps = json_array(), .replaced = json_array()
	};
	int rc = volume_type_parse(in->volume_type, &m->type, err);
	if (rc < 0)
		return rc;

	size_t sources = build_nodes(m);
	m->pools_cap = json_array_size(in->pools) + sources;
	m->pools = xcalloc(m->pools_cap + 1, sizeof(*m->pools));
	m->children = xcalloc(json_array_size(in->pools) + 1, sizeof(*m->children));
	json_array_foreach ((json_t *)in->pools, i, o) {
		if (!jstr(o, "metadata", "name"))
			continue;
		pool_build(m,
			   jstr(o, "spec", "parent") ? &m->children[m->children_count++]
						     : &m->pools[m->pools_count++],
			   o);
	}
	qsort(m->pools, m->pools_count, sizeof(*m->pools), by_pool_number);
	qsort(m->children, m->children_count, sizeof(*m->children), by_pool_number);

	for (enum hold h = 0; h < HOLD_COUNT; h++)
		for (size_t p = 0; p < m->pools_count; p++)
			pool_take_sources(m, &m->pools[p], h);
	mark_lingering(m);
	plan_children_mark(m);
	find_shared(m);
	for (size_t n = 0; n < m->nodes_count; n++)
		node_address(m, &m->nodes[n], brick_address(m, &m->nodes[n]));
	drop_equal_addresses(m);
	return 0;
}

static void pools_done(struct plan_pool *pools, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		free(pools[i].name);
		free(pools[i].why);
		json_decref(pools[i].spec);
	}
	free(pools);
}

void model_done(struct plan_model *m)
{
	for (size_t i = 0; i < m->nodes_count; i++)
		free(m->nodes[i].sources);
	pools_done(m->pools, m->pools_count);
	pools_done(m->children, m->children_count);
	free(m->nodes);
	json_decref(m->findings);
	json_decref(m->steps);
	json_decref(m->replaced);
}
