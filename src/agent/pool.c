/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <stdio.h>

/*
 * The cluster's volumes, driven by the one agent that holds the cluster's lease. One step at a
 * time, each from a fresh look; nothing is remembered that gluster or the API would not say again.
 */
#define IDLE_MS                                                                                    \
	300000 /* all is well; what changes is reported by the nodes, and brings us here at once */
#define WAIT_MS 5000 /* something is awaited, or healing */
#define SETTLE_AGAIN_MS 500
#define STALE_AGAIN_MS 1000 /* or when what has changed is heard of */
#define NEXT_MS 1 /* a step was done: look again at once */
#define HEAL_EVERY_MS 10000
#define NUMBERS_EVERY_MS 30000
#define DOUBT_MS 60000 /* sooner a node tells of its dead disk, or gluster of the brick */
#define MARK_AGAIN_MS 30000 /* between the two looks that make copies whole */
#define TELL_EVERY_MS 60000
#define REVIVE_FIRST_MS                                                                            \
	15000 /* self-heal daemons that do not answer are started again after this */
#define REVIVE_EVERY_MS 60000 /* that may hold up everything for half a minute */
#define STEPS_MAX 64 /* in one call; far more than any sequence has */

struct pool_work {
	struct reconcile *r;
	struct agent *agent;
	const json_t *pool;
	json_t *stored; /* the same, as the API has it: a cache may have marks of long ago */
	json_t *marks; /* of its bricks, after the last look */
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
	json_decref(w->stored);
	json_decref(w->marks);
}

/* ---- bricks that are offline --------------------------------------------------------------- */
static int64_t offline_since(void *userdata, const char *address, const char *path)
{
	struct pool_work *w = userdata;

	return offline_ms(w->r, w->agent, address, path);
}

static bool runs_unseen(void *userdata, const char *address, const char *path)
{
	struct pool_work *w = userdata;

	return offline_runs(w->agent, address, path);
}

/* One of its bricks takes in what nobody here sees. */
static bool blind(struct pool_work *w)
{
	for (size_t i = 0; i < w->volume.brick_count; i++)
		if (!w->volume.bricks[i].online &&
		    runs_unseen(w, w->volume.bricks[i].address, w->volume.bricks[i].path))
			return true;
	return false;
}

/* ---- is a brick there? --------------------------------------------------------------------- */
/* What a node has for one that had the name before is not there for this one; NULL: nobody says. */
static bool is_for(const json_t *pool, const char *uid)
{
	return !uid || streq(uid, object_uid(pool));
}

static bool is_here(const struct pool_work *w, const char *path, const char *id)
{
	cleanup_free char *uid = brick_pool_uid(w->agent->host, id);

	return brick_is_there(w->agent->host, path, id) && is_for(w->pool, uid);
}

/*
 * Its own machine is looked at; of another one the API itself is asked what that reported last. An agent tells that a
 * brick is not mounted before it starts glusterd.
 */
static bool brick_mounted(void *userdata, const json_t *brick)
{
	struct pool_work *w = userdata;
	const char *node = jstr(brick, "node"), *id = jstr(brick, "id"), *path = jstr(brick, "path");
	cleanup_json json_t *object = NULL;
	const json_t *b;
	size_t i;

	if (!node || !id || !path || !strchr(path, '/'))
		return false;
	if (streq(node, w->agent->node))
		return is_here(w, path, id);
	if (kube_get(w->r->kube, &KIND_STORAGENODE, w->agent->ns, node, &object, NULL) < 0)
		return false;
	json_array_foreach (jget(object, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "id"), id) && streq(jstr(b, "path"), path))
			return jbool(b, "mounted") && is_for(w->pool, jstr(b, "poolUid"));
	return false;
}

static json_t *memory(struct pool_work *w)
{
	json_t *pools = w->agent->state->pools, *m = json_object_get(pools, object_name(w->pool));

	if (!m) {
		m = json_object();
		json_object_set_new(pools, object_name(w->pool), m);
	}
	return m;
}

