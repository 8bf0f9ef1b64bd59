/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "base/rand.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * Virtual time and tasks: one thread, one seed, one order of events. A task is a coroutine; it
 * gives up the processor only in task_sleep, which everything that stands for the outside world
 * calls. So reconciles of all processes interleave at their calls as they do in life.
 */
struct sim {
	struct prng rng;
	int64_t now_ms;
	struct clock clock;
	bool faults;          /* whether anything goes wrong now */
	FILE *trace;          /* where to tell what happens, or NULL */
	char failure[600];    /* the first broken promise, "" while all is well */

	struct timer *heap;
	size_t timer_count, timer_cap;
	uint64_t timer_seq;
	struct task *running, *idle, *all;
	uint64_t steps;       /* timers that fired; a schedule that never calms down ends by it */
};

void sim_init(struct sim *s, uint64_t seed, FILE *trace);
void sim_done(struct sim *s);

typedef void (*sim_fn)(void *arg);
/* Calls fn(arg) after that time. Timers are not cancelled: what they belong to must know better. */
void sim_after(struct sim *s, int64_t delay_ms, sim_fn fn, void *arg);
/* Runs what is due until that time, or until a promise is broken. */
void sim_run_until(struct sim *s, int64_t until_ms);
/* Lets every timer fire: after all processes have ended, so that nothing is left in memory. */
void sim_drain(struct sim *s);

/* Runs fn(arg) as a task, now; returns when it sleeps or ends. */
void task_start(struct sim *s, sim_fn fn, void *arg);
/* In a task: lets others go on for that time. */
void task_sleep(struct sim *s, int64_t ms);
/* Ends another task's sleep. */
void task_wake(struct task *t);
struct task *task_self(const struct sim *s); /* NULL: not in a task */

/* 0 … n-1; and true in so many of 10,000 cases while faults are on. */
int64_t sim_below(struct sim *s, int64_t n);
bool sim_chance(struct sim *s, int per_10000);
bool sim_fault(struct sim *s, int per_10000);

void sim_trace(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Records a broken promise: the schedule has failed. */
void sim_fail(struct sim *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
