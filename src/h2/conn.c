/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/conn.h"

#include "base/mem.h"
#include "h2/fields.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* Reads and writes in a row on one connection, before the others get their turn. */
#define TURNS 16

static int want_events(struct conn *c, uint32_t events, struct error *err)
{
	struct epoll_event ev = { .events = events, .data.ptr = c };

	if (c->events == events)
		return 0;
	if (epoll_ctl(c->epoll_fd, c->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &ev) < 0)
		return error_errno(err, errno, "Cannot watch a connection");
	c->events = events;
	return 0;
}

int conn_init(struct conn *c, int epoll_fd, int fd, SSL *ssl, nghttp2_session *session,
	      enum conn_state state, struct error *err)
{
	int64_t now = hub_now_ms();

	*c = (struct conn){
		.fd = fd,
		.epoll_fd = epoll_fd,
		.ssl = ssl,
		.session = session,
		.state = state,
		.setup_by = now + CONN_SETUP_MS,
		.heard_ms = now,
		.wrote_ms = now,
	};
	return want_events(c, state == CONN_CONNECTING ? EPOLLOUT : EPOLLIN, err);
}

void conn_done(struct conn *c)
{
	if (c->ssl && c->state == CONN_OPEN)
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	tunnel_free(TAKE_PTR(c->tunnel));
	if (c->fd >= 0) {
		/* a child that another thread has just forked may still hold the socket: then closing it does
		 * not take it out of epoll, which would go on to tell of a connection that is freed */
		epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
		close(c->fd);
	}
	fifo_done(&c->out);
	c->ssl = NULL;
	c->fd = -1;
}

static int finish_connect(struct conn *c, struct error *err)
{
	int so_error = 0;
	socklen_t len = sizeof(so_error);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &so_error, &len) < 0)
		so_error = errno;
	if (so_error)
		return error_errno(err, so_error, "Cannot connect");
	c->state = c->tunnel ? CONN_TUNNEL : c->ssl ? CONN_HANDSHAKE : CONN_OPEN;
	return 0;
}

static int make_tunnel(struct conn *c, struct error *err)
{
	int r = tunnel_work(c->tunnel, c->fd, err);

	if (r == -EAGAIN &&
	    want_events(c, tunnel_wants_write(c->tunnel) ? EPOLLOUT : EPOLLIN, err) < 0)
		return -EIO;
	if (r < 0)
		return r;
	tunnel_free(TAKE_PTR(c->tunnel));
	c->state = c->ssl ? CONN_HANDSHAKE : CONN_OPEN;
	return 0;
}

/* 0 when open, -EAGAIN when not yet. */
static int set_up(struct conn *c, struct error *err)
{
	int r;

	if (c->state == CONN_CONNECTING) {
		r = finish_connect(c, err);
		if (r < 0)
			return r;
	}
	if (c->state == CONN_TUNNEL) {
		r = make_tunnel(c, err);
		if (r < 0)
			return r;
	}
	if (c->state == CONN_HANDSHAKE) {
		r = tls_handshake(c->ssl, err);
		if (r == -EAGAIN &&
		    want_events(c, SSL_want_write(c->ssl) ? EPOLLOUT : EPOLLIN, err) < 0)
			return -EIO;
		if (r < 0)
			return r;
		c->state = CONN_OPEN;
	}
	return 0;
}

static ssize_t conn_read(struct conn *c, void *data, size_t size)
{
	ssize_t n;

	if (c->ssl)
		return tls_read(c->ssl, data, size);
	n = recv(c->fd, data, size, 0);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return n;
}

static ssize_t conn_write(struct conn *c, const void *data, size_t len)
{
	ssize_t n;

	if (c->ssl)
		return tls_write(c->ssl, data, len);
	n = send(c->fd, data, len, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	return n;
}

int conn_work(struct conn *c, struct conn_scratch *scratch, struct error *err)
{
	int r = c->state == CONN_OPEN ? 0 : set_up(c, err);

	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	for (int i = 0; i < TURNS; i++) {
		ssize_t n = conn_read(c, scratch->in, sizeof(scratch->in));

		if (n == -EAGAIN)
			break;
		if (n == 0)
			return error_set(err, ECONNRESET, "The peer closed the connection");
		if (n < 0)
			return error_errno(err, (int)-n, "The connection broke");
		c->heard_ms = hub_now_ms();
		c->pinged_ms = 0;
		n = nghttp2_session_mem_recv(c->session, (uint8_t *)scratch->in, (size_t)n);
		if (n < 0)
			return error_set(err, EPROTO, "The peer broke the rules of HTTP/2: %s",
					 nghttp2_strerror((int)n));
		if (!c->ssl && n < (ssize_t)sizeof(scratch->in))
			break;
	}
	return 0;
}

/* Writes data; what the socket does not take is kept. 1 when all went, 0 when not. */
static int put(struct conn *c, const char *data, size_t len, struct error *err)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = conn_write(c, data + done, len - done);

		if (n == -EAGAIN)
			break;
		if (n < 0)
			return error_errno(err, (int)-n, "The connection broke");
		c->wrote_ms = hub_now_ms();
		done += (size_t)n;
	}
	if (done < len)
		fifo_add(&c->out, data + done, len - done);
	return done == len;
}

