/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "csi/handle.h"
#include "operator/operator.h"

/* What the loops share. */
static inline struct operator* op_of(struct reconcile *r)
{
	return r->app;
}

/* Whether we may act. If not, the key comes again soon: we may lead by then. */
bool op_leads(struct reconcile *r, int64_t *ret_epoch);

/*
 * Merge-patches the object as it was read: the patch (stolen) gets its resourceVersion, so that a
 * decision on something old fails with -ESTALE. The cache learns the result; ret may be NULL.
 */
int op_patch(struct reconcile *r, const struct kind *kind, const json_t *object,
	     const char *subresource, json_t *patch, json_t **ret);
/* Without that finalizer; 0 too where the object is gone already. */
int op_drop_finalizer(struct reconcile *r, const struct kind *kind, const json_t *object,
		      const char *finalizer);
/* The object's finalizers with one more or one less. New reference. */
json_t *finalizers_with(const json_t *object, const char *finalizer);
json_t *finalizers_without(const json_t *object, const char *finalizer);

/*
 * Whether a failure is of that one object (refused as it is, or too large), as opposed to one of the
 * API or of our view of it: then everything else can go on.
 */
bool op_is_of_object(int rc);

/* 0 and the object, 1 and NULL where it is not there, or -errno in r->error. Asks the API itself. */
int op_get_live(struct reconcile *r, const struct kind *kind, const char *ns, const char *name,
		json_t **ret);

/* Has the status subresource's conditions as an array of its own, to be changed. New reference. */
json_t *conditions_of(const json_t *object);

/* The key of the system controller. */
char *system_key(const struct operator* op);
/* Asks for a look at the whole system soon: numbers have changed. Many such wishes make one look. */
void system_soon(struct reconcile *r);

/* ---- names (names.c) -------------------------------------------------------------------------- */
/*
 * A name that an orchestrator gives is used again, so its volume may be ended by the volume loop and by
 * a call, and be made anew right after. Held from the look at the record until data and record are both made or gone,
 * so that whoever ends a volume never meets its successor.
 */
struct names *names_new(void);
void names_free(struct names *n); /* NULL-safe */
struct name_hold {
	struct names *names;
	char *name; /* NULL: nothing is held */
};
/* Loops do not wait for one another: false where another has it, and they come again. */
bool name_try(const struct operator* op, const char *name, struct name_hold *ret);
/* Calls wait, for some seconds; -EINPROGRESS then. */
int name_hold(const struct operator* op, const char *name, struct name_hold *ret,
	      struct error *err);
void name_release(struct name_hold *h);

/* ---- waiting (patience.c) ---------------------------------------------------------------------- */
struct patience *patience_new(void);
void patience_free(struct patience *p); /* NULL-safe */
/*
 * What is named waits for something that does not tell by itself when it is there: the key comes again after a
 * quarter of the time that it has waited so far, a second at least and most_ms at most. True at first, and after
 * ten minutes again: the moment for an Event, which costs the API three requests when it is there already.
 * Memory only: who starts anew says it again.
 */
bool op_waits(struct reconcile *r, const char *why, const char *name, int most_ms);

/* ---- nodes (whose.c) -------------------------------------------------------------------------- */
enum whose { WHOSE_OTHERS, WHOSE_OURS, WHOSE_UNCLEAR };
/*
 * A label decides; without one a node belongs to the only deployment of its type in the namespace (only: ours is that),
 * and else nobody knows whose it is. One that is on its way out, and not ours to hold, is nobody's.
 */
enum whose node_whose(const struct operator* op, const json_t *node, bool only);
/* What is said of one that is unclear. */
#define NODE_UNCLEAR                                                                               \
	"several deployments of this type are in the namespace; label the node "                   \
	"with " QM_LABEL_DEPLOYMENT "=NAME"
/*
 * How many volumes each of these pools (array of StoragePools) holds, by its name, as the operator counts them: claims
 * that have been promised one, and snapshots, too. Asks the API itself, by op's deployment, namespace and overcommit alone. *ret is a new reference.
 */
int pools_count(const struct operator* op, struct kube *kube, const json_t *pools, json_t **ret,
		struct error *err);

