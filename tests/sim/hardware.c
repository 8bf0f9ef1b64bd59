/* SPDX-License-Identifier: Apache-2.0 */
#include "hardware.h"

#include "base/mem.h"
#include "systems/glusterfs/cluster.h"

#define MINUTE_MS 60000
#define POLL_MS 200
#define WRITE_EVERY_MS 4000

static struct sim *sim_of(struct scenario *s)
{
	return &s->world.sim;
}

/* From some on to that many more ms. */
static int64_t between(struct scenario *s, int64_t least, int64_t most)
{
	return least + sim_below(sim_of(s), most - least + 1);
}

/* ---- things that go on by timers ------------------------------------------------------------------- */

enum waits_for { NEW_BRICK, PREPARED_BRICK, EMPTY_POOL }; /* of what waits for a write of a pool */

struct story { /* what happens to whom, and how far it has come */
	struct scenario *s;
	enum waits_for waits_for;
	struct model_node *n, *other;
	struct model_device *d, *with;
	int step, tries;
	char name[32];
};

static void later(struct story *t, int64_t ms, sim_fn fn)
{
	sim_after(sim_of(t->s), ms, fn, t);
}

static struct story *story_new(struct scenario *s, struct model_node *n, struct model_device *d)
{
	struct story *t = xcalloc(1, sizeof(*t));

	*t = (struct story){ .s = s, .n = n, .d = d };
	return t;
}

/* The faults have ended: all is repaired already. */
static bool story_is_over(struct story *t)
{
	if (!t->s->calm)
		return false;
	free(t);
	return true;
}

static struct sim_node *declared(struct story *t)
{
	return &t->s->nodes[t->n - t->s->model.nodes];
}

static void power_back(void *arg)
{
	model_node_up(arg);
}

static void off_for(struct scenario *s, struct model_node *n, int64_t ms)
{
	model_node_down(n);
	sim_after(sim_of(s), ms, power_back, n);
}

/* ---- who --------------------------------------------------------------------------------------------- */

static struct model_volume *any_volume(struct scenario *s)
{
	size_t first = (size_t)sim_below(sim_of(s), MODEL_VOLUMES);

	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &s->model.volumes[(first + i) % MODEL_VOLUMES];

		if (*v->name)
			return v;
	}
	return NULL;
}

/* A machine that is on, and the disk of a brick there. */
static struct story *any_brick(struct scenario *s)
{
	struct model_volume *v = any_volume(s);
	size_t first = v ? (size_t)sim_below(sim_of(s), (int64_t)v->brick_count) : 0;

	for (size_t i = 0; v && i < v->brick_count; i++) {
		struct model_brick *b = &v->bricks[(first + i) % v->brick_count];
		struct model_device *d = model_brick_disk(v, b);

		if (b->node->up && d && !d->away)
			return story_new(s, b->node, d);
	}
	return NULL;
}

static int unlisted(const struct sim_node *n)
{
	for (int i = 0; i < 3; i++)
		if (!n->devices[i])
			return i;
	return -1;
}

/* ---- machines that are off ----------------------------------------------------------------------------- */

static void stalled(struct scenario *s);

static void long_off(struct scenario *s)
{
	struct model_node *n = &s->model.nodes[sim_below(sim_of(s), s->node_count)];

	if (sim_chance(sim_of(s), 5000))
		stalled(s);
	off_for(s, n, between(s, 6 * MINUTE_MS, 20 * MINUTE_MS));
}

/* A person who does not expect it back. */
static void give_up_node(struct scenario *s, struct model_node *n)
{
	struct sim_node *node = &s->nodes[n - s->model.nodes];
	bool kept[MODEL_DEVICES] = { 0 };
	int count = 0;

	if (!node->wanted)
		return;
	if (scenario_may_lose(s) && sim_chance(sim_of(s), 5000)) {
		scenario_delete_node(s, node);
		return;
	}
	for (int i = 0; i < MODEL_DEVICES; i++)
		count += kept[i] = node->devices[i] && sim_chance(sim_of(s), 3000);
	if (count == 0) /* its others, if it has any: it may come back with them */
		kept[unlisted(node) >= 0 ? unlisted(node) : 0] = true;
	memcpy(node->devices, kept, sizeof(kept));
	scenario_edit_node(s, node);
}

