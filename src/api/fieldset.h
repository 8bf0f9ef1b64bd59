/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/typed.h"
#include "base/str.h"

/*
 * Sets of fields in Kubernetes' FieldsV1 form: {"f:spec": {"f:type": {}, "f:conditions":
 * {"k:{\"type\":\"Ready\"}": {".": {}, "f:status": {}}}}}. NULL is the empty set. Results are new
 * references; arguments are borrowed.
 */
json_t *fieldset_of(const struct field *f, const json_t *object);
json_t *fieldset_union(const json_t *a, const json_t *b);
json_t *fieldset_minus(const json_t *a, const json_t *b);
json_t *fieldset_both(const json_t *a, const json_t *b);
/* What was set or became another value, and what vanished, from old (may be NULL) to new. */
void fieldset_compare(const struct field *f, const json_t *old, const json_t *new,
		      json_t **ret_changed, json_t **ret_removed);
/* Adds ".spec.type", ".status.conditions[type=\"Ready\"].status". */
void fieldset_paths(const json_t *set, const char *prefix, struct strv *ret);
/* Removes the fields of the set from object; containers that become empty go too. */
void fieldset_remove(const struct field *f, json_t *object, const json_t *set);
/* Server-side apply's merge of config into a copy of live. */
json_t *typed_merge(const struct field *f, const json_t *live, const json_t *config);
