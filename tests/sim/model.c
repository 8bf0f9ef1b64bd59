/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

void machines_init(struct model *m, struct world *w)
{
	*m = (struct model){ .world = w, .next_trust = 1 };
}

void machines_done(struct model *m)
{
	for (size_t i = 0; i < MODEL_NODES; i++) {
		for (size_t k = 0; k < MODEL_DEVICES; k++)
			json_decref(m->nodes[i].devices[k].marker);
		json_decref(m->nodes[i].records);
	}
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		json_decref(m->volumes[i].options);
		json_decref(m->volumes[i].dirs);
		json_decref(m->volumes[i].archived);
	}
}

/* ---- machines ------------------------------------------------------------------------------------ */

struct model_node *model_node_add(struct model *m, const char *name, const char *address)
{
	struct model_node *n = m->nodes;

	while (*n->name)
		n++;
	*n = (struct model_node){ .model = m, .up = true, .records = json_object() };
	snprintf(n->name, sizeof(n->name), "%s", name);
	snprintf(n->address, sizeof(n->address), "%s", address);
	snprintf(n->uuid, sizeof(n->uuid), "00000000-0000-4000-8000-%012d", (int)(n - m->nodes));
	n->trust = m->next_trust++;
	n->agent.world = m->world;
	n->agent.sim = &m->world->sim;
	snprintf(n->agent.name, sizeof(n->agent.name), "agent-%.40s", name);
	return n;
}

struct model_node *model_node_named(struct model *m, const char *name)
{
	for (size_t i = 0; i < MODEL_NODES; i++) {
		if (*m->nodes[i].name && streq(m->nodes[i].name, name))
			return &m->nodes[i];
	}
	return NULL;
}

struct model_node *model_node_at(struct model *m, const char *address)
{
	for (size_t i = 0; i < MODEL_NODES; i++) {
		if (*m->nodes[i].name && streq(m->nodes[i].address, address))
			return &m->nodes[i];
	}
	return NULL;
}

struct model_device *model_device_add(struct model_node *n, const char *name, int64_t size)
{
	struct model_device *d = n->devices;

	while (d->size)
		d++;
	snprintf(d->name, sizeof(d->name), "%s", name);
	d->size = size;
	return d;
}

struct model_device *model_device_named(struct model_node *n, const char *name)
{
	for (size_t i = 0; i < MODEL_DEVICES; i++) {
		if (n->devices[i].size && streq(n->devices[i].name, name))
			return &n->devices[i];
	}
	return NULL;
}

struct model_device *model_device_of_path(struct model_node *n, const char *brick_path)
{
	for (size_t i = 0; i < MODEL_DEVICES; i++) {
		const char *at = n->devices[i].mounted;
		size_t len = strlen(at);

		if (len > 0 && strncmp(brick_path, at, len) == 0 &&
		    (!brick_path[len] || brick_path[len] == '/'))
			return &n->devices[i];
	}
	return NULL;
}

static void tell_agent(struct model_node *n)
{
	if (n->host && !n->agent.dead && n->host->host.changed)
		n->host->host.changed(n->host->host.changed_data);
}

static void stop_bricks(struct model_node *n)
{
	struct model *m = n->model;

	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		for (size_t k = 0; k < m->volumes[i].brick_count; k++) {
			if (m->volumes[i].bricks[k].node == n)
				m->volumes[i].bricks[k].running = false;
		}
	}
}

void model_node_down(struct model_node *n)
{
	if (!n->up)
		return;
	sim_trace(&n->model->world->sim, "%-12s loses power", n->name);
	n->up = n->glusterd = false;
	stop_bricks(n);
	for (size_t i = 0; i < MODEL_DEVICES; i++)
		*n->devices[i].mounted = 0;
	proc_kill(&n->agent, -1);
}

static void start_agent(void *arg)
{
	struct model_node *n = arg;

	if (!n->up || !n->agent_wanted || (n->agent.running && !n->agent.dead))
		return;
	if (n->agent.running) /* the one before is still dying */
		sim_after(&n->model->world->sim, 1, start_agent, n);
	else
		proc_start(&n->agent);
}

