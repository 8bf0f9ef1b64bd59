/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "kube/kube.h"

/* An object from JSON text that uses ' for ". */
static inline json_t *quoted(const char *text)
{
	char *copy = xstrdup(text);
	json_t *o = NULL;

	for (char *p = copy; *p; p++) {
		if (*p == '\'')
			*p = '"';
	}
	assert_int_equal(json_parse(copy, strlen(copy), &o, NULL), 0);
	free(copy);
	return o;
}
