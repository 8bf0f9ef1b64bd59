/* SPDX-License-Identifier: Apache-2.0 */
#include "programs.h"

#include "agent/agent.h"
#include "base/mem.h"
#include "kube/election.h"
#include "operator/operator.h"

#define LEASE_S 15
#define HEARTBEAT_S 30
#define YIELD_MS 30000

/* ---- leases: lease.c's thread as a task ------------------------------------------------------------ */

struct sim_lease {
	struct proc *proc;
	struct election election;
	char name[128], identity[80];
	bool joined, told;
	int64_t not_before_ms; /* given away until then */
	void (*gained)(struct sim_lease *l);
	void *userdata;
};

static void lease_task(void *arg)
{
	struct sim_lease *l = arg;
	struct sim *s = l->proc->sim;

	while (!l->proc->dead) {
		int64_t now = clock_mono_ms(&s->clock);
		bool held;
		int rc;

		if (now < l->not_before_ms) {
			task_sleep(s, l->not_before_ms - now);
			continue;
		}
		rc = election_step(&l->election, NULL);
		now = clock_mono_ms(&s->clock);
		held = election_held(&l->election, now);
		if (l->proc->dead)
			break;
		if (held != l->told)
			sim_trace(s, "%-12s %s %s (epoch %lld)", l->proc->name,
				  held ? "holds" : "loses", l->name, (long long)l->election.epoch);
		if (held && !l->told && l->gained)
			l->gained(l);
		l->told = held;
		task_sleep(s, election_wait_ms(&l->election, rc, now) + 1);
	}
}

static void lease_join(struct sim_lease *l, struct proc *p, const char *name, const char *identity,
		       int duration_s)
{
	l->proc = p;
	l->joined = true;
	snprintf(l->name, sizeof(l->name), "%s", name);
	snprintf(l->identity, sizeof(l->identity), "%s", identity);
	l->election = (struct election){ .kube = &p->kube,
					 .ns = SIM_NS,
					 .name = l->name,
					 .identity = l->identity,
					 .duration_s = duration_s };
	proc_task(p, lease_task, l);
}

static bool lease_is_held(const struct sim_lease *l, int64_t *ret_epoch)
{
	if (!l->joined || !election_held(&l->election, clock_mono_ms(&l->proc->sim->clock)))
		return false;
	*ret_epoch = l->election.epoch;
	return true;
}

/* ---- the operator ------------------------------------------------------------------------------------ */

struct sim_operator {
	struct operator op; /* first */
	const struct sim_options *options;
	struct model_platform platform;
	struct model_workers workers;
	struct sim_lease lease;
};

static bool operator_leads(void *userdata, int64_t *ret_epoch)
{
	struct sim_operator *o = userdata;

	if (o->options->ignores_leases && o->lease.election.epoch) {
		*ret_epoch = o->lease.election.epoch;
		return true;
	}
	return lease_is_held(&o->lease, ret_epoch);
}

static void *operator_start(struct proc *p)
{
	const struct sim_options *options = p->userdata;
	struct sim_operator *o = xcalloc(1, sizeof(*o));
	char identity[80];

	o->options = options;
	model_platform_init(&o->platform, options->model, p);
	model_workers_init(&o->workers, options->model, p);
	o->op.deployment = SIM_DEPLOYMENT;
	o->op.ns = SIM_NS;
	o->op.type = "glusterfs";
	o->op.volume_type = options->volume_type;
	o->op.overcommit = 1;
	o->op.reclaim = "Delete";
	o->op.binder = !options->cluster;
	o->op.platform = &o->platform.platform;
	o->op.workers = &o->workers.workers;
	o->op.leads = operator_leads;
	o->op.leads_userdata = o;
	operator_init(&o->op);
	snprintf(identity, sizeof(identity), "%s-%u", p->name, p->life);
	lease_join(&o->lease, p, "operator-" SIM_DEPLOYMENT, identity, LEASE_S);
	return &o->op;
}

static void operator_stopped(struct proc *p, void *app)
{
	struct sim_operator *o = app;

	election_done(&o->lease.election);
	operator_done(&o->op);
	model_workers_done(&o->workers);
	free(o);
}

void operator_proc_setup(struct proc *p, const struct sim_options *options, const char *name)
{
	struct world *w = options->model->world;

	*p = (struct proc){ .world = w,
			    .sim = &w->sim,
			    .controllers = options->cluster ? operator_controllers_bound
							    : operator_controllers,
			    .project = operator_project,
			    .mark = operator_mark,
			    .start = operator_start,
			    .stopped = operator_stopped,
			    .userdata = (void *)options,
			    .can_crash = true };
	snprintf(p->name, sizeof(p->name), "%s", name);
}

/* ---- agents -------------------------------------------------------------------------------------------- */

struct sim_agent {
	struct agent agent;
	struct sim_lease heartbeat, lead;
	struct proc *proc;
	struct model_node *node;
	char key[200];
	json_t *followed;         /* pools to when their list arrives */
	int64_t cluster_ms;       /* when that of the whole cluster does, 0: it is not watched */
};

static void nudge(struct sim_agent *a, const char *controller, const char *key, int delay_ms)
{
	if (!a->proc->dead)
		proc_enqueue(a->proc, controller, key, delay_ms);
}

static int nudge_pool(const json_t *pool, void *userdata)
{
	cleanup_free char *key = object_key(pool);

	nudge(userdata, "pool", key, 0);
	return 0;
}

static void lead_gained(struct sim_lease *l)
{
	struct sim_agent *a = l->userdata;

	nudge(a, "node", a->key, 0);
	reader_each(&a->proc->reader, &KIND_STORAGEPOOL, SIM_NS, nudge_pool, a);
}

