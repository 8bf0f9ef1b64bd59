/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/quantity.h"
#include "operator/attributes.h"
#include "operator/connection_class.h"
#include "operator/ledger.h"
#include "operator/op.h"
#include "operator/snapshot.h"
#include "operator/source.h"
#include "operator/whole.h"

#include <errno.h>
#include <stdio.h>

/*
 * From a claim to a volume. Every step can be the last before a crash, so each leaves behind what
 * the next attempt needs: first the claim names its pool and holds our finalizer, then the
 * volume is made (or copied from another, which takes its time), then the PersistentVolume; all names
 * follow from the claim's uid. When it is bound, what is not needed for that is done, and our finalizer
 * is dropped last. A claim that is deleted on the way is undone, or its volume reclaimed
 * like any other once it exists.
 */
#define WAIT_AGAIN_MS 30000
#define OTHERS_AGAIN_MS 10000 /* what another loop, or Kubernetes, has yet to do */
#define FINISHING_MAX 2
#define MANY 4 /* so many that are being made leave no time for those that are bound */
#define HOLD_MS 20000 /* but no longer than this */
#define FINISH_AGAIN_MS 500
#define QUIET_MS 1000 /* after so long without a new volume no claim seems to wait for one */
#define COPY_AGAIN_MS 15000 /* at most, while a copy is under way: a worker says nothing by itself */
#define WHOLE_AGAIN_MS 1000 /* while agents remove a Gluster volume: its object tells, too */

struct work {
	struct reconcile *r;
	struct operator* op;
	const char *key;
	json_t *claim, *class;
	char *volume;
	enum volume_kind kind;
	struct source source; /* with has_source */
	bool has_source;
	struct attributes attributes; /* that the claim names */
	json_t *secrets; /* that the class names, as class_secrets gives them */
};

static void work_done(struct work *w)
{
	json_decref(w->claim);
	json_decref(w->class);
	free(w->volume);
	source_done(&w->source);
	attributes_done(&w->attributes);
	json_decref(w->secrets);
}

static void say(struct work *w, bool warning, const char *reason, const char *message)
{
	event_record(w->r->kube, &KIND_PVC, w->claim, "quartermaster", warning, reason, "%s",
		     message);
}

/* The pool that was chosen for it. Anybody can write an annotation: what is no pool's name is none. */
static const char *chosen_pool(const json_t *claim)
{
	const char *name = object_annotation(claim, QM_ANNOTATION_POOL);
	size_t len = name ? strlen(name) : 0;

	return len && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len ? name : NULL;
}

/* Whether it is being made already: then no other pool is chosen, and no other node. */
static bool has_begun(const struct work *w)
{
	return object_has_finalizer(w->claim, QM_FINALIZER_PROVISION);
}

/* ---- a claim that has to wait ------------------------------------------------------------------ */

/* Says once why the claim stays Pending, on the claim itself and as an Event. */
static int keep_waiting(struct work *w, const char *message, int again_ms)
{
	int rc = 0;
	ledger_wait(w->op->ledger, w->key);
	if (!streq(object_annotation(w->claim, QM_ANNOTATION_WAITING), message)) {
		say(w, true, "ProvisioningFailed", message);
		rc = op_patch(w->r, &KIND_PVC, w->claim, NULL,
			      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
					QM_ANNOTATION_WAITING, message),
			      NULL);
	}
	w->r->again_ms = again_ms;
	return rc == -ENOENT ? 0 : rc;
}

static int wait_for_room(struct work *w, int64_t biggest, size_t pools)
{
	char asked[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];
	cleanup_free char *message = NULL;
	quantity_human(claim_bytes(w->claim), asked);
	quantity_human(biggest, most);
	if (!pools)
		message = xasprintf("no pool of %s serves now; see: quartermaster status",
				    w->op->deployment);
	else if (biggest <= 0)
		message = xasprintf("%s was asked for, but all pools of %s are full; add devices "
				    "or nodes, or delete "
				    "volumes",
				    asked, w->op->deployment);
	else
		message = xasprintf("%s was asked for, but the most that a pool of %s has left is "
				    "%s; ask for less, "
				    "add devices or nodes, or delete volumes",
				    asked, w->op->deployment, most);
	return keep_waiting(w, message, WAIT_AGAIN_MS);
}

/* ---- what is asked for ------------------------------------------------------------------------- */

bool claim_wants_mode(const json_t *claim, const char *mode)
{
	size_t i;
	json_t *m;

	json_array_foreach (jget(claim, "spec", "accessModes"), i, m)
		if (streq(json_string_value(m), mode))
			return true;
	return false;
}

