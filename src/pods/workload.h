/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

#include <stdbool.h>

/*
 * The two workloads of a StorageNode, as pure functions: what a Deployment should look like. Both
 * run on the host network of the node's machine and share, by hostPath, what GlusterFS keeps:
 *   STATE (/var/lib/quartermaster/nodes/NAMESPACE.NAME): as /var/lib/quartermaster, with the brick
 *     mounts below it (the agent mounts, Bidirectional; the storage pod sees, HostToContainer),
 *     its glusterd/ as /var/lib/glusterd, its log/ as /var/log/glusterfs;
 *   /run/quartermaster/nodes/NAMESPACE.NAME as /run: sockets and pid files.
 * So an agent can be replaced at any time, and no brick notices.
 */
struct workload_settings {
	const char *deployment;
	const char *image; /* of both */
	bool tls; /* the Secret DEPLOYMENT-tls is mounted, and glusterd uses it */
	const char *certificate; /* with tls: of which certificate; storage pods roll with it */
};

#define WORKLOAD_ROLE "quartermaster.storage/role" /* label: "storage" or "agent" */
#define WORKLOAD_NODE                                                                              \
	"quartermaster.storage/node" /* label: the StorageNode's name, shortened if need be */
#define WORKLOAD_HASH                                                                              \
	"quartermaster.storage/template" /* annotation: of what the Deployment was made from */
#define WORKLOAD_CERTIFICATE                                                                       \
	"quartermaster.storage/certificate" /* annotation of storage pods: see settings */
#define TLS_DIR "/etc/ssl/glusterfs" /* tls.crt, tls.key, ca.crt: where our images lead GlusterFS */

/* "NAME-storage", "NAME-agent"; names that are too long end in a hash. Caller frees. */
char *workload_name(const char *storage_node, const char *role);
/* The value of the label WORKLOAD_NODE; caller frees. */
char *workload_node_label(const char *storage_node);
/*
 * The Deployment of a role for a StorageNode (spec.storageNetwork.ips[0] is in force) on the machine
 * whose Node is given. New reference; its annotation WORKLOAD_HASH changes with whatever counts.
 */
json_t *workload_deployment(const struct workload_settings *s, const char *role,
			    const json_t *storage_node, const json_t *machine);