/* ---- which copies are whole ---------------------------------------------------------------- */
/* Anew for each step, and from the API: another agent may have led, and seen what we have not. */
static int read_marks(struct pool_work *w)
{
	cleanup_json json_t *stored = NULL;
	int rc = kube_get(w->r->kube, &KIND_STORAGEPOOL, object_namespace(w->pool),
			  object_name(w->pool), &stored, &w->r->error);

	if (rc < 0)
		return rc;
	if (!streq(object_uid(stored), object_uid(w->pool)))
		return error_set(&w->r->error, ESTALE, "StoragePool %s is another one now",
				 object_name(w->pool));
	json_decref(w->stored);
	json_decref(w->marks);
	w->stored = TAKE_PTR(stored);
	w->marks = json_incref(jget(w->stored, "status", "bricks"));
	return 0;
}

/* exact: they are whole if this look says so. */
static void mark(struct pool_work *w, struct gluster_volume *v, bool exact)
{
	json_t *m = memory(w);
	int64_t now = clock_mono_ms(w->r->clock);
	const struct volume_marking how = {
		.exact = exact,
		.blind = blind(w),
		.patient = !jget(m, "doubt") || now - jint(m, "doubt") < DOUBT_MS,
	};

	if (!volume_mark(v, w->marks, &how))
		json_object_del(m, "doubt");
	else if (!jget(m, "doubt"))
		json_object_set_new(m, "doubt", json_integer(now));
	json_decref(w->marks);
	w->marks = volume_bricks_status(v);
}

/*
 * Its disk has died under it: it takes in nothing any more, and what others list is what it misses.
 */
static void see_dead(struct pool_work *w)
{
	struct gluster_brick *b = volume_silent_brick(&w->volume);

	if (!b || volume_seems_whole(&w->volume) || !offline_unmounted(w->r, w->agent, b))
		return;
	b->online = b->connected = false;
	b->pid = 0;
	b->pending = -1;
}

static bool has_copies(const struct gluster_volume *v)
{
	return v->replica > 1 || v->disperse > 0;
}

static bool unmarked(const struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++)
		if (!v->bricks[i].whole)
			return has_copies(v);
	return false;
}

static char *sketch_bricks(const struct gluster_volume *v)
{
	struct buf out = { 0 };

	for (size_t i = 0; i < v->brick_count; i++)
		buf_printf(&out, "%s:%s %d ", v->bricks[i].address, v->bricks[i].path,
			   v->bricks[i].pid);
	return buf_take(&out);
}

/* Looks exactly; 1: all of these very bricks are whole, by this look. */
static int look_exactly(struct pool_work *w, const char *bricks, struct gluster_volume *ret)
{
	struct node_host *h = w->agent->host;
	int rc = h->ops->volume_get(h, object_name(w->pool), VOLUME_LOOK_EXACT, ret, NULL);
	cleanup_free char *found = rc < 0 ? NULL : sketch_bricks(ret);

	return rc < 0 ? rc : volume_seems_whole(ret) && streq(found, bricks);
}

static void marks_copy(struct gluster_volume *to, const struct gluster_volume *from)
{
	for (size_t i = 0; i < from->brick_count; i++) {
		const struct gluster_brick *b = &from->bricks[i];

		gluster_brick_find(to, b->address, b->path)->whole = b->whole;
	}
}

/*
 * They seem to be whole now: two exact looks say whether they are. Of a part that has just taken
 * the place of another nothing is listed for some seconds, until a client has met it and found out
 * that it is empty.
 */
static void confirm_whole(struct pool_work *w)
{
	struct gluster_volume exact cleanup_with(gluster_volume_done) = { 0 };
	cleanup_free char *bricks = NULL;
	json_t *m = memory(w);
	int rc;

	if (!w->have || !unmarked(&w->volume) || !volume_seems_whole(&w->volume)) {
		json_object_del(m, "clean");
		json_object_del(m, "confirm");
		return;
	}
	if (clock_mono_ms(w->r->clock) < jint(m, "confirm"))
		return;
	bricks = sketch_bricks(&w->volume);
	rc = look_exactly(w, bricks, &exact);
	if (rc == 1 && streq(jstr(m, "clean"), bricks)) {
		mark(w, &exact, true);
		marks_copy(&w->volume, &exact);
	}
	json_object_set_new(m, "clean", rc == 1 ? json_string(bricks) : json_null());
	/* one that failed may have taken minutes, which other pools wait for */
	json_object_set_new(m, "confirm",
			    json_integer(clock_mono_ms(w->r->clock) +
					 (rc < 0 ? IDLE_MS : MARK_AGAIN_MS)));
}

