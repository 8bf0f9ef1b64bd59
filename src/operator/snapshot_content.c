/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/quantity.h"
#include "operator/ledger.h"
#include "operator/snapshot.h"

#include <errno.h>
#include <string.h>

/*
 * From a VolumeSnapshotContent to a snapshot in the pool. The finalizer is there before the first
 * byte is copied, and the snapshot's name follows from the VolumeSnapshot's uid: whatever a crash leaves
 * is found again and completed, or removed.
 */
#define COPY_AGAIN_MS 1000 /* a worker says nothing by itself while it copies */
#define GONE_AGAIN_MS 30000
#define DOWN_AGAIN_MS 5000

struct work {
	struct reconcile *r;
	struct operator* op;
	json_t *content;
	int64_t epoch;
	struct handle handle; /* what the content names */
	char name[HANDLE_MAX + 1]; /* of the snapshot */
};

bool content_is_given(const json_t *content)
{
	return jstr(content, "spec", "source", "snapshotHandle") != NULL;
}

/*
 * Whether it is of a deployment with our name in another namespace. One that a common controller made says so only
 * when it has been held; until then, and if it was never, its volume does.
 */
static bool of_namesake(struct reconcile *r, const json_t *content, const struct handle *source)
{
	const char *ns = object_annotation(content, QM_ANNOTATION_NAMESPACE);

	if (ns || content_is_given(content))
		return !ns_is_ours(op_of(r), ns);
	cleanup_json json_t *pv = reader_get(r->cache, &KIND_PV, NULL, source->name);
	return pv && !ns_is_ours(op_of(r), object_label(pv, QM_LABEL_NAMESPACE));
}

bool content_is_ours(struct reconcile *r, const json_t *content, struct handle *ret)
{
	struct operator* op = op_of(r);
	bool given = content_is_given(content);
	const char *text =
		jstr(content, "spec", "source", given ? "snapshotHandle" : "volumeHandle");

	if (!streq(jstr(content, "spec", "driver"), QM_DRIVER) || !text ||
	    handle_parse(text, ret, NULL) < 0 || (ret->kind == VOLUME_SNAPSHOT) != given ||
	    !volume_prefix(ret->kind) || of_namesake(r, content, ret))
		return false;
	cleanup_json json_t *pool = reader_get(r->cache, &KIND_STORAGEPOOL, op->ns, ret->pool);
	return pool ? pool_takes_volumes(op, pool) : pool_name_is_ours(op, ret->pool);
}

/* Its name in the pool: that which is given, or made of the VolumeSnapshot's uid, which must be fit for it. */
static bool name_snapshot(struct work *w)
{
	const char *uid = jstr(w->content, "spec", "volumeSnapshotRef", "uid");
	cleanup_free char *name = xasprintf("snap-%s", uid ? uid : ""), *text = NULL;
	struct handle check;

	if (!content_is_given(w->content)) {
		text = handle_format(w->handle.pool, VOLUME_SNAPSHOT, name);
		if (!uid || !*uid || handle_parse(text, &check, NULL) < 0)
			return false;
		memcpy(w->name, check.name, sizeof(w->name));
		return true;
	}
	memcpy(w->name, w->handle.name, sizeof(w->name));
	return true;
}

char *csi_snapshot_ledger_key(const char *pool, const char *name)
{
	return xasprintf("content/%s/%s", pool, name);
}

char *content_ledger_key(const char *name)
{
	return xasprintf("content/%s", name); /* which is no volume's name */
}

/* ---- status ------------------------------------------------------------------------------------- */

static int write_status(struct work *w, json_t *status)
{
	json_t *content = NULL;
	int rc = op_patch(w->r, &KIND_VOLUMESNAPSHOTCONTENT, w->content, "status",
			  json_pack("{s:o}", "status", status), &content);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	json_decref(w->content);
	w->content = content;
	return 0;
}

/* Says once what went wrong; the key comes again, with growing pauses, by the rc that is returned. */
static int failed(struct work *w, int rc, const char *reason)
{
	struct error error = w->r->error;
	cleanup_free char *message =
		xasprintf("%s: %s; trying again",
			  content_is_given(w->content) ? "the snapshot cannot be found"
						       : "the snapshot cannot be taken",
			  error_text(&error, rc));
	char now[TIME_TEXT_MAX];

	if (streq(jstr(w->content, "status", "error", "message"), message))
		return rc;
	event_record(w->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, w->content, "quartermaster", true,
		     reason, "%s", message);
	time_text(clock_wall_ms(w->r->clock), now);
	int told = write_status(w, json_pack("{s:b, s:{s:s, s:s}}", "readyToUse", 0, "error",
					     "message", message, "time", now));
	w->r->error = error;
	return told < 0 ? told : rc;
}

