/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

#define INDEX_LAG_MS                                                                               \
	20000 /* what an added brick lacks is found out by a crawl, which takes its time */
#define BUSY 100 /* of 10,000: another transaction is under way */

static struct model_host *of(struct node_host *h)
{
	return (struct model_host *)h;
}

static struct sim *sim_of(const struct model *m)
{
	return &m->world->sim;
}

/* ---- bricks and volumes ---------------------------------------------------------------------------- */

struct model_volume *model_volume_named(struct model *m, const char *name)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		if (*m->volumes[i].name && streq(m->volumes[i].name, name))
			return &m->volumes[i];
	}
	return NULL;
}

struct model_volume *model_volume_in(struct model *m, int trust, const char *name)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &m->volumes[i];

		if (*v->name && v->trust == trust && streq(v->name, name))
			return v;
	}
	return NULL;
}

bool model_brick_online(const struct model_brick *b)
{
	return b->running && b->node->up;
}

bool model_brick_whole(const struct model_brick *b)
{
	return model_brick_online(b) && b->lacks == 0;
}

struct model_device *model_brick_disk(const struct model_volume *v, const struct model_brick *b)
{
	for (size_t i = 0; i < MODEL_DEVICES; i++) {
		struct model_device *d = &b->node->devices[i];

		if (d->size && d->volumes && streq(jstr(d->volumes, b->path), v->id))
			return d;
	}
	return NULL;
}

static size_t count_bricks(const struct model_volume *v, bool (*is)(const struct model_brick *b))
{
	size_t count = 0;

	for (size_t i = 0; i < v->brick_count; i++)
		count += is(&v->bricks[i]);
	return count;
}

/* ---- entries: which bricks have them whole ------------------------------------------------------------ */

/* Whole copies or parts of an entry that make it readable. */
static int parts_needed(const struct model_volume *v)
{
	return v->disperse ? v->disperse - v->redundancy : 1;
}

/* An arbiter has no data, and so it is no copy. */
static uint64_t entries_of(const struct model_volume *v, const struct model_brick *b)
{
	uint64_t all = v->entries >= 64 ? UINT64_MAX : (1ULL << v->entries) - 1;

	return b->arbiter ? 0 : all & ~b->lacks;
}

/* Those that at least so many of the bricks that count have whole. */
static uint64_t entries_kept(const struct model_volume *v, const bool *counts)
{
	uint64_t once = 0, twice = 0, more = 0;

	for (size_t i = 0; i < v->brick_count; i++) {
		uint64_t has = counts[i] ? entries_of(v, &v->bricks[i]) : 0;

		more |= twice & has;
		twice |= once & has;
		once |= has;
	}
	return parts_needed(v) == 1 ? once : parts_needed(v) == 2 ? twice : more;
}

static bool all_kept(const struct model_volume *v, uint64_t kept)
{
	return kept == (v->entries >= 64 ? UINT64_MAX : (1ULL << v->entries) - 1);
}

bool model_volume_kept(const struct model_volume *v, const struct model_device *without)
{
	bool counts[MODEL_BRICKS] = { 0 };

	for (size_t i = 0; i < v->brick_count; i++) {
		const struct model_device *d = model_brick_disk(v, &v->bricks[i]);

		counts[i] = d && d != without;
	}
	return all_kept(v, entries_kept(v, counts));
}

static uint64_t entries_readable(const struct model_volume *v)
{
	bool counts[MODEL_BRICKS] = { 0 };

	for (size_t i = 0; i < v->brick_count; i++)
		counts[i] = model_brick_online(&v->bricks[i]);
	return entries_kept(v, counts);
}

bool model_volume_serves(const struct model_volume *v)
{
	size_t needed =
		v->disperse ? v->brick_count - (size_t)v->redundancy : v->brick_count / 2 + 1;

	return v->state == VOLUME_STARTED && count_bricks(v, model_brick_online) >= needed &&
	       all_kept(v, entries_readable(v));
}

