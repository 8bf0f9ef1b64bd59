/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/sighting.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <stdio.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

void sighting_text(const struct sighting *s, char text[static SIGHTING_MAX])
{
	(void)snprintf(text, SIGHTING_MAX, "%lld %ld %s %lld %lld", (long long)s->used.tv_sec,
		       s->used.tv_nsec, s->boot, (long long)s->at, (long long)s->unused);
}

bool sighting_parse(const char *text, struct sighting *ret)
{
	long long sec, at, unused;
	struct sighting s = { 0 };

	if (sscanf(text, "%lld %ld %39s %lld %lld", &sec, &s.used.tv_nsec, s.boot, &at, &unused) !=
		    5 ||
	    unused < 0)
		return false;
	s.used.tv_sec = sec;
	s.at = at;
	s.unused = unused;
	*ret = s;
	return true;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool sighting_next(const struct sighting *before, const struct sighting *look, struct sighting *ret)
{
	bool same = before && same_time(&before->used, &look->used);
	/* one machine's count from its start goes on; what another counted cannot be gone on with */
	bool goes_on = before && streq(before->boot, look->boot) && look->at >= before->at;

	if (goes_on && look->at - before->at < SIGHTING_STEP_S) {
		*ret = *before;
		if (!same)
			ret->unused = 0;
		return false;
	}
	*ret = *look;
	ret->unused = same ? before->unused + (goes_on ? look->at - before->at : 0) : 0;
	return true;
}

bool sighting_is_left(const struct sighting *before, const struct sighting *known, int64_t limit)
{
	return before && before->unused > limit && known->unused >= before->unused + SIGHTING_STEP_S;
}

void sighting_now(struct sighting *ret)
{
	cleanup_free char *boot = NULL;
	struct timespec now = { 0 };

	*ret = (struct sighting){ 0 };
	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* which stands still while the machine sleeps */
	ret->at = now.tv_sec;
	/* a machine that cannot be told from others measures nothing */
	if (file_read(BOOT_ID, sizeof(ret->boot), &boot, NULL, NULL) < 0 ||
	    sscanf(boot, "%39s", ret->boot) != 1)
		(void)snprintf(ret->boot, sizeof(ret->boot), "unknown-%d", (int)getpid());
}
