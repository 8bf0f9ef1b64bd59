/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include "base/clock.h"
#include "base/quantity.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* One walk down an object; path grows and shrinks as it goes. */
struct walk {
	const struct kind *kind;
	bool strict;
	struct schema_problem *ret;
	char path[sizeof(((struct schema_problem *)NULL)->path)];
	size_t len;
};

static int walk_value(struct walk *w, const struct field *f, const json_t *value,
		      const json_t *old);

/* Makes the path longer by n bytes that snprintf has put there, as far as they fit; returns its former length. */
static size_t entered(struct walk *w, int n)
{
	size_t before = w->len, room = sizeof(w->path) - w->len;

	w->len += (size_t)n < room ? (size_t)n : room - 1;
	return before;
}

/* A name is anybody's text, and paths are printed: what a terminal would act on becomes "?". */
static size_t enter_field(struct walk *w, const char *name)
{
	size_t before = entered(w, snprintf(w->path + w->len, sizeof(w->path) - w->len, "%s%s",
					    w->len ? "." : "", name[0] ? name : "\"\""));

	for (size_t i = before; i < w->len; i++)
		if ((unsigned char)w->path[i] < 0x20 || w->path[i] == 0x7f)
			w->path[i] = '?';
	return before;
}

static size_t enter_index(struct walk *w, size_t index)
{
	return entered(w, snprintf(w->path + w->len, sizeof(w->path) - w->len, "[%zu]", index));
}

static void leave(struct walk *w, size_t before)
{
	w->len = before;
	w->path[before] = '\0';
}

#define refuse(w, ...) problem((w)->ret, (w)->path, __VA_ARGS__)

static const char *type_text(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "a mapping";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	default:
		return "null";
	}
}

static int refuse_type(struct walk *w, const json_t *value, const char *wanted)
{
	return refuse(w, "must be %s, not %s", wanted, type_text(value));
}

/* ---- unknown fields ------------------------------------------------------------------------- */

/* Where below fields a field of this name is, as a path; for one that was written at the wrong place. */
static bool find_elsewhere(const struct field *fields, const char *name, const char *path,
			   char *found, size_t size)
{
	for (const struct field *f = fields; f && f->name; f++) {
		const struct field *inner = f;
		char here[200];

		while (inner->items)
			inner = inner->items;
		(void)snprintf(here, sizeof(here), "%s%s%s", path, *path ? "." : "", f->name);
		for (const struct field *g = inner->fields; g && g->name; g++) {
			if (!streq(g->name, name))
				continue;
			(void)snprintf(found, size, "%s", here);
			return true;
		}
		if (find_elsewhere(inner->fields, name, here, found, size))
			return true;
	}
	return false;
}

static int unknown_field(struct walk *w, const struct field *fields, const char *name)
{
	const char *names[64], *near;
	size_t n = 0, before = enter_field(w, name);
	char found[200];
	int r;

	if (before == 0)
		names[n++] = "metadata";
	for (const struct field *f = fields; f->name && n < ARRAY_SIZE(names) - 1; f++)
		names[n++] = f->name;
	names[n] = NULL;
	near = str_suggest(name, names);
	if (near)
		r = refuse(w, "unknown field (did you mean \"%s\"?)", near);
	else if (find_elsewhere(w->kind->fields, name, "", found, sizeof(found)))
		r = refuse(w, "unknown field (it belongs below \"%s\")", found);
	else
		r = refuse(w, "unknown field");
	leave(w, before);
	return r;
}

static bool has_field(const struct field *fields, const char *name)
{
	for (const struct field *f = fields; f->name; f++)
		if (streq(f->name, name))
			return true;
	return false;
}

static int check_unknown(struct walk *w, const struct field *fields, const json_t *object)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		if (w->len == 0 &&
		    (streq(key, "apiVersion") || streq(key, "kind") || streq(key, "metadata")))
			continue;
		if (!has_field(fields, key))
			return unknown_field(w, fields, key);
	}
	return 0;
}

