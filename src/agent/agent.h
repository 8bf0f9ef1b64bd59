/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/controller.h"
#include "systems/glusterfs/host.h"

/*
 * The process on each storage node: carries out status.plan, reports status.agent, and while it
 * leads its cluster also drives the cluster's volumes. Its loops are plain controllers over a kube,
 * a cache and a node_host, so that a simulation can drive them; agent_run adds threads and leases.
 */
struct agent {
	char ns[254], node[254];
	struct node_host *host;
	/* Whether this agent leads the cluster now, and under which epoch; takes part in the election
	 * from the first call on. */
	bool (*leads)(struct agent *a, const char *deployment, const char *cluster,
		      int64_t *ret_epoch);
	/* Gives the lead away for a while: another member can do what this one cannot. */
	void (*yield)(struct agent *a);
	/*
	 * Sees to it that the cache has what the agent has to see: its own node, these pools and their
	 * volumes, and while it leads all nodes and pools of its cluster. True: a leader has all of it.
	 * NULL: the cache has everything.
	 */
	bool (*follow)(struct agent *a, struct reconcile *r, const json_t *node,
		       const struct strv *pools);
	void *userdata;
	struct agent_state *state; /* what may be forgotten: made by agent_init */
};

void agent_init(struct agent *a);
void agent_done(struct agent *a);

/* r->app is the struct agent. Keys: the StorageNode's, a StoragePool's, the name of a pool. */
extern const struct controller AGENT_NODE; /* "node" */
extern const struct controller AGENT_POOL; /* "pool" */
extern const struct controller AGENT_QUOTA; /* "quota" */

/* Cuts objects down to what these loops read. */
void agent_project(const struct kind *kind, json_t *object);

/* Works until SIGTERM or SIGINT. */
struct agent_options {
	const char *ns, *node, *kubeconfig, *state_dir;
	bool storage_pod; /* glusterd runs in the node's storage pod */
	const char *machine_id; /* see node_host_options */
};
int agent_run(const struct agent_options *options, struct error *err);
