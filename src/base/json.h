/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * JSON is jansson's json_t; these are the few things that it lacks. Getters take any number of
 * keys and walk objects by them: jstr(pvc, "spec", "storageClassName"). All are NULL-safe: a
 * missing step gives NULL (or the stated default), never a crash. They return borrowed values.
 */
json_t *jget_path(const json_t *o, const char *const *keys);
#define jget(o, ...) jget_path((o), (const char *const[]){ __VA_ARGS__, NULL })
#define jstr(o, ...) json_string_value(jget((o), __VA_ARGS__))
#define jint(o, ...) json_integer_value(jget((o), __VA_ARGS__))
#define jbool(o, ...) json_is_true(jget((o), __VA_ARGS__))

/* Sets value (stolen) below the path, making objects on the way: jset(o, json_string("x"), "spec", "a"). */
int jset_path(json_t *o, json_t *value, const char *const *keys);
#define jset(o, value, ...) jset_path((o), (value), (const char *const[]){ __VA_ARGS__, NULL })

/* Text to value; at most 64 levels deep, no duplicate keys. The error names line and column. */
int json_parse(const char *text, size_t len, json_t **ret, struct error *err);
/*
 * Changes JSON text in place, so that json_parse takes what another program may hold though ours has no use for
 * it: an integer of more than 64 bits becomes a real, a NUL character U+FFFD, and what is nested deeper than 64
 * levels is left out. For answers of an API server, where one such object would hide all others of its list.
 */
void json_tame(char *text, size_t len);
/* Compact text, keys in the order in which they stand; the caller frees it. */
char *json_text(const json_t *o);
char *json_text_pretty(const json_t *o);

static inline void cleanup_json_p(json_t **o)
{
	json_decref(*o);
}
#define cleanup_json __attribute__((cleanup(cleanup_json_p)))
