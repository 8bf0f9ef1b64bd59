/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/cluster.h"

#include "base/mem.h"
#include "systems/glusterfs/options.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/*
 * Order of thought: deleted? exists? right shape? options, started, right bricks, healed. The
 * bricks of a replicated volume change by adding first and removing when all is healed; those of
 * disperse and arbiter volumes, which cannot have one more, by replacing while all others are whole.
 */
struct decision {
	const struct volume_view *view;
	const struct gluster_volume *volume;
	const json_t *bricks; /* spec.bricks */
	struct volume_type type;
	struct volume_step *step;
};

void volume_step_done(struct volume_step *s)
{
	strv_done(&s->bricks);
	json_decref(s->options);
	*s = (struct volume_step){ 0 };
}

void volume_step_of(struct volume_step *s, const char *id)
{
	snprintf(s->id, sizeof(s->id), "%s", id ? id : "");
}

int volume_step_check(const struct volume_step *s, const struct gluster_volume *now,
		      struct error *err)
{
	if (!s->id[0] || streq(s->id, now->id))
		return 0;
	return error_set(err, ESTALE,
			 "Volume %s has id %s now, and \"%s\" was decided for %s: it is not done",
			 s->volume, now->id ? now->id : "?", volume_step_name(s->kind), s->id);
}

const char *volume_step_name(enum volume_step_kind kind)
{
	static const char *const names[] = {
		[STEP_NONE] = "none",
		[STEP_WAIT] = "wait",
		[STEP_BLOCKED] = "blocked",
		[STEP_CREATE] = "create",
		[STEP_SET] = "set options",
		[STEP_START] = "start",
		[STEP_START_FORCE] = "start bricks",
		[STEP_ADD_BRICK] = "add brick",
		[STEP_HEAL] = "heal",
		[STEP_REMOVE_BRICK] = "remove brick",
		[STEP_REPLACE_BRICK] = "replace brick",
		[STEP_STOP] = "stop",
		[STEP_DELETE] = "delete",
		[STEP_GONE] = "gone",
	};
	return names[kind];
}

__attribute__((format(printf, 3, 4))) static bool decide(struct decision *d,
							 enum volume_step_kind kind,
							 const char *format, ...)
{
	va_list ap;

	d->step->kind = kind;
	va_start(ap, format);
	vsnprintf(d->step->why, sizeof(d->step->why), format, ap);
	va_end(ap);
	return true;
}

static void name_brick(struct decision *d, const char *address, const char *path)
{
	strv_add_take(&d->step->bricks, xasprintf("%s:%s", address, path));
}

static const char *text_of(const json_t *b, const char *key)
{
	const char *s = jstr(b, key);

	return s ? s : "";
}

static const char *brick_address(const json_t *b)
{
	return text_of(b, "address");
}

static const char *brick_path(const json_t *b)
{
	return text_of(b, "path");
}

static bool reachable(const struct decision *d, const char *address)
{
	const struct gluster_peer *p;

	if (streq(address, d->view->address))
		return true;
	p = gluster_peer_find(d->view->peers, address);
	return p && p->connected && p->state == GLUSTER_PEER_BEFRIENDED;
}

/* ---- whose volume it is -------------------------------------------------------------------- */
static bool has_a_brick(const json_t *pool, const struct gluster_volume *v)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		if (jbool(b, "prepared") && gluster_brick_find(v, brick_address(b), brick_path(b)))
			return true;
	return false;
}

bool volume_is_of(const json_t *pool, const struct gluster_volume *v)
{
	const char *id = jstr(pool, "status", "volumeId"), *uid = jstr(pool, "metadata", "uid"),
		   *mark = jstr(v->options, VOLUME_OPTION_POOL);

	if (id && *id)
		return streq(id, v->id);
	return mark ? streq(mark, uid) : v->state == VOLUME_CREATED && has_a_brick(pool, v);
}

