/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/volumes_internal.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "operator/ledger.h"
#include "operator/whole.h"

#include <errno.h>

#define TRIES                                                                                      \
	5 /* where the record changes under our hands: whoever keeps phases writes to it too */

/* ---- what it begins with ----------------------------------------------------------------------- */

struct origin {
	struct handle id; /* of the source; pool "": none */
	int64_t bytes;
};

static int volume_origin(struct job *j, const struct handle *id, int64_t *ret_bytes)
{
	cleanup_json json_t *pv = NULL;
	int rc = job_volume(j, id, &pv);
	if (rc < 0)
		return rc;
	if (!record_is_made(pv) || record_goes(pv))
		return error_set(&j->r.error, ENOENT, "the volume %s is %s", id->name,
				 record_goes(pv) ? "being removed" : "not made yet");
	*ret_bytes = pv_bytes(pv);
	return 0;
}

/* What the volume is to begin with, which says its pool and its least size. */
static int find_origin(struct job *j, const struct volume_request *q, struct origin *ret)
{
	enum volume_kind kind;
	cleanup_json json_t *pool = NULL;

	*ret = (struct origin){ 0 };
	if (!q->source)
		return 0;
	int rc = handle_parse(q->source, &ret->id, &j->r.error);
	if (rc == 0)
		rc = job_pool(j, ret->id.pool, &pool);
	if (rc < 0)
		return rc;
	kind = ret->id.kind;
	rc = kind == VOLUME_SNAPSHOT
		     ? volumes_snapshot_source(j, pool, ret->id.name, &kind, &ret->bytes)
		     : volume_origin(j, &ret->id, &ret->bytes);
	if (rc < 0)
		return rc;
	if (!volume_kinds_fit(kind, q->kind))
		return error_set(
			&j->r.error, EINVAL,
			"the source %s is of kind %c, the volume asked for of kind %c; ask "
			"for one of the same kind",
			q->source, (char)kind, (char)q->kind);
	if (q->pool && !streq(q->pool, ret->id.pool))
		return error_set(&j->r.error, EINVAL,
				 "the source %s is in another pool than %s; leave the parameter "
				 "pool out",
				 q->source, q->pool);
	return 0;
}

static int wanted_size(struct job *j, const struct volume_request *q, const struct origin *origin,
		       int64_t *ret)
{
	int rc = volume_size(q->kind, q->bytes, q->limit,
			     q->source ? origin->bytes : VOLUME_DEFAULT_BYTES, ret, &j->r.error);
	if (rc == 0 && *ret < origin->bytes)
		return error_set(&j->r.error, ERANGE,
				 "%lld bytes are less than the %lld of the source", (long long)*ret,
				 (long long)origin->bytes);
	return rc;
}

/* ---- the record -------------------------------------------------------------------------------- */

static int no_room(struct job *j, int64_t bytes, int64_t biggest, size_t pools)
{
	char asked[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];

	if (!pools)
		return error_set(&j->r.error, EAGAIN,
				 "no pool of %s serves now; see: quartermaster "
				 "status",
				 j->op->deployment);
	return error_set(&j->r.error, ENOSPC,
			 "%s was asked for, but the most that a pool of %s has left is %s; ask for "
			 "less, add devices or nodes, or delete volumes",
			 quantity_human(bytes, asked), j->op->deployment,
			 quantity_human(biggest, most));
}

/* Promises the bytes of a pool. */
static int reserve(struct job *j, const char *name, int64_t bytes, const char *only, json_t **ret)
{
	struct pool_offers offers = { 0 };
	cleanup_free char *claim = xasprintf("%s/%s", j->op->ns, name), *pool = NULL;
	int64_t biggest = 0;

	pool_offers(&j->r, only, &offers);
	int rc = ledger_reserve(j->op->ledger, name, claim, bytes, offers.items, offers.count,
				&pool, &biggest);
	if (rc == -ENOSPC)
		rc = no_room(j, bytes, biggest, offers.count);
	pool_offers_done(&offers);
	if (rc < 0)
		return rc;
	rc = job_pool(j, pool, ret);
	if (rc < 0)
		ledger_drop(j->op->ledger, name);
	return rc;
}

bool job_unsure(int rc)
{
	static const int unsure[] = { EAGAIN,	    ETIMEDOUT,	  EINPROGRESS, ESTALE,
				      ECANCELED,    EPIPE,	  ECONNRESET,  ENOTCONN,
				      ECONNREFUSED, EHOSTUNREACH, ENETUNREACH };
	for (size_t i = 0; i < ARRAY_SIZE(unsure); i++)
		if (rc == -unsure[i])
			return true;
	return false;
}

