/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/daemon.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

#define HEARTBEAT_DURATION_S 30 /* renewed at a third of it */
#define LEAD_DURATION_S 15
#define YIELD_MS 30000 /* long enough for another to take the lead */

/* The cluster's lease: joined when the node knows its cluster, changed if that ever changes. */
struct election {
	pthread_mutex_t lock;
	struct lease *lease;
	char *name;
	int64_t not_before_ms;
};

struct process {
	struct agent agent;
	struct kube *kube, *lease_kube, *beat_kube;
	struct lease *heartbeat;
	struct election election;
	pthread_mutex_t lock; /* of runner: other threads use it while it comes and goes */
	struct runner *runner;
	char *key;
};

static void nudge(struct process *p, int delay_ms)
{
	pthread_mutex_lock(&p->lock);
	if (p->runner)
		runner_enqueue(p->runner, "node", p->key, delay_ms);
	pthread_mutex_unlock(&p->lock);
}

/* ---- who leads ----------------------------------------------------------------------------- */
static int nudge_pool(const json_t *pool, void *userdata)
{
	struct process *p = userdata;
	cleanup_free char *key = object_key(pool);

	runner_enqueue(p->runner, "pool", key, 0);
	return 0;
}

static void nudge_pools(struct process *p)
{
	pthread_mutex_lock(&p->lock);
	if (p->runner)
		reader_each(runner_cache(p->runner), &KIND_STORAGEPOOL, p->agent.ns, nudge_pool, p);
	pthread_mutex_unlock(&p->lock);
}

static void lead_changed(bool held, int64_t epoch, void *userdata)
{
	struct process *p = userdata;

	log_info("%s the cluster (epoch %lld)", held ? "leading" : "no longer leading",
		 (long long)epoch);
	nudge(p, 0); /* what is watched depends on it */
	if (held)
		nudge_pools(p);
}

static void election_leave(struct election *e)
{
	if (e->lease)
		lease_stop(e->lease, true);
	e->lease = NULL;
	free(e->name);
	e->name = NULL;
}

static void election_join(struct process *p, const char *name)
{
	struct election *e = &p->election;
	struct lease_options o = { .kube = p->lease_kube,
				   .ns = p->agent.ns,
				   .name = name,
				   .identity = p->agent.node,
				   .duration_s = LEAD_DURATION_S,
				   .changed = lead_changed,
				   .userdata = p };
	struct error err = ERROR_INIT;
	int rc = lease_start(&o, &e->lease, &err);

	if (rc < 0)
		log_err("%s", error_text(&err, rc));
	else
		e->name = xstrdup(name);
}

static bool leads(struct agent *a, const char *deployment, const char *cluster, int64_t *ret_epoch)
{
	struct process *p = a->userdata;
	struct election *e = &p->election;
	cleanup_free char *name = xasprintf("cluster-%s-%s", deployment, cluster);
	bool held = false;

	pthread_mutex_lock(&e->lock);
	if (e->name && !streq(e->name, name))
		election_leave(e);
	if (!e->name && clock_mono_ms(&clock_real) >= e->not_before_ms)
		election_join(p, name);
	if (e->lease)
		held = lease_held(e->lease, ret_epoch);
	pthread_mutex_unlock(&e->lock);
	return held;
}

static void yield(struct agent *a)
{
	struct process *p = a->userdata;
	struct election *e = &p->election;

	pthread_mutex_lock(&e->lock);
	e->not_before_ms = clock_mono_ms(&clock_real) + YIELD_MS;
	election_leave(e);
	pthread_mutex_unlock(&e->lock);
	nudge(p, YIELD_MS + 1000);
}

/* ---- what is watched ----------------------------------------------------------------------- */
static bool holds_lead(struct process *p)
{
	struct election *e = &p->election;
	int64_t epoch;
	bool held;

	pthread_mutex_lock(&e->lock);
	held = e->lease && lease_held(e->lease, &epoch);
	pthread_mutex_unlock(&e->lock);
	return held;
}

static bool follow(struct agent *a, struct reconcile *r, const json_t *node,
		   const struct strv *pools)
{
	struct following f = { .node = a->node, .pools = pools };
	struct error err = ERROR_INIT;
	int rc;

	if (node && holds_lead(a->userdata)) {
		f.deployment = agent_deployment(node);
		f.cluster = jstr(node, "status", "plan", "cluster");
	}
	rc = follow_apply(r->runner, &f, &err);
	if (rc < 0)
		log_warn("%s", error_text(&err, rc));
	return rc > 0 && f.cluster;
}

/* ---- caches -------------------------------------------------------------------------------- */
static void project_volume(json_t *pv)
{
	static const char *const kept[] = { "name", "uid", "resourceVersion", "labels",
					    "deletionTimestamp" };
	json_t *metadata = json_object(), *spec = json_object(), *value;

	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		if ((value = jget(pv, "metadata", kept[i])))
			json_object_set(metadata, kept[i], value);
	if ((value = jget(pv, "spec", "capacity", "storage")))
		jset(spec, json_incref(value), "capacity", "storage");
	if ((value = jget(pv, "spec", "csi", "volumeAttributes", "name")))
		jset(spec, json_incref(value), "csi", "volumeAttributes", "name");
	json_object_clear(pv);
	json_object_set_new(pv, "metadata", metadata);
	json_object_set_new(pv, "spec", spec);
}

