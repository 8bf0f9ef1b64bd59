/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/auth.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/config.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>

/* How often files are looked at, and a program that failed is run again. */
#define LOOK_MS 1000
#define RUN_AGAIN_MS 2000
/* A program that gives once more what was refused is not asked at every call. */
#define REFUSED_MS 10000

/* A text that stands in a file (path NULL: it does not) and may change there. */
struct text_file {
	char *path, *text;
	struct stat seen;
	bool warned;
};

struct auth {
	pthread_mutex_t lock;
	const struct clock *clock;
	struct h2_client *h2;
	struct text_file token, ca, cert, key;
	bool tls_behind; /* the HTTP/2 client does not have the certificates of the files yet */
	int64_t looked_ms;

	json_t *exec;
	struct exec_result gave;
	bool ran;
	int64_t failed_ms, refused_ms; /* 0: it has not */
	struct error failure;
	unsigned generation;
};

static void wipe(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

static void text_init(struct text_file *f, const char *path, const char *text)
{
	f->path = path ? xstrdup(path) : NULL;
	f->text = text ? xstrdup(text) : NULL;
}

static void text_done(struct text_file *f)
{
	wipe(&f->text);
	free(f->path);
}

static bool looks_the_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Reads the file where it has changed (or anyway); true if the text is another. A file that is gone for
 * a moment leaves the old one. */
static bool text_read(struct text_file *f, bool anyway)
{
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;
	struct stat st;

	if (!f->path)
		return false;
	if (stat(f->path, &st) == 0 && looks_the_same(&st, &f->seen) && !anyway)
		return false;
	if (file_read(f->path, 1 << 20, &text, NULL, &err) < 0) {
		if (!f->warned)
			log_warn("%s", err.message);
		f->warned = true;
		return false;
	}
	f->warned = false;
	f->seen = st;
	if (streq(text, f->text))
		return false;
	wipe(&f->text);
	f->text = TAKE_PTR(text);
	return true;
}

/* A token is one line. */
static bool token_read(struct auth *a, bool anyway)
{
	bool changed = text_read(&a->token, anyway);

	if (changed)
		a->token.text[strcspn(a->token.text, "\r\n")] = 0;
	return changed;
}

static void put_certificates(struct auth *a)
{
	bool given = a->gave.cert_pem != NULL;
	struct error err = ERROR_INIT;

	a->tls_behind =
		h2_client_set_tls(a->h2, a->ca.text, given ? a->gave.cert_pem : a->cert.text,
				  given ? a->gave.key_pem : a->key.text, &err) < 0;
	/* the files of a pair do not change at the same moment: it is tried again */
	if (a->tls_behind)
		log_debug("certificates: %s", err.message);
}

static void look(struct auth *a, bool anyway)
{
	int64_t now = clock_mono_ms(a->clock);
	bool other;

	if (!anyway && now - a->looked_ms < LOOK_MS)
		return;
	a->looked_ms = now;
	if (token_read(a, anyway))
		a->generation++;
	other = text_read(&a->ca, anyway);
	other |= text_read(&a->cert, anyway);
	other |= text_read(&a->key, anyway);
	if (!other && !a->tls_behind)
		return;
	put_certificates(a);
	if (!a->tls_behind)
		a->generation++;
}

/* Runs the program; where it gives something else than before, that counts from now on. */
static int run(struct auth *a, struct error *err)
{
	struct exec_result r = { 0 };
	int64_t now = clock_mono_ms(a->clock);
	bool certificate;

	if (a->failed_ms && now - a->failed_ms < RUN_AGAIN_MS)
		return error_set(err, EACCES, "%s", a->failure.message);
	a->failed_ms = 0;
	a->ran = false;
	if (exec_run(a->exec, &r, &a->failure) < 0) {
		a->failed_ms = clock_mono_ms(a->clock);
		return error_set(err, EACCES, "%s", a->failure.message);
	}
	certificate = !streq(r.cert_pem, a->gave.cert_pem) || !streq(r.key_pem, a->gave.key_pem);
	if (certificate || !streq(r.token, a->gave.token))
		a->generation++;
	exec_result_done(&a->gave);
	a->gave = r;
	a->ran = true;
	if (certificate)
		put_certificates(a);
	return 0;
}

struct auth *auth_new(const struct kube_config *config, struct h2_client *h2,
		      const struct clock *clock)
{
	struct auth *a = xcalloc(1, sizeof(*a));

	pthread_mutex_init(&a->lock, NULL);
	a->clock = clock;
	a->h2 = h2;
	text_init(&a->token, config->token_file, config->token);
	text_init(&a->ca, config->ca_file, config->ca_pem);
	text_init(&a->cert, config->cert_file, config->cert_pem);
	text_init(&a->key, config->key_file, config->key_pem);
	a->exec = config->exec ? json_deep_copy(config->exec) : NULL;
	look(a, true);
	return a;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	text_done(&a->token);
	text_done(&a->ca);
	text_done(&a->cert);
	text_done(&a->key);
	exec_result_done(&a->gave);
	json_decref(a->exec);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

void auth_use_done(struct auth_use *u)
{
	wipe(&u->header);
}

int auth_take(struct auth *a, struct auth_use *ret, struct error *err)
{
	const char *token;
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	look(a, false);
	if (a->exec && (!a->ran || clock_wall_ms(a->clock) >= a->gave.expires_ms))
		rc = run(a, err);
	if (rc == 0) {
		token = a->gave.token ? a->gave.token : a->token.text;
		ret->header = token ? xasprintf("Bearer %s", token) : NULL;
		ret->generation = a->generation;
	}
	pthread_mutex_unlock(&a->lock);
	return rc;
}

bool auth_refused(struct auth *a, unsigned generation)
{
	bool changed;
	int64_t now;

	pthread_mutex_lock(&a->lock);
	now = clock_mono_ms(a->clock);
	if (a->generation == generation)
		look(a, true);
	if (a->exec && a->generation == generation &&
	    (!a->refused_ms || now - a->refused_ms >= REFUSED_MS)) {
		run(a, NULL);
		a->refused_ms = a->generation == generation ? now : 0;
	}
	changed = a->generation != generation;
	pthread_mutex_unlock(&a->lock);
	return changed;
}
