/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/client.h"

#include "base/mem.h"

#include <errno.h>
#include <sys/epoll.h>

#define CONNECTIONS_MAX 8 /* more than one only while a server allows too few streams on it */
#define PING_MS 30000
#define DIAL_AGAIN_MS 10

static const char closing[] = "The client is being closed";

/* ---- connections ----------------------------------------------------------------------- */

static void close_conn(struct client_conn *cc, const char *why)
{
	struct h2_client *c = cc->client;

	exchange_broken(cc, why);
	TAILQ_REMOVE(&c->conns, cc, entry);
	c->conn_count--;
	if (c->connecting == cc)
		c->connecting = NULL;
	conn_done(&cc->conn);
	nghttp2_session_del(cc->conn.session);
	free(cc);
}

static void fail_waiting(struct h2_client *c, struct error *err)
{
	struct h2_stream *s;

	error_prefix(err, "%s", c->name);
	while ((s = TAILQ_FIRST(&c->waiting)))
		exchange_finish(c, s, -err->code, err->message);
}

static int add_conn(struct h2_client *c, int fd, struct error *err)
{
	struct client_conn *cc = xcalloc(1, sizeof(*cc));
	nghttp2_session *http;
	SSL *ssl = NULL;
	int r;

	cc->client = c;
	TAILQ_INIT(&cc->streams);
	http = exchange_session(cc);
	if (c->tls)
		ssl = tls_connect(c->tls, fd,
				  c->target.tls_name ? c->target.tls_name : c->target.host);
	if (!http || (c->tls && !ssl)) {
		nghttp2_session_del(http);
		SSL_free(ssl);
		close(fd);
		free(cc);
		return error_set(err, ENOMEM, "Cannot set up a connection");
	}
	r = conn_init(&cc->conn, c->epoll_fd, fd, ssl, http, CONN_CONNECTING, err);
	cc->conn.tunnel = c->target.proxy_host ? tunnel_new(&c->target) : NULL;
	TAILQ_INSERT_TAIL(&c->conns, cc, entry);
	c->conn_count++;
	c->connecting = cc;
	if (r < 0)
		close_conn(cc, NULL);
	return r;
}

/* Tries the target's addresses until one does not fail at once. */
static void connect_next(struct h2_client *c, struct error *err)
{
	int r;

	do {
		int fd = dial_next(&c->dial, &c->target, err);

		r = fd < 0 ? fd : add_conn(c, fd, err);
	} while (r < 0 && dial_has_next(&c->dial));
	if (r == -EAGAIN)
		c->dial_again_ms = hub_now_ms() + DIAL_AGAIN_MS;
	else if (r < 0)
		fail_waiting(c, err);
}

static void connect_first(struct h2_client *c)
{
	struct error err = ERROR_INIT;

	dial_done(&c->dial);
	if (dial_init(&c->dial, &c->target, &err) < 0)
		fail_waiting(c, &err);
	else
		connect_next(c, &err);
}

/* A connection is over. While it was being set up, the next address may do better. */
static void conn_failed(struct client_conn *cc, struct error *err)
{
	struct h2_client *c = cc->client;
	bool connecting = cc == c->connecting;

	close_conn(cc, err->message);
	if (connecting && dial_has_next(&c->dial))
		connect_next(c, err);
	else if (connecting)
		fail_waiting(c, err);
}

static struct client_conn *pick_conn(struct h2_client *c)
{
	struct client_conn *cc, *best = NULL;

	TAILQ_FOREACH (cc, &c->conns, entry)
		if (cc->conn.state == CONN_OPEN && !cc->draining &&
		    (!best || cc->open < best->open))
			best = cc;
	/* Beyond its limit nghttp2 keeps requests until others end. */
	if (best && best->open >= exchange_limit(best) && c->conn_count < CONNECTIONS_MAX)
		return NULL;
	return best;
}

static void serve_waiting(struct h2_client *c)
{
	struct h2_stream *s;

	if (c->dial_again_ms && hub_now_ms() >= c->dial_again_ms)
		c->dial_again_ms = 0;
	while ((s = TAILQ_FIRST(&c->waiting))) {
		struct client_conn *cc = pick_conn(c);

		if (cc)
			exchange_submit(cc, s);
		else if (c->connecting || c->dial_again_ms)
			return;
		else
			connect_first(c);
	}
}

static void work_conn(struct client_conn *cc)
{
	struct error err = ERROR_INIT;

	if (conn_work(&cc->conn, cc->client->scratch, &err) < 0) {
		conn_failed(cc, &err);
		return;
	}
	cc->touched = true;
	if (cc->conn.state == CONN_OPEN) {
		cc->conn.setup_by = 0;
		if (cc->client->connecting == cc)
			cc->client->connecting = NULL;
	}
}

/*
 * A network may lose a silent connection without a word, and the next request would find out only by
 * its deadline; a socket of this machine cannot get lost.
 */
