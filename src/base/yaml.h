/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/*
 * YAML (and so JSON) text to JSON documents. Every mapping and scalar remembers its line, so that
 * a later complaint about a field can name it. Limits: 4 MiB of text, 64 levels, 100,000 nodes
 * and 16 MiB of strings after aliases are expanded (a YAML bomb is refused, not expanded).
 * Duplicate keys, merge keys (<<) and NUL characters are refused.
 * Scalars follow the YAML 1.2 core schema; what is quoted is a string.
 */
struct yaml_doc {
	json_t *value;
	json_t *lines; /* object: field path "spec.devices[1]" to line number */
	int line;      /* where the document begins */
};

struct yaml_docs {
	struct yaml_doc *items;
	size_t count;
};

/* name (a file's name or "-") only serves the error: "name:LINE: …". Empty documents are skipped. */
int yaml_parse(const char *text, size_t len, const char *name, struct yaml_docs *ret, struct error *err);
void yaml_docs_done(struct yaml_docs *docs);
/* The line of a field path, or of its nearest parent that has one. */
int yaml_line_of(const struct yaml_doc *doc, const char *path);
/* JSON to YAML text as kubectl prints it (keys in the order in which they stand); caller frees. */
char *yaml_text(const json_t *value);
