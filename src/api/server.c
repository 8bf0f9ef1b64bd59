/* SPDX-License-Identifier: Apache-2.0 */
#include "api/server.h"
#include "api/serving.h"
#include "base/file.h"
#include "base/log.h"
#include "h2/cert.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

/* Writers wait for the disk on these threads; what waits together is committed together. */
#define WORKERS 8
#define BODY_MAX (3 * 1024 * 1024)
#define CERT_DAYS 3650
/* Events expire, so the keeper looks now and then although nobody wakes it. */
#define KEEPER_EVERY_MS 60000
#define KEEPER_STACK (256 * 1024)

void server_wake(struct api_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->work = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static void on_work(void *userdata)
{
	server_wake(userdata);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void handle_known(struct api_server *s, struct request *r)
{
	int rc;

	if (docs_handle(r, false))
		return;
	rc = request_route(r);
	if (rc == -EPERM)
		reply_fault(r, FAULT_METHOD,
			    "the server does not allow this method on the requested resource");
	else if (rc < 0)
		reply_fault(r, FAULT_NOT_FOUND, "the server could not find the requested resource");
	else
		rest_handle(s, r);
}

static void handle(struct h2_call *call, void *userdata)
{
	struct api_server *s = userdata;
	struct request r = { .call = call, .method = h2_call_method(call) };

	if (request_parse(&r, h2_call_path(call)) < 0)
		reply_fault(&r, FAULT_BAD_REQUEST, "the path or query of the request is malformed");
	else if (docs_handle(&r, true))
		;
	else if (tokens_find(s->tokens, h2_call_header(call, "authorization"), &r.who) < 0)
		reply_fault(&r, FAULT_UNAUTHORIZED, "Unauthorized");
	else
		handle_known(s, &r);
	request_done(&r);
}

/* ---- the keeper ----------------------------------------------------------------------------- */

static int64_t now_ms(void)
{
	return clock_mono_ms(&clock_real);
}

/* Until something is to be done, at most to that time. */
static void keeper_sleep(struct api_server *s, int64_t until_ms)
{
	const struct timespec until = { .tv_sec = until_ms / 1000,
					.tv_nsec = until_ms % 1000 * 1000000 };
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	while (!s->work && !s->stopping && rc == 0)
		rc = pthread_cond_timedwait(&s->wake, &s->lock, &until);
	s->work = false;
	pthread_mutex_unlock(&s->lock);
}

static bool keeper_goes_on(struct api_server *s)
{
	bool stopping;

	pthread_mutex_lock(&s->lock);
	stopping = s->stopping;
	pthread_mutex_unlock(&s->lock);
	return !stopping;
}

static void *keeper(void *arg)
{
	struct api_server *s = arg;

	while (keeper_goes_on(s)) {
		int64_t until = now_ms() + KEEPER_EVERY_MS;
		int next;

		store_collect(s->store);
		next = watches_tend(s);
		if (next >= 0 && now_ms() + next < until)
			until = now_ms() + next;
		keeper_sleep(s, until);
	}
	return NULL;
}

static int keeper_start(struct api_server *s, struct error *err)
{
	pthread_attr_t attr;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, KEEPER_STACK);
	rc = pthread_create(&s->keeper, &attr, keeper, s);
	pthread_attr_destroy(&attr);
	if (rc)
		return error_errno(err, rc, "A thread for the API server cannot be started");
	s->keeper_runs = true;
	return 0;
}

/* ---- start and stop ------------------------------------------------------------------------- */

struct identity_files {
	char *ca, *cert, *key;
};

static void identity_files_done(struct identity_files *f)
{
	free(f->ca);
	free(f->cert);
	free(f->key);
}

static int write_pem(const char *dir, const char *name, const char *pem, mode_t mode,
		     struct error *err)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);

	return file_write(path, pem, strlen(pem), mode, err);
}

static int read_pem(const char *dir, const char *name, char **ret)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name);
	size_t len;

	return file_read(path, 0, ret, &len, NULL);
}