/* ---- looking and deciding ------------------------------------------------------------------ */
static int look(struct pool_work *w, enum volume_look how)
{
	struct node_host *h = w->agent->host;
	int rc;

	gluster_peers_done(&w->peers);
	gluster_volume_done(&w->volume);
	rc = h->ops->peers(h, &w->peers, &w->r->error);
	if (rc < 0)
		return rc;
	rc = h->ops->volume_get(h, object_name(w->pool), how, &w->volume, &w->r->error);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	w->r->error = ERROR_INIT;
	/* one that is another's is seen, so that it can be said, but nothing is done about it */
	w->have = rc == 0 && volume_is_of(w->pool, &w->volume);
	if (w->have && how != VOLUME_LOOK_DEFINITION) {
		see_dead(w);
		offline_note(w->r, w->agent, object_name(w->pool), &w->peers, &w->volume);
		mark(w, &w->volume, false);
	}
	w->view = (struct volume_view){ .pool = w->pool,
					.volume = rc == 0 ? &w->volume : NULL,
					.peers = &w->peers,
					.address = jstr(w->node, "status", "plan", "address"),
					.members = json_array_size(
						jget(w->node, "status", "plan", "peers")),
					.offline_ms = offline_since,
					.mounted = brick_mounted,
					.runs = runs_unseen,
					.userdata = w };
	return 0;
}

/*
 * A change that failed on one of the nodes may leave the volume with a brick that its clients, the
 * crawler among them, were never told of. Setting any option tells them; again only after a while,
 * since there may be another reason why nothing is known of a brick.
 */
static void tell_clients(struct pool_work *w)
{
	const char *timeout = jstr(w->volume.options, "network.ping-timeout");
	int64_t now = clock_mono_ms(w->r->clock);
	bool unseen = false;

	for (size_t i = 0; w->have && i < w->volume.brick_count; i++)
		unseen |= w->volume.bricks[i].online && w->volume.bricks[i].pending < 0;
	if (!unseen || !timeout ||
	    (jget(memory(w), "told") && now - jint(memory(w), "told") < TELL_EVERY_MS))
		return;
	json_object_set_new(memory(w), "told", json_integer(now));
	volume_step_done(&w->step);
	w->step = (struct volume_step){
		.kind = STEP_SET, .options = json_pack("{s:s}", "network.ping-timeout", timeout)
	};
	snprintf(w->step.volume, sizeof(w->step.volume), "%s", object_name(w->pool));
	volume_step_of(&w->step, w->volume.id);
	snprintf(w->step.why, sizeof(w->step.why), "Telling the clients of all bricks again");
}

/* All bricks serve, but nobody knows what is left to heal on some. */
static bool healing_unknown(const struct pool_work *w)
{
	bool unknown = false;

	for (size_t i = 0; w->have && i < w->volume.brick_count; i++) {
		if (!w->volume.bricks[i].online)
			return false;
		unknown |= w->volume.bricks[i].pending < 0;
	}
	return w->have && w->volume.state == VOLUME_STARTED && unknown;
}

/*
 * glusterd does not start a self-heal daemon again that has crashed (on one node is enough for none to be asked),
 * unless the volume is told to start what is missing. Bricks that run go on.
 */
static void revive_healers(struct pool_work *w)
{
	struct node_host *h = w->agent->host;
	struct volume_step step = { .kind = STEP_START_FORCE };
	int64_t now = clock_mono_ms(w->r->clock);
	struct error err = ERROR_INIT;
	json_t *m = memory(w);
	int rc;

	if (!healing_unknown(w)) {
		json_object_del(m, "revive");
		return;
	}
	if (!jget(m, "revive")) /* it may be on its way */
		json_object_set_new(m, "revive", json_integer(now + REVIVE_FIRST_MS));
	if (now < jint(m, "revive"))
		return;
	json_object_set_new(m, "revive", json_integer(now + REVIVE_EVERY_MS));
	snprintf(step.volume, sizeof(step.volume), "%s", object_name(w->pool));
	volume_step_of(&step, w->volume.id);
	snprintf(step.why, sizeof(step.why), "a self-heal daemon does not answer");
	rc = h->ops->volume_apply(h, &step, &err);
	if (rc < 0)
		log_info("volume %s: %s", step.volume, error_text(&err, rc));
}

/* Before a copy is given up, the counts have to be exact: a second look, by the crawler. */
static bool gives_up_a_copy(enum volume_step_kind kind)
{
	return kind == STEP_REMOVE_BRICK || kind == STEP_REPLACE_BRICK;
}

