/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/whole.h"

#include "base/mem.h"

#include <errno.h>

/* Its object, 1 and NULL where there is none; -EEXIST where that is another's. pool: NULL: of any. */
static int find(struct reconcile *r, const char *pool, const char *name, json_t **ret)
{
	cleanup_json json_t *o = NULL;
	int rc = op_get_live(r, &KIND_STORAGEPOOL, op_of(r)->ns, name, &o);

	if (rc != 0)
		return rc;
	if (!pool_is_ours(op_of(r), o) || !pool_parent(o) || (pool && !streq(pool_parent(o), pool)))
		return error_set(
			&r->error, EEXIST,
			"StoragePool %s is there, but is no whole volume of %s %s; delete it", name,
			pool ? "pool" : "deployment", pool ? pool : op_of(r)->deployment);
	*ret = TAKE_PTR(o);
	return 0;
}

static bool is_kept(const json_t *o)
{
	return streq(object_annotation(o, QM_ANNOTATION_ARCHIVED), "true");
}

static json_t *metadata_of(const struct operator* op, const json_t *pool, const char *name)
{
	return json_pack("{s:s, s:s, s:{s:s, s:s*, s:s}, s:[s]}", "name", name, "namespace", op->ns,
			 "labels", QM_LABEL_DEPLOYMENT, op->deployment, QM_LABEL_CLUSTER,
			 object_label(pool, QM_LABEL_CLUSTER), QM_LABEL_POOL, object_name(pool),
			 "finalizers", QM_FINALIZER_POOL);
}

/* Without bricks: those follow from its pool's, for as long as it is there. */
static int create(struct reconcile *r, const json_t *pool, const char *name, int64_t bytes)
{
	static const char *const same[] = { "type", "deployment", "cluster", "volumeType",
					    "tlsAllow" };
	int64_t epoch = 0;

	if (!op_leads(r, &epoch))
		return error_set(&r->error, EAGAIN, "this operator does not lead any more");
	json_t *spec =
		json_pack("{s:I, s:s, s:I, s:[], s:{}}", "epoch", (json_int_t)epoch, "parent",
			  object_name(pool), "sizeBytes", (json_int_t)bytes, "bricks", "options");
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (jget(pool, "spec", same[i]))
			json_object_set(spec, same[i], jget(pool, "spec", same[i]));
	cleanup_json json_t *made = NULL,
			    *o = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "coreos.com/v1",
					   "kind", "StoragePool", "metadata",
					   metadata_of(op_of(r), pool, name), "spec", spec);
	int rc = kube_create(r->kube, &KIND_STORAGEPOOL, o, &made, &r->error);
	if (rc == -EEXIST)
		return error_set(&r->error, ESTALE, "StoragePool %s is there by now", name);
	if (rc < 0)
		return rc;
	reader_learned(r->cache, &KIND_STORAGEPOOL, made);
	return 1;
}

static int set_size(struct reconcile *r, const json_t *o, int64_t bytes)
{
	if (jint(o, "spec", "sizeBytes") >= bytes)
		return 0;
	return op_patch(r, &KIND_STORAGEPOOL, o, NULL,
			json_pack("{s:{s:I}}", "spec", "sizeBytes", (json_int_t)bytes), NULL);
}

/* What is to go goes on serving until this is said of it. */
static int give_up(struct reconcile *r, const json_t *o)
{
	struct kube_delete_options options = { .uid = object_uid(o) };
	int rc = 0;

	if (!object_annotation(o, QM_ANNOTATION_EMPTY))
		rc = op_patch(r, &KIND_STORAGEPOOL, o, NULL,
			      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
					QM_ANNOTATION_EMPTY, "true"),
			      NULL);
	if (rc == 0 && !object_deleting(o))
		rc = kube_delete(r->kube, &KIND_STORAGEPOOL, op_of(r)->ns, object_name(o), &options,
				 &r->error);
	return rc == -ENOENT ? 0 : rc;
}

static bool is_there(const json_t *o)
{
	return pool_serves(o) && json_array_size(jget(o, "spec", "bricks")) &&
	       jint(o, "status", "observedGeneration") >= jint(o, "metadata", "generation");
}

int whole_make(struct reconcile *r, const json_t *pool, const char *name, int64_t bytes)
{
	cleanup_json json_t *o = NULL;
	int rc = find(r, NULL, name, &o);

	if (rc < 0)
		return rc;
	if (!o)
		return create(r, pool, name, bytes);
	if (is_kept(o))
		return error_set(&r->error, EEXIST, "volume %s was archived, and is kept", name);
	/* nobody uses what is in the making: one that a person deletes, or of a pool that went, makes way for the next */
	if (object_deleting(o) || object_annotation(o, QM_ANNOTATION_EMPTY) ||
	    !streq(pool_parent(o), object_name(pool))) {
		rc = give_up(r, o);
		return rc < 0 ? rc : 1;
	}
	rc = set_size(r, o, bytes);
	if (rc < 0)
		return rc;
	return jint(o, "spec", "sizeBytes") >= bytes && is_there(o) ? 0 : 1;
}

int whole_grow(struct reconcile *r, const char *pool, const char *name, int64_t bytes)
{
	cleanup_json json_t *o = NULL;
	int rc = find(r, pool, name, &o);

	if (rc > 0)
		return error_set(&r->error, ENOENT, "volume %s has no StoragePool of its name",
				 name);
	return rc < 0 ? rc : set_size(r, o, bytes);
}

int whole_end(struct reconcile *r, const char *pool, const char *name)
{
	cleanup_json json_t *o = NULL, *rest = NULL;
	int rc = find(r, pool, name, &o);

	if (rc == -EEXIST) { /* nothing of ours: left alone */
		r->error = ERROR_INIT;
		return 0;
	}
	if (rc != 0 || is_kept(o))
		return rc < 0 ? rc : 0;
	rc = give_up(r, o);
	if (rc == 0)
		rc = op_get_live(r, &KIND_STORAGEPOOL, op_of(r)->ns, name, &rest);
	return rc < 0 ? rc : rest && streq(object_uid(rest), object_uid(o));
}

int whole_archive(struct reconcile *r, const char *pool, const char *name)
{
	cleanup_json json_t *o = NULL;
	int rc = find(r, pool, name, &o);

	if (rc != 0 || is_kept(o))
		return rc < 0 ? rc : 0;
	return op_patch(r, &KIND_STORAGEPOOL, o, NULL,
			json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
				  QM_ANNOTATION_ARCHIVED, "true"),
			NULL);
}

int whole_is_taken(struct reconcile *r, const char *name)
{
	cleanup_json json_t *o = NULL;
	int rc = op_get_live(r, &KIND_STORAGEPOOL, op_of(r)->ns, name, &o);

	return rc < 0 ? rc : rc == 0;
}
