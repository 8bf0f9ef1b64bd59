/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/connection_class.h"
#include "operator/ledger.h"
#include "operator/op.h"
#include "operator/whole.h"

#include <errno.h>

/*
 * What becomes of a volume when its claim is gone: Delete (moved to the pool's trash, purged
 * there), archive (renamed, kept for ever) or Retain (nothing). The PersistentVolume goes last,
 * held by our finalizer until then.
 */
#define NAME_AGAIN_MS 1000 /* while a call works on the same volume */
#define WHOLE_AGAIN_MS 1000 /* while agents remove one */
#define DOWN_AGAIN_MS 30000 /* while its pool is down, at most: nobody waits for the end of a volume */

/* The claim is really gone, by what the API itself says: data is never removed on a cache's word. */
static int claim_is_gone(struct reconcile *r, const json_t *pv)
{
	const char *ns = jstr(pv, "spec", "claimRef", "namespace"),
		   *name = jstr(pv, "spec", "claimRef", "name");
	cleanup_json json_t *claim = NULL;
	if (!ns || !name)
		return 1;
	int rc = op_get_live(r, &KIND_PVC, ns, name, &claim);
	if (rc < 0)
		return rc;
	return !claim || !streq(object_uid(claim), jstr(pv, "spec", "claimRef", "uid"));
}

/* Of one that is a Gluster volume: that goes, and then only what its pool knows of it. 1: it goes. */
static int reclaim_whole(struct reconcile *r, const json_t *pv)
{
	const char *pool = object_label(pv, QM_LABEL_POOL), *name = object_name(pv);

	if (pv_is_connection(pv) || pv_kind(pv) != VOLUME_WHOLE || !pool)
		return 0;
	return pv_archives(pv) ? whole_archive(r, pool, name) : whole_end(r, pool, name);
}

/* The pool is down: it waits, and says so once. */
static int wait_for_pool(struct reconcile *r, const json_t *pv, const json_t *pool)
{
	cleanup_free char *why = pool_silence(pool);

	if (op_waits(r, "pool of volume", object_name(pv), DOWN_AGAIN_MS))
		event_record(r->kube, &KIND_PV, pv, "quartermaster", true, "VolumeFailedDelete",
			     "%s; trying again", why);
	return 1;
}

/*
 * What is kept without a PersistentVolume is known by its info file alone, and so is that its pool is not empty: here
 * one that was made by half gets it at last (see pv_mend).
 */
static int keep_known(struct reconcile *r, const json_t *pv, const struct worker_pool *pool)
{
	struct workers *workers = op_of(r)->workers;
	const struct worker_volume volume = { VOLUME_DIRECTORY, object_name(pv) };
	int rc = 0;

	if (pv_kind(pv) == VOLUME_DIRECTORY)
		rc = workers->ops->complete(workers, pool, &volume, pv_bytes(pv), &r->error);
	return rc == -ENOENT ? 0 : rc; /* it is not there, or archived already */
}

/* The object goes, the data stays; that does not wait for a pool that does not serve. */
static int leave_data(struct reconcile *r, const json_t *pv)
{
	const char *name = pv_is_connection(pv) ? NULL : object_label(pv, QM_LABEL_POOL);
	cleanup_json json_t *pool = NULL;
	struct pool_access access;
	int rc = name ? op_get_live(r, &KIND_STORAGEPOOL, op_of(r)->ns, name, &pool) : 1;

	if (rc != 0 || !pool_answers(r, pool))
		return rc < 0 ? rc : 0;
	pool_access(pool, &access);
	return keep_known(r, pv, &access.pool);
}

/* The data: removed or archived. A pool that is gone has taken it along. 1: not yet, and the key comes again. */
static int reclaim_data(struct reconcile *r, const json_t *pv)
{
	struct operator* op = op_of(r);
	const char *pool_name = object_label(pv, QM_LABEL_POOL);
	cleanup_json json_t *pool = NULL;

	if (pv_is_connection(pv))
		return 0; /* what others made is never destroyed */
	int rc = reclaim_whole(r, pv);
	if (rc > 0)
		r->again_ms = WHOLE_AGAIN_MS;
	if (rc != 0)
		return rc;
	rc = pool_name ? op_get_live(r, &KIND_STORAGEPOOL, op->ns, pool_name, &pool) : 1;
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (!pool_answers(r, pool))
		return wait_for_pool(r, pv, pool);
	struct pool_access access;
	pool_access(pool, &access);
	struct worker_volume volume = { pv_kind(pv), object_name(pv), pv_owner(pv) };
	rc = pv_archives(pv) ? keep_known(r, pv, &access.pool) : 0;
	if (rc < 0)
		return rc;
	return (pv_archives(pv) ? op->workers->ops->archive : op->workers->ops->remove)(
		op->workers, &access.pool, &volume, &r->error);
}

int pv_end(struct reconcile *r, const json_t *pv)
{
	cleanup_json json_t *rest = NULL;
	struct kube_delete_options options = { .uid = object_uid(pv) };
	int rc = kube_delete(r->kube, &KIND_PV, NULL, object_name(pv), &options, &r->error);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	rc = op_get_live(r, &KIND_PV, NULL, object_name(pv), &rest);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return streq(object_uid(rest), object_uid(pv))
		       ? op_drop_finalizer(r, &KIND_PV, rest, QM_FINALIZER_VOLUME)
		       : 0;
}