void model_volume_written(struct model_volume *v)
{
	uint64_t entry = 1ULL << (v->next_entry++ % v->entries);

	for (size_t i = 0; i < v->brick_count; i++) {
		if (!model_brick_online(&v->bricks[i]))
			v->bricks[i].lacks |= entry;
	}
}

static void heal_brick(struct model_brick *b, uint64_t readable, int64_t count)
{
	for (int e = 0; e < 64 && count > 0 && b->lacks; e++) {
		if (!(b->lacks & readable & (1ULL << e)))
			continue;
		b->lacks &= ~(1ULL << e);
		count--;
	}
}

void model_heal(struct model_volume *v)
{
	struct model *m = v->bricks[0].node->model;
	int64_t now = sim_of(m)->now_ms, healed = (now - v->healed_ms) / m->heal_ms;
	uint64_t readable;

	if (healed <= 0)
		return;
	v->healed_ms = now;
	if (v->state != VOLUME_STARTED)
		return;
	readable = entries_readable(v);
	for (size_t i = 0; i < v->brick_count; i++)
		if (model_brick_online(&v->bricks[i]))
			heal_brick(&v->bricks[i], readable, healed);
}

/* ---- brick processes ----------------------------------------------------------------------------------- */

/*
 * glusterd starts a brick only where its own mark on the brick's directory says that it is of this
 * volume.
 */
static bool can_start(const struct model_volume *v, const struct model_brick *b)
{
	struct model_device *d = model_device_of_path(b->node, b->path);

	return b->node->up && b->node->glusterd && d && d == model_brick_disk(v, b);
}

void model_volume_start_bricks(struct model_volume *v, struct model_node *only)
{
	model_heal(v);
	for (size_t i = 0; i < v->brick_count; i++) {
		struct model_brick *b = &v->bricks[i];

		if ((!only || b->node == only) && can_start(v, b) && !b->running) {
			b->running = true;
			b->pid = ++b->node->model->next_pid;
		}
	}
}

/* ---- looking ---------------------------------------------------------------------------------------- */

int gluster_glusterd_ensure(struct node_host *h, bool start, struct glusterd_state *ret,
			    struct error *err)
{
	struct model_node *n = of(h)->node;
	enum fault fault;
	int rc = world_call_begin(of(h)->proc, false, "look for glusterd", &fault, err);

	if (rc < 0)
		return rc;
	if (!n->glusterd && start) {
		sim_trace(sim_of(n->model), "%-12s starts glusterd", n->name);
		n->glusterd = true;
		for (size_t i = 0; i < MODEL_VOLUMES; i++) {
			struct model_volume *v = &n->model->volumes[i];

			if (*v->name && v->state == VOLUME_STARTED)
				model_volume_start_bricks(v, n);
		}
	}
	*ret = (struct glusterd_state){ .running = n->glusterd, .pid = n->glusterd ? 100 : 0 };
	snprintf(ret->uuid, sizeof(ret->uuid), "%s", n->uuid);
	snprintf(ret->version, sizeof(ret->version), "10.3");
	return call_end(of(h)->proc, fault, 0, err);
}

/* What the brick's index lists: entries that it has, and another lacks. */
static int64_t others_lack(const struct model_volume *v, const struct model_brick *self, bool exact)
{
	int64_t now = sim_of(self->node->model)->now_ms;
	uint64_t lacked = 0;

	for (size_t i = 0; i < v->brick_count; i++) {
		const struct model_brick *b = &v->bricks[i];

		if (b != self && (exact || !b->added_ms || now - b->added_ms >= INDEX_LAG_MS))
			lacked |= b->lacks;
	}
	return __builtin_popcountll(lacked & ~self->lacks);
}

static struct model_brick *brick_at(struct model_volume *v, const char *address, const char *path)
{
	for (size_t i = 0; v && i < v->brick_count; i++) {
		if (streq(v->bricks[i].node->address, address) && streq(v->bricks[i].path, path))
			return &v->bricks[i];
	}
	return NULL;
}

