/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/quantity.h"
#include "operator/op.h"

#include <xxhash.h>

bool pv_is_ours(const struct operator* op, const json_t *pv)
{
	return streq(jstr(pv, "spec", "csi", "driver"), QM_DRIVER) &&
	       streq(object_label(pv, QM_LABEL_DEPLOYMENT), op->deployment) &&
	       ns_is_ours(op, object_label(pv, QM_LABEL_NAMESPACE));
}

/* The volume's handle, where it is that of a volume which a worker makes. */
static bool pv_handle(const json_t *pv, struct handle *ret)
{
	const char *text = jstr(pv, "spec", "csi", "volumeHandle");

	return text && handle_parse(text, ret, NULL) == 0 && ret->kind != VOLUME_SNAPSHOT &&
	       volume_prefix(ret->kind) != NULL;
}

bool pv_makes_sense(const json_t *pv)
{
	struct handle handle;

	return pv_handle(pv, &handle) && streq(object_label(pv, QM_LABEL_POOL), handle.pool) &&
	       streq(object_name(pv), handle.name);
}

enum volume_kind pv_kind(const json_t *pv)
{
	struct handle handle;

	return pv_handle(pv, &handle) ? handle.kind : VOLUME_DIRECTORY;
}

bool pv_is_device(const json_t *pv)
{
	enum volume_kind kind = pv_kind(pv);

	return kind == VOLUME_FILE || kind == VOLUME_BLOCK;
}

const char *pv_owner(const json_t *pv)
{
	const char *owner = object_annotation(pv, QM_ANNOTATION_INCARNATION);

	return owner || !object_annotation(pv, QM_ANNOTATION_CSI_NAME) ? owner : PV_OWNER_NOBODY;
}

bool pv_archives(const json_t *pv)
{
	return streq(object_annotation(pv, QM_ANNOTATION_RECLAIM), "archive");
}

bool pv_belongs_to(const struct operator* op, const json_t *pv, const json_t *claim)
{
	return pv_is_ours(op, pv) && pv_makes_sense(pv) &&
	       streq(jstr(pv, "spec", "claimRef", "uid"), object_uid(claim));
}

bool pv_is_taken(const json_t *pv)
{
	const char *uid = jstr(pv, "spec", "claimRef", "uid");
	return uid && *uid;
}

char *pv_name(const json_t *claim)
{
	return xasprintf("pvc-%s", object_uid(claim));
}

static int64_t bytes_of(const json_t *value)
{
	int64_t bytes = 0;
	if (json_is_integer(value))
		return json_integer_value(value);
	if (!json_is_string(value) || quantity_parse(json_string_value(value), &bytes, NULL) < 0)
		return 0;
	return bytes;
}

int64_t claim_bytes(const json_t *claim)
{
	return bytes_of(jget(claim, "spec", "resources", "requests", "storage"));
}

int64_t pv_bytes(const json_t *pv)
{
	return bytes_of(jget(pv, "spec", "capacity", "storage"));
}

char *pv_claim_key(const json_t *pv)
{
	const char *ns = jstr(pv, "spec", "claimRef", "namespace"),
		   *name = jstr(pv, "spec", "claimRef", "name");
	return ns && name ? xasprintf("%s/%s", ns, name) : NULL;
}

json_t *pv_connection(enum volume_kind kind, const char *name, const json_t *pool)
{
	bool whole = kind == VOLUME_WHOLE;
	cleanup_free char *path = whole ? NULL : volume_path(volume_prefix(kind), name);
	json_t *connection = pool_reach(pool, volume_in_system(kind, object_name(pool), name));

	if (path)
		json_object_set_new(connection, "name", json_string(path));
	json_object_set_new(connection, "volumeId", json_string(name));
	return connection;
}

static json_t *claim_ref(const json_t *claim)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind",
			 "PersistentVolumeClaim", "namespace", object_namespace(claim), "name",
			 object_name(claim), "uid", object_uid(claim));
}

