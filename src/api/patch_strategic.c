/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch.h"
#include "api/typed.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>

#define DELETE_FROM "$deleteFromPrimitiveList/"
#define SET_ORDER "$setElementOrder/"

static int merge_object(const struct field *f, json_t *target, const json_t *patch,
			struct error *err);

/* A copy of a patch's value without directives: what a new member gets. */
static int fresh(const struct field *f, const json_t *patch, json_t **ret, struct error *err)
{
	json_t *v;
	int rc;

	if (!json_is_object(patch)) {
		*ret = json_deep_copy(patch);
		return 0;
	}
	v = json_object();
	rc = merge_object(f, v, patch, err);
	if (rc < 0)
		json_decref(v);
	else
		*ret = v;
	return rc;
}

static int merge_item(const struct field *f, json_t *list, const char *key, const json_t *item,
		      struct error *err)
{
	const json_t *id = json_object_get(item, key);
	int at = typed_find(list, key, id);
	json_t *v;
	int rc;

	if (!id)
		return error_set(err, EINVAL,
				 "map: an item of a list that is merged by %s does not contain it",
				 key);
	if (streq(jstr(item, "$patch"), "delete")) {
		if (at >= 0)
			json_array_remove(list, (size_t)at);
		return 0;
	}
	if (at >= 0)
		return merge_object(typed_item(f), json_array_get(list, (size_t)at), item, err);
	rc = fresh(typed_item(f), item, &v, err);
	if (rc >= 0)
		json_array_append_new(list, v);
	return rc;
}

static bool wants_replace(const json_t *patch)
{
	const json_t *item;
	size_t i;

	json_array_foreach (patch, i, item)
		if (streq(jstr(item, "$patch"), "replace"))
			return true;
	return false;
}

static int merge_list(const struct field *f, json_t *target, const char *name, const json_t *patch,
		      struct error *err)
{
	const char *key = typed_list_key(f);
	json_t *list = json_object_get(target, name);
	bool replace = (!key && !typed_is_set(f)) || wants_replace(patch) || !json_is_array(list);
	const json_t *item;
	size_t i;

	if (replace)
		json_object_set_new(target, name, list = json_array());
	json_array_foreach (patch, i, item) {
		int rc = 0;

		if (streq(jstr(item, "$patch"), "replace"))
			continue;
		if (key)
			rc = merge_item(f, list, key, item, err);
		else if (!typed_is_set(f) || typed_find(list, NULL, item) < 0)
			json_array_append_new(list, json_deep_copy(item));
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void delete_from(json_t *target, const char *name, const json_t *values)
{
	json_t *list = json_object_get(target, name);
	const json_t *v;
	size_t i;

	json_array_foreach (values, i, v) {
		int at;

		while ((at = typed_find(list, NULL, v)) >= 0)
			json_array_remove(list, (size_t)at);
	}
}

/* The items that the order names come first, in that order; others keep theirs behind them. */
static void set_order(const struct field *f, json_t *target, const char *name, const json_t *order)
{
	const char *key = typed_list_key(typed_child(f, name));
	json_t *list = json_object_get(target, name), *sorted;
	const json_t *o;
	json_t *item;
	size_t i;

	if (!json_is_array(list) || !json_is_array(order))
		return;
	sorted = json_array();
	json_array_foreach (order, i, o) {
		int at = typed_find(list, key, key ? json_object_get(o, key) : o);

		if (at < 0)
			continue;
		json_array_append(sorted, json_array_get(list, (size_t)at));
		json_array_remove(list, (size_t)at);
	}
	json_array_foreach (list, i, item)
		json_array_append(sorted, item);
	json_object_set_new(target, name, sorted);
}

static void retain_keys(json_t *target, const json_t *names)
{
	const char *key;
	json_t *v;
	void *next;

	json_object_foreach_safe (target, next, key, v) {
		cleanup_json json_t *name = json_string(key);

		if (typed_find(names, NULL, name) < 0)
			json_object_del(target, key);
	}
}

static int merge_member(const struct field *f, json_t *target, const char *key, const json_t *value,
			struct error *err)
{
	const struct field *child = typed_child(f, key);
	json_t *there = json_object_get(target, key), *v;
	int rc;

	if (json_is_null(value)) {
		json_object_del(target, key);
		return 0;
	}
	if (json_is_array(value))
		return merge_list(child, target, key, value, err);
	if (json_is_object(value) && json_is_object(there))
		return merge_object(child, there, value, err);
	rc = fresh(child, value, &v, err);
	if (rc >= 0)
		json_object_set_new(target, key, v);
	return rc;
}

static int merge_object(const struct field *f, json_t *target, const json_t *patch,
			struct error *err)
{
	const char *directive = jstr(patch, "$patch"), *key;
	json_t *value;

	if (!json_is_object(target))
		return error_set(err, EINVAL, "the patch merges an object into another type");
	if (streq(directive, "replace") || streq(directive, "delete"))
		json_object_clear(target);
	else if (directive && !streq(directive, "merge"))
		return error_set(err, EINVAL, "unknown patch directive \"%.40s\"", directive);
	if (streq(directive, "delete"))
		return 0;
	json_object_foreach ((json_t *)patch, key, value) {
		int rc = 0;

		if (str_has_prefix(key, DELETE_FROM))
			delete_from(target, key + strlen(DELETE_FROM), value);
		else if (key[0] != '$')
			rc = merge_member(f, target, key, value, err);
		if (rc < 0)
			return rc;
	}
	json_object_foreach ((json_t *)patch, key, value) {
		if (str_has_prefix(key, SET_ORDER))
			set_order(f, target, key + strlen(SET_ORDER), value);
		else if (streq(key, "$retainKeys"))
			retain_keys(target, value);
	}
	return 0;
}

int patch_strategic(const struct kind *kind, json_t *object, const json_t *patch, struct error *err)
{
	struct field root = typed_root(kind);

	return merge_object(&root, object, patch, err);
}
