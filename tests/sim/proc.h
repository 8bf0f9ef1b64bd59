/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/store.h"
#include "kube/cache.h"
#include "kube/controller.h"
#include "kube/queue.h"
#include "mutant.h"
#include "schedule.h"

/*
 * A simulated process: the controller tables of an operator or an agent, their queues and caches
 * (the very structs that the runner uses), and a client that fails. It can die at any call: from
 * then on none of its calls has an effect, and when the last has returned all its memory is gone.
 * Some time later it starts again with nothing but what the API and the world say.
 */
enum fault {
	FAULT_NONE,
	FAULT_FAIL_BEFORE,   /* EAGAIN, nothing happened */
	FAULT_FAIL_AFTER,    /* EAGAIN, but it happened */
	FAULT_CONFLICT,      /* ESTALE though nobody wrote: somebody's write was undone at once */
	FAULT_TIMEOUT,       /* ETIMEDOUT after a long wait, nothing happened */
	FAULT_LATE,          /* ETIMEDOUT, and it happens some time after that */
	FAULT_CRASH_BEFORE,  /* the process dies, nothing happened */
	FAULT_CRASH_AFTER,   /* the process dies, but it happened */
	/* of the caches */
	FAULT_STALL,         /* events come seconds late */
	FAULT_REPEAT,        /* events come again */
	FAULT_DROP,          /* the watch breaks: events are lost, a list follows */
	FAULT_COUNT,
};
extern const char *const fault_names[FAULT_COUNT];

/* What happens how often, of 10,000 calls; all kinds of a group are equally likely. */
struct fault_rates {
	int call;
	int crash;
	int event;
	const char *focus; /* calls with this in their name are hit far more often, or NULL */
};

struct world; /* the API, the processes and what they act on */

struct proc {
	struct world *world;
	struct sim *sim;
	char name[64];
	struct kube kube;    /* first the faults, then the store */
	struct kube *store;
	struct reader reader;
	const struct controller *const *controllers;
	kube_project project;
	kube_mark mark;
	/* The program's own part, made anew at each start: gives r->app; stopped when all tasks have ended. */
	void *(*start)(struct proc *p);
	void (*stopped)(struct proc *p, void *app);
	void *userdata;
	void *app;
	bool can_crash;
	/*
	 * Is it in the caches of the process, which may watch some objects of a kind only? NULL:
	 * all are.
	 */
	bool (*visible)(struct proc *p, const struct kind *kind, const json_t *object);

	bool running;        /* or dying */
	bool dead;           /* no call has an effect any more */
	bool gone;           /* will not start again */
	unsigned life;       /* counts starts: timers of an earlier life are void */
	struct task **tasks; /* that have not ended */
	size_t task_count;
	bool starting;
	struct proc_loop *loops;
	size_t loop_count;
	struct proc_source *sources;
	size_t source_count, synced;
	int64_t stalled_until_ms; /* no event arrives before */
	int64_t frozen_until_ms;  /* nor does it do anything */
	struct first_read *reads;
	size_t read_count;
};

struct world {
	struct sim sim;
	struct store *store;
	struct kube *late; /* a client for what happens when its sender may be dead */
	bool happens_late; /* a write is being carried out whose sender has given it up */
	struct prng ids;
	struct fault_rates rates;
	enum mutant mutant;
	/*
	 * What is created or patched, before it is sent: as an earlier version wrote it. NULL: as
	 * it is.
	 */
	void (*change_write)(struct world *w, const struct kind *kind, json_t *object);
	/* What the API answers to a question for one object: for mutants. NULL: as it is. */
	void (*change_answer)(struct proc *p, const struct kind *kind, json_t *object);
	uint64_t faults[FAULT_COUNT]; /* how often each happened */
	uint64_t calls, reconciles, crashes;
};

int world_init(struct world *w, uint64_t seed, FILE *trace);
void world_done(struct world *w);

/* Fields up to can_crash are the caller's. */
void proc_start(struct proc *p);
/* Kills it; it starts again after restart_ms, or never where that is < 0. */
void proc_kill(struct proc *p, int64_t restart_ms);
/* All tasks have ended and its memory is freed. */
bool proc_ended(const struct proc *p);

/* Puts a key on a controller's queue, as runner_enqueue does. */
void proc_enqueue(struct proc *p, const char *controller, const char *key, int delay_ms);
/* A task of the process beside its reconciles (a lease); ends by itself once p->dead. */
void proc_task(struct proc *p, sim_fn fn, void *arg);

/*
 * Of an object that the running task has read from the caches: the uid that it had the first time.
 * What the task does now was decided for that one. NULL: it has read none.
 */
const char *proc_first_read(const struct proc *p, const struct kind *kind, const char *name);
void proc_note_read(struct proc *p, const struct kind *kind, const json_t *object);
/* Objects have come into view: as if they had just been listed. */
void proc_refresh(struct proc *p, const struct kind *kind);

/* ---- for models of the world outside the API ------------------------------------------------- */
/*
 * Every call of a process to the outside begins and ends with these. world_call_begin sleeps and
 * decides what goes wrong: a negative result ends the call with nothing done. call_end turns the
 * result of what was done into what the caller is told.
 */
int world_call_begin(struct proc *p, bool write, const char *what, enum fault *ret, struct error *err);
int call_end(struct proc *p, enum fault fault, int rc, struct error *err);

/* ---- client.c, source.c ----------------------------------------------------------------------- */
void proc_client_init(struct proc *p);
void proc_sources_start(struct proc *p);
void proc_sources_stop(struct proc *p);
extern const struct reader_ops proc_reader_ops;
/* A cache changed: puts keys on the queues. */
void proc_changed(struct proc *p, const struct cache *c, const json_t *old, const json_t *object);
