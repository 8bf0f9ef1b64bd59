/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/snapshot.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "operator/source.h"

#include <errno.h>

/*
 * From a VolumeSnapshot to its VolumeSnapshotContent, and back: what the content's status says becomes
 * the snapshot's. Every step leaves what the next attempt needs: the content's name follows from the
 * snapshot's uid, and finalizers stand before anything is made.
 */
#define LEASE_AGAIN_MS 15000
#define WAIT_AGAIN_MS 30000

/* ---- what is there -------------------------------------------------------------------------------- */

const char *snapshot_claim(const json_t *snapshot)
{
	return jstr(snapshot, "spec", "source", "persistentVolumeClaimName");
}

bool snapshot_is_ready(const json_t *snapshot)
{
	return jbool(snapshot, "status", "readyToUse") &&
	       jstr(snapshot, "status", "boundVolumeSnapshotContentName");
}

char *snapshot_content_name(const json_t *snapshot)
{
	const char *given = jstr(snapshot, "spec", "source", "volumeSnapshotContentName");

	return given ? xstrdup(given) : xasprintf("snapcontent-%s", object_uid(snapshot));
}

bool content_points_back(const json_t *content, const json_t *snapshot)
{
	const json_t *ref = jget(content, "spec", "volumeSnapshotRef");

	return streq(jstr(ref, "uid"), object_uid(snapshot)) &&
	       streq(jstr(ref, "name"), object_name(snapshot)) &&
	       streq(jstr(ref, "namespace"), object_namespace(snapshot));
}

/* The volume of the claim, by the caches: only to see whose it is. */
static bool claim_is_ours(struct snapshot_work *w)
{
	const char *name = snapshot_claim(w->snapshot);
	cleanup_json json_t *claim = name ? reader_get(w->r->cache, &KIND_PVC, w->ns, name) : NULL;
	const char *volume = jstr(claim, "spec", "volumeName");
	cleanup_json json_t *pv = volume ? reader_get(w->r->cache, &KIND_PV, NULL, volume) : NULL;

	return pv && pv_is_ours(w->op, pv);
}

/* Whether we held it, which stands on it since then: content, class and claim may be gone before it. */
static bool was_held(const struct snapshot_work *w)
{
	return streq(object_annotation(w->snapshot, SNAPSHOT_HELD_BY), w->op->deployment) &&
	       ns_is_ours(w->op, object_annotation(w->snapshot, QM_ANNOTATION_NAMESPACE));
}

/*
 * One that is to go and had a content that is gone, by what the API itself says, holds nothing any more: whoever
 * comes first lets it go, be it of a driver or a deployment that is not there any more, or of a version of ours that
 * left no mark on it.
 */
static int is_orphan(struct snapshot_work *w)
{
	const char *given = jstr(w->snapshot, "spec", "source", "volumeSnapshotContentName"),
		   *bound = jstr(w->snapshot, "status", "boundVolumeSnapshotContentName");
	cleanup_json json_t *content = NULL;

	if (!object_deleting(w->snapshot) || !(given || bound))
		return 0;
	int rc = op_get_live(w->r, &KIND_VOLUMESNAPSHOTCONTENT, NULL, given ? given : bound,
			     &content);
	return rc < 0 ? rc : !content;
}

/*
 * Snapshots of our own volumes are ours. One of which this cannot be told (its claim is not there, or
 * not bound) is answered where we are the only ones, or where its class names our driver. 1: it is ours.
 */
static int is_ours(struct snapshot_work *w)
{
	cleanup_free char *name = snapshot_content_name(w->snapshot);
	const char *class = jstr(w->snapshot, "spec", "volumeSnapshotClassName");
	cleanup_json json_t *content =
		reader_get(w->r->cache, &KIND_VOLUMESNAPSHOTCONTENT, NULL, name);
	struct handle handle;

	if (content)
		return content_is_ours(w->r, content, &handle);
	if (w->op->binder || was_held(w) || claim_is_ours(w))
		return 1;
	cleanup_json json_t *c =
		class ? reader_get(w->r->cache, &KIND_VOLUMESNAPSHOTCLASS, NULL, class) : NULL;
	const char *claim = snapshot_claim(w->snapshot);
	cleanup_json json_t *there =
		claim ? reader_get(w->r->cache, &KIND_PVC, w->ns, claim) : NULL;
	if (streq(jstr(c, "driver"), QM_DRIVER) && !jstr(there, "spec", "volumeName"))
		return 1;
	return is_orphan(w);
}

