/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * Where volumes live in a pool: <prefix>/<h[0:2]>/<h[2:4]>/<name>, h = xxh64(name) in hex, and
 * info/<that>.json beside it. Only names of [a-z0-9-] ever become part of a path.
 */
#define VOLUME_NAME_MAX 128
bool volume_name_ok(const char *name);
void volume_hash(const char *name, char first[static 3], char second[static 3]);
