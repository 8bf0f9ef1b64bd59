/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"
#include "kube/kube.h"

#include "base/mem.h"

static const char *text_or_empty(const char *s)
{
	return s ? s : "";
}

const char *object_name(const json_t *o)
{
	return text_or_empty(jstr(o, "metadata", "name"));
}

const char *object_namespace(const json_t *o)
{
	return text_or_empty(jstr(o, "metadata", "namespace"));
}

const char *object_uid(const json_t *o)
{
	return text_or_empty(jstr(o, "metadata", "uid"));
}

const char *object_version(const json_t *o)
{
	return text_or_empty(jstr(o, "metadata", "resourceVersion"));
}

const char *object_label(const json_t *o, const char *key)
{
	return jstr(o, "metadata", "labels", key);
}

const char *object_annotation(const json_t *o, const char *key)
{
	return jstr(o, "metadata", "annotations", key);
}

bool object_deleting(const json_t *o)
{
	return jstr(o, "metadata", "deletionTimestamp") != NULL;
}

/* Its index in metadata.finalizers, or -1. */
static ssize_t finalizer_index(const json_t *o, const char *finalizer)
{
	size_t i;
	const json_t *item;

	json_array_foreach (jget(o, "metadata", "finalizers"), i, item) {
		if (streq(json_string_value(item), finalizer))
			return (ssize_t)i;
	}
	return -1;
}

bool object_has_finalizer(const json_t *o, const char *finalizer)
{
	return finalizer_index(o, finalizer) >= 0;
}

bool object_add_finalizer(json_t *o, const char *finalizer)
{
	if (finalizer_index(o, finalizer) >= 0)
		return false;
	if (!json_is_array(jget(o, "metadata", "finalizers")))
		jset(o, json_array(), "metadata", "finalizers");
	json_array_append_new(jget(o, "metadata", "finalizers"), json_string(finalizer));
	return true;
}

bool object_remove_finalizer(json_t *o, const char *finalizer)
{
	ssize_t at = finalizer_index(o, finalizer);

	if (at < 0)
		return false;
	json_array_remove(jget(o, "metadata", "finalizers"), (size_t)at);
	return true;
}

char *object_key(const json_t *o)
{
	const char *ns = object_namespace(o);

	return *ns ? xasprintf("%s/%s", ns, object_name(o)) : xstrdup(object_name(o));
}

static void copy_part(char *to, const char *from, size_t len)
{
	if (len > 253)
		len = 253;
	memcpy(to, from, len);
	to[len] = 0;
}

void key_split(const char *key, char ns[static 254], char name[static 254])
{
	const char *slash = strchr(key, '/');

	copy_part(ns, key, slash ? (size_t)(slash - key) : 0);
	slash = slash ? slash + 1 : key;
	copy_part(name, slash, strlen(slash));
}

const json_t *condition_get(const json_t *conditions, const char *type)
{
	size_t i;
	const json_t *item;

	json_array_foreach (conditions, i, item) {
		if (streq(jstr(item, "type"), type))
			return item;
	}
	return NULL;
}

bool condition_is_true(const json_t *conditions, const char *type)
{
	return streq(jstr(condition_get(conditions, type), "status"), "True");
}

/* Sets a member only where it differs; true if it did. */
static bool set_member(json_t *o, const char *key, json_t *value /* stolen */)
{
	if (json_equal(json_object_get(o, key), value)) {
		json_decref(value);
		return false;
	}
	json_object_set_new(o, key, value);
	return true;
}

bool condition_set(json_t *conditions, const char *type, bool status, const char *reason,
		   const char *message, int64_t generation, int64_t now_wall_ms)
{
	json_t *c = (json_t *)condition_get(conditions, type);
	char when[TIME_TEXT_MAX];
	bool changed = false;

	if (!c) {
		c = json_pack("{ss}", "type", type);
		json_array_append_new(conditions, c);
	}
	if (set_member(c, "status", json_string(status ? "True" : "False"))) {
		set_member(c, "lastTransitionTime", json_string(time_text(now_wall_ms, when)));
		changed = true;
	}
	changed |= set_member(c, "reason", json_string(text_or_empty(reason)));
	changed |= set_member(c, "message", json_string(text_or_empty(message)));
	if (generation > 0)
		changed |= set_member(c, "observedGeneration", json_integer(generation));
	return changed;
}

json_t *owner_reference(const struct kind *kind, const json_t *owner)
{
	char version[200];

	return json_pack("{ss ss ss ss sb sb}", "apiVersion",
			 kind_api_version(kind, version, sizeof(version)), "kind", kind->kind,
			 "name", object_name(owner), "uid", object_uid(owner), "controller", true,
			 "blockOwnerDeletion", true);
}

char *secret_text(const json_t *secret, const char *key)
{
	const char *encoded = jstr(secret, "data", key);
	char *text = NULL;

	return encoded && *encoded && config_base64(encoded, &text) == 0 ? text : NULL;
}