/* What the worker says of the snapshot, as the content's status; nothing is written where it stands there. */
static int tell(struct work *w, const json_t *said, bool ready)
{
	cleanup_free char *handle = handle_format(w->handle.pool, VOLUME_SNAPSHOT, w->name);
	const json_t *now = jget(w->content, "status");
	int64_t created = 0;

	cleanup_free char *key = content_ledger_key(object_name(w->content));
	ledger_set(w->op->ledger, key, w->handle.pool, jint(said, "size"), NULL);
	ledger_made(w->op->ledger, key);
	if (jstr(said, "created"))
		(void)time_parse(jstr(said, "created"), &created);
	if (streq(jstr(now, "snapshotHandle"), handle) && jbool(now, "readyToUse") == ready &&
	    !jget(now, "error"))
		return 0;
	return write_status(w, json_pack("{s:s, s:I, s:I, s:b, s:n}", "snapshotHandle", handle,
					 "creationTime", (json_int_t)created * 1000000,
					 "restoreSize", (json_int_t)jint(said, "size"),
					 "readyToUse", (int)ready, "error"));
}

/* ---- making it, or finding it --------------------------------------------------------------------- */

/* Held before anything is made; and marked as in the making, as others expect it. */
static int hold(struct work *w, bool creating)
{
	json_t *content = NULL, *p;
	bool marked = object_annotation(w->content, SNAPSHOT_BEING_CREATED) != NULL;

	if (object_has_finalizer(w->content, SNAPSHOT_CONTENT_HELD) && marked == creating)
		return 0;
	p = json_pack("{s:{s:o, s:{s:o}}}", "metadata", "finalizers",
		      finalizers_with(w->content, SNAPSHOT_CONTENT_HELD), "annotations",
		      SNAPSHOT_BEING_CREATED, creating ? json_string("yes") : json_null());
	if (creating) /* of a snapshot that was there nobody knows which namesake's pool has it */
		jset(p, json_string(w->op->ns), "metadata", "annotations", QM_ANNOTATION_NAMESPACE);
	int rc = op_patch(w->r, &KIND_VOLUMESNAPSHOTCONTENT, w->content, NULL, p, &content);
	if (rc < 0)
		return rc;
	json_decref(w->content);
	w->content = content;
	return 0;
}

/* The room for it: a snapshot is a copy, as large as its volume may be. */
static int promise(struct work *w, const json_t *pool)
{
	cleanup_json json_t *pv = reader_get(w->r->cache, &KIND_PV, NULL, w->handle.name);
	cleanup_free char *key = content_ledger_key(object_name(w->content)), *chosen = NULL;
	const struct ledger_offer offer = { w->handle.pool, pool_limit(w->op, pool) };
	char asked[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];
	int64_t biggest = 0;

	if (!pv) /* the worker will say whether there is such a volume */
		return 0;
	int rc = ledger_reserve(w->op->ledger, key, NULL, pv_bytes(pv), &offer, 1, &chosen,
				&biggest);
	if (rc != -ENOSPC)
		return rc;
	quantity_human(pv_bytes(pv), asked);
	quantity_human(biggest, most);
	return error_set(&w->r->error, ENOSPC,
			 "it needs %s, but pool %s has %s left; delete volumes or snapshots of it",
			 asked, w->handle.pool, most);
}

static int take(struct work *w, const json_t *pool_object)
{
	const struct worker_volume from = { w->handle.kind, w->handle.name };
	const struct worker_volume snapshot = { VOLUME_SNAPSHOT, w->name };
	cleanup_json json_t *said = NULL;
	struct pool_access access;
	const struct worker_pool *pool = &access.pool;
	int rc = promise(w, pool_object);

	if (rc < 0)
		return failed(w, rc, "SnapshotCreationFailed");
	rc = hold(w, true);
	if (rc < 0)
		return rc;
	pool_access(pool_object, &access);
	rc = w->op->workers->ops->snapshot(w->op->workers, pool, &from, &snapshot, &said,
					   &w->r->error);
	if (rc == -EAGAIN)
		pv_mend(w->r, pool, &from);
	if (rc < 0)
		return failed(w, rc, "SnapshotCreationFailed");
	bool ready = rc == 0;
	rc = tell(w, said, ready);
	if (rc == 0 && ready)
		rc = hold(w, false);
	if (rc == 0 && !ready)
		w->r->again_ms = COPY_AGAIN_MS;
	return rc;
}

