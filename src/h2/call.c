/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/call.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

/* More than this unsent, and the reader is too slow for a stream of changes. */
#define UNSENT_MAX (4 * 1024 * 1024)

struct h2_call *call_new(struct hub *hub, const struct h2_peer *peer)
{
	struct h2_call *c = xcalloc(1, sizeof(*c));

	c->hub = hub_ref(hub);
	c->peer = *peer;
	c->arrived_ms = hub_now_ms();
	c->refs = 1;
	return c;
}

static void free_request(struct h2_call *c)
{
	c->hub->held -= c->held;
	c->held = 0;
	fields_done(&c->fields);
	buf_done(&c->body);
	c->body = (struct buf){ 0 };
}

/* Takes the lock with it: unlocks, and frees the call with its last reference. */
static void unref_unlock(struct h2_call *c)
{
	struct hub *hub = c->hub;
	bool last = --c->refs == 0;

	if (last)
		free_request(c);
	hub_unlock(hub);
	if (!last)
		return;
	fields_done(&c->head);
	fields_done(&c->trailers);
	fifo_done(&c->out);
	free(c);
	hub_unref(hub);
}

void call_unref(struct h2_call *c)
{
	hub_lock(c->hub);
	unref_unlock(c);
}

/* Has the I/O thread look at the call. Under the lock. */
static void post(struct h2_call *c)
{
	if (hub_post(c->hub, &c->item))
		c->refs++;
}

static void abort_call(struct h2_call *c)
{
	c->aborted = true;
	c->ended = true;
	fifo_done(&c->out);
	post(c);
}

struct h2_call *h2_call_ref(struct h2_call *c)
{
	hub_lock(c->hub);
	c->refs++;
	c->users++;
	hub_unlock(c->hub);
	return c;
}

void h2_call_unref(struct h2_call *c)
{
	if (!c)
		return;
	hub_lock(c->hub);
	if (--c->users == 0) {
		/* Nobody is left who could answer: the peer must not wait for ever. */
		if (!c->ended)
			abort_call(c);
		free_request(c);
	}
	unref_unlock(c);
}

const char *h2_call_method(const struct h2_call *c)
{
	const char *method = fields_get(&c->fields, ":method");

	return method ? method : "";
}

const char *h2_call_path(const struct h2_call *c)
{
	const char *path = fields_get(&c->fields, ":path");

	return path ? path : "";
}

const char *h2_call_header(const struct h2_call *c, const char *name)
{
	return fields_get(&c->fields, name);
}

const void *h2_call_body(const struct h2_call *c, size_t *ret_len)
{
	*ret_len = c->body.len;
	return c->body.data ? c->body.data : "";
}

const struct h2_peer *h2_call_peer(const struct h2_call *c)
{
	return &c->peer;
}

int64_t h2_call_arrived_ms(const struct h2_call *c)
{
	return c->arrived_ms;
}

static bool is_head(const struct h2_call *c)
{
	return streq(fields_get(&c->fields, ":method"), "HEAD");
}

static bool has_field(const struct h2_header *list, const char *name)
{
	for (; list && list->name; list++)
		if (streq(list->name, name))
			return true;
	return false;
}

static void fill_head(struct fields *head, int status, const struct h2_header *headers)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", status);
	fields_add(head, ":status", text);
	fields_add_list(head, headers);
}

void h2_call_reply(struct h2_call *c, int status, const struct h2_header *headers, const void *body,
		   size_t len)
{
	struct fields head = { 0 };
	struct fifo out = { 0 };
	char text[24];

	fill_head(&head, status, headers);
	if (body && status != 204 && status != 304 && !has_field(headers, "content-length")) {
		snprintf(text, sizeof(text), "%zu", len);
		fields_add(&head, "content-length", text);
	}
	if (len > 0 && !is_head(c))
		fifo_add(&out, body, len);
	hub_lock(c->hub);
	if (!c->started && !c->ended) {
		c->head = head;
		c->out = out;
		head = (struct fields){ 0 };
		out = (struct fifo){ 0 };
		c->started = c->ended = true;
		post(c);
	}
	hub_unlock(c->hub);
	fields_done(&head);
	fifo_done(&out);
}

void h2_call_start(struct h2_call *c, int status, const struct h2_header *headers)
{
	struct fields head = { 0 };

	fill_head(&head, status, headers);
	hub_lock(c->hub);
	if (!c->started && !c->ended) {
		c->head = head;
		head = (struct fields){ 0 };
		c->started = true;
		post(c);
	}
	hub_unlock(c->hub);
	fields_done(&head);
}

int h2_call_write(struct h2_call *c, const void *data, size_t len)
{
	int r = 0;

	hub_lock(c->hub);
	if (c->gone || c->ended) {
		r = -EPIPE;
	} else if (fifo_len(&c->out) + len > UNSENT_MAX) {
		abort_call(c);
		r = -ENOBUFS;
	} else if (len > 0 && !is_head(c)) {
		fifo_add(&c->out, data, len);
		post(c);
	}
	hub_unlock(c->hub);
	return r;
}

void h2_call_end(struct h2_call *c, const struct h2_header *trailers)
{
	hub_lock(c->hub);
	if (!c->started) {
		abort_call(c);
	} else if (!c->ended) {
		fields_add_list(&c->trailers, trailers);
		c->ended = true;
		post(c);
	}
	hub_unlock(c->hub);
}

bool h2_call_gone(const struct h2_call *c)
{
	bool gone;

	hub_lock(c->hub);
	gone = c->gone;
	hub_unlock(c->hub);
	return gone;
}

void h2_call_on_gone(struct h2_call *c, void (*fn)(struct h2_call *c, void *userdata),
		     void *userdata)
{
	bool closed;

	hub_lock(c->hub);
	c->on_gone = fn;
	c->on_gone_data = userdata;
	closed = c->hub->closed;
	if (c->gone)
		post(c);
	hub_unlock(c->hub);
	if (closed)
		call_tell_gone(c);
}

void call_tell_gone(struct h2_call *c)
{
	void (*fn)(struct h2_call *, void *);
	void *userdata;

	hub_lock(c->hub);
	fn = c->gone && !c->ended && c->users > 0 ? c->on_gone : NULL;
	userdata = c->on_gone_data;
	if (fn) {
		c->on_gone = NULL;
		c->refs++;
		c->users++;
	}
	hub_unlock(c->hub);
	if (!fn)
		return;
	fn(c, userdata);
	h2_call_unref(c);
}

void call_gone(struct h2_call *c)
{
	hub_lock(c->hub);
	c->gone = true;
	fifo_done(&c->out);
	hub_unlock(c->hub);
	call_tell_gone(c);
}
