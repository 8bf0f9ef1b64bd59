/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "grpc/decode.h"
#include "grpc/grpc.h"
#include "grpc/wire.h"
#include "h2/h2.h"

#include <errno.h>
#include <limits.h>

struct grpc_client {
	struct h2_client *h2;
	char *path;
};

int grpc_client_new(const char *unix_path, struct grpc_client **ret, struct error *err)
{
	struct h2_target target = { .unix_path = unix_path };
	struct grpc_client *c = xcalloc(1, sizeof(*c));
	int r = h2_client_new(&target, &c->h2, err);

	if (r < 0) {
		free(c);
		return r;
	}
	c->path = xstrdup(unix_path);
	*ret = c;
	return 0;
}

void grpc_client_free(struct grpc_client *c)
{
	if (!c)
		return;
	h2_client_free(c->h2);
	free(c->path);
	free(c);
}

/* What a server means that answers with HTTP alone, such as one that does not speak gRPC. */
static enum grpc_code code_of_http(int status)
{
	switch (status) {
	case 400:
		return GRPC_INTERNAL;
	case 401:
		return GRPC_UNAUTHENTICATED;
	case 403:
		return GRPC_PERMISSION_DENIED;
	case 404:
		return GRPC_UNIMPLEMENTED;
	case 429:
	case 502:
	case 503:
	case 504:
		return GRPC_UNAVAILABLE;
	}
	return GRPC_UNKNOWN;
}

/* In the trailers, or in the header of an answer that is nothing else. */
static const char *find_field(const struct h2_response *res, const char *name)
{
	const char *value = h2_response_trailer(res, name);

	return value ? value : h2_response_header(res, name);
}

static enum grpc_code parse_status(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	/* leading blanks and signs are no digits either */
	if (text[0] < '0' || text[0] > '9' || *end || n > GRPC_UNAUTHENTICATED)
		return GRPC_UNKNOWN;
	return (enum grpc_code)n;
}

/* What the server said of the call. */
static enum grpc_code read_status(const struct h2_response *res, struct error *err)
{
	const char *status = find_field(res, "grpc-status");
	const char *message = find_field(res, "grpc-message");
	cleanup_free char *text = message ? percent_decode(message) : NULL;
	enum grpc_code code;

	if (!content_type_is_grpc(h2_response_header(res, "content-type")) || !status) {
		code = res->status == 200 ? GRPC_UNKNOWN : code_of_http(res->status);
		error_set(err, grpc_errno_of(code),
			  "The server answered with HTTP status %d and no gRPC status",
			  res->status);
		return code;
	}
	code = parse_status(status);
	if (code != GRPC_OK)
		error_set(err, grpc_errno_of(code), "%s",
			  text && text[0] ? text : grpc_code_name(code));
	return code;
}

static enum grpc_code read_reply(const struct h2_response *res,
				 const ProtobufCMessageDescriptor *type, void **ret,
				 struct error *err)
{
	const uint8_t *data;
	size_t len;
	enum grpc_code code = read_status(res, err);

	if (code == GRPC_OK)
		code = frame_read(res->body.data, res->body.len,
				  h2_response_header(res, "grpc-encoding"), GRPC_MESSAGE_MAX, &data,
				  &len, err);
	if (code == GRPC_OK && message_check(type, data, len, err) < 0)
		code = GRPC_INTERNAL;
	if (code != GRPC_OK)
		return code;
	*ret = protobuf_c_message_unpack(type, NULL, len, data);
	if (*ret)
		return GRPC_OK;
	error_set(err, EBADMSG, "The answer is no message %s", type->name);
	return GRPC_INTERNAL;
}

/* How it ended before there was an answer. */
static enum grpc_code code_of_h2(int rc)
{
	switch (rc) {
	case -ETIMEDOUT:
		return GRPC_DEADLINE_EXCEEDED;
	case -E2BIG:
	case -EMSGSIZE:
		return GRPC_RESOURCE_EXHAUSTED;
	}
	return GRPC_UNAVAILABLE;
}

static enum grpc_code exchange(struct grpc_client *c, const char *path, const void *request,
			       int timeout_ms, const ProtobufCMessageDescriptor *reply_type,
			       void **ret, struct error *err)
{
	size_t len = protobuf_c_message_get_packed_size(request);
	cleanup_free uint8_t *frame = xmalloc(GRPC_FRAME_HEAD + len);
	char timeout[TIMEOUT_TEXT_MAX];
	const struct h2_header headers[] = {
		{ "content-type", "application/grpc" },
		{ "te", "trailers" },
		{ "user-agent", "quartermaster/" QM_VERSION },
		{ timeout_ms < 0 ? NULL : "grpc-timeout",
		  timeout_ms < 0 ? NULL : timeout_format(timeout_ms, timeout) },
		{ 0 },
	};
	struct h2_request req = { "POST", path, headers, frame, GRPC_FRAME_HEAD + len };
	struct h2_response res;
	enum grpc_code code;
	int r;

	frame_head(frame, len);
	protobuf_c_message_pack(request, frame + GRPC_FRAME_HEAD);
	r = h2_client_call(c->h2, &req, timeout_ms, &res, err);
	if (r < 0)
		return code_of_h2(r);
	code = read_reply(&res, reply_type, ret, err);
	h2_response_done(&res);
	return code;
}

int grpc_client_call(struct grpc_client *c, const ProtobufCServiceDescriptor *service,
		     const char *method, const void *request, int timeout_ms, void **ret_reply,
		     enum grpc_code *ret_code, struct error *err)
{
	const ProtobufCMethodDescriptor *m =
		protobuf_c_service_descriptor_get_method_by_name(service, method);
	struct error own = ERROR_INIT;
	enum grpc_code code = GRPC_UNIMPLEMENTED;

	if (m) {
		cleanup_free char *path = xasprintf("/%s/%s", service->name, method);

		code = exchange(c, path, request, timeout_ms, m->output, ret_reply, &own);
	} else {
		error_set(&own, EOPNOTSUPP, "The service %s has no method %s", service->name,
			  method);
	}
	if (ret_code)
		*ret_code = code;
	if (code == GRPC_OK)
		return 0;
	return error_set(err, grpc_errno_of(code), "%s", own.message);
}
