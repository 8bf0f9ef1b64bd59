/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include <inttypes.h>

/* The tables as a page to read: docs/resources.md ends with it. */

static void escaped(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_printf(out, "%s%c", *text == '|' || *text == '<' ? "\\" : "", *text);
}

/* Where the text names them all, they need not stand there twice. */
static void allowed(struct buf *out, const struct field *f, const char *const *values)
{
	bool named = true;

	for (size_t i = 0; values[i]; i++)
		named = named && strstr(f->help, values[i]);
	for (size_t i = 0; values[i] && !named; i++)
		buf_printf(out, "%s`%s`%s", i ? ", " : " One of ", values[i],
			   values[i + 1] ? "" : ".");
}

static void limits(struct buf *out, const struct field *f)
{
	const struct field *e = f->items && f->items->values ? f->items : f;

	if (e->values)
		allowed(out, f, e->values);
	if (f->default_json)
		buf_printf(out, " Default: `%s`.", f->default_json);
	if (f->type == FIELD_INTEGER && f->max && f->max < INT64_MAX)
		buf_printf(out, " From %" PRId64 " to %" PRId64 ".", f->min, f->max);
	if (f->immutable)
		buf_puts(out, " Cannot be changed once set.");
	if (f->open)
		buf_puts(out, " May hold more than is named here.");
}

static void rows(struct buf *out, const struct field *fields, const char *path)
{
	for (const struct field *f = fields; f->name; f++) {
		cleanup_free char *here = xasprintf("%s%s%s", path, *path ? "." : "", f->name);
		cleanup_free char *below = xstrdup(here);
		const struct field *inner = f;

		buf_printf(out, "| `%s` | ", here);
		field_type_name(f, out);
		buf_printf(out, "%s | ", f->required ? ", required" : "");
		escaped(out, f->help);
		limits(out, f);
		buf_puts(out, " |\n");
		for (; inner->items; inner = inner->items) {
			char *deeper = xasprintf("%s%s", below,
						 inner->type == FIELD_ARRAY ? "[]" : ".KEY");
			free(below);
			below = deeper;
		}
		if (inner->fields)
			rows(out, inner->fields, below);
	}
}

static void table(struct buf *out, const struct field *fields, const char *path)
{
	buf_puts(out, "\n| field | type | |\n|---|---|---|\n");
	rows(out, fields, path);
}

void schema_markdown(struct buf *out)
{
	for (size_t i = 0; kinds[i]; i++) {
		const struct kind *k = kinds[i];
		char version[128];

		buf_printf(out, "### %s\n\n%s `%s`, %s", k->kind, k->help,
			   kind_api_version(k, version, sizeof(version)),
			   k->namespaced ? "in a namespace" : "in no namespace");
		for (size_t j = 0; k->short_names && k->short_names[j]; j++)
			buf_printf(out, "%s`%s`", j ? ", " : "; short: ", k->short_names[j]);
		buf_puts(out, ".\n");
		table(out, k->fields, "");
		buf_puts(out, "\n");
	}
	buf_printf(out, "### metadata, of every kind\n\n%s\n", FIELD_METADATA.help);
	table(out, FIELD_METADATA.fields, "metadata");
}
