/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/system.h"

#include "base/mem.h"
#include "base/trim.h"
#include "kube/keyed.h"
#include "operator/ledger.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* Nodes are looked at at least this often, to notice those that have fallen silent. */
#define LOOK_AGAIN_MS 15000
/* A look at many nodes takes memory that the next one may take again; above this much it is given back. */
#define TRIM_KIB 16384

void system_problem(struct system *s, const char *format, ...)
{
	char text[600];
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	json_array_append_new(s->problems, json_string(text));
}

/* An API server returns 1.0 as 1. */
static bool same_value(const json_t *a, const json_t *b)
{
	return json_equal(a, b) || (json_is_number(a) && json_is_number(b) &&
				    json_number_value(a) == json_number_value(b));
}

json_t *merge_diff(const json_t *have, const json_t *wanted)
{
	json_t *patch = json_object(), *value;
	const char *key;

	json_object_foreach ((json_t *)wanted, key, value) {
		const json_t *old = json_object_get(have, key);
		if (same_value(old, value))
			continue;
		json_t *part = json_is_object(old) && json_is_object(value) ? merge_diff(old, value)
									    : json_incref(value);
		if (part)
			json_object_set_new(patch, key, part);
	}
	json_object_foreach ((json_t *)have, key, value)
		if (!json_object_get(wanted, key))
			json_object_set_new(patch, key, json_null());
	if (json_object_size(patch) == 0) {
		json_decref(patch);
		return NULL;
	}
	return patch;
}

char *findings_text(const struct system *s, const char *node, const char *const *reasons)
{
	struct buf text = { 0 };
	size_t i;
	json_t *f;

	json_array_foreach (s->plan.findings, i, f) {
		if (!streq(jstr(f, "node"), node))
			continue;
		for (size_t k = 0; reasons[k]; k++)
			if (streq(jstr(f, "reason"), reasons[k]))
				buf_printf(&text, "%s%s", text.len ? "; " : "", jstr(f, "message"));
	}
	return text.data;
}

/* ---- memory ------------------------------------------------------------------------------------ */

struct memory {
	struct keyed nodes;
	int lost;
	json_t *refused;
};

int memory_lost(const struct memory *m)
{
	return m->lost;
}

void memory_set_lost(struct memory *m, int count)
{
	m->lost = count;
}

struct memory *memory_new(void)
{
	struct memory *m = xcalloc(1, sizeof(*m));
	m->refused = json_object();
	return m;
}

json_t *memory_refused(struct memory *m)
{
	return m->refused;
}

void memory_free(struct memory *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->nodes.count; i++) {
		struct node_memory *n = m->nodes.items[i];
		free(n->uid);
		free(n->heartbeat);
		free(n);
	}
	keyed_done(&m->nodes);
	json_decref(m->refused);
	free(m);
}

struct node_memory *memory_node(struct memory *m, const char *uid)
{
	bool found;
	size_t at = keyed_find(&m->nodes, uid, &found);
	if (found)
		return m->nodes.items[at];
	struct node_memory *n = xcalloc(1, sizeof(*n));
	n->uid = xstrdup(uid);
	keyed_insert(&m->nodes, at, n);
	return n;
}

/* ---- whose nodes ------------------------------------------------------------------------------- */

static int read_deployments(struct system *s)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *o;
	int rc = kube_list(s->r->kube, &KIND_STORAGESTATUS, s->op->ns, NULL, &all, NULL,
			   &s->r->error);
	if (rc < 0)
		return rc;
	json_array_foreach (all, i, o)
		if (streq(jstr(o, "spec", "type"), s->op->type))
			json_array_append_new(s->deployments, json_string(object_name(o)));
	return 0;
}

/* A label decides; without one a node belongs to the only deployment of its type in the namespace. */
static int read_node(json_t *o, void *userdata)
{
	struct system *s = userdata;
	const char *label = object_label(o, QM_LABEL_DEPLOYMENT);
	bool only = json_array_size(s->deployments) == 1;

	if (!streq(jstr(o, "spec", "type"), s->op->type))
		return 0;
	if (object_deleting(o) && !object_has_finalizer(o, QM_FINALIZER_NODE))
		return 0; /* on its way out, and not ours to hold */
	if (label ? streq(label, s->op->deployment) : only) {
		part_add_node(s, o);
	} else if (!label) {
		json_object_del(jget(o, "metadata"), "managedFields");
		json_array_append(s->ambiguous, o);
	}
	return 0;
}

static int read_nodes(struct system *s)
{
	return kube_list_each(s->r->kube, &KIND_STORAGENODE, s->op->ns, NULL, read_node, s, NULL,
			      &s->r->error);
}

static int read_pool(json_t *o, void *userdata)
{
	struct system *s = userdata;

	if (pool_is_ours(s->op, o))
		part_add_pool(s, o);
	else
		json_array_append_new(s->foreign_pools, json_string(object_name(o)));
	return 0;
}

static int read_pools(struct system *s)
{
	return kube_list_each(s->r->kube, &KIND_STORAGEPOOL, s->op->ns, NULL, read_pool, s, NULL,
			      &s->r->error);
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static int prepare_platform(struct system *s)
{
	const struct platform_ops *ops = s->op->platform->ops;

	return ops->prepare ? ops->prepare(s->op->platform, &s->r->error) : 0;
}

static int look(struct system *s)
{
	int (*const steps[])(struct system *) = {
		status_get,  read_deployments, read_nodes, read_pools,	 prepare_platform,
		nodes_begin, parts_look,       nodes_end,  status_write,
	};
	int rc = ledger_load(s->op->ledger, s->r, s->epoch);
	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(steps); i++)
		rc = steps[i](s);
	return rc == 0 ? deployment_end(s) : rc;
}

static int system_reconcile(struct reconcile *r, const char *key)
{
	struct system s = { .r = r, .op = op_of(r) };
	cleanup_free char *own = system_key(s.op);
	if (!streq(key, own) || !op_leads(r, &s.epoch))
		return 0;

	parts_init(&s.parts, s.op->deployment);
	s.ambiguous = json_array();
	s.deployments = json_array();
	s.foreign_pools = json_array();
	s.phases = json_object();
	s.problems = json_array();
	int rc = look(&s);
	if (rc == 0 && (r->again_ms <= 0 || r->again_ms > LOOK_AGAIN_MS))
		r->again_ms = LOOK_AGAIN_MS;

	json_decref(s.status);
	json_decref(s.nodes);
	json_decref(s.ambiguous);
	json_decref(s.deployments);
	json_decref(s.pools);
	json_decref(s.foreign_pools);
	json_decref(s.phases);
	json_decref(s.renewals);
	json_decref(s.problems);
	plan_output_done(&s.plan);
	parts_done(&s.parts);
	memory_trim(TRIM_KIB);
	return rc;
}

static void system_keys(const json_t *object, struct reconcile *r, struct strv *keys)
{
	if (streq(object_namespace(object), op_of(r)->ns))
		strv_add_take(keys, system_key(op_of(r)));
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_STORAGESTATUS, .keys = system_keys },
	{ .kind = &KIND_STORAGENODE, .keys = system_keys },
	{ .kind = &KIND_STORAGEPOOL, .keys = system_keys },
	{ 0 },
};

const struct controller SYSTEM_CONTROLLER = {
	.name = "system",
	.watches = watches,
	.workers = 1,
	.reconcile = system_reconcile,
};
