/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "systems/glusterfs/plan.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * What the planner thinks with: nodes, the devices and directories on them ("sources"), pools.
 * Everything is sorted by name, so that the order of the input does not matter. Strings and JSON
 * are borrowed from the input, but for what is marked as owned.
 */
struct plan_pool;

struct source {
	struct plan_node *node;
	const char *name;
	bool directory;
	char id[16];
	int64_t size;
	bool listed; /* in the node's spec, as opposed to known from a pool only */
	bool fit; /* the agent says that it can be used */
	const char *replaced; /* the brick whose disk is gone, with this one in its place, or NULL */
	bool unsure; /* that may be the brick's own all the same, with its first sector broken */
	struct plan_pool *pool; /* the pool whose spec names it, NULL: none */
	bool taken; /* by a pool, or still held by one that it is leaving */
	const struct source
		*same; /* another node of the machine names this very device, and has it */
};

struct plan_node {
	const json_t *object;
	const char *name, *uid;
	const char *cluster; /* where it is: that of its bricks, else what its spec says */
	const char *wanted; /* the cluster of its spec */
	const char *address; /* in force; NULL: none, the node cannot be used */
	int zone;
	bool deleting, maintenance, offline;
	bool has_bricks; /* in the spec or the status of some pool */
	struct source *sources;
	size_t sources_count;
	int free_count; /* plan_place.c: of its sources */
};

struct plan_pool {
	const json_t *object; /* NULL: new */
	char *name; /* owned */
	long number; /* of its name <deployment>-<n> */
	const char *cluster;
	struct volume_type type;
	json_t *spec; /* owned: as it should be */
	const char *action;
	char *why; /* owned */
	bool deleting;
	bool made; /* has a volume */
	bool odd; /* makes no sense: left as it is */
};

struct plan_model {
	const struct plan_input *in;
	struct volume_type type; /* of new pools */
	struct plan_node *nodes;
	size_t nodes_count;
	struct plan_pool *pools;
	size_t pools_count, pools_cap;
	struct plan_pool *children; /* whole volumes: pools with a parent */
	size_t children_count;
	json_t *findings, *steps;
	json_t *replaced; /* bricks that left a spec: sources still take their names from them */
};

int model_build(struct plan_model *m, const struct plan_input *in, struct error *err);
void model_done(struct plan_model *m);
struct plan_node *model_node(struct plan_model *m, const char *name);
struct source *model_source(struct plan_model *m, const char *brick_id);
struct plan_pool *model_add_pool(struct plan_model *m, const char *cluster);
/* The id for another brick on the same source: one that none of the bricks lost there had. */
void source_next_id(struct source *s);
const json_t *pool_brick(const json_t *bricks, const char *id);
/* plan_node.c: whether a plan or a report means this very pool, as far as it says that. */
bool plan_is_of_pool(const json_t *brick, const struct plan_pool *p);
/* Whether both name the same bricks, by their ids. */
bool bricks_same(const json_t *a, const json_t *b);

void plan_finding(struct plan_model *m, const char *node, const char *device, const char *pool,
		  const char *reason, const char *format, ...)
	__attribute__((format(printf, 6, 7)));
void plan_step(struct plan_model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* plan_place.c ---------------------------------------------------------------------------------- */
#define SET_MAX 64
struct set {
	struct source *bricks[SET_MAX];
	int count;
	int arbiter; /* index, or -1 */
};
/* May this source become a brick of the cluster now? */
bool source_is_free(const struct source *s, const char *cluster);
/* The best set that can be made in the cluster; false: none. */
bool choose_set(struct plan_model *m, const char *cluster, const struct volume_type *type,
		struct set *ret);
/* The best source in place of brick `leaving` of the pool, at least min_size; NULL: none. */
struct source *choose_replacement(struct plan_model *m, const struct plan_pool *p,
				  const char *leaving, int64_t min_size);
/* The JSON of a brick. */
json_t *brick_json(const struct source *s, bool arbiter);

/* plan_pools.c: editing of the pools that are, making new ones. plan_node.c: each node's orders. */
void plan_pools(struct plan_model *m);
void plan_pool_change(struct plan_model *m, struct plan_pool *p, char *why /* stolen */);
void plan_note_prepared(struct plan_model *m, struct plan_pool *p);
json_t *plan_nodes(struct plan_model *m);

/* plan_spare.c: the pool, or volume beside it, that may need what this brick held; NULL: none. */
struct needed {
	const struct plan_pool *pool;
	const char *id; /* of its own brick there */
};
struct needed plan_needed(const struct plan_model *m, const struct plan_pool *p, const char *id);

/* plan_children.c ------------------------------------------------------------------------------- */
/* Their bricks, beside those of their parents as these are planned. */
void plan_children(struct plan_model *m);
bool plan_has_children(const struct plan_model *m, const struct plan_pool *p);
/* Some child of the pool still has to follow an earlier change of it. */
bool plan_children_follow(const struct plan_model *m, const struct plan_pool *p);
/* A volume of a child has a brick that lies beside this one. */
bool plan_children_lie_on(const struct plan_model *m, const struct plan_pool *p, const char *id);
/* Nodes that hold bricks of children are in use. */
void plan_children_mark(struct plan_model *m);
/* Whether the node still has bricks of children on what this brick of it holds. */
bool plan_brick_carries(const struct plan_node *n, const json_t *brick);
