/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include "base/mem.h"
#include "base/quantity.h"

#include <stdarg.h>

/* Collects the first thing that is not as it should be. */
struct check {
	struct scenario *s;
	struct kube *kube;
	char *problem;
	size_t size;
	json_t *claims, *volumes, *pools, *nodes; /* as the API has them */
};

__attribute__((format(printf, 2, 3))) static bool wrong(struct check *c, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(c->problem, c->size, format, args);
	va_end(args);
	return false;
}

static const json_t *named(const json_t *list, const char *name)
{
	size_t i;
	const json_t *o;

	json_array_foreach (list, i, o) {
		if (streq(object_name(o), name))
			return o;
	}
	return NULL;
}

/* ---- claims --------------------------------------------------------------------------------------------- */

/* The pool that holds a directory, and how many do. */
static const struct model_volume *pool_of(struct check *c, const char *volume, int *ret_count)
{
	const struct model_volume *found = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		const struct model_volume *v = &c->s->model.volumes[i];

		if (*v->name && json_object_get(v->dirs, volume)) {
			found = v;
			++*ret_count;
		}
	}
	return found;
}

static bool check_claim(struct check *c, const struct sim_claim *claim)
{
	const json_t *o = named(c->claims, claim->name), *pv;
	const char *volume = jstr(o, "spec", "volumeName");
	const struct model_volume *v;
	int count;

	if (!o)
		return wrong(c, "claim %s is lost", claim->name);
	if (!streq(jstr(o, "status", "phase"), "Bound") || !volume)
		return wrong(c, "claim %s is not Bound: %s", claim->name,
			     object_annotation(o, "quartermaster.storage/waiting")
				     ? object_annotation(o, "quartermaster.storage/waiting")
				     : "no reason is given");
	pv = named(c->volumes, volume);
	if (!pv || !streq(jstr(pv, "spec", "claimRef", "uid"), object_uid(o)))
		return wrong(c, "claim %s names %s, which is not its volume", claim->name, volume);
	if (!streq(jstr(pv, "status", "phase"), "Bound"))
		return wrong(c, "volume %s is not Bound", volume);
	v = pool_of(c, volume, &count);
	if (count != 1)
		return wrong(c, "volume %s has %d directories", volume, count);
	if (!streq(object_label(pv, "quartermaster.storage/pool"), v->name))
		return wrong(c, "volume %s is not in the pool that it names", volume);
	if (json_integer_value(json_object_get(v->dirs, volume)) != claim->size)
		return wrong(c, "volume %s has not the size of its claim", volume);
	if (json_array_size(jget(o, "metadata", "finalizers")) > 1)
		return wrong(c, "claim %s still holds the provisioner's finalizer", claim->name);
	return true;
}

static bool check_claims(struct check *c)
{
	size_t wanted = 0, dirs = 0;

	for (int i = 0; i < SIM_CLAIMS; i++) {
		const struct sim_claim *claim = &c->s->claims[i];

		wanted += claim->wanted;
		if (claim->wanted && !check_claim(c, claim))
			return false;
		if (!claim->wanted && named(c->claims, claim->name))
			return wrong(c, "claim %s is deleted, but there", claim->name);
	}
	if (json_array_size(c->volumes) != wanted)
		return wrong(c, "there are %d volumes for %d claims",
			     (int)json_array_size(c->volumes), (int)wanted);
	for (size_t i = 0; i < MODEL_VOLUMES; i++)
		dirs += json_object_size(c->s->model.volumes[i].dirs);
	if (dirs != wanted)
		return wrong(c, "there are %d directories for %d claims", (int)dirs, (int)wanted);
	return true;
}

/* ---- pools ---------------------------------------------------------------------------------------------- */