int gluster_brick_usage(struct node_host *h, const char *volume, const char *path,
			struct brick_usage *ret, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model_device *d = model_device_of_path(n, path);
	struct model_volume *v = model_volume_in(n->model, n->trust, volume);
	struct model_brick *b = brick_at(v, n->address, path);

	if (of(h)->proc->dead)
		return error_set(err, ECANCELED, "the process is dead");
	if (!d)
		return error_set(err, model_is_dead(n, path) ? ENODEV : ENOENT, "%s is not mounted",
				 path);
	if (v)
		model_heal(v);
	*ret = (struct brick_usage){ .size = d->size, .free = d->size };
	if (b) {
		ret->pid = b->running ? 200 + b->pid : 0;
		ret->pending = others_lack(v, b, false);
	}
	return 0;
}

/* Every question to glusterd begins with this. */
static int ask(struct node_host *h, bool write, const char *what, enum fault *ret,
	       struct error *err)
{
	struct model_node *n = of(h)->node;
	int rc = world_call_begin(of(h)->proc, write, what, ret, err);

	if (rc < 0)
		return rc;
	if (!n->glusterd)
		return error_set(err, EAGAIN, "glusterd of %s does not answer", n->name);
	if (write && sim_fault(sim_of(n->model), BUSY))
		return error_set(err, EBUSY, "another transaction is in progress");
	return 0;
}

static void add_peer(struct gluster_peers *peers, const struct model_node *n)
{
	peers->items = xrealloc(peers->items, (peers->count + 1) * sizeof(*peers->items));
	peers->items[peers->count++] =
		(struct gluster_peer){ .uuid = xstrdup(n->uuid),
				       .address = xstrdup(n->address),
				       .connected = n->up && n->glusterd,
				       .state = GLUSTER_PEER_BEFRIENDED,
				       .state_text = xstrdup("Peer in Cluster") };
}

int gluster_peers_get(struct node_host *h, struct gluster_peers *ret, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct gluster_peers peers = { 0 };
	enum fault fault;
	int rc = ask(h, false, "peers", &fault, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < MODEL_NODES; i++) {
		struct model_node *other = &n->model->nodes[i];

		if (*other->name && other != n && other->trust == n->trust)
			add_peer(&peers, other);
	}
	rc = call_end(of(h)->proc, fault, 0, err);
	if (rc < 0)
		gluster_peers_done(&peers);
	else
		*ret = peers;
	return rc;
}

static void copy_brick(struct gluster_volume *to, const struct model_volume *v,
		       const struct model_brick *b, bool exact)
{
	struct gluster_brick *g = gluster_volume_add_brick(to, b->node->address, b->path);
	struct model_device *d = model_device_of_path(b->node, b->path);

	g->arbiter = b->arbiter;
	g->online = model_brick_online(b);
	g->pid = g->online ? 200 + b->pid : 0;
	g->size = g->free = d ? d->size : 0;
	g->pending = !g->online ? -1 : others_lack(v, b, exact);
}

int gluster_volume_get(struct node_host *h, const char *name, enum volume_look look,
		       struct gluster_volume *ret, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model_volume *v;
	struct gluster_volume found = { 0 };
	enum fault fault;
	bool exact;
	int rc = ask(h, false, "volume get", &fault, err);

	if (rc < 0)
		return rc;
	v = model_volume_in(n->model, n->trust, name);
	if (!v) {
		rc = call_end(of(h)->proc, fault, -ENOENT, err);
		return rc == -ENOENT ? error_set(err, ENOENT, "there is no volume %s", name) : rc;
	}
	model_heal(v);
	exact = look == VOLUME_LOOK_EXACT && n->model->world->mutant != MUTANT_INEXACT_HEAL;
	found = (struct gluster_volume){ .name = xstrdup(v->name),
					 .id = xstrdup(v->id),
					 .state = v->state,
					 .replica = v->replica,
					 .arbiter = v->arbiter,
					 .disperse = v->disperse,
					 .redundancy = v->redundancy,
					 .options = json_deep_copy(v->options) };
	for (size_t i = 0; i < v->brick_count; i++) {
		copy_brick(&found, v, &v->bricks[i], exact);
		if (look == VOLUME_LOOK_DEFINITION) {
			found.bricks[i].online = false;
			found.bricks[i].pending = -1;
		}
	}
	model_mutate_volume(of(h)->proc, &found);
	rc = call_end(of(h)->proc, fault, 0, err);
	if (rc < 0)
		gluster_volume_done(&found);
	else
		*ret = found;
	return rc;
}