const enum volume_kind *class_kind(const json_t *class)
{
	static const enum volume_kind directory = VOLUME_DIRECTORY, file = VOLUME_FILE,
				      whole = VOLUME_WHOLE;
	const char *kind = jstr(class, "parameters", "kind");

	if (!kind || streq(kind, "directory"))
		return &directory;
	return streq(kind, "file") ? &file : streq(kind, "whole") ? &whole : NULL;
}

/* By volumeMode and by what the class says; NULL: a kind that nobody knows. */
static const enum volume_kind *kind_wanted(const json_t *claim, const json_t *class)
{
	static const enum volume_kind block = VOLUME_BLOCK;

	return streq(jstr(claim, "spec", "volumeMode"), "Block") ? &block : class_kind(class);
}

/* What we cannot make, and why; NULL: we can. */
static const char *refusal(struct work *w)
{
	const enum volume_kind *kind = kind_wanted(w->claim, w->class);

	if (!kind)
		return "the StorageClass has a kind that is neither directory nor file nor whole; "
		       "name another class";
	w->kind = *kind;
	if ((w->kind == VOLUME_FILE || w->kind == VOLUME_BLOCK) &&
	    claim_wants_mode(w->claim, "ReadWriteMany"))
		return "a block device, or a file with a file system of its own, has one writer; "
		       "ask for ReadWriteOnce, ReadWriteOncePod or ReadOnlyMany, or for a volume "
		       "that is a directory";
	if (jget(w->claim, "spec", "selector"))
		return "a claim with a selector only binds existing volumes; leave it out to get a "
		       "new one";
	if (claim_bytes(w->claim) <= 0)
		return "the claim asks for no size; set spec.resources.requests.storage";
	return NULL;
}

/* ---- choosing a pool --------------------------------------------------------------------------- */

/* Promised of one of these, or kept where it was. */
static int reserve(struct work *w, const struct ledger_offer *offers, size_t count, char **ret,
		   int64_t *ret_biggest)
{
	return ledger_reserve(w->op->ledger, w->volume, w->key, claim_bytes(w->claim), offers,
			      count, ret, ret_biggest);
}

/* Of one whose nodes have fallen silent its own word is worth nothing: it is offered no more. */
static bool is_no_offer(struct work *w, struct pool_offers *o, const char *name)
{
	cleanup_json json_t *pool = reader_get(w->r->cache, &KIND_STORAGEPOOL, w->op->ns, name);

	return pool && !pool_answers(w->r, pool) && pool_offers_drop(o, name);
}

static int choose_pool(struct work *w, char **ret)
{
	struct pool_offers o = { 0 };
	int64_t biggest = 0;

	pool_offers(w->r, w->has_source ? w->source.handle.pool : NULL, &o);
	int rc = reserve(w, o.items, o.count, ret, &biggest);
	/* only the one that is chosen is looked at: that is cheaper than to look at all */
	while (rc == 0 && is_no_offer(w, &o, *ret)) {
		free(TAKE_PTR(*ret));
		rc = reserve(w, o.items, o.count, ret, &biggest);
	}
	if (rc == -ENOSPC) {
		rc = wait_for_room(w, biggest, o.count);
		rc = rc < 0 ? rc : 1;
	}
	pool_offers_done(&o);
	return rc;
}

/* The choice is written down before anything is made, so that whoever comes next makes the same. */
static int record_choice(struct work *w, const json_t *pool)
{
	json_t *claim = NULL;
	int rc =
		op_patch(w->r, &KIND_PVC, w->claim, NULL,
			 json_pack("{s:{s:{s:s, s:s, s:n}, s:o}}", "metadata", "annotations",
				   QM_ANNOTATION_POOL, object_name(pool), QM_ANNOTATION_NAMESPACE,
				   w->op->ns, QM_ANNOTATION_WAITING, "finalizers",
				   finalizers_with(w->claim, QM_FINALIZER_PROVISION)),
			 &claim);
	if (rc < 0)
		return rc;
	json_decref(w->claim);
	w->claim = claim;
	/* again: the ledger may have been read anew meanwhile, before this was written */
	ledger_set(w->op->ledger, w->volume, object_name(pool), claim_bytes(w->claim), w->key);
	return 0;
}

/*
 * The room in the pool that was chosen earlier, which is promised already where it was we who chose:
 * anybody may write annotation and finalizer. 1: it has to wait.
 */
