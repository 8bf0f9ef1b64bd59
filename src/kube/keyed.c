/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/keyed.h"

#include "base/mem.h"

size_t keyed_find(const struct keyed *k, const char *key, bool *ret_found)
{
	size_t low = 0, high = k->count;

	*ret_found = false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(*(const char *const *)k->items[middle], key);

		if (order == 0) {
			*ret_found = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *keyed_get(const struct keyed *k, const char *key)
{
	bool found;
	size_t at = keyed_find(k, key, &found);

	return found ? k->items[at] : NULL;
}

void keyed_insert(struct keyed *k, size_t at, void *item)
{
	if (k->count == k->cap) {
		k->cap = k->cap ? k->cap * 2 : 16;
		k->items = xrealloc(k->items, k->cap * sizeof(*k->items));
	}
	memmove(k->items + at + 1, k->items + at, (k->count - at) * sizeof(*k->items));
	k->items[at] = item;
	k->count++;
}

void *keyed_remove(struct keyed *k, size_t at)
{
	void *item = k->items[at];

	k->count--;
	memmove(k->items + at, k->items + at + 1, (k->count - at) * sizeof(*k->items));
	return item;
}

void keyed_done(struct keyed *k)
{
	free(k->items);
	*k = (struct keyed){ 0 };
}