/* ---- the trusted pool --------------------------------------------------------------------------------- */

static size_t members(const struct model *m, int trust)
{
	size_t count = 0;

	for (size_t i = 0; i < MODEL_NODES; i++)
		count += *m->nodes[i].name && m->nodes[i].trust == trust;
	return count;
}

static bool has_volumes(const struct model *m, int trust)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		if (*m->volumes[i].name && m->volumes[i].trust == trust)
			return true;
	}
	return false;
}

static int probe(struct model_node *n, struct model_node *other, struct error *err)
{
	struct model *m = n->model;

	if (!other || !other->up || !other->glusterd)
		return error_set(err, EHOSTUNREACH, "the other node does not answer");
	if (other->trust == n->trust)
		return 0;
	if (members(m, other->trust) > 1 || has_volumes(m, other->trust))
		return error_set(err, EXDEV, "%s belongs to another trusted pool", other->name);
	sim_trace(sim_of(m), "%-12s takes %s into the trusted pool", n->name, other->name);
	other->trust = n->trust;
	return 0;
}

int gluster_peer_probe(struct node_host *h, const char *address, struct error *err)
{
	struct model_node *n = of(h)->node;
	enum fault fault;
	int rc = ask(h, true, "peer probe", &fault, err);

	if (rc < 0)
		return rc;
	rc = probe(n, model_node_at(n->model, address), err);
	return call_end(of(h)->proc, fault, rc, err);
}

static bool holds_brick(const struct model_node *n)
{
	const struct model *m = n->model;

	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		for (size_t k = 0; *m->volumes[i].name && k < m->volumes[i].brick_count; k++) {
			if (m->volumes[i].bricks[k].node == n)
				return true;
		}
	}
	return false;
}

int gluster_peer_detach(struct node_host *h, const char *address, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model_node *other = model_node_at(n->model, address);
	enum fault fault;
	int rc = ask(h, true, "peer detach", &fault, err);

	if (rc < 0)
		return rc;
	if (!other || other->trust != n->trust)
		return call_end(of(h)->proc, fault, 0, err);
	if (holds_brick(other))
		return error_set(err, EBUSY, "%s holds bricks of the cluster", other->name);
	sim_trace(sim_of(n->model), "%-12s lets go of %s", n->name, other->name);
	other->trust = n->model->next_trust++;
	return call_end(of(h)->proc, fault, 0, err);
}

/* ---- changing volumes ----------------------------------------------------------------------------------- */

static bool in_any_volume(struct model *m, const struct model_node *n, const char *path)
{
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		if (*m->volumes[i].name && brick_at(&m->volumes[i], n->address, path))
			return true;
	}
	return false;
}

/* What is made a brick has to lie on the file system that its own record names. */
static void check_own(struct model_node *n, const struct model_device *d, const char *root)
{
	const char *id = model_id_of_root(root), *marked = jstr(model_marker(n, root), "id");
	cleanup_free char *name = xasprintf("brick.%s", id);
	const json_t *record = json_object_get(n->records, name);

	if (!streq(marked, id))
		sim_fail(sim_of(n->model), "%s of %s is made a brick, but is marked as %s", root,
			 n->name, marked ? marked : "nobody's");
	if (model_own_root(d, root) && record && !streq(jstr(record, "uuid"), d->uuid))
		sim_fail(sim_of(n->model),
			 "%s of %s is made a brick, but lies on %s, not on its own file system",
			 root, n->name, d->name);
}

