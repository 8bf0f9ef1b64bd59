/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A growable byte string. Zero-initialise; data is always NUL-terminated once non-NULL. */
struct buf {
	char *data;
	size_t len;
	size_t cap;
};

void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Hands the string over (never NULL) and empties the buf. */
char *buf_take(struct buf *b);
void buf_done(struct buf *b);

/* A list of owned strings. */
struct strv {
	char **items; /* NULL-terminated once non-NULL */
	size_t count;
};

void strv_add(struct strv *v, const char *s);
void strv_add_take(struct strv *v, char *s);
bool strv_contains(const struct strv *v, const char *s);
/* Takes one such out, the others may change places; whether there was one. */
bool strv_remove(struct strv *v, const char *s);
void strv_done(struct strv *v);

bool str_has_prefix(const char *s, const char *prefix);
bool str_has_suffix(const char *s, const char *suffix);
/* Of candidates (NULL-terminated), the one most like word, or NULL where none is near. */
const char *str_suggest(const char *word, const char *const *candidates);
/* Length of the UTF-8 character at s, of which left bytes (at least 1) are there; 0 where there is none. */
size_t utf8_len(const void *s, size_t left);
/* Kubernetes names: DNS-1123 subdomain (up to 253) and label (up to 63). */
bool name_is_subdomain(const char *s);
bool name_is_label(const char *s);
