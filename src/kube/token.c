/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

#define REREAD_MS 60000

struct token {
	pthread_mutex_t lock;
	const struct clock *clock;
	char *text;
	char *file;
	int64_t read_ms;
};

/* Reads the file again; true if the token changed. A file that is gone for a moment leaves the old one. */
static bool reread(struct token *t)
{
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;

	t->read_ms = clock_mono_ms(t->clock);
	if (file_read(t->file, 64 * 1024, &text, NULL, &err) < 0) {
		log_warn("%s", err.message);
		return false;
	}
	text[strcspn(text, "\r\n")] = 0;
	if (streq(text, t->text))
		return false;
	free(t->text);
	t->text = TAKE_PTR(text);
	return true;
}

struct token *token_new(const char *text, const char *file, const struct clock *clock)
{
	struct token *t = xcalloc(1, sizeof(*t));

	pthread_mutex_init(&t->lock, NULL);
	t->clock = clock;
	t->text = text ? xstrdup(text) : NULL;
	t->file = file ? xstrdup(file) : NULL;
	if (t->file)
		reread(t);
	return t;
}

void token_free(struct token *t)
{
	if (!t)
		return;
	if (t->text)
		explicit_bzero(t->text, strlen(t->text));
	free(t->text);
	free(t->file);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

char *token_header(struct token *t)
{
	char *header;

	pthread_mutex_lock(&t->lock);
	if (t->file && clock_mono_ms(t->clock) - t->read_ms >= REREAD_MS)
		reread(t);
	header = t->text ? xasprintf("Bearer %s", t->text) : NULL;
	pthread_mutex_unlock(&t->lock);
	return header;
}

bool token_refused(struct token *t)
{
	bool changed;

	pthread_mutex_lock(&t->lock);
	changed = t->file && reread(t);
	pthread_mutex_unlock(&t->lock);
	return changed;
}