const struct gluster_volume *volume_view_own(const struct volume_view *view)
{
	return view->volume && volume_is_of(view->pool, view->volume) ? view->volume : NULL;
}

/* Whatever it is, it is not this pool's: it is neither used nor taken away. */
static bool decide_anothers(struct decision *d)
{
	const struct gluster_volume *v = d->view->volume;
	const char *id = jstr(d->view->pool, "status", "volumeId"),
		   *uid = jstr(d->view->pool, "metadata", "uid");

	if (!v || d->volume)
		return false;
	if (id && *id)
		return decide(d, STEP_BLOCKED,
			      "The volume of this name has id %s, but the pool's was made with id "
			      "%s: it stays untouched; move it out of the way, or delete the pool",
			      v->id ? v->id : "?", id);
	return decide(d, STEP_BLOCKED,
		      "A volume of this name (id %s) is there, and was not made for this pool: it "
		      "stays untouched; delete it, or, should it hold the pool's data: gluster "
		      "volume set %s " VOLUME_OPTION_POOL " %s",
		      v->id ? v->id : "?", d->step->volume, uid ? uid : "");
}

/* ---- a volume that is to go, or to come ---------------------------------------------------- */
/*
 * Two halves of a cluster, each led while the other was away, could make volumes of their own, and
 * gluster joins no trusted pools that both have volumes: only the larger half makes any. And only
 * that knows that there is none: who leads may have just come, and be no member yet.
 */
bool volume_view_of_half(const struct volume_view *view)
{
	return 2 * (view->peers->count + 1) <= view->members;
}

static bool decide_half(struct decision *d)
{
	return volume_view_of_half(d->view) &&
	       decide(d, STEP_WAIT,
		      "Waiting for more nodes: %zu of the cluster's %zu are in this trusted pool, "
		      "and only more than half of them know, or make, a volume",
		      d->view->peers->count + 1, d->view->members);
}

static bool decide_deleted(struct decision *d)
{
	if (!volume_is_to_go(d->view->pool))
		return false;
	if (!d->volume && decide_half(d))
		return true;
	if (!d->volume)
		return decide(d, STEP_GONE, "The volume is deleted");
	if (d->volume->state == VOLUME_STARTED)
		return decide(d, STEP_STOP, "The pool is being deleted");
	return decide(d, STEP_DELETE, "The pool is being deleted");
}

/* Gluster is told to use it by force: it would make the directory of a brick that is not there where that is not. */
static bool brick_usable(struct decision *d, const json_t *b)
{
	const struct volume_view *v = d->view;

	if (!jbool(b, "prepared"))
		return !decide(d, STEP_WAIT, "Waiting for %s to prepare its brick %s",
			       text_of(b, "node"), text_of(b, "id"));
	if (!reachable(d, brick_address(b)))
		return !decide(d, STEP_WAIT,
			       "Waiting for node %s (%s): it is not a connected member of the "
			       "trusted pool",
			       text_of(b, "node"), brick_address(b));
	if (v->mounted && !v->mounted(v->userdata, b))
		return !decide(d, STEP_WAIT,
			       "Waiting for node %s to mount its brick %s: it was prepared, but is "
			       "not there now; see the node's devices",
			       text_of(b, "node"), text_of(b, "id"));
	return true;
}

static void shape_of_type(struct decision *d)
{
	switch (d->type.layout) {
	case LAYOUT_REPLICATE:
		d->step->replica = d->type.bricks;
		break;
	case LAYOUT_ARBITER:
		d->step->replica = 3;
		d->step->arbiter = 1;
		break;
	case LAYOUT_DISPERSE:
		d->step->disperse = d->type.bricks;
		d->step->redundancy = d->type.redundancy;
		break;
	case LAYOUT_NONE:
		break;
	}
}

