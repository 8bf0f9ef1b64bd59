/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Time is injected where a decision depends on it, so that the simulation can run it faster.
 * wall_ms: since 1970; mono_ms: monotonic.
 */
struct clock {
	int64_t (*wall_ms)(void *userdata);
	int64_t (*mono_ms)(void *userdata);
	void *userdata;
};

extern const struct clock clock_real;

int64_t clock_wall_ms(const struct clock *c);
int64_t clock_mono_ms(const struct clock *c);

/* Waits until the descriptor is ready for these events of poll(2): 0, or -ETIMEDOUT at that time of clock_real's
 * mono_ms. */
int await_fd(int fd, short events, int64_t until_ms);

#define TIME_TEXT_MAX 40
/* RFC 3339 in UTC: "2026-11-15T20:52:06Z", and with microseconds as Lease and Event want it. */
const char *time_text(int64_t wall_ms, char buf[static TIME_TEXT_MAX]);
const char *time_text_micro(int64_t wall_ms, char buf[static TIME_TEXT_MAX]);
/* 0 and the time, or -EINVAL. */
int time_parse(const char *text, int64_t *ret_wall_ms);
/* "5s", "3m12s", "4h", "12d", as kubectl's AGE. */
const char *age_text(int64_t ms, char buf[static TIME_TEXT_MAX]);