static int keep_choice(struct work *w, const json_t *pool)
{
	const struct ledger_offer offer = { object_name(pool), pool_limit(w->op, pool) };
	cleanup_free char *chosen = NULL;
	int64_t biggest = 0;
	int rc = reserve(w, &offer, 1, &chosen, &biggest);

	if (rc == -ENOSPC) {
		rc = wait_for_room(w, biggest, 1);
		return rc < 0 ? rc : 1;
	}
	if (rc == 0 && object_annotation(w->claim, QM_ANNOTATION_WAITING))
		rc = record_choice(w, pool);
	return rc;
}

/* The pool that was chosen is down, and what may be in it already is this claim's: no other is chosen. */
static int wait_for_pool(struct work *w, const json_t *pool)
{
	cleanup_free char *message = pool_silence(pool);
	int rc = keep_waiting(w, message, POOL_AGAIN_MS);

	return rc < 0 ? rc : 1;
}

/* The pool of this claim's volume, chosen now or earlier: 0, or 1 where it has to wait. */
static int claim_pool(struct work *w, json_t **ret)
{
	const char *chosen = chosen_pool(w->claim);
	cleanup_free char *pool = NULL;
	int rc;

	if (chosen && w->has_source && !streq(chosen, w->source.handle.pool))
		chosen = NULL;
	if (chosen && has_begun(w)) {
		rc = op_get_live(w->r, &KIND_STORAGEPOOL, w->op->ns, chosen, ret);
		if (rc < 0)
			return rc;
		if (rc == 0 && pool_takes_volumes(w->op, *ret) && !object_deleting(*ret))
			return pool_answers(w->r, *ret) ? keep_choice(w, *ret)
							: wait_for_pool(w, *ret);
		json_decref(TAKE_PTR(*ret)); /* it went, and with it what was made: choose again */
		ledger_drop(w->op->ledger, w->volume);
	}
	rc = choose_pool(w, &pool);
	if (rc != 0)
		return rc;
	*ret = reader_get(w->r->cache, &KIND_STORAGEPOOL, w->op->ns, pool);
	if (!*ret)
		return error_set(&w->r->error, EAGAIN, "pool %s is not to be seen; trying again",
				 pool);
	return record_choice(w, *ret);
}

/* ---- making it --------------------------------------------------------------------------------- */

static int create_pv(struct work *w, const json_t *pool)
{
	cleanup_json json_t *pv = pv_new(w->op, w->claim, w->class, pool, w->kind,
					 claim_bytes(w->claim)),
			    *made = NULL;
	attributes_apply(&w->attributes, pv, false);
	json_object_update_recursive(pv, w->secrets);
	int rc = kube_create(w->r->kube, &KIND_PV, pv, &made, &w->r->error);
	if (rc == -EEXIST)
		rc = kube_get(w->r->kube, &KIND_PV, NULL, w->volume, &made, &w->r->error);
	if (rc < 0)
		return rc;
	if (!streq(jstr(made, "spec", "claimRef", "uid"), object_uid(w->claim)))
		return error_set(&w->r->error, EEXIST,
				 "PersistentVolume %s is there, but not for claim %s", w->volume,
				 w->key);
	reader_learned(w->r->cache, &KIND_PV, made);
	ledger_made(w->op->ledger, w->volume);
	return 0;
}

/*
 * On a cluster a directory is made in two steps: what the PersistentVolume needs, and the rest when the
 * claim is bound, before our finalizer is dropped. There it is the claim that says that something is left to do.
 */
static bool made_by_half(const struct work *w)
{
	return !w->op->binder && w->kind == VOLUME_DIRECTORY;
}

/* Where it is a Gluster volume: that. 1: agents are at it. */
static int make_whole(struct work *w, const json_t *pool)
{
	cleanup_free char *message = NULL;
	int rc = w->kind == VOLUME_WHOLE ? whole_make(w->r, pool, w->volume, claim_bytes(w->claim))
					 : 0;

	if (rc <= 0)
		return rc;
	message = xasprintf("Gluster volume %s is being made beside pool %s", w->volume,
			    object_name(pool));
	if (op_waits(w->r, "making of", w->volume, COPY_AGAIN_MS)) /* its object tells, too */
		say(w, false, "Provisioning", message);
	return 1;
}

static int make_copy(struct work *w, const json_t *pool)
{
	struct workers *workers = w->op->workers;
	const struct worker_volume volume = { w->kind, w->volume };
	const struct worker_volume from = { w->source.handle.kind, w->source.handle.name };
	cleanup_free char *message = NULL;
	struct pool_access access;
	int rc;

	pool_access(pool, &access);
	rc = workers->ops->copy(workers, &access.pool, &volume, claim_bytes(w->claim), &from,
				&w->r->error);
	if (rc == -EAGAIN)
		pv_mend(w->r, &access.pool, &from);
	if (rc <= 0)
		return rc;
	message = xasprintf("the data is being copied in pool %s", object_name(pool));
	if (op_waits(w->r, "copy to", w->volume, COPY_AGAIN_MS))
		say(w, false, "Provisioning", message);
	return 1;
}

