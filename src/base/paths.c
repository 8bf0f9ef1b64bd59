/* SPDX-License-Identifier: Apache-2.0 */
#include "base/paths.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *from_env(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

const char *state_dir(void)
{
	return from_env("QM_STATE_DIR", "/var/lib/quartermaster");
}

const char *run_dir(void)
{
	return from_env("QM_RUN_DIR", "/run/quartermaster");
}

__attribute__((format(printf, 2, 0))) static char *below(const char *dir, const char *format,
							 va_list args)
{
	cleanup_free char *rest = NULL;

	if (vasprintf(&rest, format, args) < 0)
		abort();
	return xasprintf("%s/%s", dir, rest);
}

char *state_path(const char *format, ...)
{
	va_list args;
	char *path;

	va_start(args, format);
	path = below(state_dir(), format, args);
	va_end(args);
	return path;
}

char *run_path(const char *format, ...)
{
	va_list args;
	char *path;

	va_start(args, format);
	path = below(run_dir(), format, args);
	va_end(args);
	return path;
}