static bool decide_create(struct decision *d)
{
	const char *id = jstr(d->view->pool, "status", "volumeId");
	const json_t *b;
	size_t i;

	if (d->volume)
		return false;
	if (decide_anothers(d))
		return true;
	if (id && *id)
		return decide(
			d, STEP_BLOCKED,
			"The volume was made with id %s, but this node's glusterd does not know "
			"it: has the node's "
			"/var/lib/glusterd been lost? Nothing is made anew over existing data",
			id);
	if (decide_half(d))
		return true;
	/* the operator takes a pool without bricks for gone: one made now would belong to nobody */
	if (jget(d->view->pool, "metadata", "deletionTimestamp"))
		return decide(d, STEP_GONE, "The pool is being deleted, and was never made");
	json_array_foreach (d->bricks, i, b)
		if (!brick_usable(d, b))
			return true;
	/* gluster takes the last brick of a set as its arbiter */
	for (int arbiters = 0; arbiters < 2; arbiters++)
		json_array_foreach (d->bricks, i, b)
			if (jbool(b, "arbiter") == (arbiters == 1))
				name_brick(d, brick_address(b), brick_path(b));
	shape_of_type(d);
	return decide(d, STEP_CREATE, "Making the volume");
}

static bool decide_shape(struct decision *d)
{
	const struct gluster_volume *v = d->volume;
	bool right;

	switch (d->type.layout) {
	case LAYOUT_DISPERSE:
		right = v->disperse == d->type.bricks && v->redundancy == d->type.redundancy;
		break;
	case LAYOUT_ARBITER:
		right = v->arbiter == 1 && v->replica == 3;
		break;
	default:
		right = v->disperse == 0 && v->arbiter == 0 && v->replica == (int)v->brick_count;
	}
	if (right)
		return false;
	return decide(d, STEP_BLOCKED,
		      "The volume's layout is not the pool's %s, and cannot be changed; move its "
		      "data to a new pool",
		      text_of(jget(d->view->pool, "spec"), "volumeType"));
}

/* Those of wanted that differ from what the volume has; keys of except are left out. */
static bool decide_options(struct decision *d, const json_t *wanted, const json_t *except,
			   const char *why)
{
	json_t *value;
	const char *key;

	json_object_foreach ((json_t *)wanted, key, value) {
		if (!json_is_string(value) || json_object_get(except, key) ||
		    streq(json_string_value(value), jstr(d->volume->options, key)))
			continue;
		if (!d->step->options)
			d->step->options = json_object();
		json_object_set(d->step->options, key, value);
	}
	return d->step->options && decide(d, STEP_SET, "%s", why);
}

/* Before the volume starts; the pool's own come when all else is done, since they may be wrong. */
static bool decide_profile(struct decision *d)
{
	cleanup_json json_t *profile = volume_options_for(d->type.layout);
	const char *allow = jstr(d->view->pool, "spec", "tlsAllow"),
		   *uid = jstr(d->view->pool, "metadata", "uid");

	if (uid)
		json_object_set_new(profile, VOLUME_OPTION_POOL, json_string(uid));
	if (allow && *allow) {
		json_object_set_new(profile, "client.ssl", json_string("on"));
		json_object_set_new(profile, "server.ssl", json_string("on"));
		json_object_set_new(profile, "auth.ssl-allow", json_string(allow));
	}
	return decide_options(d, profile, jget(d->view->pool, "spec", "options"),
			      "Setting the volume's options");
}

static bool decide_own_options(struct decision *d)
{
	return decide_options(d, jget(d->view->pool, "spec", "options"), NULL,
			      "Setting the options of spec.options");
}

/* ---- its bricks ---------------------------------------------------------------------------- */
static const json_t *wanted_brick(const struct decision *d, const struct gluster_brick *b)
{
	const json_t *w;
	size_t i;

	json_array_foreach (d->bricks, i, w)
		if (streq(brick_address(w), b->address) && streq(brick_path(w), b->path))
			return w;
	return NULL;
}

