/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/steps.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

static const char *current = "";
static int64_t begun_ms;

static bool live(void)
{
	return isatty(STDOUT_FILENO);
}

void step_begin(const char *name)
{
	current = name;
	begun_ms = clock_mono_ms(&clock_real);
	if (live()) {
		printf("… %s", name);
		fflush(stdout);
	}
}

void step_note(const char *format, ...)
{
	va_list args;

	if (!live())
		return;
	printf("\r\033[K… %s: ", current);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	fflush(stdout);
}

static void finish(const char *mark)
{
	if (live())
		printf("\r\033[K");
	printf("%s %s", mark, current);
}

void step_done(const char *format, ...)
{
	va_list args;

	finish("✓");
	if (*format) {
		printf(": ");
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
	}
	printf(" (%.1f s)\n", (double)(clock_mono_ms(&clock_real) - begun_ms) / 1000);
	fflush(stdout);
}

void step_failed(const struct error *err)
{
	finish("✗");
	printf("\n");
	fflush(stdout);
	fprintf(stderr, "%s\n", err->message);
}