static int look_up(struct work *w, const json_t *pool)
{
	static const char reason[] = "SnapshotContentCheckandUpdateFailed";
	const struct worker_volume snapshot = { VOLUME_SNAPSHOT, w->name };
	cleanup_json json_t *said = NULL;
	struct pool_access access;
	int rc = hold(w, false);

	pool_access(pool, &access);
	if (rc == 0)
		rc = w->op->workers->ops->find(w->op->workers, &access.pool, &snapshot, &said,
					       &w->r->error);
	if (rc == -ENOENT)
		error_set(&w->r->error, ENOENT, "pool %s has no snapshot %s", w->handle.pool,
			  w->name);
	if (rc < 0)
		return failed(w, rc, reason);
	bool ready = !json_is_false(jget(said, "ready"));
	if (!ready)
		w->r->again_ms = COPY_AGAIN_MS;
	return tell(w, said, ready);
}

/* No worker is asked: it would only hold a thread until its deadline. */
static int wait_for_pool(struct work *w, int rc, int again_ms)
{
	int told = failed(w, rc, "SnapshotCreationFailed");

	w->r->again_ms = again_ms;
	return told == rc ? 0 : told;
}

static int bring_about(struct work *w)
{
	cleanup_json json_t *pool = NULL;

	if (jbool(w->content, "status", "readyToUse") &&
	    jstr(w->content, "status", "snapshotHandle"))
		return content_is_given(w->content) ? 0 : hold(w, false);
	int rc = op_get_live(w->r, &KIND_STORAGEPOOL, w->op->ns, w->handle.pool, &pool);
	if (rc < 0)
		return rc;
	if (!pool || object_deleting(pool)) {
		rc = error_set(&w->r->error, ENOENT, "pool %s is gone", w->handle.pool);
		return wait_for_pool(w, rc, GONE_AGAIN_MS);
	}
	if (!pool_answers(w->r, pool)) {
		cleanup_free char *why = pool_silence(pool);
		rc = error_set(&w->r->error, EAGAIN, "%s", why);
		return wait_for_pool(w, rc, DOWN_AGAIN_MS);
	}
	rc = ledger_load(w->op->ledger, w->r, w->epoch);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return content_is_given(w->content) ? look_up(w, pool) : take(w, pool);
}

/* ---- its end -------------------------------------------------------------------------------------- */

/* It is not bound (any more), so that nothing needs it: what the common controller says, or nobody bound it. */
static bool may_end(const json_t *content)
{
	const char *uid = jstr(content, "spec", "volumeSnapshotRef", "uid");

	return object_annotation(content, SNAPSHOT_BEING_DELETED) ||
	       (content_is_given(content) && (!uid || !*uid));
}

/* Retained is what is complete; half a snapshot that nobody goes on with is nothing to keep. */
static bool keeps_data(const json_t *content)
{
	return !streq(jstr(content, "spec", "deletionPolicy"), "Delete") &&
	       (content_is_given(content) || jbool(content, "status", "readyToUse"));
}

static bool is_to_end(const json_t *content)
{
	return object_deleting(content) && object_has_finalizer(content, SNAPSHOT_CONTENT_HELD) &&
	       may_end(content);
}

/* Data is never removed on a cache's word: the content as the API has it. 1: it is gone, or another. */
static int read_again(struct work *w)
{
	json_t *now = NULL;
	int rc =
		op_get_live(w->r, &KIND_VOLUMESNAPSHOTCONTENT, NULL, object_name(w->content), &now);

	if (rc < 0)
		return rc;
	if (!now || !streq(object_uid(now), object_uid(w->content))) {
		json_decref(now);
		return 1;
	}
	json_decref(w->content);
	w->content = now;
	*w->name = 0;
	if (!content_is_ours(w->r, w->content, &w->handle))
		return 1;
	name_snapshot(w);
	return 0;
}

/* Said once; no worker is asked. */
static int end_later(struct work *w, const json_t *pool)
{
	cleanup_free char *why = pool_silence(pool);

	if (op_waits(w->r, "pool of content", object_name(w->content), GONE_AGAIN_MS))
		event_record(w->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, w->content, "quartermaster",
			     true, "SnapshotDeleteError", "%s; trying again", why);
	return 0;
}