static int check_pool(struct job *j, const char *name)
{
	cleanup_json json_t *pool = NULL;
	int rc = name ? job_pool(j, name, &pool) : 0;

	return rc == -ENOENT ? error_set(&j->r.error, EINVAL,
					 "the parameter pool names %s, which is not there", name)
			     : rc;
}

/* The record comes before the data and goes after it: data without one is what a person kept. */
static int refuse_kept(struct job *j, const struct volume_request *q, const char *name,
		       const json_t *pool)
{
	struct workers *w = j->op->workers;
	struct worker_volume volume = { q->kind, name };
	struct pool_access access;
	cleanup_json json_t *said = NULL;

	pool_access(pool, &access);
	int rc = w->ops->find(w, &access.pool, &volume, &said, &j->r.error);
	if (rc == -ENOENT) {
		j->r.error = ERROR_INIT;
		rc = q->kind == VOLUME_WHOLE ? whole_is_taken(&j->r, name) : 0;
		if (rc == 0)
			return 0;
	}
	return rc < 0 ? rc
		      : error_set(&j->r.error, EEXIST,
				  "data of an earlier volume %s is still in pool %s; remove it "
				  "(DeleteVolume does), or use another name than %.128s",
				  name, object_name(pool), q->name);
}

static int begin(struct job *j, const struct volume_request *q, const char *name, json_t **ret)
{
	struct origin origin;
	cleanup_json json_t *pool = NULL, *pv = NULL;
	int64_t bytes = 0;

	int rc = check_pool(j, q->pool);
	if (rc == 0)
		rc = find_origin(j, q, &origin);
	if (rc == 0)
		rc = wanted_size(j, q, &origin, &bytes);
	if (rc == 0)
		rc = reserve(j, name, bytes, q->source ? origin.id.pool : q->pool, &pool);
	if (rc < 0)
		return rc;
	rc = refuse_kept(j, q, name, pool);
	if (rc < 0) {
		ledger_drop(j->op->ledger, name);
		return rc;
	}
	pv = record_new(j->op, q, pool, bytes);
	rc = kube_create(j->r.kube, &KIND_PV, pv, ret, &j->r.error);
	if (rc == 0)
		reader_learned(j->r.cache, &KIND_PV, *ret);
	else if (!job_unsure(rc))
		ledger_drop(j->op->ledger, name);
	return rc == -EEXIST ? -ESTALE : rc;
}

/* ---- removing it ------------------------------------------------------------------------------- */

/* owner: see worker.h. 1: it is under way. */
static int remove_data(struct job *j, const struct handle *id, const char *owner, bool archive)
{
	cleanup_json json_t *pool = NULL;
	struct pool_access access;
	struct worker_volume volume = { id->kind, id->name, owner };
	struct workers *w = j->op->workers;
	int rc = 0;

	if (id->kind == VOLUME_WHOLE)
		rc = (archive ? whole_archive : whole_end)(&j->r, id->pool, id->name);
	if (rc != 0)
		return rc;
	rc = job_pool(j, id->pool, &pool);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc; /* the pool took it along */
	pool_access(pool, &access);
	return (archive ? w->ops->archive : w->ops->remove)(w, &access.pool, &volume, &j->r.error);
}

/* From the first write on the volume loop would end it too, if we die here. 1: it is under way. */
static int end_volume(struct job *j, const json_t *pv)
{
	struct handle id;
	int rc = job_leads(j);
	cleanup_json json_t *marked = json_incref((json_t *)pv);

	if (rc == 0)
		rc = handle_parse(jstr(pv, "spec", "csi", "volumeHandle"), &id, &j->r.error);
	if (rc == 0 && !record_goes(pv)) {
		json_decref(TAKE_PTR(marked));
		rc = op_patch(
			&j->r, &KIND_PV, pv, NULL,
			json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Delete"),
			&marked);
	}
	if (rc == 0)
		rc = remove_data(j, &id, pv_owner(pv), record_is_made(pv) && pv_archives(pv));
	if (rc == 0)
		rc = pv_end(&j->r, marked);
	if (rc == 0)
		ledger_drop(j->op->ledger, object_name(pv));
	return rc == -ENOENT ? 0 : rc;
}

/* Whose the data is that has no record. Caller frees. */
static int find_owner(struct job *j, const struct handle *id, char **ret)
{
	cleanup_json json_t *pool = NULL, *said = NULL;
	struct worker_volume volume = { id->kind, id->name };
	struct workers *w = j->op->workers;
	struct pool_access access;
	int rc = job_pool(j, id->pool, &pool);

	if (rc == 0) {
		pool_access(pool, &access);
		rc = w->ops->find(w, &access.pool, &volume, &said, &j->r.error);
	}
	if (rc < 0 && rc != -ENOENT)
		return rc;
	j->r.error = ERROR_INIT;
	*ret = xstrdup(jstr(said, "owner") ? jstr(said, "owner") : PV_OWNER_NOBODY);
	return 0;
}

