/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/op.h"
#include "operator/parts.h"
#include "systems/glusterfs/plan.h"

/*
 * One look at the whole deployment: what the API has, the plan that follows from it, and what came of
 * carrying it out. Nodes are read from the cache, until a pool is to be written: since a stale view could
 * give one device to two pools, that is only done in a look that has read them live. A look has its time,
 * so that the next change is seen soon; what it leaves over is the next one's.
 */
struct system {
	struct reconcile *r;
	struct operator* op;
	int64_t epoch;
	bool live; /* the nodes are read from the API itself */
	bool wants_live; /* a pool is to be written, but they were not: look again so */
	bool behind; /* the time was up before all had their turn */
	json_t *changed; /* object: names of nodes and pools that have changed since their last turn */
	json_t *status; /* the StorageStatus */
	struct parts parts; /* the StorageNodes and StoragePools of this deployment */
	long last_number; /* the highest that a pool's name, <deployment>-<n>, was ever given */
	/*
	 * Of the part that is being looked at, and its plan; after the last one, of all parts what the
	 * StorageStatus is made from (system_part.c, brief_node and brief_pool).
	 */
	json_t *nodes; /* array: StorageNodes */
	json_t *ambiguous; /* array: those of which nobody knows whose they are */
	json_t *deployments; /* array: names of all deployments of this type in the namespace */
	json_t *pools; /* array: StoragePools; after the last part without those that have a parent, */
	json_t *wholes; /* which are here then: volumes, not what volumes are made in */
	json_t *foreign_pools; /* array: names of other StoragePools in the namespace */
	struct plan_output plan;
	bool fenced; /* status_fence has written */
	int sought; /* machines that were asked for though the answer stands in the status */
	int lost; /* nodes whose machine is not found */
	json_t *phases; /* object: each node's phase as it is stored; in `nodes` it is as we know better */
	bool reported; /* some node's agent has */
	json_t *renewals; /* object: StorageNode's name to when its agent renewed its lease */
	json_t *problems; /* array of strings: what is wrong and what to do; the first few by the alphabet */
	size_t problem_count;
};

#define SYSTEM_PROBLEMS_MAX 4
/* Whether a step that began then has had its time; the look is behind then. */
bool system_time_is_up(struct system *s, int64_t began_ms);
void system_problem(struct system *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* What of `wanted` (an object) differs from `have`, as a merge patch; NULL: nothing. New reference. */
json_t *merge_diff(const json_t *have, const json_t *wanted);
/* The findings about one node as text, those with one of the reasons (ended by NULL); caller frees, NULL: none. */
char *findings_text(const struct system *s, const char *node, const char *const *reasons);

/*
 * aside.c: what makes no sense is set aside. node_set_aside takes the node at that index out of the
 * look and says why; false: it has bricks, so it stays.
 */
int nodes_set_aside(struct system *s);
bool node_set_aside(struct system *s, size_t index, const char *why);
/* The condition of a node that was set aside and now is not. */
void aside_is_over(json_t *conditions, int64_t generation, int64_t now_ms);
/* After planning: pools that the plan leaves alone get their condition. */
void pools_say_aside(struct system *s);

/* system_part.c: keeps what was read, and looks at one part after the other. */
void part_add_node(struct system *s, const json_t *node);
void part_add_pool(struct system *s, const json_t *pool);
void part_add_foreign(struct system *s, const char *pool);
int parts_look(struct system *s);

/* system_node.c: once for all; for a part before planning (adopting, machines, who is offline), and after it. */
int nodes_begin(struct system *s);
int nodes_prepare(struct system *s);
int nodes_finish(struct system *s);
/* 0: nothing has changed; then what agents report, and before all what a person wrote. */
#define NODE_URGENCY_MAX 2
int node_urgency(const struct system *s, const json_t *node);
/* It has its turn in another look. */
void node_pass_over(struct system *s, const json_t *node);
int nodes_end(struct system *s);

/* system_pool.c */
/* Of this look's pools; NULL: none has that name. */
json_t *pool_named(const struct system *s, const char *name);
int pools_apply(struct system *s);
/* reach.c: tells the platform how pools are reached, from the cache. */
int pools_tell(struct system *s);
/* object: pool's name to its number of volumes. New reference. */
json_t *pools_volumes(const struct system *s);

/* system_status.c */
/* Where it was not listed, it is made; -errno where it is another type's. */
int status_ensure(struct system *s);
/* Once in a look, before its first write to a pool, with the version that was read: of two operators one fails. */
int status_fence(struct system *s);
int status_write(struct system *s);
/* Takes up the last number of a pool; writes one down, before a pool is made that has it. */
void status_take_number(struct system *s);
int status_keep_number(struct system *s, long number);
/* Puts what the plan found into problems. */
void status_findings(struct system *s);
/* Merge-patches the StorageStatus (patch is stolen); s->status is the newer version then. */
int status_patch(struct system *s, const char *subresource, json_t *patch);

/* class.c: submits the class where the system comes online, and brings it up to date. */
int class_ensure(struct system *s, bool comes_online);
/* Deletes the class, if it is ours. */
int class_remove(struct system *s);

/* system_end.c: a StorageStatus that is being deleted. */
int deployment_end(struct system *s);

/* ---- what is remembered between looks, and may be forgotten -------------------------------------- */
struct memory *memory_new(void);
void memory_free(struct memory *m);
struct node_memory {
	char *uid; /* first: struct keyed */
	char *heartbeat; /* the last that was seen, */
	int64_t heard_ms; /* and when (our own clock: those of nodes may differ) */
	int64_t known_ms; /* when we first looked at it */
	int64_t ensured_ms; /* when the platform was last asked to run its agent; 0: never */
	int64_t ensured_generation;
	int64_t sought_ms; /* when its machine was last not found; 0: never */
	int64_t sought_generation;
};
/* The names of nodes and pools that have changed since they were last taken (object, new reference); noted by any thread. */
void memory_note_changed(struct memory *m, const char *name);
json_t *memory_take_changed(struct memory *m);
/* Counts the looks that were behind: who comes first in the next one. */
size_t memory_turn(const struct memory *m);
/* What nodes_begin read, not before that time (new reference); NULL: nothing. */
json_t *memory_renewals(const struct memory *m, int64_t since_ms);
void memory_set_renewals(struct memory *m, json_t *renewals, int64_t now_ms);
/* How many nodes' machines were not found in the last look. */
int memory_lost(const struct memory *m);
void memory_set_lost(struct memory *m, int count);
struct node_memory *memory_node(struct memory *m, const char *uid);
/*
 * The last number that a pool may have, where that one was written down: those of pools that the
 * API has refused to make are nobody's, until another one is written down.
 */
long memory_last_number(const struct memory *m, long written);
void memory_note_number(struct memory *m, long number, bool refused);
/* object: pool's name to what the API refused of it: {spec, at, why} */
json_t *memory_refused(struct memory *m);
