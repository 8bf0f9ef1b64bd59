/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/volumes_internal.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "operator/ledger.h"
#include "operator/whole.h"

#include <errno.h>
#include <time.h>

/* Another thread reads the ledger for us: it takes a few lists. */
#define LEDGER_TRIES 250
#define LEDGER_PAUSE_MS 20
#define TRIES 5
#define AGAIN_MS 2000

/* ---- a call ------------------------------------------------------------------------------------ */

static int load_ledger(struct job *j, int64_t epoch)
{
	const struct timespec pause = { 0, LEDGER_PAUSE_MS * 1000000L };

	for (int i = 0; i < LEDGER_TRIES; i++) {
		int rc = ledger_load(j->op->ledger, &j->r, epoch);
		if (rc <= 0)
			return rc;
		nanosleep(&pause, NULL);
	}
	return error_set(&j->r.error, EAGAIN,
			 "what is promised of the pools is still being read; try again");
}

bool job_again(struct job *j, int rc)
{
	const struct timespec pause = { 0, (10L << j->tries) * 1000000L };

	if ((rc != -ESTALE && rc != -EAGAIN) || j->tries >= TRIES ||
	    clock_mono_ms(j->r.clock) - j->begun_ms > AGAIN_MS)
		return false;
	j->tries++;
	nanosleep(&pause, NULL);
	j->r.error = ERROR_INIT;
	return true;
}

int job_end(const struct job *j, int rc, struct error *err)
{
	if (rc < 0 && err)
		*err = j->r.error;
	/* an object changed under our hands: the same call again sees it as it is now */
	return rc == -ESTALE ? -EAGAIN : rc;
}

static int check_leads(const struct operator* op, int64_t *ret_epoch, struct error *err)
{
	if (op->leads(op->leads_userdata, ret_epoch))
		return 0;
	return error_set(err, EAGAIN,
			 "this operator of deployment %s does not hold the lease operator-%s; ask "
			 "the one that does, or try again",
			 op->deployment, op->deployment);
}

int job_begin(struct volumes *v, struct job *ret, struct error *err)
{
	const struct operator_volumes *o = (struct operator_volumes *)v;

	*ret = (struct job){ .r = o->r, .op = o->r.app };
	ret->begun_ms = clock_mono_ms(ret->r.clock);
	int rc = check_leads(ret->op, &ret->epoch, &ret->r.error);
	if (rc == 0)
		rc = load_ledger(ret, ret->epoch);
	return job_end(ret, rc, err);
}

int job_leads(struct job *j)
{
	int64_t epoch = 0;
	int rc = check_leads(j->op, &epoch, &j->r.error);

	if (rc == 0 && epoch != j->epoch)
		rc = error_set(&j->r.error, EAGAIN,
			       "this operator of deployment %s did not hold the lease operator-%s "
			       "for a while, and nothing was removed; ask again",
			       j->op->deployment, j->op->deployment);
	return rc;
}

int job_pool(struct job *j, const char *name, json_t **ret)
{
	cleanup_json json_t *pool = NULL;
	int rc = op_get_live(&j->r, &KIND_STORAGEPOOL, j->op->ns, name, &pool);
	if (rc < 0)
		return rc;
	if (!pool || !pool_takes_volumes(j->op, pool))
		return error_set(&j->r.error, ENOENT, "there is no pool %s", name);
	*ret = TAKE_PTR(pool);
	return 0;
}

int job_volume(struct job *j, const struct handle *id, json_t **ret)
{
	cleanup_json json_t *pv = NULL;
	cleanup_free char *handle = handle_format(id->pool, id->kind, id->name);
	int rc = op_get_live(&j->r, &KIND_PV, NULL, id->name, &pv);
	if (rc < 0)
		return rc;
	if (!pv || !pv_is_ours(j->op, pv) || !pv_makes_sense(pv) ||
	    !streq(jstr(pv, "spec", "csi", "volumeHandle"), handle))
		return error_set(&j->r.error, ENOENT, "there is no volume %s", handle);
	*ret = TAKE_PTR(pv);
	return 0;
}

