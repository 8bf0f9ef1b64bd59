/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fieldset.h"
#include "api/internal.h"
#include "api/patch.h"

#include <errno.h>
#include <stdio.h>

#define UPDATE "Update"
#define APPLY "Apply"

/* The part of an object that somebody can own: not its identity, nor what the store writes. */
static json_t *ownable(const struct kind *kind, const json_t *object, const char *subresource)
{
	static const char *const top[] = { "apiVersion", "kind" };
	static const char *const meta[] = { "name",
					    "generateName",
					    "namespace",
					    "uid",
					    "resourceVersion",
					    "generation",
					    "creationTimestamp",
					    "managedFields",
					    "deletionTimestamp",
					    "selfLink",
					    "deletionGracePeriodSeconds" };
	json_t *o = json_copy((json_t *)object),
	       *m = json_copy(json_object_get(object, "metadata"));
	cleanup_json json_t *status = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(top); i++)
		json_object_del(o, top[i]);
	for (size_t i = 0; i < ARRAY_SIZE(meta); i++)
		json_object_del(m, meta[i]);
	json_object_del(o, "metadata");
	if (json_object_size(m))
		json_object_set(o, "metadata", m);
	json_decref(m);
	if (streq(subresource, "status")) {
		status = json_incref(json_object_get(o, "status"));
		json_object_clear(o);
		if (status)
			json_object_set(o, "status", status);
	} else if (kind->has_status) {
		json_object_del(o, "status");
	}
	return o;
}

static bool is_entry(const json_t *entry, const char *manager, const char *operation,
		     const char *subresource)
{
	const char *sub = jstr(entry, "subresource");

	return streq(jstr(entry, "manager"), manager) &&
	       streq(jstr(entry, "operation"), operation) &&
	       streq(sub ? sub : "", subresource ? subresource : "");
}

static json_t *entry_new(struct op *op, const char *manager, const char *operation,
			 const char *subresource)
{
	char version[128];
	json_t *e = json_pack("{s:s, s:s, s:s, s:s}", "manager", manager, "operation", operation,
			      "apiVersion", kind_api_version(op->kind, version, sizeof(version)),
			      "fieldsType", "FieldsV1");

	meta_stamp(op, "time", e);
	if (subresource)
		jset(e, json_string(subresource), "subresource");
	return e;
}

/* Gives the entry this set (stolen); its time moves only when the set does. */
static void entry_set(struct op *op, json_t *entry, json_t *set)
{
	if (!json_same(set, json_object_get(entry, "fieldsV1")))
		meta_stamp(op, "time", entry);
	jset(entry, set ? set : json_object(), "fieldsV1");
}

/* Our own entry, made where it is missing. */
static json_t *entry_of(struct op *op, json_t *entries, const char *operation)
{
	json_t *e;
	size_t i;

	json_array_foreach (entries, i, e)
		if (is_entry(e, op->w->manager, operation, op->w->subresource))
			return e;
	e = entry_new(op, op->w->manager, operation, op->w->subresource);
	json_array_append_new(entries, e);
	return e;
}

static void drop_empty_entries(json_t *entries)
{
	for (size_t i = json_array_size(entries); i-- > 0;)
		if (json_object_size(jget(json_array_get(entries, i), "fieldsV1")) == 0)
			json_array_remove(entries, i);
}

/* Takes fields away from everybody but one entry. */
static void disown(struct op *op, json_t *entries, const json_t *except, const json_t *set)
{
	json_t *e;
	size_t i;

	if (!set)
		return;
	json_array_foreach (entries, i, e) {
		const json_t *fields = json_object_get(e, "fieldsV1");
		json_t *left = e == except ? NULL : fieldset_minus(fields, set);

		if (e == except || json_same(left, fields))
			json_decref(left);
		else
			entry_set(op, e, left);
	}
}

/*
 * Events and Leases are written often and never applied: their fields are tracked only once
 * somebody has applied one.
 */
static bool tracked(struct op *op, const json_t *object)
{
	if (op->system || !op->w->manager || !op->w->manager[0])
		return false;
	return (op->kind != &KIND_EVENT && op->kind != &KIND_LEASE) ||
	       jget(object, "metadata", "managedFields");
}