/* What is published on this machine stays; an orchestrator asks again when it has ended that. */
static int refuse_used(struct job *j, const json_t *pv)
{
	struct platform *platform = j->op->platform;
	cleanup_free char *users = NULL;
	int rc = platform->ops->users ? platform->ops->users(platform, pv, &users, &j->r.error) : 0;

	return rc > 0 ? error_set(&j->r.error, EBUSY, "the volume %s is in use: %s",
				  object_name(pv), users)
		      : rc;
}

/* Without a record: those who have it staged know its id. */
static int refuse_used_id(struct job *j, const struct handle *id)
{
	cleanup_free char *handle = handle_format(id->pool, id->kind, id->name);
	cleanup_json json_t *pv = json_pack("{s:{s:s}, s:{s:{s:s}}}", "metadata", "name", id->name,
					    "spec", "csi", "volumeHandle", handle);

	return pv ? refuse_used(j, pv) : error_set(&j->r.error, EINVAL, "no such volume");
}

/*
 * A person may have deleted the record alone; what has a claim's name is nobody's here. Whose the data is was asked before
 * it is seen that there is no record: of what is made from then on it is not.
 */
static int remove_unrecorded(struct job *j, const struct handle *id)
{
	cleanup_free char *owner = NULL;
	cleanup_json json_t *pv = NULL;
	int rc = str_has_prefix(id->name, "csi-") ? find_owner(j, id, &owner) : 0;

	if (rc < 0 || !owner)
		return rc;
	rc = job_volume(j, id, &pv);
	if (rc != -ENOENT)
		return rc < 0 ? rc
			      : error_set(&j->r.error, ESTALE, "the volume %s was made meanwhile",
					  id->name);
	j->r.error = ERROR_INIT;
	rc = refuse_used_id(j, id);
	if (rc == 0)
		rc = job_leads(j);
	return rc < 0 ? rc : remove_data(j, id, owner, false);
}

static int remove_once(struct job *j, const struct handle *id)
{
	cleanup_with(name_release) struct name_hold held = { 0 };
	cleanup_json json_t *pv = NULL;
	int rc = name_hold(j->op, id->name, &held, &j->r.error);

	if (rc < 0)
		return rc;
	rc = job_volume(j, id, &pv);
	if (rc == -ENOENT)
		return remove_unrecorded(j, id);
	if (rc < 0)
		return rc;
	if (!record_is_csi(pv))
		return error_set(&j->r.error, EBUSY,
				 "the volume %s belongs to claim %s/%s; delete that", id->name,
				 jstr(pv, "spec", "claimRef", "namespace"),
				 jstr(pv, "spec", "claimRef", "name"));
	rc = refuse_used(j, pv);
	return rc < 0 ? rc : end_volume(j, pv);
}

int volumes_remove(struct volumes *v, const struct handle *id, struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	do
		rc = remove_once(&j, id);
	while (job_again(&j, rc));
	if (rc == 0)
		system_soon(&j.r);
	return job_end(&j, rc, err);
}

/* ---- making it --------------------------------------------------------------------------------- */

/* The record says that it is made: the same write again where another changed it meanwhile. */
static int set_made(struct job *j, json_t **pv)
{
	int rc = -ESTALE;

	for (int i = 0; i < TRIES && rc == -ESTALE; i++) {
		cleanup_json json_t *now = NULL, *made = NULL;
		if (i > 0)
			rc = op_get_live(&j->r, &KIND_PV, NULL, object_name(*pv), &now);
		else
			now = json_incref(*pv);
		if (!now || !streq(object_uid(now), object_uid(*pv)))
			return rc < 0 ? rc
				      : error_set(&j->r.error, EINPROGRESS,
						  "the volume %s is being removed",
						  object_name(*pv));
		rc = op_patch(
			&j->r, &KIND_PV, now, NULL,
			json_pack("{s:{s:{s:n}}}", "metadata", "annotations", QM_ANNOTATION_MAKING),
			&made);
		if (rc == 0) {
			json_decref(*pv);
			*pv = TAKE_PTR(made);
		}
	}
	return rc;
}

/* Where it is a Gluster volume: that. 1: agents are at it. */
static int make_whole(struct job *j, const struct volume_request *q, const json_t *pv,
		      const json_t *pool)
{
	return q->kind == VOLUME_WHOLE ? whole_make(&j->r, pool, object_name(pv), pv_bytes(pv)) : 0;
}

