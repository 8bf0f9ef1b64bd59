/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"
#include "hardware.h"

#include "base/mem.h"
#include "base/str.h"
#include "operator/ledger.h"
#include "operator/op.h"

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
	const struct model_volume *found = NULL; /* volume: as the pool's dirs name it */

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

/* What its PersistentVolume says is so: one directory, in that pool, and an info file with that size. */
static bool check_data(struct check *c, const json_t *pv)
{
	const char *name = object_name(pv);
	bool whole = streq(jstr(pv, "spec", "storageClassName"), "whole");
	const struct model_volume *v;
	char key[200];
	int count;

	snprintf(key, sizeof(key), "%s%s", whole ? "w." : "", name);
	v = pool_of(c, key, &count);
	if (count != 1)
		return wrong(c, "volume %s has %d directories", name, count);
	if (!streq(object_label(pv, QM_LABEL_POOL), v->name))
		return wrong(c, "volume %s is not in the pool that it names", name);
	if (!json_object_get(v->infos, key))
		return wrong(c, "volume %s has no info file", name);
	if (json_integer_value(json_object_get(v->infos, key)) != pv_bytes(pv))
		return wrong(c, "the info file of volume %s has not its size", name);
	if (whole && (!model_volume_named(&c->s->model, name) ||
		      jint(named(c->pools, name), "spec", "sizeBytes") != pv_bytes(pv)))
		return wrong(c, "volume %s is not a Gluster volume of that size", name);
	return true;
}

/* What is promised of a pool, as the API has it. */
static int64_t promised(struct check *c, const char *pool)
{
	int64_t sum = 0;
	const json_t *pv;
	size_t i;

	json_array_foreach (c->volumes, i, pv)
		if (streq(object_label(pv, QM_LABEL_POOL), pool))
			sum += pv_bytes(pv);
	return sum;
}

static bool has_room(struct check *c, int64_t size)
{
	const json_t *pool;
	size_t i;

	json_array_foreach (c->pools, i, pool)
		if (!jstr(pool, "spec", "parent") && !object_deleting(pool) &&
		    promised(c, object_name(pool)) + size <= jint(pool, "status", "capacityBytes"))
			return true;
	return false;
}

static bool is_bound(const json_t *claim)
{
	return streq(jstr(claim, "status", "phase"), "Bound") && jstr(claim, "spec", "volumeName");
}

static bool check_claim(struct check *c, const struct sim_claim *claim)
{
	const json_t *o = named(c->claims, claim->name), *pv;
	const char *volume = jstr(o, "spec", "volumeName");

	if (!o)
		return wrong(c, "claim %s is lost", claim->name);
	if (!is_bound(o) && (c->s->big || c->s->pools_deleted) && !has_room(c, claim->size))
		return true;
	if (!is_bound(o))
		return wrong(c, "claim %s is not Bound: %s", claim->name,
			     object_annotation(o, "quartermaster.storage/waiting")
				     ? object_annotation(o, "quartermaster.storage/waiting")
				     : "no reason is given");
	pv = named(c->volumes, volume);
	if (!pv || !streq(jstr(pv, "spec", "claimRef", "uid"), object_uid(o)))
		return wrong(c, "claim %s names %s, which is not its volume", claim->name, volume);
	if (!streq(jstr(pv, "status", "phase"), "Bound"))
		return wrong(c, "volume %s is not Bound", volume);
	if (pv_bytes(pv) != claim->size)
		return wrong(c, "volume %s has not the size of its claim", volume);
	if (object_has_finalizer(o, QM_FINALIZER_PROVISION))
		return wrong(c, "claim %s still holds the provisioner's finalizer", claim->name);
	return true;
}

/* Each has its claim, or is kept though that is gone. */
static bool check_volumes(struct check *c)
{
	const json_t *pv, *claim;
	size_t i;

	json_array_foreach (c->volumes, i, pv) {
		claim = named(c->claims, jstr(pv, "spec", "claimRef", "name"));
		if (!claim || !streq(object_uid(claim), jstr(pv, "spec", "claimRef", "uid"))) {
			if (!streq(jstr(pv, "spec", "persistentVolumeReclaimPolicy"), "Retain") ||
			    !streq(jstr(pv, "status", "phase"), "Released"))
				return wrong(c, "volume %s is left of a claim", object_name(pv));
			if (json_object_get(c->s->late_volumes, object_name(pv)))
				continue; /* its claim was undone before */
		}
		if (!check_data(c, pv))
			return false;
	}
	return true;
}

/* Nothing lies in a pool of which nobody knows. */
static bool check_left(struct check *c, const struct model_volume *v)
{
	const char *key;
	json_t *size;

	json_object_foreach (v->dirs, key, size) {
		const char *name = str_has_prefix(key, "w.") ? key + 2 : key;

		if (!named(c->volumes, name) && !json_object_get(c->s->let_go, name))
			return wrong(c, "directory %s in %s is left of a volume", key, v->name);
		if (!json_is_integer(json_object_get(v->infos, key)))
			return wrong(c, "directory %s in %s has no info file", key, v->name);
	}
	json_object_foreach (v->infos, key, size)
		if (!json_object_get(v->dirs, key))
			return wrong(c, "info file %s in %s is left of a volume", key, v->name);
	return true;
}

