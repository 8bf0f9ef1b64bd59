/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "api/patch.h"

#include <errno.h>
#include <stdio.h>

static bool is_namespace(const struct kind *kind)
{
	return kind == &KIND_NAMESPACE;
}

static int not_found(struct op *op)
{
	char resource[RESOURCE_MAX];

	return op_refuse(op, FAULT_NOT_FOUND, NULL, "%s \"%.253s\" not found",
			 kind_resource(op->kind, resource), op->name);
}

static int load(struct op *op, struct stored *ret)
{
	int rc;

	if (!op->name || !op->name[0])
		return op_refuse(op, FAULT_BAD_REQUEST, NULL, "name is required");
	rc = row_load(op, op->kind, op->ns, op->name, ret);
	return rc == -ENOENT ? not_found(op) : rc;
}

static int invalid(struct op *op, const struct schema_problem *p)
{
	return op_refuse(op, FAULT_INVALID, p->path, "%s", p->error.message);
}

/* Unknown fields: refused where strict, else left out, with a warning where one is wanted. */
static int check_unknown(struct op *op, json_t *object, const json_t *old)
{
	struct schema_problem strict = { 0 }, plain = { 0 };

	if (op->system || (!op->w->strict && !op->w->ret_warning)) {
		schema_prune(op->kind, object);
		return 0;
	}
	if (schema_validate(op->kind, object, old, true, &strict) >= 0)
		return 0;
	schema_prune(op->kind, object);
	if (schema_validate(op->kind, object, old, false, &plain) < 0)
		return invalid(op, &plain);
	if (op->w->strict)
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"%s in version \"%s\" cannot be handled as a %s: strict decoding error: "
			"%s",
			op->kind->kind, op->kind->version, op->kind->kind, strict.error.message);
	if (!*op->w->ret_warning)
		*op->w->ret_warning = xstrdup(strict.error.message);
	return 0;
}

int object_check(struct op *op, json_t *object, const json_t *old)
{
	struct schema_problem problem = { 0 };
	int rc;

	schema_default(op->kind, object);
	rc = check_unknown(op, object, old);
	if (rc < 0)
		return rc;
	if (!op->system && schema_validate(op->kind, object, old, false, &problem) < 0)
		return invalid(op, &problem);
	return 0;
}

static int run_guard(struct op *op, const json_t *old, const json_t *new)
{
	struct error why = ERROR_INIT;

	if (op->system || !op->w->guard || op->w->guard(old, new, op->w->guard_data, &why) >= 0)
		return 0;
	return op_refuse(op, FAULT_FORBIDDEN, NULL, "%s", error_text(&why, -EPERM));
}

/* What Kubernetes itself puts into a fresh object. */
static void fill_in(struct op *op, json_t *object)
{
	static const struct kind *const pending[] = { &KIND_PVC, &KIND_PV, &KIND_POD };

	if (op->kind->has_status)
		json_object_del(object, "status");
	for (size_t i = 0; i < ARRAY_SIZE(pending); i++)
		if (op->kind == pending[i])
			jset(object, json_string("Pending"), "status", "phase");
	if (is_namespace(op->kind)) {
		jset(object, json_string(op->name), "metadata", "labels",
		     "kubernetes.io/metadata.name");
		jset(object, json_pack("[s]", "kubernetes"), "spec", "finalizers");
		jset(object, json_string("Active"), "status", "phase");
	}
}

int object_create(struct op *op, const json_t *given, json_t **ret)
{
	cleanup_json json_t *object = json_deep_copy(given);
	struct stored there = { 0 };
	char resource[RESOURCE_MAX];
	int rc;

	json_drop_nulls(object);
	rc = meta_for_create(op, object);
	if (rc >= 0)
		rc = meta_namespace(op);
	if (rc < 0)
		return rc;
	fill_in(op, object);
	rc = object_check(op, object, NULL);
	if (rc < 0)
		return rc;
	rc = row_load(op, op->kind, op->ns, op->name, &there);
	stored_done(&there);
	if (rc != -ENOENT)
		return rc < 0 ? rc
			      : op_refuse(op, FAULT_EXISTS, NULL, "%s \"%s\" already exists",
					  kind_resource(op->kind, resource), op->name);
	managed_update(op, NULL, object);
	rc = run_guard(op, NULL, object);
	if (rc >= 0)
		rc = row_save(op, NULL, object);
	if (rc >= 0)
		*ret = TAKE_PTR(object);
	return rc < 0 ? rc : 0;
}

/* What of the spec of a is not so in b? */
static bool spec_beyond(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)a, key, v)
		if (!streq(key, "metadata") && !streq(key, "status") &&
		    !json_same(v, json_object_get(b, key)))
			return true;
	return false;
}

/* True where something beyond metadata and status differs: a new generation. */
static bool spec_differs(const json_t *a, const json_t *b)
{
	return spec_beyond(a, b) || spec_beyond(b, a);
}

