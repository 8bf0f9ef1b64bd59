/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * On which copies of a file the descriptor that has its lock (loop_slots) is open, as the GlusterFS
 * client that serves the file says in .meta at the root of its mount. A client does not open a descriptor
 * with a lock again on a brick that comes back, nor on one that was not there when it was opened.
 */
struct copies {
	uint64_t slots; /* given */
	uint32_t connected; /* a bit for each copy whose brick the client is connected to */
	uint32_t open[2]; /* by which byte is locked; 0 in both: nothing is known */
};

/* root: where the client's mount is. */
int copies_look(const char *root, size_t n, struct copies *c, int timeout_ms, struct error *err);
/* Which of the two bytes its writer has. */
unsigned copies_slot(const struct copies *c);
/* Whether a copy that could be written to is not. */
bool copies_miss(const struct copies *c);