/* It could be given to gluster now (brick_usable, without a word). */
static bool is_ready(const struct decision *d, const json_t *b)
{
	const struct volume_view *v = d->view;

	return jbool(b, "prepared") && reachable(d, brick_address(b)) &&
	       (!v->mounted || v->mounted(v->userdata, b));
}

/* Of those that are to come, for any role or that one: one that is ready, else the first. */
static const json_t *next_missing(const struct decision *d, int arbiter)
{
	const json_t *w, *found = NULL;
	size_t i;

	json_array_foreach (d->bricks, i, w) {
		if (gluster_brick_find(d->volume, brick_address(w), brick_path(w)) ||
		    (arbiter >= 0 && jbool(w, "arbiter") != (arbiter == 1)))
			continue;
		if (is_ready(d, w))
			return w;
		if (!found)
			found = w;
	}
	return found;
}

/* Of those that stay and serve; an arbiter holds no data. The others are named, if asked for. */
static int whole_without(const struct decision *d, const struct gluster_brick *lost,
			 struct buf *others)
{
	int whole = 0;

	for (size_t i = 0; i < d->volume->brick_count; i++) {
		const struct gluster_brick *b = &d->volume->bricks[i];

		if (b == lost || b->arbiter)
			continue;
		if (b->online && b->whole)
			whole++;
		else if (others)
			buf_printf(others, "%s%s:%s", others->len ? ", " : "", b->address, b->path);
	}
	return whole;
}

static bool given_up_by_a_person(const struct decision *d, const struct gluster_brick *b)
{
	cleanup_json json_t *id = volume_brick_id(b->path);

	return streq(jstr(d->view->pool, "metadata", "annotations", POOL_ANNOTATION_LOST),
		     json_string_value(id));
}

/* Neither its glusterd nor a crawl has told whether it serves. */
static bool unseen(const struct decision *d, const struct gluster_brick *b)
{
	return b->unasked && !reachable(d, b->address) && !given_up_by_a_person(d, b);
}

static bool brick_lost(const struct decision *d, const struct gluster_brick *b)
{
	const struct volume_view *v = d->view;

	/* of a volume with one copy, that is the data: it is not given up unless it has just moved */
	if (d->type.layout == LAYOUT_NONE && whole_without(d, b, NULL) == 0)
		return false;
	return !b->online && !b->connected && !unseen(d, b) && v->offline_ms &&
	       v->offline_ms(v->userdata, b->address, b->path) >= BRICK_LOST_MS;
}

/* One that is lost goes before one that is well. */
static const struct gluster_brick *first_extra(const struct decision *d, int arbiter)
{
	const struct gluster_brick *found = NULL;

	for (size_t i = 0; i < d->volume->brick_count; i++) {
		const struct gluster_brick *b = &d->volume->bricks[i];

		if (wanted_brick(d, b) || (arbiter >= 0 && b->arbiter != (arbiter == 1)))
			continue;
		if (!found || (brick_lost(d, b) && !brick_lost(d, found)))
			found = b;
	}
	return found;
}

static const struct gluster_brick *first_offline(const struct decision *d,
						 const struct gluster_brick *except)
{
	for (size_t i = 0; i < d->volume->brick_count; i++)
		if (!d->volume->bricks[i].online && &d->volume->bricks[i] != except)
			return &d->volume->bricks[i];
	return NULL;
}

static int64_t pending_total(const struct gluster_volume *v)
{
	int64_t sum = 0;

	for (size_t i = 0; i < v->brick_count; i++) {
		if (v->bricks[i].pending < 0)
			return -1;
		sum += v->bricks[i].pending;
	}
	return sum;
}

static bool all_marked(const struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++)
		if (!v->bricks[i].whole)
			return false;
	return true;
}

static bool runs(const struct decision *d, const struct gluster_brick *b)
{
	const struct volume_view *v = d->view;

	return b->connected || (v->runs && v->runs(v->userdata, b->address, b->path));
}

