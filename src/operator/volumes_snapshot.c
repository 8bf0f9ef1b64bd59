/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/volumes_internal.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/quantity.h"
#include "base/rand.h"
#include "operator/ledger.h"
#include "operator/snapshot.h"

#include <errno.h>

/*
 * Snapshots are recorded in their pool alone: by the info file that the worker keeps. The id names the
 * pool of the source, so one name stands for one snapshot of each pool. That its bytes are promised
 * and which one of its name it is say annotations of the pool's object, which come before it and go
 * after it.
 */

static int info_of(const char *pool, const json_t *said, struct snapshot_info *ret)
{
	const char *name = jstr(said, "name"), *source = jstr(said, "source"),
		   *kind = jstr(said, "kind"), *created = jstr(said, "created");
	int64_t at = 0;

	if (!name || !source || !kind || !*kind)
		return -ENOENT; /* torn by a crash: whoever asks for it again makes it whole */
	if (created)
		time_parse(created, &at);
	*ret = (struct snapshot_info){
		.id = handle_format(pool, VOLUME_SNAPSHOT, name),
		.source = handle_format(pool, (enum volume_kind) * kind, source),
		.bytes = jint(said, "size"),
		.created_ms = at,
		.ready = jbool(said, "ready"),
	};
	return 0;
}

static int ask(struct job *j, const json_t *pool, const char *name, json_t **ret)
{
	struct workers *w = j->op->workers;
	struct worker_volume snapshot = { VOLUME_SNAPSHOT, name };
	struct pool_access access;

	pool_access(pool, &access);
	int rc;
	do
		rc = w->ops->find(w, &access.pool, &snapshot, ret, &j->r.error);
	while (job_again(j, rc));
	return rc;
}

int volumes_snapshot_source(struct job *j, const json_t *pool, const char *name,
			    enum volume_kind *ret_kind, int64_t *ret_bytes)
{
	cleanup_json json_t *said = NULL;
	int rc = ask(j, pool, name, &said);
	if (rc < 0)
		return rc;
	if (!jbool(said, "ready"))
		return error_set(&j->r.error, EINPROGRESS,
				 "the snapshot %s is still being copied; try again when it is "
				 "ready to use",
				 name);
	const char *kind = jstr(said, "kind");
	if (!kind || !*kind)
		return error_set(&j->r.error, EINVAL,
				 "the snapshot %s does not say of which kind its source was; take "
				 "another",
				 name);
	*ret_kind = (enum volume_kind) * kind;
	*ret_bytes = jint(said, "size");
	return 0;
}

/* ---- making ------------------------------------------------------------------------------------ */

/* Which one of its name it is; what a version before took is nobody's, and so no later one's. */
static const char *owner_of(const json_t *pool, const char *name)
{
	cleanup_free char *key = xasprintf(SNAPSHOT_INCARNATION "%s", name);
	const char *owner = object_annotation(pool, key);

	return owner ? owner : PV_OWNER_NOBODY;
}

static int copy(struct job *j, const json_t *pool, const struct handle *source, const char *name,
		struct snapshot_info *ret)
{
	struct workers *w = j->op->workers;
	struct worker_volume from = { source->kind, source->name };
	struct worker_volume to = { VOLUME_SNAPSHOT, name, owner_of(pool, name) };
	struct pool_access access;
	cleanup_json json_t *said = NULL;

	pool_access(pool, &access);
	int rc = w->ops->snapshot(w, &access.pool, &from, &to, &said, &j->r.error);
	if (rc >= 0)
		rc = info_of(object_name(pool), said, ret);
	return rc;
}

/*
 * Says on the pool's object that so much is promised for it and which one of its name it is, or
 * (bytes NULL) that it is not any more. *pool is what the API has then.
 */
static int note(struct job *j, json_t **pool, const char *name, const char *bytes,
		const char *owner)
{
	cleanup_free char *promised = xasprintf(SNAPSHOT_PROMISED "%s", name),
			  *incarnation = xasprintf(SNAPSHOT_INCARNATION "%s", name);
	json_t *now = NULL;

	if (!bytes && !object_annotation(*pool, promised) && !object_annotation(*pool, incarnation))
		return 0;
	int rc = op_patch(&j->r, &KIND_STORAGEPOOL, *pool, NULL,
			  json_pack("{s:{s:{s:s?, s:s?}}}", "metadata", "annotations", promised,
				    bytes, incarnation, owner),
			  &now);
	if (rc < 0)
		return rc;
	json_decref(*pool);
	*pool = now;
	return 0;
}

