/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/kube.h"

/*
 * A control loop is a table: what it watches, and a plain function that brings one key nearer to
 * its desired state. The runner (here: threads, caches and a work queue; in tests/sim: a seeded
 * schedule) decides when it is called. Reads come from a cache that may lag; writes carry the
 * resourceVersion that was read, so a stale decision fails with ESTALE and is simply tried again.
 */
struct reader; /* the caches, or the simulation's lagging snapshots */

struct reader_ops {
	/* New reference, or NULL where it is not (yet) in the cache. */
	json_t *(*get)(struct reader *r, const struct kind *kind, const char *ns, const char *name);
	/* Calls fn for each object (borrowed) of the kind; stops when fn returns non-zero, and returns that. */
	int (*each)(struct reader *r, const struct kind *kind, const char *ns,
		    int (*fn)(const json_t *object, void *userdata), void *userdata);
	/* The same for the objects that the program's kube_mark picked, without reading the others. */
	int (*each_marked)(struct reader *r, const struct kind *kind, const char *ns,
			   int (*fn)(const json_t *object, void *userdata), void *userdata);
	/* Tells the cache what a write returned, so that the next read is at least that new. */
	void (*learned)(struct reader *r, const struct kind *kind, const json_t *object);
};
struct reader {
	const struct reader_ops *ops;
};
json_t *reader_get(struct reader *r, const struct kind *kind, const char *ns, const char *name);
int reader_each(struct reader *r, const struct kind *kind, const char *ns,
		int (*fn)(const json_t *object, void *userdata), void *userdata);
int reader_each_marked(struct reader *r, const struct kind *kind, const char *ns,
		       int (*fn)(const json_t *object, void *userdata), void *userdata);
void reader_learned(struct reader *r, const struct kind *kind, const json_t *object);

struct reconcile {
	struct kube *kube;            /* live */
	struct reader *cache;         /* may lag */
	const struct clock *clock;
	void *app;                    /* the program's own context: deployment, platform, storage system */
	struct error error;           /* filled in by a failing reconcile */
	int again_ms;                 /* > 0: call again after this time, though nothing failed */
	/* from any thread or from the function itself: puts a key on a controller's queue */
	void (*enqueue)(struct reconcile *r, const char *controller, const char *key, int delay_ms);
	void *runner;
};

struct controller_watch {
	const struct kind *kind;
	const char *labels;           /* selector, or NULL */
	const char *fields;           /* selector, or NULL */
	bool follows;                 /* instead: the selectors that runner_follow names, which come and go */
	/* Adds the keys that this object (its last known form, when deleted) concerns; NULL: the object's own key. */
	void (*keys)(const json_t *object, struct reconcile *r, struct strv *keys);
};

struct controller {
	const char *name;
	const struct controller_watch *watches; /* ended by kind NULL */
	int workers;                            /* keys in work at the same time; one key never twice */
	/* 0: in order; -errno: try again with back-off (10 ms doubling to 60 s, jitter), r->error says why */
	int (*reconcile)(struct reconcile *r, const char *key);
};

/* The keys that a change of the object puts on the queue; for runners. */
void controller_watch_keys(const struct controller_watch *w, const json_t *object, struct reconcile *r,
			   struct strv *keys);

/* A projection cuts an object down to what the loops need before it is cached; in place. */
typedef void (*kube_project)(const struct kind *kind, json_t *object);
/* Picks the objects that reader_each_marked finds: of many the few that a loop asks for often. */
typedef bool (*kube_mark)(const struct kind *kind, const json_t *object);

struct runner;
struct runner_options {
	struct kube *kube;
	const char *ns;                       /* NULL: all namespaces */
	const char *own_ns;                   /* of our own kinds, which stand in one namespace; NULL: as ns */
	const struct controller *const *controllers; /* ended by NULL */
	kube_project project;                 /* NULL: only managedFields are dropped */
	kube_mark mark;                       /* of the projected object; NULL: none */
	void *app;
};
/* Starts caches (one list+watch per kind and selector) and workers; works until runner_stop. */
int runner_start(const struct runner_options *options, struct runner **ret, struct error *err);
struct reader *runner_cache(struct runner *r);
void runner_enqueue(struct runner *r, const char *controller, const char *key, int delay_ms);
bool runner_synced(struct runner *r);
/*
 * From now on the watches of the kind that follow have these selectors, and no others: what is new is listed, and
 * loops that watch it wait until it has been; what is no longer named is forgotten. An object that several of them
 * select is read once. By one thread at a time. 1: all of them have been listed; 0: not yet; -errno.
 */
int runner_follow(struct runner *r, const struct kind *kind, const struct kube_selector *selectors, size_t count,
		  struct error *err);
void runner_stop(struct runner *r);           /* waits for running reconciles */

/* ---- lease -------------------------------------------------------------------------------- */
/*
 * Leader election on a coordination.k8s.io Lease, over a connection of its own. The epoch is the time
 * at which the lease was made plus its leaseTransitions: every order carries it, so that what an old
 * leader still does is refused.
 */
struct lease;
struct lease_options {
	struct kube *kube;
	const char *ns, *name, *identity;
	int duration_s;                       /* 15: others wait that long; renewed at a third of it */
	void (*changed)(bool held, int64_t epoch, void *userdata); /* on the lease's thread */
	void *userdata;
};
int lease_start(const struct lease_options *options, struct lease **ret, struct error *err);
/* True while held with certainty: the last renewal is younger than two thirds of the duration. */
bool lease_held(struct lease *l, int64_t *ret_epoch);
void lease_stop(struct lease *l, bool release);
/* One step of the same election as a pure function, for the simulation: returns what to write (new reference) or NULL. */
json_t *lease_step(const json_t *lease, const char *ns, const char *name, const char *identity, int duration_s,
		   int64_t now_wall_ms, bool *ret_held);

/* ---- events -------------------------------------------------------------------------------- */
/* Records an Event about the object; the same again within ten minutes only raises its count. Never fails loudly. */
void event_record(struct kube *k, const struct kind *kind, const json_t *object, const char *component, bool warning,
		  const char *reason, const char *format, ...) __attribute__((format(printf, 7, 8)));
