/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/claim.h"

#include "base/clock.h"
#include "base/mem.h"
#include "cli/follow.h"
#include "cli/term.h"
#include "csi/pools.h"
#include "operator/op.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define TICK_MS 1000
#define QUOTA_POLL_MS 100

/* ---- bound ------------------------------------------------------------------------------------ */

struct waiting {
	const char *claim;
	struct progress step; /* begun only once there is something to wait for */
	bool shown;
	char found[400];
	char *volume; /* its name */
};

static void show_waiting(struct waiting *w)
{
	if (!w->shown)
		progress_begin(&w->step, stderr, "wait for claim %s", w->claim);
	w->shown = true;
	progress_note(&w->step, "%s", w->found);
}

static int is_bound(const json_t *claim, void *userdata)
{
	struct waiting *w = userdata;
	const char *phase = jstr(claim, "status", "phase");

	if (!claim)
		return -ENOENT;
	if (streq(phase, "Lost"))
		return -EIDRM;
	if (streq(phase, "Bound") && jstr(claim, "spec", "volumeName")) {
		w->volume = xstrdup(jstr(claim, "spec", "volumeName"));
		return 1;
	}
	(void)snprintf(w->found, sizeof(w->found), "it is %s", phase ? phase : "not bound yet");
	show_waiting(w);
	return 0;
}

static int not_bound(const struct session *s, const struct waiting *w, int r, struct error *err)
{
	switch (r) {
	case -ENOENT:
		(void)error_set(err, ENOENT, "there is no claim %s in namespace %s", w->claim,
				s->ns);
		break;
	case -EIDRM:
		(void)error_set(
			err, EIDRM,
			"the volume of claim %s is lost; see: quartermaster describe pvc %s",
			w->claim, w->claim);
		break;
	case -ETIMEDOUT:
		(void)fprintf(
			stderr,
			"quartermaster: claim %s is not bound in time: %s; see why: quartermaster "
			"describe pvc %s -n %s\n",
			w->claim, w->found, w->claim, s->ns);
		return QM_TIMED_OUT;
	}
	return session_fail(s, r, err);
}

int claim_wait_bound(struct session *s, const char *claim, int64_t timeout_ms, json_t **ret_volume)
{
	struct waiting w = { .claim = claim };
	struct error err = ERROR_INIT;
	int r = follow(s, &KIND_PVC, s->ns, claim, timeout_ms, TICK_MS, is_bound, &w, &err);

	if (w.shown)
		progress_end(&w.step, r > 0, NULL);
	if (r <= 0)
		return not_bound(s, &w, r ? r : -ETIMEDOUT, &err);
	r = kube_get(s->kube, &KIND_PV, NULL, w.volume, ret_volume, &err);
	free(w.volume);
	return r < 0 ? session_fail(s, r, &err) : QM_OK;
}

/* ---- quota ------------------------------------------------------------------------------------ */

enum quota_state { QUOTA_IN_FORCE, QUOTA_COMING, QUOTA_NOT_ENFORCED };

struct quota {
	struct session *s;
	const json_t *volume;
	const char *pool;
	char why[600];
};

/* Versions are numbers in practice; where they are not, only the same one is as new. */
static bool is_as_new(const char *version, const char *wanted)
{
	char *end_a, *end_b;
	unsigned long long a, b;

	if (!version)
		return false;
	errno = 0;
	a = strtoull(version, &end_a, 10);
	b = strtoull(wanted, &end_b, 10);
	return errno || *end_a || *end_b ? streq(version, wanted) : a >= b;
}

static enum quota_state node_state(struct quota *q, const char *ns, const char *name)
{
	cleanup_json json_t *node = NULL;
	const json_t *quota;
	struct error err = ERROR_INIT;
	const char *message;

	if (kube_get(q->s->kube, &KIND_STORAGENODE, ns, name, &node, &err) < 0) {
		(void)snprintf(q->why, sizeof(q->why), "node %s: %s", name, err.message);
		return QUOTA_COMING;
	}
	quota = jget(node, "status", "agent", "quota");
	message = jstr(quota, "message");
	if (json_is_false(jget(quota, "enforced"))) {
		(void)snprintf(q->why, sizeof(q->why), "%s",
			       message && *message ? message : "no reason was given");
		return QUOTA_NOT_ENFORCED;
	}
	if (is_as_new(jstr(quota, "pools", q->pool), object_version(q->volume)))
		return QUOTA_IN_FORCE;
	(void)snprintf(q->why, sizeof(q->why), "node %s has not set the limit yet", name);
	return streq(jstr(node, "status", "phase"), "Offline") ? QUOTA_NOT_ENFORCED : QUOTA_COMING;
}

