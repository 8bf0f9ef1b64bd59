/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/conn.h"
#include "h2/dial.h"
#include "h2/stream.h"

/*
 * The client's I/O thread and what belongs to it alone, but for what the hub's lock guards.
 * client.c: the thread and the public functions; exchange.c: requests and answers on a connection.
 */
struct client_conn {
	struct conn conn;
	struct h2_client *client;
	struct stream_list streams;
	unsigned open; /* how many these are */
	bool draining; /* takes no more of them */
	bool touched; /* there may be something to send */
	TAILQ_ENTRY(client_conn) entry;
};

struct h2_client {
	struct hub *hub;
	struct h2_target target; /* its strings are ours */
	char *name; /* of the target, for errors */
	SSL_CTX *tls;
	int epoll_fd;
	pthread_t io;
	bool io_runs;
	bool stopping; /* under the hub's lock */
	SSL_CTX *tls_next; /* under the hub's lock: takes the place of tls; NULL: no change */

	struct stream_list waiting; /* for a connection */
	TAILQ_HEAD(, client_conn) conns;
	int conn_count;
	struct client_conn *connecting; /* one of them, or NULL */
	struct dial dial;
	int64_t dial_again_ms; /* when to try again; 0: no need */
	struct conn_scratch *scratch;
};

/* NULL when out of memory. */
nghttp2_session *exchange_session(struct client_conn *cc);
/* How many streams may be open on the connection. */
unsigned exchange_limit(const struct client_conn *cc);
/* Sends a waiting stream's request. */
void exchange_submit(struct client_conn *cc, struct h2_stream *s);
/* Resets a stream, or makes it wait no longer, since its caller does not want it. */
void exchange_cancel(struct h2_client *c, struct h2_stream *s);
/* The stream is over; where rc is not 0, with an error. */
void exchange_finish(struct h2_client *c, struct h2_stream *s, int rc, const char *why);
/* The connection is over. Sends what was surely not looked at to another one. */
void exchange_broken(struct client_conn *cc, const char *why);
