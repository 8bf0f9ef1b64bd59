/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What a terminal can do that a file or pipe cannot. */
enum style { STYLE_PLAIN, STYLE_GOOD, STYLE_WARN, STYLE_BAD, STYLE_FAINT, STYLE_BOLD };

/* A terminal that understands escapes, and NO_COLOR is not set. */
bool term_has_colour(FILE *out);
/* The escape that turns a style on, or "" where there is no colour; STYLE_PLAIN turns all off. */
const char *term_style(FILE *out, enum style style);
/* The style that a word such as ONLINE, Pending or Failed deserves. */
enum style style_of_state(const char *state);
/* Columns that the text takes; UTF-8. */
size_t term_width(const char *text);
/* Text of others: control characters become "?", so that no object can play with a terminal. */
void term_put(FILE *out, const char *text);

/*
 * Steps of something long. On a terminal each is one line that lives: a mark, the text, what it
 * waits for, the time; elsewhere a plain line at its end, and one whenever the note changes.
 */
struct progress {
	FILE *out;
	bool live;
	int64_t began_ms;
	char text[160], note[400];
};
void progress_begin(struct progress *p, FILE *out, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* What it waits for now; "" for nothing in particular. Call now and then, so that the time moves. */
void progress_note(struct progress *p, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Ends the step; the text replaces the one from the beginning, unless it is NULL. */
void progress_end(struct progress *p, bool ok, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
