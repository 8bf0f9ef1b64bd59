/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/session.h"

#include "base/mem.h"
#include "h2/conn.h"

#include <errno.h>

static struct h2_call *find_call(struct session *s, int32_t stream_id)
{
	return nghttp2_session_get_stream_user_data(s->http, stream_id);
}

static void set_complete(struct h2_call *c)
{
	if (c->complete)
		return;
	c->complete = true;
	c->session->incomplete--;
}

/* Answers without a handler, as soon as it is clear that the request cannot be served. */
static void refuse(struct h2_call *c, int status)
{
	static const struct h2_header headers[] = { { "content-type", "text/plain" }, { 0 } };
	const char *text = status == 413   ? "The request's body is too large.\n"
			   : status == 431 ? "The request's header fields are too large.\n"
					   : "The server is busy: try again later.\n";

	if (c->refused)
		return;
	c->refused = status;
	hub_lock(c->hub);
	c->hub->held -= c->body.len;
	c->held -= c->body.len;
	hub_unlock(c->hub);
	buf_done(&c->body);
	c->body = (struct buf){ 0 };
	if (c->session->env->refuse)
		c->session->env->refuse(c, status);
	else
		h2_call_reply(c, status, headers, text, strlen(text));
}

/* Counts bytes of the request that are kept in memory; false when there are too many. */
static bool hold(struct h2_call *c, size_t len)
{
	bool ok;

	hub_lock(c->hub);
	ok = c->hub->held + len <= SESSION_HELD_MAX;
	if (ok) {
		c->hub->held += len;
		c->held += len;
	}
	hub_unlock(c->hub);
	return ok;
}

static void queue_call(struct h2_call *c)
{
	struct session_env *env = c->session->env;

	set_complete(c);
	if (c->refused)
		return;
	hub_lock(c->hub);
	c->queued = true;
	c->refs++;
	c->users++;
	TAILQ_INSERT_TAIL(&env->queue, c, queue_entry);
	pthread_cond_signal(&env->more);
	hub_unlock(c->hub);
}

static void unqueue_call(struct h2_call *c, struct session_env *env)
{
	bool queued;

	hub_lock(c->hub);
	queued = c->queued;
	if (queued)
		TAILQ_REMOVE(&env->queue, c, queue_entry);
	c->queued = false;
	hub_unlock(c->hub);
	if (queued)
		h2_call_unref(c);
}

/* The stream is closed, or about to be. */
static void detach(struct h2_call *c)
{
	struct session *s = c->session;

	set_complete(c);
	TAILQ_REMOVE(&s->calls, c, entry);
	c->session = NULL;
	nghttp2_session_set_stream_user_data(s->http, c->stream_id, NULL);
	call_gone(c);
	unqueue_call(c, s->env);
	call_unref(c);
}

/* Takes one from the bucket, which fills up again with time; false when it is empty. */
static bool take_token(struct session_bucket *b, int size, int per_second)
{
	int64_t now = hub_now_ms(), more = (now - b->filled_ms) * per_second / 1000;

	if (more > 0) {
		b->used = b->used > more ? b->used - (int)more : 0;
		b->filled_ms = now;
	}
	return ++b->used <= size;
}

