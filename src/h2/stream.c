/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/stream.h"

#include "base/mem.h"

#include <errno.h>

/* Giving window back wakes the I/O thread: worth it only for a part of the window. */
#define ACK_AT (128 * 1024)

void stream_ref(struct h2_stream *s)
{
	hub_lock(s->hub);
	s->refs++;
	hub_unlock(s->hub);
}

void stream_unref(struct h2_stream *s)
{
	struct hub *hub = s->hub;
	bool last;

	hub_lock(hub);
	last = --s->refs == 0;
	hub_unlock(hub);
	if (!last)
		return;
	pthread_cond_destroy(&s->changed);
	fields_done(&s->request);
	buf_done(&s->body);
	fields_done(&s->head);
	fields_done(&s->trailers);
	fifo_done(&s->in);
	free(s->why);
	free(s);
	hub_unref(hub);
}

void stream_end(struct h2_stream *s, int rc, const char *why)
{
	hub_lock(s->hub);
	if (!s->ended) {
		s->ended = true;
		s->rc = rc;
		s->why = why && rc < 0 ? xstrdup(why) : NULL;
		pthread_cond_broadcast(&s->changed);
	}
	hub_unlock(s->hub);
}

/* Has the I/O thread look at the stream. Under the lock. */
static void post(struct h2_stream *s)
{
	if (hub_post(s->hub, &s->item))
		s->refs++;
}

static int start(struct h2_client *c, const struct h2_request *req, bool whole,
		 struct h2_stream **ret, struct error *err)
{
	struct h2_stream *s = xcalloc(1, sizeof(*s));

	s->hub = hub_ref(client_hub(c));
	s->whole = whole;
	s->refs = 1;
	hub_cond_init(&s->changed);
	client_request_fields(c, req, &s->request);
	if (s->request.size > FIELDS_MAX) {
		stream_unref(s);
		return error_set(err, E2BIG,
				 "%s: the request has more than %d KiB of header fields",
				 req->method, FIELDS_MAX / 1024);
	}
	if (req->body_len > 0)
		buf_add(&s->body, req->body, req->body_len);
	hub_lock(s->hub);
	post(s);
	hub_unlock(s->hub);
	*ret = s;
	return 0;
}

static int fail(const struct h2_stream *s, const struct h2_request *req, struct error *err)
{
	if (s->why)
		return error_set(err, -s->rc, "%s %s: %s", req->method, req->path, s->why);
	return error_errno(err, -s->rc, "%s %s", req->method, req->path);
}

static void give_up(struct h2_stream *s, bool timed_out)
{
	hub_lock(s->hub);
	if (!s->cancelled) {
		s->cancelled = true;
		s->timed_out = timed_out;
		if (!s->ended)
			post(s);
		pthread_cond_broadcast(&s->changed);
	}
	hub_unlock(s->hub);
}

/* Waits until the answer has begun (or is there in full): 0, or -errno. */
static int await(struct h2_stream *s, const struct h2_request *req, int timeout_ms,
		 struct error *err)
{
	int64_t until = hub_deadline(timeout_ms);
	bool in_time = true, ready;
	int r = 0;

	hub_lock(s->hub);
	for (;;) {
		ready = s->ended || (s->status && !s->whole);
		if (ready || !in_time)
			break;
		in_time = hub_wait(s->hub, &s->changed, until);
	}
	if (ready && s->rc < 0 && (s->whole || !s->status))
		r = fail(s, req, err);
	hub_unlock(s->hub);
	if (ready)
		return r;
	give_up(s, true);
	return error_set(err, ETIMEDOUT, "%s %s: no answer within %d ms", req->method, req->path,
			 timeout_ms);
}

int h2_client_call(struct h2_client *c, const struct h2_request *req, int timeout_ms,
		   struct h2_response *ret, struct error *err)
{
	struct h2_stream *s;
	int r = start(c, req, true, &s, err);

	if (r < 0)
		return r;
	r = await(s, req, timeout_ms, err);
	if (r == 0) {
		/* The stream has ended: it is ours alone. */
		*ret = (struct h2_response){
			.status = s->status,
			.headers = fields_list(&s->head),
			.trailers = fields_list(&s->trailers),
			.body = s->in.bytes,
		};
		s->in = (struct fifo){ 0 };
	}
	stream_unref(s);
	return r;
}

void h2_response_done(struct h2_response *r)
{
	free(r->headers);
	free(r->trailers);
	buf_done(&r->body);
	*r = (struct h2_response){ 0 };
}

static const char *find(const struct h2_header *list, const char *name)
{
	for (; list && list->name; list++)
		if (streq(list->name, name))
			return list->value;
	return NULL;
}

const char *h2_response_header(const struct h2_response *r, const char *name)
{
	return find(r->headers, name);
}

const char *h2_response_trailer(const struct h2_response *r, const char *name)
{
	return find(r->trailers, name);
}

int h2_stream_open(struct h2_client *c, const struct h2_request *req, int timeout_ms,
		   struct h2_stream **ret, int *ret_status, struct error *err)
{
	struct h2_stream *s;
	int r = start(c, req, false, &s, err);

	if (r < 0)
		return r;
	r = await(s, req, timeout_ms, err);
	if (r < 0) {
		stream_unref(s);
		return r;
	}
	*ret_status = s->status;
	*ret = s;
	return 0;
}

const char *h2_stream_header(const struct h2_stream *s, const char *name)
{
	return fields_get(&s->head, name); /* complete and constant once the status is there */
}

const char *h2_stream_trailer(const struct h2_stream *s, const char *name)
{
	const char *value;

	hub_lock(s->hub);
	value = s->ended ? fields_get(&s->trailers, name) : NULL;
	hub_unlock(s->hub);
	return value;
}

ssize_t h2_stream_read(struct h2_stream *s, void *data, size_t size, int timeout_ms)
{
	int64_t until = hub_deadline(timeout_ms);
	ssize_t n;

	hub_lock(s->hub);
	while (!s->cancelled && !s->ended && fifo_len(&s->in) == 0)
		if (!hub_wait(s->hub, &s->changed, until))
			break;
	if (s->cancelled) {
		n = -ECANCELED;
	} else if (fifo_len(&s->in) > 0) {
		n = (ssize_t)fifo_take(&s->in, data, size);
		s->unacked += (size_t)n;
		if (s->unacked >= ACK_AT && !s->ended)
			post(s);
	} else {
		n = s->ended ? s->rc : -ETIMEDOUT;
	}
	hub_unlock(s->hub);
	return n;
}

void h2_stream_cancel(struct h2_stream *s)
{
	give_up(s, false);
}

void h2_stream_close(struct h2_stream *s)
{
	if (!s)
		return;
	give_up(s, false);
	stream_unref(s);
}
