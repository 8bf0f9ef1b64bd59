/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/system.h"

#include "base/mem.h"
#include "base/trim.h"
#include "kube/keyed.h"
#include "operator/ledger.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

/* Nodes are looked at at least this often, to notice those that have fallen silent. */
#define LOOK_AGAIN_MS 15000
/* The time that a look has to write in; one step of it has as much again, so it is over after twice that. */
#define TURN_MS 400
/* While changes keep coming, the time between two looks is as long as the last one took, but at most this. */
#define REST_MAX_MS 1000
/* A deployment that is never done with all its nodes still says so. */
#define STATUS_LATE_MS 10000
/*
 * A look at many nodes takes memory that the next one may take again; above this much it is given
 * back, and again when it has grown by so much since.
 */
#define TRIM_KIB 16384
#define TRIM_GROWTH_KIB 4096

bool system_time_is_up(struct system *s, int64_t began_ms)
{
	bool up = clock_mono_ms(s->r->clock) - began_ms >= TURN_MS;

	s->behind = s->behind || up;
	return up;
}

void system_problem(struct system *s, const char *format, ...)
{
	char text[600];
	size_t at = 0;
	va_list ap;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	/* parts come in any order, and what the status says must not depend on it */
	while (at < json_array_size(s->problems) &&
	       strcmp(json_string_value(json_array_get(s->problems, at)), text) <= 0)
		at++;
	json_array_insert_new(s->problems, at, json_string(text));
	if (json_array_size(s->problems) > SYSTEM_PROBLEMS_MAX)
		json_array_remove(s->problems, SYSTEM_PROBLEMS_MAX);
	s->problem_count++;
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
	long unused_from, unused_to; /* numbers of pools that the API has refused to make */
	json_t *renewals; /* NULL: never read */
	int64_t renewals_ms;
	size_t turn;
	int64_t rest_until_ms;
	bool live; /* pools are being written, and that look was behind: the next one goes on so */
	long trim_kib; /* memory above this much is given back after a look */
	int64_t status_ms; /* when the StorageStatus was last written, or was as it should be */
	pthread_mutex_t lock; /* of changed */
	json_t *changed;
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
	m->changed = json_object();
	m->trim_kib = TRIM_KIB;
	pthread_mutex_init(&m->lock, NULL);
	return m;
}

void memory_note_changed(struct memory *m, const char *name)
{
	pthread_mutex_lock(&m->lock);
	json_object_set_new(m->changed, name, json_true());
	pthread_mutex_unlock(&m->lock);
}

json_t *memory_take_changed(struct memory *m)
{
	pthread_mutex_lock(&m->lock);
	json_t *changed = m->changed;
	m->changed = json_object();
	pthread_mutex_unlock(&m->lock);
	return changed;
}

size_t memory_turn(const struct memory *m)
{
	return m->turn;
}

json_t *memory_renewals(const struct memory *m, int64_t since_ms)
{
	return m->renewals_ms > since_ms ? json_incref(m->renewals) : NULL;
}

void memory_set_renewals(struct memory *m, json_t *renewals, int64_t now_ms)
{
	json_decref(m->renewals);
	m->renewals = json_incref(renewals);
	m->renewals_ms = now_ms;
}

json_t *memory_refused(struct memory *m)
{
	return m->refused;
}

long memory_last_number(const struct memory *m, long written)
{
	return written && written == m->unused_to ? m->unused_from - 1 : written;
}

