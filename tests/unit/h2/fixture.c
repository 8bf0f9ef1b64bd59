/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "base/clock.h"
#include "base/file.h"
#include "h2/cert.h"

#include <stdio.h>
#include <time.h>

int64_t now_ms(void)
{
	return clock_mono_ms(&clock_real);
}

void fill_pattern(char *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		data[i] = (char)('a' + (i * 7 + i / 1000) % 26);
}

static void reply_text(struct h2_call *c, const char *text)
{
	h2_call_reply(c, 200, NULL, text, strlen(text));
}

static void handle_echo(struct h2_call *c)
{
	const struct h2_header headers[] = { { "x-method", h2_call_method(c) },
					     { "content-type", "application/octet-stream" },
					     { 0 } };
	size_t len;
	const void *body = h2_call_body(c, &len);

	h2_call_reply(c, 200, headers, body, len);
}

static void handle_bytes(struct h2_call *c, size_t len)
{
	cleanup_free char *data = xmalloc(len + 1);

	fill_pattern(data, len);
	h2_call_reply(c, 200, NULL, data, len);
}

static void handle_lines(struct h2_call *c, int count)
{
	const struct h2_header headers[] = { { "content-type", "text/plain" }, { 0 } };
	char text[32];
	struct h2_header trailers[] = { { "lines", text }, { 0 } };

	h2_call_start(c, 200, headers);
	for (int i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "line %d\n", i);
		h2_call_write(c, text, strlen(text));
	}
	snprintf(text, sizeof(text), "%d", count);
	h2_call_end(c, trailers);
}

static void count_gone(struct h2_call *c, void *userdata)
{
	struct fixture *f = userdata;

	assert_true(h2_call_gone(c));
	pthread_mutex_lock(&f->lock);
	f->gone++;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void handle_wait(struct h2_call *c, struct fixture *f)
{
	h2_call_start(c, 200, NULL);
	h2_call_on_gone(c, count_gone, f);
	pthread_mutex_lock(&f->lock);
	assert_true((size_t)f->watches < ARRAY_SIZE(f->waiting));
	f->waiting[f->watches++] = h2_call_ref(c);
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

static void handle_peer(struct h2_call *c)
{
	const struct h2_peer *peer = h2_call_peer(c);
	char text[64] = "tcp";

	if (peer->is_unix)
		snprintf(text, sizeof(text), "unix %u %d", peer->uid, peer->pid);
	reply_text(c, text);
}

static void handle_sleep(struct h2_call *c, int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
	reply_text(c, "slept");
}

static void handle(struct h2_call *c, void *userdata)
{
	struct fixture *f = userdata;
	const char *path = h2_call_path(c);
	int n;

	pthread_mutex_lock(&f->lock);
	f->handled++;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (streq(path, "/echo"))
		handle_echo(c);
	else if (sscanf(path, "/bytes/%d", &n) == 1)
		handle_bytes(c, (size_t)n);
	else if (sscanf(path, "/lines/%d", &n) == 1)
		handle_lines(c, n);
	else if (sscanf(path, "/sleep/%d", &n) == 1)
		handle_sleep(c, n);
	else if (streq(path, "/wait"))
		handle_wait(c, f);
	else if (streq(path, "/peer"))
		handle_peer(c);
	else if (streq(path, "/header"))
		reply_text(c, h2_call_header(c, "x-test") ? h2_call_header(c, "x-test") : "none");
	else if (!streq(path, "/forget"))
		h2_call_reply(c, 404, NULL, "no such path", 12);
}

void fixture_start(struct fixture *f)
{
	struct error err = ERROR_INIT;
	struct h2_listen listen = {
		.unix_path = f->socket,
		.tcp_port = 0,
		.cert_pem = f->cert,
		.key_pem = f->key,
		.workers = 4,
		.max_body = MAX_BODY,
	};

	if (h2_server_start(&listen, handle, f, &f->server, &err) < 0)
		fail_msg("%s", err.message);
}

void fixture_stop(struct fixture *f)
{
	h2_server_free(f->server);
	f->server = NULL;
}

struct h2_client *client_unix(const struct fixture *f)
{
	struct h2_target target = { .unix_path = f->socket };
	struct h2_client *c;

	assert_int_equal(h2_client_new(&target, &c, NULL), 0);
	return c;
}

struct h2_client *client_tls(const struct fixture *f, const char *host)
{
	struct h2_target target = {
		.host = host,
		.port = h2_server_port(f->server),
		.tls = true,
		.ca_pem = f->ca,
	};
	struct h2_client *c;

	assert_int_equal(h2_client_new(&target, &c, NULL), 0);
	return c;
}

int fixture_setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));
	cleanup_free char *ca_key = NULL;

	strcpy(f->dir, "/tmp/h2-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->socket, sizeof(f->socket), "%s/api.sock", f->dir);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	assert_int_equal(cert_make_ca("test CA", 30, &f->ca, &ca_key, NULL), 0);
	assert_int_equal(cert_make_server(f->ca, ca_key, "test", NULL, 30, &f->cert, &f->key, NULL),
			 0);
	fixture_start(f);
	f->client = client_unix(f);
	*state = f;
	return 0;
}

int fixture_teardown(void **state)
{
	struct fixture *f = *state;

	h2_client_free(f->client);
	h2_server_free(f->server);
	while (f->watches > 0)
		h2_call_unref(f->waiting[--f->watches]);
	assert_int_equal(access(f->socket, F_OK), -1); /* the server removes it */
	rmdir(f->dir);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f->ca);
	free(f->cert);
	free(f->key);
	free(f);
	return 0;
}

void fixture_await(struct fixture *f, const int *counter, int value)
{
	struct timespec until;
	int r = 0;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 10;
	pthread_mutex_lock(&f->lock);
	while (*counter < value && r == 0)
		r = pthread_cond_timedwait(&f->changed, &f->lock, &until);
	pthread_mutex_unlock(&f->lock);
	assert_int_equal(r, 0);
}

int fixture_count(struct fixture *f, const int *counter)
{
	int n;

	pthread_mutex_lock(&f->lock);
	n = *counter;
	pthread_mutex_unlock(&f->lock);
	return n;
}

struct h2_call *fixture_take_watch(struct fixture *f)
{
	struct h2_call *c;

	fixture_await(f, &f->watches, 1);
	pthread_mutex_lock(&f->lock);
	c = f->waiting[--f->watches];
	pthread_mutex_unlock(&f->lock);
	return c;
}

int call(struct h2_client *c, const char *method, const char *path, const void *body, size_t len,
	 struct h2_response *ret)
{
	struct h2_request req = { .method = method, .path = path, .body = body, .body_len = len };
	struct error err = ERROR_INIT;

	if (h2_client_call(c, &req, 20000, ret, &err) < 0)
		fail_msg("%s", err.message);
	return ret->status;
}

void assert_get(struct h2_client *c, const char *path, const char *want)
{
	struct h2_response res;

	assert_int_equal(call(c, "GET", path, NULL, 0, &res), 200);
	assert_string_equal(res.body.data ? res.body.data : "", want);
	h2_response_done(&res);
}