/* In its pool: empty, or as a copy. 1: it is under way, and the key comes again. */
static int make_data(struct work *w, const json_t *pool)
{
	struct workers *workers = w->op->workers;
	const struct worker_volume volume = { w->kind, w->volume };
	struct pool_access access;
	int rc;

	if (w->has_source) {
		rc = source_hold(w->r, w->claim);
		if (rc == 0)
			rc = make_whole(w, pool);
		return rc == 0 ? make_copy(w, pool) : rc;
	}
	pool_access(pool, &access);
	if (made_by_half(w))
		return workers->ops->make(workers, &access.pool, &volume, &w->r->error);
	rc = workers->ops->create(workers, &access.pool, &volume, claim_bytes(w->claim),
				  &w->r->error);
	return rc == 0 ? make_whole(w, pool) : rc;
}

static void say_made(struct work *w, const char *pool)
{
	cleanup_free char *message =
		pool ? xasprintf("volume %s is made in pool %s", w->volume, pool)
		     : xasprintf("volume %s is made", w->volume);
	say(w, false, "ProvisioningSucceeded", message);
}

/* Kubernetes is through with it; Lost: its volume is gone already. */
static bool claim_is_bound(const json_t *claim)
{
	const char *phase = jstr(claim, "status", "phase");

	return streq(phase, "Bound") || streq(phase, "Lost");
}

static int make_volume(struct work *w, const json_t *pool)
{
	int rc = make_data(w, pool);
	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = create_pv(w, pool);
	if (rc < 0) {
		cleanup_free char *message =
			xasprintf("pool %s: %s; trying again", object_name(pool),
				  error_text(&w->r->error, rc));
		say(w, true, "ProvisioningFailed", message);
		return rc;
	}
	if (w->op->binder) /* it drops our finalizer as it binds; on a cluster finish() comes */
		say_made(w, object_name(pool));
	system_soon(w->r);
	return 0;
}

/* From the cache, or from the API where the cache does not have it (yet); 1 and NULL: it is gone. */
static int get_any(struct work *w, const struct kind *kind, const char *ns, const char *name,
		   json_t **ret)
{
	*ret = reader_get(w->r->cache, kind, ns, name);
	return *ret ? 0 : op_get_live(w->r, kind, ns, name, ret);
}

/* A claim that has a volume, or goes, is held until its pool is back. 1: so it is now. */
static int held_by_pool(struct work *w, const json_t *pool)
{
	cleanup_free char *message = NULL;

	if (pool_answers(w->r, pool))
		return 0;
	message = pool_silence(pool);
	if (op_waits(w->r, "pool of claim", w->volume, POOL_AGAIN_MS) && object_deleting(w->claim))
		say(w, true, "ProvisioningFailed", message);
	return 1;
}

/* The other half of what is in the pool, before nobody knows any more that it is missing. 1: the key comes again. */
static int complete_data(struct work *w)
{
	const struct worker_volume volume = { VOLUME_DIRECTORY, w->volume };
	cleanup_json json_t *pv = NULL, *pool = NULL;
	struct pool_access access;
	int rc;

	if (w->op->binder || source_ref(w->claim))
		return 0; /* made in one step */
	rc = get_any(w, &KIND_PV, NULL, w->volume, &pv);
	if (rc == 0 && pv_makes_sense(pv) && pv_kind(pv) == VOLUME_DIRECTORY)
		rc = get_any(w, &KIND_STORAGEPOOL, w->op->ns, object_label(pv, QM_LABEL_POOL),
			     &pool);
	if (!pool || !pool_is_ours(w->op, pool))
		return rc < 0 ? rc : 0; /* with its pool or its volume it is gone */
	if (held_by_pool(w, pool))
		return 1;
	pool_access(pool, &access);
	rc = w->op->workers->ops->complete(w->op->workers, &access.pool, &volume, pv_bytes(pv),
					   &w->r->error);
	return rc == -ENOENT ? 0 : rc; /* somebody was faster and removed it */
}

/*
 * While many claims wait for volumes none is finished, since that takes more of the pool than making one: whoever is
 * bound has its volume already. While some do, and after a while in any case, few are at a time.
 */