static const char *offline_advice(const struct decision *d, const struct gluster_brick *offline)
{
	if (d->type.layout == LAYOUT_NONE && whole_without(d, offline, NULL) == 0)
		return "; it may hold the only copy: bring it back, or delete the claims of the "
		       "pool";
	if (runs(d, offline))
		return "; it runs, but this node's glusterd cannot see it: see to glusterd and the "
		       "network of its node, or stop that machine if the brick is to be given up";
	if (wanted_brick(d, offline))
		return "; it is to stay in the pool: bring it back, or take its device out of the "
		       "StorageNode's spec";
	if (unseen(d, offline))
		return "; whether it serves could not be found out in time, so long is the list of "
		       "what it misses: bring its node back, or, if that is off, annotate this "
		       "StoragePool with " POOL_ANNOTATION_LOST "=ID (of the brick)";
	if (first_offline(d, offline))
		return "; another one is offline too, and only one at a time is given up: bring "
		       "one back";
	return "; if it is lost for good this goes on after five minutes";
}

/* True: not all copies are whole, and a step that waits for that is decided. */
static bool decide_unhealed(struct decision *d, const char *then)
{
	const struct gluster_brick *offline = first_offline(d, NULL);
	int64_t pending = pending_total(d->volume);

	if (offline)
		return decide(d, STEP_WAIT,
			      "Waiting for brick %s:%s, which is offline, before %s%s",
			      offline->address, offline->path, then, offline_advice(d, offline));
	if (pending < 0)
		return decide(d, STEP_WAIT, "Waiting to learn what is left to heal, before %s",
			      then);
	if (pending > 0)
		return decide(d, STEP_HEAL, "%lld entries to heal before %s", (long long)pending,
			      then);
	/* gluster itself writes down what a new copy misses, but not what a new part does */
	if (d->type.layout == LAYOUT_DISPERSE && !all_marked(d->volume))
		return decide(d, STEP_WAIT, "Making sure that all parts are whole, before %s",
			      then);
	return false;
}

static bool replace(struct decision *d, const struct gluster_brick *old, const json_t *new)
{
	name_brick(d, old->address, old->path);
	name_brick(d, brick_address(new), brick_path(new));
	return decide(d, STEP_REPLACE_BRICK, "Replacing brick %s:%s by %s:%s", old->address,
		      old->path, brick_address(new), brick_path(new));
}

/* ---- giving up a brick that is lost -------------------------------------------------------- */
static bool decide_not_whole(struct decision *d, const struct gluster_brick *lost)
{
	cleanup_with(buf_done) struct buf others = { 0 };
	cleanup_json json_t *id = volume_brick_id(lost->path);
	int whole = whole_without(d, lost, &others);

	return decide(d, STEP_WAIT,
		      "Brick %s:%s is lost, but may hold what others miss: %d of them must be "
		      "known to be whole, %d are, and not %.200s. That is known once all were "
		      "online with nothing to heal, and an earlier version did not note it. "
		      "Bring the disk back; or give up what only it has: annotate this "
		      "StoragePool with " POOL_ANNOTATION_LOST "=%s",
		      lost->address, lost->path, d->type.data, whole,
		      others.data ? others.data : "those that are gone", json_string_value(id));
}

/* 1: it is lost, and can be spared; 0: it is not lost; -1: it cannot be spared, wait. */
static int give_up(struct decision *d, const struct gluster_brick *b)
{
	if (!b || !brick_lost(d, b) || first_offline(d, b))
		return 0;
	/* an arbiter has no data: what the copies miss they know of each other */
	if (b->arbiter || whole_without(d, b, NULL) >= d->type.data || given_up_by_a_person(d, b))
		return 1;
	decide_not_whole(d, b);
	return -1;
}

