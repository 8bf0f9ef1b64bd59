/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A brick that restarts is taken into use again by the devices that are in use. GlusterFS does not open
 * a locked file there anew (client.strict-locks, which is what makes the lock a fence): so it is opened
 * here, with a lock of its own, and the device above (linear.h) is switched to that. Nothing of the past
 * is remembered: the client says what it has open, and the old descriptor has to take a write.
 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "csi/copies.h"
#include "csi/node_service.h"
#include "h2/hub.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>

#define LOOK_MS 2000
#define AGAIN_MAX_MS 60000 /* until what could not be switched is tried again */
#define SWITCH_MS 30000 /* a client waits 10 s for a brick that does not answer */

/* What is remembered of a device that could not be switched. */
struct note {
	char uuid[LINEAR_UUID_MAX];
	int64_t wait_ms, next_ms;
	char *why;
};

struct switches {
	int end; /* eventfd */
	pthread_t thread;
	bool started;
	struct note *notes; /* under the node's lock; those without a uuid are free */
	size_t count;
};

/* A device and whose it is. */
struct pair {
	struct linear_state state;
	json_t *record; /* borrowed; NULL: another service's */
	bool seen;
};

struct pairs {
	struct pair *items;
	size_t count;
};

/* ---- what could not be ------------------------------------------------------------------------ */

static struct note *note_find(struct switches *w, const char *uuid)
{
	for (size_t i = 0; i < w->count; i++)
		if (streq(w->notes[i].uuid, uuid))
			return &w->notes[i];
	return NULL;
}

static void note_drop(struct note *note)
{
	free(note->why);
	*note = (struct note){ 0 };
}

static void note_clear(struct csi_node *n, const char *uuid)
{
	struct note *note;

	pthread_mutex_lock(&n->lock);
	note = note_find(n->switches, uuid);
	if (note)
		note_drop(note);
	pthread_mutex_unlock(&n->lock);
}

/* Whether it was another reason before. */
static bool note_set(struct csi_node *n, const char *uuid, const char *why)
{
	struct switches *w = n->switches;
	struct note *note;
	bool changed;

	pthread_mutex_lock(&n->lock);
	note = note_find(w, uuid);
	if (!note)
		note = note_find(w, "");
	if (!note) {
		w->notes = xrealloc(w->notes, (w->count + 1) * sizeof(*w->notes));
		note = &w->notes[w->count++];
		*note = (struct note){ 0 };
	}
	snprintf(note->uuid, sizeof(note->uuid), "%s", uuid);
	note->wait_ms = note->wait_ms ? note->wait_ms * 2 : LOOK_MS * 2;
	if (note->wait_ms > AGAIN_MAX_MS)
		note->wait_ms = AGAIN_MAX_MS;
	note->next_ms = clock_mono_ms(&clock_real) + note->wait_ms;
	changed = !streq(note->why, why);
	if (changed) {
		free(note->why);
		note->why = xstrdup(why);
	}
	pthread_mutex_unlock(&n->lock);
	return changed;
}

static bool is_due(struct csi_node *n, const char *uuid)
{
	const struct note *note;
	bool due;

	pthread_mutex_lock(&n->lock);
	note = note_find(n->switches, uuid);
	due = !note || note->next_ms <= clock_mono_ms(&clock_real);
	pthread_mutex_unlock(&n->lock);
	return due;
}

/* Devices come and go. */
static void forget_others(struct csi_node *n, const struct pairs *p)
{
	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->switches->count; i++) {
		struct note *note = &n->switches->notes[i];
		bool there = false;

		for (size_t k = 0; k < p->count; k++)
			there |= streq(p->items[k].state.uuid, note->uuid);
		if (!there)
			note_drop(note);
	}
	pthread_mutex_unlock(&n->lock);
}

char *switches_problem(struct csi_node *n, const json_t *record)
{
	const char *root = record_root(record), *sub = record_sub(record);
	char *why = NULL;

	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->switches->count && root && !why; i++) {
		const struct note *note = &n->switches->notes[i];
		struct linear_state s = { 0 };

		memcpy(s.uuid, note->uuid, sizeof(s.uuid));
		if (note->why && linear_is_of(&s, root, sub))
			why = xstrdup(note->why);
	}
	pthread_mutex_unlock(&n->lock);
	return why;
}

/* ---- a device --------------------------------------------------------------------------------- */

/* Whether the new descriptor is open on more copies than the one that has the other byte. */
static int check_gain(const char *root, uint64_t slots, unsigned slot, struct error *err)
{
	struct copies c = { .slots = slots };
	int r = copies_look(root, 1, &c, STEP_MS, err);

	if (r < 0)
		return r;
	if (__builtin_popcount(c.open[slot]) > __builtin_popcount(c.open[!slot]))
		return 0;
	return error_set(err, EAGAIN, "its file cannot be opened yet on a brick that is back");
}

static int switch_device(const struct linear_state *s, unsigned loop, const json_t *record,
			 struct error *err)
{
	struct loop_options o = { .root = record_root(record),
				  .sub = record_sub(record),
				  .lock = LOOP_LOCK_WRITER,
				  .slots = loop_slots(record_sub(record)),
				  .next = true };
	struct loop next = LOOP_INIT;
	int r = loop_attach(&o, STEP_MS, &next, err);

