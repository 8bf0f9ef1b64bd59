/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/arena.h"

#include "base/mem.h"

#include <stdint.h>

#define BLOCK_SIZE 4096
#define ALIGN (_Alignof(max_align_t))

struct arena_block {
	struct arena_block *next;
	size_t size;
	_Alignas(max_align_t) char data[];
};

void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = a->blocks;
	size_t need = (size + ALIGN - 1) & ~(ALIGN - 1);

	if (need < size || need > PTRDIFF_MAX - sizeof(*b))
		abort();
	if (!b || need > a->free) {
		size_t room = need > BLOCK_SIZE ? need : BLOCK_SIZE;

		b = xcalloc(1, sizeof(*b) + room);
		b->size = room;
		b->next = a->blocks;
		a->blocks = b;
		a->free = room;
	}
	a->free -= need;
	a->used += need;
	return b->data + (b->size - a->free - need);
}

void arena_done(struct arena *a)
{
	struct arena_block *next;

	for (struct arena_block *b = a->blocks; b; b = next) {
		next = b->next;
		free(b);
	}
	*a = (struct arena){ 0 };
}