/* Empty, or as a copy of what is there already. 1: it is under way. */
static int make_data(struct job *j, const struct volume_request *q, const json_t *pv,
		     const json_t *pool)
{
	struct workers *w = j->op->workers;
	struct worker_volume volume = { q->kind, object_name(pv), pv_owner(pv) };
	struct pool_access access;
	struct handle from;
	int rc;

	pool_access(pool, &access);
	if (!q->source) {
		rc = w->ops->create(w, &access.pool, &volume, pv_bytes(pv), &j->r.error);
		return rc == 0 ? make_whole(j, q, pv, pool) : rc;
	}
	rc = handle_parse(q->source, &from, &j->r.error);
	if (rc == 0)
		rc = make_whole(j, q, pv, pool);
	struct worker_volume source = { from.kind, from.name };
	return rc != 0 ? rc
		       : w->ops->copy(w, &access.pool, &volume, pv_bytes(pv), &source, &j->r.error);
}

/* The record alone; its policy stays Retain, so that the volume loop keeps the data too, if we die here. */
static int end_record(struct job *j, const json_t *pv)
{
	int rc = job_leads(j);

	if (rc == 0)
		rc = pv_end(&j->r, pv);
	if (rc == 0)
		ledger_drop(j->op->ledger, object_name(pv));
	return rc;
}

/*
 * Who is told that it failed for good does not ask again: so nothing may be left of it. What is
 * there already is another's data, and stays.
 */
static int give_up(struct job *j, const json_t *pv, int rc)
{
	struct error why = j->r.error;

	if ((rc == -EEXIST ? end_record(j, pv) : end_volume(j, pv)) == 0)
		j->r.error = why;
	else
		rc = -EAGAIN; /* the same call again takes it up */
	return rc == -EDQUOT || rc == -EFBIG ? -ENOSPC : rc;
}

static int fill(struct job *j, const struct volume_request *q, json_t **pv)
{
	cleanup_json json_t *pool = NULL;
	int rc = job_pool(j, object_label(*pv, QM_LABEL_POOL), &pool);

	if (rc == -ENOENT) /* the pool went, and with it what was made: choose again */
		return give_up(j, *pv, -ESTALE);
	if (rc == 0)
		rc = make_data(j, q, *pv, pool);
	if (rc < 0 && !job_unsure(rc))
		return give_up(j, *pv, rc);
	if (rc != 0)
		return rc;
	rc = set_made(j, pv);
	if (rc < 0)
		return rc;
	ledger_made(j->op->ledger, object_name(*pv));
	system_soon(&j->r);
	return 0;
}

/* The volume of that name, if it is there and the one asked for. */
static int existing(struct job *j, const struct volume_request *q, const char *name, json_t **ret)
{
	cleanup_json json_t *pv = NULL;
	int rc = op_get_live(&j->r, &KIND_PV, NULL, name, &pv);

	if (rc < 0 || !pv)
		return rc < 0 ? rc : 0;
	if (!pv_is_ours(j->op, pv) || !pv_makes_sense(pv) || !record_is_csi(pv))
		return error_set(&j->r.error, EEXIST,
				 "PersistentVolume %s is there, but not made by this driver; "
				 "delete it, or use another name than %.128s",
				 name, q->name);
	if (record_goes(pv)) {
		/* a person deletes the record alone: the data is kept, as Retain says */
		if (!streq(jstr(pv, "spec", "persistentVolumeReclaimPolicy"), "Delete"))
			return error_set(&j->r.error, EINPROGRESS, "the volume %s is being removed",
					 name);
		rc = end_volume(j, pv);
		return rc != 0 ? rc
			       : error_set(&j->r.error, ESTALE, "the volume %s is being removed",
					   name);
	}
	rc = record_matches(pv, q, &j->r.error);
	if (rc == 0)
		*ret = TAKE_PTR(pv);
	return rc;
}

static int create_once(struct job *j, const struct volume_request *q, struct volume_info *ret)
{
	char name[CSI_NAME_MAX];
	cleanup_with(name_release) struct name_hold held = { 0 };
	cleanup_json json_t *pv = NULL;
	int rc = name_hold(j->op, csi_volume_name(q->name, name), &held, &j->r.error);

	if (rc == 0)
		rc = existing(j, q, name, &pv);
	if (rc == 0 && !pv)
		rc = begin(j, q, name, &pv);
	if (rc == 0 && !record_is_made(pv))
		rc = fill(j, q, &pv);
	if (rc == 0)
		record_info(j, pv, ret);
	return rc;
}

int volumes_create(struct volumes *v, const struct volume_request *q, struct volume_info *ret,
		   struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	do
		rc = create_once(&j, q, ret);
	while (job_again(&j, rc));
	return job_end(&j, rc, err);
}
