/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/volumes_internal.h"

#include "base/mem.h"
#include "base/rand.h"
#include "base/quantity.h"
#include "operator/attributes.h"

#include <errno.h>

bool record_is_csi(const json_t *pv)
{
	return object_annotation(pv, QM_ANNOTATION_CSI_NAME) != NULL;
}

bool record_is_made(const json_t *pv)
{
	return !object_annotation(pv, QM_ANNOTATION_MAKING);
}

bool record_goes(const json_t *pv)
{
	return object_deleting(pv) ||
	       (record_is_csi(pv) &&
		streq(jstr(pv, "spec", "persistentVolumeReclaimPolicy"), "Delete"));
}

/* What makes two requests of one name the same, but the size, which has a range. */
static char *asked_text(const struct volume_request *q)
{
	char kind[2] = { (char)q->kind, 0 };
	cleanup_json json_t *asked = json_pack("{s:s}", "kind", kind);

	if (q->pool)
		jset(asked, json_string(q->pool), "pool");
	if (q->source)
		jset(asked, json_string(q->source), "source");
	return json_text(asked);
}

char *record_source(const json_t *pv)
{
	const char *text = object_annotation(pv, QM_ANNOTATION_CSI_ASKED);
	cleanup_json json_t *asked = NULL;

	if (!text || json_parse(text, strlen(text), &asked, NULL) < 0)
		return NULL;
	const char *source = jstr(asked, "source");
	return source ? xstrdup(source) : NULL;
}

int record_matches(const json_t *pv, const struct volume_request *q, struct error *err)
{
	cleanup_free char *asked = asked_text(q);
	int64_t bytes = pv_bytes(pv);

	if (!streq(object_annotation(pv, QM_ANNOTATION_CSI_NAME), q->name))
		return error_set(err, EEXIST,
				 "PersistentVolume %s is there, but not for the name %.128s",
				 object_name(pv), q->name);
	if (!streq(object_annotation(pv, QM_ANNOTATION_CSI_ASKED), asked))
		return error_set(err, EEXIST,
				 "the volume %.128s is there, but of another kind, pool or source; "
				 "use another name",
				 q->name);
	if (q->bytes > bytes || (q->limit && bytes > q->limit))
		return error_set(err, EEXIST,
				 "the volume %.128s is there, but has %lld bytes; use another name",
				 q->name, (long long)bytes);
	return 0;
}

static json_t *metadata_new(const struct operator* op, const char *name,
			    const struct volume_request *q, const json_t *pool)
{
	cleanup_free char *asked = asked_text(q);
	char unique[UUID_TEXT_MAX];

	return json_pack("{s:s, s:{s:s, s:s, s:s}, s:{s:s, s:s, s:s, s:s, s:s}, s:[s]}", "name", name,
			 "labels", QM_LABEL_DEPLOYMENT, op->deployment, QM_LABEL_NAMESPACE, op->ns,
			 QM_LABEL_POOL,
			 object_name(pool), "annotations", "pv.kubernetes.io/provisioned-by",
			 QM_DRIVER, QM_ANNOTATION_CSI_NAME, q->name, QM_ANNOTATION_CSI_ASKED, asked,
			 QM_ANNOTATION_MAKING, "true", QM_ANNOTATION_INCARNATION,
			 uuid_text(unique), "finalizers", QM_FINALIZER_VOLUME);
}

/*
 * The claim that it refers to cannot be: no claim has such a uid. So nobody binds it, and whoever
 * keeps phases says Released.
 */
static json_t *claim_ref(const struct operator* op, const char *name)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind",
			 "PersistentVolumeClaim", "namespace", op->ns, "name", name, "uid", name);
}

json_t *record_new(const struct operator* op, const struct volume_request *q, const json_t *pool,
		   int64_t bytes)
{
	char size[QUANTITY_TEXT_MAX], name[CSI_NAME_MAX];
	csi_volume_name(q->name, name);
	cleanup_free char *handle = handle_format(object_name(pool), q->kind, name);

	json_t *spec = json_pack("{s:{s:s}, s:[s], s:s, s:s, s:o, s:{s:s, s:s, s:o}}", "capacity",
				 "storage", quantity_text(bytes, size), "accessModes",
				 volume_is_tree(q->kind) ? "ReadWriteMany" : "ReadWriteOnce",
				 "persistentVolumeReclaimPolicy", "Retain", "volumeMode",
				 q->kind == VOLUME_BLOCK ? "Block" : "Filesystem", "claimRef",
				 claim_ref(op, name), "csi", "driver", QM_DRIVER, "volumeHandle",
				 handle, "volumeAttributes", pv_connection(q->kind, name, pool));
	json_t *pv =
		json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1", "kind", "PersistentVolume",
			  "metadata", metadata_new(op, name, q, pool), "spec", spec);
	attributes_put(&q->attributes, pv, false);
	return pv;
}

/* A volume is as well as its pool; a whole volume is one of its own. */
static void set_health(const struct job *j, const json_t *pv, struct volume_info *ret)
{
	const char *name =
		pv_kind(pv) == VOLUME_WHOLE ? object_name(pv) : object_label(pv, QM_LABEL_POOL);
	cleanup_json json_t *pool = reader_get(j->r.cache, &KIND_STORAGEPOOL, j->op->ns, name);
	const char *phase = jstr(pool, "status", "phase"), *why = jstr(pool, "status", "message");

	if (streq(phase, "Online"))
		return;
	ret->health = pool && pool_serves(pool) ? "Degraded" : "Offline";
	ret->message = xasprintf("pool %s is %s%s%s", name, phase ? phase : "not to be seen",
				 why && *why ? ": " : "", why ? why : "");
}

void record_info(const struct job *j, const json_t *pv, struct volume_info *ret)
{
	struct handle h = { .kind = VOLUME_DIRECTORY };
	const char *id = jstr(pv, "spec", "csi", "volumeHandle");

	handle_parse(id, &h, NULL);
	*ret = (struct volume_info){
		.id = xstrdup(id),
		.kind = h.kind,
		.bytes = pv_bytes(pv),
		.source = record_source(pv),
		.context = json_incref(jget(pv, "spec", "csi", "volumeAttributes")),
	};
	set_health(j, pv, ret);
}
