/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/fields.h"
#include "h2/fifo.h"
#include "h2/hub.h"

/* The answer to a call (not a stream) may have at most so many bytes. */
#define STREAM_WHOLE_MAX (64UL * 1024 * 1024)
/* A request that the server surely has not looked at is sent again so many times. */
#define STREAM_TRIES 3

struct client_conn;

/*
 * A client's request and its answer, shared by the caller, who waits, and the I/O thread.
 * Two references at most: the caller's and the I/O thread's; a third while it is posted.
 */
struct h2_stream {
	struct hub *hub;
	struct hub_item item;
	pthread_cond_t changed;
	bool whole; /* an exchange, not a stream that goes on; constant */

	/* the request: the I/O thread's, once posted */
	struct fields request;
	struct buf body;
	size_t body_sent;

	/* under the lock */
	unsigned refs;
	int status; /* 0 until the head of the answer is complete */
	struct fields head, trailers;
	struct fifo in;
	size_t unacked; /* read by the caller, not yet given back to the peer's window */
	bool ended; /* there comes no more: by an error, if rc is not 0 */
	int rc;
	char *why; /* the error's message, or NULL */
	bool cancelled; /* the caller does not want it any more */
	bool timed_out; /* … since the time was up: the connection is suspect */

	/* the I/O thread's own */
	struct client_conn *conn; /* NULL: not sent yet, or over */
	bool waiting; /* for a connection */
	bool seen; /* by the I/O thread */
	int32_t id;
	bool sent; /* the request's head has gone into the socket's direction */
	bool head_done;
	int coming; /* the status in the header block that is being read */
	int tries;
	TAILQ_ENTRY(h2_stream) entry;
};

TAILQ_HEAD(stream_list, h2_stream);

/* The lock is held. */
void stream_ref(struct h2_stream *s);
void stream_unref(struct h2_stream *s);
/* No more will come: with an error, where rc is not 0. On the I/O thread; the first one counts. */
void stream_end(struct h2_stream *s, int rc, const char *why);

/* The client's side of it: */
struct hub *client_hub(struct h2_client *c);
void client_request_fields(struct h2_client *c, const struct h2_request *req, struct fields *ret);