	if (r == 0)
		r = check_gain(o.root, o.slots, next.slot, err);
	if (r == 0)
		r = linear_switch(s, loop, &next, SWITCH_MS, err);
	loop_close(&next);
	return r;
}

/* Not one whose client died, though its file is served again by another. */
static bool is_staged(const struct pair *p, struct staged_loop *ret)
{
	cleanup_with(staged_done) struct staged s = { 0 };

	if (staged_look(p->record, &s, NULL) < 0)
		return false;
	staged_find_loop(&s, ret);
	return ret->is_linear && streq(ret->linear.uuid, p->state.uuid) &&
	       ret->linear.count == 1 && ret->state == LOOP_SERVES;
}

static void try_to_switch(struct csi_node *n, const struct pair *p)
{
	const char *id = jstr(p->record, "volumeId"), *why;
	struct error err = ERROR_INIT;
	struct staged_loop l;
	int r;

	if (!is_due(n, p->state.uuid) || !record_begin(n, p->record))
		return;
	if (is_staged(p, &l)) {
		r = switch_device(&l.linear, l.number, p->record, &err);
		why = error_text(&err, r);
		if (r == 0)
			log_info("volume %s is written to a copy again whose brick is back", id);
		if (r == 0)
			note_clear(n, p->state.uuid);
		else if (note_set(n, p->state.uuid, why))
			log_warn("volume %s is not written to a copy whose brick is back: %s", id,
				 why);
	}
	record_end(n);
}

/* Somebody was killed. */
static void go_on(struct csi_node *n, const struct pair *p)
{
	struct error err = ERROR_INIT;
	int r;

	if (!record_begin(n, p->record))
		return;
	r = linear_settle(&p->state, STEP_MS, &err);
	if (r < 0 && note_set(n, p->state.uuid, error_text(&err, r)))
		log_warn("%s: its users wait for that", error_text(&err, r));
	record_end(n);
}

/* ---- all of them ------------------------------------------------------------------------------ */

static int add_pair(const struct linear_state *s, void *userdata)
{
	struct pairs *p = userdata;

	p->items = xrealloc(p->items, (p->count + 1) * sizeof(*p->items));
	p->items[p->count++] = (struct pair){ .state = *s };
	return 0;
}

static void find_record(struct pair *p, const json_t *records)
{
	json_t *record;
	size_t i;

	json_array_foreach (records, i, record)
		if (record_root(record) && jstr(record, "consumer") &&
		    linear_is_of(&p->state, record_root(record), record_sub(record)))
			p->record = record;
}

static bool is_at(const struct pair *p, const char *root)
{
	return p->record && !p->seen && streq(record_root(p->record), root);
}

/* All devices on files of one mount, whose client is asked once. */
static void look_at_root(struct csi_node *n, struct pairs *p, const char *root)
{
	struct copies *c = xcalloc(p->count, sizeof(*c));
	size_t count = 0, k = 0;
	int r;

	for (size_t i = 0; i < p->count; i++)
		if (is_at(&p->items[i], root))
			c[count++].slots = loop_slots(record_sub(p->items[i].record));
	r = copies_look(root, count, c, STEP_MS, NULL);
	for (size_t i = 0; i < p->count; i++) {
		struct pair *one = &p->items[i];

		if (!is_at(one, root))
			continue;
		one->seen = true;
		if (r == 0 && copies_miss(&c[k]))
			try_to_switch(n, one);
		else if (r == 0)
			note_clear(n, one->state.uuid);
		k++;
	}
	free(c);
}

static void look(struct csi_node *n)
{
	cleanup_json json_t *records = NULL;
	struct pairs p = { 0 };

	(void)linear_each(add_pair, &p);
	forget_others(n, &p);
	if (p.count && records_find(n->h, NULL, NULL, &records, NULL) == 0) {
		for (size_t i = 0; i < p.count; i++) {
			find_record(&p.items[i], records);
			if (p.items[i].record && p.items[i].state.suspended)
				go_on(n, &p.items[i]);
		}
		for (size_t i = 0; i < p.count; i++)
			if (p.items[i].record && !p.items[i].seen)
				look_at_root(n, &p, record_root(p.items[i].record));
	}
	free(p.items);
}

static void *look_on(void *arg)
{
	struct csi_node *n = arg;

	do
		look(n);
	while (await_fd(n->switches->end, POLLIN, clock_mono_ms(&clock_real) + LOOK_MS) ==
	       -ETIMEDOUT);
	return NULL;
}

int switches_start(struct csi_node *n, struct error *err)
{
	struct switches *w = n->switches = xcalloc(1, sizeof(*w));
	int r;

	w->end = eventfd(0, EFD_CLOEXEC);
	if (w->end < 0)
		return error_errno(err, errno, "cannot make an eventfd");
	r = hub_thread(&w->thread, "switches", look_on, n);
	if (r < 0)
		return error_errno(err, -r, "cannot start a thread");
	w->started = true;
	return 0;
}

void switches_end(struct csi_node *n)
{
	struct switches *w = n->switches;

	if (!w)
		return;
	if (w->started) {
		(void)eventfd_write(w->end, 1);
		(void)pthread_join(w->thread, NULL);
	}
	for (size_t i = 0; i < w->count; i++)
		free(w->notes[i].why);
	free(w->notes);
	cleanup_close_p(&w->end);
	free(w);
}
