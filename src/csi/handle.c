/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/handle.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789-"

/* The part of text up to the stop character; what follows that, or NULL where there is none. */
static const char *take_part(const char *text, char stop, char *ret)
{
	size_t len = strspn(text, LETTERS);

	if (!len || len > HANDLE_MAX || text[len] != stop)
		return NULL;
	memcpy(ret, text, len);
	ret[len] = '\0';
	return stop ? text + len + 1 : text + len;
}

int handle_parse(const char *text, struct handle *ret, struct error *err)
{
	struct handle h = { 0 };
	char kind[HANDLE_MAX + 1];
	const char *rest;

	if (strnlen(text, HANDLE_MAX + 1) <= HANDLE_MAX && str_has_prefix(text, "v1.") &&
	    (rest = take_part(text + 3, '.', h.pool)) && (rest = take_part(rest, '.', kind)) &&
	    !kind[1] && strchr("dfbws", kind[0]) && take_part(rest, '\0', h.name)) {
		h.kind = (enum volume_kind)kind[0];
		*ret = h;
		return 0;
	}
	return error_set(err, ENOENT, "\"%.128s\" is not an id that this driver gives", text);
}

char *handle_format(const char *pool, enum volume_kind kind, const char *name)
{
	return xasprintf("v1.%s.%c.%s", pool, (char)kind, name);
}