static int decide(struct pool_work *w)
{
	/* what is to go needs no more to be known of it, and the rest could hold it up */
	bool goes = volume_is_to_go(w->pool);
	int rc = read_marks(w);

	if (rc == 0)
		rc = look(w, goes ? VOLUME_LOOK_DEFINITION : VOLUME_LOOK);
	if (rc < 0)
		return rc;
	if (!goes)
		revive_healers(w);
	volume_step_done(&w->step);
	volume_next_step(&w->view, &w->step);
	if (!gives_up_a_copy(w->step.kind)) {
		confirm_whole(w);
		return 0;
	}
	rc = look(w, VOLUME_LOOK_EXACT);
	if (rc < 0)
		return rc;
	volume_step_done(&w->step);
	volume_next_step(&w->view, &w->step);
	tell_clients(w);
	return 0;
}

/* ---- what is remembered of a pool ---------------------------------------------------------- */
static int sketch_node(const json_t *node, void *userdata)
{
	struct buf *out = userdata;
	const json_t *b;
	size_t i;

	buf_printf(out, "%s %s:", object_name(node),
		   jstr(node, "status", "phase") ? jstr(node, "status", "phase") : "");
	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b)
		buf_printf(out, " %s%s%s", jstr(b, "id"), jbool(b, "online") ? "+" : "-",
			   jint(b, "pending") > 0 ? "p" : "");
	return 0;
}

/* All that nodes say about bricks that can make a difference to a pool: asking gluster costs far more. */
static char *sketch_nodes(struct pool_work *w)
{
	struct buf out = { 0 };

	reader_each(w->r->cache, &KIND_STORAGENODE, w->agent->ns, sketch_node, &out);
	return buf_take(&out);
}

/*
 * What of a pool is an order to us. Not its resourceVersion: that moves with our own reports too,
 * and the one that a report returns may already hold an order that was not looked at.
 */
static char *sketch_orders(const json_t *pool)
{
	const json_t *annotations = jget(pool, "metadata", "annotations");
	cleanup_free char *text = annotations ? json_text(annotations) : NULL;
	const char *deleted = jstr(pool, "metadata", "deletionTimestamp");

	return xasprintf("%s %lld %s %s", object_uid(pool) ? object_uid(pool) : "",
			 (long long)jint(pool, "metadata", "generation"), deleted ? deleted : "",
			 text ? text : "");
}

/* Nothing has happened since the last look but our own report of it. */
static bool nothing_new(struct pool_work *w)
{
	json_t *m = memory(w);
	cleanup_free char *nodes = sketch_nodes(w), *orders = sketch_orders(w->pool);
	int64_t left = jint(m, "next") - clock_mono_ms(w->r->clock);
	bool same = streq(jstr(m, "nodes"), nodes) && streq(jstr(m, "orders"), orders);

	json_object_set_new(m, "nodes", json_string(nodes));
	if (!same || left <= 0) {
		/* should this look fail, the next is not to be skipped */
		json_object_del(m, "next");
		return false;
	}
	w->r->again_ms = (int)left;
	return true;
}

static void look_again(struct pool_work *w, int ms)
{
	cleanup_free char *orders = sketch_orders(w->pool);

	json_object_set_new(memory(w), "orders", json_string(orders));
	json_object_set_new(memory(w), "next", json_integer(clock_mono_ms(w->r->clock) + ms));
	w->r->again_ms = ms;
}

/* ---- status -------------------------------------------------------------------------------- */
static int patch(struct pool_work *w, json_t *status)
{
	return agent_patch_status(w->r, &KIND_STORAGEPOOL, w->pool, status);
}

/*
 * What was made of marks that another agent has changed meanwhile is refused (ESTALE), and made
 * anew: an agent that led before us, and was held up, must not call a copy whole that it did not
 * see going.
 */
static int patch_marks(struct pool_work *w, json_t *status)
{
	cleanup_json json_t *change = json_pack("{s:{s:s}, s:O}", "metadata", "resourceVersion",
						object_version(w->stored), "status", status);
	cleanup_json json_t *result = NULL;
	int rc = kube_patch(w->r->kube, &KIND_STORAGEPOOL, object_namespace(w->pool),
			    object_name(w->pool), "status", KUBE_PATCH_MERGE, change, &result,
			    &w->r->error);

	if (rc < 0)
		return rc;
	reader_learned(w->r->cache, &KIND_STORAGEPOOL, result);
	json_decref(w->stored);
	w->stored = TAKE_PTR(result);
	return 0;
}