/* Ends the connection at once: what nghttp2 does by itself waits until it gets to send. */
static int enough(struct session *s)
{
	nghttp2_session_terminate_session(s->http, NGHTTP2_ENHANCE_YOUR_CALM);
	return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_begin_headers(nghttp2_session *http, const nghttp2_frame *frame, void *userdata)
{
	struct session *s = userdata;
	struct h2_call *c;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	c = call_new(s->env->hub, &s->peer);
	c->session = s;
	c->stream_id = frame->hd.stream_id;
	TAILQ_INSERT_TAIL(&s->calls, c, entry);
	s->incomplete++;
	nghttp2_session_set_stream_user_data(http, c->stream_id, c);
	return 0;
}

/* For sessions in which nghttp2 is not asked to, since it would refuse an :authority that is none. As
 * there, a field that is not clean is left out, and one of HTTP/2's own resets the stream. */
static bool is_clean(const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len)
{
	return nghttp2_check_header_name(name, name_len) &&
	       nghttp2_check_header_value_rfc9113(value, value_len);
}

static int on_header(nghttp2_session *http, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
		     void *userdata)
{
	struct h2_call *c = find_call(userdata, frame->hd.stream_id);

	if (!c || frame->headers.cat != NGHTTP2_HCAT_REQUEST || c->refused)
		return 0;
	if (c->session->env->any_authority && !is_clean(name, name_len, value, value_len))
		return name_len > 0 && name[0] == ':' ? NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE : 0;
	if (c->fields.size + name_len + value_len + 32 > FIELDS_MAX)
		refuse(c, 431);
	else if (!hold(c, name_len + value_len + 32))
		refuse(c, 503);
	else
		fields_add_bytes(&c->fields, name, name_len, value, value_len);
	return 0;
}

/* Some clients take an answer only after they have sent everything, so they are let, for a while. */
static void discard(struct h2_call *c, size_t len)
{
	c->discarded += len;
	if (c->discarded > SESSION_DISCARD_MAX)
		nghttp2_submit_rst_stream(c->session->http, NGHTTP2_FLAG_NONE, c->stream_id,
					  NGHTTP2_NO_ERROR);
}

static int on_data(nghttp2_session *http, uint8_t flags, int32_t stream_id, const uint8_t *data,
		   size_t len, void *userdata)
{
	struct session *s = userdata;
	struct h2_call *c = find_call(s, stream_id);

	/* What is kept is bounded by max_body and SESSION_HELD_MAX, not by the windows. */
	nghttp2_session_consume(http, stream_id, len);
	if (!c)
		return 0;
	if (c->refused)
		discard(c, len);
	else if (c->body.len + len > s->env->max_body)
		refuse(c, 413);
	else if (!hold(c, len))
		refuse(c, 503);
	else
		buf_add(&c->body, data, len);
	return 0;
}

static void check_length(struct h2_call *c)
{
	const char *length = fields_get(&c->fields, "content-length");

	/* What is not a number (nghttp2 checks that, unless any_authority) announces nothing. */
	if (length && strtoull(length, NULL, 10) > c->session->env->max_body)
		refuse(c, 413);
}

static int on_frame_recv(nghttp2_session *http, const nghttp2_frame *frame, void *userdata)
{
	struct session *s = userdata;
	struct h2_call *c;

	s->touched = true;
	if (frame->hd.type == NGHTTP2_SETTINGS)
		s->greeted = true;
	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    !take_token(&s->resets, SESSION_RESETS_BURST, SESSION_RESETS_RATE))
		return enough(s);
	if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
		return 0;
	c = find_call(s, frame->hd.stream_id);
	if (!c)
		return 0;
	if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
		check_length(c);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		queue_call(c);
	return 0;
}

static int on_invalid_frame(nghttp2_session *http, const nghttp2_frame *frame, int error,
			    void *userdata)
{
	struct session *s = userdata;

	return take_token(&s->faults, SESSION_FAULTS_BURST, SESSION_FAULTS_RATE) ? 0 : enough(s);
}

/*
 * Where an answer is out before its request is in: a gRPC client takes it for the end, sends neither
 * the rest nor a reset, and counts one stream less than we would, so that some day it has one too
 * many. Only then, since a reset that is queued earlier would take the answer with it.
 */
static int on_frame_send(nghttp2_session *http, const nghttp2_frame *frame, void *userdata)
{
	struct session *s = userdata;
	struct h2_call *c;

	if (!s->env->refuse || frame->hd.type != NGHTTP2_HEADERS ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	c = find_call(s, frame->hd.stream_id);
	if (c && !c->complete)
		nghttp2_submit_rst_stream(http, NGHTTP2_FLAG_NONE, c->stream_id, NGHTTP2_NO_ERROR);
	return 0;
}

static int on_stream_close(nghttp2_session *http, int32_t stream_id, uint32_t error_code,
			   void *userdata)
{
	struct session *s = userdata;
	struct h2_call *c = find_call(s, stream_id);

	s->touched = true;
	if (c)
		detach(c);
	return 0;
}

static nghttp2_session_callbacks *new_callbacks(void)
{
	nghttp2_session_callbacks *cb;

	if (nghttp2_session_callbacks_new(&cb) != 0)
		return NULL;
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(cb, on_invalid_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	return cb;
}

static nghttp2_option *new_options(const struct session_env *env)
{
	nghttp2_option *option;

	if (nghttp2_option_new(&option) != 0)
		return NULL;
	nghttp2_option_set_no_auto_window_update(option, 1);
	nghttp2_option_set_no_closed_streams(option, 1);
	nghttp2_option_set_max_outbound_ack(option, 256);
	if (env->any_authority)
		nghttp2_option_set_no_http_messaging(option, 1);
	return option;
}

struct session *session_new(struct session_env *env, const struct h2_peer *peer)
{
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, SESSION_STREAMS_MAX },
	};
	struct session *s = xcalloc(1, sizeof(*s));
	nghttp2_session_callbacks *cb = new_callbacks();
	nghttp2_option *option = new_options(env);
	int r = NGHTTP2_ERR_NOMEM;

	s->env = env;
	s->peer = *peer;
	TAILQ_INIT(&s->calls);
	if (cb && option)
		r = nghttp2_session_server_new2(&s->http, cb, s, option);
	if (r == 0)
		r = conn_greet(s->http, settings, ARRAY_SIZE(settings));
	nghttp2_session_callbacks_del(cb);
	nghttp2_option_del(option);
	if (r == 0)
		return s;
	session_free(s);
	return NULL;
}

