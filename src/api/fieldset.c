/* SPDX-License-Identifier: Apache-2.0 */
#include "api/fieldset.h"
#include "base/mem.h"

/*
 * A node of a set is itself a member where it has no children or the child "."; the root never is.
 */
enum combine { COMBINE_UNION, COMBINE_MINUS, COMBINE_BOTH };

static bool is_member(const json_t *node)
{
	return node && (json_object_size(node) == 0 || json_object_get(node, "."));
}

static bool decide(enum combine how, bool a, bool b)
{
	switch (how) {
	case COMBINE_UNION:
		return a || b;
	case COMBINE_MINUS:
		return a && !b;
	case COMBINE_BOTH:
		return a && b;
	}
	return false;
}

static json_t *combine(enum combine how, const json_t *a, const json_t *b, bool root)
{
	bool member = !root && decide(how, is_member(a), is_member(b));
	json_t *node = json_object(), *v;
	const char *key;

	json_object_foreach ((json_t *)a, key, v) {
		json_t *c =
			streq(key, ".") ? NULL : combine(how, v, json_object_get(b, key), false);

		if (c)
			json_object_set_new(node, key, c);
	}
	json_object_foreach ((json_t *)b, key, v) {
		json_t *c = streq(key, ".") || json_object_get(a, key)
				    ? NULL
				    : combine(how, NULL, v, false);

		if (c)
			json_object_set_new(node, key, c);
	}
	if (member && json_object_size(node))
		json_object_set_new(node, ".", json_object());
	if (!member && !json_object_size(node)) {
		json_decref(node);
		return NULL;
	}
	return node;
}

json_t *fieldset_union(const json_t *a, const json_t *b)
{
	return combine(COMBINE_UNION, a, b, true);
}

json_t *fieldset_minus(const json_t *a, const json_t *b)
{
	return combine(COMBINE_MINUS, a, b, true);
}

json_t *fieldset_both(const json_t *a, const json_t *b)
{
	return combine(COMBINE_BOTH, a, b, true);
}

/* "k:{\"type\":\"Ready\"}" for an item of a list with a key, "v:\"x\"" for one of a set. */
static char *item_name(const char *key, const json_t *item)
{
	cleanup_json json_t *id = key ? json_pack("{s:O?}", key, json_object_get(item, key))
				      : json_incref((json_t *)item);
	cleanup_free char *text = json_dumps(id, JSON_COMPACT | JSON_ENCODE_ANY);

	return xasprintf("%c:%s", key ? 'k' : 'v', text ? text : "");
}

static bool is_list_by_item(const struct field *f, const json_t *v)
{
	return json_is_array(v) && json_array_size(v) && (typed_list_key(f) || typed_is_set(f));
}

/* The node that stands for a whole value. */
static json_t *node_of(const struct field *f, const json_t *v)
{
	json_t *node;
	const json_t *item;
	size_t i;

	if (json_is_object(v)) {
		node = fieldset_of(f, v);
		return node ? node : json_object();
	}
	node = json_object();
	if (!is_list_by_item(f, v))
		return node;
	json_array_foreach (v, i, item) {
		cleanup_free char *name = item_name(typed_list_key(f), item);
		json_t *child = json_is_object(item) ? node_of(typed_item(f), item) : json_object();

		if (json_object_size(child))
			json_object_set_new(child, ".", json_object());
		json_object_set_new(node, name, child);
	}
	return node;
}

json_t *fieldset_of(const struct field *f, const json_t *object)
{
	json_t *set = NULL, *v;
	const char *key;

	json_object_foreach ((json_t *)object, key, v) {
		cleanup_free char *name = xasprintf("f:%s", key);

		if (!set)
			set = json_object();
		json_object_set_new(set, name, node_of(typed_child(f, key), v));
	}
	return set;
}

static void add_node(json_t **set, const char *name, json_t *node)
{
	if (!node)
		return;
	if (!*set)
		*set = json_object();
	json_object_set_new(*set, name, node);
}

/* Both values are there: what differs between them, as nodes; NULL for nothing. */
static void compare_values(const struct field *f, const json_t *old, const json_t *new,
			   json_t **ret_changed, json_t **ret_removed);

static void compare_members(const char *name, const struct field *f, const json_t *old,
			    const json_t *new, json_t **changed, json_t **removed)
{
	json_t *c = NULL, *r = NULL;

	if (old && new)
		compare_values(f, old, new, &c, &r);
	else if (new)
		c = node_of(f, new);
	else
		r = node_of(f, old);
	add_node(changed, name, c);
	add_node(removed, name, r);
}

static void compare_objects(const struct field *f, const json_t *old, const json_t *new,
			    json_t **changed, json_t **removed)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)new, key, v) {
		cleanup_free char *name = xasprintf("f:%s", key);

		compare_members(name, typed_child(f, key), json_object_get(old, key), v, changed,
				removed);
	}
	json_object_foreach ((json_t *)old, key, v) {
		cleanup_free char *name = xasprintf("f:%s", key);

		if (!json_object_get(new, key))
			compare_members(name, typed_child(f, key), v, NULL, changed, removed);
	}
}

