/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "systems/glusterfs/plan.h"

/*
 * The options that a pool's volume gets, in one table: safe for databases first, then fast. What
 * is global to a trusted pool (shared storage, brick multiplexing, server quorum ratio) is left alone.
 */
struct volume_option {
	const char *name;
	const char *value;
	unsigned layouts; /* bits 1 << LAYOUT_*; 0: all */
	const char *why;
};
extern const struct volume_option volume_options[]; /* ended by name NULL */

/* All options of a layout. New reference: object of strings. */
json_t *volume_options_for(enum volume_layout layout);
