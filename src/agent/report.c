/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <stdio.h>

#define ROUND (1LL << 20) /* bytes used are reported in whole MiB: a trickle of writes is no news */

#define MISSING_SETTLED_MS                                                                         \
	30000 /* disks that a machine finds one after the other are all there by then */

/* ---- devices ------------------------------------------------------------------------------- */
struct source {
	const char *name;
	bool directory;
	struct device_facts facts;
	struct device_verdict verdict;
	const json_t *order; /* the plan's brick on it, or NULL */
};

static bool listed(const json_t *array, const char *text)
{
	const json_t *v;
	size_t i;

	json_array_foreach (array, i, v)
		if (streq(json_string_value(v), text))
			return true;
	return false;
}

static const json_t *order_for(const struct looking *l, const char *source)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(l->plan, "bricks"), i, b)
		if (!jstr(b, "parent") &&
		    (streq(jstr(b, "device"), source) || streq(jstr(b, "directory"), source)))
			return b;
	return NULL;
}

/* Its disk has left the name under which it was made. */
static bool was_lost(const json_t *record)
{
	return jbool(record, "away") || jbool(record, "replaced");
}

/* Does the report of a node say that a brick, but `id`, has this file system? */
static bool node_claims(const json_t *node, const char *uuid, const char *id,
			char by[static BRICK_OWNER_MAX])
{
	const json_t *d;
	size_t i;

	json_array_foreach (jget(node, "status", "agent", "devices"), i, d) {
		if (!jstr(d, "brick") || !jstr(d, "uuid") ||
		    strcasecmp(jstr(d, "uuid"), uuid) != 0 || streq(jstr(d, "brick"), id))
			continue;
		snprintf(by, BRICK_OWNER_MAX, "brick %s of node %s", jstr(d, "brick"),
			 object_name(node));
		return true;
	}
	return false;
}

/*
 * A disk may have come from another node. What nodes say is read from the API itself: this is
 * before a disk is erased.
 */
static int claimed(void *userdata, const char *uuid, const char *id,
		   char by[static BRICK_OWNER_MAX], struct error *err)
{
	struct looking *l = userdata;
	cleanup_json json_t *nodes = NULL;
	const json_t *node;
	size_t i;
	int rc = kube_list(l->r->kube, &KIND_STORAGENODE, l->agent->ns, NULL, &nodes, NULL, err);

	if (rc < 0)
		return rc;
	json_array_foreach (nodes, i, node)
		if (node_claims(node, uuid, id, by))
			return 1;
	return 0;
}

/*
 * That somebody lets what has this name be erased is said of the disk that had it then. Once a brick's
 * disk has left the name it says nothing of what has it today.
 */
static bool may_erase(const struct looking *l, const char *device)
{
	cleanup_json json_t *records = NULL;
	const json_t *r;
	size_t i;

	if (!listed(jget(l->node, "spec", "glusterfs", "wipe"), device))
		return false;
	records = brick_records(l->agent->host);
	json_array_foreach (records, i, r)
		if (streq(jstr(r, "device"), device) && was_lost(r))
			return false;
	return true;
}

static void look_at(struct looking *l, struct source *s)
{
	struct node_host *h = l->agent->host;
	struct brick_order any = { .claimed = claimed, .userdata = l };

	if (s->directory)
		h->ops->probe_directory(h, s->name, &s->facts);
	else
		h->ops->probe_device(h, s->name, &s->facts);
	device_judge(s->name, &s->facts, may_erase(l, s->name), &s->verdict);
	s->order = order_for(l, s->name);
	any.id = jstr(s->order, "id");
	if (!s->directory && streq(s->verdict.state, "Available"))
		brick_spoken_for(h, &any, s->name, &s->facts, &s->verdict);
}

/*
 * One device under two names: the name that holds a brick stays, else the first. Two names that
 * lead to one disk since a restart may hold a brick each: either is found by its file system,
 * whatever has its name, and what is on the disk is formatted for none of them.
 */
static void refuse_duplicates(struct source *sources, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++) {
			struct source *keep = &sources[k], *drop = &sources[i];

			if (!device_same(&keep->facts, &drop->facts) ||
			    streq(keep->verdict.reason, "Duplicate") ||
			    (keep->order && drop->order && !drop->directory))
				continue;
			if (drop->order && !keep->order) {
				keep = &sources[i];
				drop = &sources[k];
			}
			drop->verdict.state = "Refused";
			drop->verdict.reason = "Duplicate";
			snprintf(drop->verdict.message, sizeof(drop->verdict.message),
				 "%s is the same %s as %s: name it once", drop->name,
				 drop->directory ? "directory" : "device", keep->name);
		}
	}
}

