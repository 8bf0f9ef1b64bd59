/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/op.h"

/*
 * Snapshots. Two loops, as people know them from external-snapshotter, with its names, so that each
 * can work together with the other half of that:
 *
 *   snapshot  key of a VolumeSnapshot: the common controller. It makes the VolumeSnapshotContent, binds
 *             both, keeps the status and sees to deletion; for snapshots of our own volumes, and on a cluster
 *             only while no snapshot-controller holds its lease.
 *   content   key of a VolumeSnapshotContent of our driver: the snapshotter. It takes the snapshot in the
 *             volume's pool, or finds one that is there, and removes it.
 */
#define SNAPSHOT_PREFIX "snapshot.storage.kubernetes.io/"
/* annotations */
#define SNAPSHOT_BEING_CREATED SNAPSHOT_PREFIX "volumesnapshot-being-created" /* content: "yes" */
#define SNAPSHOT_BEING_DELETED SNAPSHOT_PREFIX "volumesnapshot-being-deleted" /* content: "yes" */
#define SNAPSHOT_DEFAULT_CLASS SNAPSHOT_PREFIX "is-default-class" /* class: "true" */
/* snapshot: the deployment that holds it, with QM_ANNOTATION_NAMESPACE: the rest that tells whose it is may go first */
#define SNAPSHOT_HELD_BY QM_LABEL_DEPLOYMENT
/* finalizers */
#define SNAPSHOT_CONTENT_HELD SNAPSHOT_PREFIX "volumesnapshotcontent-bound-protection"
#define SNAPSHOT_BOUND SNAPSHOT_PREFIX "volumesnapshot-bound-protection"
#define SNAPSHOT_AS_SOURCE SNAPSHOT_PREFIX "volumesnapshot-as-source-protection"
#define SNAPSHOT_CLAIM_HELD SNAPSHOT_PREFIX "pvc-as-source-protection" /* claim */

/* Who else does the common controller's work. */
#define SNAPSHOT_LEASE_NS "kube-system"
#define SNAPSHOT_LEASE "snapshot-controller-leader"

/*
 * Whether the content is of our driver and of a pool of ours (or of one that was), and which volume
 * (its source) or snapshot (one that was there) it names.
 */
bool content_is_ours(struct reconcile *r, const json_t *content, struct handle *ret);
/*
 * A snapshot that was taken through the CSI socket has no object of its own: its pool's object says that it
 * is promised, by an annotation of this prefix and its name, with its size. It stands in the ledger as
 * "content/POOL/NAME"; caller frees.
 */
#define SNAPSHOT_PROMISED "snapshot.quartermaster.storage/"
/*
 * Beside it: which snapshot of that name it is (struct worker_volume, owner), since the name is
 * a hash of what an orchestrator calls it and comes again. What a version before took has none.
 */
#define SNAPSHOT_INCARNATION "snapshot-incarnation.quartermaster.storage/"
char *csi_snapshot_ledger_key(const char *pool, const char *name);
/* Under which name a content's snapshot stands in the ledger; caller frees. */
char *content_ledger_key(const char *name);
/* Whether it names an existing snapshot. */
bool content_is_given(const json_t *content);

/*
 * A VolumeSnapshot that lost its finalizers goes without letting its content go, which then nobody could delete any
 * more. Whether that may be so, by the cache.
 */
bool content_seems_left(struct reconcile *r, const json_t *content);
/*
 * By what the API itself says; if so, the content is marked as being deleted, and deleted where that is its policy.
 * 1: it is so; content is what the API has.
 */
int content_end_left(struct reconcile *r, json_t **content);

/*
 * A VolumeSnapshot that lost its finalizers while it was being taken never lets its claim go. A claim that is to go, and
 * that no snapshot is being taken of any more, by what the API itself says, loses that hold. For the claims' loop, as are
 * the keys of such a claim, of a change to a VolumeSnapshot.
 */
int snapshot_release_left(struct reconcile *r, const json_t *claim);
void snapshot_held_keys(const json_t *snapshot, struct reconcile *r, struct strv *keys);

/* ---- one VolumeSnapshot in work (snapshot.c, snapshot_end.c) ------------------------------------ */
struct snapshot_work {
	struct reconcile *r;
	struct operator* op;
	json_t *snapshot;
	const char *ns;
};

/* The name of the content that it has, or is to have; caller frees. */
char *snapshot_content_name(const json_t *snapshot);
/* The content's reference names this very snapshot. */
bool content_points_back(const json_t *content, const json_t *snapshot);
/* The claim it is taken of, NULL: it is of a content that was there. */
const char *snapshot_claim(const json_t *snapshot);
bool snapshot_is_ready(const json_t *snapshot);
/* The claim is held until no snapshot is taken of it. */
int snapshot_hold_claim(struct snapshot_work *w, const json_t *claim);
bool snapshot_holds_claim(struct snapshot_work *w);
int snapshot_release_claim(struct snapshot_work *w);
/* Keys of claims that wait for this snapshot, or are made from it, are put on their loop's queue. */
void snapshot_wake_claims(struct snapshot_work *w);
/* 1: another snapshot-controller leads, which does this work for all drivers; the key comes again. */
int snapshot_others_lead(struct reconcile *r);
/* What is left to do for one that is being deleted. */
int snapshot_end(struct snapshot_work *w);
