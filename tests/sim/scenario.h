/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "programs.h"

/*
 * One schedule: a person declares nodes and claims and changes their mind, machines and processes
 * fail, all from the seed. Then the faults stop, and what was declared last must come true.
 */
#define SIM_CLAIMS 8

struct sim_claim {
	struct scenario *scenario;
	char name[32];
	bool wanted;
	bool whole;                       /* a Gluster volume of its own, by the class of that name */
	const char *class;
	int64_t size;
};

struct sim_node {
	char name[32];
	bool wanted;                      /* declared, and not deleted since */
	bool declared;                    /* was ever */
	bool devices[MODEL_DEVICES];      /* in the spec */
	bool wipe[MODEL_DEVICES];         /* and what is on them may go */
	bool maintenance;
};

struct scenario {
	uint64_t seed;
	struct world world;
	struct model model;
	struct sim_options options;
	int bricks;                       /* of a set */
	struct proc operators[2];
	int operator_count;
	struct proc manager;              /* Kubernetes' own, on a cluster */
	struct sim_node nodes[MODEL_NODES];
	int node_count;
	struct sim_claim claims[SIM_CLAIMS];
	bool big;                         /* claims for so much that pools fill */
	bool early;                       /* there is a pool before the faults begin: they hit claims, then */
	bool hard;                        /* it is of machines and disks (hardware.c) */
	int first_event;                  /* of those, by the schedule's number */
	int64_t old_paths_ms;             /* until then bricks have the paths of earlier versions */
	bool pools_deleted;               /* by a person */
	bool calm;                        /* the faults have ended */
	struct story *armed;              /* what waits for a write of a pool */
	struct store_watch *pool_watch, *claim_watch, *volume_watch;
	json_t *let_go;                   /* retained volumes that a person gave up: their data stays */
	json_t *late_volumes;             /* whose PersistentVolume came when nobody waited for it any more */
	json_t *pool_sources;             /* pool to its bricks' "node device", with {late, prepared} */
	int64_t settled_ms;               /* how long it took after the faults ended */
};

/* Runs it; s->world.sim.failure says what went wrong, "" for nothing. Everything is freed. */
void scenario_run(struct scenario *s, uint64_t seed, enum mutant mutant, FILE *trace);

/* What a person does. */
void scenario_edit_node(struct scenario *s, struct sim_node *n);
void scenario_delete_node(struct scenario *s, struct sim_node *n);
void scenario_delete_claim(struct scenario *s, struct sim_claim *c);
int scenario_devices(const struct sim_node *n); /* in its spec */
bool scenario_may_lose(const struct scenario *s); /* a node, and have enough of them */
/* One of the things that happen in every schedule. */
void scenario_event(struct scenario *s);

/* check.c: true when all is as it was declared; otherwise problem says what is not. */
bool scenario_settled(struct scenario *s, char *problem, size_t size);
/* What must hold at any moment; breaks the schedule when it does not. */
void scenario_watch_pools(struct scenario *s);
