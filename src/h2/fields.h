/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/h2.h"

#include <nghttp2/nghttp2.h>

/* The most that a header block may take, counted as HTTP/2 counts it. */
#define FIELDS_MAX (64 * 1024)

/* Header fields in one allocation: name, NUL, value, NUL, and so on. Zero-initialise. */
struct fields {
	struct buf text;
	size_t count;
	size_t size; /* names, values and 32 bytes for each field, as SETTINGS_MAX_HEADER_LIST_SIZE */
};

void fields_add(struct fields *f, const char *name, const char *value);
void fields_add_bytes(struct fields *f, const void *name, size_t name_len, const void *value,
		      size_t value_len);
/* All of a list ended by name NULL; NULL is an empty list. */
void fields_add_list(struct fields *f, const struct h2_header *list);
/* The first of that name, or NULL. */
const char *fields_get(const struct fields *f, const char *name);
/* An array for nghttp2 (caller frees) that points into the fields. */
nghttp2_nv *fields_nv(const struct fields *f);
/* A list ended by name NULL, text included, in one allocation (caller frees). Never NULL. */
struct h2_header *fields_list(const struct fields *f);
void fields_done(struct fields *f);