static bool is_behind(const struct model_volume *v, const struct model_node *n)
{
	for (size_t i = 0; i < v->brick_count; i++)
		if (v->bricks[i].node == n && model_brick_online(&v->bricks[i]) &&
		    v->bricks[i].lacks)
			return true;
	return false;
}

/* As soon as the first is back, and behind, the second goes, and is given up. */
static void second_goes(void *arg)
{
	struct story *t = arg;
	struct scenario *s = t->s;
	bool behind = false;

	if (story_is_over(t))
		return;
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &s->model.volumes[i];

		if (!*v->name)
			continue;
		model_heal(v);
		behind |= is_behind(v, t->n);
	}
	if (!behind && t->tries++ < 300) {
		later(t, POLL_MS, second_goes);
		return;
	}
	off_for(s, t->other, between(s, 7 * MINUTE_MS, 15 * MINUTE_MS));
	give_up_node(s, t->other);
	free(t);
}

static void one_after_the_other(struct scenario *s)
{
	struct story *t = any_brick(s);
	struct model_volume *v = any_volume(s);
	int64_t off = between(s, 30000, 90000);

	for (size_t i = 0; t && v && i < v->brick_count && !t->other; i++)
		if (v->bricks[i].node != t->n && v->bricks[i].node->up)
			t->other = v->bricks[i].node;
	if (!t || !t->other) {
		free(t);
		return;
	}
	off_for(s, t->n, off);
	later(t, off, second_goes);
}

/* ---- disks ------------------------------------------------------------------------------------------------ */

static void foreign_disk(struct scenario *s);

static void disk_returns(void *arg)
{
	struct story *t = arg;

	if (story_is_over(t))
		return;
	model_disk_on(t->n, t->d, t->name);
	free(t);
}

static void disk_vanishes(struct scenario *s)
{
	struct story *t = any_brick(s);

	if (!t)
		return;
	snprintf(t->name, sizeof(t->name), "%s", t->d->name);
	if (sim_chance(sim_of(s), 5000))
		snprintf(t->name, sizeof(t->name), "/dev/sd%c",
			 (int)('m' + (t->d - t->n->devices)));
	model_disk_off(t->n, t->d);
	later(t, between(s, 2000, sim_chance(sim_of(s), 5000) ? MINUTE_MS : 8 * MINUTE_MS),
	      disk_returns);
	foreign_disk(s);
}

static void swap_names(struct model_node *n, struct model_device *a, struct model_device *b)
{
	char name[32];

	memcpy(name, a->name, sizeof(name));
	memcpy(a->name, b->name, sizeof(name));
	memcpy(b->name, name, sizeof(name));
	sim_trace(&n->model->world->sim, "%-12s has %s and %s exchanged", n->name, a->name,
		  b->name);
}

static void swap_at_reboot(struct scenario *s)
{
	struct story *t = any_brick(s);
	struct model_device *other = t ? &t->n->devices[sim_below(sim_of(s), 3)] : NULL;

	if (t && other != t->d && !other->away) {
		off_for(s, t->n, between(s, 3000, 30000));
		swap_names(t->n, t->d, other);
	}
	free(t);
}

static void swap_now(void *arg)
{
	struct story *t = arg;

	if (story_is_over(t))
		return;
	if (t->n->up && !t->d->away && !t->with->away) {
		off_for(t->s, t->n, between(t->s, 3000, 30000));
		swap_names(t->n, t->d, t->with);
	}
	free(t);
}

/* The brick has only just been prepared: it is not in its volume yet. */
static void sick_now(void *arg)
{
	struct story *t = arg;

	if (story_is_over(t))
		return;
	for (int i = 0; i < MODEL_DEVICES; i++)
		t->n->devices[i].sick_until_ms =
			sim_of(t->s)->now_ms + between(t->s, 30000, 3 * MINUTE_MS);
	if (t->n->up)
		off_for(t->s, t->n, between(t->s, 1000, 4000));
	free(t);
}

static void leader_freezes(void *arg);

