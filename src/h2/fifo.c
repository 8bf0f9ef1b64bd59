/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/fifo.h"

#include <assert.h>
#include <string.h>

void fifo_add(struct fifo *f, const void *data, size_t len)
{
	/* Moving at most as much as was taken keeps the cost of each byte constant. */
	if (f->taken > fifo_len(f)) {
		f->bytes.len -= f->taken;
		memmove(f->bytes.data, f->bytes.data + f->taken, f->bytes.len);
		f->taken = 0;
	}
	buf_add(&f->bytes, data, len);
}

const char *fifo_data(const struct fifo *f)
{
	return f->bytes.data ? f->bytes.data + f->taken : "";
}

size_t fifo_len(const struct fifo *f)
{
	return f->bytes.len - f->taken;
}

void fifo_drop(struct fifo *f, size_t len)
{
	assert(len <= fifo_len(f));
	f->taken += len;
	if (fifo_len(f) == 0)
		fifo_done(f);
}

size_t fifo_take(struct fifo *f, void *data, size_t size)
{
	size_t n = fifo_len(f) < size ? fifo_len(f) : size;

	if (n == 0)
		return 0;
	memcpy(data, fifo_data(f), n);
	fifo_drop(f, n);
	return n;
}

void fifo_done(struct fifo *f)
{
	buf_done(&f->bytes);
	f->bytes = (struct buf){ 0 };
	f->taken = 0;
}
