/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "agent/agent.h"

#include <pthread.h>

/*
 * What an agent remembers between calls. All of it may be lost: it only saves work (what was
 * examined, reported or limited already) or measures time (how long a brick is offline).
 */
struct seen_offline {
	char *brick; /* "ADDRESS:/path" */
	char *pool; /* whose volume has it */
	int64_t since_ms; /* monotonic; or since it was last known to run all the same */
	char *renewed; /* its node's lease, as seen a while after that; NULL: not looked at yet */
	bool runs; /* its agent has told so since */
};

struct repair {
	char *brick; /* its id */
	int64_t next_ms; /* monotonic: not before */
	int delay_ms;
};

struct agent_state {
	pthread_mutex_t lock; /* the loops run in threads of their own */
	/* node */
	json_t *report; /* the last full look at the node */
	char *report_key; /* what it was made from */
	int64_t next_full_ms;
	int trouble_ms; /* how long after the last look that was, while something is wrong; 0: nothing is */
	int64_t numbers_ms; /* when numbers were last written */
	bool peers_done; /* the trusted pool was seen to be as that plan says */
	bool left_lead; /* for this maintenance */
	json_t *missing; /* bricks whose disks are not there: id to {since: monotonic ms, instead: what has the name} */
	int glusterd_pid; /* the one seen last, and since when */
	int64_t glusterd_ms;
	struct repair *repairs;
	size_t repair_count;
	/* pool */
	struct seen_offline *offline;
	size_t offline_count;
	/*
	 * pool to {healed, numbers, told, revive, confirm, doubt, next: times in ms; orders, nodes,
	 * clean, why, failure}
	 */
	json_t *pools;
	/* quota */
	json_t *limits; /* pool to {volume: resourceVersion in force} */
	json_t *quota_ms; /* pool to the time of the last pass */
	int64_t sweep_ms; /* monotonic, 0: nothing to sweep */
};

#define LABEL_POOL "quartermaster.storage/pool"
#define LABEL_DEPLOYMENT "quartermaster.storage/deployment"
#define LABEL_CLUSTER "quartermaster.storage/cluster"

/* The agent's own StorageNode from the cache; new reference or NULL. */
json_t *agent_node(struct reconcile *r);
/* The deployment and cluster whose lease decides who leads. */
const char *agent_deployment(const json_t *node);
bool agent_leads(struct agent *a, const json_t *node);
/* Whether the node is to leave the trusted pool: it has no part in the cluster's volumes any more. */
bool agent_leaves(const json_t *plan);
/* How long the glusterd that runs here has been seen. */
int64_t agent_glusterd_age_ms(struct agent *a, const struct clock *clock);
#define GLUSTERD_SETTLE_MS                                                                         \
	10000 /* one that has just started meets its peers, and then starts its bricks by itself */
/* Merge patch of part of this very object's status (stolen); -ESTALE: another has its name now. */
int agent_patch_status(struct reconcile *r, const struct kind *kind, const json_t *object,
		       json_t *status);

/*
 * follow.c: the watches of an agent. Its own node and what that names; with a cluster (that it leads)
 * also all nodes and pools of that. 1: all are listed, 0: not yet, -errno.
 */
struct following {
	const char *node; /* its own */
	const struct strv *pools; /* with a brick here */
	const char *deployment, *cluster; /* cluster NULL: it does not lead */
};
int follow_apply(struct runner *r, const struct following *f, struct error *err);
/* The pools that a node's plan and report name. */
void follow_pools(const json_t *node, struct strv *ret);

/* report.c: status.agent but quota, from a look at the machine. */
struct looking {
	struct reconcile *r;
	struct agent *agent;
	const json_t *node;
	const json_t *plan; /* NULL: no valid orders */
	bool maintenance;
	bool full; /* all of the node was looked at, not only what can end by itself */
	bool unready; /* a brick that lies beside another is not there yet */
	bool away; /* one that is to go is on a disk that was not there */
	bool unreleased; /* a brick that is to go could not be let go yet */
	bool sees_cluster; /* what a leader has to know is in the cache */
	json_t *prepared; /* report_ask: id of a brick to whether its pool has had it in use */
};
/* Asks the API, not a cache, for the pools of bricks that are not on record as in use; before report_bricks. */
int report_ask(struct looking *l);
json_t *report_devices(struct looking *l);
/* With prepare, brings the plan's bricks to Ready, and devices (from report_devices) up to date with it. */
json_t *report_bricks(struct looking *l, json_t *devices, bool prepare);
/*
 * Brings the numbers of bricks up to date. False: one that was mounted does not answer, or its disk
 * is gone.
 */
bool report_usage(struct looking *l, json_t *bricks);
/* Is all but the numbers (used, free, pending) the same? */
bool report_same(const json_t *a, const json_t *b, bool *ret_numbers_differ);

/* offline.c: which bricks of a pool's volume the one that leads sees offline, and for how long. */
void offline_note(struct reconcile *r, struct agent *a, const char *pool,
		  const struct gluster_peers *peers, const struct gluster_volume *v);
/* The pool is gone, or another's: a brick at such a path is a new one, when it comes again. */
void offline_drop(struct agent_state *s, const char *pool);
/* Its node says that its file system is not there, whatever gluster says: its disk is dead. */
bool offline_unmounted(struct reconcile *r, struct agent *a, const struct gluster_brick *b);
/* What was seen while it led before says nothing of the time since. */
void offline_forget(struct agent_state *s);
int64_t offline_ms(struct reconcile *r, struct agent *a, const char *address, const char *path);
/* Its node's glusterd cannot be asked, but its agent goes on to tell that the brick runs. */
bool offline_runs(struct agent *a, const char *address, const char *path);

/* release.c: frees the bricks that are to go. True: all of them are gone, or their disks are. */
bool release_bricks(struct looking *l);

/* replaced.c: has the node of this brick, asked anew, another disk in the place of the brick's? */
bool disk_replaced(struct reconcile *r, struct agent *a, const char *address, const char *path);

/* peers.c: the trusted pool follows plan.peers and plan.detach. */
int peers_converge(struct looking *l, struct error *err);
/* On a node that leaves: removes a volume that nobody knows of, if these bricks (ids) are in it. */
void peers_forget_unreported(struct looking *l, const struct strv *released);
