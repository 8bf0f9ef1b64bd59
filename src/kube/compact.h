/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/str.h"

#include <pthread.h>
#include <stdint.h>

/*
 * JSON values in as few bytes as many alike ones need, for a cache: what recurs (keys, phases, classes)
 * is written once into a table and then by its number; UUIDs and decimal numbers in strings lose their
 * text. An object of Kubernetes takes a quarter of its compact text, and is read faster than that.
 * The table only grows, up to a limit; what comes later is written out.
 */
#define COMPACT_WORDS 1024
struct compact {
	pthread_mutex_t lock; /* for writers; what a number stands for never changes */
	char *words[COMPACT_WORDS];
	unsigned count;
	uint16_t index[COMPACT_WORDS * 2]; /* by hash: number + 1 */
	uint32_t seen[COMPACT_WORDS]; /* by hash: words that may come again, and how often they came */
};

void compact_init(struct compact *c);
void compact_done(struct compact *c);
/* Appends the value. */
void compact_write(struct compact *c, const json_t *value, struct buf *ret);
/* The value (new reference) from what compact_write gave, with the same table; NULL where it is not that. */
json_t *compact_read(const struct compact *c, const void *data, size_t len);
