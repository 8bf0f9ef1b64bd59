/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void rand_bytes(void *data, size_t len)
{
	unsigned char *p = data;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno != EINTR)
			abort(); /* no program of ours may go on with guessable tokens */
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
}

const char *uuid_text(char buf[static UUID_TEXT_MAX])
{
	unsigned char u[16];

	rand_bytes(u, sizeof(u));
	u[6] = (unsigned char)((u[6] & 0x0f) | 0x40); /* version 4 */
	u[8] = (unsigned char)((u[8] & 0x3f) | 0x80); /* variant of RFC 4122 */
	snprintf(buf, UUID_TEXT_MAX,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
		 u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
		 u[15]);
	return buf;
}

uint64_t prng_next(struct prng *p)
{
	uint64_t z = (p->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t prng_below(struct prng *p, uint64_t n)
{
	/* the high half of a product spreads evenly enough without a division */
	return (uint64_t)(((unsigned __int128)prng_next(p) * n) >> 64);
}