static bool may_finish(struct work *w, int others)
{
	struct operator* op = w->op;
	int64_t now = clock_mono_ms(w->r->clock), held = atomic_load(&op->held_ms);
	int making = atomic_load(&op->making);

	if (making < MANY)
		atomic_store(&op->held_ms, 0);
	else if (!held)
		atomic_store(&op->held_ms, held = now);
	if (making >= MANY && now - held < HOLD_MS && !object_deleting(w->claim))
		return false;
	return others < FINISHING_MAX ||
	       (making == 0 && now - atomic_load(&op->made_ms) > QUIET_MS);
}

static bool finish_begin(struct work *w)
{
	if (may_finish(w, atomic_fetch_add(&w->op->finishing, 1)))
		return true;
	atomic_fetch_sub(&w->op->finishing, 1);
	w->r->again_ms = FINISH_AGAIN_MS;
	return false;
}

static int finish_now(struct work *w)
{
	int rc = complete_data(w);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (!object_deleting(w->claim) && !w->op->binder)
		say_made(w, chosen_pool(w->claim));
	return op_drop_finalizer(w->r, &KIND_PVC, w->claim, QM_FINALIZER_PROVISION);
}

/*
 * The claim is bound to its own volume. Kubernetes writes that in two steps: who changes the claim between them lets
 * it do the second once more. The Event comes only here: while claims wait for volumes, these
 * are made first, and a crash before the finalizer is gone lets it be said again.
 */
static int finish(struct work *w)
{
	bool deleting = object_deleting(w->claim);

	if (!deleting && !claim_is_bound(w->claim))
		return 0; /* its next change brings us here */
	if (!finish_begin(w))
		return 0;
	int rc = finish_now(w);
	atomic_fetch_sub(&w->op->finishing, 1);
	return rc;
}

/* ---- undoing it -------------------------------------------------------------------------------- */

/* Of whatever kind it is: its class, which says so, may be gone or be another by now. */
static int remove_data(struct work *w, const json_t *pool)
{
	static const enum volume_kind all[] = { VOLUME_DIRECTORY, VOLUME_FILE, VOLUME_WHOLE,
						VOLUME_BLOCK };
	struct pool_access access;
	int rc = 0;

	pool_access(pool, &access);
	for (size_t i = 0; i < ARRAY_SIZE(all) && rc == 0; i++) {
		const struct worker_volume volume = { all[i], w->volume };

		if (!w->claim ||
		    (all[i] == VOLUME_BLOCK) ==
			    streq(jstr(w->claim, "spec", "volumeMode"), "Block"))
			rc = w->op->workers->ops->remove(w->op->workers, &access.pool, &volume,
							 &w->r->error);
	}
	return rc;
}

/* What is in that pool (NULL: in none) and has no PersistentVolume. 1: the key comes again. */
static int remove_unbound(struct work *w, const char *chosen)
{
	cleanup_json json_t *pool = NULL;
	int rc = chosen ? op_get_live(w->r, &KIND_STORAGEPOOL, w->op->ns, chosen, &pool) : 0;

	if (rc < 0)
		return rc;
	rc = whole_end(w->r, NULL, w->volume);
	if (rc > 0)
		w->r->again_ms = WHOLE_AGAIN_MS;
	if (rc != 0 || !pool)
		return rc;
	return held_by_pool(w, pool) ? 1 : remove_data(w, pool);
}

/*
 * The claim goes, or was bound to another volume, or is another's by now, while its own was in the making. Where the
 * PersistentVolume exists, it carries on: it will be Released, and reclaimed as such. Otherwise
 * nothing knows the data but this claim.
 */
static int undo(struct work *w)
{
	cleanup_json json_t *pv = NULL;
	int rc = op_get_live(w->r, &KIND_PV, NULL, w->volume, &pv);
	if (rc < 0)
		return rc;
	rc = pv ? complete_data(w) : remove_unbound(w, chosen_pool(w->claim));
	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = op_drop_finalizer(w->r, &KIND_PVC, w->claim, QM_FINALIZER_PROVISION);
	if (rc == 0 && !pv)
		ledger_drop(w->op->ledger, w->volume);
	return rc;
}

/*
 * The claim is gone, though its volume was in the making: somebody took our finalizer away. Only the ledger knows
 * by now what may be in the pool. 1: the key comes again.
 */
