/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/*
 * The YAML 1.2 core schema, shared by reader and writer: what a plain (unquoted) scalar means.
 * 0 and a new value; -ERANGE: a number that JSON or 64 bits cannot hold (.inf, .nan, 10^30).
 */
int yaml_plain_value(const char *text, size_t len, json_t **ret);

/* Whether a string must be quoted to be read back as a string, by readers of YAML 1.1 too. */
bool yaml_needs_quotes(const char *text);
