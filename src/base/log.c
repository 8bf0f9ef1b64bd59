/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *log_part = "";
static enum log_level log_level = LOG_LEVEL_INFO;

void log_init(const char *part, enum log_level level)
{
	log_part = part;
	log_level = level;
}

/* A name from outside must not be able to begin a line of its own or to steer a terminal. */
static void flatten(char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == 0x7f)
			s[i] = ' ';
}

void log_at(enum log_level level, const char *format, ...)
{
	static const char *const names[] = { "debug", "info", "warn", "error" };
	char line[2048], now[TIME_TEXT_MAX];
	va_list args;
	size_t len;
	int n;

	if (level < log_level)
		return;
	n = snprintf(line, sizeof(line), "%s %-5s %s%s",
		     time_text_micro(clock_wall_ms(&clock_real), now), names[level], log_part,
		     log_part[0] ? ": " : "");
	len = n < 0 ? 0 : (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1;
	va_start(args, format);
	vsnprintf(line + len, sizeof(line) - len, format, args);
	va_end(args);
	len = strlen(line);
	flatten(line, len);
	line[len == sizeof(line) - 1 ? len - 1 : len] = '\n';
	len += len < sizeof(line) - 1;
	/* one write, so that the lines of threads and processes do not mix */
	if (write(STDERR_FILENO, line, len) < 0)
		return;
}
