/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <stdio.h>

#define LIGHT_MS 30000 /* usage is looked at this often */
#define HEALING_MS 5000 /* and while something is pending */
#define FULL_MS                                                                                    \
	300000 /* devices too: one may have come back, though every event brings a full look */
#define TROUBLE_MS 15000 /* while something is not as it should be, */
#define TROUBLE_FIRST_MS 2000 /* sooner at first: a device may have been busy for a moment */
#define SEES_AGAIN_MS 500 /* the first lists of what a leader watches */
#define TOLD_AGAIN_MS 1
#define PATCH_TRIES 5
#define REPAIR_MIN_MS 1000
#define REPAIR_FIRST_MS                                                                            \
	2000 /* a brick that was removed from its volume ends a moment before that is told here */
#define REPAIR_MAX_MS 60000
#define SETTLE_SPREAD_MS                                                                           \
	5000 /* later on some nodes: transactions that collide can leave locks behind */

/* ---- shared by the loops ------------------------------------------------------------------- */
void agent_init(struct agent *a)
{
	a->state = xcalloc(1, sizeof(*a->state));
	pthread_mutex_init(&a->state->lock, NULL);
	a->state->pools = json_object();
	a->state->missing = json_object();
	a->state->limits = json_object();
	a->state->quota_ms = json_object();
}

void agent_done(struct agent *a)
{
	struct agent_state *s = a->state;

	if (!s)
		return;
	for (size_t i = 0; i < s->repair_count; i++)
		free(s->repairs[i].brick);
	offline_forget(s);
	free(s->repairs);
	free(s->offline);
	free(s->report_key);
	json_decref(s->report);
	json_decref(s->pools);
	json_decref(s->missing);
	json_decref(s->limits);
	json_decref(s->quota_ms);
	pthread_mutex_destroy(&s->lock);
	free(s);
	a->state = NULL;
}

json_t *agent_node(struct reconcile *r)
{
	const struct agent *a = r->app;

	return reader_get(r->cache, &KIND_STORAGENODE, a->ns, a->node);
}

const char *agent_deployment(const json_t *node)
{
	const char *planned = jstr(node, "status", "plan", "deployment"),
		   *label = object_label(node, LABEL_DEPLOYMENT);

	return planned ? planned : label ? label : "default";
}

bool agent_leads(struct agent *a, const json_t *node)
{
	const char *cluster = jstr(node, "status", "plan", "cluster");
	int64_t epoch;

	return cluster && a->leads && a->leads(a, agent_deployment(node), cluster, &epoch);
}

bool agent_leaves(const json_t *plan)
{
	const char *self = jstr(plan, "address");
	const json_t *v;
	size_t i;

	json_array_foreach (jget(plan, "detach"), i, v)
		if (self && streq(json_string_value(v), self))
			return true;
	return false;
}

static int patch_once(struct reconcile *r, const struct kind *kind, const json_t *object,
		      const json_t *status)
{
	cleanup_json json_t *patch = json_pack("{s:{s:s*, s:s*}, s:O}", "metadata", "uid",
					       jstr(object, "metadata", "uid"), "resourceVersion",
					       jstr(object, "metadata", "resourceVersion"),
					       "status", status);
	cleanup_json json_t *result = NULL;
	int rc = kube_patch(r->kube, kind, object_namespace(object), object_name(object), "status",
			    KUBE_PATCH_MERGE, patch, &result, &r->error);

	if (rc == 0)
		reader_learned(r->cache, kind, result);
	return rc;
}

/* The object as the API has it now; -ESTALE where that is another one of its name. */
static int read_again(struct reconcile *r, const struct kind *kind, const json_t *object,
		      json_t **ret)
{
	cleanup_json json_t *now = NULL;
	int rc = kube_get(r->kube, kind, object_namespace(object), object_name(object), &now,
			  &r->error);

	if (rc < 0)
		return rc;
	if (!streq(object_uid(now), object_uid(object)))
		return error_set(&r->error, ESTALE,
				 "%s %s is another one than was looked at (uid %s, not %s): "
				 "nothing is said of it",
				 kind->kind, object_name(object), object_uid(now),
				 object_uid(object));
	*ret = TAKE_PTR(now);
	return 0;
}

/*
 * A cluster's API server looks at no uid in a patch of the status: it is the resourceVersion that
 * lets nothing be said of another object of the name. What others have written since to this one is
 * no obstacle.
 */