void model_node_up(struct model_node *n)
{
	if (n->up)
		return;
	sim_trace(&n->model->world->sim, "%-12s has power again", n->name);
	n->up = true;
	sim_after(&n->model->world->sim, 1000, start_agent, n);
}

void model_glusterd_kill(struct model_node *n)
{
	if (!n->glusterd)
		return;
	sim_trace(&n->model->world->sim, "%-12s loses its glusterd", n->name);
	n->glusterd = false;
	tell_agent(n);
}

void model_bricks_kill(struct model_node *n)
{
	sim_trace(&n->model->world->sim, "%-12s loses its bricks", n->name);
	stop_bricks(n);
	tell_agent(n);
}

/* ---- the platform ---------------------------------------------------------------------------------- */

static struct model_platform *platform_of(struct platform *p)
{
	return (struct model_platform *)p;
}

static int platform_machine(struct platform *p, const json_t *storage_node, char **ret,
			    struct error *err)
{
	struct model_node *n = model_node_named(platform_of(p)->model, object_name(storage_node));

	if (!n)
		return error_set(err, ENOENT, "no machine is meant by %s",
				 object_name(storage_node));
	*ret = xasprintf("machine-%s", n->name);
	return 0;
}

static int platform_agent_ensure(struct platform *p, const json_t *storage_node, bool may_roll,
				 struct error *err)
{
	struct model_platform *mp = platform_of(p);
	struct model_node *n = model_node_named(mp->model, object_name(storage_node));
	enum fault fault;
	int rc = call_begin(mp->proc, true, "ensure an agent", &fault, err);

	if (rc < 0)
		return rc;
	if (!n)
		return error_set(err, ENOENT, "there is no such machine");
	if (!n->agent_wanted) {
		n->agent_wanted = true;
		n->agent.can_crash = true;
		mp->model->agent_setup(mp->model, n, &n->agent);
		start_agent(n);
	}
	return call_end(mp->proc, fault, 0, err);
}

static int platform_agent_remove(struct platform *p, const json_t *storage_node, struct error *err)
{
	struct model_platform *mp = platform_of(p);
	struct model_node *n = model_node_named(mp->model, object_name(storage_node));
	enum fault fault;
	int rc = call_begin(mp->proc, true, "remove an agent", &fault, err);

	if (rc < 0)
		return rc;
	rc = 0;
	if (n && n->agent_wanted) {
		n->agent_wanted = false;
		n->glusterd = false;
		stop_bricks(n);
		proc_kill(&n->agent, -1);
		rc = 1; /* still ending */
	}
	return call_end(mp->proc, fault, rc, err);
}

void model_platform_init(struct model_platform *p, struct model *m, struct proc *proc)
{
	static const struct platform_ops ops = { .machine = platform_machine,
						 .agent_ensure = platform_agent_ensure,
						 .agent_remove = platform_agent_remove };

	*p = (struct model_platform){ .platform = { &ops }, .model = m, .proc = proc };
}

/* ---- the workers -------------------------------------------------------------------------------------- */

static struct model_workers *workers_of(struct workers *w)
{
	return (struct model_workers *)w;
}

/* The volume, if it can be reached through one of the hosts. */
static int reach(struct model_workers *w, const struct worker_pool *pool, struct model_volume **ret,
		 struct error *err)
{
	struct model_volume *v = model_volume_named(w->model, pool->name);
	bool reached = false;

	for (const char *const *h = pool->hosts; *h; h++) {
		struct model_node *n = model_node_at(w->model, *h);

		reached |= v && n && n->up && n->glusterd && n->trust == v->trust;
	}
	if (!reached || !model_volume_serves(v))
		return error_set(err, EAGAIN, "volume %s does not answer", pool->name);
	model_heal(v);
	*ret = v;
	return 0;
}

static void changed_without_some(struct model_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++) {
		if (!model_brick_online(&v->bricks[i]))
			v->bricks[i].behind++;
	}
}