static int write_status(struct pool_work *w)
{
	json_t *m = memory(w);
	cleanup_json json_t *status = volume_pool_status(&w->view, &w->step);
	int64_t now = clock_mono_ms(w->r->clock);
	bool numbers;

	/* what went wrong with this step the last time stands until it succeeds */
	if (streq(jstr(m, "why"), w->step.why))
		json_object_set(status, "message", jget(m, "failure"));
	if (report_same(status, jget(w->stored, "status"), &numbers) &&
	    (!numbers || now - jint(m, "numbers") < NUMBERS_EVERY_MS))
		return 0;
	json_object_set_new(m, "numbers", json_integer(now));
	return patch_marks(w, status);
}

static int write_failure(struct pool_work *w, int rc)
{
	json_t *m = memory(w);
	struct error kept = w->r->error;

	json_object_set_new(m, "why", json_string(w->step.why));
	json_object_set_new(m, "failure", json_string(error_text(&kept, rc)));
	json_object_del(m, "next");
	write_status(w);
	w->r->error = kept;
	return rc;
}

/* Gluster cannot be asked: what is reported stands, with the reason. Others who ask at the moment are none. */
static int look_failed(struct pool_work *w, int rc)
{
	struct error kept = w->r->error;
	const char *why = error_text(&kept, rc);

	if (rc != -EBUSY && !streq(jstr(w->pool, "status", "message"), why))
		patch(w, json_pack("{s:s}", "message", why));
	w->r->error = kept;
	return rc;
}

/* ---- acting -------------------------------------------------------------------------------- */
static bool heal_due(struct pool_work *w)
{
	json_t *m = memory(w);
	int64_t now = clock_mono_ms(w->r->clock);

	if (jget(m, "healed") && now - jint(m, "healed") < HEAL_EVERY_MS)
		return false;
	json_object_set_new(m, "healed", json_integer(now));
	return true;
}

/* Which copies are whole, and what a person gives up, may have changed during a long look. */
static bool same_copies(const struct pool_work *w, const json_t *now)
{
	return json_equal(jget(now, "status", "bricks"), jget(w->stored, "status", "bricks")) &&
	       streq(object_annotation(now, POOL_ANNOTATION_LOST),
		     object_annotation(w->pool, POOL_ANNOTATION_LOST));
}

/*
 * What is told to gluster cannot be taken back, and the cache may have stood still: the pool is
 * asked for anew. 1: it is what was decided on; 0: it is gone, another one, or wants something else
 * by now, which the cache is going to hear.
 */
static int still_so(struct pool_work *w)
{
	cleanup_json json_t *now = NULL;
	int rc = kube_get(w->r->kube, &KIND_STORAGEPOOL, object_namespace(w->pool),
			  object_name(w->pool), &now, &w->r->error);

	if (rc == -ENOENT) {
		w->r->error = ERROR_INIT;
		return 0;
	}
	if (rc < 0)
		return rc;
	if (gives_up_a_copy(w->step.kind) && !same_copies(w, now))
		return 0;
	return streq(object_uid(now), object_uid(w->pool)) &&
	       jint(now, "metadata", "generation") == jint(w->pool, "metadata", "generation") &&
	       volume_is_to_go(now) == volume_is_to_go(w->pool);
}

static int carry_out(struct pool_work *w)
{
	struct node_host *h = w->agent->host;
	int rc = still_so(w);

	if (rc <= 0)
		return rc < 0 ? rc : STALE_AGAIN_MS;
	rc = h->ops->volume_apply(h, &w->step, &w->r->error);
	if (rc == -EBUSY) {
		w->r->error = ERROR_INIT;
		return WAIT_MS;
	}
	if (rc < 0)
		return rc;
	json_object_del(memory(w), "why");
	return NEXT_MS;
}

/* > 0: call again after so many ms; NEXT_MS: there may be another step. */
static int act(struct pool_work *w)
{
	struct node_host *h = w->agent->host;
	struct error err = ERROR_INIT;
	int rc;

	switch (w->step.kind) {
	case STEP_NONE:
		return healing_unknown(w)	 ? REVIVE_FIRST_MS
		       : unmarked(&w->volume) ? MARK_AGAIN_MS
					      : IDLE_MS;
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
		return carry_out(w);
	}
}