static int end_unmade(struct work *w, const char *ns, const char *name, const char *pool)
{
	cleanup_json json_t *claim = NULL, *pv = NULL;
	int rc = op_get_live(w->r, &KIND_PVC, ns, name, &claim);

	if (rc < 0)
		return rc;
	cleanup_free char *own = claim ? pv_name(claim) : NULL;
	if (streq(own, w->volume)) { /* a cache may be behind */
		w->r->again_ms = OTHERS_AGAIN_MS;
		return 1;
	}
	rc = op_get_live(w->r, &KIND_PV, NULL, w->volume, &pv);
	if (rc < 0)
		return rc;
	if (pv) {
		ledger_made(w->op->ledger, w->volume); /* the volume loop's */
		return 0;
	}
	rc = remove_unbound(w, pool);
	if (rc == 0)
		ledger_drop(w->op->ledger, w->volume);
	return rc;
}

static int claim_gone(struct work *w, const char *ns, const char *name)
{
	char *pool = NULL;
	int64_t epoch;

	ledger_waited(w->op->ledger, w->key);
	if (!op_leads(w->r, &epoch)) {
		w->r->again_ms = 0; /* whoever leads next reads what is promised anew */
		ledger_drop_claim(w->op->ledger, w->key);
		return 0;
	}
	/* it may be read this very moment, with the claim still in it */
	int rc = ledger_load(w->op->ledger, w->r, epoch);
	while (rc == 0 && ledger_unmade(w->op->ledger, w->key, &w->volume, &pool)) {
		rc = end_unmade(w, ns, name, pool);
		free(TAKE_PTR(pool));
		free(TAKE_PTR(w->volume));
	}
	return rc < 0 ? rc : 0;
}

/* ---- the loop ---------------------------------------------------------------------------------- */

bool class_is_ours(const struct operator* op, const json_t *class)
{
	const char *ns = jstr(class, "parameters", "namespace");
	const char *deployment = jstr(class, "parameters", "deployment");
	return streq(jstr(class, "provisioner"), QM_DRIVER) &&
	       (deployment ? streq(deployment, op->deployment) : class_is_connection(class)) &&
	       (!ns || streq(ns, op->ns));
}

struct roll { /* of the deployments in our namespace */
	const char *wanted, *own;
	char first[254]; /* of those that somebody operates */
	bool there;
};

static int call_roll(const json_t *status, void *userdata)
{
	struct roll *roll = userdata;
	const char *name = object_name(status);

	roll->there = roll->there || streq(name, roll->wanted);
	/* anybody may write a StorageStatus; one without an operator behind it answers for nothing */
	if (!streq(name, roll->own) && !object_has_finalizer(status, QM_FINALIZER_DEPLOYMENT))
		return 0;
	if (!*roll->first || strcmp(name, roll->first) < 0)
		snprintf(roll->first, sizeof(roll->first), "%s", name);
	return 0;
}

/*
 * A class of ours, but of a deployment that our namespace does not have: nobody will ever answer. The
 * first of the deployments that are there says so.
 */
static int answer_for_nobody(struct work *w)
{
	const char *ns = jstr(w->class, "parameters", "namespace");
	struct roll roll = { .wanted = jstr(w->class, "parameters", "deployment"),
			     .own = w->op->deployment };

	if (!streq(jstr(w->class, "provisioner"), QM_DRIVER) ||
	    (ns ? !streq(ns, w->op->ns) : roll.wanted != NULL) || object_deleting(w->claim))
		return 0;
	reader_each(w->r->cache, &KIND_STORAGESTATUS, w->op->ns, call_roll, &roll);
	if (roll.there || !streq(roll.first, w->op->deployment) || !op_leads(w->r, NULL))
		return 0;
	cleanup_free char *message = xasprintf(
		"StorageClass %s refers to deployment %s in namespace %s, which is not there; name "
		"another class",
		object_name(w->class), roll.wanted ? roll.wanted : "(none)", w->op->ns);
	return keep_waiting(w, message, WAIT_AGAIN_MS);
}

/*
 * Whether we began to work on it: then nobody else takes away our finalizer, and what is in the pool. A deployment of
 * the same name in another namespace may have a pool of the same name, so where the class says that the claim is not
 * ours, or the pool is gone, only the namespace that was written down with the choice tells (versions before
 * did not write it).
 */
static bool is_begun_by_us(const struct work *w)
{
	const char *chosen = chosen_pool(w->claim),
		   *ns = object_annotation(w->claim, QM_ANNOTATION_NAMESPACE);

	if (!chosen || !has_begun(w) || !ns_is_ours(w->op, ns) || (!ns && w->class))
		return false;
	cleanup_json json_t *pool = reader_get(w->r->cache, &KIND_STORAGEPOOL, w->op->ns, chosen);
	return pool ? pool_takes_volumes(w->op, pool) : ns && pool_name_is_ours(w->op, chosen);
}

