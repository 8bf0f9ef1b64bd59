/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/connect.h"

/*
 * Follows one object until fn is content (returns non-zero, which is returned) or the time is up
 * (-ETIMEDOUT). fn gets NULL while the object is not there; it is called again at least every
 * tick_ms with what was last known, so that a display can move.
 */
typedef int (*follow_fn)(const json_t *object, void *userdata);
int follow(const struct session *s, const struct kind *k, const char *ns, const char *name,
	   int64_t timeout_ms, int tick_ms, follow_fn fn, void *userdata, struct error *err);