static void keep(json_t *object, const json_t *from, const char *key)
{
	json_t *v = json_object_get(from, key);

	if (v)
		json_object_set(object, key, v);
	else
		json_object_del(object, key);
}

/* The object that a write of `given` means, status and the rest kept apart. */
static int combine(struct op *op, const json_t *old, json_t *given, const char *subresource,
		   json_t **ret)
{
	cleanup_json json_t *next = NULL;
	int rc;

	json_drop_nulls(given);
	rc = meta_for_update(op, given, old);
	if (rc < 0)
		return rc;
	if (streq(subresource, "status")) {
		next = json_deep_copy(old);
		keep(next, given, "status");
		keep(json_object_get(next, "metadata"), json_object_get(given, "metadata"),
		     "managedFields");
	} else {
		next = json_incref(given);
		if (op->kind->has_status && !op->system)
			keep(next, old, "status");
		if (is_namespace(op->kind) && !op->system)
			keep(next, old, "spec");
	}
	*ret = TAKE_PTR(next);
	return 0;
}

static bool may_go(const struct kind *kind, const json_t *object)
{
	if (!jstr(object, "metadata", "deletionTimestamp") || meta_has_finalizers(object))
		return false;
	return !is_namespace(kind) || json_array_size(jget(object, "spec", "finalizers")) == 0;
}

int object_replace(struct op *op, struct stored *old, json_t *object, const char *subresource,
		   json_t **ret)
{
	cleanup_json json_t *next = NULL;
	int rc = combine(op, old->object, object, subresource, &next);

	if (rc < 0)
		return rc;
	rc = object_check(op, next, old->object);
	if (rc < 0)
		return rc;
	if (op->kind->custom && spec_differs(old->object, next))
		jset(next, json_integer(jint(old->object, "metadata", "generation") + 1),
		     "metadata", "generation");
	if (!op->applying)
		managed_update(op, old->object, next);
	rc = run_guard(op, old->object, next);
	if (rc < 0)
		return rc;
	if (may_go(op->kind, next))
		rc = row_remove(op, old, next);
	else if (!json_same(next, old->object))
		rc = row_save(op, old, next);
	if (rc < 0)
		return rc;
	*ret = TAKE_PTR(next);
	return 0;
}

/* Children of an orphaning delete lose their reference in the same transaction. */
static int orphan_dependents(struct op *op, const char *uid)
{
	struct names children;
	int rc = names_dependents(op, uid, &children);

	if (rc < 0)
		return rc;
	for (size_t i = 0; rc >= 0 && i < children.count; i++) {
		const struct name *n = &children.items[i];
		struct op sub = op_housekeeping(op, n->kind, n->ns, n->name);
		struct stored child = { 0 };
		cleanup_json json_t *next = NULL, *done = NULL;
		json_t *refs;

		rc = row_load(&sub, n->kind, n->ns, n->name, &child);
		if (rc < 0)
			break;
		next = json_deep_copy(child.object);
		refs = jget(next, "metadata", "ownerReferences");
		for (size_t j = json_array_size(refs); j-- > 0;)
			if (streq(jstr(json_array_get(refs, j), "uid"), uid))
				json_array_remove(refs, j);
		rc = object_replace(&sub, &child, next, NULL, &done);
		stored_done(&child);
	}
	names_done(&children);
	return rc;
}

static int mark_deleted(struct op *op, struct stored *old, bool foreground, json_t **ret)
{
	cleanup_json json_t *next = json_deep_copy(old->object);
	json_t *metadata = json_object_get(next, "metadata");
	int rc;

	if (foreground) {
		json_t *finalizers = json_object_get(metadata, "finalizers");

		if (!finalizers)
			json_object_set_new(metadata, "finalizers", finalizers = json_array());
		json_array_append_new(finalizers, json_string("foregroundDeletion"));
	}
	if (!jstr(metadata, "deletionTimestamp")) {
		meta_stamp(op, "deletionTimestamp", metadata);
		jset(metadata, json_integer(0), "deletionGracePeriodSeconds");
		if (op->kind->custom)
			jset(metadata, json_integer(jint(metadata, "generation") + 1),
			     "generation");
	}
	if (is_namespace(op->kind))
		jset(next, json_string("Terminating"), "status", "phase");
	rc = json_equal(next, old->object) ? 0 : row_save(op, old, next);
	if (rc < 0)
		return rc;
	*ret = TAKE_PTR(next);
	return 1;
}

static bool has_finalizer(const json_t *object, const char *finalizer)
{
	const json_t *item;
	size_t i;

	json_array_foreach (jget(object, "metadata", "finalizers"), i, item)
		if (streq(json_string_value(item), finalizer))
			return true;
	return false;
}

static int has_dependents(struct op *op, const char *uid)
{
	struct names children;
	int rc = names_dependents(op, uid, &children);

	if (rc >= 0) {
		rc = children.count > 0;
		names_done(&children);
	}
	return rc;
}