/* ---- scalars -------------------------------------------------------------------------------- */

static int refuse_value(struct walk *w, const char *text, const char *const *values)
{
	const char *near = str_suggest(text, values);
	struct buf all = { 0 };
	char q[QUOTED_MAX];
	int r;

	for (size_t i = 0; values[i]; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", values[i]);
	if (near)
		r = refuse(w, "%s is not supported (did you mean \"%s\"?); supported: %s",
			   quoted(text, q), near, all.data);
	else
		r = refuse(w, "%s is not supported; supported: %s", quoted(text, q), all.data);
	buf_done(&all);
	return r;
}

static int walk_string(struct walk *w, const struct field *f, const json_t *value)
{
	size_t max = f->max_len ? f->max_len : 4096;
	const char *text = json_string_value(value);

	if (!json_is_string(value))
		return refuse_type(w, value, "a string");
	if (json_string_length(value) > max)
		return refuse(w, "is longer than %zu bytes", max);
	if (json_string_length(value) != strlen(text))
		return refuse(w, "must not hold a NUL byte");
	if (!f->values)
		return 0;
	for (size_t i = 0; f->values[i]; i++)
		if (streq(text, f->values[i]))
			return 0;
	return refuse_value(w, text, f->values);
}

static int walk_integer(struct walk *w, const struct field *f, const json_t *value)
{
	int64_t n = json_integer_value(value);

	if (json_is_real(value))
		return refuse(w, "must be a whole number");
	if (!json_is_integer(value))
		return refuse_type(w, value, "an integer");
	if (f->min == 0 && f->max == 0)
		return 0;
	if (n < f->min && f->max && f->max < INT64_MAX)
		return refuse(w, "must be between %" PRId64 " and %" PRId64, f->min, f->max);
	if (n < f->min)
		return refuse(w, "must be at least %" PRId64, f->min);
	if (f->max && n > f->max)
		return refuse(w, "must be between %" PRId64 " and %" PRId64, f->min, f->max);
	return 0;
}

static int walk_quantity(struct walk *w, const struct field *f, const json_t *value)
{
	const char *text = json_string_value(value);
	struct error e = ERROR_INIT;
	char q[QUOTED_MAX];
	int64_t n;
	int r = 0;

	if (json_is_integer(value)) {
		n = json_integer_value(value);
	} else if (json_is_real(value)) {
		double d = json_real_value(value);

		if (d >= 9223372036854775807.0)
			return refuse(
				w,
				"is too large; at most 9223372036854775807 bytes can be asked for");
		n = d < 0 ? -1 : (int64_t)d;
	} else if (!text) {
		return refuse_type(w, value, "a quantity such as 10Gi");
	} else if (text[0] == '-') {
		n = -1;
	} else {
		r = quantity_parse(text, &n, &e);
	}
	if (r == -ERANGE)
		return refuse(w,
			      "%s is too large; at most 9223372036854775807 bytes can be asked for",
			      quoted(text, q));
	if (r < 0)
		return refuse(w,
			      "%s is not a quantity; write a number of bytes or one such as 10Gi",
			      quoted(text, q));
	if (n < 0)
		return refuse(w, "must not be negative");
	if (n < f->min)
		return refuse(w, "must be more than 0");
	return 0;
}

static int walk_time(struct walk *w, const json_t *value)
{
	char q[QUOTED_MAX];
	int64_t ms;

	if (!json_is_string(value))
		return refuse_type(w, value, "a time");
	if (time_parse(json_string_value(value), &ms) < 0)
		return refuse(w, "%s is not a time; write it as 2026-11-15T20:52:06Z",
			      quoted(json_string_value(value), q));
	return 0;
}

/* ---- structures ----------------------------------------------------------------------------- */

#define CANNOT_CHANGE "cannot be changed; delete the object and create it anew"

/* A section that is gone took with it what may not change. */
static int check_gone(struct walk *w, const struct field *f, const json_t *before)
{
	int r = 0;

	for (const struct field *g = f->fields; g && g->name && r == 0; g++) {
		const json_t *value = json_object_get(before, g->name);
		size_t up = enter_field(w, g->name);

		if (value && g->immutable && !json_is_null(value))
			r = refuse(w, CANNOT_CHANGE);
		else if (value)
			r = check_gone(w, g, value);
		leave(w, up);
	}
	return r;
}

static int walk_field(struct walk *w, const struct field *f, const json_t *object,
		      const json_t *old)
{
	const json_t *value = json_object_get(object, f->name);
	const json_t *before = json_object_get(old, f->name);
	size_t up = enter_field(w, f->name);
	int r = 0;

	if (json_is_null(value))
		value = NULL;
	if (json_is_null(before))
		before = NULL;
	if (!value && f->required)
		r = refuse(w, "missing");
	else if (value)
		r = walk_value(w, f, value, before);
	if (r == 0 && f->immutable && before && !(value && json_equal(value, before)))
		r = refuse(w, CANNOT_CHANGE);
	else if (r == 0 && before && !value && f->type == FIELD_OBJECT)
		r = check_gone(w, f, before);
	leave(w, up);
	return r;
}

static int walk_fields(struct walk *w, const struct field *fields, bool open, const json_t *object,
		       const json_t *old)
{
	int r = w->strict && !open ? check_unknown(w, fields, object) : 0;

	for (const struct field *f = fields; f->name && r == 0; f++)
		r = walk_field(w, f, object, old);
	return r;
}

/* A scalar, or an entry by its key, that stands in the list already. */
static int check_twice(struct walk *w, const struct field *f, const json_t *array, size_t index)
{
	const json_t *item = json_array_get(array, index);
	char q[QUOTED_MAX];

	if (f->list_map_key)
		item = json_object_get(item, f->list_map_key);
	for (size_t i = 0; i < index && json_is_string(item); i++) {
		const json_t *other = json_array_get(array, i);

		if (f->list_map_key)
			other = json_object_get(other, f->list_map_key);
		if (json_equal(item, other))
			return refuse(w, "%s stands there already",
				      quoted(json_string_value(item), q));
	}
	return 0;
}

/* The entry of the former list that this one corresponds to. */
static const json_t *former_item(const struct field *f, const json_t *old, const json_t *item)
{
	size_t i;
	json_t *o;

	if (!f->list_map_key)
		return NULL;
	json_array_foreach (old, i, o) {
		const json_t *a = json_object_get(o, f->list_map_key);
		const json_t *b = json_object_get(item, f->list_map_key);

		if (a && b && json_equal(a, b))
			return o;
	}
	return NULL;
}

static int walk_array(struct walk *w, const struct field *f, const json_t *value, const json_t *old)
{
	size_t max = f->max_len ? f->max_len : 4096, i;
	json_t *item;

	if (!json_is_array(value))
		return refuse_type(w, value, "a list");
	if (json_array_size(value) > max)
		return refuse(w, "holds more than %zu entries", max);
	json_array_foreach (value, i, item) {
		size_t up = enter_index(w, i);
		int r = walk_value(w, f->items, item, former_item(f, old, item));

		if (r == 0 && (f->set || f->unique || f->list_map_key))
			r = check_twice(w, f, value, i);
		leave(w, up);
		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_map(struct walk *w, const struct field *f, const json_t *value)
{
	size_t max = f->max_len ? f->max_len : 4096;
	const char *key;
	json_t *item;

	if (!json_is_object(value))
		return refuse_type(w, value, "a mapping");
	if (json_object_size(value) > max)
		return refuse(w, "holds more than %zu entries", max);
	json_object_foreach ((json_t *)value, key, item) {
		size_t up = enter_field(w, key);
		int r = walk_value(w, f->items, item, NULL);

		leave(w, up);
		if (r < 0)
			return r;
	}
	return 0;
}

static int walk_type(struct walk *w, const struct field *f, const json_t *value, const json_t *old)
{
	switch (f->type) {
	case FIELD_STRING:
		return walk_string(w, f, value);
	case FIELD_INTEGER:
		return walk_integer(w, f, value);
	case FIELD_NUMBER:
		return json_is_number(value) ? 0 : refuse_type(w, value, "a number");
	case FIELD_BOOLEAN:
		return json_is_boolean(value) ? 0 : refuse_type(w, value, "true or false");
	case FIELD_QUANTITY:
		return walk_quantity(w, f, value);
	case FIELD_TIME:
		return walk_time(w, value);
	case FIELD_OBJECT:
		if (!json_is_object(value))
			return refuse_type(w, value, "a mapping");
		return walk_fields(w, f->fields, f->open, value, old);
	case FIELD_ARRAY:
		return walk_array(w, f, value, old);
	case FIELD_MAP:
		return walk_map(w, f, value);
	case FIELD_ANY:
		break;
	}
	return 0;
}

static int walk_value(struct walk *w, const struct field *f, const json_t *value, const json_t *old)
{
	struct error e = ERROR_INIT;
	int r = walk_type(w, f, value, old);

	if (r == 0 && f->check && f->check(value, &e) < 0)
		r = refuse(w, "%s", e.message);
	return r;
}

/* ---- the whole object ----------------------------------------------------------------------- */

/* Programs may leave both out; what is there must be right. */
static int check_type(const struct kind *k, const json_t *object, struct schema_problem *ret)
{
	const json_t *version = json_object_get(object, "apiVersion"),
		     *kind = json_object_get(object, "kind");
	char text[128];

	if (kind && !streq(json_string_value(kind), k->kind))
		return problem(ret, "kind", "must be \"%s\"", k->kind);
	if (version && !streq(json_string_value(version), kind_api_version(k, text, sizeof(text))))
		return problem(ret, "apiVersion", "must be \"%s\"", text);
	return 0;
}

static int check_name(const struct kind *k, const json_t *meta, struct schema_problem *ret)
{
	const json_t *name = json_object_get(meta, "name");
	size_t max = k->max_name ? k->max_name : 253;
	struct error e = ERROR_INIT;
	char q[QUOTED_MAX];

	if (json_is_null(name) || json_string_length(name) == 0) {
		if (json_string_length(json_object_get(meta, "generateName")) > 0)
			return 0;
		return problem(ret, "metadata.name", "missing");
	}
	if (json_string_length(name) > max)
		return problem(ret, "metadata.name",
			       "%s is longer than the %zu bytes that %s allows",
			       quoted(json_string_value(name), q), max, k->kind);
	if ((k->label_name ? check_label_name : check_subdomain_name)(name, &e) < 0)
		return problem(ret, "metadata.name", "%s", e.message);
	return 0;
}

static int check_metadata(struct walk *w, const json_t *object, const json_t *old)
{
	const json_t *meta = json_object_get(object, "metadata");
	int r = walk_field(w, &FIELD_METADATA, object, old);

	if (r == 0)
		r = check_name(w->kind, meta, w->ret);
	if (r == 0 && !w->kind->namespaced &&
	    json_string_length(json_object_get(meta, "namespace")) > 0)
		r = problem(w->ret, "metadata.namespace",
			    "must not be set: a %s is in no namespace", w->kind->kind);
	return r;
}

int schema_validate(const struct kind *k, const json_t *object, const json_t *old, bool strict,
		    struct schema_problem *ret)
{
	struct walk w = { .kind = k, .strict = strict, .ret = ret };
	int r;

	if (!json_is_object(object))
		return problem(ret, "object", "must be a mapping");
	r = check_type(k, object, ret);
	if (r == 0)
		r = check_metadata(&w, object, old);
	if (r == 0)
		r = walk_fields(&w, k->fields, false, object, old);
	if (r == 0 && k->check)
		r = k->check(object, old, ret);
	return r;
}
