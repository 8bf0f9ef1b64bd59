/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"

#include <stddef.h>

/* Bytes waiting to be taken in the order in which they came. Holds no memory while empty. */
struct fifo {
	struct buf bytes;
	size_t taken; /* of bytes, from the front */
};

void fifo_add(struct fifo *f, const void *data, size_t len);
/* What is next; valid until the next call. */
const char *fifo_data(const struct fifo *f);
size_t fifo_len(const struct fifo *f);
/* Forgets the first len bytes. */
void fifo_drop(struct fifo *f, size_t len);
/* Copies out and forgets at most size bytes; returns how many. */
size_t fifo_take(struct fifo *f, void *data, size_t size);
void fifo_done(struct fifo *f);