static bool is_in_volume(const json_t *pool, const char *id)
{
	const json_t *b;
	size_t i;

	json_array_foreach (jget(pool, "status", "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			return true;
	return false;
}

/* Is it what the story waits for? */
static bool has_come(struct story *t, const json_t *pool, const json_t *b)
{
	if (t->waits_for == NEW_BRICK)
		return streq(jstr(b, "node"), t->n->name) && streq(jstr(b, "device"), t->name) &&
		       !jbool(b, "prepared");
	if (t->waits_for != PREPARED_BRICK || !jbool(b, "prepared") || jstr(b, "parent") ||
	    is_in_volume(pool, jstr(b, "id")))
		return false;
	t->n = model_node_named(&t->s->model, jstr(b, "node"));
	return t->n;
}

/*
 * A brick is planned on what a person lets be wiped: before it is made, that name is another
 * disk's. One is prepared: before it is used, it cannot be mounted. A pool is found to be empty and
 * may go: whoever deletes it stops.
 */
void hardware_pool_event(struct scenario *s, const json_t *pool)
{
	struct story *t = s->armed;
	const json_t *b;
	size_t i;

	if (!t || s->calm)
		return;
	if (t->waits_for == EMPTY_POOL && volume_is_to_go(pool)) {
		s->armed = NULL;
		later(t, between(s, 5, 25), leader_freezes);
		return;
	}
	json_array_foreach (jget(pool, "spec", "bricks"), i, b) {
		if (!has_come(t, pool, b))
			continue;
		s->armed = NULL;
		later(t, 0, t->waits_for == NEW_BRICK ? swap_now : sick_now);
		return;
	}
}

/* New devices for a new pool, all of which may be wiped: some had something on them. */
static void wipe_and_swap(struct scenario *s)
{
	struct story *t = s->armed ? NULL : any_brick(s);

	for (int i = 0; i < s->node_count; i++) {
		struct sim_node *n = &s->nodes[i];
		struct model_device *device;
		int d = unlisted(n);

		if (!n->wanted || d < 0)
			continue;
		device = model_device_at_slot(&s->model.nodes[i], d);
		if (!device)
			continue;
		if (!*device->signature && sim_chance(sim_of(s), 5000))
			snprintf(device->signature, sizeof(device->signature), "foreign");
		n->devices[d] = n->wipe[d] = true;
		scenario_edit_node(s, n);
		if (t && t->n == &s->model.nodes[i]) {
			t->with = device;
			snprintf(t->name, sizeof(t->name), "%s", device->name);
			s->armed = t;
		}
	}
	if (t && s->armed != t)
		free(t);
}

/* A disk with somebody's data is named; a person says later that it may go. */
static void wiped_later(void *arg)
{
	struct story *t = arg;

	if (story_is_over(t))
		return;
	declared(t)->wipe[t->step] = true;
	scenario_edit_node(t->s, declared(t));
	free(t);
}

static void foreign_disk(struct scenario *s)
{
	int i = (int)sim_below(sim_of(s), s->node_count), d = unlisted(&s->nodes[i]);
	struct model_device *device = d < 0 ? NULL : model_device_at_slot(&s->model.nodes[i], d);
	struct story *t;

	if (!device || !s->nodes[i].wanted || *device->signature)
		return;
	snprintf(device->signature, sizeof(device->signature), "foreign");
	s->nodes[i].devices[d] = true;
	scenario_edit_node(s, &s->nodes[i]);
	t = story_new(s, &s->model.nodes[i], NULL);
	t->step = d;
	later(t, between(s, 1000, 2 * MINUTE_MS), wiped_later);
}

/* A brick moves, because a person takes its device away; or none does. */
static void sick_at_reboot(struct scenario *s)
{
	struct story *t = any_brick(s);
	struct sim_node *node = t ? declared(t) : NULL;
	int slot = t ? model_device_slot(t->d) : -1;

	if (t && !s->armed && node->wanted && slot >= 0 && sim_chance(sim_of(s), 7000)) {
		node->devices[slot] = false;
		if (!scenario_devices(node))
			node->devices[(slot + 1) % 3] = true;
		scenario_edit_node(s, node);
		t->waits_for = PREPARED_BRICK;
		s->armed = t;
		return;
	}
	if (t) {
		t->d->sick_until_ms = sim_of(s)->now_ms + between(s, 10000, 4 * MINUTE_MS);
		off_for(s, t->n, between(s, 2000, 10000));
	}
	free(t);
}

static void reinstall_now(void *arg)
{
	struct story *t = arg;

	if (story_is_over(t))
		return;
	t->d->sick_until_ms = sim_of(t->s)->now_ms + between(t->s, 10000, 3 * MINUTE_MS);
	off_for(t->s, t->n, between(t->s, 2000, 20000));
	model_records_lost(t->n);
	free(t);
}

/*
 * Often it is done because something is wrong with a disk; or only the records go, while the agent
 * is down.
 */
static void reinstall(struct scenario *s)
{
	struct story *t = any_brick(s);
	int64_t wait = 0;

	if (!t)
		return;
	if (sim_chance(sim_of(s), 7000)) {
		wait = between(s, 20000, 60000);
		t->d->sick_until_ms = sim_of(s)->now_ms + wait + 1000;
		off_for(s, t->n, 3000);
	}
	later(t, wait, reinstall_now);
}

/* ---- a dead disk, by the book ------------------------------------------------------------------------------ */

/* Can what is on it be done without? A person who looks at the pool sees it. */
static bool can_lose(struct story *t)
{
	struct model *m = t->n->model;

	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &m->volumes[i];

		if (*v->name && !model_volume_kept(v, t->d))
			return false;
	}
	return true;
}

static void disk_exchanged(void *arg)
{
	struct story *t = arg;
	struct sim_node *node = declared(t);
	int slot = model_device_slot(t->d);

	if (story_is_over(t))
		return;
	if (t->step == 0) {
		if (can_lose(t))
			model_disk_exchange(t->n, t->d);
		model_disk_on(t->n, t->d, t->name);
		t->step = 1;
		later(t, between(t->s, 0, 20000), disk_exchanged);
		return;
	}
	if (node->wanted && slot >= 0 && !node->devices[slot]) {
		node->devices[slot] = true;
		scenario_edit_node(t->s, node);
	}
	free(t);
}

static void disk_dies(struct scenario *s)
{
	struct story *t = any_brick(s);
	struct sim_node *node = t ? declared(t) : NULL;

	if (!t || s->bricks < 2 || model_device_slot(t->d) < 0) {
		free(t);
		return;
	}
	snprintf(t->name, sizeof(t->name), "%s", t->d->name);
	model_disk_off(t->n, t->d);
	if (node->wanted && sim_chance(sim_of(s), 7000)) {
		node->devices[model_device_slot(t->d)] = false;
		scenario_edit_node(s, node);
	}
	later(t, between(s, 5000, 8 * MINUTE_MS), disk_exchanged);
}

/* ---- pools, and processes that know nothing of it ------------------------------------------------------------ */

static void stall(struct scenario *s, int64_t ms)
{
	int64_t who = sim_below(sim_of(s), s->node_count + 1);
	struct proc *p = who == s->node_count ? &s->operators[0] : &s->model.nodes[who].agent;

	sim_trace(sim_of(s), "%-12s hears of nothing for %lld s", p->name, (long long)ms / 1000);
	p->stalled_until_ms = sim_of(s)->now_ms + ms;
}

static void stalled(struct scenario *s)
{
	stall(s, between(s, MINUTE_MS, 8 * MINUTE_MS));
	for (int64_t i = sim_below(sim_of(s), 3); i > 0; i--)
		scenario_event(s);
}

/* The agent that leads, or NULL. */
static struct model_node *leader(struct scenario *s)
{
	cleanup_json json_t *lease = NULL;

	kube_get(s->world.late, &KIND_LEASE, SIM_NS, "cluster-" SIM_DEPLOYMENT "-" SIM_CLUSTER,
		 &lease, NULL);
	return jstr(lease, "spec", "holderIdentity")
		       ? model_node_named(&s->model, jstr(lease, "spec", "holderIdentity"))
		       : NULL;
}

/* Whoever leads instead of it dies, until it leads again with what it knew. */
static void it_leads_again(void *arg)
{
	struct story *t = arg;
	struct model_node *n;

	if (story_is_over(t))
		return;
	n = leader(t->s);
	if (n == t->n || t->tries++ > 40) {
		free(t);
		return;
	}
	if (n)
		proc_kill(&n->agent, 20000);
	later(t, 3000, it_leads_again);
}

/*
 * Who leads has begun to delete the pool, stops in the middle of it, and hears of nothing for long.
 */
static void leader_freezes(void *arg)
{
	struct story *t = arg;

	if (story_is_over(t))
		return;
	t->n = leader(t->s);
	if (!t->n) {
		free(t);
		return;
	}
	sim_trace(sim_of(t->s), "%-12s stops for a while, and hears of nothing then",
		  t->n->agent.name);
	t->n->agent.frozen_until_ms = sim_of(t->s)->now_ms + 40000;
	t->n->agent.stalled_until_ms = sim_of(t->s)->now_ms + 8 * MINUTE_MS;
	later(t, between(t->s, 80000, 3 * MINUTE_MS), it_leads_again);
}

/* With all that is in it: then it can go, and another comes. */
static void pool_deleted(struct scenario *s)
{
	cleanup_json json_t *pools = NULL;
	json_t *pool;
	size_t i;

	if (!s->armed && sim_chance(sim_of(s), 6000)) {
		s->armed = story_new(s, NULL, NULL);
		s->armed->waits_for = EMPTY_POOL;
	} else if (sim_chance(sim_of(s), 5000)) {
		stall(s, between(s, 20000, 6 * MINUTE_MS));
	}
	kube_list(s->world.late, &KIND_STORAGEPOOL, SIM_NS, NULL, &pools, NULL, NULL);
	json_array_foreach (pools, i, pool) {
		if (jstr(pool, "spec", "parent") || object_deleting(pool))
			continue;
		sim_trace(sim_of(s), "a person deletes pool %s", object_name(pool));
		kube_delete(s->world.late, &KIND_STORAGEPOOL, SIM_NS, object_name(pool), NULL,
			    NULL);
		s->pools_deleted = true;
		break;
	}
	for (i = 0; i < SIM_CLAIMS; i++)
		if (s->claims[i].wanted)
			scenario_delete_claim(s, &s->claims[i]);
	if (sim_chance(sim_of(s), 5000))
		proc_kill(&s->operators[0], between(s, 1000, 20000));
}

/* ---- all of them ------------------------------------------------------------------------------------------------ */

static void clients_write(void *arg)
{
	struct scenario *s = arg;

	if (s->calm)
		return;
	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &s->model.volumes[i];

		if (!*v->name)
			continue;
		model_heal(v);
		if (model_volume_serves(v))
			model_volume_written(v);
	}
	sim_after(sim_of(s), between(s, 500, WRITE_EVERY_MS), clients_write, s);
}

