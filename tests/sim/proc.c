/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"
#include "source.h"

#include "base/mem.h"
#include "base/rand.h"
#include "kube/kube.h"
#include "schema/schema.h"

#include <errno.h>

struct proc_loop { /* a controller at work */
	const struct controller *controller;
	struct proc *proc;
	struct queue queue;
	int in_work;
	int64_t timer_ms; /* when proc_pump will be called for it, -1: not */
};

struct job { /* a reconcile, which is a task */
	struct proc_loop *loop;
	struct queue_item *item;
	struct reconcile reconcile;
};

struct first_read {
	const struct task *task;
	const struct kind *kind;
	char name[64], uid[UUID_TEXT_MAX];
};

static void end_life(struct proc *p);

/* ---- what a task has read ------------------------------------------------------------------------ */

const char *proc_first_read(const struct proc *p, const struct kind *kind, const char *name)
{
	for (size_t i = 0; i < p->read_count; i++) {
		const struct first_read *f = &p->reads[i];

		if (f->task == task_self(p->sim) && f->kind == kind && streq(f->name, name))
			return f->uid;
	}
	return NULL;
}

void proc_note_read(struct proc *p, const struct kind *kind, const json_t *object)
{
	struct first_read f = { .task = task_self(p->sim), .kind = kind };

	if (!f.task || (kind != &KIND_STORAGEPOOL && kind != &KIND_STORAGENODE) ||
	    proc_first_read(p, kind, object_name(object)))
		return;
	snprintf(f.name, sizeof(f.name), "%s", object_name(object));
	snprintf(f.uid, sizeof(f.uid), "%s", object_uid(object));
	p->reads = xrealloc(p->reads, (p->read_count + 1) * sizeof(*p->reads));
	p->reads[p->read_count++] = f;
}

static void forget_reads(struct proc *p)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->read_count; i++)
		if (p->reads[i].task != task_self(p->sim))
			p->reads[kept++] = p->reads[i];
	p->read_count = kept;
}

static void task_began(struct proc *p)
{
	p->tasks = xrealloc(p->tasks, (p->task_count + 1) * sizeof(*p->tasks));
	p->tasks[p->task_count++] = task_self(p->sim);
}

static void task_ended(struct proc *p)
{
	size_t i = 0;

	while (p->tasks[i] != task_self(p->sim))
		i++;
	p->tasks[i] = p->tasks[--p->task_count];
	forget_reads(p);
	if (p->task_count == 0 && p->dead && !p->starting)
		end_life(p);
}

/* ---- queues ------------------------------------------------------------------------------------ */

static struct proc_loop *loop_named(struct proc *p, const char *name)
{
	for (size_t i = 0; i < p->loop_count; i++) {
		if (streq(p->loops[i].controller->name, name))
			return &p->loops[i];
	}
	return NULL;
}

struct pump_arg {
	struct proc *proc;
	unsigned life;
	size_t loop;
};

static void pump_loop(struct proc_loop *l);

static void pump_timer(void *arg)
{
	struct pump_arg a = *(struct pump_arg *)arg;

	free(arg);
	if (a.proc->life != a.life || !a.proc->running || a.proc->dead)
		return;
	a.proc->loops[a.loop].timer_ms = -1;
	pump_loop(&a.proc->loops[a.loop]);
}

static void pump_at(struct proc_loop *l, int64_t when_ms)
{
	struct sim *s = l->proc->sim;
	struct pump_arg *a;

	if (l->timer_ms >= 0 && l->timer_ms <= when_ms)
		return;
	l->timer_ms = when_ms;
	a = xmalloc(sizeof(*a));
	*a = (struct pump_arg){ l->proc, l->proc->life, (size_t)(l - l->proc->loops) };
	sim_after(s, when_ms > s->now_ms ? when_ms - s->now_ms : 0, pump_timer, a);
}

static void loop_add(struct proc_loop *l, const char *key, int delay_ms)
{
	int64_t due = l->proc->sim->now_ms + (delay_ms > 0 ? delay_ms : 0);

	queue_add(&l->queue, key, due);
	pump_at(l, due);
}

void proc_enqueue(struct proc *p, const char *controller, const char *key, int delay_ms)
{
	struct proc_loop *l = p->dead ? NULL : loop_named(p, controller);

	if (l)
		loop_add(l, key, delay_ms);
}

static void enqueue(struct reconcile *r, const char *controller, const char *key, int delay_ms)
{
	proc_enqueue(r->runner, controller, key, delay_ms);
}

static struct reconcile reconcile_new(struct proc *p)
{
	return (struct reconcile){ .kube = &p->kube,
				   .cache = &p->reader,
				   .clock = &p->sim->clock,
				   .app = p->app,
				   .enqueue = enqueue,
				   .runner = p };
}

void proc_changed(struct proc *p, const struct cache *c, const json_t *old, const json_t *object)
{
	struct reconcile r = reconcile_new(p);

	if (p->visible && !(object && p->visible(p, c->kind, object)) &&
	    !(old && p->visible(p, c->kind, old)))
		return;
	for (size_t i = 0; i < p->loop_count; i++) {
		const struct controller_watch *w = p->loops[i].controller->watches;

		for (; w->kind; w++) {
			cleanup_with(strv_done) struct strv keys = { 0 };

			if (!source_is(c, w))
				continue;
			if (object)
				controller_watch_keys(w, object, &r, &keys);
			if (old)
				controller_watch_keys(w, old, &r, &keys);
			for (size_t k = 0; k < keys.count; k++)
				loop_add(&p->loops[i], keys.items[k], 0);
		}
	}
}

