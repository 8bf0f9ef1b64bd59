/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include "base/mem.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

static void buf_reserve(struct buf *b, size_t more)
{
	size_t need, cap;

	if (__builtin_add_overflow(b->len, more, &need) || need >= SIZE_MAX / 2)
		need = SIZE_MAX / 2; /* no such allocation succeeds: xrealloc ends the program */
	need++;
	if (need <= b->cap)
		return;
	cap = b->cap * 2 > need ? b->cap * 2 : need;
	b->data = xrealloc(b->data, cap < 64 ? 64 : cap);
	b->cap = cap < 64 ? 64 : cap;
	b->data[b->len] = '\0';
}

void buf_add(struct buf *b, const void *data, size_t len)
{
	buf_reserve(b, len);
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *format, ...)
{
	va_list args;
	size_t room = 80;

	for (;;) {
		int len;

		buf_reserve(b, room);
		va_start(args, format);
		len = vsnprintf(b->data + b->len, room + 1, format, args);
		va_end(args);
		if (len >= 0 && (size_t)len > room) {
			room = (size_t)len;
			continue;
		}
		b->len += len > 0 ? (size_t)len : 0;
		b->data[b->len] = '\0';
		return;
	}
}

char *buf_take(struct buf *b)
{
	char *data;

	buf_reserve(b, 0);
	data = b->data;
	*b = (struct buf){ 0 };
	return data;
}

void buf_done(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void strv_add(struct strv *v, const char *s)
{
	strv_add_take(v, xstrdup(s));
}

void strv_add_take(struct strv *v, char *s)
{
	/* grown at powers of two: the count itself says when an allocation is full */
	if ((v->count & (v->count + 1)) == 0)
		v->items = xrealloc(v->items, (v->count + 1) * 2 * sizeof(*v->items));
	v->items[v->count++] = s;
	v->items[v->count] = NULL;
}

bool strv_contains(const struct strv *v, const char *s)
{
	for (size_t i = 0; i < v->count; i++)
		if (streq(v->items[i], s))
			return true;
	return false;
}

bool strv_remove(struct strv *v, const char *s)
{
	for (size_t i = 0; i < v->count; i++)
		if (streq(v->items[i], s)) {
			free(v->items[i]);
			v->items[i] = v->items[--v->count];
			v->items[v->count] = NULL;
			return true;
		}
	return false;
}

void strv_done(struct strv *v)
{
	for (size_t i = 0; i < v->count; i++)
		free(v->items[i]);
	free(v->items);
	*v = (struct strv){ 0 };
}

bool str_has_prefix(const char *s, const char *prefix)
{
	return s && strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t len = s ? strlen(s) : 0, suffix_len = strlen(suffix);

	return s && len >= suffix_len && strcmp(s + len - suffix_len, suffix) == 0;
}

#define SUGGEST_MAX 64

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap neighbours) between a and b, case ignored. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
	unsigned rows[3][SUGGEST_MAX + 1];
	unsigned *before = rows[0], *last = rows[1], *row = rows[2], *spare;

	for (size_t j = 0; j <= b_len; j++)
		last[j] = before[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			int x = tolower((unsigned char)a[i - 1]),
			    y = tolower((unsigned char)b[j - 1]);

			row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
			    y == tolower((unsigned char)a[i - 2]) && before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[b_len];
}

const char *str_suggest(const char *word, const char *const *candidates)
{
	size_t len = strlen(word);
	unsigned best = (unsigned)(len / 3 > 1 ? len / 3 : 1) + 1;
	const char *found = NULL;

	if (len == 0 || len > SUGGEST_MAX)
		return NULL;
	for (; *candidates; candidates++) {
		size_t candidate_len = strlen(*candidates);
		unsigned d;

		if (candidate_len == 0 || candidate_len > SUGGEST_MAX)
			continue;
		d = distance(word, len, *candidates, candidate_len);
		if (d < best && d < candidate_len) {
			best = d;
			found = *candidates;
		}
	}
	return found;
}

static bool is_name(const char *s, size_t max, bool dots)
{
	size_t len = s ? strlen(s) : 0;
	bool at_edge = true; /* a letter or digit must come now */

	if (len == 0 || len > max)
		return false;
	for (size_t i = 0; i < len; i++) {
		bool alnum = (s[i] >= 'a' && s[i] <= 'z') || (s[i] >= '0' && s[i] <= '9');

		if (alnum)
			at_edge = false;
		else if (at_edge)
			return false;
		else if (s[i] == '.' && dots && s[i - 1] != '-')
			at_edge = true;
		else if (s[i] != '-')
			return false;
	}
	return !at_edge && s[len - 1] != '-';
}

bool name_is_subdomain(const char *s)
{
	return is_name(s, 253, true);
}

bool name_is_label(const char *s)
{
	return is_name(s, 63, false);
}

size_t utf8_len(const void *text, size_t left)
{
	const unsigned char *s = text;
	unsigned long code;
	size_t len;

	if (s[0] < 0x80)
		return 1;
	if (s[0] < 0xc2 || s[0] > 0xf4)
		return 0;
	len = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	if (len > left)
		return 0;
	code = s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (s[i] & 0x3f);
	}
	if ((len == 3 && code < 0x800) || (len == 4 && code < 0x10000) || code > 0x10ffff ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return len;
}