/* The class may be gone since, or be another's by now. */
static bool has_foreign_class(const struct work *w)
{
	return w->class && !class_is_ours(w->op, w->class);
}

static bool is_ours(struct work *w)
{
	const char *class = jstr(w->claim, "spec", "storageClassName");

	w->class = class ? reader_get(w->r->cache, &KIND_STORAGECLASS, NULL, class) : NULL;
	return (w->class && !has_foreign_class(w)) || is_begun_by_us(w);
}

/*
 * Whether somebody else is to act first: Kubernetes decides that a new volume is needed and
 * where, our binder looks for one.
 */
static bool others_turn(struct work *w)
{
	if (!w->op->binder)
		return !streq(object_annotation(w->claim,
						"volume.kubernetes.io/storage-provisioner"),
			      QM_DRIVER) ||
		       (!has_begun(w) && claim_lacks_node(w->claim, w->class));
	cleanup_json json_t *there = bind_candidate(w->r, w->claim);
	return there != NULL;
}

/*
 * A node that is gone, or that the class does not allow: without its name the scheduler chooses
 * again, and until then it is its turn (1).
 */
static int check_node(struct work *w)
{
	cleanup_free char *why = NULL;
	int rc = has_begun(w) ? 0 : claim_check_node(w->r, w->claim, w->class, &why);

	if (rc <= 0)
		return rc;
	say(w, true, "ProvisioningFailed", why);
	rc = op_patch(
		w->r, &KIND_PVC, w->claim, NULL,
		json_pack("{s:{s:{s:n}}}", "metadata", "annotations", ANNOTATION_SELECTED_NODE),
		NULL);
	return rc < 0 && rc != -ENOENT ? rc : 1;
}

/* What the claim's VolumeAttributesClass says: 0, or 1 where it has to wait for another. */
static int claim_attributes(struct work *w)
{
	const char *name = jstr(w->claim, "spec", "volumeAttributesClassName");
	int rc = attributes_find(w->r, name, &w->attributes);

	if (rc <= 0)
		return rc;
	rc = keep_waiting(w, w->attributes.why, OTHERS_AGAIN_MS);
	return rc < 0 ? rc : 1;
}

/* Likewise what its class says of secrets. */
static int claim_secrets(struct work *w)
{
	struct error why = ERROR_INIT;
	int rc = class_secrets(w->class, w->claim, w->volume, &w->secrets, &why);

	if (rc == 0)
		return 0;
	rc = keep_waiting(w, why.message, WAIT_AGAIN_MS);
	return rc < 0 ? rc : 1;
}

/* What it is to begin with: 0, or 1 where it has to wait for that. */
static int claim_source(struct work *w)
{
	int rc = source_find(w->r, w->claim, w->kind, &w->source);

	if (rc < 0)
		return rc;
	w->has_source = rc == SOURCE_THERE;
	if (rc == SOURCE_NONE || rc == SOURCE_THERE)
		return 0;
	rc = keep_waiting(w, w->source.why, OTHERS_AGAIN_MS);
	return rc < 0 ? rc : 1;
}

/* Of a class that leads to storage of others: several operators may answer, to the same end. */
static int connect_claim(struct work *w)
{
	struct error why = ERROR_INIT;
	int rc = others_turn(w) ? 0 : connection_provide(w->r, w->claim, w->class, &why);

	if (rc == -EINVAL || rc == -EBUSY)
		return keep_waiting(w, why.message, rc == -EBUSY ? WAIT_AGAIN_MS : 0);
	ledger_wait(w->op->ledger, w->key);
	w->r->again_ms = OTHERS_AGAIN_MS;
	if (rc <= 0)
		return rc;
	say(w, false, "ProvisioningSucceeded", "the volume leads to the storage of its class");
	return op_patch(
		w->r, &KIND_PVC, w->claim, NULL,
		json_pack("{s:{s:{s:n}}}", "metadata", "annotations", QM_ANNOTATION_WAITING), NULL);
}

/* Chooses its pool, or takes that which was chosen, and makes the volume there. */
static int place(struct work *w)
{
	cleanup_json json_t *pool = NULL;
	int rc = claim_pool(w, &pool);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	ledger_waited(w->op->ledger, w->key);
	rc = make_volume(w, pool);
	atomic_store(&w->op->made_ms, clock_mono_ms(w->r->clock));
	return rc;
}