int snapshot_others_lead(struct reconcile *r)
{
	cleanup_json json_t *lease = NULL;
	int64_t renewed = 0;

	if (op_of(r)->binder)
		return 0;
	int rc = op_get_live(r, &KIND_LEASE, SNAPSHOT_LEASE_NS, SNAPSHOT_LEASE, &lease);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	const char *holder = jstr(lease, "spec", "holderIdentity"),
		   *time = jstr(lease, "spec", "renewTime");
	if (!holder || !*holder || !time || time_parse(time, &renewed) < 0)
		return 0;
	if (renewed + jint(lease, "spec", "leaseDurationSeconds") * 1000 <
	    clock_wall_ms(r->clock))
		return 0;
	r->again_ms = LEASE_AGAIN_MS;
	return 1;
}

/* ---- status --------------------------------------------------------------------------------------- */

static void say(struct snapshot_work *w, bool warning, const char *reason, const char *message)
{
	event_record(w->r->kube, &KIND_VOLUMESNAPSHOT, w->snapshot, "quartermaster", warning,
		     reason, "%s", message);
}

static int patch(struct snapshot_work *w, const char *subresource, json_t *p)
{
	json_t *snapshot = NULL;
	int rc = op_patch(w->r, &KIND_VOLUMESNAPSHOT, w->snapshot, subresource, p, &snapshot);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	json_decref(w->snapshot);
	w->snapshot = snapshot;
	return 0;
}

/* Says once, on the snapshot and as an Event, what is wrong; changes of what is missing come as events. */
static int wait_with(struct snapshot_work *w, const char *reason, char *message)
{
	cleanup_free char *text = message;
	char now[TIME_TEXT_MAX];

	w->r->again_ms = WAIT_AGAIN_MS;
	if (streq(jstr(w->snapshot, "status", "error", "message"), text))
		return 0;
	say(w, true, reason, text);
	time_text(clock_wall_ms(w->r->clock), now);
	return patch(w, "status",
		     json_pack("{s:{s:b, s:{s:s, s:s}}}", "status", "readyToUse", 0, "error",
			       "message", text, "time", now));
}

static json_t *status_of(const json_t *content)
{
	const json_t *from = jget(content, "status");
	bool known = jstr(from, "snapshotHandle") != NULL;
	char time[TIME_TEXT_MAX], size[QUANTITY_TEXT_MAX];
	json_t *status =
		json_pack("{s:s, s:b, s:o}", "boundVolumeSnapshotContentName", object_name(content),
			  "readyToUse", jbool(from, "readyToUse") ? 1 : 0, "error",
			  jget(from, "error") ? json_incref(jget(from, "error")) : json_null());
	if (known && jint(from, "creationTime") > 0)
		json_object_set_new(
			status, "creationTime",
			json_string(time_text(jint(from, "creationTime") / 1000000, time)));
	if (known && jget(from, "restoreSize"))
		json_object_set_new(status, "restoreSize",
				    json_string(quantity_text(jint(from, "restoreSize"), size)));
	return status;
}

static bool stands_there(const json_t *now, const json_t *status)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)status, key, value) {
		const json_t *have = json_object_get(now, key);

		if (json_is_null(value) ? have != NULL : !have || !json_equal(have, value))
			return false;
	}
	return true;
}

/* The content's status becomes the snapshot's. */
static int follow(struct snapshot_work *w, const json_t *content)
{
	json_t *status = status_of(content);
	bool taken = jget(status, "creationTime") && !jget(w->snapshot, "status", "creationTime");
	bool ready = jbool(status, "readyToUse") && !snapshot_is_ready(w->snapshot);

	if (stands_there(jget(w->snapshot, "status"), status)) {
		json_decref(status);
		return 0;
	}
	int rc = patch(w, "status", json_pack("{s:o}", "status", status));
	if (rc < 0)
		return rc;
	if (taken)
		say(w, false, "SnapshotCreated", "the snapshot is taken");
	if (ready)
		say(w, false, "SnapshotReady", "the snapshot is ready to use");
	return 0;
}

/* ---- taking one ----------------------------------------------------------------------------------- */

struct defaults {
	size_t count;
	char *name;
};

static int add_default(const json_t *class, void *userdata)
{
	struct defaults *d = userdata;

	if (!streq(object_annotation(class, SNAPSHOT_DEFAULT_CLASS), "true") ||
	    !streq(jstr(class, "driver"), QM_DRIVER))
		return 0;
	free(d->name);
	d->name = xstrdup(object_name(class));
	d->count++;
	return 0;
}