static bool check_volume(struct check *c, struct model_volume *v)
{
	const json_t *pool = named(c->pools, v->name);
	size_t named_bricks = json_array_size(jget(pool, "spec", "bricks"));

	if (!pool)
		return wrong(c, "volume %s belongs to no pool", v->name);
	model_heal(v);
	if (v->state != VOLUME_STARTED)
		return wrong(c, "volume %s is not started", v->name);
	for (size_t i = 0; i < v->brick_count; i++) {
		if (!model_brick_online(&v->bricks[i]))
			return wrong(c, "brick %s of %s is offline", v->bricks[i].path, v->name);
		if (!model_brick_whole(&v->bricks[i]))
			return wrong(c, "brick %s of %s is not healed", v->bricks[i].path, v->name);
	}
	if (v->brick_count != named_bricks || (int)v->brick_count != c->s->bricks)
		return wrong(c, "volume %s has %d bricks, its pool names %d", v->name,
			     (int)v->brick_count, (int)named_bricks);
	if (!streq(jstr(pool, "status", "phase"), "Online"))
		return wrong(c, "pool %s is %s", v->name, jstr(pool, "status", "phase"));
	return true;
}

static bool check_pools(struct check *c)
{
	size_t i;
	const json_t *pool;

	for (i = 0; i < MODEL_VOLUMES; i++) {
		if (*c->s->model.volumes[i].name && !check_volume(c, &c->s->model.volumes[i]))
			return false;
	}
	json_array_foreach (c->pools, i, pool) {
		if (!model_volume_named(&c->s->model, object_name(pool)))
			return wrong(c, "pool %s has no volume: %s", object_name(pool),
				     jstr(pool, "status", "message"));
	}
	return true;
}

/* ---- nodes ---------------------------------------------------------------------------------------------- */

static bool in_volume(const struct scenario *s, const struct model_node *n,
		      const struct model_device *d)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		const struct model_volume *v = &s->model.volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++) {
			if (v->bricks[k].node == n &&
			    (!d ||
			     model_device_of_path((struct model_node *)n, v->bricks[k].path) == d))
				return true;
		}
	}
	return false;
}

/* A wanted device that no volume has, on a node that has no brick of this one. */
static bool has_spare(const struct scenario *s, const struct model_volume *v)
{
	for (int i = 0; i < s->node_count; i++) {
		const struct model_node *n = &s->model.nodes[i];
		bool member = false;

		for (size_t k = 0; k < v->brick_count; k++)
			member |= v->bricks[k].node == n;
		for (int d = 0; s->nodes[i].wanted && !member && d < MODEL_DEVICES; d++) {
			if (s->nodes[i].devices[d] && !in_volume(s, n, &n->devices[d]))
				return true;
		}
	}
	return false;
}

static bool device_wanted(const struct scenario *s, const struct model_brick *b)
{
	const struct model *m = &s->model;
	const struct sim_node *n = &s->nodes[b->node - m->nodes];
	const struct model_device *d = model_device_of_path(b->node, b->path);

	return n->wanted && d && n->devices[d - b->node->devices];
}

/* What was taken out of a spec is emptied, if there is a place to go to; it is not held for ever. */
static bool check_emptied(struct check *c)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		const struct model_volume *v = &c->s->model.volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++) {
			if (!device_wanted(c->s, &v->bricks[k]) && has_spare(c->s, v))
				return wrong(c, "%s of %s should be emptied, and there is room",
					     v->bricks[k].path, v->name);
		}
	}
	return true;
}

static bool check_device(struct check *c, int i, int d)
{
	const struct model_node *m = &c->s->model.nodes[i];
	const struct model_device *device = &m->devices[d];

	if (!device->size || in_volume(c->s, m, device))
		return true;
	if (!c->s->nodes[i].wanted && m->agent_wanted)
		return true; /* its node is not gone yet; that is looked at elsewhere */
	if (!c->s->nodes[i].devices[d] && c->s->nodes[i].wanted && *device->signature)
		return wrong(c, "%s %s was taken out of the spec and is not released", m->name,
			     device->name);
	return true;
}