int object_remove(struct op *op, struct stored *old, const struct kube_delete_options *options,
		  json_t **ret)
{
	static const struct kube_delete_options defaults = { 0 };
	const struct kube_delete_options *o = options ? options : &defaults;
	const char *uid = jstr(old->object, "metadata", "uid");
	bool foreground = false;
	int rc = meta_precondition(op, o->uid, o->resource_version, old->object);

	if (rc >= 0)
		rc = run_guard(op, old->object, NULL);
	if (rc < 0)
		return rc;
	if (is_namespace(op->kind) &&
	    (streq(op->name, "default") || streq(op->name, "kube-system")))
		return op_refuse(
			op, FAULT_FORBIDDEN, NULL,
			"namespaces \"%s\" is forbidden: this namespace may not be deleted",
			op->name);
	if (streq(o->propagation, "Orphan") && !op->w->dry_run) {
		rc = orphan_dependents(op, uid);
	} else if (streq(o->propagation, "Foreground") &&
		   !has_finalizer(old->object, "foregroundDeletion")) {
		rc = has_dependents(op, uid);
		foreground = rc > 0;
	}
	if (rc < 0)
		return rc;
	if (foreground || meta_has_finalizers(old->object) || is_namespace(op->kind))
		return mark_deleted(op, old, foreground, ret);
	rc = row_remove(op, old, old->object);
	if (rc >= 0)
		*ret = status_deleted(op->kind, op->name, uid);
	return rc < 0 ? rc : 0;
}

/* ---- the public face ------------------------------------------------------------------------ */

int store_create(struct store *s, const struct store_write *w, const json_t *object, json_t **ret,
		 struct error *err)
{
	cleanup_json json_t *result = NULL;
	struct op op;
	int rc = op_begin(&op, s, w, err);

	if (rc >= 0)
		rc = object_create(&op, object, &result);
	rc = op_end(&op, rc);
	if (rc >= 0 && ret)
		*ret = TAKE_PTR(result);
	return rc;
}

/* A custom object may only be replaced by who has read it; Kubernetes has the same rule. */
static int check_conditional(struct op *op, const json_t *object)
{
	const char *version = jstr(object, "metadata", "resourceVersion");

	if (!op->kind->custom || (version && version[0]))
		return 0;
	return op_refuse(op, FAULT_INVALID, "metadata.resourceVersion",
			 "Invalid value: 0x0: must be specified for an update");
}

int store_update(struct store *s, const struct store_write *w, const json_t *object, json_t **ret,
		 struct error *err)
{
	cleanup_json json_t *result = NULL, *given = json_deep_copy(object);
	struct stored old = { 0 };
	struct op op;
	int rc = op_begin(&op, s, w, err);

	if (rc >= 0)
		rc = load(&op, &old);
	if (rc >= 0)
		rc = check_conditional(&op, given);
	if (rc >= 0)
		rc = object_replace(&op, &old, given, w->subresource, &result);
	rc = op_end(&op, rc);
	stored_done(&old);
	if (rc >= 0 && ret)
		*ret = TAKE_PTR(result);
	return rc;
}

static int patch_existing(struct op *op, const json_t *patch, json_t **ret)
{
	struct stored old = { 0 };
	cleanup_json json_t *next = NULL;
	struct error why = ERROR_INIT;
	int rc = load(op, &old);

	if (rc < 0)
		return rc;
	rc = patch_object(op->kind, old.object, patch, op->w->patch_type, &next, &why);
	if (rc == -ENOTSUP)
		rc = op_refuse(op, FAULT_MEDIA_TYPE, NULL, "%s", why.message);
	else if (rc == -EINVAL)
		rc = op_refuse(op, FAULT_BAD_REQUEST, NULL, "%s", why.message);
	else if (rc == -ERANGE)
		rc = op_refuse(op, FAULT_INVALID, "patch", "Invalid value: %s", why.message);
	else
		rc = object_replace(op, &old, next, op->w->subresource, ret);
	stored_done(&old);
	return rc;
}

int store_patch(struct store *s, const struct store_write *w, const json_t *patch, json_t **ret,
		struct error *err)
{
	cleanup_json json_t *result = NULL;
	struct op op;
	int rc = op_begin(&op, s, w, err);

	if (rc >= 0)
		rc = patch_is_apply(w->patch_type) ? object_apply(&op, patch, &result)
						   : patch_existing(&op, patch, &result);
	rc = op_end(&op, rc);
	if (rc >= 0 && ret)
		*ret = TAKE_PTR(result);
	return rc;
}

int store_delete(struct store *s, const struct store_write *w,
		 const struct kube_delete_options *options, json_t **ret, struct error *err)
{
	cleanup_json json_t *result = NULL;
	struct stored old = { 0 };
	struct op op;
	int rc = op_begin(&op, s, w, err);

	if (rc >= 0)
		rc = load(&op, &old);
	if (rc >= 0)
		rc = object_remove(&op, &old, options, &result);
	rc = op_end(&op, rc);
	stored_done(&old);
	if (rc >= 0 && ret)
		*ret = TAKE_PTR(result);
	return rc;
}