int agent_patch_status(struct reconcile *r, const struct kind *kind, const json_t *object,
		       json_t *status)
{
	cleanup_json json_t *said = status,
			    *newest = reader_get(r->cache, kind, object_namespace(object),
						 object_name(object));
	bool same = newest && streq(object_uid(newest), object_uid(object));
	int rc = patch_once(r, kind, same ? newest : object, said);

	for (int i = 0; rc == -ESTALE && i < PATCH_TRIES; i++) {
		cleanup_json json_t *now = NULL;

		r->error = ERROR_INIT;
		rc = read_again(r, kind, object, &now);
		if (rc < 0)
			return rc;
		rc = patch_once(r, kind, now, said);
	}
	return rc;
}

/* ---- glusterd ------------------------------------------------------------------------------ */
static void note_glusterd(struct looking *l, int pid)
{
	struct agent_state *s = l->agent->state;

	if (pid == s->glusterd_pid)
		return;
	s->glusterd_pid = pid;
	pthread_mutex_lock(&s->lock);
	s->glusterd_ms = clock_mono_ms(l->r->clock);
	pthread_mutex_unlock(&s->lock);
}

int64_t agent_glusterd_age_ms(struct agent *a, const struct clock *clock)
{
	int64_t since;

	pthread_mutex_lock(&a->state->lock);
	since = a->state->glusterd_ms;
	pthread_mutex_unlock(&a->state->lock);
	return clock_mono_ms(clock) - since;
}

/* How long bricks are still left to a glusterd that has just started. */
static int settling_ms(struct looking *l)
{
	unsigned spread = 0;
	int64_t left;

	for (const char *p = l->agent->node; *p; p++)
		spread = spread * 31 + (unsigned char)*p;
	left = GLUSTERD_SETTLE_MS + spread % SETTLE_SPREAD_MS -
	       agent_glusterd_age_ms(l->agent, l->r->clock);
	return left > 0 ? (int)left : 0;
}

static json_t *report_glusterd(struct looking *l)
{
	struct glusterd_state g = { 0 };
	struct error err = ERROR_INIT;
	int rc = l->agent->host->ops->glusterd_ensure(l->agent->host, !l->maintenance, &g, &err);

	if (rc < 0)
		log_warn("%s", error_text(&err, rc));
	note_glusterd(l, g.pid);
	return json_pack("{s:b, s:s, s:i, s:s, s:s}", "running", (int)g.running, "uuid", g.uuid,
			 "pid", g.pid, "version", g.version, "message",
			 rc < 0	     ? error_text(&err, rc)
			 : g.running ? ""
				     : "not running, and not started in maintenance");
}

/* ---- dead bricks --------------------------------------------------------------------------- */
/* Each by itself: while a pool's brick moves within a node, that has two, and one may run. */
static struct repair *repair_of(struct agent_state *s, const char *brick)
{
	for (size_t i = 0; i < s->repair_count; i++)
		if (streq(s->repairs[i].brick, brick))
			return &s->repairs[i];
	s->repairs = xrealloc(s->repairs, (s->repair_count + 1) * sizeof(*s->repairs));
	s->repairs[s->repair_count] =
		(struct repair){ .brick = xstrdup(brick), .delay_ms = REPAIR_MIN_MS };
	return &s->repairs[s->repair_count++];
}

/* Is it a brick of a volume? Only then its process ought to run. What the leader reports saves asking gluster. */
static bool should_run(const json_t *o, const json_t *brick)
{
	const char *phase = jstr(o, "status", "phase"), *uid = jstr(brick, "poolUid");
	const json_t *b;
	size_t i;

	if (!phase || streq(phase, "Creating") || streq(phase, "Deleted") ||
	    (uid && !streq(uid, object_uid(o))) ||
	    (object_deleting(o) && object_annotation(o, POOL_ANNOTATION_EMPTY)))
		return false;
	json_array_foreach (jget(o, "status", "bricks"), i, b)
		if (streq(jstr(b, "id"), jstr(brick, "id")))
			return true;
	return false;
}