static int put_kept(struct conn *c, struct error *err)
{
	while (fifo_len(&c->out) > 0) {
		ssize_t n = conn_write(c, fifo_data(&c->out), fifo_len(&c->out));

		if (n == -EAGAIN)
			return 0;
		if (n < 0)
			return error_errno(err, (int)-n, "The connection broke");
		c->wrote_ms = hub_now_ms();
		fifo_drop(&c->out, (size_t)n);
	}
	return 1;
}

/* Collects frames into few writes. 1 when all went, 0 when the socket is full or time is up. */
static int put_session(struct conn *c, struct conn_scratch *scratch, struct error *err)
{
	size_t used = 0;

	for (int turns = 0; turns < TURNS;) {
		const uint8_t *data;
		ssize_t n = nghttp2_session_mem_send(c->session, &data);
		int r;

		if (n < 0)
			return error_set(err, EPROTO, "HTTP/2 failed: %s",
					 nghttp2_strerror((int)n));
		if (n == 0)
			return put(c, scratch->out, used, err);
		if (used + (size_t)n > sizeof(scratch->out)) {
			r = put(c, scratch->out, used, err);
			if (r <= 0) {
				if (r == 0)
					fifo_add(&c->out, data, (size_t)n);
				return r;
			}
			used = 0;
			turns++;
		}
		memcpy(scratch->out + used, data, (size_t)n);
		used += (size_t)n;
	}
	return put(c, scratch->out, used, err) < 0 ? -EPIPE : 0;
}

int conn_flush(struct conn *c, struct conn_scratch *scratch, struct error *err)
{
	int r;

	if (c->state != CONN_OPEN)
		return 0;
	if (conn_is_flushed(c))
		c->wrote_ms = hub_now_ms();
	r = put_kept(c, err);
	if (r > 0)
		r = put_session(c, scratch, err);
	if (r < 0)
		return r;
	if (!nghttp2_session_want_read(c->session) && conn_is_flushed(c))
		return error_set(err, ECONNRESET, "The HTTP/2 session has ended");
	return want_events(c, EPOLLIN | (r == 0 ? EPOLLOUT : 0), err);
}

bool conn_is_flushed(const struct conn *c)
{
	return fifo_len(&c->out) == 0 && !nghttp2_session_want_write(c->session);
}

void conn_ping(struct conn *c)
{
	if (c->pinged_ms || c->state != CONN_OPEN)
		return;
	nghttp2_submit_ping(c->session, NGHTTP2_FLAG_NONE, NULL);
	c->pinged_ms = hub_now_ms();
}

int conn_tick(struct conn *c, int64_t now, bool busy, int ping_ms, struct error *err)
{
	if (c->setup_by && now >= c->setup_by)
		return error_set(err, ETIMEDOUT, "The connection was not set up within %d s",
				 CONN_SETUP_MS / 1000);
	if (fifo_len(&c->out) > 0 && now >= c->wrote_ms + CONN_STALL_MS)
		return error_set(err, ETIMEDOUT, "The peer has taken no data for %d s",
				 CONN_STALL_MS / 1000);
	if (c->pinged_ms && now >= c->pinged_ms + ping_ms / 2)
		return error_set(err, ETIMEDOUT, "The peer does not answer any more");
	if (ping_ms && busy && now >= c->heard_ms + ping_ms)
		conn_ping(c);
	return 0;
}

int64_t conn_next_ms(const struct conn *c, bool busy, int ping_ms)
{
	int64_t next = INT64_MAX;

	if (c->setup_by)
		next = c->setup_by;
	if (fifo_len(&c->out) > 0 && c->wrote_ms + CONN_STALL_MS < next)
		next = c->wrote_ms + CONN_STALL_MS;
	if (c->pinged_ms && c->pinged_ms + ping_ms / 2 < next)
		next = c->pinged_ms + ping_ms / 2;
	else if (!c->pinged_ms && ping_ms && busy && c->state == CONN_OPEN &&
		 c->heard_ms + ping_ms < next)
		next = c->heard_ms + ping_ms;
	return next;
}

int conn_greet(nghttp2_session *session, const nghttp2_settings_entry *more, size_t count)
{
	nghttp2_settings_entry settings[8] = {
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CONN_STREAM_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, FIELDS_MAX },
	};
	int r;

	for (size_t i = 0; i < count; i++)
		settings[2 + i] = more[i];
	r = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, 2 + count);
	if (r == 0)
		r = nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
							  CONN_WINDOW);
	return r;
}