static void set_facts(json_t *o, const struct device_facts *f)
{
	char number[32];

	if (f->error)
		return;
	json_object_set_new(o, "sizeBytes", json_integer(f->size));
	if (!f->block || f->directory)
		return;
	snprintf(number, sizeof(number), "%u:%u", f->major, f->minor);
	json_object_set_new(o, "majorMinor", json_string(number));
	json_object_del(o, "wwn");
	if (f->wwn[0])
		json_object_set_new(o, "wwn", json_string(f->wwn));
}

static json_t *source_json(const struct source *s)
{
	json_t *o = json_object();

	json_object_set_new(o, s->directory ? "directory" : "device", json_string(s->name));
	json_object_set_new(o, "state", json_string(s->verdict.state));
	json_object_set_new(o, "reason", json_string(s->verdict.reason));
	json_object_set_new(o, "message", json_string(s->verdict.message));
	set_facts(o, &s->facts);
	return o;
}

static void add_sources(struct looking *l, const char *field, struct source *sources, size_t *count)
{
	const json_t *v;
	size_t i;

	json_array_foreach (jget(l->node, "spec", field), i, v) {
		struct source *s = &sources[*count];

		*s = (struct source){ .name = json_string_value(v),
				      .directory = streq(field, "directories") };
		if (!s->name)
			continue;
		look_at(l, s);
		(*count)++;
	}
}

/*
 * Bricks that were made on this name, and whose disks left it: each is a file system of its own for
 * ever, so what is made on the disk that has the name now gets another id.
 */
static void set_lost(json_t *device, const json_t *records, const char *name)
{
	json_t *lost = json_array();
	const json_t *r;
	size_t i;

	json_array_foreach (records, i, r)
		if (streq(jstr(r, "device"), name) && was_lost(r))
			json_array_append(lost, json_object_get(r, "id"));
	if (json_array_size(lost) > 0)
		json_object_set(device, "lost", lost);
	json_decref(lost);
}

/* A disk that was replaced while it was away, and is here again: it is neither used nor erased. */
static void add_old_disks(struct looking *l, const json_t *records, json_t *devices)
{
	struct node_host *h = l->agent->host;
	const json_t *r;
	size_t i;

	json_array_foreach (records, i, r) {
		char path[DEVICE_PATH_MAX];
		cleanup_free char *message = NULL;
		const char *uuid = jstr(r, "uuid");

		if (!jbool(r, "replaced") || !jbool(r, "away") || !uuid ||
		    brick_find(h, r, path, NULL) < 0)
			continue;
		message = xasprintf("%s holds what brick %s of pool %s had when another disk took "
				    "its place at %s: it is neither used nor erased; take it "
				    "away, or erase it with `wipefs -a %s` to use it anew",
				    path, jstr(r, "id"), jstr(r, "pool") ? jstr(r, "pool") : "?",
				    jstr(r, "device"), path);
		json_array_append_new(devices,
				      json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "device", path,
						"state", "Refused", "reason", "OldDisk", "message",
						message, "brick", jstr(r, "id"), "uuid", uuid));
	}
}

json_t *report_devices(struct looking *l)
{
	cleanup_json json_t *records = brick_records(l->agent->host);
	size_t max = json_array_size(jget(l->node, "spec", "devices")) +
		     json_array_size(jget(l->node, "spec", "directories"));
	cleanup_free struct source *sources = xcalloc(max + 1, sizeof(*sources));
	json_t *devices = json_array();
	size_t count = 0;

	add_sources(l, "devices", sources, &count);
	add_sources(l, "directories", sources, &count);
	refuse_duplicates(sources, count);
	for (size_t i = 0; i < count; i++) {
		json_t *d = source_json(&sources[i]);

		set_lost(d, records, sources[i].name);
		json_array_append_new(devices, d);
	}
	add_old_disks(l, records, devices);
	return devices;
}