/* What a person's delete, or the end of the claim, asks for. */
enum fate { FATE_KEEP, FATE_LET_GO, FATE_RECLAIM };

static enum fate fate_of(const json_t *pv)
{
	const char *phase = jstr(pv, "status", "phase");
	bool deletes = streq(jstr(pv, "spec", "persistentVolumeReclaimPolicy"), "Delete");
	bool released = streq(phase, "Released") || streq(phase, "Failed");

	/* as Kubernetes does: who takes the claimRef away to rescue it has until then */
	if (released && deletes && pv_is_taken(pv))
		return FATE_RECLAIM;
	if (!object_deleting(pv) || !object_has_finalizer(pv, QM_FINALIZER_VOLUME))
		return FATE_KEEP;
	if (released || streq(phase, "Available"))
		return deletes ? FATE_RECLAIM : FATE_LET_GO;
	return FATE_KEEP; /* bound: held until its claim is gone */
}

static int end_volume(struct reconcile *r, const char *name)
{
	cleanup_with(name_release) struct name_hold held = { 0 };
	cleanup_json json_t *pv = NULL;
	if (!name_try(op_of(r), name, &held)) {
		r->again_ms = NAME_AGAIN_MS;
		return 0;
	}
	int rc = op_get_live(r, &KIND_PV, NULL, name, &pv);
	if (rc != 0)
		return rc < 0 ? rc : 0;

	enum fate fate = fate_of(pv);
	if (fate == FATE_KEEP)
		return 0;
	rc = claim_is_gone(r, pv);
	if (rc <= 0)
		return rc;
	rc = fate == FATE_RECLAIM ? reclaim_data(r, pv) : leave_data(r, pv);
	if (rc < 0) {
		event_record(r->kube, &KIND_PV, pv, "quartermaster", true, "VolumeFailedDelete",
			     "%s; trying again", error_text(&r->error, rc));
		return rc;
	}
	if (rc > 0)
		return 0;
	return pv_end(r, pv);
}

/* Room has been made: claims that wait may go on. */
static void volume_gone(struct reconcile *r, const char *name)
{
	struct operator* op = op_of(r);
	struct strv waiting = { 0 };

	ledger_drop(op->ledger, name);
	ledger_waiting(op->ledger, &waiting);
	for (size_t i = 0; i < waiting.count; i++)
		r->enqueue(r, "claim", waiting.items[i], 0);
	strv_done(&waiting);
	system_soon(r);
}

/* A volume with our name on it that we did not make: no directory is counted or removed for it. */
static int leave_alone(struct reconcile *r, const json_t *pv)
{
	if (!op_leads(r, NULL))
		return 0;
	if (object_deleting(pv))
		return op_drop_finalizer(r, &KIND_PV, pv, QM_FINALIZER_VOLUME);
	event_record(
		r->kube, &KIND_PV, pv, "quartermaster", true, "Quarantined",
		"the volume is set aside: its handle is not v1.POOL.KIND.%s with the pool of its "
		"label " QM_LABEL_POOL "; nothing of it is touched; delete it, or take the label "
		"" QM_LABEL_DEPLOYMENT " away",
		object_name(pv));
	return 0;
}

static int volume_reconcile(struct reconcile *r, const char *name)
{
	struct operator* op = op_of(r);
	cleanup_json json_t *pv = reader_get(r->cache, &KIND_PV, NULL, name);

	if (!pv) {
		volume_gone(r, name);
		return 0;
	}
	if (pv_is_connection(pv))
		return fate_of(pv) == FATE_KEEP || !op_leads(r, NULL) ? 0 : end_volume(r, name);
	if (!pv_is_ours(op, pv))
		return 0;
	if (!pv_makes_sense(pv))
		return leave_alone(r, pv);
	cleanup_free char *claim = pv_claim_key(pv);
	ledger_set(op->ledger, name, object_label(pv, QM_LABEL_POOL), pv_bytes(pv), claim);
	ledger_made(op->ledger, name);
	if (pv_is_device(pv))
		ledger_device(op->ledger, name);
	if (fate_of(pv) == FATE_KEEP || !op_leads(r, NULL))
		return 0;
	return end_volume(r, name);
}

/* At the start there are many, and most of them are to be kept; the ledger reads them all by itself then. */
static void volume_keys(const json_t *pv, struct reconcile *r, struct strv *keys)
{
	if (ledger_loaded(op_of(r)->ledger) || fate_of(pv) != FATE_KEEP)
		strv_add(keys, object_name(pv));
}

/* A whole volume that goes, or is gone: its record may follow. */
static void whole_keys(const json_t *pool, struct reconcile *r, struct strv *keys)
{
	if (pool_parent(pool) && object_deleting(pool))
		strv_add(keys, object_name(pool));
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_PV, .keys = volume_keys },
	{ .kind = &KIND_STORAGEPOOL, .keys = whole_keys },
	{ 0 },
};

const struct controller VOLUME_CONTROLLER = {
	.name = "volume",
	.watches = watches,
	.workers = 8,
	.reconcile = volume_reconcile,
};
