/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "handle.h"

/* A connection as text, taken apart. Borrowed from o. */
struct info {
	json_t *o; /* owned */
	const char *driver; /* NULL: not said */
	const json_t *data; /* the parameters */
	json_t *flat; /* owned: what data points to where the connection is flat */
	const char *volume_id; /* as a record says it; NULL: as the parameters say it */
	const char *consumer; /* "" where not said */
};

/* A connection info (nested or flat), or an attachment record. */
int info_parse(const char *json, struct info *ret, struct error *err);
void info_done(struct info *i);

/* The library's errors are the same as the callers', in a structure of their own. */
int give_error(const struct error *from, int r, struct hostvol_error *to);
/* Text of o (compact) for the caller. */
int give_json(const json_t *o, char **ret, struct error *err);
