/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

void machines_init(struct model *m, struct world *w)
{
	*m = (struct model){ .world = w, .next_trust = 1, .heal_ms = 333 };
}

void machines_done(struct model *m)
{
	for (size_t i = 0; i < MODEL_NODES; i++) {
		for (size_t k = 0; k < MODEL_DEVICES; k++)
			model_device_clear(&m->nodes[i].devices[k]);
		json_decref(m->nodes[i].records);
		json_decref(m->nodes[i].root_dirs);
		json_decref(m->nodes[i].dead_mounts);
		json_decref(m->nodes[i].wipe);
	}
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		json_decref(m->volumes[i].options);
		json_decref(m->volumes[i].dirs);
		json_decref(m->volumes[i].infos);
		json_decref(m->volumes[i].copies);
		json_decref(m->volumes[i].archived);
	}
}

/* ---- machines ------------------------------------------------------------------------------------ */

struct model_node *model_node_add(struct model *m, const char *name, const char *address)
{
	struct model_node *n = m->nodes;

	while (*n->name)
		n++;
	*n = (struct model_node){ .model = m,
				  .up = true,
				  .records = json_object(),
				  .root_dirs = json_object(),
				  .dead_mounts = json_object(),
				  .wipe = json_object() };
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
	d->serial = ++n->model->next_serial;
	return d;
}

struct model_device *model_device_named(struct model_node *n, const char *name)
{
	for (size_t i = 0; i < MODEL_DEVICES; i++) {
		if (n->devices[i].size && !n->devices[i].away && streq(n->devices[i].name, name))
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

int model_device_slot(const struct model_device *d)
{
	int slot = d->name[strlen("/dev/sd")] - 'b';

	return slot < MODEL_DEVICES ? slot : -1;
}

struct model_device *model_device_at_slot(struct model_node *n, int slot)
{
	char name[32];

	snprintf(name, sizeof(name), "/dev/sd%c", 'b' + slot);
	return model_device_named(n, name);
}

bool model_own_root(const struct model_device *d, const char *root)
{
	const char *id = strrchr(d->mounted, '/');
	cleanup_free char *below =
		xasprintf("%s/.quartermaster-%s", d->mounted, id ? id + 1 : "");

	return streq(root, d->mounted) || streq(root, below);
}

bool model_is_dead(const struct model_node *n, const char *path)
{
	const char *at;
	json_t *yes;

	json_object_foreach (n->dead_mounts, at, yes) {
		size_t len = strlen(at);

		if (strncmp(path, at, len) == 0 && (!path[len] || path[len] == '/'))
			return true;
	}
	return false;
}

const char *model_id_of_root(const char *root)
{
	const char *last = strrchr(root, '/') + 1;

	return str_has_prefix(last, ".quartermaster-") ? last + strlen(".quartermaster-") : last;
}

json_t *model_marker(struct model_node *n, const char *root)
{
	struct model_device *d = model_device_of_path(n, root);

	return !d ? NULL : model_own_root(d, root) ? d->marker : json_object_get(d->trees, root);
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
	json_object_clear(n->dead_mounts);
	n->boots++;
	proc_kill(&n->agent, -1);
}

/* ---- disks ----------------------------------------------------------------------------------------- */

void model_device_clear(struct model_device *d)
{
	json_decref(d->marker);
	json_decref(d->trees);
	json_decref(d->volumes);
	d->marker = d->trees = d->volumes = NULL;
}

void model_disk_off(struct model_node *n, struct model_device *d)
{
	struct model *m = n->model;

	sim_trace(&m->world->sim, "%-12s loses its disk %d (%s)", n->name, d->serial, d->name);
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		for (size_t k = 0; k < m->volumes[i].brick_count; k++) {
			struct model_brick *b = &m->volumes[i].bricks[k];

			if (b->node == n && model_device_of_path(n, b->path) == d)
				b->running = false;
		}
	}
	if (*d->mounted)
		json_object_set_new(n->dead_mounts, d->mounted, json_true());
	*d->mounted = 0;
	d->away = true;
	tell_agent(n);
}

void model_disk_on(struct model_node *n, struct model_device *d, const char *name)
{
	sim_trace(&n->model->world->sim, "%-12s has its disk %d back as %s", n->name, d->serial,
		  name);
	d->away = false;
	if (name != d->name)
		snprintf(d->name, sizeof(d->name), "%s", name);
}

void model_disk_exchange(struct model_node *n, struct model_device *d)
{
	model_device_clear(d);
	*d->signature = *d->uuid = 0;
	d->serial = ++n->model->next_serial;
	d->sick_until_ms = 0;
}

void model_records_lost(struct model_node *n)
{
	sim_trace(&n->model->world->sim, "%-12s loses its agent's records", n->name);
	n->forgot = true;
	json_object_clear(n->records);
	json_object_clear(n->root_dirs);
}

/* ---- power ----------------------------------------------------------------------------------------- */

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
	int rc = world_call_begin(mp->proc, true, "ensure an agent", &fault, err);

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
	int rc = world_call_begin(mp->proc, true, "remove an agent", &fault, err);

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
	struct model_volume *v = NULL;