static bool decide_replicate(struct decision *d)
{
	const json_t *missing = next_missing(d, -1);
	const struct gluster_brick *extra = first_extra(d, -1);
	int lost;

	if (!missing && !extra)
		return false;
	if (missing && !brick_usable(d, missing))
		return true;
	lost = give_up(d, extra);
	if (lost < 0)
		return true;
	if (missing) {
		if (lost)
			return replace(d, extra, missing);
		if (decide_unhealed(d, "a brick is added"))
			return true;
		name_brick(d, brick_address(missing), brick_path(missing));
		d->step->replica = (int)d->volume->brick_count + 1;
		return decide(d, STEP_ADD_BRICK, "Adding a copy on %s", text_of(missing, "node"));
	}
	/* A lost copy is no copy: the others do not have to wait for it. */
	if (!lost && decide_unhealed(d, "the old brick is removed"))
		return true;
	name_brick(d, extra->address, extra->path);
	d->step->replica = (int)d->volume->brick_count - 1;
	return decide(d, STEP_REMOVE_BRICK, "%s: removing brick %s:%s",
		      lost ? "It is lost" : "All copies are whole", extra->address, extra->path);
}

static bool decide_fixed_set(struct decision *d)
{
	const struct gluster_brick *going = first_extra(d, -1);
	/* all others wait for one that is lost: one for its role comes first */
	const json_t *missing =
		next_missing(d, going && brick_lost(d, going) ? going->arbiter : -1);
	const struct gluster_brick *extra;
	int lost;

	if (!missing && going)
		missing = next_missing(d, -1);
	if (!missing && !going)
		return false;
	extra = missing ? first_extra(d, jbool(missing, "arbiter") ? 1 : 0) : NULL;
	if (!extra)
		return decide(d, STEP_BLOCKED,
			      "A %s set keeps its number of bricks and their roles: name one new "
			      "brick for each one that goes",
			      text_of(jget(d->view->pool, "spec"), "volumeType"));
	if (!brick_usable(d, missing))
		return true;
	lost = give_up(d, extra);
	if (lost < 0 || (!lost && decide_unhealed(d, "a brick is replaced")))
		return true;
	return replace(d, extra, missing);
}

static bool decide_healthy(struct decision *d)
{
	const struct gluster_brick *offline = first_offline(d, NULL);

	if (offline)
		return decide(d, STEP_WAIT, "Brick %s:%s is offline", offline->address,
			      offline->path);
	if (pending_total(d->volume) > 0)
		return decide(d, STEP_HEAL, "%lld entries to heal",
			      (long long)pending_total(d->volume));
	return decide(d, STEP_NONE, "%s", "");
}

void volume_next_step(const struct volume_view *view, struct volume_step *ret)
{
	struct decision d = { .view = view,
			      .volume = volume_view_own(view),
			      .bricks = jget(view->pool, "spec", "bricks"),
			      .step = ret };
	struct error err = ERROR_INIT;
	const char *name = jstr(view->pool, "metadata", "name");
	const char *type = jstr(view->pool, "spec", "volumeType");

	*ret = (struct volume_step){ 0 };
	snprintf(ret->volume, sizeof(ret->volume), "%s", name ? name : "");
	volume_step_of(ret, d.volume ? d.volume->id : NULL);
	if (decide_deleted(&d))
		return;
	if (volume_type_parse(type ? type : "", &d.type, &err) < 0) {
		decide(&d, STEP_BLOCKED, "%s", err.message);
		return;
	}
	if (json_array_size(d.bricks) == 0) {
		decide(&d, STEP_BLOCKED, "The pool names no brick");
		return;
	}
	if (decide_create(&d) || decide_shape(&d) || decide_profile(&d))
		return;
	if (d.volume->state != VOLUME_STARTED) {
		decide(&d, STEP_START, "Starting the volume");
		return;
	}
	if (d.type.layout == LAYOUT_REPLICATE || d.type.layout == LAYOUT_NONE
		    ? decide_replicate(&d)
		    : decide_fixed_set(&d))
		return;
	if (!decide_own_options(&d))
		decide_healthy(&d);
}