static int converge(struct pool_work *w)
{
	for (int i = 0; i < STEPS_MAX; i++) {
		int rc = decide(w);

		if (rc < 0)
			return look_failed(w, rc);
		/* the lead may have gone while the look, or the last step, took its time */
		if (!agent_leads(w->agent, w->node))
			return 0;
		rc = write_status(w);
		if (rc < 0)
			return rc;
		rc = act(w);
		if (rc < 0)
			return write_failure(w, rc);
		if (rc != NEXT_MS) {
			look_again(w, rc);
			return 0;
		}
	}
	look_again(w, WAIT_MS);
	return 0;
}

/*
 * While the peers of a glusterd that has just started are still connecting, a transaction may lock the volume on one
 * that it then does not unlock, for three minutes. Asking for the peers is none.
 */
static bool peers_connecting(struct pool_work *w)
{
	struct node_host *h = w->agent->host;
	const char *self = jstr(w->node, "status", "plan", "address");
	struct gluster_peers peers cleanup_with(gluster_peers_done) = { 0 };
	const json_t *v;
	size_t i;

	if (agent_glusterd_age_ms(w->agent, w->r->clock) >= GLUSTERD_SETTLE_MS ||
	    h->ops->peers(h, &peers, NULL) < 0)
		return false;
	json_array_foreach (jget(w->node, "status", "plan", "peers"), i, v) {
		const char *address = json_string_value(v);
		const struct gluster_peer *p = gluster_peer_find(&peers, address);

		if (!streq(address, self) &&
		    !(p && p->connected && p->state == GLUSTER_PEER_BEFRIENDED))
			return true;
	}
	return false;
}

static bool is_ours(const struct agent *a, const json_t *node, const json_t *pool, const char *ns)
{
	return pool && streq(ns, a->ns) &&
	       streq(jstr(pool, "spec", "cluster"), jstr(node, "status", "plan", "cluster"));
}

static int pool_reconcile(struct reconcile *r, const char *key)
{
	struct agent *a = r->app;
	char ns[254], name[254];
	cleanup_json json_t *node = agent_node(r), *pool = NULL;
	struct pool_work w = { .r = r, .agent = a, .node = node };
	bool member;
	int rc;

	key_split(key, ns, name);
	pool = reader_get(r->cache, &KIND_STORAGEPOOL, ns, name);
	/* one that is to go may have a volume of that name which nobody else knows: it has no say */
	member = node && !agent_leaves(jget(node, "status", "plan"));
	if (member && !is_ours(a, node, pool, ns)) {
		json_object_del(a->state->pools, name);
		offline_drop(a->state, name);
		return 0;
	}
	if (!member || !agent_leads(a, node)) {
		json_object_del(a->state->pools, name);
		offline_forget(a->state);
		return 0;
	}
	/* deleted for us: the operator only has its finalizer to remove */
	if (object_deleting(pool) && streq(jstr(pool, "status", "phase"), "Deleted"))
		return 0;
	if (jint(pool, "spec", "epoch") < jint(pool, "status", "epoch")) {
		log_warn("pool %s: orders of epoch %lld are older than those in force: ignored",
			 name, (long long)jint(pool, "spec", "epoch"));
		return 0;
	}
	w.pool = pool;
	if (nothing_new(&w))
		return 0;
	if (peers_connecting(&w)) {
		r->again_ms = SETTLE_AGAIN_MS;
		return 0;
	}
	rc = converge(&w);
	work_done(&w);
	return rc;
}

/* The pools of a node's bricks. */
static void node_pools(const json_t *node, struct reconcile *r, struct strv *keys)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(node, "status", "agent", "bricks"), i, b) {
		cleanup_free char *key = xasprintf("%s/%s", object_namespace(node),
						   jstr(b, "pool") ? jstr(b, "pool") : "");

		if (jstr(b, "pool") && !strv_contains(keys, key))
			strv_add(keys, key);
	}
}

static const struct controller_watch pool_watches[] = {
	{ .kind = &KIND_STORAGEPOOL, .follows = true },
	{ .kind = &KIND_STORAGENODE, .follows = true, .keys = node_pools },
	{ 0 },
};

const struct controller AGENT_POOL = {
	.name = "pool",
	.watches = pool_watches,
	.workers = 1,
	.reconcile = pool_reconcile,
};