static bool keeps_alive(const struct client_conn *cc)
{
	return cc->open > 0 || !cc->client->target.unix_path;
}

/* What a peer said before it closed: the calls that it has not seen are sent again. */
static void hear_out(struct client_conn *cc)
{
	conn_work(&cc->conn, cc->client->scratch, NULL);
}

/* Sends what is there, keeps deadlines, closes what is not needed any more. */
static void tend_conn(struct client_conn *cc, int64_t now)
{
	struct h2_client *c = cc->client;
	struct error err = ERROR_INIT;
	int r = conn_tick(&cc->conn, now, keeps_alive(cc), c->target.ping_ms, &err);

	if (r == 0 && (cc->touched || cc->conn.pinged_ms)) {
		cc->touched = false;
		r = conn_flush(&cc->conn, c->scratch, &err);
		if (r < 0)
			hear_out(cc);
	}
	if (r < 0)
		conn_failed(cc, &err);
	else if (cc->open == 0 && cc != c->connecting && conn_is_flushed(&cc->conn) &&
		 (cc->draining || cc != TAILQ_FIRST(&c->conns)))
		close_conn(cc, NULL);
}

/* ---- the I/O thread -------------------------------------------------------------------- */

/* A caller has started, read or cancelled a stream. */
static void look_at(struct h2_client *c, struct h2_stream *s)
{
	size_t unacked;
	bool cancelled;

	if (!s->seen) {
		s->seen = true;
		s->waiting = true;
		stream_ref(s);
		TAILQ_INSERT_TAIL(&c->waiting, s, entry);
	}
	hub_lock(s->hub);
	cancelled = s->cancelled;
	unacked = s->unacked;
	s->unacked = 0;
	hub_unlock(s->hub);
	if (cancelled) {
		exchange_cancel(c, s);
	} else if (s->conn && unacked > 0) {
		nghttp2_session_consume_stream(s->conn->conn.session, s->id, unacked);
		s->conn->touched = true;
	}
}

static void take_posted(struct h2_client *c)
{
	struct hub_item *item;

	while ((item = hub_next(c->hub))) {
		struct h2_stream *s = container_of(item, struct h2_stream, item);

		look_at(c, s);
		stream_unref(s);
	}
}

static int next_timeout(const struct h2_client *c, int64_t now)
{
	const struct client_conn *cc;
	int64_t next = INT64_MAX;

	if (!TAILQ_EMPTY(&c->waiting) && !c->connecting)
		next = c->dial_again_ms; /* at once, where it is not set */
	TAILQ_FOREACH (cc, &c->conns, entry) {
		int64_t at = conn_next_ms(&cc->conn, keeps_alive(cc), c->target.ping_ms);

		if (at < next)
			next = at;
	}
	if (next == INT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now);
}

static void change_tls(struct h2_client *c, SSL_CTX *next)
{
	struct client_conn *cc;

	SSL_CTX_free(c->tls);
	c->tls = next;
	TAILQ_FOREACH (cc, &c->conns, entry)
		cc->draining = true;
}

/* False when the thread is to end. */
static bool tend(struct h2_client *c)
{
	struct client_conn *cc, *next;
	SSL_CTX *tls;
	int64_t now;
	bool stopping;

	hub_lock(c->hub);
	stopping = c->stopping;
	tls = TAKE_PTR(c->tls_next);
	hub_unlock(c->hub);
	if (tls)
		change_tls(c, tls);
	if (stopping)
		return false;
	serve_waiting(c);
	now = hub_now_ms();
	for (cc = TAILQ_FIRST(&c->conns); cc; cc = next) {
		next = TAILQ_NEXT(cc, entry);
		tend_conn(cc, now);
	}
	return true;
}

static void *io_main(void *arg)
{
	struct h2_client *c = arg;
	struct epoll_event events[CONNECTIONS_MAX + 1];

	do {
		int n = epoll_wait(c->epoll_fd, events, ARRAY_SIZE(events),
				   next_timeout(c, hub_now_ms()));

		for (int i = 0; i < n; i++) {
			void *ptr = events[i].data.ptr;

			if (ptr == c->hub)
				hub_quiet(c->hub);
			else
				work_conn(container_of(ptr, struct client_conn, conn));
		}
		take_posted(c);
	} while (tend(c));
	/* Here, since TLS says goodbye, and this thread is safe from SIGPIPE. */
	while (!TAILQ_EMPTY(&c->conns))
		close_conn(TAILQ_FIRST(&c->conns), closing);
	return NULL;
}

/* ---- public ---------------------------------------------------------------------------- */

