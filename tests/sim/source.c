/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"
#include "proc.h"

#include "base/mem.h"

#define AGAIN 3 /* events that may come a second time */
#define STALL_LOOK_MS 5000 /* a stall may be ended before its time */

struct pending {
	enum kube_event_type type;
	json_t *object;
	struct pending *next;
};

/* ---- events, late and lossy --------------------------------------------------------------------- */

static void forget_pending(struct proc_source *s)
{
	while (s->first) {
		struct pending *e = s->first;

		s->first = e->next;
		json_decref(e->object);
		free(e);
	}
	s->last = NULL;
}

static void feed(struct proc_source *s, enum kube_event_type type, const json_t *object)
{
	cleanup_json json_t *copy = json_deep_copy(object);

	cache_event(&s->cache, &(struct kube_event){ type, copy });
}

static void relist(void *arg);
static void deliver(void *arg);

static void deliver_soon(struct proc_source *s)
{
	struct sim *sim = s->proc->sim;
	int64_t delay = sim_below(sim, 8);

	if (s->delivering || !s->first)
		return;
	if (sim_fault(sim, s->proc->world->rates.event)) {
		s->proc->world->faults[FAULT_STALL]++;
		delay = sim_below(sim, 8000);
	}
	if (sim->now_ms < s->proc->stalled_until_ms)
		delay = STALL_LOOK_MS;
	s->delivering = true;
	sim_after(sim, delay, deliver, source_timer(s));
}

static void lose_watch(struct proc_source *s)
{
	struct sim *sim = s->proc->sim;

	s->proc->world->faults[FAULT_DROP]++;
	sim_trace(sim, "%-12s loses its watch of %s", s->proc->name, s->cache.kind->plural);
	forget_pending(s);
	s->watching = false;
	sim_after(sim, 10 + sim_below(sim, 3000), relist, source_timer(s));
}

static void repeat(struct proc_source *s)
{
	s->proc->world->faults[FAULT_REPEAT]++;
	for (size_t i = 0; i < AGAIN; i++) {
		struct kube_event *e = &s->old[(s->old_at + i) % AGAIN];

		if (e->object)
			feed(s, e->type, e->object);
	}
}

static void deliver(void *arg)
{
	struct proc_source *s = source_of_timer(arg);
	struct pending *e;
	struct kube_event *slot;

	if (!s)
		return;
	s->delivering = false;
	e = s->first;
	if (!e)
		return;
	if (s->proc->sim->now_ms < s->proc->stalled_until_ms) {
		deliver_soon(s);
		return;
	}
	if (sim_fault(s->proc->sim, s->proc->world->rates.event)) {
		lose_watch(s);
		return;
	}
	s->first = e->next;
	if (!s->first)
		s->last = NULL;
	feed(s, e->type, e->object);
	slot = &s->old[s->old_at++ % AGAIN];
	json_decref(slot->object);
	*slot = (struct kube_event){ e->type, e->object };
	free(e);
	if (sim_fault(s->proc->sim, s->proc->world->rates.event))
		repeat(s);
	deliver_soon(s);
}

/* Called by the store while it writes. */
static void happened(const struct kube_event *event, void *userdata)
{
	struct proc_source *s = userdata;
	struct pending *e;

	if (!s->watching || event->type == KUBE_BOOKMARK)
		return;
	e = xcalloc(1, sizeof(*e));
	e->type = event->type;
	e->object = json_incref(event->object);
	if (s->last)
		s->last->next = e;
	else
		s->first = e;
	s->last = e;
	deliver_soon(s);
}

static void relist(void *arg)
{
	struct proc_source *s = source_of_timer(arg);
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;
	json_t *item;
	size_t i;

	if (!s)
		return;
	if (kube_list(s->proc->store, s->cache.kind, s->ns, &s->cache.selector, &items, &version,
		      NULL) < 0) {
		sim_fail(s->proc->sim, "the store cannot list %s", s->cache.kind->plural);
		return;
	}
	s->watching = true;
	cache_list_begin(&s->cache);
	json_array_foreach (items, i, item) {
		cleanup_json json_t *copy = json_deep_copy(item);

		cache_list_item(&s->cache, copy);
	}
	cache_list_end(&s->cache, version);
	if (!s->synced) {
		s->synced = true;
		s->proc->synced++;
		proc_pump(s->proc);
	}
}

/* ---- the reader --------------------------------------------------------------------------------- */

static struct proc *proc_of(struct reader *r)
{
	return (struct proc *)((char *)r - offsetof(struct proc, reader));
}

static json_t *sim_get(struct reader *r, const struct kind *kind, const char *ns, const char *name)
{
	struct proc *p = proc_of(r);
	json_t *object = NULL;

	for (size_t i = 0; i < p->source_count && !object; i++) {
		if (p->sources[i].cache.kind == kind)
			object = cache_get(&p->sources[i].cache, ns, name);
	}
	if (object && p->visible && !p->visible(p, kind, object)) {
		json_decref(object);
		return NULL;
	}
	if (object)
		proc_note_read(p, kind, object);
	return object;
}

struct view {
	struct proc *proc;
	const struct kind *kind;
	int (*fn)(const json_t *object, void *userdata);
	void *userdata;
};