static json_t *pv_metadata(const struct operator* op, const char *name, const json_t *class,
			   const json_t *pool)
{
	json_t *meta = json_pack(
		"{s:s, s:{s:s, s:s, s:s}, s:{s:s}, s:[s]}", "name", name, "labels",
		QM_LABEL_DEPLOYMENT, op->deployment, QM_LABEL_NAMESPACE, op->ns, QM_LABEL_POOL,
		object_name(pool), "annotations", "pv.kubernetes.io/provisioned-by", QM_DRIVER,
		"finalizers", QM_FINALIZER_VOLUME);
	const char *reclaim = object_annotation(class, QM_ANNOTATION_RECLAIM);
	if (reclaim)
		jset(meta, json_string(reclaim), "annotations", QM_ANNOTATION_RECLAIM);
	return meta;
}

char *client_image_id(const char *image)
{
	return xasprintf("%08llx", (unsigned long long)XXH64(image, strlen(image), 0) >> 32);
}

/* The class' own client: the node goes by its id, the operator keeps it while a volume names it. */
static void set_client(const json_t *class, json_t *meta, json_t *attributes)
{
	const char *image = jstr(class, "parameters", "clientImage");
	cleanup_free char *id = image && *image ? client_image_id(image) : NULL;

	if (!id)
		return;
	jset(meta, json_string(id), "labels", QM_LABEL_CLIENT_ID);
	jset(meta, json_string(image), "annotations", QM_ANNOTATION_CLIENT_IMAGE);
	json_object_set_new(attributes, "client", json_string(id));
}

/* The file system that the node makes in a file or a device, where it is asked to; NULL: none. */
static const char *fs_type(const json_t *class, enum volume_kind kind)
{
	const char *type = jstr(class, "parameters", "csi.storage.k8s.io/fstype");

	return kind != VOLUME_FILE ? NULL : type && *type ? type : "ext4";
}

json_t *pv_new(const struct operator* op, const json_t *claim, const json_t *class,
	       const json_t *pool, enum volume_kind kind, int64_t bytes)
{
	char size[QUANTITY_TEXT_MAX];
	cleanup_free char *name = pv_name(claim);
	cleanup_free char *handle = handle_format(object_name(pool), kind, name);
	const char *policy = jstr(class, "reclaimPolicy");
	json_t *meta = pv_metadata(op, name, class, pool);
	json_t *attributes = pv_connection(kind, name, pool);

	set_client(class, meta, attributes);
	json_t *spec =
		json_pack("{s:{s:s}, s:O, s:s, s:s, s:s, s:o, s:{s:s, s:s, s:s*, s:o}}", "capacity",
			  "storage", quantity_text(bytes, size), "accessModes",
			  jget(claim, "spec", "accessModes"), "persistentVolumeReclaimPolicy",
			  policy ? policy : "Delete", "storageClassName", object_name(class),
			  "volumeMode", kind == VOLUME_BLOCK ? "Block" : "Filesystem", "claimRef",
			  claim_ref(claim), "csi", "driver", QM_DRIVER, "volumeHandle", handle,
			  "fsType", fs_type(class, kind), "volumeAttributes", attributes);
	if (json_array_size(jget(class, "mountOptions")))
		json_object_set(spec, "mountOptions", jget(class, "mountOptions"));
	json_t *affinity = class_affinity(class);
	if (affinity)
		json_object_set_new(spec, "nodeAffinity", affinity);
	return json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "PersistentVolume",
			 "metadata", meta, "spec", spec);
}

void pv_mend(struct reconcile *r, const struct worker_pool *pool, const struct worker_volume *v)
{
	struct operator* op = op_of(r);
	cleanup_json json_t *pv = NULL;

	if (v->kind != VOLUME_DIRECTORY ||
	    kube_get(r->kube, &KIND_PV, NULL, v->name, &pv, NULL) < 0 || object_deleting(pv) ||
	    !streq(jstr(pv, "status", "phase"), "Bound") || !pv_is_ours(op, pv) ||
	    !pv_makes_sense(pv) || !streq(object_label(pv, QM_LABEL_POOL), pool->name))
		return;
	op->workers->ops->complete(op->workers, pool, v, pv_bytes(pv), NULL);
}
