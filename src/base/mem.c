/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

static void *or_die(void *ptr)
{
	static const char text[] = "out of memory\n";

	if (ptr)
		return ptr;
	/* stdio may want memory itself */
	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(71);
	_exit(70);
}

void *xmalloc(size_t size)
{
	return or_die(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
	return or_die(calloc(count ? count : 1, size ? size : 1));
}

void *xrealloc(void *ptr, size_t size)
{
	return or_die(realloc(ptr, size ? size : 1));
}

char *xstrdup(const char *s)
{
	return or_die(strdup(s));
}

char *xstrndup(const char *s, size_t n)
{
	return or_die(strndup(s, n));
}

char *xasprintf(const char *format, ...)
{
	va_list args;
	char *text = NULL;
	int len;

	va_start(args, format);
	len = vasprintf(&text, format, args);
	va_end(args);
	return or_die(len < 0 ? NULL : text);
}
