/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/source.h"

#include "operator/snapshot.h"

#include "base/mem.h"
#include "base/quantity.h"

#include <errno.h>

const json_t *source_ref(const json_t *claim)
{
	const json_t *ref = jget(claim, "spec", "dataSourceRef");

	return ref ? ref : jget(claim, "spec", "dataSource");
}

static bool is_of(const json_t *ref, const char *group, const char *kind)
{
	const char *have = jstr(ref, "apiGroup");

	return ref && streq(have ? have : "", group) && streq(jstr(ref, "kind"), kind) &&
	       jstr(ref, "name");
}

bool source_is_claim(const json_t *ref)
{
	return is_of(ref, "", "PersistentVolumeClaim");
}

bool source_is_snapshot(const json_t *ref)
{
	return is_of(ref, KIND_VOLUMESNAPSHOT.group, "VolumeSnapshot");
}

bool source_needed(const json_t *claim)
{
	return !jstr(claim, "spec", "volumeName") &&
	       (!object_deleting(claim) || object_has_finalizer(claim, QM_FINALIZER_PROVISION));
}

void source_done(struct source *s)
{
	free(TAKE_PTR(s->why));
}

/* ---- looking it up ------------------------------------------------------------------------------ */

#define WAITS(ret, ...) ((ret)->why = xasprintf(__VA_ARGS__), SOURCE_WAITS)

static const char *mode_of(const json_t *claim)
{
	return streq(jstr(claim, "spec", "volumeMode"), "Block") ? "Block" : "Filesystem";
}

/* Whether the pool is one of ours; a handle may come from anywhere. */
static int check_pool(struct reconcile *r, struct source *ret, const char *what)
{
	struct operator* op = op_of(r);
	cleanup_json json_t *pool = NULL;
	int rc = op_get_live(r, &KIND_STORAGEPOOL, op->ns, ret->handle.pool, &pool);

	if (rc < 0)
		return rc;
	if (!pool || !pool_takes_volumes(op, pool) || object_deleting(pool))
		return WAITS(
			ret,
			"%s is in no pool of %s; its data can be copied within its own pool only",
			what, op->deployment);
	return SOURCE_THERE;
}

static int check_size(const json_t *claim, struct source *ret, const char *what)
{
	char asked[QUANTITY_TEXT_MAX], least[QUANTITY_TEXT_MAX];

	if (claim_bytes(claim) >= ret->bytes)
		return SOURCE_THERE;
	quantity_human(claim_bytes(claim), asked);
	quantity_human(ret->bytes, least);
	return WAITS(ret, "%s was asked for, but %s has %s; ask for at least as much", asked, what,
		     least);
}

/* The claim's volume, where both name each other. */
static int find_volume(struct reconcile *r, const json_t *from, enum volume_kind kind,
		       struct source *ret)
{
	const char *name = jstr(from, "spec", "volumeName");
	cleanup_json json_t *pv = NULL;
	int rc = name ? op_get_live(r, &KIND_PV, NULL, name, &pv) : 1;

	if (rc < 0)
		return rc;
	/* one that goes waits for the copy: its finalizer is from before it went */
	if (!pv || !streq(jstr(from, "status", "phase"), "Bound") ||
	    (object_deleting(from) && !object_has_finalizer(from, SOURCE_FINALIZER)))
		return WAITS(ret, "the source, claim %s, is not bound", object_name(from));
	if (!pv_is_ours(op_of(r), pv) || !pv_makes_sense(pv) ||
	    !streq(jstr(pv, "spec", "claimRef", "uid"), object_uid(from)) ||
	    handle_parse(jstr(pv, "spec", "csi", "volumeHandle"), &ret->handle, NULL) < 0)
		return WAITS(ret,
			     "volume %s of the source, claim %s, is none of %s that is bound to it",
			     name, object_name(from), op_of(r)->deployment);
	if (!volume_kinds_fit(ret->handle.kind, kind))
		return WAITS(ret,
			     "the source, claim %s, has another kind of volume (volumeMode and the "
			     "class's kind must be the same)",
			     object_name(from));
	ret->bytes = pv_bytes(pv);
	return SOURCE_THERE;
}

static int find_claim(struct reconcile *r, const json_t *claim, const char *name,
		      enum volume_kind kind, struct source *ret)
{
	cleanup_json json_t *from = NULL;
	cleanup_free char *what = xasprintf("the source, claim %s,", name);
	int rc = op_get_live(r, &KIND_PVC, object_namespace(claim), name, &from);

	if (rc < 0)
		return rc;
	if (!from)
		return WAITS(ret, "the source, claim %s, is not there", name);
	rc = find_volume(r, from, kind, ret);
	if (rc == SOURCE_THERE)
		rc = check_size(claim, ret, what);
	return rc == SOURCE_THERE ? check_pool(r, ret, what) : rc;
}