/* ---- bricks -------------------------------------------------------------------------------- */
static json_t *device_of(json_t *devices, const char *source, const char *id)
{
	json_t *d, *free_line = NULL;
	size_t i;

	json_array_foreach (devices, i, d) {
		if (!streq(jstr(d, "device"), source) && !streq(jstr(d, "directory"), source))
			continue;
		if (streq(jstr(d, "brick"), id))
			return d;
		if (!jstr(d, "brick") && !free_line)
			free_line = d;
	}
	if (free_line)
		return free_line;
	/*
	 * a brick on its way out: its device is in the spec no more, or another brick has it; still
	 * worth a line
	 */
	d = json_object();
	json_array_append_new(devices, d);
	return d;
}

/* What the API remembers of this brick from an earlier life of the agent. */
static const json_t *remembered(const struct looking *l, const char *id)
{
	const json_t *d;
	size_t i;

	json_array_foreach (jget(l->node, "status", "agent", "devices"), i, d)
		if (streq(jstr(d, "brick"), id))
			return d;
	return NULL;
}

/* What the pool says of the brick: one that has left the spec is in use while the volume has it. */
static void note_prepared(struct looking *l, const json_t *pool, const char *id)
{
	static const char *const parts[] = { "status", "spec" };

	for (size_t k = 0; k < ARRAY_SIZE(parts); k++) {
		const json_t *b;
		size_t i;

		json_array_foreach (jget(pool, parts[k], "bricks"), i, b)
			if (streq(jstr(b, "id"), id) && !jbool(l->prepared, id)) /* never lowered */
				json_object_set_new(l->prepared, id,
						    json_boolean(k == 0 || jbool(b, "prepared")));
	}
}

int report_ask(struct looking *l)
{
	const json_t *order;
	size_t i;

	json_array_foreach (jget(l->plan, "bricks"), i, order) {
		const char *id = jstr(order, "id"), *name = jstr(order, "pool");
		cleanup_json json_t *pool = NULL;
		struct error err = ERROR_INIT;
		int rc;

		if (!id || !name || brick_known(l->agent->host, id, jstr(order, "poolUid")))
			continue;
		rc = kube_get(l->r->kube, &KIND_STORAGEPOOL, l->agent->ns, name, &pool, &err);
		if (rc < 0 && rc != -ENOENT) {
			l->r->error = err;
			return rc;
		}
		/* an order for one that had the name before is no order for this one */
		if (!jstr(order, "poolUid") || streq(object_uid(pool), jstr(order, "poolUid")))
			note_prepared(l, pool, id);
	}
	return 0;
}

/* Not in use by its record, and no pool has it: whoever ordered that did so long ago. It is left as it is. */
static bool nobodys(const struct looking *l, const struct brick_order *o)
{
	return !json_object_get(l->prepared, o->id) &&
	       !brick_known(l->agent->host, o->id, o->pool_uid);
}

static const char *settled(const struct looking *l, const char *id)
{
	const json_t *m = id ? json_object_get(l->agent->state->missing, id) : NULL;

	return m && clock_mono_ms(l->r->clock) - jint(m, "since") >= MISSING_SETTLED_MS
		       ? jstr(m, "instead")
		       : NULL;
}

/* The time counts from when this very device has had the name, not from when the disk left it. */
static void note_missing(struct looking *l, const char *id, const struct brick_result *r)
{
	json_t *all = l->agent->state->missing;

	if (!streq(r->verdict.state, "Missing"))
		json_object_del(all, id);
	else if (!streq(jstr(json_object_get(all, id), "instead"), r->instead))
		json_object_set_new(all, id,
				    json_pack("{s:I, s:s}", "since",
					      (json_int_t)clock_mono_ms(l->r->clock), "instead",
					      r->instead));
}

static struct brick_order order_of(const struct looking *l, const json_t *b)
{
	const json_t *known = remembered(l, jstr(b, "id"));

	return (struct brick_order){
		.id = jstr(b, "id"),
		.device = jstr(b, "device"),
		.directory = jstr(b, "directory"),
		.parent = jstr(b, "parent"),
		.path = jstr(b, "path"),
		.pool = jstr(b, "pool"),
		.pool_uid = jstr(b, "poolUid"),
		.wipe = jbool(b, "wipe"),
		.settled = settled(l, jstr(b, "id")),
		.claimed = claimed,
		.userdata = (void *)l,
		.node_uid = object_uid(l->node),
		.known_uuid = jstr(known, "uuid"),
		.known_ready = streq(jstr(known, "state"), "Ready"),
		.prepared = jstr(b, "id") && jbool(l->prepared, jstr(b, "id")),
	};
}

