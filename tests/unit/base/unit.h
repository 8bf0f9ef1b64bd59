/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* cmocka.h wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

/* A directory of the test's own, below TMPDIR; the test removes it. */
static inline char *temporary_dir(void)
{
	const char *base = getenv("TMPDIR");
	char *path = xasprintf("%s/qm-unit.XXXXXX", base && *base ? base : "/tmp");

	assert_non_null(mkdtemp(path));
	return path;
}