/* ---- looking ----------------------------------------------------------------------------------- */

static int volumes_ready(struct volumes *v, struct error *err)
{
	int64_t epoch;
	return check_leads(((struct operator_volumes *)v)->r.app, &epoch, err);
}

static int volumes_find(struct volumes *v, const struct handle *id, struct volume_info *ret,
			struct error *err)
{
	struct job j;
	cleanup_json json_t *pv = NULL;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	rc = job_volume(&j, id, &pv);
	if (rc == 0 && (!record_is_made(pv) || record_goes(pv)))
		rc = error_set(&j.r.error, ENOENT, "the volume %s is %s", object_name(pv),
			       record_goes(pv) ? "being removed" : "not made yet");
	if (rc == 0)
		record_info(&j, pv, ret);
	return job_end(&j, rc, err);
}

struct listing {
	const struct job *job;
	const char *after;
	size_t max;
	struct volume_list *list;
};

static const char *name_in(const struct volume_info *v)
{
	return strrchr(v->id, '.') + 1;
}

/* Keeps the first names, in their order: an API server lists in that order, most go to the end. */
static int list_one(json_t *pv, void *userdata)
{
	struct listing *x = userdata;
	struct volume_list *l = x->list;
	const char *name = object_name(pv);
	size_t at = l->count;

	if (!pv_is_ours(x->job->op, pv) || !pv_makes_sense(pv) || !record_is_made(pv) ||
	    record_goes(pv) || (x->after && strcmp(name, x->after) <= 0))
		return 0;
	while (at > 0 && strcmp(name_in(&l->items[at - 1]), name) > 0)
		at--;
	if (at == x->max) {
		l->more = true;
		return 0;
	}
	if (l->count == x->max) {
		volume_info_done(&l->items[--l->count]);
		l->more = true;
	}
	memmove(&l->items[at + 1], &l->items[at], (l->count - at) * sizeof(*l->items));
	record_info(x->job, pv, &l->items[at]);
	l->count++;
	return 0;
}

static int volumes_list(struct volumes *v, const char *after, size_t max, struct volume_list *ret,
			struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	struct volume_list list = { .items = xcalloc(max + 1, sizeof(*list.items)) };
	struct listing x = { .job = &j, .after = after, .max = max, .list = &list };
	cleanup_free char *labels = xasprintf(QM_LABEL_DEPLOYMENT "=%s", j.op->deployment);
	cleanup_free char *version = NULL;
	struct kube_selector ours = { .labels = labels };

	rc = kube_list_each(j.r.kube, &KIND_PV, NULL, &ours, list_one, &x, &version, &j.r.error);
	if (rc < 0)
		volume_list_done(&list);
	else
		*ret = list;
	return job_end(&j, rc == -EIDRM ? -EAGAIN : rc, err);
}

static int volumes_capacity(struct volumes *v, const char *pool, enum volume_kind kind,
			    int64_t *ret_left, int64_t *ret_biggest, struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc == 0)
		pool_room(&j.r, pool, ret_left, ret_biggest);
	return rc;
}

/* ---- growing ----------------------------------------------------------------------------------- */

int record_may_change(struct job *j, const json_t *pv)
{
	if (record_goes(pv) || !record_is_made(pv))
		return error_set(&j->r.error, EINPROGRESS, "the volume %s is %s", object_name(pv),
				 record_goes(pv) ? "being removed" : "not made yet");
	if (record_is_csi(pv))
		return 0;
	return error_set(&j->r.error, EBUSY,
			 "the volume %s belongs to claim %s/%s; change what that asks for",
			 object_name(pv), jstr(pv, "spec", "claimRef", "namespace"),
			 jstr(pv, "spec", "claimRef", "name"));
}