void managed_update(struct op *op, const json_t *old, json_t *object)
{
	struct field root = typed_root(op->kind);
	cleanup_json json_t *before = NULL, *after = NULL, *changed = NULL, *removed = NULL,
			    *entries = NULL;
	json_t *ours, *set, *rest;

	if (op->applied)
		jset(object, TAKE_PTR(op->applied), "metadata", "managedFields");
	if (op->applying || !tracked(op, object))
		return;
	before = old ? ownable(op->kind, old, op->w->subresource) : json_object();
	after = ownable(op->kind, object, op->w->subresource);
	fieldset_compare(&root, before, after, &changed, &removed);
	if (!changed && !removed)
		return;
	entries = json_deep_copy(jget(object, "metadata", "managedFields"));
	if (!entries)
		entries = json_array();
	ours = entry_of(op, entries, UPDATE);
	set = fieldset_union(json_object_get(ours, "fieldsV1"), changed);
	rest = fieldset_minus(set, removed);
	json_decref(set);
	entry_set(op, ours, rest);
	disown(op, entries, ours, changed);
	disown(op, entries, ours, removed);
	drop_empty_entries(entries);
	jset(object, TAKE_PTR(entries), "metadata", "managedFields");
}

/* ---- apply ---------------------------------------------------------------------------------- */

static void add_conflicts(struct op *op, const json_t *entry, const json_t *clash,
			  struct strv *lines)
{
	struct strv paths = { 0 };
	cleanup_free char *who =
		xasprintf("conflict with \"%s\"%s%s using %s", jstr(entry, "manager"),
			  jstr(entry, "subresource") ? " with subresource " : "",
			  jstr(entry, "subresource") ? jstr(entry, "subresource") : "",
			  jstr(entry, "apiVersion"));

	fieldset_paths(clash, "", &paths);
	for (size_t i = 0; i < paths.count; i++) {
		strv_add_take(lines, xasprintf("%s: %s", who, paths.items[i]));
		if (!op->causes)
			op->causes = json_array();
		json_array_append_new(op->causes,
				      json_pack("{s:s, s:s, s:s}", "reason", "FieldManagerConflict",
						"message", who, "field", paths.items[i]));
	}
	strv_done(&paths);
}

/* Fields that would change although another manager set them. */
static int check_conflicts(struct op *op, const json_t *entries, const json_t *ours,
			   const json_t *changed)
{
	struct strv lines = { 0 };
	struct buf text = { 0 };
	const json_t *e;
	size_t i;
	int rc = 0;

	json_array_foreach (entries, i, e) {
		cleanup_json json_t *clash =
			e == ours ? NULL : fieldset_both(changed, json_object_get(e, "fieldsV1"));

		if (clash)
			add_conflicts(op, e, clash, &lines);
	}
	for (i = 0; i < lines.count; i++)
		buf_printf(&text, "%s%s", lines.count > 1 ? "\n- " : " ", lines.items[i]);
	if (lines.count)
		rc = op_refuse(op, FAULT_CONFLICT, NULL, "Apply failed with %zu conflict%s:%s",
			       lines.count, lines.count == 1 ? "" : "s", text.data);
	buf_done(&text);
	strv_done(&lines);
	return rc;
}

/* What we applied before and no longer do, unless somebody else wants it too. */
static json_t *abandoned(const json_t *entries, const json_t *ours, const json_t *set)
{
	json_t *left = fieldset_minus(json_object_get(ours, "fieldsV1"), set);
	const json_t *e;
	size_t i;

	json_array_foreach (entries, i, e) {
		json_t *next =
			e == ours ? NULL : fieldset_minus(left, json_object_get(e, "fieldsV1"));

		if (e == ours)
			continue;
		json_decref(left);
		left = next;
	}
	return left;
}

/* An object that nobody has tracked so far: its fields belong to "before-first-apply". */
static json_t *entries_of(struct op *op, const json_t *live)
{
	json_t *entries = json_deep_copy(jget(live, "metadata", "managedFields"));
	struct field root = typed_root(op->kind);
	cleanup_json json_t *all = NULL;
	json_t *e;

	if (json_array_size(entries))
		return entries;
	json_decref(entries);
	entries = json_array();
	all = ownable(op->kind, live, op->w->subresource);
	if (json_object_size(all)) {
		e = entry_new(op, "before-first-apply", UPDATE, op->w->subresource);
		jset(e, fieldset_of(&root, all), "fieldsV1");
		json_array_append_new(entries, e);
	}
	return entries;
}

