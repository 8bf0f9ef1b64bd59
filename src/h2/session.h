/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/call.h"

#include <nghttp2/nghttp2.h>

/*
 * The server's side of one HTTP/2 connection, without any I/O: bytes go in with session_feed
 * (or nghttp2_session_mem_recv), complete requests come out into env->queue, bytes to send are
 * taken with nghttp2_session_mem_send. Used by one thread, but for the queue.
 */
#define SESSION_STREAMS_MAX 128 /* requests at a time on one connection */
#define SESSION_HELD_MAX (64UL * 1024 * 1024) /* bytes of requests at a time in one server */
#define SESSION_DISCARD_MAX (16UL * 1024 * 1024) /* of a body whose request was refused already */
#define SESSION_RESETS_BURST 256 /* streams that a peer may reset in a row … */
#define SESSION_RESETS_RATE 64 /* … and per second from then on */
#define SESSION_FAULTS_BURST 100 /* the same for breaches of the rules */
#define SESSION_FAULTS_RATE 10
#define SESSION_QUEUE_MAX 4096 /* frames that wait to be sent */

struct session_env {
	struct hub *hub;
	size_t max_body;
	bool any_authority;
	void (*refuse)(struct h2_call *call, int status); /* NULL: a line of text */
	/* under the hub's lock: requests that wait for a worker */
	struct call_list queue;
	pthread_cond_t more;
};

/* How much of something a peer has done of late. */
struct session_bucket {
	int used;
	int64_t filled_ms;
};

struct session {
	struct session_env *env;
	nghttp2_session *http;
	struct h2_peer peer;
	struct call_list calls;
	unsigned incomplete; /* calls whose request has not come in full */
	bool greeted; /* the peer has sent its settings */
	bool touched; /* there may be something to send */
	struct session_bucket resets, faults;
};

/* NULL when out of memory. */
struct session *session_new(struct session_env *env, const struct h2_peer *peer);
void session_free(struct session *s); /* ends its calls */

/* Sends on what the call's handler did. On the I/O thread; the call may be gone already. */
void session_update(struct h2_call *c);
/* No more requests. Those that no handler has seen are refused, streams that go on are ended;
 * what a handler is working on may be finished. */
void session_drain(struct session *s);
/* 0, or -EPROTO when the peer misbehaves such that the connection is to be closed. */
int session_check(const struct session *s);