/*
 * Versions before wrote no namespace into volumes: then it is the only pool of that name. Of several nobody knows which
 * one it is, and none is taken for it.
 */
static int find_unsaid(struct session *s, const char *name, const char *deployment, json_t **ret,
		       struct error *err)
{
	cleanup_free char *fields = xasprintf("metadata.name=%s", name),
			  *labels = deployment ? xasprintf(QM_LABEL_DEPLOYMENT "=%s", deployment) :
						 NULL;
	struct kube_selector sel = { .fields = fields, .labels = labels };
	cleanup_json json_t *items = NULL;
	int r = kube_list(s->kube, &KIND_STORAGEPOOL, NULL, &sel, &items, NULL, err);

	if (r < 0)
		return r;
	if (json_array_size(items) > 1)
		return error_set(err, EEXIST,
				 "several namespaces have a pool %s, and the volume has no label "
				 QM_LABEL_NAMESPACE "; set it to that of its own",
				 name);
	if (!json_array_size(items))
		return error_set(err, ENOENT, "there is no pool %s", name);
	*ret = json_incref(json_array_get(items, 0));
	return 0;
}

/* The pool that holds the volume; its nodes are in its namespace. */
static int find_pool(struct session *s, const json_t *volume, json_t **ret, struct error *err)
{
	const char *deployment = object_label(volume, QM_LABEL_DEPLOYMENT),
		   *ns = object_label(volume, QM_LABEL_NAMESPACE),
		   *name = object_label(volume, QM_LABEL_POOL);
	cleanup_json json_t *pool = NULL;
	int r = ns ? kube_get(s->kube, &KIND_STORAGEPOOL, ns, name, &pool, err) :
		     find_unsaid(s, name, deployment, &pool, err);

	if (r < 0)
		return r;
	if (deployment && !streq(object_label(pool, QM_LABEL_DEPLOYMENT), deployment))
		return error_set(err, ENOENT, "pool %s/%s is not of deployment %s",
				 object_namespace(pool), name, deployment);
	*ret = TAKE_PTR(pool);
	return 0;
}

static enum quota_state quota_state(struct quota *q)
{
	cleanup_json json_t *pool = NULL;
	struct error err = ERROR_INIT;
	enum quota_state worst = QUOTA_IN_FORCE, state;
	const json_t *brick;
	size_t i;

	if (find_pool(q->s, q->volume, &pool, &err) < 0) {
		(void)snprintf(q->why, sizeof(q->why), "%s", err.message);
		return QUOTA_COMING;
	}
	json_array_foreach ((json_t *)jget(pool, "spec", "bricks"), i, brick) {
		if (jbool(brick, "arbiter") || !jstr(brick, "node"))
			continue;
		state = node_state(q, object_namespace(pool), jstr(brick, "node"));
		/* the words belong to the last one that is not in force */
		if (state == QUOTA_NOT_ENFORCED)
			return state;
		if (state > worst)
			worst = state;
	}
	return worst;
}

void claim_wait_quota(struct session *s, const json_t *volume, int64_t timeout_ms)
{
	struct quota q = { .s = s, .volume = volume, .pool = object_label(volume, QM_LABEL_POOL) };
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;
	struct progress step = { 0 };
	enum quota_state state;
	bool shown = false;

	/* a volume that is not of a pool of ours has the limits that its own storage gives it */
	if (!q.pool)
		return;
	while ((state = quota_state(&q)) == QUOTA_COMING && clock_mono_ms(&clock_real) < end) {
		if (!shown)
			progress_begin(&step, stderr, "wait until the size of %s is enforced",
				       object_name(volume));
		shown = true;
		progress_note(&step, "%s", q.why);
		(void)nanosleep(&(struct timespec){ .tv_nsec = QUOTA_POLL_MS * 1000000L }, NULL);
	}
	if (shown)
		progress_end(&step, state == QUOTA_IN_FORCE, NULL);
	if (state != QUOTA_IN_FORCE)
		(void)fprintf(stderr, "not enforced: %s\n", q.why);
}

