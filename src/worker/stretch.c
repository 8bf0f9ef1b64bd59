/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/stretch.h"

#include <string.h>

static size_t block_end(size_t at, size_t len)
{
	return len - at < STRETCH_BLOCK ? len : at + STRETCH_BLOCK;
}

static bool is_zero(const char *data, size_t len)
{
	return data[0] == 0 && memcmp(data, data + 1, len - 1) == 0;
}

bool stretch_next(const char *data, size_t len, size_t *at, size_t *ret_end)
{
	size_t start = *at;
	while (start < len && is_zero(data + start, block_end(start, len) - start))
		start = block_end(start, len);
	if (start >= len)
		return false;
	size_t end = block_end(start, len);
	while (end < len && !is_zero(data + end, block_end(end, len) - end))
		end = block_end(end, len);
	*at = start;
	*ret_end = end;
	return true;
}
