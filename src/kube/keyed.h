/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * A set of things ordered by their key: an array of pointers to structs whose first member is
 * `const char *key` (or `char *`). The set does not own them. Small, and iterates in order.
 */
struct keyed {
	void **items;
	size_t count, cap;
};

/* Where the key is, or would be. */
size_t keyed_find(const struct keyed *k, const char *key, bool *ret_found);
void *keyed_get(const struct keyed *k, const char *key); /* NULL: none */
void keyed_insert(struct keyed *k, size_t at, void *item);
void *keyed_remove(struct keyed *k, size_t at);
void keyed_done(struct keyed *k); /* frees the array only */