/* ---- connection ------------------------------------------------------------------------------- */

#define SERVERS "backup-volfile-servers="

/* The servers that the ConnectionInfo names. */
static void known_servers(const json_t *info, struct strv *ret)
{
	const char *export = jstr(info, "export"), *options = jstr(info, "options");
	const char *list = options ? strstr(options, SERVERS) : NULL, *end = NULL;

	if (export && (end = strstr(export, ":/")))
		strv_add_take(ret, xstrndup(export, (size_t)(end - export)));
	for (list = list ? list + strlen(SERVERS) : ""; *list && *list != ','; list = end) {
		end = list + strcspn(list, ":,");
		strv_add_take(ret, xstrndup(list, (size_t)(end - list)));
		end += *end == ':';
	}
}

/*
 * A volume is immutable, but its pool may have moved to other nodes since it was made: then the
 * pool's nodes of now are the servers. As long as they are the same the volume's word stands, so
 * that all claims of the pool are served by one client.
 */
static void update_servers(struct session *s, const json_t *volume, json_t *info)
{
	struct strv known cleanup_with(strv_done) = { 0 }, now cleanup_with(strv_done) = { 0 };
	cleanup_json json_t *pool = NULL, *reach = NULL;
	cleanup_free char *export = NULL;
	const char *handle = jstr(volume, "spec", "csi", "volumeHandle");
	struct handle h;
	bool same = true;

	if (jstr(info, "mountOptions") || !object_label(volume, QM_LABEL_POOL) || !handle ||
	    handle_parse(handle, &h, NULL) < 0 ||
	    !streq(h.pool, object_label(volume, QM_LABEL_POOL)) ||
	    find_pool(s, volume, &pool, NULL) < 0)
		return;
	reach = pool_reach(pool, NULL);
	export = pool_place(reach, &h, jstr(info, "driverVolumeType"), jstr(info, "export"));
	known_servers(info, &known);
	known_servers(reach, &now);
	for (size_t i = 0; i < now.count; i++)
		same = same && strv_contains(&known, now.items[i]);
	if (!export || (same && now.count == known.count))
		return;
	json_object_set_new(info, "export", json_string(export));
	json_object_set(info, "options", jget(reach, "options"));
}

int claim_flags(const json_t *volume, struct wanted *ret, struct error *err)
{
	const json_t *list = jget(volume, "spec", "mountOptions");
	size_t count = json_array_size(list);
	cleanup_free const char **flags = xcalloc(count + 1, sizeof(*flags));
	struct wanted w = { 0 };
	int r;

	for (size_t i = 0; i < count; i++) {
		flags[i] = json_string_value(json_array_get(list, i));
		if (!flags[i])
			flags[i] = "";
	}
	r = wanted_flags(flags, count, &w, err);
	if (r < 0)
		wanted_done(&w);
	else
		*ret = w;
	return r;
}

/* The class's word on mounts, where hostvol makes them. */
static int add_options(const json_t *volume, json_t *info, struct error *err)
{
	cleanup_with(wanted_done) struct wanted w = { 0 };
	int r = claim_flags(volume, &w, err);

	if (r == 0 && *w.options &&
	    options_are_of_mount(jstr(volume, "spec", "csi", "volumeHandle"),
				 jstr(info, "driverVolumeType")))
		connection_add_options(info, w.options);
	return r;
}

char *claim_connection(struct session *s, const json_t *volume, const char *consumer)
{
	cleanup_json json_t *info = json_deep_copy(jget(volume, "spec", "csi", "volumeAttributes"));
	struct error err = ERROR_INIT;

	if (!jstr(info, "driverVolumeType")) {
		(void)fprintf(stderr,
			      "quartermaster: volume %s has no ConnectionInfo in its "
			      "volumeAttributes; it is not "
			      "one that hostvol can connect\n",
			      object_name(volume));
		return NULL;
	}
	update_servers(s, volume, info);
	if (add_options(volume, info, &err) < 0) {
		(void)fprintf(stderr, "quartermaster: mountOptions of volume %s: %s\n",
			      object_name(volume), err.message);
		return NULL;
	}
	if (!jstr(info, "volumeId"))
		(void)jset(info, json_string(object_name(volume)), "volumeId");
	(void)jset(info, json_string(consumer), "consumer");
	return json_text(info);
}
