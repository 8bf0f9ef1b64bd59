/* SPDX-License-Identifier: Apache-2.0 */
#include "api/typed.h"
#include "base/mem.h"

static const char root_name[] = "";

struct field typed_root(const struct kind *kind)
{
	return (struct field){ .name = root_name, .type = FIELD_OBJECT, .fields = kind->fields };
}

const struct field *typed_child(const struct field *f, const char *key)
{
	if (!f)
		return NULL;
	if (f->name == root_name && streq(key, "metadata"))
		return &FIELD_METADATA;
	if (f->type == FIELD_MAP)
		return f->items;
	if (f->type != FIELD_OBJECT || !f->fields)
		return NULL;
	for (const struct field *c = f->fields; c->name; c++)
		if (streq(c->name, key))
			return c;
	return NULL;
}

const struct field *typed_item(const struct field *f)
{
	return f ? f->items : NULL;
}

const char *typed_list_key(const struct field *f)
{
	return f && f->type == FIELD_ARRAY ? f->list_map_key : NULL;
}

bool typed_is_set(const struct field *f)
{
	return f && f->type == FIELD_ARRAY && f->set;
}

int typed_find(const json_t *list, const char *key, const json_t *value)
{
	const json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		const json_t *v = key ? json_object_get(item, key) : item;

		if (v && value && json_equal(v, value))
			return (int)i;
	}
	return -1;
}
