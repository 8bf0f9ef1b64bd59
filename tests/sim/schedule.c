/* SPDX-License-Identifier: Apache-2.0 */
#include "schedule.h"

#include "base/mem.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <ucontext.h>

#define STACK_SIZE (256 * 1024)
#define WALL_START 1794776400000 /* 2026-11-15T21:00:00Z */

struct timer {
	int64_t when_ms;
	uint64_t seq;
	sim_fn fn;
	void *arg;
	uint64_t turn; /* of the task that arg is; it is void once the task has gone on */
};

struct task {
	ucontext_t context, back;
	void *stack;
	sim_fn fn;
	void *arg;
	bool ended;
	uint64_t turn; /* counts its wakings */
	struct sim *sim;
	struct task *next; /* idle */
	struct task *older; /* of all */
};

static int64_t sim_wall(void *userdata)
{
	return WALL_START + ((struct sim *)userdata)->now_ms;
}

static int64_t sim_mono(void *userdata)
{
	return 1 + ((struct sim *)userdata)->now_ms;
}

void sim_init(struct sim *s, uint64_t seed, FILE *trace)
{
	*s = (struct sim){ .rng = { seed }, .trace = trace, .faults = true };
	s->clock = (struct clock){ sim_wall, sim_mono, s };
}

void sim_done(struct sim *s)
{
	while (s->all) {
		struct task *t = s->all;

		s->all = t->older;
		munmap(t->stack, STACK_SIZE);
		free(t);
	}
	free(s->heap);
}

/* ---- timers: a binary heap by time, then by order of arrival --------------------------------- */

static bool before(const struct timer *a, const struct timer *b)
{
	return a->when_ms != b->when_ms ? a->when_ms < b->when_ms : a->seq < b->seq;
}

static void push(struct sim *s, struct timer t)
{
	size_t i;

	if (s->timer_count == s->timer_cap) {
		s->timer_cap = s->timer_cap ? s->timer_cap * 2 : 256;
		s->heap = xrealloc(s->heap, s->timer_cap * sizeof(*s->heap));
	}
	for (i = s->timer_count++; i > 0 && before(&t, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i] = t;
}

void sim_after(struct sim *s, int64_t delay_ms, sim_fn fn, void *arg)
{
	push(s, (struct timer){ s->now_ms + delay_ms, s->timer_seq++, fn, arg, 0 });
}

static struct timer pop(struct sim *s)
{
	struct timer first = s->heap[0], last = s->heap[--s->timer_count];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < s->timer_count) {
		if (child + 1 < s->timer_count && before(&s->heap[child + 1], &s->heap[child]))
			child++;
		if (!before(&s->heap[child], &last))
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = last;
	return first;
}

static void task_resume(struct task *t);

static void fire(struct sim *s)
{
	struct timer t = pop(s);

	s->now_ms = t.when_ms;
	s->steps++;
	if (t.fn)
		t.fn(t.arg);
	else if (((struct task *)t.arg)->turn == t.turn)
		task_resume(t.arg);
}

void sim_drain(struct sim *s)
{
	while (s->timer_count > 0)
		fire(s);
}

void sim_run_until(struct sim *s, int64_t until_ms)
{
	while (s->timer_count > 0 && s->heap[0].when_ms <= until_ms && !*s->failure)
		fire(s);
	if (!*s->failure)
		s->now_ms = until_ms;
}

/* ---- tasks ------------------------------------------------------------------------------------ */

static void task_main(unsigned high, unsigned low)
{
	struct task *t = (struct task *)(((uintptr_t)high << 32) | low);

	for (;;) { /* a task's stack serves many functions, one after the other */
		t->fn(t->arg);
		t->ended = true;
		swapcontext(&t->context, &t->back);
	}
}

static struct task *task_new(struct sim *s)
{
	struct task *t = xcalloc(1, sizeof(*t));
	uintptr_t self = (uintptr_t)t;

	t->sim = s;
	t->older = s->all;
	s->all = t;
	t->stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (t->stack == MAP_FAILED)
		abort();
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK_SIZE;
	makecontext(&t->context, (void (*)(void))task_main, 2, (unsigned)(self >> 32),
		    (unsigned)self);
	return t;
}

static void task_resume(struct task *t)
{
	struct sim *s = t->sim;
	struct task *outer = s->running;

	s->running = t;
	t->turn++;
	swapcontext(&t->back, &t->context);
	s->running = outer;
	if (t->ended) {
		t->next = s->idle;
		s->idle = t;
	}
}

void task_start(struct sim *s, sim_fn fn, void *arg)
{
	struct task *t = s->idle;

	if (t)
		s->idle = t->next;
	else
		t = task_new(s);
	t->fn = fn;
	t->arg = arg;
	t->ended = false;
	task_resume(t);
}

static void wake_after(struct task *t, int64_t ms)
{
	struct sim *s = t->sim;

	push(s, (struct timer){ s->now_ms + ms, s->timer_seq++, NULL, t, t->turn });
}

void task_sleep(struct sim *s, int64_t ms)
{
	struct task *t = s->running;

	wake_after(t, ms);
	swapcontext(&t->context, &t->back);
}

void task_wake(struct task *t)
{
	wake_after(t, 0);
}

struct task *task_self(const struct sim *s)
{
	return s->running;
}

/* ---- chance and report ------------------------------------------------------------------------ */

int64_t sim_below(struct sim *s, int64_t n)
{
	return (int64_t)prng_below(&s->rng, (uint64_t)n);
}

bool sim_chance(struct sim *s, int per_10000)
{
	return sim_below(s, 10000) < per_10000;
}

bool sim_fault(struct sim *s, int per_10000)
{
	return s->faults && sim_chance(s, per_10000);
}

void sim_trace(struct sim *s, const char *format, ...)
{
	va_list args;

	if (!s->trace)
		return;
	fprintf(s->trace, "%9.3f ", (double)s->now_ms / 1000);
	va_start(args, format);
	vfprintf(s->trace, format, args);
	va_end(args);
	fputc('\n', s->trace);
}

void sim_fail(struct sim *s, const char *format, ...)
{
	va_list args;

	if (*s->failure)
		return;
	va_start(args, format);
	vsnprintf(s->failure, sizeof(s->failure), format, args);
	va_end(args);
	sim_trace(s, "BROKEN: %s", s->failure);
}