void hardware_clients(struct scenario *s)
{
	sim_after(sim_of(s), WRITE_EVERY_MS, clients_write, s);
}

static const struct {
	void (*happens)(struct scenario *s);
	int minutes;
} events[HARDWARE_EVENTS] = {
	{ one_after_the_other, 8 }, { reinstall, 2 },	  { sick_at_reboot, 3 },
	{ disk_dies, 3 },	    { pool_deleted, 5 },  { wipe_and_swap, 1 },
	{ disk_vanishes, 3 },	    { swap_at_reboot, 1 }, { long_off, 21 },
};

void hardware_event(struct scenario *s, int kind)
{
	events[kind].happens(s);
}

int64_t hardware_takes_ms(int kind)
{
	return events[kind].minutes * MINUTE_MS;
}

/* The name under which a disk was made a brick that has (not) lost it since; -1: it is none. */
static int recorded_slot(const struct model_node *n, const struct model_device *d, bool lost)
{
	const char *name;
	json_t *record;

	json_object_foreach (n->records, name, record)
		if (*d->uuid && streq(jstr(record, "uuid"), d->uuid) && jstr(record, "device") &&
		    (jbool(record, "away") || jbool(record, "replaced")) == lost)
			return jstr(record, "device")[strlen("/dev/sd")] - 'b';
	return -1;
}