void agent_project(const struct kind *kind, json_t *object)
{
	json_t *metadata = jget(object, "metadata");

	json_object_del(metadata, "managedFields");
	if (kind != &KIND_STORAGEPOOL)
		json_object_del(metadata, "annotations");
	json_object_del(jget(object, "status"), "conditions");
	if (kind == &KIND_PV)
		project_volume(object);
}

/* ---- the process --------------------------------------------------------------------------- */
static void host_changed(void *userdata)
{
	nudge(userdata, 0);
}

static int connect_all(struct process *p, const char *kubeconfig, struct error *err)
{
	struct kube_config config = { 0 };
	int rc = kube_config_load(kubeconfig, &config, err);

	if (rc < 0)
		return rc;
	free(config.manager);
	config.manager = xstrdup("quartermaster-agent");
	/* leases on connections of their own: a long answer must not look like death */
	if ((rc = kube_connect(&config, &p->kube, err)) == 0 &&
	    (rc = kube_connect(&config, &p->lease_kube, err)) == 0)
		rc = kube_connect(&config, &p->beat_kube, err);
	kube_config_done(&config);
	return rc;
}

static int start_heartbeat(struct process *p, struct error *err)
{
	cleanup_free char *name = xasprintf("node-%s", p->agent.node);
	/* the same identity in every life: a restarted agent goes on at once */
	struct lease_options o = { .kube = p->beat_kube,
				   .ns = p->agent.ns,
				   .name = name,
				   .identity = p->agent.node,
				   .duration_s = HEARTBEAT_DURATION_S };

	return lease_start(&o, &p->heartbeat, err);
}

static void runner_set(struct process *p, struct runner *runner)
{
	pthread_mutex_lock(&p->lock);
	p->runner = runner;
	pthread_mutex_unlock(&p->lock);
}

static int run(struct process *p, struct error *err)
{
	const struct controller *controllers[] = { &AGENT_NODE, &AGENT_POOL, &AGENT_QUOTA, NULL };
	struct runner_options o = { .kube = p->kube,
				    .ns = p->agent.ns,
				    .controllers = controllers,
				    .project = agent_project,
				    .app = &p->agent };
	struct strv none = { 0 };
	struct following own = { .node = p->agent.node, .pools = &none };
	struct runner *runner = NULL;
	int rc;

	p->agent.host->changed = host_changed;
	p->agent.host->changed_data = p;
	rc = start_heartbeat(p, err);
	if (rc == 0)
		rc = runner_start(&o, &runner, err);
	if (rc < 0)
		return rc;
	rc = follow_apply(runner, &own, err);
	if (rc < 0) {
		runner_stop(runner);
		return rc;
	}
	runner_set(p, runner);
	/* the lead may have come before there was a runner to tell */
	nudge_pools(p);
	daemon_wait();
	log_info("ending: glusterd and its bricks stay");
	runner_set(p, NULL);
	runner_stop(runner);
	return 0;
}

static void process_done(struct process *p)
{
	election_leave(&p->election);
	if (p->heartbeat)
		lease_stop(p->heartbeat, false);
	if (p->agent.host)
		p->agent.host->ops->free(p->agent.host);
	agent_done(&p->agent);
	if (p->kube)
		kube_free(p->kube);
	if (p->lease_kube)
		kube_free(p->lease_kube);
	if (p->beat_kube)
		kube_free(p->beat_kube);
	pthread_mutex_destroy(&p->election.lock);
	pthread_mutex_destroy(&p->lock);
	free(p->key);
}

int agent_run(const struct agent_options *o, struct error *err)
{
	struct process p = { .agent = { .leads = leads, .yield = yield, .follow = follow } };
	struct node_host_options host = { .state_dir = o->state_dir,
					  .ns = o->ns,
					  .node = o->node,
					  .storage_pod = o->storage_pod,
					  .machine_id = o->machine_id };
	int rc;

	daemon_begin();
	p.agent.userdata = &p;
	snprintf(p.agent.ns, sizeof(p.agent.ns), "%s", o->ns);
	snprintf(p.agent.node, sizeof(p.agent.node), "%s", o->node);
	p.key = xasprintf("%s/%s", o->ns, o->node);
	pthread_mutex_init(&p.election.lock, NULL);
	pthread_mutex_init(&p.lock, NULL);
	agent_init(&p.agent);
	rc = node_host_real(&host, &p.agent.host, err);
	if (rc == 0)
		rc = connect_all(&p, o->kubeconfig, err);
	if (rc == 0)
		rc = run(&p, err);
	process_done(&p);
	return rc;
}
