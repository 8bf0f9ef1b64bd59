/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/fields.h"
#include "h2/fifo.h"
#include "h2/hub.h"

struct session;

/*
 * A request and its answer, shared by the I/O thread, which reads the one and sends the other,
 * and whoever answers. Counted under the hub's lock: `refs` are all, `users` those of handlers.
 */
struct h2_call {
	struct hub *hub;
	struct hub_item item;
	unsigned refs, users;

	/* the request: written by the I/O thread until it is queued, constant then */
	struct fields fields;
	struct buf body;
	struct h2_peer peer;
	size_t held; /* its share of hub->held */
	int64_t arrived_ms;

	/* the answer: under the lock */
	struct fields head, trailers;
	struct fifo out;
	bool started, ended; /* by the handler */
	bool aborted; /* the stream is to be reset */
	bool gone; /* the stream is closed */
	bool queued; /* waiting for a worker */
	bool running; /* in a handler */
	void (*on_gone)(struct h2_call *c, void *userdata);
	void *on_gone_data;
	TAILQ_ENTRY(h2_call) queue_entry;

	/* the I/O thread's own */
	struct session *session; /* NULL once the stream is closed */
	int32_t stream_id;
	bool complete; /* nothing of the request is awaited any more */
	bool submitted; /* the answer's head was given to nghttp2 */
	int refused; /* the status with which we answer ourselves, or 0 */
	size_t discarded; /* bytes that came after that */
	TAILQ_ENTRY(h2_call) entry;
};

TAILQ_HEAD(call_list, h2_call);

/* With one reference, the stream's. */
struct h2_call *call_new(struct hub *hub, const struct h2_peer *peer);
/* Drops a reference that is not a handler's. */
void call_unref(struct h2_call *c);

/* The stream is closed: says so to whoever is interested. On the I/O thread. */
void call_gone(struct h2_call *c);
/* Calls on_gone where it is due. On the I/O thread, or when there is none any more. */
void call_tell_gone(struct h2_call *c);
