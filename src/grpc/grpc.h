/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * gRPC over HTTP/2 (src/h2) on unix sockets: unary calls of services that protobuf-c describes. A
 * handler reads from top to bottom and may block; what it answers with lives in the call's own
 * memory, which goes with the call. Any :authority is accepted: kubelets send several.
 */

/* The wire's numbers. */
enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_NOT_FOUND = 5,
	GRPC_ALREADY_EXISTS = 6,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_FAILED_PRECONDITION = 9,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
};

/*
 * What a handler's -errno is for the caller: EINVAL is INVALID_ARGUMENT, ENOENT NOT_FOUND, EEXIST
 * ALREADY_EXISTS, EBUSY FAILED_PRECONDITION, EINPROGRESS (another call works on it) ABORTED, ENOSPC
 * RESOURCE_EXHAUSTED, ERANGE OUT_OF_RANGE, EOPNOTSUPP UNIMPLEMENTED, EACCES and EPERM
 * PERMISSION_DENIED, EAGAIN and what the network says UNAVAILABLE, ETIMEDOUT DEADLINE_EXCEEDED,
 * ECANCELED CANCELLED (DEADLINE_EXCEEDED where the caller's time is over), anything else INTERNAL; and
 * back, for a client.
 */
enum grpc_code grpc_code_of(int rc); /* GRPC_OK for rc >= 0 */
int grpc_errno_of(enum grpc_code code); /* positive; 0 for GRPC_OK */
const char *grpc_code_name(enum grpc_code code); /* "NOT_FOUND" */

/* ---- server ---------------------------------------------------------------------------------- */

struct grpc_call;

/*
 * 0, or -errno with the sentence that the caller is to read. reply is initialised as its type asks.
 * Text of the request is UTF-8 without NUL; text that is not there is "". request and reply live as
 * long as the call; one answer has at most 4 MiB. Runs on a thread with a stack of 256 KiB.
 */
typedef int (*grpc_handler)(struct grpc_call *call, const void *request, void *reply,
			    struct error *err);

struct grpc_method {
	const char *name; /* as in the .proto file */
	grpc_handler handler;
};

/* A service that is served; methods that are not in the table are answered UNIMPLEMENTED. */
struct grpc_service {
	const ProtobufCServiceDescriptor *descriptor;
	const struct grpc_method *methods; /* ended by name NULL */
	void *userdata;
};

/* What the service was started with. */
void *grpc_call_userdata(const struct grpc_call *c);
/* How many ms the caller still waits, INT_MAX where it did not say; 0 when its time is over. */
int grpc_call_left_ms(const struct grpc_call *c);
/* Whether the caller went away or gave up, its time is over, or the server has been ending for 2 s. */
bool grpc_call_cancelled(const struct grpc_call *c);
/* Memory (zeroed) that lives as long as the call: for what the reply points to. Never NULL. On the
 * handler's own thread only. */
void *grpc_call_alloc(struct grpc_call *c, size_t size);
char *grpc_call_strdup(struct grpc_call *c, const char *s);
/* A message of that type, initialised, in the call's memory. */
void *grpc_call_message(struct grpc_call *c, const ProtobufCMessageDescriptor *type);

struct grpc_listen {
	const char *
		unix_path; /* mode 0600 (0666 with anyone); made anew where an earlier server left it */
	int workers; /* handlers at a time; 0: 64 */
	size_t max_request; /* bytes; 0: 4 MiB */
	bool anyone; /* peers that are not root are refused, unless this is set (tests) */
};

struct grpc_server;
/* services: ended by descriptor NULL, copied; their tables of methods are not. -EINVAL where such a
 * table has a method that its service does not have. */
int grpc_server_start(const struct grpc_listen *listen, const struct grpc_service *services,
		      struct grpc_server **ret, struct error *err);
/* Ends all calls; handlers that run are waited for, and answer if they end within 2 s. NULL-safe. */
void grpc_server_free(struct grpc_server *s);

/* ---- client ---------------------------------------------------------------------------------- */

struct grpc_client;
/* Does not connect yet: a connection is made when needed, and made again after it broke. */
int grpc_client_new(const char *unix_path, struct grpc_client **ret, struct error *err);
void grpc_client_free(struct grpc_client *c); /* NULL-safe; ends calls with GRPC_UNAVAILABLE */
/*
 * One call; blocks, timeout_ms is also the deadline that the server is told. 0 and the reply (ended
 * with protobuf_c_message_free_unpacked), or -errno (grpc_errno_of) with the server's sentence;
 * ret_code, which may be NULL, has the code that it sent, GRPC_UNAVAILABLE where nobody answered,
 * GRPC_DEADLINE_EXCEEDED after timeout_ms (below 0: none). From any thread, many at a time.
 */
int grpc_client_call(struct grpc_client *c, const ProtobufCServiceDescriptor *service,
		     const char *method, const void *request, int timeout_ms, void **ret_reply,
		     enum grpc_code *ret_code, struct error *err);