static bool check_nodes(struct check *c)
{
	for (int i = 0; i < c->s->node_count; i++) {
		const struct sim_node *n = &c->s->nodes[i];
		const struct model_node *m = &c->s->model.nodes[i];
		const json_t *o = named(c->nodes, n->name);

		if (n->wanted && !o)
			return wrong(c, "StorageNode %s is lost", n->name);
		if (n->wanted && !streq(jstr(o, "status", "phase"), "Ready"))
			return wrong(c, "StorageNode %s is %s", n->name,
				     jstr(o, "status", "phase") ? jstr(o, "status", "phase") : "?");
		if (!n->wanted && o && !in_volume(c->s, m, NULL))
			return wrong(c, "StorageNode %s is deleted and empty, but there", n->name);
		if (!o && m->agent_wanted)
			return wrong(c, "the agent of %s still runs", n->name);
		for (int d = 0; d < MODEL_DEVICES; d++) {
			if (!check_device(c, i, d))
				return false;
		}
	}
	return check_emptied(c);
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static bool check_status(struct check *c)
{
	cleanup_json json_t *status = NULL;
	cleanup_json json_t *class = NULL;

	kube_get(c->kube, &KIND_STORAGESTATUS, SIM_NS, SIM_DEPLOYMENT, &status, NULL);
	if (!streq(jstr(status, "spec", "status"), "ONLINE"))
		return wrong(c, "StorageStatus is %s",
			     jstr(status, "spec", "status") ? jstr(status, "spec", "status")
							    : "not there");
	kube_get(c->kube, &KIND_STORAGECLASS, NULL, SIM_DEPLOYMENT, &class, NULL);
	if (!class)
		return wrong(c, "there is no StorageClass");
	return true;
}

bool scenario_settled(struct scenario *s, char *problem, size_t size)
{
	struct check c = { .s = s, .kube = s->world.late, .problem = problem, .size = size };
	bool good;

	*problem = 0;
	kube_list(c.kube, &KIND_PVC, SIM_NS, NULL, &c.claims, NULL, NULL);
	kube_list(c.kube, &KIND_PV, NULL, NULL, &c.volumes, NULL, NULL);
	kube_list(c.kube, &KIND_STORAGEPOOL, SIM_NS, NULL, &c.pools, NULL, NULL);
	kube_list(c.kube, &KIND_STORAGENODE, SIM_NS, NULL, &c.nodes, NULL, NULL);
	good = check_status(&c) && check_pools(&c) && check_nodes(&c) && check_claims(&c);
	json_decref(c.claims);
	json_decref(c.volumes);
	json_decref(c.pools);
	json_decref(c.nodes);
	return good;
}

/* ---- at any moment ----------------------------------------------------------------------------------------- */

/* What a pool names, given what it named before: what came by a write that was late stays so. */
static json_t *sources(const struct scenario *s, const json_t *pool)
{
	const json_t *before = json_object_get(s->pool_sources, object_name(pool)), *b;
	json_t *list = json_object();
	size_t i;

	json_array_foreach (jget(pool, "spec", "bricks"), i, b) {
		const char *device = jstr(b, "device");
		cleanup_free char *source =
			xasprintf("%s %s", jstr(b, "node"), device ? device : jstr(b, "directory"));
		const json_t *known = json_object_get(before, source);

		json_object_set_new(list, source,
				    json_pack("{s:b, s:b}", "late",
					      known ? jbool(known, "late") : s->world.happens_late,
					      "prepared", jbool(b, "prepared")));
	}
	return list;
}

/*
 * No device is ever given to two pools; called at each write of a pool. The API can carry out a write long after
 * its sender has given it up and planned anew, and to create has no condition: so one of the two may name the device
 * for a while, but it does not get it.
 */
static void pool_event(const struct kube_event *event, void *userdata)
{
	struct scenario *s = userdata;
	const char *name = object_name(event->object), *other, *source;
	json_t *mine, *theirs, *named;

	if (event->type == KUBE_DELETED)
		json_object_del(s->pool_sources, name);
	if (event->type != KUBE_ADDED && event->type != KUBE_MODIFIED)
		return;
	mine = sources(s, event->object);
	json_object_set_new(s->pool_sources, name, mine);
	json_object_foreach (s->pool_sources, other, theirs) {
		json_object_foreach (mine, source, named) {
			const json_t *rival =
				streq(other, name) ? NULL : json_object_get(theirs, source);

			if (!rival || ((jbool(named, "late") || jbool(rival, "late")) &&
				       !(jbool(named, "prepared") && jbool(rival, "prepared"))))
				continue;
			sim_fail(&s->world.sim, "%s is given to both %s and %s", source, name,
				 other);
		}
	}
}

void scenario_watch_pools(struct scenario *s)
{
	s->pool_sources = json_object();
	store_watch_start(s->world.store, &(struct store_query){ .kind = &KIND_STORAGEPOOL }, "0",
			  pool_event, s, &s->pool_watch, NULL);
}
