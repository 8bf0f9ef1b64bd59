/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "grpc/decode.h"
#include "grpc/grpc.h"
#include "grpc/log.h"
#include "grpc/wire.h"
#include "h2/h2.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define WORKERS 64
#define REPLY_MAX (GRPC_MESSAGE_MAX - GRPC_FRAME_HEAD) /* what h2 takes at once */

struct grpc_server {
	struct h2_server *h2;
	struct grpc_service *services; /* ended by descriptor NULL */
	size_t max_request;
	bool anyone;
};

/* Lives on the stack of the thread that answers it. */
struct grpc_call {
	struct h2_call *h2;
	const struct grpc_service *service;
	const ProtobufCMethodDescriptor *method;
	grpc_handler handler;
	int64_t deadline_ms; /* INT64_MAX: none */
	struct arena arena;
};

static int64_t now_ms(void)
{
	return clock_mono_ms(&clock_real);
}

/* ---- for handlers ---------------------------------------------------------------------- */

void *grpc_call_userdata(const struct grpc_call *c)
{
	return c->service->userdata;
}

int grpc_call_left_ms(const struct grpc_call *c)
{
	int64_t left = c->deadline_ms == INT64_MAX ? INT_MAX : c->deadline_ms - now_ms();

	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

bool grpc_call_cancelled(const struct grpc_call *c)
{
	return h2_call_gone(c->h2) || grpc_call_left_ms(c) == 0;
}

void *grpc_call_alloc(struct grpc_call *c, size_t size)
{
	return arena_alloc(&c->arena, size);
}

char *grpc_call_strdup(struct grpc_call *c, const char *s)
{
	size_t size = strlen(s) + 1;

	return memcpy(grpc_call_alloc(c, size), s, size);
}

void *grpc_call_message(struct grpc_call *c, const ProtobufCMessageDescriptor *type)
{
	void *message = grpc_call_alloc(c, type->sizeof_message);

	protobuf_c_message_init(type, message);
	return message;
}

/* ---- answers --------------------------------------------------------------------------- */

/* An answer that is only trailers. */
static void reply_status(struct h2_call *h2, int http_status, enum grpc_code code, const char *why)
{
	cleanup_free char *message = percent_encode(why);
	char number[12];
	const struct h2_header headers[] = {
		{ "content-type", "application/grpc" },
		{ "grpc-status", number },
		{ "grpc-message", message },
		/* what to try instead, where it was compressed */
		{ code == GRPC_UNIMPLEMENTED ? "grpc-accept-encoding" : NULL, "identity" },
		{ 0 },
	};

	snprintf(number, sizeof(number), "%d", (int)code);
	h2_call_reply(h2, http_status, headers, NULL, 0);
}

static void reply_message(struct h2_call *h2, const uint8_t *frame, size_t len)
{
	static const struct h2_header headers[] = { { "content-type", "application/grpc" }, { 0 } };
	static const struct h2_header trailers[] = { { "grpc-status", "0" }, { 0 } };

	h2_call_start(h2, 200, headers);
	if (h2_call_write(h2, frame, len) == 0)
		h2_call_end(h2, trailers);
}

static enum grpc_code reply_packed(struct grpc_call *c, const ProtobufCMessage *reply,
				   struct error *err)
{
	size_t len = protobuf_c_message_get_packed_size(reply);
	cleanup_free uint8_t *frame = NULL;

	if (len > REPLY_MAX) {
		error_set(err, EMSGSIZE, "The answer has %zu bytes, at most %d can be sent", len,
			  REPLY_MAX);
		return GRPC_RESOURCE_EXHAUSTED;
	}
	frame = xmalloc(GRPC_FRAME_HEAD + len);
	frame_head(frame, len);
	protobuf_c_message_pack(reply, frame + GRPC_FRAME_HEAD);
	/* the caller would refuse it, with a sentence that leads nowhere */
	if (message_check(reply->descriptor, frame + GRPC_FRAME_HEAD, len, err) < 0) {
		error_prefix(err, "The answer is faulty");
		return GRPC_INTERNAL;
	}
	reply_message(c->h2, frame, GRPC_FRAME_HEAD + len);
	return GRPC_OK;
}

/* On h2's own thread: what it refuses without a handler. */
static void refuse(struct h2_call *h2, int status)
{
	if (status == 413)
		reply_status(h2, 200, GRPC_RESOURCE_EXHAUSTED, "The request is too large");
	else if (status == 431)
		reply_status(h2, 200, GRPC_RESOURCE_EXHAUSTED,
			     "The request's header fields are too large");
	else
		reply_status(h2, 200, GRPC_UNAVAILABLE, "The server is busy, try again later");
}

/* ---- requests -------------------------------------------------------------------------- */

static grpc_handler find_handler(const struct grpc_service *service, const char *name)
{
	for (const struct grpc_method *m = service->methods; m->name; m++)
		if (streq(m->name, name))
			return m->handler;
	return NULL;
}

/* Fills in service, method and handler by "/package.Service/Method". */
static enum grpc_code route(const struct grpc_server *s, struct grpc_call *c, struct error *err)
{
	const char *path = h2_call_path(c->h2), *slash = strrchr(path, '/');
	size_t len = slash && slash > path ? (size_t)(slash - path - 1) : 0;

	for (c->service = s->services; c->service->descriptor; c->service++)
		if (len == strlen(c->service->descriptor->name) &&
		    memcmp(path + 1, c->service->descriptor->name, len) == 0)
			break;
	if (path[0] != '/' || !c->service->descriptor) {
		error_set(err, EOPNOTSUPP, "There is no service of %.200s here", path);
		return GRPC_UNIMPLEMENTED;
	}
	c->method =
		protobuf_c_service_descriptor_get_method_by_name(c->service->descriptor, slash + 1);
	c->handler = c->method ? find_handler(c->service, slash + 1) : NULL;
	if (c->handler)
		return GRPC_OK;
	error_set(err, EOPNOTSUPP, "%s has no method %.100s here", c->service->descriptor->name,
		  slash + 1);
	return GRPC_UNIMPLEMENTED;
}

static enum grpc_code read_deadline(struct grpc_call *c, struct error *err)
{
	const char *text = h2_call_header(c->h2, "grpc-timeout");
	int64_t ms;

	c->deadline_ms = INT64_MAX;
	if (!text)
		return GRPC_OK;
	if (timeout_parse(text, &ms) < 0) {
		error_set(err, EINVAL, "The grpc-timeout \"%.40s\" is not a number and a unit",
			  text);
		return GRPC_INTERNAL;
	}
	c->deadline_ms = h2_call_arrived_ms(c->h2) + ms;
	if (grpc_call_left_ms(c) > 0)
		return GRPC_OK;
	error_set(err, ETIMEDOUT, "The caller's time was over before its turn came");
	return GRPC_DEADLINE_EXCEEDED;
}

static enum grpc_code read_request(const struct grpc_server *s, struct grpc_call *c,
				   ProtobufCMessage **ret, struct error *err)
{
	const uint8_t *data;
	size_t len;
	const void *body = h2_call_body(c->h2, &len);
	enum grpc_code code = frame_read(body, len, h2_call_header(c->h2, "grpc-encoding"),
					 s->max_request, &data, &len, err);
	int r = 0;

	if (code == GRPC_OK)
		r = message_decode(c->method->input, data, len, &c->arena, ret, err);
	if (r < 0)
		code = r == -ENOSPC ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL;
	return code;
}

static void log_begin(const struct grpc_call *c, const ProtobufCMessage *request)
{
	struct buf text = { 0 };

	request_text(request, &text);
	log_debug("%s:%s", c->method->name, text.data ? text.data : "");
	buf_done(&text);
}

static enum grpc_code run(struct grpc_call *c, const ProtobufCMessage *request, struct error *err)
{
	ProtobufCMessage *reply = grpc_call_message(c, c->method->output);
	int r;

	log_begin(c, request);
	r = c->handler(c, request, reply, err);
	if (r >= 0)
		return reply_packed(c, reply, err);
	if (err->message[0] == 0)
		error_errno(err, -r, "%s failed", c->method->name);
	/* a handler sees only that nobody waits any more */
	return r == -ECANCELED && grpc_call_left_ms(c) == 0 ? GRPC_DEADLINE_EXCEEDED
							    : grpc_code_of(r);
}

static enum grpc_code serve(const struct grpc_server *s, struct grpc_call *c, struct error *err)
{
	const struct h2_peer *peer = h2_call_peer(c->h2);
	ProtobufCMessage *request;
	enum grpc_code code;

	if (!s->anyone && (!peer->is_unix || peer->uid != 0)) {
		error_set(err, EACCES, "Only root may call this service");
		return GRPC_PERMISSION_DENIED;
	}
	code = route(s, c, err);
	if (code == GRPC_OK)
		code = read_deadline(c, err);
	if (code == GRPC_OK)
		code = read_request(s, c, &request, err);
	return code == GRPC_OK ? run(c, request, err) : code;
}

static void handle(struct h2_call *h2, void *userdata)
{
	struct grpc_call call = { .h2 = h2 };
	struct error err = ERROR_INIT;
	enum grpc_code code;

	if (!streq(h2_call_method(h2), "POST")) {
		reply_status(h2, 405, GRPC_INTERNAL, "A call is made with POST");
		return;
	}
	if (!content_type_is_grpc(h2_call_header(h2, "content-type"))) {
		reply_status(h2, 415, GRPC_INVALID_ARGUMENT,
			     "The content-type is not application/grpc");
		return;
	}
	code = serve(userdata, &call, &err);
	if (code != GRPC_OK)
		reply_status(h2, 200, code, err.message);
	log_debug("%.200s: %s in %lld ms%s%s", h2_call_path(h2), grpc_code_name(code),
		  (long long)(now_ms() - h2_call_arrived_ms(h2)), err.message[0] ? ": " : "",
		  err.message);
	arena_done(&call.arena);
}

/* ---- start and end --------------------------------------------------------------------- */

/* A misspelt method would be found only by whoever calls it. */
static int check_service(const struct grpc_service *service, struct error *err)
{
	for (const struct grpc_method *m = service->methods; m->name; m++)
		if (!protobuf_c_service_descriptor_get_method_by_name(service->descriptor, m->name))
			return error_set(err, EINVAL, "The service %s has no method %s",
					 service->descriptor->name, m->name);
	return 0;
}

int grpc_server_start(const struct grpc_listen *listen, const struct grpc_service *services,
		      struct grpc_server **ret, struct error *err)
{
	struct grpc_server *s = xcalloc(1, sizeof(*s));
	struct h2_listen h2 = {
		.unix_path = listen->unix_path,
		.unix_mode = listen->anyone ? 0666 : 0600,
		.tcp_port = -1,
		.workers = listen->workers > 0 ? listen->workers : WORKERS,
		.any_authority = true,
		.refuse = refuse,
	};
	size_t count = 0;
	int r = 0;

	for (; r == 0 && services[count].descriptor; count++)
		r = check_service(&services[count], err);
	s->services = xcalloc(count + 1, sizeof(*s->services));
	memcpy(s->services, services, count * sizeof(*s->services));
	s->max_request = listen->max_request ? listen->max_request : GRPC_MESSAGE_MAX;
	s->anyone = listen->anyone;
	h2.max_body = s->max_request + GRPC_FRAME_HEAD;
	if (r == 0)
		r = h2_server_start(&h2, handle, s, &s->h2, err);
	if (r < 0) {
		grpc_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void grpc_server_free(struct grpc_server *s)
{
	if (!s)
		return;
	h2_server_free(s->h2);
	free(s->services);
	free(s);
}