/*
 * By force, glusterd makes the last directory of the path wherever the one above it is: on the root
 * file system, too. So whoever tells it has to know that the brick is mounted.
 */
static int place_brick(struct model_node *n, const char *path, struct error *err)
{
	cleanup_free char *root = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	struct model_device *d = model_device_of_path(n, root);

	if (!d && json_object_get(n->root_dirs, root) && !json_object_get(n->dead_mounts, root))
		sim_fail(sim_of(n->model), "brick %s of %s is made on the root file system", path,
			 n->name);
	if (!d || (!streq(root, d->mounted) && !model_marker(n, root)))
		return error_set(err, EIO, "%s is not there on %s", root, n->name);
	check_own(n, d, root);
	return 0;
}

/* A new brick "ADDRESS:/path" for a volume, with all of glusterd's checks. */
static int new_brick(struct model_node *n, const char *text, struct model_brick *ret,
		     struct error *err)
{
	const char *colon = strstr(text, ":/");
	cleanup_free char *address = xstrndup(text, colon ? (size_t)(colon - text) : 0);
	struct model_node *on = model_node_at(n->model, address);

	if (!colon || !on || on->trust != n->trust || !on->up || !on->glusterd)
		return error_set(err, EIO, "%s is not on a connected peer", text);
	*ret = (struct model_brick){ .node = on };
	snprintf(ret->path, sizeof(ret->path), "%s", colon + 1);
	if (in_any_volume(n->model, on, ret->path))
		return error_set(err, EIO, "%s is already part of a volume", text);
	return place_brick(on, ret->path, err);
}

/* glusterd puts its mark on the brick's directory. */
static void mark_brick(const struct model_volume *v, const struct model_brick *b)
{
	struct model_device *d = model_device_of_path(b->node, b->path);

	if (!d->volumes)
		d->volumes = json_object();
	json_object_set_new(d->volumes, b->path, json_string(v->id));
}

/* The pool that is meant by who acts on the volume of that name. */
static const char *uid_meant(struct node_host *h, const char *volume)
{
	return proc_first_read(of(h)->proc, &KIND_STORAGEPOOL, volume);
}

static int step_create(struct node_host *h, const struct volume_step *s, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model *m = n->model;
	struct model_volume *v = m->volumes;
	struct model_volume made = { .trust = n->trust,
				     .replica = s->replica ? s->replica : 1,
				     .arbiter = s->arbiter,
				     .disperse = s->disperse,
				     .redundancy = s->redundancy,
				     .entries = 5 + (int)sim_below(sim_of(m), 60),
				     .healed_ms = sim_of(m)->now_ms };
	const char *uid = uid_meant(h, s->volume);

	if (model_volume_in(m, n->trust, s->volume))
		return error_set(err, EEXIST, "volume %s exists", s->volume);
	for (size_t i = 0; i < s->bricks.count; i++) {
		int rc = new_brick(n, s->bricks.items[i], &made.bricks[i], err);

		if (rc < 0)
			return rc;
		made.bricks[i].arbiter = s->arbiter && i == s->bricks.count - 1;
	}
	while (*v->name)
		v++;
	made.brick_count = s->bricks.count;
	snprintf(made.name, sizeof(made.name), "%s", s->volume);
	snprintf(made.id, sizeof(made.id), "%08x-0000-4000-8000-000000000000",
		 (unsigned)prng_next(&m->world->ids));
	snprintf(made.pool_uid, sizeof(made.pool_uid), "%s", uid ? uid : "");
	made.options = json_object();
	made.dirs = json_object();
	made.infos = json_object();
	made.copies = json_object();
	made.archived = json_object();
	*v = made;
	for (size_t i = 0; i < v->brick_count; i++)
		mark_brick(v, &v->bricks[i]);
	return 0;
}

