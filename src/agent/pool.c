/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

/*
 * The cluster's volumes, driven by the one agent that holds the cluster's lease. One step at a
 * time, each from a fresh look; nothing is remembered that gluster or the API would not say again.
 */
#define IDLE_MS 60000 /* all is well */
#define WAIT_MS 3000 /* something is awaited, or healing */
#define NEXT_MS 1 /* a step was done: look again at once */
#define HEAL_EVERY_MS 10000
#define NUMBERS_EVERY_MS 30000
#define STEPS_MAX 64 /* in one call; far more than any sequence has */

struct pool_work {
	struct reconcile *r;
	struct agent *agent;
	const json_t *pool;
	const json_t *node;
	struct gluster_peers peers;
	struct gluster_volume volume;
	bool have;
	struct volume_view view;
	struct volume_step step;
};

static void work_done(struct pool_work *w)
{
	gluster_peers_done(&w->peers);
	gluster_volume_done(&w->volume);
	volume_step_done(&w->step);
}

/* ---- how long bricks are offline ----------------------------------------------------------- */
static struct seen_offline *offline_find(struct agent_state *s, const char *brick)
{
	for (size_t i = 0; i < s->offline_count; i++)
		if (streq(s->offline[i].brick, brick))
			return &s->offline[i];
	return NULL;
}

static void offline_note(struct pool_work *w)
{
	struct agent_state *s = w->agent->state;

	for (size_t i = 0; i < w->volume.brick_count; i++) {
		const struct gluster_brick *b = &w->volume.bricks[i];
		cleanup_free char *name = xasprintf("%s:%s", b->address, b->path);
		struct seen_offline *seen = offline_find(s, name);

		if (b->online && seen) {
			free(seen->brick);
			*seen = s->offline[--s->offline_count];
		} else if (!b->online && !seen) {
			s->offline =
				xrealloc(s->offline, (s->offline_count + 1) * sizeof(*s->offline));
			s->offline[s->offline_count++] =
				(struct seen_offline){ TAKE_PTR(name), clock_mono_ms(w->r->clock) };
		}
	}
}

static int64_t offline_ms(void *userdata, const char *address, const char *path)
{
	struct pool_work *w = userdata;
	cleanup_free char *name = xasprintf("%s:%s", address, path);
	const struct seen_offline *seen = offline_find(w->agent->state, name);

	return seen ? clock_mono_ms(w->r->clock) - seen->since_ms : 0;
}

/* ---- looking and deciding ------------------------------------------------------------------ */
static int look(struct pool_work *w, bool exact)
{
	struct node_host *h = w->agent->host;
	int rc;

	gluster_peers_done(&w->peers);
	gluster_volume_done(&w->volume);
	rc = h->ops->peers(h, &w->peers, &w->r->error);
	if (rc < 0)
		return rc;
	rc = h->ops->volume_get(h, object_name(w->pool), exact, &w->volume, &w->r->error);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	w->r->error = ERROR_INIT;
	w->have = rc == 0;
	if (w->have)
		offline_note(w);
	w->view = (struct volume_view){ .pool = w->pool,
					.volume = w->have ? &w->volume : NULL,
					.peers = &w->peers,
					.address = jstr(w->node, "status", "plan", "address"),
					.offline_ms = offline_ms,
					.userdata = w };
	return 0;
}

/* Before a copy is given up, the counts have to be exact: a second look, by the crawler. */
static bool gives_up_a_copy(enum volume_step_kind kind)
{
	return kind == STEP_REMOVE_BRICK || kind == STEP_REPLACE_BRICK;
}

static int decide(struct pool_work *w)
{
	int rc = look(w, false);

	if (rc < 0)
		return rc;
	volume_step_done(&w->step);
	volume_next_step(&w->view, &w->step);
	if (!gives_up_a_copy(w->step.kind))
		return 0;
	rc = look(w, true);
	if (rc < 0)
		return rc;
	volume_step_done(&w->step);
	volume_next_step(&w->view, &w->step);
	return 0;
}