static int workers_create(struct workers *w, const struct worker_pool *pool, const char *name,
			  int64_t size, struct error *err)
{
	struct model_workers *mw = workers_of(w);
	struct model_volume *v;
	enum fault fault;
	char what[100];
	int rc;

	snprintf(what, sizeof(what), "make directory %s", name);
	rc = call_begin(mw->proc, true, what, &fault, err);
	if (rc < 0)
		return rc;
	rc = reach(mw, pool, &v, err);
	if (rc == 0) {
		sim_trace(mw->proc->sim, "%-12s makes %s in %s", mw->proc->name, name, v->name);
		json_object_set_new(v->dirs, name, json_integer(size));
		changed_without_some(v);
	}
	return call_end(mw->proc, fault, rc, err);
}

static int take_out(struct workers *w, const struct worker_pool *pool, const char *name, bool keep,
		    struct error *err)
{
	struct model_workers *mw = workers_of(w);
	struct model_volume *v;
	enum fault fault;
	char what[100];
	int rc;

	snprintf(what, sizeof(what), "remove directory %s", name);
	rc = call_begin(mw->proc, true, what, &fault, err);
	if (rc < 0)
		return rc;
	rc = reach(mw, pool, &v, err);
	if (rc == 0 && json_object_get(v->dirs, name)) {
		sim_trace(mw->proc->sim, "%-12s removes %s from %s", mw->proc->name, name, v->name);
		if (keep)
			json_object_set(v->archived, name, json_object_get(v->dirs, name));
		json_object_del(v->dirs, name);
		changed_without_some(v);
	}
	return call_end(mw->proc, fault, rc, err);
}

static int workers_remove(struct workers *w, const struct worker_pool *pool, const char *name,
			  struct error *err)
{
	return take_out(w, pool, name, false, err);
}

static int workers_archive(struct workers *w, const struct worker_pool *pool, const char *name,
			   struct error *err)
{
	return take_out(w, pool, name, true, err);
}

static int64_t volume_capacity(const struct model_volume *v)
{
	int64_t smallest = 0;

	for (size_t i = 0; i < v->brick_count; i++) {
		struct model_device *d = model_device_of_path(v->bricks[i].node, v->bricks[i].path);

		if (d && (!smallest || d->size < smallest))
			smallest = d->size;
	}
	return smallest;
}

static int workers_stat(struct workers *w, const struct worker_pool *pool, json_t **ret,
			struct error *err)
{
	struct model_workers *mw = workers_of(w);
	struct model_volume *v;
	enum fault fault;
	int rc = call_begin(mw->proc, false, "stat", &fault, err);

	if (rc < 0)
		return rc;
	rc = reach(mw, pool, &v, err);
	rc = call_end(mw->proc, fault, rc, err);
	if (rc == 0)
		*ret = json_pack("{sI sI sI}", "capacityBytes", (json_int_t)volume_capacity(v),
				 "usedBytes", (json_int_t)0, "freeBytes",
				 (json_int_t)volume_capacity(v));
	return rc;
}

static int workers_list(struct workers *w, const struct worker_pool *pool, json_t **ret,
			struct error *err)
{
	struct model_workers *mw = workers_of(w);
	cleanup_json json_t *list = json_array();
	struct model_volume *v;
	enum fault fault;
	const char *name;
	json_t *size;
	int rc = call_begin(mw->proc, false, "list", &fault, err);

	if (rc < 0)
		return rc;
	rc = reach(mw, pool, &v, err);
	if (rc == 0) {
		json_object_foreach (v->dirs, name, size)
			json_array_append_new(list,
					      json_pack("{ss sO}", "name", name, "size", size));
	}
	rc = call_end(mw->proc, fault, rc, err);
	if (rc == 0)
		*ret = TAKE_PTR(list);
	return rc;
}

static void workers_free(struct workers *w)
{
}

void model_workers_init(struct model_workers *w, struct model *m, struct proc *proc)
{
	static const struct worker_ops ops = { workers_create, workers_remove, workers_archive,
					       workers_stat,   workers_list,   workers_free };

	*w = (struct model_workers){ .workers = { &ops }, .model = m, .proc = proc };
}
