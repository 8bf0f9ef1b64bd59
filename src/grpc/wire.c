/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc/wire.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

void frame_head(uint8_t head[static GRPC_FRAME_HEAD], size_t len)
{
	head[0] = 0;
	head[1] = (uint8_t)(len >> 24);
	head[2] = (uint8_t)(len >> 16);
	head[3] = (uint8_t)(len >> 8);
	head[4] = (uint8_t)len;
}

static enum grpc_code bad_flag(uint8_t flag, const char *encoding, struct error *err)
{
	if (flag == 1 && encoding && !streq(encoding, "identity")) {
		error_set(err, EOPNOTSUPP,
			  "The message is compressed (%.40s), which is not supported", encoding);
		return GRPC_UNIMPLEMENTED;
	}
	if (flag == 1)
		error_set(err, EPROTO, "The message is compressed, but no grpc-encoding says how");
	else
		error_set(err, EPROTO, "The message begins with the unknown flag %u", flag);
	return GRPC_INTERNAL;
}

enum grpc_code frame_read(const void *body, size_t len, const char *encoding, size_t max,
			  const uint8_t **ret, size_t *ret_len, struct error *err)
{
	const uint8_t *p = body;
	size_t size;

	if (len < GRPC_FRAME_HEAD) {
		error_set(err, EPROTO, "The body of %zu bytes holds no message", len);
		return GRPC_INTERNAL;
	}
	size = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (p[0] != 0)
		return bad_flag(p[0], encoding, err);
	if (size > max) {
		error_set(err, EMSGSIZE, "The message has %zu bytes, at most %zu are taken", size,
			  max);
		return GRPC_RESOURCE_EXHAUSTED;
	}
	if (size != len - GRPC_FRAME_HEAD) {
		error_set(err, EPROTO,
			  "The body has %zu bytes where one message of %zu bytes is expected",
			  len - GRPC_FRAME_HEAD, size);
		return GRPC_INTERNAL;
	}
	*ret = p + GRPC_FRAME_HEAD;
	*ret_len = size;
	return GRPC_OK;
}

/* HTTP/2 allows no blank at either end of a value. */
static bool is_plain(char c, bool at_end)
{
	return c > ' ' ? c <= '~' && c != '%' : c == ' ' && !at_end;
}

char *percent_encode(const char *text)
{
	size_t left = strlen(text), n;
	struct buf out = { 0 };

	for (; left > 0; text += n, left -= n) {
		n = utf8_len(text, left);
		if (n == 0) {
			n = 1;
			buf_puts(&out, "?");
		} else if (n == 1 && is_plain(*text, out.len == 0 || left == 1)) {
			buf_add(&out, text, 1);
		} else {
			for (size_t i = 0; i < n; i++)
				buf_printf(&out, "%%%02X", (unsigned char)text[i]);
		}
	}
	return buf_take(&out);
}

static int hex_value(char c)
{
	if (isdigit((unsigned char)c))
		return c - '0';
	if (isxdigit((unsigned char)c))
		return tolower((unsigned char)c) - 'a' + 10;
	return -1;
}

char *percent_decode(const char *text)
{
	char *out = xstrdup(text), *to = out;

	while (*text) {
		int high = *text == '%' ? hex_value(text[1]) : -1;
		int low = high >= 0 ? hex_value(text[2]) : -1;

		if (low < 0) {
			*to++ = *text++;
		} else {
			*to++ = high || low ? (char)(high << 4 | low) : '?';
			text += 3;
		}
	}
	*to = 0;
	return out;
}

int timeout_parse(const char *text, int64_t *ret_ms)
{
	int64_t n = 0;
	int digits = 0;

	for (; isdigit((unsigned char)*text); text++, digits++) {
		if (digits == 8)
			return -EINVAL;
		n = n * 10 + (*text - '0');
	}
	if (digits == 0 || !*text || text[1])
		return -EINVAL;
	switch (*text) {
	case 'H':
		*ret_ms = n * 3600 * 1000;
		return 0;
	case 'M':
		*ret_ms = n * 60 * 1000;
		return 0;
	case 'S':
		*ret_ms = n * 1000;
		return 0;
	case 'm':
		*ret_ms = n;
		return 0;
	case 'u':
		*ret_ms = (n + 999) / 1000;
		return 0;
	case 'n':
		*ret_ms = (n + 999999) / 1000000;
		return 0;
	}
	return -EINVAL;
}

const char *timeout_format(int ms, char text[static TIMEOUT_TEXT_MAX])
{
	if (ms < 100000000)
		snprintf(text, TIMEOUT_TEXT_MAX, "%dm", ms);
	else
		snprintf(text, TIMEOUT_TEXT_MAX, "%dS", ms / 1000);
	return text;
}

bool content_type_is_grpc(const char *type)
{
	if (!type || !str_has_prefix(type, "application/grpc"))
		return false;
	type += strlen("application/grpc");
	if (str_has_prefix(type, "+proto"))
		type += strlen("+proto");
	return *type == 0 || *type == ';' || *type == ' ';
}