	for (const char *const *h = pool->hosts; *h && !v; h++) {
		struct model_node *n = model_node_at(w->model, *h);

		if (n && n->up && n->glusterd)
			v = model_volume_in(w->model, n->trust, pool->name);
	}
	if (v)
		model_heal(v);
	if (!v || !model_volume_serves(v))
		return error_set(err, EAGAIN, "volume %s does not answer", pool->name);
	*ret = v;
	return 0;
}

static void volume_key(const struct worker_volume *v, char key[static 200])
{
	if (v->kind == VOLUME_DIRECTORY)
		snprintf(key, 200, "%s", v->name);
	else
		snprintf(key, 200, "%c.%s", (char)v->kind, v->name);
}

/* Begins a call that reaches the pool; in the end call_end is told what came of it. */
static int enter(struct workers *w, const struct worker_pool *pool, bool writes, const char *op,
		 const char *name, struct model_volume **ret, enum fault *fault, struct error *err)
{
	struct model_workers *mw = workers_of(w);
	char what[200];
	int rc;

	snprintf(what, sizeof(what), "%s%s%s", op, *name ? " " : "", name);
	rc = world_call_begin(mw->proc, writes, what, fault, err);
	if (rc < 0)
		return rc;
	rc = reach(mw, pool, ret, err);
	if (rc < 0)
		return call_end(mw->proc, *fault, rc, err);
	if (writes)
		sim_trace(mw->proc->sim, "%-12s %s in %s", mw->proc->name, what, (*ret)->name);
	return 0;
}

static int leave(struct workers *w, enum fault fault, int rc, struct error *err)
{
	return call_end(workers_of(w)->proc, fault, rc, err);
}

/*
 * Between two steps of a call: others go on meanwhile, the worker may die there, and that of an operator which dies
 * comes so far or not.
 */
static int between(struct workers *w, const struct worker_pool *pool, struct model_volume **v,
		   struct error *err)
{
	struct model_workers *mw = workers_of(w);
	struct sim *s = mw->proc->sim;

	task_sleep(s, sim_below(s, 3));
	if (sim_fault(s, mw->model->world->rates.call / 4) ||
	    (mw->proc->dead && sim_chance(s, 5000)))
		return error_set(err, ENOTCONN, "the worker died");
	return reach(mw, pool, v, err);
}

static void set_size(struct model_volume *v, json_t *of, const char *key, int64_t size)
{
	if (json_integer_value(json_object_get(of, key)) < size || !json_object_get(of, key))
		json_object_set_new(of, key, json_integer(size));
	model_volume_written(v);
}

static void grow(struct model_volume *v, const char *key, int64_t size)
{
	set_size(v, v->dirs, key, size);
	set_size(v, v->infos, key, size);
}

