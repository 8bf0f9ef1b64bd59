/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/cache.h"
#include "kube/queue.h"

/* The parts of a runner: runner.c has its loops, source.c its caches. */
struct loop { /* a controller at work */
	const struct controller *controller;
	struct runner *runner;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct queue queue;
	pthread_t *workers;
	int running;
	atomic_int unsynced; /* followed sources that feed it and have not listed yet */
};

struct source { /* a cache and those who are told of its changes */
	struct cache cache;
	struct reflector *reflector;
	struct runner *runner;
	struct reconcile reconcile; /* what watches' keys functions see */
	char *labels, *fields; /* of a followed one: its selector */
	bool follows; /* came by runner_follow */
	bool synced;
	atomic_int refs;
};

struct runner {
	struct reader reader;
	struct kube *kube;
	void *app;
	char *ns, *own_ns;
	kube_project project;
	kube_mark mark;
	struct loop *loops;
	size_t loop_count;
	pthread_mutex_t lock; /* of the sources: the array, and who has synced */
	struct source **sources;
	size_t source_count;
	atomic_int unsynced; /* sources that have not listed yet and whom all loops wait for */
	atomic_bool stop;
};

extern const struct reader_ops runner_reader;

/* source.c: what the watches of all loops name, but those that follow. */
void sources_make(struct runner *r);
int source_start(struct source *s, struct error *err);
void source_free(struct source *s);

/* runner.c */
struct reconcile reconcile_new(struct runner *r);
void loop_add(struct loop *l, const char *key, int delay_ms);
void runner_wake(struct runner *r);
