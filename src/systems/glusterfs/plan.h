/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Planning for GlusterFS: a pure function from what is declared and reported to what should be.
 * No I/O, no clock, no randomness: the same input gives the same output, so that a plan that was
 * interrupted is found again. docs/development.md, "Objects", has the JSON.
 */
enum volume_layout { LAYOUT_NONE, LAYOUT_REPLICATE, LAYOUT_ARBITER, LAYOUT_DISPERSE };

struct volume_type {
	enum volume_layout layout;
	int bricks; /* in a set: 1, N, 3 (2 data + arbiter), D+R */
	int data; /* how many bricks' worth of data a set holds: 1, 1, 1, D */
	int redundancy; /* bricks that may be lost */
};
/* "replicate:3" (also "replica:3"), "disperse:4:2", "arbiter" (replica 3 with one arbiter), "none". */
int volume_type_parse(const char *text, struct volume_type *ret, struct error *err);

/* On a pool that is being deleted: it holds no volume of anybody, and its Gluster volume may go. */
#define POOL_ANNOTATION_EMPTY "quartermaster.storage/empty"
/* On a pool: the id of a brick that a person gives up, though it may hold what no other has. */
#define POOL_ANNOTATION_LOST "quartermaster.storage/lost"
/* It is being deleted, and nothing is in it any more. Until then it serves, and is kept whole. */
bool volume_is_to_go(const json_t *pool);

struct plan_input {
	const char *deployment;
	const char *volume_type;
	double overcommit;
	const json_t *nodes; /* array of StorageNode, those of this deployment */
	const json_t *pools; /* array of StoragePool, likewise */
	const json_t *
		volumes; /* object: pool's name to how many volumes it holds; NULL: unknown, so never delete one */
	long last_number; /* the highest ever given: new pools are <deployment>-<n> with more */
	const json_t *
		foreign_pools; /* array of names in the namespace that new pools cannot have; NULL: none */
	int64_t epoch;
	const char *
		tls_allow; /* who may connect to new pools, by certificate; NULL: new pools are plain */
};

struct plan_output {
	json_t *pools; /* array of {"name", "spec", "action": "create"|"change"|"keep"|"delete", "why"} */
	json_t *node_plans; /* object: StorageNode name to its status.plan */
	json_t *findings; /* array of {"node", "device"?, "pool"?, "reason", "message"}: why something is not used, and what to do */
	json_t *steps; /* array of strings for people: what carrying this out would do, in order */
};

/*
 * Reasons of findings: NoAddress, AddressConflict (the node is not used), AddressChanged (the old one
 * is kept), ClusterChanged, Waiting (no report yet), Refused, Missing, Failed (a device, in the agent's
 * words), Unused (fit, but no set can be made of it), Held (should leave its pool, but nothing can take
 * its place), Moving (is leaving its pool), Conflict (a device named by two pools), Odd (a pool that
 * makes no sense and is left alone).
 */
int glusterfs_plan(const struct plan_input *in, struct plan_output *ret, struct error *err);
void plan_output_done(struct plan_output *p);

/*
 * A pool's number is never given twice: what still speaks of the old one would speak of the new.
 * That of a pool's name <deployment>-<n>, 0: it is not such a name; and the highest that a
 * StorageNode's plan and report name.
 */
long plan_pool_number(const char *deployment, const char *name);
long plan_node_number(const char *deployment, const json_t *node);

/* Stable id of a brick: "b-" and 12 hex digits of xxh64 over the StorageNode's uid and the device or directory. */
void brick_id(const char *node_uid, const char *source, char id[static 16]);