/* ---- pools (pool.c) --------------------------------------------------------------------------- */
bool pool_is_ours(const struct operator* op, const json_t *pool);
/* The pool beside whose bricks its own lie: it is a single volume, of kind whole. NULL: a pool for many. */
const char *pool_parent(const json_t *pool);
/* "<deployment>-<n>": of a pool that is gone only its name is left. */
bool pool_name_is_ours(const struct operator* op, const char *name);
/* Ours, and one that volumes are made in: a whole volume is the pool of nothing. */
bool pool_takes_volumes(const struct operator* op, const json_t *pool);
/* Online, or at least able to serve, by what its nodes last said of it. */
bool pool_serves(const json_t *pool);
/* On how many nodes that are heard of that takes: when fewer are left, nobody may be there to say it. */
int pool_quorum(const struct operator* op, const json_t *pool);
/*
 * Whether a worker can be sent there. One for a pool that is down only holds its thread until its deadline, and
 * what waits for other pools waits for that: whoever works on a queue asks this first, and comes again.
 */
bool pool_answers(struct reconcile *r, const json_t *pool);
/* What is to be said of one that does not; caller frees. */
char *pool_silence(const json_t *pool);
#define POOL_AGAIN_MS 10000 /* while it is down, at most */
/* How many bytes of it may be promised in total; 0: its size is not known. */
int64_t pool_limit(const struct operator* op, const json_t *pool);

/* How a worker reaches the pool; points into the pool's object. */
#define POOL_HOSTS_MAX 64
struct pool_access {
	struct worker_pool pool;
	const char *hosts[POOL_HOSTS_MAX + 1];
};
/* Those whose brick is online come first. */
void pool_access(const json_t *pool, struct pool_access *ret);

/*
 * How a machine reaches all of it, as a ConnectionInfo, flat, or (with a name) the storage system's volume of that name
 * on the same hosts (reach.c). New reference.
 */
json_t *pool_reach(const json_t *pool, const char *volume);

/* The pools that volumes may be made in now, or of them only the one named. Zero-initialise. */
struct pool_offers {
	struct ledger_offer *items;
	size_t count;
	struct strv names; /* what the items point to */
	const struct operator* op;
	const char *only;
};
void pool_offers(struct reconcile *r, const char *only, struct pool_offers *ret);
/* Without that one; false: it is not among them. */
bool pool_offers_drop(struct pool_offers *o, const char *pool);
void pool_offers_done(struct pool_offers *o);
/* What is left for volumes in all of these pools, and the biggest one that fits. */
void pool_room(struct reconcile *r, const char *only, int64_t *ret_left, int64_t *ret_biggest);

/*
 * Two deployments may have the same name, and pools of the same names, in two namespaces. Whether what carries this as
 * its namespace can be ours: versions before wrote none (NULL), and that is ours as it was to them.
 */
static inline bool ns_is_ours(const struct operator* op, const char *ns)
{
	return !ns || streq(ns, op->ns);
}

/* ---- volumes (pv.c) --------------------------------------------------------------------------- */
bool pv_is_ours(const struct operator* op, const json_t *pv);
/* Whether its handle is the one that a volume of that name and pool has; if not, nothing of it is touched. */
bool pv_makes_sense(const json_t *pv);
/* Whether claim and volume name each other: nobody changes another's volume by naming it. */
bool pv_belongs_to(const struct operator* op, const json_t *pv, const json_t *claim);
/*
 * Which one of its name it is (struct worker_volume, owner); NULL: the name comes but once. What a version before made
 * under a name that comes again is nobody's, and so it is no later one's.
 */
#define PV_OWNER_NOBODY "-"
const char *pv_owner(const json_t *pv);
/* Whether its data is archived when it is removed. */
bool pv_archives(const json_t *pv);
/* Whether its claimRef names one claim, by uid. */
bool pv_is_taken(const json_t *pv);
/* "pvc-<uid>" of the claim; caller frees. */
char *pv_name(const json_t *claim);
/* The bytes that a claim asks for, or that a volume has; 0: not stated. */
int64_t claim_bytes(const json_t *claim);
int64_t pv_bytes(const json_t *pv);
/* "namespace/name" of the volume's claimRef, NULL: none; caller frees. */
char *pv_claim_key(const json_t *pv);
/* What a volume that makes sense is in its pool. */
enum volume_kind pv_kind(const json_t *pv);
/* Whether that is a file or a device, which its user holds locked. */
bool pv_is_device(const json_t *pv);
/* The ConnectionInfo of a volume, flat, as hostvol reads it. New reference. */
json_t *pv_connection(enum volume_kind kind, const char *name, const json_t *pool);
/*
 * For a source that the worker calls incomplete: its info file may be missing, where an operator that knew nothing of
 * halves has dropped the finalizer. It is written, if a claim has the volume and nobody ends it; what comes of it the
 * next attempt to copy tells.
 */