static int if_visible(const json_t *object, void *userdata)
{
	struct view *v = userdata;

	if (v->proc->visible && !v->proc->visible(v->proc, v->kind, object))
		return 0;
	return v->fn(object, v->userdata);
}

static int sim_each(struct reader *r, const struct kind *kind, const char *ns,
		    int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	struct proc *p = proc_of(r);
	struct view v = { p, kind, fn, userdata };

	for (size_t i = 0; i < p->source_count; i++) {
		if (p->sources[i].cache.kind == kind)
			return cache_each(&p->sources[i].cache, ns, if_visible, &v);
	}
	return 0;
}

static int sim_each_marked(struct reader *r, const struct kind *kind, const char *ns,
			   int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	struct proc *p = proc_of(r);
	struct view v = { p, kind, fn, userdata };

	for (size_t i = 0; i < p->source_count; i++) {
		if (p->sources[i].cache.kind == kind)
			return cache_each_marked(&p->sources[i].cache, ns, if_visible, &v);
	}
	return 0;
}

static int come_into_view(const json_t *object, void *userdata)
{
	struct proc_source *s = userdata;

	proc_changed(s->proc, &s->cache, NULL, object);
	return 0;
}

void proc_refresh(struct proc *p, const struct kind *kind)
{
	for (size_t i = 0; i < p->source_count; i++) {
		if (p->sources[i].cache.kind == kind)
			cache_each(&p->sources[i].cache, NULL, come_into_view, &p->sources[i]);
	}
}

static void sim_learned(struct reader *r, const struct kind *kind, const json_t *object)
{
	struct proc *p = proc_of(r);

	for (size_t i = 0; i < p->source_count; i++) {
		if (p->sources[i].cache.kind == kind)
			cache_learned(&p->sources[i].cache, object);
	}
}

const struct reader_ops proc_reader_ops = { sim_get, sim_each, sim_each_marked, sim_learned };

/* ---- start and stop ------------------------------------------------------------------------------ */

static void changed(const json_t *old, const json_t *object, void *userdata)
{
	struct proc_source *s = userdata;

	proc_changed(s->proc, &s->cache, old, object);
}

static void add_source(struct proc *p, const struct controller_watch *w)
{
	struct proc_source *s;

	for (size_t i = 0; i < p->source_count; i++) {
		if (source_is(&p->sources[i].cache, w)) {
			p->sources[i].cache.wants_old |= w->keys != NULL;
			return;
		}
	}
	s = &p->sources[p->source_count++];
	s->proc = p;
	s->cache = (struct cache){ .kind = w->kind,
				   .selector = { w->labels, w->fields },
				   .project = p->project,
				   .mark = p->mark,
				   .changed = changed,
				   .userdata = s,
				   .wants_old = w->keys != NULL };
	cache_init(&s->cache);
}

bool source_is(const struct cache *c, const struct controller_watch *w)
{
	return c->kind == w->kind && streq(c->selector.labels, w->labels) &&
	       streq(c->selector.fields, w->fields);
}

/* Timers outlive processes: what they carry says which life of the process they were set in. */
struct timer_arg {
	struct proc *proc;
	unsigned life;
	size_t index;
};

void *source_timer(struct proc_source *s)
{
	struct timer_arg *a = xmalloc(sizeof(*a));

	*a = (struct timer_arg){ s->proc, s->proc->life, (size_t)(s - s->proc->sources) };
	return a;
}

struct proc_source *source_of_timer(void *arg)
{
	struct timer_arg a = *(struct timer_arg *)arg;

	free(arg);
	if (a.proc->life != a.life || !a.proc->running || a.proc->dead)
		return NULL;
	return &a.proc->sources[a.index];
}

void proc_sources_start(struct proc *p)
{
	size_t count = 0;

	for (size_t i = 0; p->controllers[i]; i++) {
		for (const struct controller_watch *w = p->controllers[i]->watches; w->kind; w++)
			count++;
	}
	p->sources = xcalloc(count + 1, sizeof(*p->sources));
	p->source_count = p->synced = 0;
	for (size_t i = 0; p->controllers[i]; i++) {
		for (const struct controller_watch *w = p->controllers[i]->watches; w->kind; w++)
			add_source(p, w);
	}
	for (size_t i = 0; i < p->source_count; i++) {
		struct proc_source *s = &p->sources[i];
		struct store_query q = { .kind = s->cache.kind,
					 .ns = s->ns,
					 .labels = s->cache.selector.labels,
					 .fields = s->cache.selector.fields };
		char version[24];

		snprintf(version, sizeof(version), "%lld",
			 (long long)store_version(p->world->store));
		if (store_watch_start(p->world->store, &q, version, happened, s, &s->watch, NULL) <
		    0)
			sim_fail(p->sim, "the store cannot watch %s", s->cache.kind->plural);
		sim_after(p->sim, sim_below(p->sim, 50), relist, source_timer(s));
	}
}

void proc_sources_stop(struct proc *p)
{
	for (size_t i = 0; i < p->source_count; i++) {
		struct proc_source *s = &p->sources[i];

		store_watch_stop(s->watch);
		forget_pending(s);
		for (size_t k = 0; k < AGAIN; k++)
			json_decref(s->old[k].object);
		cache_done(&s->cache);
	}
	free(p->sources);
	p->sources = NULL;
	p->source_count = 0;
}