/* Returns when to look again, 0: no need. */
static int repair_brick(struct looking *l, const json_t *brick)
{
	struct node_host *h = l->agent->host;
	const char *pool = jstr(brick, "pool");
	struct repair *p = repair_of(l->agent->state, jstr(brick, "id"));
	int64_t now = clock_mono_ms(l->r->clock);
	struct volume_step step = { .kind = STEP_START_FORCE };
	struct error err = ERROR_INIT;
	cleanup_json json_t *o = reader_get(l->r->cache, &KIND_STORAGEPOOL, l->agent->ns, pool);
	int rc = settling_ms(l);

	if (!should_run(o, brick))
		return 0;
	if (rc > 0)
		return rc;
	if (p->next_ms == 0)
		p->next_ms = now + REPAIR_FIRST_MS;
	if (now < p->next_ms)
		return (int)(p->next_ms - now);
	p->next_ms = now + p->delay_ms;
	p->delay_ms = p->delay_ms * 2 > REPAIR_MAX_MS ? REPAIR_MAX_MS : p->delay_ms * 2;
	snprintf(step.volume, sizeof(step.volume), "%s", pool);
	volume_step_of(&step, jstr(o, "status", "volumeId"));
	snprintf(step.why, sizeof(step.why), "the process of brick %s is gone", jstr(brick, "id"));
	rc = h->ops->volume_apply(h, &step, &err);
	if (rc < 0)
		log_warn("%s", error_text(&err, rc));
	return REPAIR_MIN_MS;
}

static int repair_bricks(struct looking *l, const json_t *bricks)
{
	const json_t *b;
	size_t i;
	int again = 0;

	json_array_foreach (bricks, i, b) {
		int ms;

		if (!jbool(b, "mounted") || !jstr(b, "pool") || !jstr(b, "id"))
			continue;
		if (jbool(b, "online")) {
			struct repair *p = repair_of(l->agent->state, jstr(b, "id"));

			*p = (struct repair){ .brick = p->brick, .delay_ms = REPAIR_MIN_MS };
			continue;
		}
		ms = l->maintenance ? 0 : repair_brick(l, b);
		if (ms > 0 && (again == 0 || ms < again))
			again = ms;
	}
	return again;
}

/* ---- the report ---------------------------------------------------------------------------- */
static bool healing(const json_t *report)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(report, "bricks"), i, b)
		if (jint(b, "pending") > 0)
			return true;
	return false;
}

static bool troubled(const json_t *report)
{
	const json_t *d;
	size_t i;

	if (!jbool(report, "glusterd", "running"))
		return true;
	json_array_foreach (jget(report, "devices"), i, d)
		if (!streq(jstr(d, "state"), "Ready") && !streq(jstr(d, "state"), "Available"))
			return true;
	return false;
}

static int write_report(struct looking *l, json_t *report)
{
	struct agent_state *s = l->agent->state;
	const json_t *known = jget(l->node, "status", "agent");
	int64_t now = clock_mono_ms(l->r->clock);
	cleanup_json json_t *agent = json_copy(report);
	char time[TIME_TEXT_MAX];
	bool numbers;
	int rc;

	if (report_same(report, known, &numbers) &&
	    (!numbers || now - s->numbers_ms < (healing(report) ? HEALING_MS : LIGHT_MS) - 1000))
		return 0;
	json_object_set_new(agent, "heartbeat",
			    json_string(time_text(clock_wall_ms(l->r->clock), time)));
	rc = agent_patch_status(l->r, &KIND_STORAGENODE, l->node,
				json_pack("{s:O}", "agent", agent));
	if (rc == 0)
		s->numbers_ms = now;
	return rc;
}

static json_t *report_head(struct looking *l)
{
	struct node_identity id = { 0 };
	json_t *report = json_object();

	l->agent->host->ops->identity(l->agent->host, &id, NULL);
	json_object_set_new(report, "observedGeneration",
			    json_integer(jint(l->node, "metadata", "generation")));
	json_object_set_new(report, "planEpoch",
			    json_integer(l->plan ? jint(l->plan, "epoch")
						 : jint(l->node, "status", "agent", "planEpoch")));
	json_object_set_new(report, "machineId", json_string(id.machine_id));
	json_object_set_new(report, "bootId", json_string(id.boot_id));
	json_object_set_new(report, "version", json_string(QM_VERSION));
	json_object_set_new(report, "glusterd", report_glusterd(l));
	return report;
}

static bool chosen_before(const json_t *node, const json_t *devices)
{
	const json_t *d, *k;
	size_t i, n;

	json_array_foreach (devices, i, d) {
		bool known = !jstr(d, "brick");

		json_array_foreach (jget(node, "status", "agent", "devices"), n, k)
			known |= streq(jstr(k, "brick"), jstr(d, "brick")) &&
				 streq(jstr(k, "uuid"), jstr(d, "uuid"));
		if (!known)
			return false;
	}
	return true;
}

/*
 * Two rounds where a brick is new: its UUID is chosen and reported; only when the API has it the
 * device is formatted. So neither a lost disk of the agent nor a lost API leaves an orphan.
 */