void pv_mend(struct reconcile *r, const struct worker_pool *pool, const struct worker_volume *v);
/* Deletes the object, whose data is gone or to be kept, and lets go of it. 0 too where it is gone. */
int pv_end(struct reconcile *r, const json_t *pv);
/* The PersistentVolume of a claim in that pool, of that many bytes. New reference. */
json_t *pv_new(const struct operator* op, const json_t *claim, const json_t *class,
	       const json_t *pool, enum volume_kind kind, int64_t bytes);

/* ---- claims (claim.c) ------------------------------------------------------------------------- */
/* Whether its claims are ours to provision: of our driver, deployment and namespace. */
bool class_is_ours(const struct operator* op, const json_t *class);
/* What volumes of the class are, but for those that are devices; NULL: a kind that nobody knows. */
const enum volume_kind *class_kind(const json_t *class);
bool claim_wants_mode(const json_t *claim, const char *mode);

/* ---- secrets (secrets.c) ----------------------------------------------------------------------- */
/*
 * What the class's parameters csi.storage.k8s.io/…-secret-name and -namespace put into the volume
 * of that name: a PersistentVolume with that and nothing else, to be merged. New reference.
 * -EINVAL: they cannot be used.
 */
int class_secrets(const json_t *class, const json_t *claim, const char *volume, json_t **ret,
		  struct error *err);

/* ---- what a claim says (claim_status.c) -------------------------------------------------------- */
/* A condition that is true; message may be NULL. New reference. */
json_t *claim_condition(struct reconcile *r, const char *type, const char *message);
/*
 * The claim's conditions without those of these types (ended by NULL), and with more (stolen, or
 * NULL). New reference.
 */
json_t *claim_conditions(const json_t *claim, const char *const *without, json_t *more);
/*
 * The message of the claim's condition of that type ("": it has none); NULL: there is no such
 * condition.
 */
const char *claim_said(const json_t *claim, const char *type);
/* ---- claims in use (protect.c), where there is no controller manager -------------------------- */
#define CLAIM_PROTECTION "kubernetes.io/pvc-protection" /* finalizer: of a claim that is bound */
/* finalizers (the claim's, to be written), with that one; returned. */
json_t *claim_protected(const json_t *claim, json_t *finalizers);
int claim_protect(struct reconcile *r, const json_t *claim);
/* Of one that is deleted: lets it go once nobody uses it; until then it says who does, and the key comes again. */
int claim_unprotect(struct reconcile *r, const json_t *seen);

/* Patches the claim's status (stolen) and takes the claim as it is then. */
int claim_tell(struct reconcile *r, json_t **claim, json_t *status);

/* ---- nodes (topology.c) ----------------------------------------------------------------------- */
/* Claim: where the first pod that needs it is to run; set by the scheduler. */
#define ANNOTATION_SELECTED_NODE "volume.kubernetes.io/selected-node"
/* The nodeAffinity of a volume of the class; NULL: every node will do. New reference. */
json_t *class_affinity(const json_t *class);
/* Whether the claim waits until the scheduler has chosen a node. */
bool claim_lacks_node(const json_t *claim, const json_t *class);
/* 1: the node that was chosen is gone or not allowed, and why (caller frees). */
int claim_check_node(struct reconcile *r, const json_t *claim, const json_t *class, char **ret_why);

/* ---- room (capacity.c) ------------------------------------------------------------------------ */
/* What is left has changed: Kubernetes is told soon. */
void capacity_soon(struct reconcile *r);

/* ---- binding (bind.c) ------------------------------------------------------------------------- */
/* A volume of the cache that a person made and that fits the claim: new reference, or NULL. */
json_t *bind_candidate(struct reconcile *r, const json_t *claim);
/* Whether the volume is meant for that claim: by uid, or by name where it has none. */
bool pv_refers_to(const json_t *pv, const json_t *claim);

extern const struct controller SYSTEM_CONTROLLER, CLAIM_CONTROLLER, VOLUME_CONTROLLER,
	RESIZE_CONTROLLER, SNAPSHOT_CONTROLLER, CONTENT_CONTROLLER, MODIFY_CONTROLLER,
	CAPACITY_CONTROLLER, BINDER_CONTROLLER;