/* A CA of one certificate, whose key is forgotten at once: nobody can make another one. */
static int make_identity(const char *dir, struct identity_files *ret, struct error *err)
{
	cleanup_free char *ca_path = xasprintf("%s/ca.crt", dir);
	struct identity_files f = { 0 };
	char *ca_key = NULL;
	int rc = cert_make_ca("quartermaster", CERT_DAYS, &f.ca, &ca_key, err);

	unlink(ca_path); /* it vouches for the other two: it goes first and comes last */
	if (rc >= 0)
		rc = cert_make_server(f.ca, ca_key, "quartermaster api", NULL, CERT_DAYS, &f.cert,
				      &f.key, err);
	if (ca_key)
		explicit_bzero(ca_key, strlen(ca_key));
	free(ca_key);
	if (rc >= 0)
		rc = write_pem(dir, "tls.key", f.key, 0600, err);
	if (rc >= 0)
		rc = write_pem(dir, "tls.crt", f.cert, 0644, err);
	if (rc >= 0)
		rc = write_pem(dir, "ca.crt", f.ca, 0644, err);
	if (rc < 0)
		identity_files_done(&f);
	else
		*ret = f;
	return rc;
}

static int load_identity(const char *dir, struct identity_files *ret, struct error *err)
{
	struct identity_files f = { 0 };

	/* ca.crt is written last: where it is, all three are. */
	if (read_pem(dir, "ca.crt", &f.ca) >= 0 && read_pem(dir, "tls.crt", &f.cert) >= 0 &&
	    read_pem(dir, "tls.key", &f.key) >= 0) {
		*ret = f;
		return 0;
	}
	identity_files_done(&f);
	return make_identity(dir, ret, err);
}

static int remembered_port(const char *dir)
{
	cleanup_free char *path = xasprintf("%s/port", dir), *text = NULL;
	size_t len;
	int port;

	if (file_read(path, 64, &text, &len, NULL) < 0)
		return 0;
	port = atoi(text);
	return port > 0 && port < 65536 ? port : 0;
}

static int remember_port(const char *dir, int port, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/port", dir);
	char text[16];
	int len = snprintf(text, sizeof(text), "%d\n", port);

	return port == remembered_port(dir) ? 0 : file_write(path, text, (size_t)len, 0644, err);
}

static int start_listening(struct api_server *s, const struct api_options *options,
			   struct error *err)
{
	struct identity_files f = { 0 };
	struct h2_listen listen = { .unix_path = options->unix_path,
				    .tcp_port = options->tcp_port,
				    .workers = WORKERS,
				    .max_body = BODY_MAX };
	int rc = load_identity(options->state_dir, &f, err);

	if (rc < 0)
		return rc;
	listen.cert_pem = f.cert;
	listen.key_pem = f.key;
	if (listen.tcp_port == 0)
		listen.tcp_port = remembered_port(options->state_dir);
	rc = h2_server_start(&listen, handle, s, &s->h2, err);
	if (rc == -EADDRINUSE && options->tcp_port == 0 && listen.tcp_port != 0) {
		/* Somebody else has it now. */
		listen.tcp_port = 0;
		rc = h2_server_start(&listen, handle, s, &s->h2, err);
	}
	identity_files_done(&f);
	return rc < 0 ? rc : remember_port(options->state_dir, h2_server_port(s->h2), err);
}

static int open_store(struct api_server *s, const struct api_options *options, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/api.db", options->state_dir);
	const struct store_options store = { .path = path };
	int rc = mkdir_parents(options->state_dir, 0700, err);

	if (rc >= 0)
		rc = store_open(&store, &s->store, err);
	if (rc >= 0)
		rc = store_bootstrap(s->store, err);
	return rc;
}

int api_server_start(const struct api_options *options, struct api_server **ret, struct error *err)
{
	struct api_server *s = xcalloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int rc;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	s->tokens = tokens_new(options->state_dir);
	rc = open_store(s, options, err);
	if (rc >= 0) {
		store_on_work(s->store, on_work, s);
		rc = keeper_start(s, err);
	}
	if (rc >= 0)
		rc = start_listening(s, options, err);
	if (rc < 0) {
		api_server_stop(s);
		return rc;
	}
	*ret = s;
	return 0;
}

int api_server_port(const struct api_server *s)
{
	return h2_server_port(s->h2);
}

void api_server_stop(struct api_server *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stopping = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	if (s->keeper_runs)
		pthread_join(s->keeper, NULL);
	watches_end_all(s);
	if (s->h2)
		h2_server_free(s->h2);
	store_close(s->store);
	tokens_free(s->tokens);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