static int full_look(struct looking *l, json_t **ret)
{
	cleanup_json json_t *report = NULL;
	json_t *devices, *bricks;
	int rc;

	report = report_head(l);
	/* glusterd, which that starts, is asked before anything is destroyed */
	l->unreleased = !release_bricks(l);
	rc = report_ask(l);
	if (rc < 0)
		return rc;
	devices = report_devices(l);
	json_object_set_new(report, "devices", devices);
	bricks = report_bricks(l, devices, false);
	json_object_set_new(report, "bricks", bricks);
	if (!chosen_before(l->node, devices)) {
		rc = write_report(l, report);
		if (rc < 0)
			return rc;
	}
	bricks = report_bricks(l, devices, true);
	json_object_set_new(report, "bricks", bricks);
	/* what lies on a file system that was only mounted now */
	if (l->away)
		l->unreleased |= !release_bricks(l);
	*ret = TAKE_PTR(report);
	return 0;
}

static void tell_quota(struct looking *l, const json_t *report)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(report, "bricks"), i, b)
		if (jbool(b, "mounted") && jstr(b, "pool") && l->r->enqueue)
			l->r->enqueue(l->r, "quota", jstr(b, "pool"), 0);
}

static int look(struct looking *l)
{
	struct agent_state *s = l->agent->state;
	cleanup_free char *plan = l->plan ? json_text(l->plan) : NULL;
	cleanup_free char *key =
		xasprintf("%lld %d %s", (long long)jint(l->node, "metadata", "generation"),
			  l->maintenance, plan ? plan : "");
	int64_t now = clock_mono_ms(l->r->clock);
	json_t *report = NULL;
	int rc;

	if (s->report && streq(key, s->report_key) && now < s->next_full_ms)
		return 0;
	l->full = true;
	rc = full_look(l, &report);
	if (rc < 0)
		return rc;
	json_decref(s->report);
	s->report = report;
	free(s->report_key);
	s->report_key = TAKE_PTR(key);
	if (l->unreleased || l->unready || troubled(report)) {
		s->trouble_ms = s->trouble_ms == 0		 ? TROUBLE_FIRST_MS
				: s->trouble_ms * 2 > TROUBLE_MS ? TROUBLE_MS
								 : s->trouble_ms * 2;
		s->next_full_ms = now + s->trouble_ms;
	} else {
		s->trouble_ms = 0;
		s->next_full_ms = now + FULL_MS;
	}
	s->peers_done = false;
	tell_quota(l, report);
	return 0;
}

/*
 * A node that cannot act, since its glusterd does not run, leaves the lead to others. So does one in
 * maintenance, but once only: there may be no other.
 */
static void leave_lead(struct looking *l)
{
	struct agent_state *s = l->agent->state;
	bool runs = jbool(s->report, "glusterd", "running");

	if (runs && !l->maintenance) {
		s->left_lead = false;
		return;
	}
	if ((runs && s->left_lead) || !l->agent->yield)
		return;
	s->left_lead = true;
	if (agent_leads(l->agent, l->node))
		l->agent->yield(l->agent);
}

/* Once for each full look, and each time the lead comes, is enough: who joins or leaves stands in the plan. */
static int lead_peers(struct looking *l)
{
	struct agent_state *s = l->agent->state;
	int rc;

	leave_lead(l);
	if (!l->plan || !jbool(s->report, "glusterd", "running"))
		return 0;
	if (!agent_leads(l->agent, l->node)) {
		s->peers_done = false;
		return 0;
	}
	/* who comes and goes is decided by what volumes there are: the lead has only just come */
	if (!l->sees_cluster) {
		l->r->again_ms = SEES_AGAIN_MS;
		return 0;
	}
	rc = s->peers_done ? 0 : peers_converge(l, &l->r->error);
	s->peers_done = rc == 0;
	/* one that is to go lets others go, should it be the last; the volumes are not its business any more */
	if (agent_leaves(l->plan) && l->agent->yield)
		l->agent->yield(l->agent);
	return rc;
}

static bool planned(const struct looking *l, const char *id)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(l->plan, "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			return true;
	return false;
}

/*
 * After a start of the machine the report still says that bricks are mounted. That is put right before glusterd
 * is started here: whoever leads would have gluster use them. 1: it was, look again.
 */
