/* SPDX-License-Identifier: Apache-2.0 */
#include "local/paths.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

static const char default_run[] = "/run/quartermaster";

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
	return from_env("QM_RUN_DIR", default_run);
}

static char *below(const char *dir, const char *format, va_list args)
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

static uint64_t run_hash(void)
{
	return XXH64(run_dir(), strlen(run_dir()), 0);
}

const char *instance_name(void)
{
	static char name[8];

	if (streq(run_dir(), default_run))
		return "qm";
	snprintf(name, sizeof(name), "qm%04x", (unsigned)(run_hash() & 0xffff));
	return name;
}

int instance_number(void)
{
	return streq(run_dir(), default_run) ? 0 : (int)(1 + run_hash() % 254);
}
