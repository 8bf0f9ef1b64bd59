/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * How long a file has not been used, without comparing two machines' clocks: a file's time, which its user sets, is only
 * ever compared with the same file's time as it was seen before, and what lies between two sightings is counted by one
 * machine since its start. What no machine has measured does not count.
 */
struct sighting {
	struct timespec used; /* the file's time */
	char boot[40]; /* of the machine that saw it */
	int64_t at; /* seconds since then that it was awake */
	int64_t unused; /* seconds that the time has been seen to stay the same */
};

#define SIGHTING_MAX 160 /* bytes of its text */
#define SIGHTING_STEP_S 3600 /* less is not worth writing down */

void sighting_text(const struct sighting *s, char text[static SIGHTING_MAX]);
/* false: it is none. */
bool sighting_parse(const char *text, struct sighting *ret);
/*
 * What is known after another look: used, boot and at are that look's, before is what was written down (NULL: nothing).
 * true: *ret is to be written down.
 */
bool sighting_next(const struct sighting *before, const struct sighting *look,
		   struct sighting *ret);
/*
 * Whether it has not been used for longer than that: by what was written down before, and again for a step since then. In
 * a long time between two looks its user may have been as far from it as we were (a pool that was down, a machine that
 * slept): from the first look after that on it has a step's time to say that it is there.
 */
bool sighting_is_left(const struct sighting *before, const struct sighting *known, int64_t limit);
/* This machine now; used and unused are 0. */
void sighting_now(struct sighting *ret);
