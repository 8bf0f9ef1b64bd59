/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/*
 * What runs workloads: processes of this machine (src/local), Deployments of a cluster (later), a
 * model (tests/sim). Every operation is idempotent and survives the operator's death: what runs is
 * found again, not started twice.
 */
struct platform;

struct platform_ops {
	/* The machine that a StorageNode means (its nodeSelector, its address): its name; caller frees.
	 * -ENOENT: none matches; -ENOTUNIQ: several do; the message says which. */
	int (*machine)(struct platform *p, const json_t *storage_node, char **ret,
		       struct error *err);
	/* Sees to it that the agent of this StorageNode (status.nodeName is set) runs. */
	int (*agent_ensure)(struct platform *p, const json_t *storage_node, struct error *err);
	/* Ends the agent and what it ran (glusterd and bricks of that node). 0: all gone; 1: still ending. */
	int (*agent_remove)(struct platform *p, const json_t *storage_node, struct error *err);
};

struct platform {
	const struct platform_ops *ops;
};