static int reserve_more(struct job *j, const json_t *pv, const json_t *pool, int64_t bytes)
{
	int64_t biggest = 0;
	char most[QUANTITY_TEXT_MAX];
	int rc = ledger_grow(j->op->ledger, object_name(pv), bytes, pool_limit(j->op, pool),
			     &biggest);
	if (rc == -EAGAIN)
		return error_set(&j->r.error, EAGAIN,
				 "volume %s is not in the ledger yet; ask again", object_name(pv));
	if (rc < 0)
		return error_set(&j->r.error, ENOSPC,
				 "%lld bytes were asked for, but pool %s has room for no more "
				 "than %s of this volume",
				 (long long)bytes, object_name(pool),
				 quantity_human(biggest, most));
	return 0;
}

/* First what is in the pool, then the record: who asks again sees what is still to be done. */
static int grow(struct job *j, const json_t *pv, const struct handle *id, int64_t bytes)
{
	char size[QUANTITY_TEXT_MAX];
	cleanup_json json_t *pool = NULL;
	cleanup_free char *claim = pv_claim_key(pv);
	struct pool_access access;
	struct worker_volume volume = { id->kind, id->name, pv_owner(pv) };

	int rc = job_pool(j, id->pool, &pool);
	if (rc == 0)
		rc = reserve_more(j, pv, pool, bytes);
	if (rc < 0)
		return rc;
	pool_access(pool, &access);
	rc = j->op->workers->ops->resize(j->op->workers, &access.pool, &volume, bytes, &j->r.error);
	if (rc == 0 && id->kind == VOLUME_WHOLE)
		rc = whole_grow(&j->r, id->pool, id->name, bytes);
	if (rc == 0)
		rc = op_patch(&j->r, &KIND_PV, pv, NULL,
			      json_pack("{s:{s:{s:s}}}", "spec", "capacity", "storage",
					quantity_text(bytes, size)),
			      NULL);
	if (rc < 0)
		ledger_set(j->op->ledger, id->name, id->pool, pv_bytes(pv), claim);
	return rc;
}

static int expand_once(struct job *j, const struct handle *id, int64_t bytes, int64_t limit,
		       int64_t *ret_bytes)
{
	cleanup_json json_t *pv = NULL;
	int64_t size = 0;
	int rc = job_volume(j, id, &pv);
	if (rc == 0)
		rc = record_may_change(j, pv);
	if (rc == 0 && limit && pv_bytes(pv) > limit)
		rc = error_set(&j->r.error, ERANGE,
			       "the volume %s has %lld bytes already, and does not get smaller",
			       object_name(pv), (long long)pv_bytes(pv));
	if (rc == 0)
		rc = volume_size(id->kind, bytes, limit, pv_bytes(pv), &size, &j->r.error);
	if (rc == 0 && size > pv_bytes(pv))
		rc = grow(j, pv, id, size);
	if (rc == 0)
		*ret_bytes = size > pv_bytes(pv) ? size : pv_bytes(pv);
	return rc;
}

static int volumes_expand(struct volumes *v, const struct handle *id, int64_t bytes, int64_t limit,
			  int64_t *ret_bytes, struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	do
		rc = expand_once(&j, id, bytes, limit, ret_bytes);
	while (job_again(&j, rc));
	return job_end(&j, rc, err);
}

/* ---- all of it --------------------------------------------------------------------------------- */

static const struct volumes_ops operations = {
	.ready = volumes_ready,
	.create = volumes_create,
	.remove = volumes_remove,
	.find = volumes_find,
	.list = volumes_list,
	.expand = volumes_expand,
	.capacity = volumes_capacity,
	.snapshot = volumes_snapshot,
	.snapshot_remove = volumes_snapshot_remove,
	.snapshots = volumes_snapshots,
	.snapshot_find = volumes_snapshot_find,
	.modify = volumes_modify,
};

struct volumes *operator_volumes_new(const struct reconcile *r)
{
	struct operator_volumes *o = xcalloc(1, sizeof(*o));
	o->volumes.ops = &operations;
	o->r = *r;
	o->r.error = ERROR_INIT;
	return &o->volumes;
}

void operator_volumes_free(struct volumes *v)
{
	free(v);
}
