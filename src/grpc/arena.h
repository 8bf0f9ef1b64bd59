/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Memory that is given back all at once. Zero-initialise; for one thread at a time. */
struct arena_block;
struct arena {
	struct arena_block *blocks; /* the newest first */
	size_t free; /* bytes that are left in the newest */
	size_t used; /* bytes that were asked for so far */
};

/* Zeroed, aligned for anything. Never NULL. */
void *arena_alloc(struct arena *a, size_t size);
void arena_done(struct arena *a);
