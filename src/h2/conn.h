/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/fifo.h"
#include "h2/hub.h"
#include "h2/tls.h"
#include "h2/tunnel.h"

#include <nghttp2/nghttp2.h>

/*
 * One connection of a client or a server: a socket, perhaps TLS on it, and the bytes that travel
 * between these and an nghttp2 session, which belongs to the caller and does no I/O of its own.
 * Used by one thread only.
 */
enum conn_state { CONN_CONNECTING, CONN_TUNNEL, CONN_HANDSHAKE, CONN_OPEN };

#define CONN_SETUP_MS 10000 /* connecting, handshake and the first frame must not take longer */
#define CONN_STALL_MS 30000 /* a peer that takes no byte for so long is given up */

/* A stream's window bounds what a slow reader makes us keep; the connection's lets several
 * streams run at full speed. */
#define CONN_STREAM_WINDOW (1024 * 1024)
#define CONN_WINDOW (4 * 1024 * 1024)

struct conn {
	int fd, epoll_fd;
	SSL *ssl; /* NULL: plain */
	struct tunnel *tunnel; /* to be made first; NULL: none */
	nghttp2_session *session;
	enum conn_state state;
	uint32_t events; /* what epoll waits for */
	struct fifo out; /* taken from the session, not by the socket */
	int64_t setup_by; /* when it has to be set up; 0: it is */
	int64_t heard_ms; /* when the peer last sent anything */
	int64_t wrote_ms; /* when the socket last took anything */
	int64_t pinged_ms; /* when a ping was sent that is without answer; 0: none */
};

/* Buffers for conn_work, one set a thread. */
struct conn_scratch {
	char in[16 *
		1024]; /* a TLS record, so that none stays half-read where epoll cannot see it */
	char out[32 * 1024];
};

/* Takes over fd and ssl (also on failure); the session stays the caller's. Events of the epoll
 * carry the conn's address. */
int conn_init(struct conn *c, int epoll_fd, int fd, SSL *ssl, nghttp2_session *session,
	      enum conn_state state, struct error *err);
void conn_done(struct conn *c);

/* After an event: sets up, reads and feeds the session. 0, or -errno when the connection is over. */
int conn_work(struct conn *c, struct conn_scratch *scratch, struct error *err);
/* Sends what the session has. 0, or -errno when the connection is over. */
int conn_flush(struct conn *c, struct conn_scratch *scratch, struct error *err);

/* All that was to be sent has gone to the socket. */
bool conn_is_flushed(const struct conn *c);

/* Asks for a sign of life, unless one is awaited. */
void conn_ping(struct conn *c);
/* Keeps the deadlines above, and while busy asks for a sign of life every ping_ms (0: never);
 * a peer is dead when it stays silent for half of that. 0, or -ETIMEDOUT. */
int conn_tick(struct conn *c, int64_t now, bool busy, int ping_ms, struct error *err);
/* When conn_tick is to be called next; INT64_MAX: not for a time of its own. */
int64_t conn_next_ms(const struct conn *c, bool busy, int ping_ms);

/* Settings and windows that both sides announce; queued in the session. */
int conn_greet(nghttp2_session *session, const nghttp2_settings_entry *more, size_t count);