/* Does a volume have a brick on that disk (at that path, unless it is NULL)? */
static bool is_used(const struct model_node *n, const struct model_device *d, const char *path)
{
	struct model *m = n->model;

	for (size_t i = 0; i < MODEL_VOLUMES; i++) {
		struct model_volume *v = &m->volumes[i];

		for (size_t k = 0; *v->name && k < v->brick_count; k++)
			if (v->bricks[k].node == n && model_brick_disk(v, &v->bricks[k]) == d &&
			    (!path || streq(v->bricks[k].path, path)))
				return true;
	}
	return false;
}

/* Every disk has the name again that was meant, that of a brick before one that came back late. */
static bool repair_names(struct model_node *n)
{
	int slots[3] = { -1, -1, -1 };
	bool taken[3] = { false }, moved = false;

	/* who has it already, then who lost it unseen, then who was told to have lost it */
	for (int i = 0; i < 9; i++) {
		struct model_device *d = &n->devices[i % 3];
		int slot = recorded_slot(n, d, i >= 6);

		if (slot >= 0 && slot < 3 && slots[i % 3] < 0 && !taken[slot] &&
		    (i >= 3 || slot == model_device_slot(d)))
			taken[slots[i % 3] = slot] = true;
	}
	for (int d = 0; d < 3; d++) {
		for (int slot = 0; slots[d] < 0 && slot < 3; slot++)
			if (!taken[slot])
				taken[slots[d] = slot] = true;
		moved |= model_device_slot(&n->devices[d]) != slots[d];
	}
	if (moved)
		model_node_down(n);
	for (int d = 0; d < 3; d++)
		snprintf(n->devices[d].name, sizeof(n->devices[d].name), "/dev/sd%c",
			 'b' + slots[d]);
	return moved;
}

