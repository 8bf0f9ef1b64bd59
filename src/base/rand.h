/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* From the kernel's generator. */
void rand_bytes(void *data, size_t len);
#define UUID_TEXT_MAX 37
const char *uuid_text(char buf[static UUID_TEXT_MAX]);

/* A seeded generator (splitmix64) for simulations and jitter: same seed, same sequence. */
struct prng {
	uint64_t state;
};
uint64_t prng_next(struct prng *p);
/* 0 … n-1 */
uint64_t prng_below(struct prng *p, uint64_t n);