static void forget(struct job *j, const char *pool, const char *name)
{
	cleanup_free char *key = csi_snapshot_ledger_key(pool, name);

	ledger_drop(j->op->ledger, key);
	system_soon(&j->r);
}

/* The room for it, as large as its volume may be: 1 where it was promised just now, 0 where before. */
static int promise(struct job *j, json_t **pool, const char *name, int64_t bytes)
{
	const char *in = object_name(*pool);
	cleanup_free char *key = csi_snapshot_ledger_key(in, name), *chosen = NULL,
			  *noted = xasprintf(SNAPSHOT_PROMISED "%s", name);
	const struct ledger_offer offer = { in, pool_limit(j->op, *pool) };
	char asked[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX], unique[UUID_TEXT_MAX];
	int64_t biggest = 0;

	if (object_annotation(*pool, noted))
		return 0;
	int rc = ledger_reserve(j->op->ledger, key, NULL, bytes, &offer, 1, &chosen, &biggest);
	if (rc == -ENOSPC)
		return error_set(
			&j->r.error, ENOSPC,
			"the snapshot needs %s, but pool %s has %s left; delete volumes or "
			"snapshots of it",
			quantity_human(bytes, asked), in, quantity_human(biggest, most));
	if (rc == 0)
		rc = note(j, pool, name, quantity_text(bytes, asked), uuid_text(unique));
	if (rc < 0) {
		forget(j, object_name(*pool), name);
		return rc;
	}
	ledger_made(j->op->ledger, key);
	return 1;
}

/*
 * There is one of that name, and not the one that the pool's object says: a person took the mark
 * away, or a leader before us was stopped and made it too late. The mark becomes that one's, so
 * that it can be gone on with, and removed.
 */
static int adopt(struct job *j, json_t **pool, const char *name)
{
	cleanup_free char *promised = xasprintf(SNAPSHOT_PROMISED "%s", name);
	cleanup_json json_t *said = NULL;
	int rc = ask(j, *pool, name, &said);
	const char *owner = rc == 0 ? jstr(said, "owner") : NULL;

	if (owner && !streq(owner, owner_of(*pool, name)))
		rc = note(j, pool, name, object_annotation(*pool, promised), owner);
	return rc < 0 && rc != -ENOENT ? rc
				       : error_set(&j->r.error, ESTALE,
						   "the snapshot %s was another; ask again", name);
}

/*
 * It is not there, or not any more: what was promised for it is given back, as the API has the
 * pool now. Its successor keeps what was promised for that.
 */
static int give_back(struct job *j, const char *pool, const char *name, const char *owner)
{
	cleanup_json json_t *now = NULL;
	int rc = job_pool(j, pool, &now);

	if (rc < 0)
		return rc;
	const char *is = owner_of(now, name);
	if (!streq(is, PV_OWNER_NOBODY) && !streq(is, owner))
		return 0;
	rc = note(j, &now, name, NULL, NULL);
	if (rc == 0)
		forget(j, pool, name);
	return rc;
}

/*
 * Who is told that it failed for good does not ask again, and may have no id to delete it by: nothing of what was begun
 * is left, nor its promise. What is complete stays, since then it was something else that failed, and so
 * does another's of that name.
 */
static int give_up(struct job *j, const json_t *pool, const struct handle *source, const char *name,
		   int rc)
{
	struct workers *w = j->op->workers;
	struct worker_volume own = { VOLUME_SNAPSHOT, name, owner_of(pool, name) };
	struct error why = j->r.error;
	struct pool_access access;
	cleanup_json json_t *said = NULL;
	int gone = ask(j, pool, name, &said);

	if (gone == 0 && (jbool(said, "ready") || !streq(jstr(said, "source"), source->name))) {
		j->r.error = why;
		return rc;
	}
	int leads = job_leads(j);
	if (leads < 0)
		return leads;
	pool_access(pool, &access);
	if (gone == 0)
		gone = w->ops->snapshot_remove(w, &access.pool, &own, &j->r.error);
	if (gone < 0 && gone != -ENOENT)
		return -EAGAIN; /* the same call again takes it up */
	give_back(j, object_name(pool), name, own.owner);
	j->r.error = why;
	return rc;
}

/* The source is gone; its snapshot, if it was made before, is still there for who asks again. */
static int made_before(struct job *j, const json_t *pool, const struct handle *source,
		       const char *name, struct snapshot_info *ret)
{
	cleanup_json json_t *said = NULL;
	struct error why = j->r.error;
	int rc = ask(j, pool, name, &said);

	if (rc < 0) {
		if (rc == -ENOENT)
			j->r.error = why;
		return rc;
	}
	if (!streq(jstr(said, "source"), source->name) || !jbool(said, "ready")) {
		j->r.error = why;
		return -ENOENT;
	}
	return info_of(object_name(pool), said, ret);
}

