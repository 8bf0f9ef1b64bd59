/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/controller.h"
#include "operator/platform.h"
#include "worker/worker.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The operator's control loops. Each is a table (struct controller) of plain functions; all that
 * they need beyond the API is in struct operator, so that the simulation drives the very same
 * tables with a model of the platform and of the workers.
 *
 *   system  key "<namespace>/<deployment>": nodes, plan, pools, status, class, deletion of nodes
 *   claim   key of a PersistentVolumeClaim: provisioning, and undoing it
 *   volume  key of a PersistentVolume: reclaim
 *   resize  key of a PersistentVolumeClaim: growing
 *   modify  likewise: another VolumeAttributesClass
 *   snapshot, content  keys of VolumeSnapshots and VolumeSnapshotContents (snapshot.h)
 *   capacity  key "<namespace>/<deployment>": CSIStorageCapacity, only where there is a scheduler
 *   binder  keys of both: binding and phases, only where op->binder (the embedded API)
 *
 * A loop does nothing while op->leads says no.
 */
struct ledger; /* ledger.h: what is promised of each pool */
struct memory; /* system.h: when each node was last heard of */
struct names; /* op.h: of volumes that are made or ended */
struct patience; /* op.h: who has waited how long */

struct operator
{
	const char *
		deployment; /* names the StorageStatus, the StorageClass and, with -<n>, the pools */
	const char *ns; /* where its StorageNodes, StoragePools and StorageStatus are */
	const char *type; /* "glusterfs" */
	const char *volume_type; /* "replicate:3", see systems/glusterfs/plan.h */
	double overcommit; /* promised sizes stay within capacity times this */
	const char
		*reclaim; /* "Delete", "Retain" or "archive": what the class gets when it is made */
	bool binder; /* bind claims ourselves: there is no controller manager */
	const char *tls_allow; /* see plan_input */
	struct platform *platform;
	struct workers *workers;
	/* Whether we hold the lease operator-<deployment> now, and its epoch. */
	bool (*leads)(void *userdata, int64_t *ret_epoch);
	void *leads_userdata;
	struct ledger *ledger; /* set by operator_init */
	struct memory *memory; /* likewise */
	struct names *names; /* likewise */
	struct patience *patience; /* likewise */
	atomic_int making; /* claims for which a volume is being made */
	_Atomic int64_t made_ms; /* when the last of them had its volume (mono) */
	atomic_int finishing; /* that are bound, and for which the rest is done */
	_Atomic int64_t held_ms; /* since when none of these is finished (mono); 0: they are */
};

/* Of struct reconcile, `app` is the struct operator. */
extern const struct controller *const operator_controllers[]; /* ended by NULL */
/* Without the binder, where a controller manager binds. */
extern const struct controller *const operator_controllers_bound[];

/* Makes the parts that live in memory only; operator_done frees them. The strings are borrowed. */
void operator_init(struct operator* op);
void operator_done(struct operator* op);

/* For runner_options.project: drops what no loop reads, so that the caches stay small. */
void operator_project(const struct kind *kind, json_t *object);

/* For runner_options.mark: volumes that no claim has, claims that are to be copies, snapshots in the making or going. */
bool operator_mark(const struct kind *kind, const json_t *object);

/* Names of labels, annotations and finalizers (docs/development.md, "Objects"). */
#define QM_PREFIX "quartermaster.storage/"
#define QM_LABEL_DEPLOYMENT QM_PREFIX "deployment"
#define QM_LABEL_CLUSTER QM_PREFIX "cluster"
#define QM_LABEL_POOL QM_PREFIX "pool"
#define QM_ANNOTATION_POOL QM_PREFIX "pool" /* claim: the pool chosen for it */
/* Of the deployment whose it is: what belongs to no namespace, or to another one than we, says it. */
#define QM_LABEL_NAMESPACE QM_PREFIX "namespace" /* volume */
#define QM_ANNOTATION_NAMESPACE QM_PREFIX "namespace" /* claim with a pool, VolumeSnapshotContent */
#define QM_CLIENT_COUNTS "quartermaster-clients" /* ConfigMap: see pods/csi.h */
#define QM_LABEL_CLIENT_ID QM_PREFIX "client-id" /* volume, client: of the image below */
#define QM_ANNOTATION_CLIENT_IMAGE QM_PREFIX "client-image" /* volume: its class' clientImage */
#define QM_ANNOTATION_CSI_NAME QM_PREFIX "csi-name" /* PV: as the orchestrator named it */
/* volume whose name may come again: which one of that name it is; of its data the same is known (worker.h, owner) */
#define QM_ANNOTATION_INCARNATION QM_PREFIX "incarnation"
#define QM_ANNOTATION_RECLAIM QM_PREFIX "reclaim" /* class, volume: "archive" */
#define QM_ANNOTATION_WAITING QM_PREFIX "waiting" /* claim: why it is still Pending */
#define QM_ANNOTATION_EMPTY                                                                        \
	QM_PREFIX "empty" /* pool: may be destroyed, the operator has seen that it is empty */
#define QM_ANNOTATION_DISCARD                                                                      \
	QM_PREFIX "discard" /* pool: a person gives up what may still be in it ("true") */
#define QM_ANNOTATION_FENCE                                                                        \
	QM_PREFIX "fence" /* StorageStatus: changes with every plan that is carried out */
#define QM_ANNOTATION_CLASS                                                                        \
	QM_PREFIX "class" /* StorageStatus: the metadata of a class that is being made again */
#define QM_ANNOTATION_INTERRUPT                                                                    \
	QM_PREFIX "interrupt" /* StorageNode: a person allows that its bricks stop ("true") */
#define QM_FINALIZER_DEPLOYMENT QM_PREFIX "deployment" /* StorageStatus */
#define QM_FINALIZER_NODE QM_PREFIX "node"
#define QM_FINALIZER_POOL QM_PREFIX "pool"
#define QM_FINALIZER_PROVISION QM_PREFIX "provision"
#define QM_FINALIZER_VOLUME QM_PREFIX "volume"
#define QM_DRIVER "csi.quartermaster.storage"

/* A node whose agent has not reported for this long is Offline. */
#define NODE_OFFLINE_MS 40000

/* ---- the process --------------------------------------------------------------------------------- */
struct operator_options {
	const char *kubeconfig; /* NULL: as kube_config_load finds it */
	const char *deployment, *ns, *type, *volume_type, *reclaim;
	double overcommit;
	bool binder;
	const char *tls_allow; /* see plan_input */
	struct platform *platform;
	/* Who we are for the lease. Where a lock sees to it that there is only one of us, the same in every
	 * life: then a restarted operator goes on at once. NULL: another one each time. */
	const char *identity;
	const char *worker_program; /* qm-gluster */
	const char *worker_log_dir;
	const char *csi_socket; /* where CSI is served; NULL: it is not */
};
/* Runs the loops while it holds the lease operator-<deployment>, until SIGTERM or SIGINT. */
int operator_run(const struct operator_options *options, struct error *err);

/* What the clients of an image are called, on machines and in volumes: a short hash. Caller frees. */
char *client_image_id(const char *image);
