/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "clients/remote.h"
#include "kube/kube.h"
#include "operator/operator.h"

#include <stdbool.h>

/*
 * What brings volumes to machines. It exists once in a cluster, however many deployments there are,
 * since kubelet knows one driver of a name:
 *   CSIDriver csi.quartermaster.storage
 *   DaemonSet quartermaster-node               the node service; rolls a tenth at a time
 *   ConfigMap quartermaster-pools              how the owner's pools are reached; for the pools of other
 *                                              deployments the PersistentVolumes stand
 *   DaemonSet quartermaster-client-PROTOCOL-ID the client software (clients/client.h) of one image,
 *                                              whose hash the id is; changes on a machine only when
 *                                              its pod is deleted (OnDelete)
 * The CSIDriver's annotation CSI_OWNER names the deployment that keeps all of it, in its own
 * namespace; others leave it alone, until that one has not renewed CSI_RENEWED for half an hour.
 */
#define CSI_OWNER "quartermaster.storage/owner" /* "NAMESPACE/DEPLOYMENT" */
#define CSI_RENEWED "quartermaster.storage/renewed" /* when the owner last looked */
#define CSI_CLIENT "quartermaster.storage/client" /* labels of clients: the protocol */
#define CSI_CLIENT_ID QM_LABEL_CLIENT_ID
#define CSI_REFUSED "quartermaster.storage/refused" /* of a client that was taken back: why */
#define CSI_ORDER_FLAG "--client="
#define CSI_NODE_NAME "quartermaster-node"
#define CSI_COUNTS QM_CLIENT_COUNTS /* ConfigMap {NODE: {ID: volumes}} of clients that are to end */
#define CSI_POOLS                                                                                  \
	"quartermaster-pools" /* ConfigMap: how the owner's pools are reached (csi/pools.h) */
#define POOLS_DIR "/etc/quartermaster/pools" /* where the node service has it */
#define CLIENTS_DIR "/run/quartermaster/clients" /* PROTOCOL/ID/client.sock in it */

/* All strings are borrowed. */
struct csi_settings {
	const char *ns, *deployment;
	const char *node_image; /* the operator's: of the node service, and has qm-client */
	const char *own_image; /* the project's image of GlusterFS */
	/*
	 * As client_protocols (clients/remote.h): an image, "host" for the machine's own software, or
	 * NULL: of GlusterFS own_image, of others what the image of the node service has.
	 */
	const char *clients[CLIENT_PROTOCOLS_MAX];
	const char *kubelet_dir; /* NULL: /var/lib/kubelet */
	int64_t max_volumes; /* of a machine; 0: no limit */
	int64_t patience_ms; /* for a new image to work on all machines, before it is taken back */
	bool tls; /* the Secret DEPLOYMENT-client is mounted into the client of GlusterFS */
};

/* The image of a protocol's client; NULL: it has no container. */
const char *csi_client_image(const struct csi_settings *s, size_t protocol);

/* What they should look like, as pure functions; new references. */
json_t *csi_driver(const struct csi_settings *s, int64_t now_ms);
/* orders: by protocol, ids of clients for new mounts, best first. */
json_t *csi_node(const struct csi_settings *s, const json_t *orders);
json_t *csi_client(const struct csi_settings *s, size_t protocol, const char *image);

/* How far the clients are, for whoever asks the StorageStatus. */
struct csi_report {
	bool known, updated;
	char *reason, *message; /* owned */
};
void csi_report_done(struct csi_report *r);

/* Sees to it that it is so. 1: another deployment keeps it; the report says nothing then. */
int csi_ensure(const struct csi_settings *s, struct kube *kube, struct csi_report *report,
	       struct error *err);
/* The ConfigMap, for who keeps all of it only. */
int csi_pools_ensure(const struct csi_settings *s, struct kube *kube, const json_t *pools,
		     struct error *err);