static void set_verdict(json_t *device, const struct brick_order *o, const struct device_verdict *v,
			const char *uuid)
{
	json_object_set_new(device, o->device ? "device" : "directory",
			    json_string(o->device ? o->device : o->directory));
	json_object_set_new(device, "state", json_string(v->state));
	json_object_set_new(device, "reason", json_string(v->reason));
	json_object_set_new(device, "message", json_string(v->message));
	json_object_set_new(device, "brick", json_string(o->id));
	if (uuid && *uuid)
		json_object_set_new(device, "uuid", json_string(uuid));
}

static void leave_alone(const struct brick_order *o, json_t *device)
{
	struct device_verdict v = { .state = "Failed", .reason = "PoolUnknown" };

	snprintf(v.message, sizeof(v.message),
		 "%s is ordered for pool %s, which has no brick %s: it stays as it is until the "
		 "plan or the pool says otherwise",
		 o->device ? o->device : o->directory, o->pool ? o->pool : "?", o->id);
	set_verdict(device, o, &v, o->known_uuid);
}

/* A device that is Ready stays so in the report until a look says otherwise. */
static void choose(struct looking *l, const struct brick_order *o, json_t *device)
{
	struct device_verdict v = { .state = "Available", .reason = "" };
	struct error err = ERROR_INIT;
	char uuid[UUID_TEXT_MAX] = "";
	int rc = brick_choose(l->agent->host, o, uuid, &err);

	if (rc < 0) {
		v = (struct device_verdict){ .state = "Failed", .reason = "RecordFailed" };
		snprintf(v.message, sizeof(v.message), "%s", error_text(&err, rc));
	} else if (o->known_ready) {
		v.state = "Ready";
	}
	set_verdict(device, o, &v, uuid);
}

static bool prepare(struct looking *l, const struct brick_order *o, json_t *device)
{
	struct brick_result result;

	if (streq(jstr(device, "reason"), "Duplicate"))
		return false;
	brick_prepare(l->agent->host, o, &result);
	note_missing(l, o->id, &result);
	if (streq(result.verdict.state, "Ready") && o->device && !streq(result.device, o->device)) {
		struct device_facts facts;

		/* what was found under the old name is another disk's */
		l->agent->host->ops->probe_device(l->agent->host, result.device, &facts);
		set_facts(device, &facts);
		snprintf(result.verdict.message, sizeof(result.verdict.message),
			 "its disk is %.200s now", result.device);
	}
	if (result.unsure)
		json_object_set_new(device, "unsure", json_true());
	if (streq(result.verdict.reason, "Replaced") && !listed(jget(device, "lost"), o->id)) {
		if (!jget(device, "lost"))
			json_object_set_new(device, "lost", json_array());
		json_array_append_new(jget(device, "lost"), json_string(o->id));
	}
	set_verdict(device, o, &result.verdict, result.uuid);
	return streq(result.verdict.state, "Ready");
}

/* With the pool that the node has it for: one that had the name before is another. */
static json_t *brick_json(const struct looking *l, const struct brick_order *o, bool mounted)
{
	cleanup_free char *uid = brick_pool_uid(l->agent->host, o->id);

	return json_pack("{s:s, s:s*, s:s*, s:s, s:s*, s:b, s:b}", "id", o->id, "pool", o->pool,
			 "poolUid", uid ? uid : o->pool_uid, "path", o->path, "parent", o->parent,
			 "mounted", mounted, "online", 0);
}

/* Bricks on record that the plan does not name: the operator sees them, and orders their release. */
static void add_unplanned(struct looking *l, json_t *bricks)
{
	cleanup_json json_t *records = brick_records(l->agent->host);
	const json_t *r, *b;
	size_t i, k;

	json_array_foreach (records, i, r) {
		bool skip = jbool(r, "away");

		json_array_foreach (bricks, k, b)
			skip |= streq(jstr(b, "id"), jstr(r, "id"));
		if (!skip)
			json_array_append_new(
				bricks,
				json_pack("{s:s, s:s*, s:s*, s:s, s:s*, s:b, s:b}", "id",
					  jstr(r, "id"), "pool", jstr(r, "pool"), "poolUid",
					  jstr(r, "poolUid"), "path", jstr(r, "path"),
					  "parent", jstr(r, "parent"), "mounted",
					  jbool(r, "ready") && !jbool(r, "released"), "online", 0));
	}
}

