/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_clock(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t real_wall(void *userdata)
{
	return read_clock(CLOCK_REALTIME);
}

static int64_t real_mono(void *userdata)
{
	return read_clock(CLOCK_MONOTONIC);
}

const struct clock clock_real = { .wall_ms = real_wall, .mono_ms = real_mono };

int64_t clock_wall_ms(const struct clock *c)
{
	return c->wall_ms(c->userdata);
}

int64_t clock_mono_ms(const struct clock *c)
{
	return c->mono_ms(c->userdata);
}

int await_fd(int fd, short events, int64_t until_ms)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		int64_t left = until_ms - clock_mono_ms(&clock_real);
		int r = poll(&p, 1, left <= 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left);

		if (r > 0)
			return 0;
		if (r == 0 && left <= INT_MAX)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/* Division that rounds down, so that times before 1970 have a positive fraction. */
static int64_t seconds_of(int64_t ms, int *ret_ms)
{
	int rest = (int)(ms % 1000);

	*ret_ms = rest < 0 ? rest + 1000 : rest;
	return ms / 1000 - (rest < 0);
}

static size_t date_text(int64_t wall_ms, char buf[static TIME_TEXT_MAX], int *ret_ms)
{
	time_t s = (time_t)seconds_of(wall_ms, ret_ms);
	struct tm tm;

	if (!gmtime_r(&s, &tm))
		tm = (struct tm){ .tm_year = 70, .tm_mday = 1 };
	return strftime(buf, TIME_TEXT_MAX - 8, "%Y-%m-%dT%H:%M:%S", &tm);
}

const char *time_text(int64_t wall_ms, char buf[static TIME_TEXT_MAX])
{
	int ms;
	size_t len = date_text(wall_ms, buf, &ms);

	snprintf(buf + len, TIME_TEXT_MAX - len, "Z");
	return buf;
}

const char *time_text_micro(int64_t wall_ms, char buf[static TIME_TEXT_MAX])
{
	int ms;
	size_t len = date_text(wall_ms, buf, &ms);

	snprintf(buf + len, TIME_TEXT_MAX - len, ".%03d000Z", ms);
	return buf;
}

/* Exactly count digits, then the character end (or anything where it is '\0'). */
static bool digits(const char **s, int count, char end, int *ret)
{
	int value = 0;

	for (int i = 0; i < count; i++, (*s)++) {
		if (!isdigit((unsigned char)**s))
			return false;
		value = value * 10 + (**s - '0');
	}
	*ret = value;
	if (!end)
		return true;
	return *(*s)++ == end;
}

static bool parse_fraction(const char **s, int *ret_ms)
{
	int unit = 100, ms = 0;

	if (**s == '.') {
		(*s)++;
		if (!isdigit((unsigned char)**s))
			return false;
		for (; isdigit((unsigned char)**s); (*s)++, unit /= 10)
			ms += (**s - '0') * unit;
	}
	*ret_ms = ms;
	return true;
}

static bool parse_zone(const char **s, int *ret_minutes)
{
	int sign, hours, minutes;

	if (**s == 'Z' || **s == 'z') {
		(*s)++;
		*ret_minutes = 0;
		return true;
	}
	if (**s != '+' && **s != '-')
		return false;
	sign = *(*s)++ == '-' ? -1 : 1;
	if (!digits(s, 2, ':', &hours) || !digits(s, 2, '\0', &minutes) || hours > 23 ||
	    minutes > 59)
		return false;
	*ret_minutes = sign * (hours * 60 + minutes);
	return true;
}

static bool parse_date(const char **s, struct tm *tm)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year, leap;

	if (!digits(s, 4, '-', &year) || !digits(s, 2, '-', &tm->tm_mon) ||
	    !digits(s, 2, '\0', &tm->tm_mday))
		return false;
	leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
	tm->tm_year = year - 1900;
	tm->tm_mon--;
	return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 &&
	       tm->tm_mday <= days[tm->tm_mon] + (tm->tm_mon == 1 ? leap : 0);
}

int time_parse(const char *text, int64_t *ret_wall_ms)
{
	struct tm tm = { 0 };
	int ms, zone;

	if (!parse_date(&text, &tm))
		return -EINVAL;
	if (*text != 'T' && *text != 't' && *text != ' ')
		return -EINVAL;
	text++;
	if (!digits(&text, 2, ':', &tm.tm_hour) || !digits(&text, 2, ':', &tm.tm_min) ||
	    !digits(&text, 2, '\0', &tm.tm_sec) || tm.tm_hour > 23 || tm.tm_min > 59 ||
	    tm.tm_sec > 60)
		return -EINVAL;
	if (!parse_fraction(&text, &ms) || !parse_zone(&text, &zone) || *text)
		return -EINVAL;
	*ret_wall_ms = ((int64_t)timegm(&tm) - zone * 60) * 1000 + ms;
	return 0;
}

const char *age_text(int64_t ms, char buf[static TIME_TEXT_MAX])
{
	enum { MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR, YEAR = 365 * DAY };
	/* below the bound: whole `unit`s, and the rest in `rest_unit`s where there is one */
	static const struct {
		int64_t below;
		int unit;
		char name;
		int rest_unit;
		char rest_name;
	} steps[] = {
		{ 2 * MINUTE, 1, 's', 0, 0 },	       { 10 * MINUTE, MINUTE, 'm', 1, 's' },
		{ 3 * HOUR, MINUTE, 'm', 0, 0 },       { 8 * HOUR, HOUR, 'h', MINUTE, 'm' },
		{ 2 * DAY, HOUR, 'h', 0, 0 },	       { 8 * DAY, DAY, 'd', HOUR, 'h' },
		{ 2 * (int64_t)YEAR, DAY, 'd', 0, 0 }, { 8 * (int64_t)YEAR, YEAR, 'y', DAY, 'd' },
		{ INT64_MAX, YEAR, 'y', 0, 0 },
	};
	int64_t s = ms > 0 ? ms / 1000 : 0; /* a clock that was set back: just made */
	size_t i = 0;
	int64_t rest;

	while (s >= steps[i].below)
		i++;
	rest = steps[i].rest_unit ? s % steps[i].unit / steps[i].rest_unit : 0;
	if (rest)
		snprintf(buf, TIME_TEXT_MAX, "%lld%c%lld%c", (long long)(s / steps[i].unit),
			 steps[i].name, (long long)rest, steps[i].rest_name);
	else
		snprintf(buf, TIME_TEXT_MAX, "%lld%c", (long long)(s / steps[i].unit),
			 steps[i].name);
	return buf;
}