/* Its class, or the default one of our driver. 1: it has to wait. */
static int find_class(struct snapshot_work *w, json_t **ret)
{
	const char *name = jstr(w->snapshot, "spec", "volumeSnapshotClassName");
	struct defaults d = { 0 };
	int rc = 0;

	if (!name || !*name)
		reader_each(w->r->cache, &KIND_VOLUMESNAPSHOTCLASS, NULL, add_default, &d);
	if (d.count == 1 || (name && *name))
		rc = op_get_live(w->r, &KIND_VOLUMESNAPSHOTCLASS, NULL, d.name ? d.name : name,
				 ret);
	if (rc < 0)
		goto out;
	if (!*ret && name && *name)
		rc = wait_with(w, "GetSnapshotClassFailed",
			       xasprintf("VolumeSnapshotClass %s is not there", name));
	else if (!*ret)
		rc = wait_with(w, "SetDefaultSnapshotClassFailed",
			       xasprintf("%s default VolumeSnapshotClass of driver " QM_DRIVER
					 " is there; name one in spec.volumeSnapshotClassName",
					 d.count ? "more than one" : "no"));
	else if (!streq(jstr(*ret, "driver"), QM_DRIVER))
		rc = wait_with(w, "GetSnapshotClassFailed",
			       xasprintf("VolumeSnapshotClass %s is of driver %s, and the volume "
					 "of " QM_DRIVER,
					 object_name(*ret), jstr(*ret, "driver")));
	else
		goto out;
	rc = rc < 0 ? rc : 1;
out:
	free(d.name);
	return rc;
}

/* The claim and its volume, which must name each other: nobody takes a snapshot of another's. 1: waits. */
static int find_volume(struct snapshot_work *w, json_t **ret_claim, json_t **ret_pv)
{
	static const char reason[] = "SnapshotContentCreationFailed";
	const char *name = snapshot_claim(w->snapshot);
	int rc = op_get_live(w->r, &KIND_PVC, w->ns, name, ret_claim);

	if (rc < 0)
		return rc;
	const char *volume = jstr(*ret_claim, "spec", "volumeName");
	rc = volume ? op_get_live(w->r, &KIND_PV, NULL, volume, ret_pv) : 1;
	if (rc < 0)
		return rc;
	if (!*ret_claim)
		rc = wait_with(w, reason, xasprintf("claim %s is not there", name));
	else if (!*ret_pv || object_deleting(*ret_claim))
		rc = wait_with(w, reason, xasprintf("claim %s is not bound to a volume", name));
	else if (!pv_is_ours(w->op, *ret_pv) || !pv_makes_sense(*ret_pv) ||
		 !streq(jstr(*ret_pv, "spec", "claimRef", "uid"), object_uid(*ret_claim)))
		rc = wait_with(w, reason,
			       xasprintf("volume %s of claim %s is none of %s that is bound to it",
					 volume, name, w->op->deployment));
	else
		return 0;
	return rc < 0 ? rc : 1;
}

/* The finalizers, whose it is, and the class that was found: before anything is made. */
static int hold(struct snapshot_work *w, const char *class)
{
	const char *named = jstr(w->snapshot, "spec", "volumeSnapshotClassName");
	json_t *finalizers = finalizers_with(w->snapshot, SNAPSHOT_AS_SOURCE);

	if (!object_has_finalizer(w->snapshot, SNAPSHOT_BOUND))
		json_array_append_new(finalizers, json_string(SNAPSHOT_BOUND));
	if (json_equal(finalizers, jget(w->snapshot, "metadata", "finalizers")) &&
	    (!class || streq(named, class)) && was_held(w)) {
		json_decref(finalizers);
		return 0;
	}
	json_t *p = json_pack("{s:{s:o, s:{s:s, s:s}}}", "metadata", "finalizers", finalizers,
			      "annotations", SNAPSHOT_HELD_BY, w->op->deployment,
			      QM_ANNOTATION_NAMESPACE, w->op->ns);
	if (class && !streq(named, class))
		jset(p, json_string(class), "spec", "volumeSnapshotClassName");
	return patch(w, NULL, p);
}

