/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/snapshot.h"
#include "operator/source.h"

#include <errno.h>

/* What a VolumeSnapshot holds while it is needed, and how it goes. */

/* ---- the claim that it is taken of ----------------------------------------------------------------- */

int snapshot_hold_claim(struct snapshot_work *w, const json_t *claim)
{
	if (object_has_finalizer(claim, SNAPSHOT_CLAIM_HELD))
		return 0;
	return op_patch(w->r, &KIND_PVC, claim, NULL,
			json_pack("{s:{s:o}}", "metadata", "finalizers",
				  finalizers_with(claim, SNAPSHOT_CLAIM_HELD)),
			NULL);
}

static int still_takes(const json_t *other, void *userdata)
{
	struct snapshot_work *w = userdata;

	return !streq(object_uid(other), object_uid(w->snapshot)) && !snapshot_is_ready(other) &&
	       streq(snapshot_claim(other), snapshot_claim(w->snapshot));
}

/* The claim, where it is held and nothing else needs that. New reference, or NULL. */
static json_t *held_claim(struct snapshot_work *w)
{
	const char *name = snapshot_claim(w->snapshot);
	json_t *claim = name ? reader_get(w->r->cache, &KIND_PVC, w->ns, name) : NULL;

	if (claim && object_has_finalizer(claim, SNAPSHOT_CLAIM_HELD) &&
	    !reader_each_marked(w->r->cache, &KIND_VOLUMESNAPSHOT, w->ns, still_takes, w))
		return claim;
	json_decref(claim);
	return NULL;
}

bool snapshot_holds_claim(struct snapshot_work *w)
{
	cleanup_json json_t *claim = held_claim(w);

	return claim != NULL;
}

int snapshot_release_claim(struct snapshot_work *w)
{
	cleanup_json json_t *claim = held_claim(w);

	return claim ? op_drop_finalizer(w->r, &KIND_PVC, claim, SNAPSHOT_CLAIM_HELD) : 0;
}

/* The finalizer is any driver's: only where the volume is ours may it be we who put it there. */
static bool claim_is_held(struct reconcile *r, const json_t *claim)
{
	const char *volume = jstr(claim, "spec", "volumeName");
	cleanup_json json_t *pv = volume ? reader_get(r->cache, &KIND_PV, NULL, volume) : NULL;

	return object_deleting(claim) && object_has_finalizer(claim, SNAPSHOT_CLAIM_HELD) &&
	       (op_of(r)->binder || (pv && pv_is_ours(op_of(r), pv)));
}

int snapshot_release_left(struct reconcile *r, const json_t *claim)
{
	cleanup_json json_t *all = NULL;
	json_t *snapshot;
	size_t i;

	if (!claim_is_held(r, claim) || !op_leads(r, NULL))
		return 0;
	int rc = snapshot_others_lead(r);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = kube_list(r->kube, &KIND_VOLUMESNAPSHOT, object_namespace(claim), NULL, &all, NULL,
		       &r->error);
	if (rc < 0 && rc != -ENOENT) /* without the kind there is none */
		return rc;
	json_array_foreach (all, i, snapshot)
		if (streq(snapshot_claim(snapshot), object_name(claim)) &&
		    !snapshot_is_ready(snapshot))
			return 0;
	return op_drop_finalizer(r, &KIND_PVC, claim, SNAPSHOT_CLAIM_HELD);
}

void snapshot_held_keys(const json_t *snapshot, struct reconcile *r, struct strv *keys)
{
	const char *name = snapshot_claim(snapshot);
	cleanup_json json_t *claim =
		name ? reader_get(r->cache, &KIND_PVC, object_namespace(snapshot), name) : NULL;

	if (claim && claim_is_held(r, claim))
		strv_add_take(keys, object_key(claim));
}

/* ---- the claims that are made from it --------------------------------------------------------------- */

static bool is_made_from(const json_t *claim, const json_t *snapshot)
{
	const json_t *ref = source_ref(claim);

	return source_is_snapshot(ref) && streq(jstr(ref, "name"), object_name(snapshot)) &&
	       source_needed(claim);
}

static int wake(const json_t *claim, void *userdata)
{
	struct snapshot_work *w = userdata;

	if (is_made_from(claim, w->snapshot)) {
		cleanup_free char *key = object_key(claim);
		w->r->enqueue(w->r, "claim", key, 0);
	}
	return 0;
}

void snapshot_wake_claims(struct snapshot_work *w)
{
	reader_each_marked(w->r->cache, &KIND_PVC, w->ns, wake, w);
}