static int end(struct work *w)
{
	cleanup_json json_t *pool = NULL;

	if (!is_to_end(w->content))
		return 0;
	int rc = read_again(w);
	if (rc != 0 || !is_to_end(w->content))
		return rc < 0 ? rc : 0;
	if (!keeps_data(w->content))
		rc = op_get_live(w->r, &KIND_STORAGEPOOL, w->op->ns, w->handle.pool, &pool);
	if (rc == 0 && pool && *w->name && !pool_answers(w->r, pool))
		return end_later(w, pool);
	if (rc == 0 && pool && *w->name) {
		const struct worker_volume snapshot = { VOLUME_SNAPSHOT, w->name };
		struct pool_access access;

		pool_access(pool, &access);
		rc = w->op->workers->ops->snapshot_remove(w->op->workers, &access.pool, &snapshot,
							  &w->r->error);
		if (rc < 0)
			event_record(w->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, w->content,
				     "quartermaster", true, "SnapshotDeleteError",
				     "%s; trying again", error_text(&w->r->error, rc));
	}
	if (rc < 0)
		return rc;
	return op_drop_finalizer(w->r, &KIND_VOLUMESNAPSHOTCONTENT, w->content,
				 SNAPSHOT_CONTENT_HELD);
}

/* It is gone, and what was promised for it can be promised again: claims that wait may go on. */
static void room_made(struct reconcile *r, const char *name)
{
	struct operator* op = op_of(r);
	cleanup_free char *key = content_ledger_key(name);
	struct strv waiting = { 0 };

	ledger_drop(op->ledger, key);
	ledger_waiting(op->ledger, &waiting);
	for (size_t i = 0; i < waiting.count; i++)
		r->enqueue(r, "claim", waiting.items[i], 0);
	strv_done(&waiting);
	system_soon(r);
}

/* ---- the loop ------------------------------------------------------------------------------------- */

static int work_on(struct work *w)
{
	if (!content_is_ours(w->r, w->content, &w->handle) || !op_leads(w->r, &w->epoch))
		return 0;
	int rc = content_end_left(w->r, &w->content);
	if (rc < 0)
		return rc;
	bool named = name_snapshot(w);
	if (object_deleting(w->content))
		return end(w);
	if (rc > 0)
		return 0; /* nobody wants it any more: nothing is taken for it */
	if (!named) {
		event_record(
			w->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, w->content, "quartermaster", true,
			"ContentValidationError",
			"spec.volumeSnapshotRef.uid is not that of a VolumeSnapshot; nothing is "
			"done for it");
		return 0;
	}
	return bring_about(w);
}

static int content_reconcile(struct reconcile *r, const char *name)
{
	struct work w = { .r = r, .op = op_of(r) };

	w.content = reader_get(r->cache, &KIND_VOLUMESNAPSHOTCONTENT, NULL, name);
	if (!w.content) {
		room_made(r, name);
		return 0;
	}
	int rc = work_on(&w);
	json_decref(w.content);
	return rc;
}

/* Who takes its finalizers away has it vanish without ever being seen to go; its room is promised to nobody then. */
static bool is_gone(struct reconcile *r, const json_t *content)
{
	cleanup_json json_t *there =
		reader_get(r->cache, &KIND_VOLUMESNAPSHOTCONTENT, NULL, object_name(content));

	return !there;
}

/* Those that are ready and stay have nothing to wait for, while their VolumeSnapshot is there. */
static void content_keys(const json_t *content, struct reconcile *r, struct strv *keys)
{
	if (streq(jstr(content, "spec", "driver"), QM_DRIVER) &&
	    (!jbool(content, "status", "readyToUse") || object_deleting(content) ||
	     object_annotation(content, SNAPSHOT_BEING_CREATED) || content_seems_left(r, content) ||
	     is_gone(r, content)))
		strv_add(keys, object_name(content));
}

/* It may have gone without letting its content go. */
static void snapshot_keys(const json_t *snapshot, struct reconcile *r, struct strv *keys)
{
	cleanup_free char *name = snapshot_content_name(snapshot);
	cleanup_json json_t *content =
		reader_get(r->cache, &KIND_VOLUMESNAPSHOTCONTENT, NULL, name);

	if (content)
		content_keys(content, r, keys);
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_VOLUMESNAPSHOTCONTENT, .keys = content_keys },
	{ .kind = &KIND_VOLUMESNAPSHOT, .keys = snapshot_keys },
	{ 0 },
};

const struct controller CONTENT_CONTROLLER = {
	.name = "content",
	.watches = watches,
	.workers = 4,
	.reconcile = content_reconcile,
};