static bool is_recorded(const struct model_node *n, const char *key, const char *value)
{
	const char *name;
	json_t *record;

	json_object_foreach (n->records, name, record)
		if (streq(jstr(record, key), value))
			return true;
	return false;
}

/*
 * What was about to be freed when the records were lost is known to nobody: a person has to remove
 * it.
 */
static void clean_up(struct model_node *n, struct model_device *d)
{
	const char *root;
	json_t *marker;
	void *next;

	json_object_foreach_safe (d->trees, next, root, marker) {
		cleanup_free char *path = xasprintf("%s/brick", root);

		if (!is_recorded(n, "path", path) && !is_used(n, d, path))
			json_object_del(d->trees, root);
	}
	if (!*d->uuid || *d->mounted || is_recorded(n, "uuid", d->uuid) || is_used(n, d, NULL))
		return;
	model_device_clear(d);
	*d->signature = *d->uuid = 0;
}

static void repair_node(struct scenario *s, int i)
{
	struct model_node *n = &s->model.nodes[i];
	struct sim_node *node = &s->nodes[i];
	bool edit = false;

	n->agent.stalled_until_ms = n->agent.frozen_until_ms = 0;
	if (repair_names(n))
		sim_after(sim_of(s), 3000, power_back, n);
	for (int d = 0; d < 3; d++) {
		struct model_device *device = &n->devices[d];
		int slot = model_device_slot(device);
		bool foreign = node->devices[slot] && streq(device->signature, "foreign");

		device->sick_until_ms = 0;
		if (n->forgot)
			clean_up(n, device);
		if (device->away)
			model_disk_on(n, device, device->name);
		edit |= foreign && !node->wipe[slot];
		node->wipe[slot] |= foreign;
	}
	/* what was about to be added in place of a dead disk */
	if (node->wanted && !scenario_devices(node))
		edit = node->devices[0] = true;
	if (edit && node->wanted)
		scenario_edit_node(s, node);
}

void hardware_repair(struct scenario *s)
{
	s->calm = true;
	free(s->armed);
	s->armed = NULL;
	for (int i = 0; i < s->operator_count; i++)
		s->operators[i].stalled_until_ms = 0;
	for (int i = 0; i < s->node_count; i++)
		repair_node(s, i);
}