static void copy_precondition(json_t *next, const json_t *config, const char *key)
{
	const char *v = jstr(config, "metadata", key);

	if (v)
		jset(next, json_string(v), "metadata", key);
	else
		json_object_del(json_object_get(next, "metadata"), key);
}

static int apply_existing(struct op *op, struct stored *old, const json_t *config, json_t **ret)
{
	struct field root = typed_root(op->kind);
	cleanup_json json_t *wanted = ownable(op->kind, config, op->w->subresource);
	cleanup_json json_t *set = fieldset_of(&root, wanted);
	cleanup_json json_t *entries = entries_of(op, old->object);
	cleanup_json json_t *next = typed_merge(&root, old->object, wanted);
	cleanup_json json_t *before = ownable(op->kind, old->object, op->w->subresource);
	cleanup_json json_t *after = ownable(op->kind, next, op->w->subresource);
	cleanup_json json_t *changed = NULL, *removed = NULL, *gone = NULL;
	json_t *ours = entry_of(op, entries, APPLY);
	int rc;

	fieldset_compare(&root, before, after, &changed, &removed);
	if (!op->w->force) {
		rc = check_conflicts(op, entries, ours, changed);
		if (rc < 0)
			return rc;
	}
	disown(op, entries, ours, changed);
	gone = abandoned(entries, ours, set);
	fieldset_remove(&root, next, gone);
	entry_set(op, ours, TAKE_PTR(set));
	drop_empty_entries(entries);
	jset(next, TAKE_PTR(entries), "metadata", "managedFields");
	copy_precondition(next, config, "resourceVersion");
	copy_precondition(next, config, "uid");
	return object_replace(op, old, next, op->w->subresource, ret);
}

static int apply_new(struct op *op, const json_t *config, json_t **ret)
{
	struct field root = typed_root(op->kind);
	cleanup_json json_t *wanted = NULL;
	json_t *e;
	char resource[RESOURCE_MAX];

	if (op->w->subresource || jstr(config, "metadata", "uid"))
		return op_refuse(op, FAULT_NOT_FOUND, NULL, "%s \"%.253s\" not found",
				 kind_resource(op->kind, resource), op->name);
	wanted = ownable(op->kind, config, NULL);
	e = entry_new(op, op->w->manager, APPLY, NULL);
	jset(e, fieldset_of(&root, wanted), "fieldsV1");
	op->applied = json_array();
	json_array_append_new(op->applied, e);
	return object_create(op, config, ret);
}

int object_apply(struct op *op, const json_t *given, json_t **ret)
{
	cleanup_json json_t *config = json_deep_copy(given);
	struct stored old = { 0 };
	int rc;

	if (!op->w->manager || !op->w->manager[0])
		return op_refuse(op, FAULT_BAD_REQUEST, NULL,
				 "fieldManager: Required value: is required for apply patch");
	if (!json_is_object(config) || !jstr(config, "apiVersion") || !jstr(config, "kind"))
		return op_refuse(op, FAULT_BAD_REQUEST, NULL,
				 "an apply patch must be an object with apiVersion and kind");
	if (json_array_size(jget(config, "metadata", "managedFields")))
		return op_refuse(op, FAULT_BAD_REQUEST, NULL, "metadata.managedFields must be nil");
	if (!op->name || !op->name[0])
		return op_refuse(op, FAULT_BAD_REQUEST, NULL, "name is required");
	json_drop_nulls(config);
	if (!jstr(config, "metadata", "name"))
		jset(config, json_string(op->name), "metadata", "name");
	if (!streq(jstr(config, "metadata", "name"), op->name))
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"the name of the object does not match the name on the URL (%.253s)",
			op->name);
	op->applying = true;
	rc = row_load(op, op->kind, op->ns, op->name, &old);
	if (rc == -ENOENT) {
		rc = apply_new(op, config, ret);
		return rc < 0 ? rc : 1;
	}
	if (rc < 0)
		return rc;
	rc = meta_check(op, config);
	if (rc >= 0)
		rc = apply_existing(op, &old, config, ret);
	stored_done(&old);
	return rc;
}