static int provision(struct work *w)
{
	cleanup_json json_t *pv = reader_get(w->r->cache, &KIND_PV, NULL, w->volume);
	const char *refused = refusal(w);

	if (pv)
		return 0; /* made; now it is bound */
	if (class_is_connection(w->class))
		return connect_claim(w);
	if (refused)
		return keep_waiting(w, refused, 0);
	if (!w->class || others_turn(w)) {
		ledger_wait(w->op->ledger, w->key);
		w->r->again_ms = OTHERS_AGAIN_MS;
		return 0;
	}
	int rc = check_node(w);
	if (rc == 0)
		rc = claim_attributes(w);
	if (rc == 0)
		rc = claim_secrets(w);
	if (rc == 0)
		rc = claim_source(w);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	atomic_fetch_add(&w->op->making, 1);
	rc = place(w);
	atomic_fetch_sub(&w->op->making, 1);
	return rc;
}

static int work_on(struct work *w)
{
	int64_t epoch;
	bool held = object_has_finalizer(w->claim, QM_FINALIZER_PROVISION);
	bool bound = jstr(w->claim, "spec", "volumeName") != NULL;

	if (bound)
		ledger_waited(w->op->ledger, w->key);
	if (!is_ours(w)) {
		/* its class may come and be ours, or a person's volume may come that it can be bound to */
		if (!bound && (!w->class || w->op->binder))
			ledger_wait(w->op->ledger, w->key);
		return !bound && w->class ? answer_for_nobody(w) : 0;
	}
	if ((bound || object_deleting(w->claim)) && !held)
		return 0;
	if (!op_leads(w->r, &epoch))
		return 0;
	int rc = ledger_load(w->op->ledger, w->r, epoch);
	if (rc != 0)
		return rc;
	if (streq(jstr(w->claim, "spec", "volumeName"), w->volume))
		return finish(w);
	/* bound to another, or another's by its class, while its own was in the making: nothing else knows the data */
	return bound || object_deleting(w->claim) || has_foreign_class(w) ? undo(w) : provision(w);
}

static int claim_reconcile(struct reconcile *r, const char *key)
{
	char ns[254], name[254];
	key_split(key, ns, name);
	struct work w = { .r = r, .op = op_of(r), .key = key };

	w.claim = reader_get(r->cache, &KIND_PVC, ns, name);
	if (!w.claim)
		return claim_gone(&w, ns, name);
	w.volume = pv_name(w.claim);
	int rc = source_release(r, w.claim);
	if (rc == 0)
		rc = snapshot_release_left(r, w.claim);
	if (rc == 0)
		rc = work_on(&w);
	work_done(&w);
	return rc;
}

/* Most claims have their volume, and nothing is left to do for them: they are many, so they wait in no queue. */
static void claim_keys(const json_t *claim, struct reconcile *r, struct strv *keys)
{
	cleanup_free char *key = object_key(claim);
	const json_t *ref = source_ref(claim);

	if (source_is_claim(
		    ref)) /* which may be waiting for this one to have its volume, or to be gone */
		strv_add_take(keys, xasprintf("%s/%s", object_namespace(claim), jstr(ref, "name")));
	if (jstr(claim, "spec", "volumeName") &&
	    !object_has_finalizer(claim, QM_FINALIZER_PROVISION) &&
	    !object_has_finalizer(claim, SOURCE_FINALIZER) &&
	    !(object_deleting(claim) && object_has_finalizer(claim, SNAPSHOT_CLAIM_HELD)))
		ledger_waited(op_of(r)->ledger, key);
	else if (!strv_contains(keys, key))
		strv_add_take(keys, TAKE_PTR(key));
}

/* A class or a pool has changed: those that wait may go on. */
static void waiting_keys(const json_t *object, struct reconcile *r, struct strv *keys)
{
	ledger_waiting(op_of(r)->ledger, keys);
}

/* Of a whole volume only its own claim hears, while it has no PersistentVolume yet. */
static void pool_keys(const json_t *pool, struct reconcile *r, struct strv *keys)
{
	cleanup_free char *claim = NULL;

	if (!pool_parent(pool)) {
		waiting_keys(pool, r, keys);
		return;
	}
	claim = ledger_claim(op_of(r)->ledger, object_name(pool));
	if (claim && str_has_prefix(object_name(pool), "pvc-"))
		strv_add_take(keys, TAKE_PTR(claim));
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_PVC, .keys = claim_keys },
	{ .kind = &KIND_STORAGECLASS, .keys = waiting_keys },
	{ .kind = &KIND_STORAGEPOOL, .keys = pool_keys },
	{ .kind = &KIND_VOLUMESNAPSHOT, .keys = snapshot_held_keys },
	{ 0 },
};

const struct controller CLAIM_CONTROLLER = {
	.name = "claim",
	.watches = watches,
	.workers = 16,
	.reconcile = claim_reconcile,
};
