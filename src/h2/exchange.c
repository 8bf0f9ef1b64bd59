/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "h2/client.h"

#include <errno.h>
#include <stdio.h>

static struct h2_stream *find_stream(nghttp2_session *http, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(http, stream_id);
}

static void leave_conn(struct h2_stream *s)
{
	struct client_conn *cc = s->conn;

	nghttp2_session_set_stream_user_data(cc->conn.session, s->id, NULL);
	TAILQ_REMOVE(&cc->streams, s, entry);
	cc->open--;
	cc->touched = true;
	s->conn = NULL;
}

void exchange_finish(struct h2_client *c, struct h2_stream *s, int rc, const char *why)
{
	if (!s->conn && !s->waiting)
		return;
	if (s->conn)
		leave_conn(s);
	else
		TAILQ_REMOVE(&c->waiting, s, entry);
	s->waiting = false;
	buf_done(&s->body);
	s->body = (struct buf){ 0 };
	stream_end(s, rc, why);
	stream_unref(s);
}

/* The server has surely not looked at it: another connection, or this one later, will do. */
static bool send_again(struct h2_stream *s, uint32_t error_code)
{
	struct h2_client *c = s->conn->client;

	if ((s->sent && error_code != NGHTTP2_REFUSED_STREAM) || s->head_done ||
	    ++s->tries >= STREAM_TRIES)
		return false;
	leave_conn(s);
	s->sent = false;
	s->body_sent = 0;
	s->waiting = true;
	hub_lock(s->hub);
	fields_done(&s->head);
	hub_unlock(s->hub);
	TAILQ_INSERT_TAIL(&c->waiting, s, entry);
	return true;
}

static void reset(struct client_conn *cc, struct h2_stream *s)
{
	nghttp2_submit_rst_stream(cc->conn.session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
}

void exchange_cancel(struct h2_client *c, struct h2_stream *s)
{
	struct client_conn *cc = s->conn;

	if (cc) {
		reset(cc, s);
		if (s->timed_out)
			conn_ping(&cc->conn);
	}
	exchange_finish(c, s, -ECANCELED, NULL);
}

void exchange_broken(struct client_conn *cc, const char *why)
{
	struct h2_stream *s;

	while ((s = TAILQ_FIRST(&cc->streams)))
		if (!send_again(s, NGHTTP2_NO_ERROR))
			exchange_finish(cc->client, s, -ECONNRESET, why);
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *userdata)
{
	struct h2_stream *s = find_stream(http, frame->hd.stream_id);
	struct fields *f;
	bool fits;

	if (!s)
		return 0;
	if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
		s->coming = atoi((const char *)value); /* three digits: nghttp2 has checked */
		return 0;
	}
	f = s->head_done ? &s->trailers : &s->head;
	fits = f->size + name_len + value_len + 32 <= FIELDS_MAX;
	hub_lock(s->hub);
	if (fits)
		fields_add_bytes(f, name, name_len, value, value_len);
	hub_unlock(s->hub);
	if (!fits) {
		reset(s->conn, s);
		exchange_finish(s->conn->client, s, -EMSGSIZE,
				"The header fields of the answer are too large");
	}
	return 0;
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t len, void *userdata)
{
	struct h2_stream *s = find_stream(http, stream_id);
	bool fits = true;

	/* One slow reader must not hold up the others: only its own window stays closed. */
	nghttp2_session_consume_connection(http, len);
	if (!s || s->whole)
		nghttp2_session_consume_stream(http, stream_id, len);
	if (!s)
		return 0;
	hub_lock(s->hub);
	if (s->whole)
		fits = fifo_len(&s->in) + len <= STREAM_WHOLE_MAX;
	if (fits && !s->cancelled)
		fifo_add(&s->in, data, len);
	if (!s->whole)
		pthread_cond_broadcast(&s->changed);
	hub_unlock(s->hub);
	if (!fits) {
		reset(s->conn, s);
		exchange_finish(s->conn->client, s, -EMSGSIZE, "The answer is too large");
	}
	return 0;
}