static char *dup_or_null(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static int check_target(const struct h2_target *t, struct error *err)
{
	if (!t->unix_path && !t->host)
		return error_set(err, EINVAL, "An HTTP/2 target needs a unix socket or a host");
	if (!t->unix_path && (t->port <= 0 || t->port > UINT16_MAX))
		return error_set(err, EINVAL, "The HTTP/2 target %s has no valid port: %d", t->host,
				 t->port);
	if (t->proxy_host && (!t->tls || t->proxy_port <= 0 || t->proxy_port > UINT16_MAX))
		return error_set(err, EINVAL,
				 "The way to %s by the proxy %s needs TLS and the proxy's port",
				 t->host, t->proxy_host);
	return 0;
}

static void copy_target(struct h2_client *c, const struct h2_target *t)
{
	bool v6 = t->host && strchr(t->host, ':');

	c->target = (struct h2_target){
		.unix_path = dup_or_null(t->unix_path),
		.host = dup_or_null(t->host),
		.port = t->port,
		.tls = t->tls && !t->unix_path,
		.insecure = t->insecure,
		.tls_name = dup_or_null(t->tls_name),
		.proxy_host = t->unix_path ? NULL : dup_or_null(t->proxy_host),
		.proxy_port = t->proxy_port,
		.proxy_auth = dup_or_null(t->proxy_auth),
		.ping_ms = t->ping_ms > 0 ? t->ping_ms : PING_MS,
	};
	c->name = t->unix_path ? xstrdup(t->unix_path)
			       : xasprintf(v6 ? "[%s]:%d" : "%s:%d", t->host, t->port);
	c->target.authority = xstrdup(t->authority   ? t->authority
				      : t->unix_path ? "localhost"
						     : c->name);
}

static int start_io(struct h2_client *c, struct error *err)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int r;

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->hub = c->epoll_fd < 0 ? NULL : hub_new();
	ev.data.ptr = c->hub;
	if (!c->hub || epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->hub->event_fd, &ev) < 0)
		return error_errno(err, errno, "Cannot set up the HTTP/2 client");
	r = hub_thread(&c->io, "h2-client", io_main, c);
	if (r < 0)
		return error_errno(err, -r, "Cannot start the thread of the HTTP/2 client");
	c->io_runs = true;
	return 0;
}

int h2_client_new(const struct h2_target *target, struct h2_client **ret, struct error *err)
{
	struct h2_client *c;
	int r = check_target(target, err);

	if (r < 0)
		return r;
	c = xcalloc(1, sizeof(*c));
	c->epoll_fd = -1;
	c->scratch = xmalloc(sizeof(*c->scratch));
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->conns);
	copy_target(c, target);
	if (c->target.tls)
		r = tls_client_context(target->ca_pem, target->insecure, target->cert_pem,
				       target->key_pem, &c->tls, err);
	if (r == 0)
		r = start_io(c, err);
	if (r < 0) {
		h2_client_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

int h2_client_set_tls(struct h2_client *c, const char *ca_pem, const char *cert_pem,
		      const char *key_pem, struct error *err)
{
	SSL_CTX *tls, *unused;
	int r;

	if (!c->target.tls)
		return 0;
	r = tls_client_context(ca_pem, c->target.insecure, cert_pem, key_pem, &tls, err);
	if (r < 0)
		return r;
	hub_lock(c->hub);
	unused = c->tls_next;
	c->tls_next = tls;
	hub_wake(c->hub);
	hub_unlock(c->hub);
	SSL_CTX_free(unused);
	return 0;
}

static void stop_io(struct h2_client *c)
{
	struct error err = ERROR_INIT;

	hub_lock(c->hub);
	c->stopping = true;
	hub_wake(c->hub);
	hub_unlock(c->hub);
	if (c->io_runs)
		pthread_join(c->io, NULL);
	hub_lock(c->hub);
	c->hub->closed = true;
	hub_unlock(c->hub);
	take_posted(c);
	error_set(&err, ECONNRESET, "%s", closing);
	fail_waiting(c, &err);
}

void h2_client_free(struct h2_client *c)
{
	if (!c)
		return;
	if (c->hub)
		stop_io(c);
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	dial_done(&c->dial);
	SSL_CTX_free(c->tls);
	SSL_CTX_free(c->tls_next);
	hub_unref(c->hub);
	free((char *)c->target.unix_path);
	free((char *)c->target.host);
	free((char *)c->target.authority);
	free((char *)c->target.tls_name);
	free((char *)c->target.proxy_host);
	free((char *)c->target.proxy_auth);
	free(c->name);
	free(c->scratch);
	free(c);
}

struct hub *client_hub(struct h2_client *c)
{
	return c->hub;
}

void client_request_fields(struct h2_client *c, const struct h2_request *req, struct fields *ret)
{
	fields_add(ret, ":method", req->method);
	fields_add(ret, ":scheme", c->target.tls ? "https" : "http");
	fields_add(ret, ":authority", c->target.authority);
	fields_add(ret, ":path", req->path);
	fields_add_list(ret, req->headers);
}
