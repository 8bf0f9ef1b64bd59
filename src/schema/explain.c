/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void field_type_name(const struct field *f, struct buf *out)
{
	static const char *const names[] = {
		[FIELD_STRING] = "string",   [FIELD_INTEGER] = "integer",
		[FIELD_BOOLEAN] = "boolean", [FIELD_QUANTITY] = "quantity",
		[FIELD_TIME] = "time",	     [FIELD_OBJECT] = "object",
		[FIELD_ANY] = "any",	     [FIELD_NUMBER] = "number",
	};

	if (f->type == FIELD_ARRAY) {
		buf_puts(out, "[]");
		field_type_name(f->items, out);
	} else if (f->type == FIELD_MAP) {
		buf_puts(out, "map[string]");
		field_type_name(f->items, out);
	} else {
		buf_puts(out, names[f->type]);
	}
}

/* Text in lines of at most 80 columns, each indented. */
static void wrapped(struct buf *out, const char *text, int indent)
{
	size_t width = 80 - (size_t)indent;

	while (*text) {
		size_t len = strlen(text), cut = len;

		if (len > width) {
			for (cut = width; cut > 0 && text[cut] != ' '; cut--)
				;
			if (cut == 0)
				cut = strcspn(text, " ");
		}
		buf_printf(out, "%*s%.*s\n", indent, "", (int)cut, text);
		text += cut;
		text += *text == ' ';
	}
}

/* What the table knows of the field's values. */
static void limits(struct buf *out, const struct field *f, int indent)
{
	const struct field *e = f->items && f->items->values ? f->items : f;

	if (e->values) {
		buf_printf(out, "%*sOne of: ", indent, "");
		for (size_t i = 0; e->values[i]; i++)
			buf_printf(out, "%s%s", i ? ", " : "", e->values[i]);
		buf_puts(out, "\n");
	}
	if (f->default_json)
		buf_printf(out, "%*sDefault: %s\n", indent, "", f->default_json);
	if (f->type == FIELD_INTEGER && f->max && f->max < INT64_MAX)
		buf_printf(out, "%*sFrom %" PRId64 " to %" PRId64 "\n", indent, "", f->min, f->max);
	if (f->immutable)
		buf_printf(out, "%*sCannot be changed once set.\n", indent, "");
}

static void headline(struct buf *out, const struct field *f, int indent)
{
	buf_printf(out, "%*s%s\t<", indent, "", f->name);
	field_type_name(f, out);
	buf_printf(out, ">%s\n", f->required ? " -required-" : "");
}

static const struct field *fields_below(const struct field *f)
{
	while (f->items)
		f = f->items;
	return f->fields;
}

static void list_fields(struct buf *out, const struct field *fields, bool recursive, int indent)
{
	for (const struct field *f = fields; f->name; f++) {
		headline(out, f, indent);
		if (!recursive) {
			wrapped(out, f->help, indent + 2);
			limits(out, f, indent + 2);
			buf_puts(out, "\n");
		} else if (fields_below(f)) {
			list_fields(out, fields_below(f), true, indent + 2);
		}
	}
}

static void explain_kind(const struct kind *k, bool recursive, struct buf *out)
{
	static const struct field head[] = {
		F_STRING("apiVersion", "Group and version of the kind.", .required = true),
		F_STRING("kind", "The kind of object.", .required = true),
		F_END,
	};
	const struct field *meta = &FIELD_METADATA;

	buf_puts(out, "DESCRIPTION:\n");
	wrapped(out, k->help, 4);
	buf_puts(out, "\nFIELDS:\n");
	list_fields(out, head, recursive, 2);
	headline(out, meta, 2);
	if (!recursive) {
		wrapped(out, meta->help, 4);
		buf_puts(out, "\n");
	}
	list_fields(out, k->fields, recursive, 2);
}

static void explain_field(const struct field *f, bool recursive, struct buf *out)
{
	buf_puts(out, "FIELD: ");
	headline(out, f, 0);
	buf_puts(out, "\nDESCRIPTION:\n");
	wrapped(out, f->help, 4);
	limits(out, f, 4);
	if (!fields_below(f))
		return;
	buf_puts(out, "\nFIELDS:\n");
	list_fields(out, fields_below(f), recursive, 2);
}

/* Names the first part of the path that is not there, and what it may have been meant to be. */
static int not_found(const struct kind *k, const char *path, struct error *err)
{
	const struct field *fields = k->fields;
	char parent[200] = "", name[64], q[QUOTED_MAX];
	const char *names[64], *near;
	size_t n = 0;

	for (size_t end = strcspn(path, ".");; end += 1 + strcspn(path + end + 1, ".")) {
		char head[200];
		const struct field *f;

		(void)snprintf(head, sizeof(head), "%.*s", (int)end, path);
		f = schema_field(k, head);
		if (!f || !path[end])
			break;
		(void)snprintf(parent, sizeof(parent), "%s", head);
		fields = fields_below(f);
	}
	path += parent[0] ? strlen(parent) + 1 : 0;
	(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(path, "."), path);
	if (!parent[0])
		names[n++] = "metadata";
	for (const struct field *f = fields; f && f->name && n < ARRAY_SIZE(names) - 1; f++)
		names[n++] = f->name;
	names[n] = NULL;
	near = str_suggest(name, names);
	return error_set(err, ENOENT, "%s%s%s has no field %s%s%s%s", k->kind, parent[0] ? "." : "",
			 parent, quoted(name, q), near ? " (did you mean \"" : "", near ? near : "",
			 near ? "\"?)" : "");
}

int schema_explain(const struct kind *k, const char *path, bool recursive, struct buf *out,
		   struct error *err)
{
	const struct field *f = path && *path ? schema_field(k, path) : NULL;

	if (path && *path && !f)
		return not_found(k, path, err);
	if (k->group[0])
		buf_printf(out, "GROUP:      %s\n", k->group);
	buf_printf(out, "KIND:       %s\nVERSION:    %s\n\n", k->kind, k->version);
	if (f)
		explain_field(f, recursive, out);
	else
		explain_kind(k, recursive, out);
	return 0;
}
