/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include "base/clock.h"

/* kubectl's server-side printing: a meta.k8s.io/v1 Table. */

static const struct column name_column = {
	.name = "Name",
	.type = "string",
	.path = ".metadata.name",
	.help = "Name of the object, unique among its kind in the namespace.",
};
static const struct column age_column =
	C_DATE("Age", ".metadata.creationTimestamp", "Time since the object was created.");

/* Calls fn for each column in the order in which they are shown: wide ones stand behind the age. */
static void each_column(const struct kind *k, void (*fn)(const struct column *c, void *arg),
			void *arg)
{
	const struct column *c;

	if (k->own_columns) {
		for (c = k->columns; c->name; c++)
			fn(c, arg);
		return;
	}
	fn(&name_column, arg);
	for (c = k->columns; c && c->name; c++)
		if (c->priority == 0)
			fn(c, arg);
	fn(&age_column, arg);
	for (c = k->columns; c && c->name; c++)
		if (c->priority > 0)
			fn(c, arg);
}

static void add_definition(const struct column *c, void *arg)
{
	/* ages are computed here, so that for the reader they are strings */
	bool date = streq(c->type, "date");

	(void)json_array_append_new(arg,
				    json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", c->name, "type",
					      date ? "string" : c->type, "format",
					      streq(c->name, "Name") ? "name" : "", "description",
					      c->help, "priority", c->priority));
}

/* ".spec.glusterfs.cluster" */
static const json_t *value_at(const json_t *object, const char *path)
{
	while (object && *path == '.') {
		size_t len = strcspn(path + 1, ".");

		object = json_object_getn(object, path + 1, len);
		path += 1 + len;
	}
	return object;
}

struct row {
	const json_t *object;
	json_t *cells;
	int64_t now_wall_ms;
};

static json_t *age_cell(const char *text, int64_t now_wall_ms)
{
	char age[TIME_TEXT_MAX];
	int64_t since;

	if (!text || time_parse(text, &since) < 0)
		return json_string("<unknown>");
	return json_string(age_text(now_wall_ms > since ? now_wall_ms - since : 0, age));
}

static json_t *plain_cell(const json_t *value)
{
	char *text;
	json_t *cell;

	if (!value || json_is_null(value))
		return json_string("");
	if (!json_is_object(value) && !json_is_array(value))
		return json_copy((json_t *)value);
	text = json_text(value);
	cell = json_string(text);
	free(text);
	return cell;
}

static void add_cell(const struct column *c, void *arg)
{
	struct row *row = arg;
	struct buf text = { 0 };
	const json_t *value = c->path ? value_at(row->object, c->path) : NULL;
	json_t *cell;

	if (c->cell)
		c->cell(row->object, &text);
	if (streq(c->type, "date"))
		cell = age_cell(c->cell ? text.data : json_string_value(value), row->now_wall_ms);
	else if (c->cell)
		cell = json_string(text.data ? text.data : "");
	else if (streq(c->type, "integer") && !json_is_integer(value))
		cell = json_integer(0);
	else
		cell = plain_cell(value);
	buf_done(&text);
	/* a cell from a string that is not UTF-8 cannot be: rows keep their width all the same */
	(void)json_array_append_new(row->cells, cell ? cell : json_string(""));
}

/* The name below status.display where a column stands, or NULL where its path leads elsewhere. */
static const char *display_name(const struct column *c)
{
	static const char prefix[] = ".status.display.";

	return c->cell && c->path && str_has_prefix(c->path, prefix) ? c->path + strlen(prefix)
								      : NULL;
}

json_t *schema_display(const struct kind *k, const json_t *object)
{
	json_t *display = json_object();

	for (const struct column *c = k->columns; c && c->name; c++) {
		struct buf text = { 0 };

		if (!display_name(c))
			continue;
		c->cell(object, &text);
		(void)json_object_set_new(display, display_name(c),
					  json_string(text.data ? text.data : ""));
		buf_done(&text);
	}
	return display;
}

static json_t *table_row(const struct kind *k, const json_t *object, int64_t now_wall_ms)
{
	struct row row = { .object = object, .cells = json_array(), .now_wall_ms = now_wall_ms };
	const json_t *metadata = json_object_get(object, "metadata");
	json_t *meta = json_is_object(metadata) ? json_copy((json_t *)metadata) : json_object();

	each_column(k, add_cell, &row);
	(void)json_object_del(meta, "managedFields");
	return json_pack("{s:o, s:{s:s, s:s, s:o}}", "cells", row.cells, "object", "kind",
			 "PartialObjectMetadata", "apiVersion", "meta.k8s.io/v1", "metadata", meta);
}

json_t *schema_table(const struct kind *k, const json_t *items, const char *resource_version,
		     bool with_columns, int64_t now_wall_ms)
{
	json_t *columns = json_array(), *rows = json_array(), *item;
	size_t i;

	if (with_columns)
		each_column(k, add_definition, columns);
	json_array_foreach (items, i, item) {
		(void)json_array_append_new(rows, table_row(k, item, now_wall_ms));
	}
	return json_pack("{s:s, s:s, s:{s:s}, s:o, s:o}", "kind", "Table", "apiVersion",
			 "meta.k8s.io/v1", "metadata", "resourceVersion",
			 resource_version ? resource_version : "", "columnDefinitions", columns,
			 "rows", rows);
}