void session_free(struct session *s)
{
	struct h2_call *c;

	if (!s)
		return;
	while ((c = TAILQ_FIRST(&s->calls)))
		detach(c);
	nghttp2_session_del(s->http);
	free(s);
}

/* Gives nghttp2 the next bytes of an answer. */
static ssize_t read_answer(nghttp2_session *http, int32_t stream_id, uint8_t *data, size_t size,
			   uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	struct h2_call *c = find_call(userdata, stream_id);
	bool end, trailers;
	size_t n;

	if (!c)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	hub_lock(c->hub);
	n = fifo_take(&c->out, data, size);
	end = c->ended && fifo_len(&c->out) == 0;
	trailers = c->trailers.count > 0;
	if (c->aborted)
		end = false;
	hub_unlock(c->hub);
	if (!end)
		return n > 0 ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (trailers) {
		cleanup_free nghttp2_nv *nv = fields_nv(&c->trailers);

		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(http, stream_id, nv, c->trailers.count);
	}
	return (ssize_t)n;
}

static void submit_head(struct h2_call *c, bool has_more)
{
	const nghttp2_data_provider provider = { .read_callback = read_answer };
	cleanup_free nghttp2_nv *nv = fields_nv(&c->head);

	c->submitted = true;
	nghttp2_submit_response(c->session->http, c->stream_id, nv, c->head.count,
				has_more ? &provider : NULL);
	fields_done(&c->head);
}

void session_update(struct h2_call *c)
{
	bool started, aborted, has_more;

	call_tell_gone(c);
	if (!c->session)
		return;
	hub_lock(c->hub);
	started = c->started;
	aborted = c->aborted;
	has_more = !c->ended || fifo_len(&c->out) > 0 || c->trailers.count > 0;
	hub_unlock(c->hub);
	c->session->touched = true;
	if (aborted)
		nghttp2_submit_rst_stream(c->session->http, NGHTTP2_FLAG_NONE, c->stream_id,
					  NGHTTP2_INTERNAL_ERROR);
	else if (started && !c->submitted)
		submit_head(c, has_more);
	else if (c->submitted)
		nghttp2_session_resume_data(c->session->http, c->stream_id);
}

void session_drain(struct session *s)
{
	struct h2_call *c, *next;

	nghttp2_submit_goaway(s->http, NGHTTP2_FLAG_NONE,
			      nghttp2_session_get_last_proc_stream_id(s->http), NGHTTP2_NO_ERROR,
			      NULL, 0);
	s->touched = true;
	for (c = TAILQ_FIRST(&s->calls); c; c = next) {
		bool finishing, unseen;

		next = TAILQ_NEXT(c, entry);
		hub_lock(c->hub);
		finishing = c->running || c->ended;
		unseen = c->queued || !c->complete;
		hub_unlock(c->hub);
		if (finishing)
			continue;
		nghttp2_submit_rst_stream(s->http, NGHTTP2_FLAG_NONE, c->stream_id,
					  unseen ? NGHTTP2_REFUSED_STREAM : NGHTTP2_CANCEL);
		detach(c);
	}
}

int session_check(const struct session *s)
{
	if (nghttp2_session_get_outbound_queue_size(s->http) > SESSION_QUEUE_MAX)
		return -EPROTO;
	return 0;
}