static int tell_unmounted(struct looking *l)
{
	cleanup_json json_t *bricks =
		json_deep_copy(jget(l->node, "status", "agent", "bricks"));
	bool told = false;
	json_t *b;
	size_t i;
	int rc;

	json_array_foreach (bricks, i, b) {
		const char *path = jstr(b, "path"), *id = jstr(b, "id");

		if (!jbool(b, "mounted") || !id || !path || !strchr(path, '/') ||
		    !planned(l, id) || brick_is_there(l->agent->host, path, id))
			continue;
		json_object_set_new(b, "mounted", json_false());
		json_object_set_new(b, "online", json_false());
		told = true;
	}
	if (!told)
		return 0;
	rc = agent_patch_status(l->r, &KIND_STORAGENODE, l->node,
				json_pack("{s:{s:O}}", "agent", "bricks", bricks));
	return rc < 0 ? rc : 1;
}

static int node_work(struct looking *l)
{
	struct agent_state *s = l->agent->state;
	int again = LIGHT_MS, rc, ms;

	rc = s->report ? 0 : tell_unmounted(l);
	if (rc > 0)
		l->r->again_ms = TOLD_AGAIN_MS;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = look(l);
	if (rc < 0)
		return rc;
	/* what can end by itself is looked at each time */
	json_object_set_new(s->report, "glusterd", report_glusterd(l));
	if (!report_usage(l, jget(s->report, "bricks")) && !l->full) {
		s->next_full_ms = 0;
		rc = look(l);
		if (rc < 0)
			return rc;
		report_usage(l, jget(s->report, "bricks"));
	}
	rc = write_report(l, s->report);
	if (rc < 0)
		return rc;
	ms = jbool(s->report, "glusterd", "running") ? repair_bricks(l, jget(s->report, "bricks"))
						     : TROUBLE_MS;
	if (ms > 0 && ms < again)
		again = ms;
	if (healing(s->report) && again > HEALING_MS)
		again = HEALING_MS;
	if (s->trouble_ms > 0 && again > s->trouble_ms)
		again = s->trouble_ms;
	l->r->again_ms = again;
	return lead_peers(l);
}

/* Before anything is done about a brick, its pool and the pool's volumes are watched. */
static bool follow(struct reconcile *r, const json_t *node)
{
	struct agent *a = r->app;
	struct strv pools cleanup_with(strv_done) = { 0 };

	if (!a->follow)
		return true;
	follow_pools(node, &pools);
	return a->follow(a, r, node, &pools);
}

static int node_reconcile(struct reconcile *r, const char *key)
{
	struct agent *a = r->app;
	cleanup_json json_t *node = agent_node(r);
	const json_t *plan = jget(node, "status", "plan");
	cleanup_json json_t *prepared = json_object();
	struct looking l = {
		.r = r, .agent = a, .node = node, .plan = plan, .prepared = prepared
	};
	int rc;

	if (!node)
		return 0;
	l.sees_cluster = follow(r, node);
	/* an order of an operator that has lost its lead since */
	if (jint(plan, "epoch") < jint(node, "status", "agent", "planEpoch")) {
		log_warn("the plan of epoch %lld is older than the one in force: ignored",
			 (long long)jint(plan, "epoch"));
		l.plan = NULL;
	}
	l.maintenance = jbool(node, "spec", "maintenance") || jbool(plan, "maintenance");
	rc = node_work(&l);
	if (rc < 0 && a->state->next_full_ms > 0 && r->error.code == 0)
		error_set(&r->error, -rc, "%s", strerror(-rc));
	return rc;
}

/* Other nodes are watched for the pools' sake only. */
static void node_keys(const json_t *node, struct reconcile *r, struct strv *keys)
{
	const struct agent *a = r->app;

	if (streq(object_name(node), a->node) && streq(object_namespace(node), a->ns))
		strv_add_take(keys, object_key(node));
}

/* A pool that starts has brick processes to watch here. */
static void pool_node(const json_t *pool, struct reconcile *r, struct strv *keys)
{
	const struct agent *a = r->app;
	const json_t *b;
	size_t i;

	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		if (streq(jstr(b, "node"), a->node) && streq(object_namespace(pool), a->ns) &&
		    keys->count == 0)
			strv_add_take(keys, xasprintf("%s/%s", a->ns, a->node));
}

static const struct controller_watch node_watches[] = {
	{ .kind = &KIND_STORAGENODE, .follows = true, .keys = node_keys },
	{ .kind = &KIND_STORAGEPOOL, .follows = true, .keys = pool_node },
	{ 0 },
};

const struct controller AGENT_NODE = {
	.name = "node",
	.watches = node_watches,
	.workers = 1,
	.reconcile = node_reconcile,
};