static int workers_create(struct workers *w, const struct worker_pool *pool,
			  const struct worker_volume *volume, int64_t size, struct error *err)
{
	struct model_volume *v;
	enum fault fault;
	char key[200];
	int rc = enter(w, pool, true, "make directory", volume->name, &v, &fault, err);

	if (rc < 0)
		return rc;
	volume_key(volume, key);
	if (json_is_false(jget(v->copies, key, "ready")))
		rc = error_set(err, EEXIST, "volume %s is in the making", volume->name);
	else
		grow(v, key, size);
	return leave(w, fault, rc, err);
}

/* The first half: the directory, without its info file. */
static int workers_make(struct workers *w, const struct worker_pool *pool,
			const struct worker_volume *volume, struct error *err)
{
	struct model_workers *mw = workers_of(w);
	struct model_volume *v;
	enum fault fault;
	int rc = enter(w, pool, true, "make directory", volume->name, &v, &fault, err);

	if (rc < 0)
		return rc;
	set_size(v, v->dirs, volume->name, 0);
	json_object_set_new(mw->made, volume->name, json_true());
	return leave(w, fault, between(w, pool, &v, err), err); /* there, but perhaps not synced */
}

/* The info file is there, torn, before anything is in it. */
static int complete(struct workers *w, const struct worker_pool *pool, struct model_volume *v,
		    const char *name, int64_t size, struct error *err)
{
	int rc;

	if (!json_object_get(v->dirs, name))
		return error_set(err, ENOENT, "there is no directory %s", name);
	if (!json_object_get(v->infos, name)) {
		json_object_set_new(v->infos, name, json_null());
		model_volume_written(v);
	}
	rc = between(w, pool, &v, err);
	if (rc == 0)
		grow(v, name, size);
	return rc;
}

static int workers_complete(struct workers *w, const struct worker_pool *pool,
			    const struct worker_volume *volume, int64_t size, struct error *err)
{
	struct model_workers *mw = workers_of(w);
	struct model_volume *v;
	enum fault fault;
	int rc;

	if (mutate_complete(mw->model->world->mutant, mw->model->world->late, volume->name,
			    json_object_get(mw->made, volume->name)))
		return 0;
	rc = enter(w, pool, true, "complete", volume->name, &v, &fault, err);
	if (rc < 0)
		return rc;
	rc = complete(w, pool, v, volume->name, size, err);
	return leave(w, fault, rc, err);
}

static int workers_resize(struct workers *w, const struct worker_pool *pool,
			  const struct worker_volume *volume, int64_t size, struct error *err)
{
	struct model_volume *v;
	enum fault fault;
	char key[200];
	int rc = enter(w, pool, true, "resize", volume->name, &v, &fault, err);

	if (rc < 0)
		return rc;
	volume_key(volume, key);
	if (json_object_get(v->dirs, key))
		grow(v, key, size);
	else
		rc = error_set(err, ENOENT, "there is no volume %s", volume->name);
	return leave(w, fault, rc, err);
}

/* What a claim has stays. */
static void check_unused(struct model *m, const struct worker_volume *volume)
{
	cleanup_json json_t *pv = NULL, *claim = NULL;

	if (volume->kind == VOLUME_SNAPSHOT ||
	    kube_get(m->world->late, &KIND_PV, NULL, volume->name, &pv, NULL) < 0 ||
	    kube_get(m->world->late, &KIND_PVC, jstr(pv, "spec", "claimRef", "namespace"),
		     jstr(pv, "spec", "claimRef", "name"), &claim, NULL) < 0)
		return;
	if (streq(object_uid(claim), jstr(pv, "spec", "claimRef", "uid")))
		sim_fail(&m->world->sim, "volume %s is removed while claim %s has it", volume->name,
			 object_name(claim));
}

/* First what is in it, then its info file: a call that ends in between is made again. */
static int take_out_of(struct workers *w, const struct worker_pool *pool, struct model_volume *v,
		       const char *key, bool keep, struct error *err)
{
	int rc = 0;

	if (json_object_get(v->dirs, key)) {
		if (keep)
			json_object_set(v->archived, key, json_object_get(v->dirs, key));
		json_object_del(v->dirs, key);
		model_volume_written(v);
		rc = between(w, pool, &v, err);
	}
	if (rc == 0 && json_object_get(v->infos, key)) {
		json_object_del(v->infos, key);
		model_volume_written(v);
	}
	return rc;
}

