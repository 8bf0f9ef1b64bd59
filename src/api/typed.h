/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "schema/schema.h"

/*
 * Walking an object together with its schema, as patches and field ownership need it: which lists
 * are merged by a key, which are sets, which are replaced as a whole. A NULL field is untyped.
 */
struct field typed_root(const struct kind *kind);
const struct field *typed_child(const struct field *f, const char *key);
const struct field *typed_item(const struct field *f);
/* The key by which items of this list are told apart, or NULL. */
const char *typed_list_key(const struct field *f);
/* A list of values that are merged one by one (finalizers). */
bool typed_is_set(const struct field *f);
/* The item of a list whose key has that value; its index, or -1. */
int typed_find(const json_t *list, const char *key, const json_t *value);