/* ---- status -------------------------------------------------------------------------------- */
static int write_status(struct pool_work *w)
{
	struct agent_state *s = w->agent->state;
	cleanup_json json_t *status = volume_pool_status(&w->view, &w->step);
	const char *name = object_name(w->pool);
	int64_t now = clock_mono_ms(w->r->clock);
	bool numbers;

	/* what a step found wrong before stands until the step is done */
	if (report_same(status, jget(w->pool, "status"), &numbers) &&
	    (!numbers || now - jint(s->pool_numbers_ms, name) < NUMBERS_EVERY_MS))
		return 0;
	json_object_set_new(s->pool_numbers_ms, name, json_integer(now));
	return agent_patch_status(w->r, &KIND_STORAGEPOOL, object_namespace(w->pool), name,
				  json_incref(status));
}

static int write_failure(struct pool_work *w, int rc)
{
	const char *name = object_name(w->pool);
	const char *text = error_text(&w->r->error, rc);
	struct error kept = w->r->error;

	if (!streq(jstr(w->pool, "status", "message"), text))
		agent_patch_status(w->r, &KIND_STORAGEPOOL, object_namespace(w->pool), name,
				   json_pack("{s:s}", "message", text));
	w->r->error = kept;
	return rc;
}

/* ---- acting -------------------------------------------------------------------------------- */
static bool heal_due(struct pool_work *w)
{
	json_t *times = w->agent->state->healed_ms;
	int64_t now = clock_mono_ms(w->r->clock);
	const json_t *last = json_object_get(times, object_name(w->pool));

	if (last && now - json_integer_value(last) < HEAL_EVERY_MS)
		return false;
	json_object_set_new(times, object_name(w->pool), json_integer(now));
	return true;
}

/* > 0: call again after so many ms; NEXT_MS: there may be another step. */
static int act(struct pool_work *w)
{
	struct node_host *h = w->agent->host;
	struct error err = ERROR_INIT;
	int rc;

	switch (w->step.kind) {
	case STEP_NONE:
		return IDLE_MS;
	case STEP_GONE:
	case STEP_BLOCKED:
		return IDLE_MS;
	case STEP_WAIT:
		return WAIT_MS;
	case STEP_HEAL:
		/* refused while bricks are still connecting: it is ordered again anyway */
		if (heal_due(w) && (rc = h->ops->volume_apply(h, &w->step, &err)) < 0)
			log_info("volume %s: %s", w->step.volume, error_text(&err, rc));
		return WAIT_MS;
	default:
		rc = h->ops->volume_apply(h, &w->step, &w->r->error);
		if (rc == -EBUSY) {
			w->r->error = ERROR_INIT;
			return WAIT_MS;
		}
		return rc < 0 ? rc : NEXT_MS;
	}
}

static int converge(struct pool_work *w)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		int rc = decide(w);

		if (rc == 0)
			rc = write_status(w);
		if (rc < 0)
			return rc;
		/* the lead may have gone while the last step took its time */
		if (!agent_leads(w->agent, w->node))
			return 0;
		rc = act(w);
		if (rc < 0)
			return write_failure(w, rc);
		if (rc != NEXT_MS) {
			w->r->again_ms = rc;
			return 0;
		}
	}
	w->r->again_ms = WAIT_MS;
	return 0;
}

static int pool_reconcile(struct reconcile *r, const char *key)
{
	struct agent *a = r->app;
	char ns[254], name[254];
	cleanup_json json_t *node = agent_node(r), *pool = NULL;
	struct pool_work w = { .r = r, .agent = a, .node = node };
	int rc;

	key_split(key, ns, name);
	pool = reader_get(r->cache, &KIND_STORAGEPOOL, ns, name);
	if (!node || !pool || !streq(ns, a->ns) ||
	    !streq(jstr(pool, "spec", "cluster"), jstr(node, "status", "plan", "cluster")) ||
	    !agent_leads(a, node))
		return 0;
	/* deleted for us: the operator only has its finalizer to remove */
	if (object_deleting(pool) && streq(jstr(pool, "status", "phase"), "Deleted"))
		return 0;
	if (jint(pool, "spec", "epoch") < jint(pool, "status", "epoch")) {
		log_warn("pool %s: orders of epoch %lld are older than those in force: ignored",
			 name, (long long)jint(pool, "spec", "epoch"));
		return 0;
	}
	w.pool = pool;
	rc = converge(&w);
	work_done(&w);
	return rc;
}

static const struct controller_watch pool_watches[] = {
	{ .kind = &KIND_STORAGEPOOL },
	{ 0 },
};

const struct controller AGENT_POOL = {
	.name = "pool",
	.watches = pool_watches,
	.workers = 1,
	.reconcile = pool_reconcile,
};