/* One call at a time for a name: what one gives up is not what another has just begun. */
static int snapshot_once(struct job *j, const char *name, const struct handle *source,
			 struct snapshot_info *ret)
{
	cleanup_free char *key = csi_snapshot_ledger_key(source->pool, name);
	cleanup_with(name_release) struct name_hold held = { 0 };
	cleanup_json json_t *pv = NULL, *pool = NULL;
	int rc = name_hold(j->op, key, &held, &j->r.error);
	if (rc == 0)
		rc = job_pool(j, source->pool, &pool);
	if (rc < 0)
		return rc;
	rc = job_volume(j, source, &pv);
	if (rc == -ENOENT)
		return made_before(j, pool, source, name, ret);
	if (rc == 0 && (!record_is_made(pv) || record_goes(pv)))
		return error_set(&j->r.error, EINPROGRESS, "the volume %s is %s", source->name,
				 record_goes(pv) ? "being removed" : "not made yet");
	if (rc == 0)
		rc = promise(j, &pool, name, pv_bytes(pv));
	if (rc < 0)
		return rc;
	bool fresh = rc > 0;
	rc = copy(j, pool, source, name, ret);
	if (rc == -ESTALE)
		rc = adopt(j, &pool, name);
	if (rc == -EEXIST && fresh) { /* another's, which has its own promise */
		struct error why = j->r.error;
		give_back(j, source->pool, name, owner_of(pool, name));
		j->r.error = why;
	}
	return rc < 0 && rc != -EEXIST && !job_unsure(rc) ? give_up(j, pool, source, name, rc) : rc;
}

int volumes_snapshot(struct volumes *v, const char *name, const struct handle *source,
		     struct snapshot_info *ret, struct error *err)
{
	struct job j;
	char own[CSI_NAME_MAX];
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	csi_volume_name(name, own);
	do
		rc = snapshot_once(&j, own, source, ret);
	while (job_again(&j, rc));
	return job_end(&j, rc, err);
}

/* One that the snapshot loops took is in a VolumeSnapshotContent's hands: who deletes that deletes it. */
static int refuse_others(struct job *j, const json_t *pool, const char *name)
{
	cleanup_json json_t *said = NULL;

	if (str_has_prefix(name, "csi-"))
		return 0;
	int rc = ask(j, pool, name, &said);
	if (rc < 0)
		return rc;
	return error_set(&j->r.error, EBUSY,
			 "snapshot %s belongs to a VolumeSnapshotContent; delete that", name);
}

/* Whose it is, where the pool's object does not say so: as its info says. Caller frees. */
static int find_owner(struct job *j, const json_t *pool, const char *name, char **ret)
{
	cleanup_json json_t *said = NULL;
	const char *owner = owner_of(pool, name);
	int rc = streq(owner, PV_OWNER_NOBODY) ? ask(j, pool, name, &said) : 0;

	if (rc < 0 && rc != -ENOENT)
		return rc;
	j->r.error = ERROR_INIT;
	*ret = xstrdup(jstr(said, "owner") ? jstr(said, "owner") : owner);
	return 0;
}

/* One call at a time for a name, as where it is taken; and what is given back is its own. */
static int remove_once(struct job *j, const struct handle *id)
{
	cleanup_free char *key = csi_snapshot_ledger_key(id->pool, id->name), *owner = NULL;
	cleanup_with(name_release) struct name_hold held = { 0 };
	cleanup_json json_t *pool = NULL;
	struct workers *w = j->op->workers;
	struct pool_access access;
	int rc = name_hold(j->op, key, &held, &j->r.error);

	if (rc == 0)
		rc = job_pool(j, id->pool, &pool);
	if (rc == 0)
		rc = refuse_others(j, pool, id->name);
	if (rc == 0)
		rc = find_owner(j, pool, id->name, &owner);
	if (rc == 0)
		rc = job_leads(j);
	if (rc < 0)
		return rc;
	struct worker_volume own = { VOLUME_SNAPSHOT, id->name, owner };
	pool_access(pool, &access);
	rc = w->ops->snapshot_remove(w, &access.pool, &own, &j->r.error);
	return rc < 0 ? rc : give_back(j, id->pool, id->name, owner);
}

