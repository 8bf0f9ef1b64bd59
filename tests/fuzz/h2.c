/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "h2/session.h"

/*
 * What a client sends to a server's HTTP/2 session, after the greeting. The first byte says in
 * pieces of what size it arrives. Requests are answered in a way that depends on their path.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KEPT_MAX 4

struct fuzz {
	struct session_env env;
	struct session *session;
	struct h2_call *kept[KEPT_MAX]; /* streams that go on */
	size_t kept_count;
};

static const uint8_t settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };

static void answer(struct fuzz *f, struct h2_call *c)
{
	const struct h2_header fields[] = { { "x-method", h2_call_method(c) }, { 0 } };
	const char *path = h2_call_path(c);
	size_t len;
	const void *body = h2_call_body(c, &len);

	switch (path[0] ? path[1] : 0) {
	case 'k': /* a stream that is kept */
		h2_call_start(c, 200, fields);
		h2_call_write(c, body, len);
		if (f->kept_count < KEPT_MAX)
			f->kept[f->kept_count++] = h2_call_ref(c);
		break;
	case 't': /* trailers */
		h2_call_start(c, 200, NULL);
		h2_call_write(c, "text", 4);
		h2_call_end(c, fields);
		break;
	case 'n': /* no answer */
		break;
	default:
		h2_call_reply(c, 200, fields, body, len);
	}
}

static void run_handlers(struct fuzz *f)
{
	struct h2_call *c;

	while ((c = TAILQ_FIRST(&f->env.queue))) {
		TAILQ_REMOVE(&f->env.queue, c, queue_entry);
		c->queued = false;
		answer(f, c);
		h2_call_unref(c);
	}
}

static void update_session(struct fuzz *f)
{
	struct hub_item *item;

	while ((item = hub_next(f->env.hub))) {
		struct h2_call *c = container_of(item, struct h2_call, item);

		session_update(c);
		call_unref(c);
	}
}

static bool send_all(struct fuzz *f)
{
	const uint8_t *out;
	ssize_t n;

	while ((n = nghttp2_session_mem_send(f->session->http, &out)) > 0)
		;
	return n == 0;
}

static bool feed(struct fuzz *f, const uint8_t *data, size_t size)
{
	if (nghttp2_session_mem_recv(f->session->http, data, size) < 0 ||
	    session_check(f->session) < 0)
		return false;
	run_handlers(f);
	for (size_t i = 0; i < f->kept_count; i++)
		h2_call_write(f->kept[i], "more", 4);
	update_session(f);
	return send_all(f);
}

static void finish(struct fuzz *f)
{
	session_drain(f->session);
	send_all(f);
	session_free(f->session);
	while (f->kept_count > 0)
		h2_call_unref(f->kept[--f->kept_count]);
	update_session(f);
	hub_lock(f->env.hub);
	if (f->env.hub->held != 0 || !TAILQ_EMPTY(&f->env.queue))
		abort();
	hub_unlock(f->env.hub);
	hub_unref(f->env.hub);
	pthread_cond_destroy(&f->env.more);
}

static void run(const uint8_t *data, size_t size, bool any_authority)
{
	struct fuzz f = { .env = { .max_body = 4096, .any_authority = any_authority } };
	size_t piece = size > 0 && data[0] ? data[0] : 65536;

	f.env.hub = hub_new();
	TAILQ_INIT(&f.env.queue);
	hub_cond_init(&f.env.more);
	f.session = session_new(&f.env, &(struct h2_peer){ .is_unix = true });
	if (!f.env.hub || !f.session)
		abort();
	if (feed(&f, (const uint8_t *)NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN) &&
	    feed(&f, settings, sizeof(settings)))
		for (size_t at = 1; at < size; at += piece)
			if (!feed(&f, data + at, size - at < piece ? size - at : piece))
				break;
	finish(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	run(data, size, false);
	run(data, size, true);
	return 0;
}