static bool check_claims(struct check *c)
{
	for (int i = 0; i < SIM_CLAIMS; i++) {
		const struct sim_claim *claim = &c->s->claims[i];

		if (claim->wanted && !check_claim(c, claim))
			return false;
		if (!claim->wanted && named(c->claims, claim->name))
			return wrong(c, "claim %s is deleted, but there", claim->name);
	}
	for (size_t i = 0; i < MODEL_VOLUMES; i++)
		if (*c->s->model.volumes[i].name && !check_left(c, &c->s->model.volumes[i]))
			return false;
	return check_volumes(c);
}

/* Who leads counts as promised what the API says, and no pool has more than it can hold. */
static bool check_ledger(struct check *c)
{
	const struct operator* leader = NULL;
	const json_t *pool;
	int64_t epoch;
	size_t i;

	for (int k = 0; k < c->s->operator_count; k++) {
		const struct operator* op = c->s->operators[k].app;

		if (op && op->leads(op->leads_userdata, &epoch) && ledger_loaded(op->ledger))
			leader = op;
	}
	if (!leader)
		return wrong(c, "no operator leads");
	json_array_foreach (c->pools, i, pool) {
		const char *name = object_name(pool);
		int64_t sum = promised(c, name), counted = ledger_promised(leader->ledger, name);

		if (jstr(pool, "spec", "parent"))
			continue;
		if (sum != counted)
			return wrong(c, "%lld bytes of %s are promised, %lld are counted",
				     (long long)sum, name, (long long)counted);
		if (sum > jint(pool, "status", "capacityBytes"))
			return wrong(c, "more of %s is promised than it has", name);
	}
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
		if (model_device_of_path(v->bricks[i].node, v->bricks[i].path) !=
		    model_brick_disk(v, &v->bricks[i]))
			return wrong(c, "brick %s of %s lies on another disk than its own",
				     v->bricks[i].path, v->name);
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
			const struct model_device *device = &n->devices[d];

			if (device->size && s->nodes[i].devices[model_device_slot(device)] &&
			    !in_volume(s, n, device))
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

	return n->wanted && d && n->devices[model_device_slot(d)];
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

static bool tree_in_volume(const struct scenario *s, const struct model_node *n, const char *root)
{
	cleanup_free char *path = xasprintf("%s/brick", root);

	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		const struct model_volume *v = &s->model.volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++)
			if (v->bricks[k].node == n && streq(v->bricks[k].path, path))
				return true;
	}
	return false;
}

static bool check_device(struct check *c, int i, int d)
{
	const struct model_node *m = &c->s->model.nodes[i];
	const struct model_device *device = &m->devices[d];
	const char *root;
	json_t *marker;

	json_object_foreach (device->trees, root, marker)
		if (m->agent_wanted && !tree_in_volume(c->s, m, root))
			return wrong(c, "%s of %s is left of a volume", root, m->name);
	if (!device->size || in_volume(c->s, m, device))
		return true;
	if (!c->s->nodes[i].wanted && m->agent_wanted)
		return true; /* its node is not gone yet; that is looked at elsewhere */
	if (!c->s->nodes[i].devices[model_device_slot(device)] && c->s->nodes[i].wanted &&
	    *device->uuid)
		return wrong(c, "%s %s was taken out of the spec and is not released", m->name,
			     device->name);
	return true;
}

/* What the agent says of a device that is declared. */
static const char *device_state(struct check *c, int i, const char *device)
{
	const json_t *o = named(c->nodes, c->s->nodes[i].name), *d;
	size_t k;

	json_array_foreach (jget(o, "status", "agent", "devices"), k, d)
		if (streq(jstr(d, "device"), device))
			return jstr(d, "state");
	return NULL;
}

/* What no volume has can be used, and is, where there is enough of it for a set. */
static bool check_free(struct check *c)
{
	int free_nodes = 0;

	for (int i = 0; i < c->s->node_count; i++) {
		const struct model_node *m = &c->s->model.nodes[i];
		bool has_free = false;

		for (int d = 0; c->s->nodes[i].wanted && d < MODEL_DEVICES; d++) {
			const struct model_device *device = &m->devices[d];
			const char *state;

			if (!device->size || in_volume(c->s, m, device) ||
			    !c->s->nodes[i].devices[model_device_slot(device)])
				continue;
			state = device_state(c, i, device->name);
			if (!streq(state, "Available"))
				return wrong(c, "%s %s is free, but %s", m->name, device->name,
					     state ? state : "not reported");
			has_free = true;
		}
		free_nodes += has_free;
	}
	if (free_nodes >= c->s->bricks)
		return wrong(c, "%d nodes have free devices, and no pool is made of them",
			     free_nodes);
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
	return check_emptied(c) && check_free(c);
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
	good = check_status(&c) && check_pools(&c) && check_nodes(&c) && check_claims(&c) &&
	       check_ledger(&c);
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
		/* many lie beside one brick, each in a directory of its own */
		cleanup_free char *source = xasprintf("%s %s", jstr(b, "node"),
						      jstr(b, "parent") ? jstr(b, "path")
						      : device		? device
									: jstr(b, "directory"));
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
	hardware_pool_event(s, event->object);
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
