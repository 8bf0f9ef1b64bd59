/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/handle.h"

/*
 * RUN/KIND/<hash of name>: this library made what has the name, in this boot. Set before it is
 * made and cleared once it is gone, so that it can be told from an administrator's, after a crash
 * too.
 */
int mark_set(const struct call *c, const char *kind, const char *name, struct error *err);
bool mark_is_set(const struct call *c, const char *kind, const char *name);
void mark_clear(const struct call *c, const char *kind, const char *name);

struct mark_audit {
	const char *kind, *what; /* what it is to people: "image" */
	const char *driver; /* whose records' targets are such names */
	bool repair;
	/* Takes it away: 1; 0: it is not there. */
	int (*remove)(const struct call *c, const char *name, bool repair, struct error *err);
};
/* Adds to findings every marked name that is the target of no record; 1: one could not be removed. */
int mark_audit(const struct call *c, const struct mark_audit *audit, json_t *findings,
	       struct error *err);