static int take_out(struct workers *w, const struct worker_pool *pool,
		    const struct worker_volume *volume, bool keep, struct error *err)
{
	struct model_volume *v;
	enum fault fault;
	char key[200];
	int rc = enter(w, pool, true, "remove directory", volume->name, &v, &fault, err);

	if (rc < 0)
		return rc;
	volume_key(volume, key);
	json_object_del(v->copies, key);
	if (json_object_get(v->dirs, key))
		check_unused(workers_of(w)->model, volume);
	rc = take_out_of(w, pool, v, key, keep, err);
	return leave(w, fault, rc, err);
}

static int workers_remove(struct workers *w, const struct worker_pool *pool,
			  const struct worker_volume *volume, struct error *err)
{
	return take_out(w, pool, volume, false, err);
}

static int workers_archive(struct workers *w, const struct worker_pool *pool,
			   const struct worker_volume *volume, struct error *err)
{
	return take_out(w, pool, volume, true, err);
}

static json_t *described(const struct model_volume *v, const char *key)
{
	bool lettered = key[1] == '.';
	char kind[2] = { lettered ? key[0] : 'd', 0 };
	json_t *o = json_pack("{ss ss sO sb}", "name", lettered ? key + 2 : key, "kind", kind,
			      "size", json_object_get(v->infos, key), "ready",
			      json_is_integer(json_object_get(v->infos, key)) &&
				      json_object_get(v->dirs, key));

	json_object_update(o, json_object_get(v->copies, key));
	return o;
}

static int workers_find(struct workers *w, const struct worker_pool *pool,
			const struct worker_volume *volume, json_t **ret, struct error *err)
{
	cleanup_json json_t *found = NULL;
	struct model_volume *v;
	enum fault fault;
	char key[200];
	int rc = enter(w, pool, false, "find", volume->name, &v, &fault, err);

	if (rc < 0)
		return rc;
	volume_key(volume, key);
	if (json_object_get(v->infos, key))
		found = described(v, key);
	else
		rc = error_set(err, ENOENT, "there is no volume %s", volume->name);
	rc = leave(w, fault, rc, err);
	if (rc == 0)
		*ret = TAKE_PTR(found);
	return rc;
}

/* The first call begins it, the next finds it complete. */
static int copy(struct model_volume *v, const struct worker_volume *volume, int64_t size,
		const struct worker_volume *from, struct error *err)
{
	char key[200], source[200], kind[2] = { (char)from->kind, 0 };
	const json_t *there;

	volume_key(volume, key);
	volume_key(from, source);
	there = jget(v->copies, key);
	if (there) {
		if (!streq(jstr(there, "source"), from->name) ||
		    !streq(jstr(there, "sourceKind"), kind))
			return error_set(err, EEXIST, "%s is a copy of another", volume->name);
		jset(v->copies, json_true(), key, "ready");
		return 0;
	}
	if (!json_object_get(v->dirs, source) || json_is_false(jget(v->copies, source, "ready")))
		return error_set(err, ENOENT, "there is no %s to copy", from->name);
	if (json_object_get(v->dirs, key))
		return error_set(err, EEXIST, "volume %s is there already", volume->name);
	grow(v, key, size ? size : json_integer_value(json_object_get(v->dirs, source)));
	jset(v->copies,
	     json_pack("{ss ss sb}", "source", from->name, "sourceKind", kind, "ready", 0), key);
	return 1;
}

static int workers_copy(struct workers *w, const struct worker_pool *pool,
			const struct worker_volume *volume, int64_t size,
			const struct worker_volume *from, struct error *err)
{
	struct model_volume *v;
	enum fault fault;
	int rc = enter(w, pool, true, "copy", volume->name, &v, &fault, err);

	return rc < 0 ? rc : leave(w, fault, copy(v, volume, size, from, err), err);
}

