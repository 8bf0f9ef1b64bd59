/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* strerror() is not safe in threads and strerrordesc_np() knows no invented numbers. */
static const char *describe(int code)
{
	const char *text = strerrordesc_np(code);

	return text ? text : "unknown error";
}

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list args;

	if (err) {
		err->code = code;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
	}
	return -code;
}

int error_errno(struct error *err, int code, const char *format, ...)
{
	va_list args;
	size_t len;

	if (err) {
		err->code = code;
		va_start(args, format);
		vsnprintf(err->message, sizeof(err->message), format, args);
		va_end(args);
		len = strlen(err->message);
		snprintf(err->message + len, sizeof(err->message) - len, ": %s", describe(code));
	}
	return -code;
}

int error_prefix(struct error *err, const char *format, ...)
{
	char old[sizeof(err->message)];
	va_list args;
	size_t len;

	if (!err)
		return -EIO;
	if (!err->code)
		err->code = EIO;
	memcpy(old, err->message, sizeof(old));
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	len = strlen(err->message);
	snprintf(err->message + len, sizeof(err->message) - len, ": %s",
		 old[0] ? old : describe(err->code));
	return -err->code;
}

const char *error_text(const struct error *err, int rc)
{
	return err && err->message[0] ? err->message : describe(rc < 0 ? -rc : rc);
}
