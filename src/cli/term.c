/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/term.h"

#include "base/clock.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>

bool term_has_colour(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && !streq(term, "dumb");
}

const char *term_style(FILE *out, enum style style)
{
	static const char *const escapes[] = {
		[STYLE_PLAIN] = "\033[0m", [STYLE_GOOD] = "\033[32m", [STYLE_WARN] = "\033[33m",
		[STYLE_BAD] = "\033[31m",  [STYLE_FAINT] = "\033[2m", [STYLE_BOLD] = "\033[1m",
	};

	return term_has_colour(out) ? escapes[style] : "";
}

enum style style_of_state(const char *state)
{
	static const char *const good[] = { "ONLINE",	 "Online", "Ready", "Bound",
					    "Available", "Active", NULL };
	static const char *const bad[] = { "OFFLINE", "Offline", "Failed", "Lost",
					   "Refused", "Missing", NULL };
	static const char *const warn[] = { "Pending",	"Degraded",    "Maintenance",
					    "Emptying", "Healing",     "Creating",
					    "Released", "Terminating", NULL };
	static const struct {
		const char *const *words;
		enum style style;
	} all[] = { { good, STYLE_GOOD }, { bad, STYLE_BAD }, { warn, STYLE_WARN } };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		for (const char *const *w = all[i].words; *w; w++)
			if (streq(*w, state))
				return all[i].style;
	return STYLE_PLAIN;
}

size_t term_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void term_put(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		(void)fputc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
}

/* ---- progress ------------------------------------------------------------------------------- */

static size_t line_width(FILE *out)
{
	struct winsize size;

	return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 80;
}

static double seconds(const struct progress *p)
{
	return (double)(clock_mono_ms(&clock_real) - p->began_ms) / 1000.0;
}

/* Bytes of text that fill at most width columns. */
static int cut(const char *text, size_t width)
{
	size_t n = 0, i = 0;

	while (text[i] && (n < width || ((unsigned char)text[i] & 0xc0) == 0x80)) {
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
		i++;
	}
	return (int)i;
}

static void draw(const struct progress *p)
{
	char line[600];

	(void)snprintf(line, sizeof(line), "%s%s%s", p->text, p->note[0] ? ": " : "", p->note);
	(void)fprintf(p->out, "\r\033[K%s·%s %.*s %s%.1fs%s", term_style(p->out, STYLE_WARN),
		      term_style(p->out, STYLE_PLAIN), cut(line, line_width(p->out) - 12), line,
		      term_style(p->out, STYLE_FAINT), seconds(p), term_style(p->out, STYLE_PLAIN));
	(void)fflush(p->out);
}

void progress_begin(struct progress *p, FILE *out, const char *format, ...)
{
	va_list ap;

	*p = (struct progress){ .out = out,
				.live = isatty(fileno(out)) && !streq(getenv("TERM"), "dumb") };
	p->began_ms = clock_mono_ms(&clock_real);
	va_start(ap, format);
	(void)vsnprintf(p->text, sizeof(p->text), format, ap);
	va_end(ap);
	if (p->live)
		draw(p);
}

void progress_note(struct progress *p, const char *format, ...)
{
	char note[sizeof(p->note)];
	va_list ap;
	bool changed;

	va_start(ap, format);
	(void)vsnprintf(note, sizeof(note), format, ap);
	va_end(ap);
	changed = !streq(note, p->note);
	memcpy(p->note, note, sizeof(note));
	if (p->live) {
		draw(p);
	} else if (changed && note[0]) {
		(void)fprintf(p->out, "%s: %s\n", p->text, note);
		(void)fflush(p->out);
	}
}

void progress_end(struct progress *p, bool ok, const char *format, ...)
{
	char text[sizeof(p->note)];
	va_list ap;

	(void)snprintf(text, sizeof(text), "%s", p->text);
	if (format) {
		va_start(ap, format);
		(void)vsnprintf(text, sizeof(text), format, ap);
		va_end(ap);
	}
	if (p->live)
		(void)fprintf(p->out, "\r\033[K%s%s%s %s %s%.1fs%s\n",
			      term_style(p->out, ok ? STYLE_GOOD : STYLE_BAD), ok ? "✓" : "✗",
			      term_style(p->out, STYLE_PLAIN), text,
			      term_style(p->out, STYLE_FAINT), seconds(p),
			      term_style(p->out, STYLE_PLAIN));
	else
		(void)fprintf(p->out, "%s (%.1fs)%s\n", text, seconds(p), ok ? "" : " failed");
	(void)fflush(p->out);
}