static json_t *snapshot_described(const struct model_volume *v, const char *key)
{
	json_t *o = described(v, key);

	json_object_set(o, "kind", json_object_get(o, "sourceKind"));
	json_object_set_new(o, "created", json_string("2026-01-01T00:00:00Z"));
	return o;
}

static int workers_snapshot(struct workers *w, const struct worker_pool *pool,
			    const struct worker_volume *from,
			    const struct worker_volume *snapshot, json_t **ret, struct error *err)
{
	const struct worker_volume volume = { VOLUME_SNAPSHOT, snapshot->name };
	cleanup_json json_t *found = NULL;
	struct model_volume *v;
	enum fault fault;
	char key[200];
	int rc = enter(w, pool, true, "snapshot", snapshot->name, &v, &fault, err);

	if (rc < 0)
		return rc;
	rc = copy(v, &volume, 0, from, err);
	volume_key(&volume, key);
	if (rc >= 0)
		found = snapshot_described(v, key);
	rc = leave(w, fault, rc, err);
	if (rc >= 0)
		*ret = TAKE_PTR(found);
	return rc;
}

static int workers_snapshot_remove(struct workers *w, const struct worker_pool *pool,
				   const struct worker_volume *snapshot, struct error *err)
{
	return take_out(w, pool, &(struct worker_volume){ VOLUME_SNAPSHOT, snapshot->name }, false,
			err);
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
	struct model_volume *v;
	enum fault fault;
	int rc = enter(w, pool, false, "stat", "", &v, &fault, err);

	if (rc < 0)
		return rc;
	rc = leave(w, fault, rc, err);
	if (rc == 0)
		*ret = json_pack("{sI sI sI}", "capacityBytes", (json_int_t)volume_capacity(v),
				 "usedBytes", (json_int_t)0, "freeBytes",
				 (json_int_t)volume_capacity(v));
	return rc;
}

static int list(struct workers *w, const struct worker_pool *pool, bool snapshots, json_t **ret,
		struct error *err)
{
	cleanup_json json_t *found = json_array();
	struct model_volume *v;
	enum fault fault;
	const char *key;
	json_t *size;
	int rc = enter(w, pool, false, snapshots ? "snapshots" : "list", "", &v, &fault, err);

	if (rc < 0)
		return rc;
	json_object_foreach (v->infos, key, size) {
		if (str_has_prefix(key, "s.") == snapshots)
			json_array_append_new(found, snapshots ? snapshot_described(v, key)
							       : described(v, key));
	}
	json_object_foreach (v->archived, key, size)
		if (!snapshots)
			json_array_append_new(found, json_pack("{ss}", "name", key));
	rc = leave(w, fault, rc, err);
	if (rc == 0)
		*ret = TAKE_PTR(found);
	return rc;
}

static int workers_list(struct workers *w, const struct worker_pool *pool, json_t **ret,
			struct error *err)
{
	return list(w, pool, false, ret, err);
}

static int workers_snapshots(struct workers *w, const struct worker_pool *pool, json_t **ret,
			     struct error *err)
{
	return list(w, pool, true, ret, err);
}

static void workers_free(struct workers *w)
{
}

void model_workers_init(struct model_workers *w, struct model *m, struct proc *proc)
{
	static const struct worker_ops ops = { .create = workers_create,
					       .make = workers_make,
					       .complete = workers_complete,
					       .resize = workers_resize,
					       .remove = workers_remove,
					       .archive = workers_archive,
					       .find = workers_find,
					       .copy = workers_copy,
					       .snapshot = workers_snapshot,
					       .snapshot_remove = workers_snapshot_remove,
					       .snapshots = workers_snapshots,
					       .stat = workers_stat,
					       .list = workers_list,
					       .free = workers_free };

	*w = (struct model_workers){
		.workers = { &ops }, .model = m, .proc = proc, .made = json_object()
	};
}

void model_workers_done(struct model_workers *w)
{
	json_decref(w->made);
}
