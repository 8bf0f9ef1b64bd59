/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>

/*
 * What runs workloads: processes of this machine (src/local), Deployments of a cluster (src/pods), a
 * model (tests/sim). Every operation is idempotent and survives the operator's death: what runs is
 * found again, not started twice.
 */
struct platform;

struct platform_ops {
	/* The machine that a StorageNode means (its nodeSelector, its address): its name; caller frees.
	 * -ENOENT: none matches; -ENOTUNIQ: several do; the message says which. */
	int (*machine)(struct platform *p, const json_t *storage_node, char **ret,
		       struct error *err);
	/*
	 * Sees to it that the agent of this StorageNode (status.nodeName is set) runs, and what serves
	 * its bricks. may_roll: the latter may be interrupted now, if that is needed to bring it up to
	 * date. 1: it is to be, but must not or cannot be yet.
	 */
	int (*agent_ensure)(struct platform *p, const json_t *storage_node, bool may_roll,
			    struct error *err);
	/* Ends the agent and what it ran (glusterd and bricks of that node). 0: all gone; 1: still ending. */
	int (*agent_remove)(struct platform *p, const json_t *storage_node, struct error *err);
	/* What all workloads need before they start (certificates); called at each look. NULL: nothing. */
	int (*prepare)(struct platform *p, struct error *err);
	/*
	 * Tells machines how pools are reached (csi/pools.h); pools: object, each pool's name to what its file
	 * says. Called at each look. NULL: nobody asks.
	 */
	int (*pools)(struct platform *p, const json_t *pools, struct error *err);
	/*
	 * Who uses the PersistentVolume now, as far as the platform has the users: 1 and a few words ("it is mounted
	 * on /mnt: quartermaster umount /mnt"; caller frees), 0: nobody. NULL: others keep what is in use.
	 */
	int (*users)(struct platform *p, const json_t *pv, char **ret, struct error *err);
	/* Adds what the platform has to say to the conditions of the StorageStatus; NULL: nothing. */
	void (*conditions)(struct platform *p, json_t *conditions, int64_t generation);
	/* Tells those who stop machines whether one that serves bricks may be stopped; NULL: there are none. */
	int (*disruption)(struct platform *p, bool allowed, struct error *err);
};

struct platform {
	const struct platform_ops *ops;
};