int volumes_snapshot_remove(struct volumes *v, const struct handle *id, struct error *err)
{
	struct job j;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	do
		rc = remove_once(&j, id);
	while (job_again(&j, rc));
	/* gone already, or the pool took it along */
	return job_end(&j, rc == -ENOENT ? 0 : rc, err);
}

/* ---- looking ----------------------------------------------------------------------------------- */

int volumes_snapshot_find(struct volumes *v, const struct handle *id, struct snapshot_info *ret,
			  struct error *err)
{
	struct job j;
	cleanup_json json_t *pool = NULL, *said = NULL;
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	rc = job_pool(&j, id->pool, &pool);
	if (rc == 0)
		rc = ask(&j, pool, id->name, &said);
	if (rc == 0)
		rc = info_of(id->pool, said, ret);
	return job_end(&j, rc, err);
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct snapshot_info *)a)->id, ((const struct snapshot_info *)b)->id);
}

/* Adds those of one pool that come after that id, in their order; one more than max says that there are more. */
static int list_pool(struct job *j, const json_t *pool, const char *source, const char *after,
		     struct snapshot_list *list)
{
	struct workers *w = j->op->workers;
	struct pool_access access;
	cleanup_json json_t *all = NULL;
	const json_t *said;
	size_t i, first = list->count;

	pool_access(pool, &access);
	int rc;
	do
		rc = w->ops->snapshots(w, &access.pool, &all, &j->r.error);
	while (job_again(j, rc));
	if (rc < 0)
		return rc;
	list->items = xrealloc(list->items,
			       (list->count + json_array_size(all) + 1) * sizeof(*list->items));
	json_array_foreach (all, i, said) {
		struct snapshot_info s;
		if (info_of(object_name(pool), said, &s) < 0)
			continue;
		if ((source && !streq(source, s.source)) || (after && strcmp(s.id, after) <= 0))
			snapshot_info_done(&s);
		else
			list->items[list->count++] = s;
	}
	qsort(list->items + first, list->count - first, sizeof(*list->items), by_id);
	return 0;
}

static void cut(struct snapshot_list *l, size_t max)
{
	l->more = l->count > max;
	while (l->count > max)
		snapshot_info_done(&l->items[--l->count]);
}

static int add_name(const json_t *pool, void *userdata)
{
	json_t *names = userdata;
	if (!pool_parent(pool))
		json_object_set_new(names, object_name(pool), json_true());
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The pools in the order of ids: "v1.<pool>.s.", where the dot comes before all letters but the hyphen. */
static void pool_names(struct job *j, const char *source, struct strv *ret)
{
	struct handle h;
	cleanup_json json_t *names = json_object();
	const char *name;
	json_t *value;

	if (source) {
		if (handle_parse(source, &h, NULL) == 0)
			strv_add_take(ret, handle_format(h.pool, VOLUME_SNAPSHOT, ""));
		return;
	}
	reader_each(j->r.cache, &KIND_STORAGEPOOL, j->op->ns, add_name, names);
	json_object_foreach (names, name, value)
		strv_add_take(ret, handle_format(name, VOLUME_SNAPSHOT, ""));
	if (ret->count)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_text);
}

static int list_named(struct job *j, const char *prefix, const char *source, const char *after,
		      struct snapshot_list *list)
{
	cleanup_free char *name = xstrndup(prefix + 3, strlen(prefix) - 6);
	cleanup_json json_t *pool = NULL;
	int rc = job_pool(j, name, &pool);

	if (rc == -ENOENT)
		return 0; /* not ours, or gone by now */
	return rc < 0 ? rc : list_pool(j, pool, source, after, list);
}

int volumes_snapshots(struct volumes *v, const char *source, const struct handle *after, size_t max,
		      struct snapshot_list *ret, struct error *err)
{
	struct job j;
	struct strv pools = { 0 };
	struct snapshot_list list = { 0 };
	int rc = job_begin(v, &j, err);
	if (rc < 0)
		return rc;
	cleanup_free char *last =
		after ? handle_format(after->pool, VOLUME_SNAPSHOT, after->name) : NULL;

	pool_names(&j, source, &pools);
	for (size_t i = 0; i < pools.count && rc == 0 && list.count <= max; i++) {
		/* a pool all of whose ids come before that one was listed already */
		size_t len = strlen(pools.items[i]);
		if (!last || strncmp(pools.items[i], last, len) >= 0)
			rc = list_named(&j, pools.items[i], source, last, &list);
	}
	strv_done(&pools);
	cut(&list, max);
	if (rc < 0)
		snapshot_list_done(&list);
	else
		*ret = list;
	return job_end(&j, rc, err);
}