/* A brick that has just come has nothing yet. */
static struct model_brick empty_brick(struct model_volume *v, struct model_brick b)
{
	b.running = true;
	b.pid = ++b.node->model->next_pid;
	b.lacks = v->entries >= 64 ? UINT64_MAX : (1ULL << v->entries) - 1;
	b.added_ms = sim_of(b.node->model)->now_ms;
	mark_brick(v, &b);
	return b;
}

static int step_add(struct model_node *n, struct model_volume *v, const struct volume_step *s,
		    struct error *err)
{
	struct model_brick b;
	int rc = new_brick(n, s->bricks.items[0], &b, err);

	if (rc < 0)
		return rc;
	if (v->brick_count == MODEL_BRICKS || s->replica != (int)v->brick_count + 1)
		return error_set(err, EIO, "the replica count is wrong");
	v->bricks[v->brick_count++] = empty_brick(v, b);
	v->replica = s->replica;
	return 0;
}

static struct model_brick *brick_of_text(struct model_volume *v, const char *text)
{
	const char *colon = strstr(text, ":/");
	cleanup_free char *address = xstrndup(text, colon ? (size_t)(colon - text) : 0);

	return colon ? brick_at(v, address, colon + 1) : NULL;
}

/* Every entry keeps enough whole copies or parts: called after each step that gives up a brick. */
static void check_kept(const struct model_volume *v, bool before, const char *gone)
{
	if (before && !model_volume_kept(v, NULL))
		sim_fail(sim_of(v->bricks[0].node->model),
			 "%s loses entries: too few of their copies or parts are whole without %s",
			 v->name, gone);
}

static int step_remove(struct model_node *n, struct model_volume *v, const struct volume_step *s,
		       struct error *err)
{
	struct model_brick *b = brick_of_text(v, s->bricks.items[0]);
	size_t whole;
	bool kept;

	if (!b || s->replica != (int)v->brick_count - 1)
		return error_set(err, EIO, "there is no such brick, or the replica count is wrong");
	model_heal(v);
	kept = model_volume_kept(v, NULL);
	whole = count_bricks(v, model_brick_whole);
	if (model_brick_whole(b) && whole - 1 < (size_t)s->replica)
		sim_fail(sim_of(n->model),
			 "%s loses a whole copy while only %d of %d others are whole", v->name,
			 (int)whole - 1, s->replica);
	memmove(b, b + 1, (size_t)(v->bricks + v->brick_count - (b + 1)) * sizeof(*b));
	v->brick_count--;
	v->replica = s->replica;
	check_kept(v, kept, s->bricks.items[0]);
	return 0;
}

static int step_replace(struct model_node *n, struct model_volume *v, const struct volume_step *s,
			struct error *err)
{
	struct model_brick *old = brick_of_text(v, s->bricks.items[0]);
	struct model_brick b;
	int rc = new_brick(n, s->bricks.items[1], &b, err);
	bool kept;

	if (rc < 0)
		return rc;
	if (!old)
		return error_set(err, EIO, "there is no such brick");
	model_heal(v);
	kept = model_volume_kept(v, NULL);
	b.arbiter = old->arbiter;
	*old = empty_brick(v, b);
	check_kept(v, kept, s->bricks.items[0]);
	return 0;
}

/* Who stops or deletes a volume means the pool that it was made for, and that is to go. */
static void check_meant(struct node_host *h, const struct model_volume *v, const char *what)
{
	struct model *m = of(h)->node->model;
	const char *meant = uid_meant(h, v->name);
	cleanup_json json_t *pool = NULL;

	if (*v->pool_uid && meant && !streq(meant, v->pool_uid))
		sim_fail(sim_of(m), "to %s volume %s was decided for another pool of that name",
			 what, v->name);
	if (kube_get(m->world->late, &KIND_STORAGEPOOL, "default", v->name, &pool, NULL) == 0 &&
	    streq(object_uid(pool), v->pool_uid) && !object_deleting(pool))
		sim_fail(sim_of(m), "%s volume %s, whose pool is not to go", what, v->name);
}