static json_t *new_content(struct snapshot_work *w, const json_t *class, const json_t *pv)
{
	cleanup_free char *name = snapshot_content_name(w->snapshot);
	json_t *ref = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:s}", "apiVersion", "snapshot.storage.k8s.io/v1",
		"kind", "VolumeSnapshot", "namespace", w->ns, "name", object_name(w->snapshot),
		"uid", object_uid(w->snapshot), "resourceVersion", object_version(w->snapshot));
	return json_pack("{s:s, s:s, s:{s:s, s:[s], s:{s:s}}, s:{s:o, s:{s:s}, s:s, s:s, s:s, s:s}}",
			 "apiVersion", "snapshot.storage.k8s.io/v1", "kind",
			 "VolumeSnapshotContent", "metadata", "name", name, "finalizers",
			 SNAPSHOT_CONTENT_HELD, "annotations", QM_ANNOTATION_NAMESPACE, w->op->ns,
			 "spec", "volumeSnapshotRef", ref, "source",
			 "volumeHandle", jstr(pv, "spec", "csi", "volumeHandle"), "driver",
			 QM_DRIVER, "volumeSnapshotClassName", object_name(class), "deletionPolicy",
			 jstr(class, "deletionPolicy"), "sourceVolumeMode",
			 pv_kind(pv) == VOLUME_BLOCK ? "Block" : "Filesystem");
}

/* 1: it has to wait. */
static int make_content(struct snapshot_work *w, json_t **ret)
{
	cleanup_json json_t *claim = NULL, *pv = NULL, *class = NULL, *content = NULL;
	int rc = find_volume(w, &claim, &pv);

	if (rc == 0)
		rc = find_class(w, &class);
	if (rc == 0)
		rc = hold(w, object_name(class));
	if (rc == 0)
		rc = snapshot_hold_claim(w, claim);
	if (rc != 0)
		return rc;
	content = new_content(w, class, pv);
	rc = kube_create(w->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, content, ret, &w->r->error);
	if (rc == -EEXIST)
		rc = kube_get(w->r->kube, &KIND_VOLUMESNAPSHOTCONTENT, NULL, object_name(content),
			      ret, &w->r->error);
	if (rc < 0)
		return rc;
	reader_learned(w->r->cache, &KIND_VOLUMESNAPSHOTCONTENT, *ret);
	say(w, false, "CreatingSnapshot", "the snapshot is being taken");
	return 0;
}

/* ---- binding -------------------------------------------------------------------------------------- */

static int misbound(struct snapshot_work *w, const json_t *content)
{
	return wait_with(w, "SnapshotContentMisbound",
			 xasprintf("VolumeSnapshotContent %s refers to another VolumeSnapshot",
				   object_name(content)));
}

/* A content that was there, and names this snapshot: it is told the uid, so that it is of no other. 1: waits. */
static int bind_given(struct snapshot_work *w, json_t **content)
{
	const json_t *ref = jget(*content, "spec", "volumeSnapshotRef");
	const char *uid = jstr(ref, "uid");
	json_t *bound = NULL;

	if (!content_is_given(*content) || (uid && *uid) ||
	    !streq(jstr(ref, "name"), object_name(w->snapshot)) ||
	    !streq(jstr(ref, "namespace"), w->ns)) {
		int rc = misbound(w, *content);
		return rc < 0 ? rc : 1;
	}
	int rc = op_patch(w->r, &KIND_VOLUMESNAPSHOTCONTENT, *content, NULL,
			  json_pack("{s:{s:{s:s}}}", "spec", "volumeSnapshotRef", "uid",
				    object_uid(w->snapshot)),
			  &bound);
	if (rc < 0)
		return rc;
	json_decref(*content);
	*content = bound;
	return 0;
}

/* The content, found or made, and bound: 0; 1: it has to wait. */
static int find_content(struct snapshot_work *w, json_t **ret)
{
	cleanup_free char *name = snapshot_content_name(w->snapshot);
	bool given = snapshot_claim(w->snapshot) == NULL;
	int rc = op_get_live(w->r, &KIND_VOLUMESNAPSHOTCONTENT, NULL, name, ret);

	if (rc < 0)
		return rc;
	if (*ret && content_points_back(*ret, w->snapshot))
		return hold(w, NULL);
	if (*ret && !given) {
		rc = misbound(w, *ret);
		return rc < 0 ? rc : 1;
	}
	if (!*ret && (given || jstr(w->snapshot, "status", "boundVolumeSnapshotContentName"))) {
		rc = wait_with(w, "SnapshotContentMissing",
			       xasprintf("VolumeSnapshotContent %s is not there", name));
		return rc < 0 ? rc : 1;
	}
	if (!*ret)
		return make_content(w, ret);
	rc = hold(w, NULL);
	return rc < 0 ? rc : bind_given(w, ret);
}