/* The id of a brick of a volume of which nothing is left; NULL: there is none. */
static const char *lost_brick(struct scenario *s, const char *pool, char id[static 64])
{
	const struct model_volume *v = model_volume_named(&s->model, pool);

	for (size_t i = 0; v && i < v->brick_count; i++) {
		const char *path = v->bricks[i].path;
		cleanup_free char *root = xstrndup(path, (size_t)(strrchr(path, '/') - path));

		if (model_brick_disk(v, &v->bricks[i]))
			continue;
		snprintf(id, 64, "%s", model_id_of_root(root));
		return id;
	}
	return NULL;
}

/*
 * A pool that does not know whether the others are whole says what a person has to do who does; or
 * the deployment says it, where what has the brick's place may be its own disk.
 */
static bool asks_to_give_up(struct scenario *s, const json_t *pool, const char *id)
{
	cleanup_free char *hint = xasprintf(POOL_ANNOTATION_LOST "=%s", id);
	cleanup_json json_t *list = NULL;
	const char *message = jstr(pool, "status", "message");
	const json_t *o;
	size_t i;

	if (message && strstr(message, POOL_ANNOTATION_LOST "="))
		return true;
	kube_list(s->world.late, &KIND_STORAGESTATUS, SIM_NS, NULL, &list, NULL, NULL);
	json_array_foreach (list, i, o)
		if (jstr(o, "status", "message") && strstr(jstr(o, "status", "message"), hint))
			return true;
	return false;
}

static void give_up_lost(struct scenario *s)
{
	cleanup_json json_t *pools = NULL;
	const json_t *pool;
	char id[64];
	size_t i;

	kube_list(s->world.late, &KIND_STORAGEPOOL, SIM_NS, NULL, &pools, NULL, NULL);
	json_array_foreach (pools, i, pool) {
		const char *name = object_name(pool);
		cleanup_json json_t *patch = NULL;

		if (!lost_brick(s, name, id) || !asks_to_give_up(s, pool, id) ||
		    streq(object_annotation(pool, POOL_ANNOTATION_LOST), id))
			continue;
		sim_trace(sim_of(s), "a person gives up brick %s of %s", id, name);
		patch = json_pack("{s{s{ss}}}", "metadata", "annotations", POOL_ANNOTATION_LOST,
				  id);
		kube_patch(s->world.late, &KIND_STORAGEPOOL, SIM_NS, name, NULL, KUBE_PATCH_MERGE,
			   patch, NULL, NULL);
	}
}

/* It is of a brick that was replaced, and back; or somebody's, in the place of one that is away. */
static bool is_to_be_erased(const json_t *report, const struct sim_node *node,
			    const struct model_device *d)
{
	int slot = model_device_slot(d);

	if (streq(jstr(report, "reason"), "OldDisk"))
		return streq(d->uuid, jstr(report, "uuid"));
	return streq(jstr(report, "reason"), "NotFound") && slot >= 0 && node->wipe[slot] &&
	       strstr(jstr(report, "message"), "erase that") && streq(d->signature, "foreign");
}

static void erase_by_advice(struct scenario *s, struct model_node *n, const json_t *report)
{
	struct model_device *d = model_device_named(n, jstr(report, "device"));

	if (!d || d->away || *d->mounted ||
	    !is_to_be_erased(report, &s->nodes[n - s->model.nodes], d))
		return;
	sim_trace(sim_of(s), "a person erases disk %d of %s (%s)", d->serial, n->name, d->name);
	if (is_used(n, d, NULL))
		sim_fail(sim_of(s), "%s of %s is told to be erased, but a volume has it", d->name,
			 n->name);
	model_device_clear(d);
	*d->signature = *d->uuid = 0;
}

void hardware_follow_advice(struct scenario *s)
{
	give_up_lost(s);
	for (int i = 0; i < s->node_count; i++) {
		struct model_node *n = &s->model.nodes[i];
		cleanup_json json_t *node = NULL;
		const json_t *d;
		size_t k;

		if (!n->up || kube_get(s->world.late, &KIND_STORAGENODE, SIM_NS, n->name, &node,
				       NULL) < 0)
			continue;
		json_array_foreach (jget(node, "status", "agent", "devices"), k, d)
			erase_by_advice(s, n, d);
	}
}