static bool agent_leads_now(struct agent *agent, const char *deployment, const char *cluster,
			    int64_t *ret_epoch)
{
	struct sim_agent *a = agent->userdata;
	cleanup_free char *name = xasprintf("cluster-%s-%s", deployment, cluster);

	if (!a->lead.joined && !a->proc->dead) {
		a->lead.userdata = a;
		a->lead.gained = lead_gained;
		lease_join(&a->lead, a->proc, name, a->node->name, LEASE_S);
	}
	return lease_is_held(&a->lead, ret_epoch);
}

static void agent_yield(struct agent *agent)
{
	struct sim_agent *a = agent->userdata;

	a->lead.told = false;
	a->lead.not_before_ms = clock_mono_ms(&a->proc->sim->clock) + YIELD_MS;
	election_give_up(&a->lead.election);
	nudge(a, "node", a->key, YIELD_MS + 1000);
}

static void host_changed(void *userdata)
{
	struct sim_agent *a = userdata;

	nudge(a, "node", a->key, 0);
}

/* ---- what an agent watches (agent/follow.c): lists arrive some time after they were asked for ---- */

#define LIST_MAX_MS 1500

static bool listed(const struct sim_agent *a, const char *pool)
{
	const json_t *at = pool ? json_object_get(a->followed, pool) : NULL;

	return at && json_integer_value(at) <= a->proc->sim->now_ms;
}

static bool agent_sees(struct proc *p, const struct kind *kind, const json_t *object)
{
	const struct sim_agent *a = p->app ? ((struct agent *)p->app)->userdata : NULL;
	bool cluster = a && a->cluster_ms && a->cluster_ms <= p->sim->now_ms &&
		       object_label(object, "quartermaster.storage/cluster");
	const struct model_node *n = p->userdata;

	if (kind == &KIND_STORAGENODE)
		return cluster || streq(object_name(object), n->name);
	if (!a)
		return false;
	if (kind == &KIND_STORAGEPOOL && (cluster || listed(a, object_name(object))))
		return true;
	return listed(a, object_label(object, "quartermaster.storage/pool"));
}

struct listed_arg {
	struct proc *proc;
	unsigned life;
};

static void list_arrives(void *arg)
{
	struct listed_arg a = *(struct listed_arg *)arg;

	free(arg);
	if (a.proc->life != a.life || !a.proc->running || a.proc->dead)
		return;
	proc_refresh(a.proc, &KIND_STORAGENODE);
	proc_refresh(a.proc, &KIND_STORAGEPOOL);
	proc_refresh(a.proc, &KIND_PV);
}

static int64_t ask_for_list(struct sim_agent *a)
{
	struct sim *s = a->proc->sim;
	struct listed_arg *arg = xmalloc(sizeof(*arg));
	int64_t delay = 1 + sim_below(s, sim_chance(s, 1000) ? LIST_MAX_MS : 40);

	*arg = (struct listed_arg){ a->proc, a->proc->life };
	sim_after(s, delay, list_arrives, arg);
	return s->now_ms + delay;
}

static bool agent_follow(struct agent *agent, struct reconcile *r, const json_t *node,
			 const struct strv *pools)
{
	struct sim_agent *a = agent->userdata;
	cleanup_json json_t *before = a->followed;
	int64_t epoch, now = a->proc->sim->now_ms;
	bool all = true, leads = lease_is_held(&a->lead, &epoch);

	a->followed = json_object();
	for (size_t i = 0; i < pools->count; i++) {
		const json_t *known = json_object_get(before, pools->items[i]);
		int64_t at = known ? json_integer_value(known) : ask_for_list(a);

		json_object_set_new(a->followed, pools->items[i], json_integer(at));
		all &= at <= now;
	}
	if (!leads)
		a->cluster_ms = 0;
	else if (!a->cluster_ms)
		a->cluster_ms = ask_for_list(a);
	return all && leads && a->cluster_ms <= now;
}

static void *agent_start(struct proc *p)
{
	struct sim_agent *a = xcalloc(1, sizeof(*a));
	struct model_node *n = p->userdata;
	char name[100];

	a->proc = p;
	a->node = n;
	snprintf(a->agent.ns, sizeof(a->agent.ns), SIM_NS);
	snprintf(a->agent.node, sizeof(a->agent.node), "%s", n->name);
	snprintf(a->key, sizeof(a->key), SIM_NS "/%s", n->name);
	a->agent.host = model_host_new(n, p);
	a->agent.host->changed = host_changed;
	a->agent.host->changed_data = a;
	a->agent.leads = agent_leads_now;
	a->agent.yield = agent_yield;
	a->agent.follow = agent_follow;
	a->followed = json_object();
	a->agent.userdata = a;
	agent_init(&a->agent);
	snprintf(name, sizeof(name), "node-%s", n->name);
	lease_join(&a->heartbeat, p, name, n->name, HEARTBEAT_S);
	return &a->agent;
}

static void agent_stopped(struct proc *p, void *app)
{
	struct sim_agent *a = app;

	election_done(&a->heartbeat.election);
	election_done(&a->lead.election);
	agent_done(&a->agent);
	a->agent.host->ops->free(a->agent.host);
	json_decref(a->followed);
	free(a);
}

void agent_proc_setup(struct model *m, struct model_node *n, struct proc *p)
{
	static const struct controller *const controllers[] = { &AGENT_NODE, &AGENT_POOL,
								&AGENT_QUOTA, NULL };

	p->controllers = controllers;
	p->project = agent_project;
	p->visible = agent_sees;
	p->start = agent_start;
	p->stopped = agent_stopped;
	p->userdata = n;
}