static const json_t *item_like(const json_t *list, const char *key, const json_t *item)
{
	int at = typed_find(list, key, key ? json_object_get(item, key) : item);

	return at < 0 ? NULL : json_array_get(list, (size_t)at);
}

/* An item that appears or vanishes is a member itself, not only its fields. */
static json_t *as_item(json_t *node)
{
	if (node && json_object_size(node))
		json_object_set_new(node, ".", json_object());
	return node;
}

static void compare_lists(const struct field *f, const json_t *old, const json_t *new,
			  json_t **changed, json_t **removed)
{
	const char *key = typed_list_key(f);
	const json_t *item;
	size_t i;

	json_array_foreach (new, i, item) {
		cleanup_free char *name = item_name(key, item);
		const json_t *before = item_like(old, key, item);

		if (before)
			compare_members(name, typed_item(f), before, item, changed, removed);
		else
			add_node(changed, name, as_item(node_of(typed_item(f), item)));
	}
	json_array_foreach (old, i, item) {
		cleanup_free char *name = item_name(key, item);

		if (!item_like(new, key, item))
			add_node(removed, name, as_item(node_of(typed_item(f), item)));
	}
}

static void compare_values(const struct field *f, const json_t *old, const json_t *new,
			   json_t **ret_changed, json_t **ret_removed)
{
	if (json_equal(old, new))
		return;
	if (json_object_size(old) && json_object_size(new))
		compare_objects(f, old, new, ret_changed, ret_removed);
	else if (is_list_by_item(f, old) && is_list_by_item(f, new))
		compare_lists(f, old, new, ret_changed, ret_removed);
	else
		*ret_changed = node_of(f, new);
}

void fieldset_compare(const struct field *f, const json_t *old, const json_t *new,
		      json_t **ret_changed, json_t **ret_removed)
{
	*ret_changed = NULL;
	*ret_removed = NULL;
	compare_objects(f, old, new, ret_changed, ret_removed);
}

static char *path_step(const char *prefix, const char *name)
{
	json_t *id = NULL;
	struct buf out = { 0 };
	const char *key;
	json_t *v;

	if (name[0] == 'f')
		return xasprintf("%s.%s", prefix, name + 2);
	if (name[0] != 'k')
		return xasprintf("%s[=%s]", prefix, name + 2);
	json_parse(name + 2, strlen(name + 2), &id, NULL);
	buf_puts(&out, prefix);
	json_object_foreach (id, key, v) {
		cleanup_free char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);

		buf_printf(&out, "[%s=%s]", key, text ? text : "");
	}
	json_decref(id);
	return buf_take(&out);
}

void fieldset_paths(const json_t *set, const char *prefix, struct strv *ret)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)set, key, v) {
		cleanup_free char *path = streq(key, ".") ? NULL : path_step(prefix, key);

		if (!path)
			continue;
		if (is_member(v))
			strv_add(ret, path);
		fieldset_paths(v, path, ret);
	}
}

static void remove_items(const struct field *f, json_t *list, const json_t *set)
{
	const char *key = typed_list_key(f);

	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *item = json_array_get(list, i);
		cleanup_free char *name = item_name(key, item);
		const json_t *node = json_object_get(set, name);

		if (is_member(node))
			json_array_remove(list, i);
		else if (node)
			fieldset_remove(typed_item(f), item, node);
	}
}

void fieldset_remove(const struct field *f, json_t *object, const json_t *set)
{
	const char *key;
	json_t *node;

	json_object_foreach ((json_t *)set, key, node) {
		const char *name = key + 2;
		json_t *v = key[0] == 'f' ? json_object_get(object, name) : NULL;
		const struct field *child = typed_child(f, name);

		if (!v)
			continue;
		if (is_member(node)) {
			json_object_del(object, name);
			continue;
		}
		if (json_is_object(v))
			fieldset_remove(child, v, node);
		else if (is_list_by_item(child, v))
			remove_items(child, v, node);
		if (json_object_size(v) == 0 && json_array_size(v) == 0)
			json_object_del(object, name);
	}
}

static json_t *merge_lists(const struct field *f, const json_t *live, const json_t *config)
{
	const char *key = typed_list_key(f);
	json_t *list = json_deep_copy(live);
	const json_t *item;
	size_t i;

	json_array_foreach (config, i, item) {
		int at = typed_find(list, key, key ? json_object_get(item, key) : item);

		if (at < 0)
			json_array_append_new(list, json_deep_copy(item));
		else if (key)
			json_array_set_new(
				list, (size_t)at,
				typed_merge(typed_item(f), json_array_get(list, (size_t)at), item));
	}
	return list;
}

json_t *typed_merge(const struct field *f, const json_t *live, const json_t *config)
{
	json_t *merged, *v;
	const char *key;

	if (json_is_array(live) && is_list_by_item(f, config))
		return merge_lists(f, live, config);
	if (!json_is_object(live) || !json_is_object(config))
		return json_deep_copy(config);
	merged = json_deep_copy(live);
	json_object_foreach ((json_t *)config, key, v) {
		const json_t *there = json_object_get(live, key);
		const struct field *child = typed_child(f, key);

		json_object_set_new(merged, key,
				    there ? typed_merge(child, there, v) : json_deep_copy(v));
	}
	return merged;
}
