/* SPDX-License-Identifier: Apache-2.0 */
#include "handle.h"

#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define UNDO_MS 10000

struct call call_begin(const struct hostvol *h)
{
	return (struct call){ .h = h,
			      .host = h->host,
			      .deadline_ms = h->host->mono_ms(h->host) + h->deadline_ms,
			      .begun = atomic_load(&h->cancelled) };
}

int call_left(const struct call *c, int max, struct error *err)
{
	int64_t left = c->deadline_ms - c->host->mono_ms(c->host);

	if (!c->undoing && atomic_load(&c->h->cancelled) != c->begun)
		return error_set(err, ECANCELED, "the call was cancelled");
	if (left <= 0)
		return error_set(err, ETIMEDOUT, "not done within %d ms", c->h->deadline_ms);
	return max > 0 && left > max ? max : (int)left;
}

struct call call_undo(const struct call *c)
{
	struct call undo = *c;

	undo.undoing = true;
	undo.deadline_ms = c->host->mono_ms(c->host) + UNDO_MS;
	return undo;
}

void call_log(const struct call *c, enum hostvol_log_level level, const char *format, ...)
{
	char message[600];
	va_list args;

	if (!c->h->log)
		return;
	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	c->h->log(level, message, c->h->log_userdata);
}

int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, "out of memory");
}

json_t *object_copy(const json_t *o)
{
	cleanup_json json_t *copy = json_object();
	const char *key;
	json_t *value;

	if (!copy)
		return NULL;
	json_object_foreach ((json_t *)o, key, value) {
		if (json_object_set(copy, key, value) < 0)
			return NULL;
	}
	return TAKE_PTR(copy);
}

char *json_compose(const json_t *o, size_t flags)
{
	size_t len = json_dumpb(o, NULL, 0, flags | JSON_ENCODE_ANY);
	cleanup_free char *text = len ? malloc(len + 1) : NULL;

	if (!text || json_dumpb(o, text, len, flags | JSON_ENCODE_ANY) != len)
		return NULL;
	text[len] = '\0';
	return TAKE_PTR(text);
}

int text_format(char **ret, struct error *err, const char *format, ...)
{
	va_list args;
	char *text;
	int r;

	va_start(args, format);
	r = vasprintf(&text, format, args);
	va_end(args);
	if (r < 0)
		return no_memory(err);
	*ret = text;
	return 0;
}

void hash_text(char ret[static HASH_TEXT_MAX], size_t n, const char *const *parts)
{
	XXH3_state_t state;
	XXH128_hash_t h;

	XXH3_INITSTATE(&state);
	XXH3_128bits_reset(&state);
	/* with the final NUL, so that ("a", "bc") and ("ab", "c") differ */
	for (size_t i = 0; i < n; i++)
		XXH3_128bits_update(&state, parts[i], strlen(parts[i]) + 1);
	h = XXH3_128bits_digest(&state);
	snprintf(ret, HASH_TEXT_MAX, "%016llx%016llx", (unsigned long long)h.high64,
		 (unsigned long long)h.low64);
}

int host_read_line(const struct hostvol_host *host, const char *path, char *buf, size_t size)
{
	cleanup_free char *full = NULL, *text = NULL;
	char *start, *end;
	int r;

	buf[0] = '\0';
	r = text_format(&full, NULL, "%s%s", host->root, path);
	if (r < 0)
		return r;
	r = file_read(full, 64 << 10, &text, NULL, NULL);
	if (r < 0)
		return r;
	start = text + strspn(text, " \t\r\n");
	end = start + strcspn(start, "\r\n");
	while (end > start && isspace((unsigned char)end[-1]))
		end--;
	snprintf(buf, size, "%.*s", (int)(end - start), start);
	return 0;
}