/* The claim stays held while the content is in the making: a loop that saw less may have let it go. */
static int keep_claim(struct snapshot_work *w)
{
	const char *name = snapshot_claim(w->snapshot);
	cleanup_json json_t *claim = NULL;
	int rc = name ? op_get_live(w->r, &KIND_PVC, w->ns, name, &claim) : 1;

	if (rc != 0 || object_deleting(claim))
		return rc < 0 ? rc : 0;
	return snapshot_hold_claim(w, claim);
}

static int progress(struct snapshot_work *w)
{
	cleanup_json json_t *content = NULL;
	int rc = find_content(w, &content);

	if (rc != 0)
		return rc < 0 ? rc : 0;
	rc = follow(w, content);
	if (rc == 0 && snapshot_is_ready(w->snapshot)) {
		rc = snapshot_release_claim(w);
		snapshot_wake_claims(w);
	} else if (rc == 0) {
		rc = keep_claim(w);
	}
	return rc;
}

/* ---- the loop ------------------------------------------------------------------------------------- */

static int work_on(struct snapshot_work *w)
{
	bool going = object_deleting(w->snapshot);

	if (going && !object_has_finalizer(w->snapshot, SNAPSHOT_BOUND) &&
	    !object_has_finalizer(w->snapshot, SNAPSHOT_AS_SOURCE))
		return 0;
	/* most are ready, and hold nothing: for them nobody has to be asked */
	if (snapshot_is_ready(w->snapshot) && !going && !snapshot_holds_claim(w))
		return 0;
	int rc = op_leads(w->r, NULL) ? is_ours(w) : 0;
	if (rc <= 0)
		return rc;
	rc = snapshot_others_lead(w->r);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	if (going)
		return snapshot_end(w);
	return snapshot_is_ready(w->snapshot) ? snapshot_release_claim(w) : progress(w);
}

static int snapshot_reconcile(struct reconcile *r, const char *key)
{
	char ns[254], name[254];
	struct snapshot_work w = { .r = r, .op = op_of(r), .ns = ns };

	key_split(key, ns, name);
	w.snapshot = reader_get(r->cache, &KIND_VOLUMESNAPSHOT, ns, name);
	if (!w.snapshot)
		return 0;
	int rc = work_on(&w);
	json_decref(w.snapshot);
	return rc;
}

static void content_keys(const json_t *content, struct reconcile *r, struct strv *keys)
{
	const json_t *ref = jget(content, "spec", "volumeSnapshotRef");

	if (jstr(ref, "namespace") && jstr(ref, "name"))
		strv_add_take(keys, xasprintf("%s/%s", jstr(ref, "namespace"), jstr(ref, "name")));
}

struct unready {
	const char *claim; /* NULL: any */
	struct strv *keys;
};

static int add_unready(const json_t *snapshot, void *userdata)
{
	struct unready *u = userdata;

	if (!u->claim || streq(snapshot_claim(snapshot), u->claim))
		strv_add_take(u->keys, object_key(snapshot));
	return 0;
}

/* A claim is bound or goes: snapshots that are to be taken of it, and the one that it is made from. */
static void claim_keys(const json_t *claim, struct reconcile *r, struct strv *keys)
{
	struct unready u = { .claim = object_name(claim), .keys = keys };
	const json_t *ref = source_ref(claim);

	if (source_is_snapshot(ref))
		strv_add_take(keys, xasprintf("%s/%s", object_namespace(claim), jstr(ref, "name")));
	reader_each_marked(r->cache, &KIND_VOLUMESNAPSHOT, object_namespace(claim), add_unready,
			   &u);
}

static void class_keys(const json_t *class, struct reconcile *r, struct strv *keys)
{
	struct unready u = { .keys = keys };

	reader_each_marked(r->cache, &KIND_VOLUMESNAPSHOT, NULL, add_unready, &u);
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_VOLUMESNAPSHOT },
	{ .kind = &KIND_VOLUMESNAPSHOTCONTENT, .keys = content_keys },
	{ .kind = &KIND_VOLUMESNAPSHOTCLASS, .keys = class_keys },
	{ .kind = &KIND_PVC, .keys = claim_keys },
	{ 0 },
};

const struct controller SNAPSHOT_CONTROLLER = {
	.name = "snapshot",
	.watches = watches,
	.workers = 4,
	.reconcile = snapshot_reconcile,
};