/* A whole volume is its claim's data. */
static void check_unused(struct model_node *n, const char *name)
{
	cleanup_json json_t *pv = NULL;

	if (kube_get(n->model->world->late, &KIND_PV, NULL, name, &pv, NULL) == 0 &&
	    !object_deleting(pv) && streq(jstr(pv, "status", "phase"), "Bound"))
		sim_fail(sim_of(n->model), "volume %s is deleted while a claim has it", name);
}

/* A directory that was made by half is nobody's yet, and is made again elsewhere. */
static void check_empty(struct model_node *n, const struct model_volume *v)
{
	const char *key;
	json_t *size;

	json_object_foreach (v->dirs, key, size) {
		cleanup_json json_t *pv = NULL;

		kube_get(n->model->world->late, &KIND_PV, NULL, key, &pv, NULL);
		if (json_object_get(v->infos, key) ||
		    (pv && streq(object_label(pv, "quartermaster.storage/pool"), v->name)))
			sim_fail(sim_of(n->model), "volume %s is deleted with %s in it", v->name,
				 key);
	}
	if (json_object_size(v->infos) > 0 || json_object_size(v->archived) > 0)
		sim_fail(sim_of(n->model), "volume %s is deleted with something kept in it",
			 v->name);
}

static int step_delete(struct model_node *n, struct model_volume *v, struct error *err)
{
	if (v->state == VOLUME_STARTED)
		return error_set(err, EIO, "volume %s is started", v->name);
	check_empty(n, v);
	check_unused(n, v->name);
	json_decref(v->options);
	json_decref(v->dirs);
	json_decref(v->infos);
	json_decref(v->copies);
	json_decref(v->archived);
	*v = (struct model_volume){ 0 };
	return 0;
}

static void step_stop(struct model_volume *v)
{
	v->state = VOLUME_STOPPED;
	for (size_t i = 0; i < v->brick_count; i++)
		v->bricks[i].running = false;
}

static int apply(struct node_host *h, const struct volume_step *s, struct error *err)
{
	struct model_node *n = of(h)->node;
	struct model_volume *v = model_volume_in(n->model, n->trust, s->volume);

	if (s->kind == STEP_CREATE)
		return step_create(h, s, err);
	if (!v)
		return error_set(err, ENOENT, "there is no volume %s", s->volume);
	if (s->id[0] && !streq(s->id, v->id) &&
	    n->model->world->mutant != MUTANT_NAMES_ALONE)
		return error_set(err, ESTALE, "volume %s is another one", s->volume);
	switch (s->kind) {
	case STEP_SET:
		json_object_update(v->options, s->options);
		return 0;
	case STEP_START:
	case STEP_START_FORCE:
		v->state = VOLUME_STARTED;
		model_volume_start_bricks(v, NULL);
		return 0;
	case STEP_ADD_BRICK:
		return step_add(n, v, s, err);
	case STEP_REMOVE_BRICK:
		return step_remove(n, v, s, err);
	case STEP_REPLACE_BRICK:
		return step_replace(n, v, s, err);
	case STEP_STOP:
		check_meant(h, v, "stop");
		step_stop(v);
		return 0;
	case STEP_DELETE:
		check_meant(h, v, "delete");
		return step_delete(n, v, err);
	default:
		return 0;
	}
}

int gluster_volume_apply(struct node_host *h, const struct volume_step *step, struct error *err)
{
	struct model_node *n = of(h)->node;
	enum fault fault;
	char what[120];
	int rc;

	snprintf(what, sizeof(what), "%s %s", volume_step_name(step->kind), step->volume);
	rc = ask(h, true, what, &fault, err);
	if (rc < 0)
		return rc;
	rc = apply(h, step, err);
	if (rc < 0)
		sim_trace(sim_of(n->model), "%-12s %s: %s", n->name, what, error_text(err, rc));
	return call_end(of(h)->proc, fault, rc, err);
}