void memory_note_number(struct memory *m, long number, bool refused)
{
	bool within = number >= m->unused_from && number <= m->unused_to;

	if (!refused && number >= m->unused_from)
		m->unused_from = m->unused_to = 0;
	if (!refused || within)
		return;
	if (number != m->unused_to + 1 || !m->unused_to)
		m->unused_from = number;
	m->unused_to = number;
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
	json_decref(m->renewals);
	json_decref(m->changed);
	pthread_mutex_destroy(&m->lock);
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

/* What nobody reads, and is often the longest. */
static void strip(json_t *object)
{
	json_object_del(jget(object, "metadata"), "managedFields");
	json_object_del(jget(object, "metadata", "annotations"),
			"kubectl.kubernetes.io/last-applied-configuration");
}

static int read_deployment(json_t *o, void *userdata)
{
	struct system *s = userdata;

	if (streq(object_name(o), s->op->deployment)) {
		strip(o);
		s->status = json_incref(o);
	} else if (streq(jstr(o, "spec", "type"), s->op->type)) {
		json_array_append_new(s->deployments, json_string(object_name(o)));
	}
	return 0;
}

/* One list has both: our own StorageStatus, and who else is there. */
static int read_deployments(struct system *s)
{
	int rc = kube_list_each(s->r->kube, &KIND_STORAGESTATUS, s->op->ns, NULL, read_deployment,
				s, NULL, &s->r->error);

	if (rc == 0)
		rc = status_ensure(s);
	if (rc == 0)
		status_take_number(s);
	if (rc == 0)
		json_array_append_new(s->deployments, json_string(s->op->deployment));
	return rc;
}

static int read_node(const json_t *o, void *userdata)
{
	struct system *s = userdata;
	enum whose whose = node_whose(s->op, o, json_array_size(s->deployments) == 1);

	if (whose == WHOSE_OURS)
		part_add_node(s, o);
	else if (whose == WHOSE_UNCLEAR)
		json_array_append_new(s->ambiguous, json_deep_copy(o));
	return 0;
}

static int read_live_node(json_t *o, void *userdata)
{
	strip(o);
	return read_node(o, userdata);
}

static int read_nodes(struct system *s)
{
	return s->live ? kube_list_each(s->r->kube, &KIND_STORAGENODE, s->op->ns, NULL,
					read_live_node, s, NULL, &s->r->error)
		       : reader_each(s->r->cache, &KIND_STORAGENODE, s->op->ns, read_node, s);
}

static int read_pool(json_t *o, void *userdata)
{
	struct system *s = userdata;

	strip(o);
	if (pool_is_ours(s->op, o))
		part_add_pool(s, o);
	else
		part_add_foreign(s, object_name(o));
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

/* While some have not had their turn, what is said of all of them would be wrong and would change with each look. */
static int write_status(struct system *s)
{
	struct memory *m = s->op->memory;
	int64_t now = clock_mono_ms(s->r->clock);
	int rc = s->behind && now - m->status_ms < STATUS_LATE_MS ? 1 : status_write(s);

	if (rc == 0)
		m->status_ms = now;
	return rc < 0 ? rc : 0;
}

static int look(struct system *s)
{
	int (*const steps[])(struct system *) = {
		read_deployments, read_nodes, read_pools, prepare_platform, pools_tell,
		nodes_begin,	  parts_look, nodes_end,  write_status,
	};
	int rc = ledger_load(s->op->ledger, s->r, s->epoch);
	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(steps); i++)
		rc = steps[i](s);
	return rc == 0 ? deployment_end(s) : rc;
}

/* What has not had its turn stays as changed as it was. */
static void end_turn(struct system *s, int rc)
{
	struct memory *m = s->op->memory;
	const char *name;
	json_t *value;

	m->turn += s->behind;
	m->live = s->live && s->behind && s->fenced;
	if (rc == 0 && !s->behind)
		return;
	json_object_foreach (s->changed, name, value)
		memory_note_changed(m, name);
}

/* Giving back what the next look needs again costs more than the look: only what has grown. */
static void give_back_memory(struct memory *m)
{
	long left = memory_trim(m->trim_kib);

	if (left > 0)
		m->trim_kib = left + TRIM_GROWTH_KIB > TRIM_KIB ? left + TRIM_GROWTH_KIB : TRIM_KIB;
}

static int look_once(struct reconcile *r, int64_t epoch, bool live, bool *ret_wants_live)
{
	struct system s = { .r = r, .op = op_of(r), .epoch = epoch, .live = live };

	parts_init(&s.parts, s.op->deployment);
	s.changed = memory_take_changed(s.op->memory);
	s.ambiguous = json_array();
	s.deployments = json_array();
	s.foreign_pools = json_array();
	s.wholes = json_array();
	s.phases = json_object();
	s.problems = json_array();
	int rc = look(&s);
	end_turn(&s, rc);
	if (s.behind)
		r->again_ms = 1;

	json_decref(s.changed);
	json_decref(s.status);
	json_decref(s.nodes);
	json_decref(s.ambiguous);
	json_decref(s.deployments);
	json_decref(s.pools);
	json_decref(s.wholes);
	json_decref(s.foreign_pools);
	json_decref(s.phases);
	json_decref(s.renewals);
	json_decref(s.problems);
	plan_output_done(&s.plan);
	parts_done(&s.parts);
	give_back_memory(s.op->memory);
	*ret_wants_live = s.wants_live;
	return rc;
}

/* Not for long while it is behind, though the machine may have other work too. */
static int64_t rest_after(int64_t took_ms, bool behind)
{
	int64_t most = behind ? REST_MAX_MS / 10 : REST_MAX_MS;

	return took_ms < most ? took_ms : most;
}

static int look_paced(struct reconcile *r, int64_t epoch)
{
	struct memory *m = op_of(r)->memory;
	int64_t began = clock_mono_ms(r->clock), took;
	bool wants_live;
	int rc;

	if (began < m->rest_until_ms) {
		r->again_ms = (int)(m->rest_until_ms - began);
		return 0;
	}
	rc = look_once(r, epoch, m->live, &wants_live);
	if (wants_live) {
		r->error = ERROR_INIT;
		r->again_ms = 0;
		rc = look_once(r, epoch, true, &wants_live);
	}
	if (rc == 0 && (r->again_ms <= 0 || r->again_ms > LOOK_AGAIN_MS))
		r->again_ms = LOOK_AGAIN_MS;
	took = clock_mono_ms(r->clock) - began;
	if (rc == 0)
		m->rest_until_ms = began + took + rest_after(took, r->again_ms <= 1);
	return rc;
}

static int system_reconcile(struct reconcile *r, const char *key)
{
	cleanup_free char *own = system_key(op_of(r));
	int64_t epoch;

	return streq(key, own) && op_leads(r, &epoch) ? look_paced(r, epoch) : 0;
}

static void system_keys(const json_t *object, struct reconcile *r, struct strv *keys)
{
	if (!streq(object_namespace(object), op_of(r)->ns))
		return;
	memory_note_changed(op_of(r)->memory, object_name(object));
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
