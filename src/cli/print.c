/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "kube/kube.h"

#include <ctype.h>

/* ---- grid ------------------------------------------------------------------------------------ */

void grid_row(struct grid *g, const char *const *cells)
{
	size_t n = 0;

	while (cells[n])
		n++;
	if (g->columns == 0)
		g->columns = n < GRID_COLUMNS ? n : GRID_COLUMNS;
	for (size_t i = 0; i < g->columns; i++) {
		const char *text = i < n ? cells[i] : "";
		size_t width = term_width(text);

		if (width > g->width[i])
			g->width[i] = width;
		strv_add(&g->cells, text);
	}
}

static void put_cell(struct grid *g, size_t column, const char *text)
{
	enum style style = style_of_state(text);

	(void)fputs(style == STYLE_PLAIN ? "" : term_style(g->out, style), g->out);
	term_put(g->out, text);
	(void)fputs(style == STYLE_PLAIN ? "" : term_style(g->out, STYLE_PLAIN), g->out);
	if (column + 1 < g->columns)
		(void)fprintf(g->out, "%*s", (int)(g->width[column] - term_width(text) + 3), "");
}

void grid_flush(struct grid *g)
{
	for (size_t i = 0; i < g->cells.count; i++) {
		size_t column = i % g->columns;

		if (column == 0)
			(void)fprintf(g->out, "%*s", g->indent, "");
		put_cell(g, column, g->cells.items[i]);
		if (column + 1 == g->columns)
			(void)fputc('\n', g->out);
	}
	strv_done(&g->cells);
	g->cells = (struct strv){ 0 };
	(void)fflush(g->out);
}

void grid_done(struct grid *g)
{
	strv_done(&g->cells);
}

/* ---- Table ----------------------------------------------------------------------------------- */

static char *cell_text(const json_t *cell)
{
	if (json_is_string(cell))
		return xstrdup(json_string_value(cell));
	if (!cell || json_is_null(cell))
		return xstrdup("");
	return json_text(cell);
}

static char *upper(const char *text)
{
	char *u = xstrdup(text);

	for (char *c = u; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return u;
}

/* One row from a list; pick says which columns are shown. */
static void table_row(struct grid *g, const struct strv *cells, const bool *pick, const char *ns)
{
	const char *row[GRID_COLUMNS + 1];
	size_t n = 0;

	if (ns)
		row[n++] = ns;
	for (size_t i = 0; i < cells->count && n < GRID_COLUMNS; i++)
		if (pick[i])
			row[n++] = cells->items[i];
	row[n] = NULL;
	grid_row(g, row);
}

void grid_table(struct grid *g, const json_t *table, bool wide, bool with_ns)
{
	const json_t *columns = json_object_get(table, "columnDefinitions");
	bool pick[GRID_COLUMNS] = { 0 };
	struct strv cells = { 0 };
	json_t *item, *cell;
	size_t i, j;

	json_array_foreach (columns, i, item) {
		if (i < GRID_COLUMNS)
			pick[i] = wide || jint(item, "priority") == 0;
		strv_add_take(&cells, upper(jstr(item, "name") ? jstr(item, "name") : ""));
	}
	if (g->columns == 0)
		table_row(g, &cells, pick, with_ns ? "NAMESPACE" : NULL);
	strv_done(&cells);
	json_array_foreach (json_object_get(table, "rows"), i, item) {
		const char *ns = jstr(item, "object", "metadata", "namespace");

		cells = (struct strv){ 0 };
		json_array_foreach (json_object_get(item, "cells"), j, cell) {
			strv_add_take(&cells, cell_text(cell));
		}
		table_row(g, &cells, pick, with_ns ? (ns ? ns : "") : NULL);
		strv_done(&cells);
	}
}

/* ---- objects --------------------------------------------------------------------------------- */

char *object_title(const struct kind *k, const char *name)
{
	return xasprintf("%s%s%s/%s", k->singular, k->group[0] ? "." : "", k->group, name);
}

static void put_scalar(FILE *out, const char *key, const json_t *value)
{
	cleanup_free char *text = cell_text(value);
	char human[QUANTITY_TEXT_MAX];

	if (json_is_string(value) && !text[0])
		(void)fputs("\"\"", out);
	term_put(out, text);
	if (key && json_is_integer(value) && str_has_suffix(key, "Bytes") &&
	    json_integer_value(value) >= 1024)
		(void)fprintf(out, " (%s)", quantity_human(json_integer_value(value), human));
	(void)fputc('\n', out);
}

static bool is_empty(const json_t *value)
{
	return (json_is_object(value) && json_object_size(value) == 0) ||
	       (json_is_array(value) && json_array_size(value) == 0);
}

static bool is_scalar(const json_t *value)
{
	return !json_is_object(value) && !json_is_array(value);
}

static void tree(FILE *out, const json_t *value, int indent, bool dash);

static void tree_list(FILE *out, const json_t *list, int indent)
{
	json_t *item;
	size_t i;

	json_array_foreach (list, i, item) {
		if (json_is_object(item) && !is_empty(item)) {
			tree(out, item, indent + 2, true);
			continue;
		}
		(void)fprintf(out, "%*s- ", indent, "");
		if (is_scalar(item))
			put_scalar(out, NULL, item);
		else
			(void)fputs("-\n", out);
	}
}

/* dash: the first line begins an entry of a list. */
static void tree(FILE *out, const json_t *value, int indent, bool dash)
{
	const char *key;
	json_t *item;

	if (json_is_array(value)) {
		tree_list(out, value, indent);
		return;
	}
	json_object_foreach ((json_t *)value, key, item) {
		(void)fprintf(out, "%*s%s", dash ? indent - 2 : indent, "", dash ? "- " : "");
		dash = false;
		term_put(out, key);
		(void)fputs(":", out);
		if (is_scalar(item)) {
			(void)fputc(' ', out);
			put_scalar(out, key, item);
		} else {
			(void)fputs(is_empty(item) ? " -\n" : "\n", out);
			tree(out, item, indent + 2, false);
		}
	}
}

void print_tree(FILE *out, const json_t *value, int indent)
{
	tree(out, value, indent, false);
}
