/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

/* What is done to an object before it is stored: defaults set, nulls and unknown fields removed. */

static void default_value(const struct field *f, json_t *value);

static void default_fields(const struct field *fields, json_t *object)
{
	for (const struct field *f = fields; f->name; f++) {
		json_t *value = json_object_get(object, f->name);

		if (json_is_null(value)) {
			(void)json_object_del(object, f->name);
			value = NULL;
		}
		if (!value && f->default_json) {
			value = json_loads(f->default_json, JSON_DECODE_ANY, NULL);
			(void)json_object_set_new(object, f->name, value);
		}
		if (value)
			default_value(f, value);
	}
}

static void default_value(const struct field *f, json_t *value)
{
	size_t i;
	const char *key;
	json_t *item;

	if (f->type == FIELD_OBJECT && json_is_object(value)) {
		default_fields(f->fields, value);
	} else if (f->type == FIELD_ARRAY) {
		json_array_foreach (value, i, item) {
			default_value(f->items, item);
		}
	} else if (f->type == FIELD_MAP) {
		json_object_foreach (value, key, item) {
			default_value(f->items, item);
		}
	}
}

void schema_default(const struct kind *k, json_t *object)
{
	json_t *meta = json_object_get(object, "metadata");

	if (!json_is_object(object))
		return;
	if (meta)
		default_value(&FIELD_METADATA, meta);
	default_fields(k->fields, object);
}

static void prune_value(const struct field *f, json_t *value);

static const struct field *find_field(const struct field *fields, const char *name)
{
	for (const struct field *f = fields; f->name; f++)
		if (streq(f->name, name))
			return f;
	return NULL;
}

static void prune_fields(const struct field *fields, bool open, bool top, json_t *object)
{
	const char *key;
	json_t *value;
	void *next;

	json_object_foreach_safe (object, next, key, value) {
		const struct field *f = find_field(fields, key);

		if (top && streq(key, "metadata"))
			f = &FIELD_METADATA;
		if (f)
			prune_value(f, value);
		else if (!open && !(top && (streq(key, "apiVersion") || streq(key, "kind"))))
			(void)json_object_del(object, key);
	}
}

static void prune_value(const struct field *f, json_t *value)
{
	size_t i;
	const char *key;
	json_t *item;

	if (f->type == FIELD_OBJECT && json_is_object(value)) {
		prune_fields(f->fields, f->open, false, value);
	} else if (f->type == FIELD_ARRAY) {
		json_array_foreach (value, i, item) {
			prune_value(f->items, item);
		}
	} else if (f->type == FIELD_MAP) {
		json_object_foreach (value, key, item) {
			prune_value(f->items, item);
		}
	}
}

void schema_prune(const struct kind *k, json_t *object)
{
	if (json_is_object(object))
		prune_fields(k->fields, false, true, object);
}
