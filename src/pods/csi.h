/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "clients/remote.h"
#include "kube/kube.h"

#include <stdbool.h>

/*
 * What brings volumes to machines. It exists once in a cluster, however many deployments there are,
 * since kubelet knows one driver of a name:
 *   CSIDriver csi.quartermaster.storage
 *   DaemonSet quartermaster-node               the node service; rolls a tenth at a time
 *   ConfigMap quartermaster-pools              how the owner's pools are reached; for the pools of other
 *                                              deployments the PersistentVolumes stand
 *   DaemonSet quartermaster-client-PROTOCOL    the client software (clients/client.h); changes on a
 *                                              machine only when its pod is deleted (OnDelete)
 * The CSIDriver's annotation CSI_OWNER names the deployment that keeps all of it, in its own
 * namespace; others leave it alone, until that one has not renewed CSI_RENEWED for half an hour.
 */
#define CSI_OWNER "quartermaster.storage/owner" /* "NAMESPACE/DEPLOYMENT" */
#define CSI_RENEWED "quartermaster.storage/renewed" /* when the owner last looked */
#define CSI_CLIENT "quartermaster.storage/client" /* label of client pods: the protocol */
#define CSI_NODE_NAME "quartermaster-node"
#define CSI_POOLS "quartermaster-pools" /* ConfigMap: how the owner's pools are reached (csi/pools.h) */
#define POOLS_DIR "/etc/quartermaster/pools" /* where the node service has it */
#define CLIENTS_DIR "/run/quartermaster/clients" /* PROTOCOL/client.sock in it */

/* All strings are borrowed. */
struct csi_settings {
	const char *ns, *deployment;
	const char *node_image; /* the operator's: of the node service, and has qm-client */
	const char *own_image; /* the project's image of GlusterFS */
	/* as client_protocols (clients/remote.h): an image, "host" for none, or NULL for the default */
	const char *clients[CLIENT_PROTOCOLS_MAX];
	const char *kubelet_dir; /* NULL: /var/lib/kubelet */
	int64_t max_volumes; /* of a machine; 0: no limit */
	bool tls; /* the Secret DEPLOYMENT-client is mounted into the client of GlusterFS */
};

/* The image of a protocol's client; NULL: the host has it. */
const char *csi_client_image(const struct csi_settings *s, size_t protocol);

/* What they should look like, as pure functions; new references. */
json_t *csi_driver(const struct csi_settings *s, int64_t now_ms);
json_t *csi_node(const struct csi_settings *s);
json_t *csi_client(const struct csi_settings *s, size_t protocol);

/*
 * Sees to it that it is so. tidy: clients that are no longer wanted go; once is enough, since what is
 * wanted does not change in a life. 1: another deployment keeps it.
 */
int csi_ensure(const struct csi_settings *s, struct kube *kube, bool tidy, struct error *err);
/* The ConfigMap, for who keeps all of it only. */
int csi_pools_ensure(const struct csi_settings *s, struct kube *kube, const json_t *pools,
		     struct error *err);