static void head_is_complete(struct h2_stream *s)
{
	hub_lock(s->hub);
	if (s->coming >= 200) {
		s->head_done = true;
		s->status = s->coming;
		if (!s->whole)
			pthread_cond_broadcast(&s->changed);
	} else {
		fields_done(&s->head); /* of an interim answer */
	}
	hub_unlock(s->hub);
}

static int on_frame_recv(nghttp2_session *http, const nghttp2_frame *frame, void *userdata)
{
	struct client_conn *cc = userdata;
	struct h2_stream *s;

	if (frame->hd.type == NGHTTP2_GOAWAY)
		cc->draining = true;
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	s = find_stream(http, frame->hd.stream_id);
	if (!s)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && !s->head_done)
		head_is_complete(s);
	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	/* Answered before all of the request was sent: the rest is of no interest. */
	if (nghttp2_session_get_stream_local_close(http, s->id) == 0)
		reset(cc, s);
	exchange_finish(cc->client, s, 0, NULL);
	return 0;
}

static int on_frame_send(nghttp2_session *http, const nghttp2_frame *frame, void *userdata)
{
	struct h2_stream *s;

	if (frame->hd.type != NGHTTP2_HEADERS)
		return 0;
	s = find_stream(http, frame->hd.stream_id);
	if (s)
		s->sent = true;
	return 0;
}

static int on_stream_close(nghttp2_session *http, int32_t stream_id, uint32_t error_code,
			   void *userdata)
{
	struct client_conn *cc = userdata;
	struct h2_stream *s = find_stream(http, stream_id);
	char why[100];

	if (!s || send_again(s, error_code))
		return 0;
	snprintf(why, sizeof(why), "The server broke off the answer (%s)",
		 nghttp2_http2_strerror(error_code));
	exchange_finish(cc->client, s,
			error_code == NGHTTP2_REFUSED_STREAM ? -ECONNREFUSED : -ECONNRESET, why);
	return 0;
}

nghttp2_session *exchange_session(struct client_conn *cc)
{
	const nghttp2_settings_entry settings[] = { { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 } };
	nghttp2_session_callbacks *cb = NULL;
	nghttp2_option *option = NULL;
	nghttp2_session *http = NULL;

	if (nghttp2_session_callbacks_new(&cb) == 0 && nghttp2_option_new(&option) == 0) {
		nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
		nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
		nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
		nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
		nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
		nghttp2_option_set_no_auto_window_update(option, 1);
		nghttp2_option_set_no_closed_streams(option, 1);
		if (nghttp2_session_client_new2(&http, cb, cc, option) == 0 &&
		    conn_greet(http, settings, ARRAY_SIZE(settings)) != 0) {
			nghttp2_session_del(http);
			http = NULL;
		}
	}
	nghttp2_option_del(option);
	nghttp2_session_callbacks_del(cb);
	return http;
}

unsigned exchange_limit(const struct client_conn *cc)
{
	return nghttp2_session_get_remote_settings(cc->conn.session,
						   NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

/* Gives nghttp2 the next bytes of a request's body. */
static ssize_t read_body(nghttp2_session *http, int32_t stream_id, uint8_t *data, size_t size,
			 uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	struct h2_stream *s = find_stream(http, stream_id);
	size_t n;

	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	n = s->body.len - s->body_sent < size ? s->body.len - s->body_sent : size;
	memcpy(data, s->body.data + s->body_sent, n);
	s->body_sent += n;
	if (s->body_sent == s->body.len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

void exchange_submit(struct client_conn *cc, struct h2_stream *s)
{
	const nghttp2_data_provider provider = { .read_callback = read_body };
	cleanup_free nghttp2_nv *nv = fields_nv(&s->request);
	int32_t id = nghttp2_submit_request(cc->conn.session, NULL, nv, s->request.count,
					    s->body.len > 0 ? &provider : NULL, s);

	if (id < 0) {
		/* All stream numbers are used up: the next round takes another connection. */
		cc->draining = true;
		return;
	}
	TAILQ_REMOVE(&cc->client->waiting, s, entry);
	s->waiting = false;
	s->id = id;
	s->conn = cc;
	TAILQ_INSERT_TAIL(&cc->streams, s, entry);
	if (cc->open++ == 0)
		cc->conn.heard_ms = hub_now_ms(); /* silence before now was not suspicious */
	cc->touched = true;
}