/* A brick beside another has no device of its own to report, nor a UUID: its record and its marker are all. */
static bool prepare_beside(struct looking *l, const struct brick_order *o)
{
	struct error err = ERROR_INIT;
	struct brick_result result;
	char uuid[UUID_TEXT_MAX];
	int rc = brick_choose(l->agent->host, o, uuid, &err);

	if (rc < 0) {
		log_warn("brick %s of volume %s: %s", o->id, o->pool, error_text(&err, rc));
		return false;
	}
	brick_prepare(l->agent->host, o, &result);
	if (streq(result.verdict.state, "Ready"))
		return true;
	log_warn("brick %s of volume %s: %s", o->id, o->pool, result.verdict.message);
	return false;
}

/* After the others: what they lie beside has to be mounted. */
static void add_beside(struct looking *l, json_t *bricks, bool do_prepare)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(l->plan, "bricks"), i, b) {
		struct brick_order o = order_of(l, b);

		if (!o.parent || !brick_order_valid(&o))
			continue;
		bool ready = do_prepare && !nobodys(l, &o) && prepare_beside(l, &o);

		l->unready |= do_prepare && !ready;
		json_array_append_new(bricks, brick_json(l, &o, ready));
	}
}

json_t *report_bricks(struct looking *l, json_t *devices, bool do_prepare)
{
	json_t *bricks = json_array();
	const json_t *b;
	size_t i;

	json_array_foreach (jget(l->plan, "bricks"), i, b) {
		struct brick_order o = order_of(l, b);
		json_t *device;
		bool ready = false;

		if (o.parent || !brick_order_valid(&o))
			continue;
		device = device_of(devices, o.device ? o.device : o.directory, o.id);
		if (!streq(jstr(device, "reason"), "Duplicate")) {
			if (nobodys(l, &o))
				leave_alone(&o, device);
			else if (do_prepare)
				ready = prepare(l, &o, device);
			else
				choose(l, &o, device);
		}
		json_array_append_new(bricks, brick_json(l, &o, ready));
	}
	add_beside(l, bricks, do_prepare);
	add_unplanned(l, bricks);
	return bricks;
}

bool report_usage(struct looking *l, json_t *bricks)
{
	struct node_host *h = l->agent->host;
	bool all = true;
	json_t *b;
	size_t i;

	json_array_foreach (bricks, i, b) {
		struct brick_usage u = { .pending = -1 };
		const char *pool = jstr(b, "pool");

		if (!jbool(b, "mounted"))
			continue;
		if (h->ops->brick_usage(h, pool ? pool : "", jstr(b, "path"), &u, NULL) < 0) {
			all = false;
			continue;
		}
		json_object_set_new(b, "online", json_boolean(u.pid > 0));
		json_object_set_new(b, "pid", json_integer(u.pid));
		json_object_set_new(b, "pending", json_integer(u.pending < 0 ? 0 : u.pending));
		json_object_set_new(b, "sizeBytes", json_integer(u.size));
		json_object_set_new(b, "usedBytes",
				    json_integer((u.used + ROUND - 1) / ROUND * ROUND));
		json_object_set_new(b, "freeBytes", json_integer(u.free / ROUND * ROUND));
	}
	return all;
}

/* ---- is it news? --------------------------------------------------------------------------- */
static bool is_number(const char *key)
{
	return streq(key, "usedBytes") || streq(key, "freeBytes") || streq(key, "pending") ||
	       streq(key, "healPending");
}

static bool same_value(const json_t *a, const json_t *b, bool *numbers)
{
	const char *key;
	const json_t *v;
	size_t i;

	if (json_is_object(a) && json_is_object(b)) {
		json_object_foreach ((json_t *)a, key, v) {
			const json_t *w = json_object_get(b, key);

			if (is_number(key) && !json_equal((json_t *)v, (json_t *)w))
				*numbers = true;
			else if (!is_number(key) && !same_value(v, w, numbers))
				return false;
		}
		return true;
	}
	if (json_is_array(a) && json_is_array(b)) {
		if (json_array_size(a) != json_array_size(b))
			return false;
		json_array_foreach (a, i, v)
			if (!same_value(v, json_array_get(b, i), numbers) ||
			    json_object_size(v) != json_object_size(json_array_get(b, i)))
				return false;
		return true;
	}
	return json_equal((json_t *)a, (json_t *)b);
}

bool report_same(const json_t *a, const json_t *b, bool *ret_numbers_differ)
{
	*ret_numbers_differ = false;
	return same_value(a, b, ret_numbers_differ);
}