/* The snapshot's content, where both name each other. New reference. */
static int find_content(struct reconcile *r, const json_t *snapshot, struct source *ret,
			json_t **ret_content)
{
	const char *name = jstr(snapshot, "status", "boundVolumeSnapshotContentName");
	cleanup_json json_t *content = NULL;
	int rc = name ? op_get_live(r, &KIND_VOLUMESNAPSHOTCONTENT, NULL, name, &content) : 1;

	if (rc < 0)
		return rc;
	/* one that goes waits for its claims, until it lets its content go */
	if (!content || object_deleting(content) ||
	    object_annotation(content, SNAPSHOT_BEING_DELETED) ||
	    !jbool(snapshot, "status", "readyToUse") || !jbool(content, "status", "readyToUse"))
		return WAITS(ret, "the source, VolumeSnapshot %s, is not ready to use",
			     object_name(snapshot));
	const json_t *ref = jget(content, "spec", "volumeSnapshotRef");
	const char *handle = jstr(content, "status", "snapshotHandle");
	if (!streq(jstr(ref, "uid"), object_uid(snapshot)) ||
	    !streq(jstr(ref, "name"), object_name(snapshot)) ||
	    !streq(jstr(ref, "namespace"), object_namespace(snapshot)))
		return WAITS(ret, "VolumeSnapshotContent %s is not bound to VolumeSnapshot %s",
			     name, object_name(snapshot));
	if (!streq(jstr(content, "spec", "driver"), QM_DRIVER) || !handle ||
	    handle_parse(handle, &ret->handle, NULL) < 0 || ret->handle.kind != VOLUME_SNAPSHOT)
		return WAITS(ret, "VolumeSnapshot %s is none of %s", object_name(snapshot),
			     op_of(r)->deployment);
	*ret_content = TAKE_PTR(content);
	return SOURCE_THERE;
}

static int find_snapshot(struct reconcile *r, const json_t *claim, const char *name,
			 struct source *ret)
{
	cleanup_json json_t *snapshot = NULL, *content = NULL;
	cleanup_free char *what = xasprintf("the source, VolumeSnapshot %s,", name);
	int rc = op_get_live(r, &KIND_VOLUMESNAPSHOT, object_namespace(claim), name, &snapshot);

	if (rc < 0)
		return rc;
	if (!snapshot)
		return WAITS(ret, "the source, VolumeSnapshot %s, is not there", name);
	rc = find_content(r, snapshot, ret, &content);
	if (rc != SOURCE_THERE)
		return rc;
	const char *mode = jstr(content, "spec", "sourceVolumeMode");
	if (mode && !streq(mode, mode_of(claim)))
		return WAITS(ret,
			     "the source, VolumeSnapshot %s, is of a volume with volumeMode %s",
			     name, mode);
	ret->bytes = jint(content, "status", "restoreSize");
	rc = check_size(claim, ret, what);
	return rc == SOURCE_THERE ? check_pool(r, ret, what) : rc;
}

int source_find(struct reconcile *r, const json_t *claim, enum volume_kind kind, struct source *ret)
{
	const json_t *ref = source_ref(claim);
	const char *ns = jstr(ref, "namespace"), *name = jstr(ref, "name");

	*ret = (struct source){ 0 };
	if (!ref)
		return SOURCE_NONE;
	if (!source_is_claim(ref) && !source_is_snapshot(ref)) {
		const char *of = jstr(ref, "kind");
		ret->why = xasprintf("the volume is to begin with a %s, which is left to a volume "
				     "populator; a PersistentVolumeClaim or VolumeSnapshot would "
				     "be copied here",
				     of ? of : "(no kind)");
		return SOURCE_OTHERS;
	}
	if (ns && *ns && !streq(ns, object_namespace(claim)))
		return WAITS(ret, "the source is in namespace %s; it must be in the claim's own",
			     ns);
	return source_is_claim(ref) ? find_claim(r, claim, name, kind, ret)
				    : find_snapshot(r, claim, name, ret);
}

/* ---- holding it --------------------------------------------------------------------------------- */

int source_hold(struct reconcile *r, const json_t *claim)
{
	cleanup_json json_t *from = NULL;
	const json_t *ref = source_ref(claim);
	int rc;

	if (!source_is_claim(ref))
		return 0; /* a snapshot that is to go waits for claims by itself */
	rc = op_get_live(r, &KIND_PVC, object_namespace(claim), jstr(ref, "name"), &from);
	if (rc != 0 || object_has_finalizer(from, SOURCE_FINALIZER))
		return rc < 0 ? rc : 0;
	return op_patch(r, &KIND_PVC, from, NULL,
			json_pack("{s:{s:o}}", "metadata", "finalizers",
				  finalizers_with(from, SOURCE_FINALIZER)),
			NULL);
}

static int needs(const json_t *claim, void *userdata)
{
	const json_t *ref = source_ref(claim);

	return source_is_claim(ref) && streq(jstr(ref, "name"), userdata) && source_needed(claim);
}

/* The finalizer is any driver's: only where the volume is ours was it we who put it there. */
static bool is_our_source(struct reconcile *r, const json_t *claim)
{
	const char *volume = jstr(claim, "spec", "volumeName");
	cleanup_json json_t *pv = volume ? reader_get(r->cache, &KIND_PV, NULL, volume) : NULL;

	if (pv)
		return pv_is_ours(op_of(r), pv);
	/* its volume is gone: it must not be held for ever */
	return volume &&
	       (op_of(r)->binder ||
		streq(object_annotation(claim, "volume.kubernetes.io/storage-provisioner"),
		      QM_DRIVER));
}

int source_release(struct reconcile *r, const json_t *claim)
{
	cleanup_json json_t *all = NULL;
	const char *ns = object_namespace(claim), *name = object_name(claim);
	size_t i;
	json_t *other;

	if (!object_has_finalizer(claim, SOURCE_FINALIZER) || !is_our_source(r, claim) ||
	    reader_each(r->cache, &KIND_PVC, ns, needs, (void *)name) || !op_leads(r, NULL))
		return 0;
	/* a cache may be behind: what the API itself has counts */
	int rc = kube_list(r->kube, &KIND_PVC, ns, NULL, &all, NULL, &r->error);
	if (rc < 0)
		return rc;
	json_array_foreach (all, i, other)
		if (needs(other, (void *)name))
			return 0;
	return op_drop_finalizer(r, &KIND_PVC, claim, SOURCE_FINALIZER);
}