/* ---- work --------------------------------------------------------------------------------------- */

static void job_main(void *arg)
{
	struct job *j = arg;
	struct proc_loop *l = j->loop;
	struct proc *p = l->proc;
	int rc;

	task_began(p);
	rc = l->controller->reconcile(&j->reconcile, j->item->key);
	p->world->reconciles++;
	if (rc < 0 && !p->dead)
		sim_trace(p->sim, "%-12s %s %s: %s", p->name, l->controller->name, j->item->key,
			  error_text(&j->reconcile.error, rc));
	queue_finish(&l->queue, j->item, rc < 0, j->reconcile.again_ms, p->sim->now_ms);
	l->in_work--;
	free(j);
	if (!p->dead)
		pump_at(l, p->sim->now_ms);
	task_ended(p);
}

static void pump_loop(struct proc_loop *l)
{
	struct proc *p = l->proc;
	int64_t due = -1;

	if (p->dead || p->synced < p->source_count)
		return;
	while (l->in_work < (l->controller->workers > 0 ? l->controller->workers : 1)) {
		struct queue_item *item = queue_take(&l->queue, p->sim->now_ms, &due);
		struct job *j;

		if (!item)
			break;
		j = xcalloc(1, sizeof(*j));
		j->loop = l;
		j->item = item;
		j->reconcile = reconcile_new(p);
		l->in_work++;
		task_start(p->sim, job_main, j);
		if (p->dead)
			return;
	}
	if (due >= 0)
		pump_at(l, due);
}

void proc_pump(struct proc *p)
{
	for (size_t i = 0; i < p->loop_count; i++)
		pump_at(&p->loops[i], p->sim->now_ms);
}

struct side_task {
	struct proc *proc;
	sim_fn fn;
	void *arg;
};

static void side_main(void *arg)
{
	struct side_task t = *(struct side_task *)arg;

	free(arg);
	task_began(t.proc);
	t.fn(t.arg);
	task_ended(t.proc);
}

void proc_task(struct proc *p, sim_fn fn, void *arg)
{
	struct side_task *t = xmalloc(sizeof(*t));

	*t = (struct side_task){ p, fn, arg };
	task_start(p->sim, side_main, t);
}

/* ---- life --------------------------------------------------------------------------------------- */

static void start_timer(void *arg)
{
	struct proc *p = arg;

	if (!p->running && !p->gone)
		proc_start(p);
}

void proc_start(struct proc *p)
{
	size_t count = 0;

	p->running = true;
	p->dead = p->gone = false;
	p->life++;
	p->starting = true;
	sim_trace(p->sim, "%-12s starts", p->name);
	proc_client_init(p);
	p->reader.ops = &proc_reader_ops;
	while (p->controllers[count])
		count++;
	p->loop_count = count;
	p->loops = xcalloc(count + 1, sizeof(*p->loops));
	for (size_t i = 0; i < count; i++) {
		p->loops[i] = (struct proc_loop){ .controller = p->controllers[i],
						  .proc = p,
						  .timer_ms = -1 };
		queue_init(&p->loops[i].queue, prng_next(&p->sim->rng));
	}
	proc_sources_start(p);
	p->app = p->start(p);
	proc_pump(p);
	p->starting = false;
}

static void end_life(struct proc *p)
{
	p->running = false;
	p->stopped(p, p->app);
	p->app = NULL;
	proc_sources_stop(p);
	for (size_t i = 0; i < p->loop_count; i++)
		queue_done(&p->loops[i].queue);
	free(p->loops);
	p->loops = NULL;
	p->loop_count = 0;
	kube_free(p->store);
	p->store = NULL;
	free(p->tasks);
	p->tasks = NULL;
	free(p->reads);
	p->reads = NULL;
	p->read_count = 0;
}

static void end_timer(void *arg)
{
	struct proc *p = arg;

	if (p->running && p->dead && p->task_count == 0)
		end_life(p);
}

void proc_kill(struct proc *p, int64_t restart_ms)
{
	if (restart_ms < 0)
		p->gone = true;
	if (!p->running || p->dead)
		return;
	sim_trace(p->sim, "%-12s dies", p->name);
	p->dead = true;
	p->world->crashes++;
	/* whatever its tasks sleep on, they wake up now and find that no call works any more */
	for (size_t i = 0; i < p->task_count; i++) {
		if (p->tasks[i] != task_self(p->sim))
			task_wake(p->tasks[i]);
	}
	sim_after(p->sim, 0, end_timer, p);
	if (restart_ms >= 0)
		sim_after(p->sim, restart_ms, start_timer, p);
}

bool proc_ended(const struct proc *p)
{
	return !p->running;
}

/* ---- the world ------------------------------------------------------------------------------------ */

int world_init(struct world *w, uint64_t seed, FILE *trace)
{
	struct store_options options;

	*w = (struct world){ .ids = { seed ^ 0x5eed } };
	sim_init(&w->sim, seed, trace);
	options = (struct store_options){
		.path = ":memory:", .clock = &w->sim.clock, .event_ttl_s = 3600, .ids = &w->ids
	};
	if (store_open(&options, &w->store, NULL) < 0)
		return -EIO;
	w->late = store_client(w->store, "late");
	return store_bootstrap(w->store, NULL);
}

void world_done(struct world *w)
{
	kube_free(w->late);
	store_close(w->store);
	sim_done(&w->sim);
}