/* Whether a claim is in the making from it, by what the API itself says: its data must not go under a copy. */
static int is_needed(struct snapshot_work *w)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *claim;
	int rc = kube_list(w->r->kube, &KIND_PVC, w->ns, NULL, &all, NULL, &w->r->error);

	if (rc < 0)
		return rc;
	json_array_foreach (all, i, claim)
		if (is_made_from(claim, w->snapshot) &&
		    object_has_finalizer(claim, QM_FINALIZER_PROVISION))
			return 1;
	return 0;
}

/* ---- its end ---------------------------------------------------------------------------------------- */

static int mark_content(struct reconcile *r, json_t **content)
{
	json_t *marked = NULL;

	if (object_annotation(*content, SNAPSHOT_BEING_DELETED))
		return 0;
	int rc = op_patch(r, &KIND_VOLUMESNAPSHOTCONTENT, *content, NULL,
			  json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
				    SNAPSHOT_BEING_DELETED, "yes"),
			  &marked);
	if (rc < 0)
		return rc;
	json_decref(*content);
	*content = marked;
	return 0;
}

/* 0: it is gone, or stays by its policy; 1: it is going, which its watch will say. */
static int end_content(struct reconcile *r, json_t **content)
{
	int rc = mark_content(r, content);

	if (rc < 0 || !streq(jstr(*content, "spec", "deletionPolicy"), "Delete"))
		return rc == -ENOENT ? 0 : rc;
	if (!object_deleting(*content)) {
		const struct kube_delete_options options = { .uid = object_uid(*content) };

		rc = kube_delete(r->kube, &KIND_VOLUMESNAPSHOTCONTENT, NULL, object_name(*content),
				 &options, &r->error);
		if (rc < 0)
			return rc == -ENOENT ? 0 : rc;
	}
	return 1;
}

bool content_seems_left(struct reconcile *r, const json_t *content)
{
	const json_t *ref = jget(content, "spec", "volumeSnapshotRef");
	const char *ns = jstr(ref, "namespace"), *name = jstr(ref, "name"), *uid = jstr(ref, "uid");

	if (!ns || !name || !uid || !*uid)
		return false; /* bound to none */
	if (object_annotation(content, SNAPSHOT_BEING_DELETED) &&
	    (object_deleting(content) || !streq(jstr(content, "spec", "deletionPolicy"), "Delete")))
		return false; /* all that there is to do was done */
	cleanup_json json_t *snapshot = reader_get(r->cache, &KIND_VOLUMESNAPSHOT, ns, name);
	return !snapshot || !streq(object_uid(snapshot), uid);
}

/* By a list: without the kind itself that fails, and does not say that there is none. */
static int is_left(struct reconcile *r, const json_t *content)
{
	const json_t *ref = jget(content, "spec", "volumeSnapshotRef");
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *snapshot;
	int rc = kube_list(r->kube, &KIND_VOLUMESNAPSHOT, jstr(ref, "namespace"), NULL, &all, NULL,
			   &r->error);

	if (rc < 0)
		return rc;
	json_array_foreach (all, i, snapshot)
		if (streq(object_uid(snapshot), jstr(ref, "uid")))
			return 0;
	return 1;
}

int content_end_left(struct reconcile *r, json_t **content)
{
	if (!content_seems_left(r, *content))
		return 0;
	int rc = snapshot_others_lead(r);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = is_left(r, *content);
	if (rc > 0)
		rc = end_content(r, content);
	else
		return rc;
	return rc < 0 ? rc : 1;
}

static int let_go(struct snapshot_work *w)
{
	json_t *finalizers = finalizers_without(w->snapshot, SNAPSHOT_BOUND);

	for (size_t i = json_array_size(finalizers); i-- > 0;)
		if (streq(json_string_value(json_array_get(finalizers, i)), SNAPSHOT_AS_SOURCE))
			json_array_remove(finalizers, i);
	int rc = op_patch(w->r, &KIND_VOLUMESNAPSHOT, w->snapshot, NULL,
			  json_pack("{s:{s:o}}", "metadata", "finalizers", finalizers), NULL);
	return rc == -ENOENT ? 0 : rc;
}

int snapshot_end(struct snapshot_work *w)
{
	cleanup_free char *name = snapshot_content_name(w->snapshot);
	cleanup_json json_t *content = NULL;
	int rc = op_get_live(w->r, &KIND_VOLUMESNAPSHOTCONTENT, NULL, name, &content);

	if (rc < 0)
		return rc;
	if (content && content_points_back(content, w->snapshot)) {
		rc = is_needed(w);
		if (rc > 0)
			event_record(w->r->kube, &KIND_VOLUMESNAPSHOT, w->snapshot, "quartermaster",
				     true, "SnapshotDeletePending",
				     "a claim is being made from the snapshot; it goes after that");
		if (rc == 0)
			rc = end_content(w->r, &content);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	rc = snapshot_release_claim(w);
	return rc < 0 ? rc : let_go(w);
}
