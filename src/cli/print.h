/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/term.h"
#include "schema/schema.h"

/* How objects are shown. */

/* Rows of text in columns; widths are kept, so that rows that come later stand below the first. */
#define GRID_COLUMNS 20
struct grid {
	FILE *out;
	int indent;
	size_t columns;
	size_t width[GRID_COLUMNS];
	struct strv cells; /* of rows not yet printed */
};
/* Cells ended by NULL; the first row says how many columns there are. */
void grid_row(struct grid *g, const char *const *cells);
/* Prints the rows that wait, with states in colour. */
void grid_flush(struct grid *g);
void grid_done(struct grid *g);

/* A meta.k8s.io Table into the grid: its header (in capitals) where it has one; with_ns: a column NAMESPACE first. */
void grid_table(struct grid *g, const json_t *table, bool wide, bool with_ns);

/* "storagenode.coreos.com/name", "persistentvolumeclaim/name"; caller frees. */
char *object_title(const struct kind *k, const char *name);

/* A value as an indented tree of "key: value" lines; sizes in bytes also for people. */
void print_tree(FILE *out, const json_t *value, int indent);
