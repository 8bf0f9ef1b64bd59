/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "grpc/grpc.h"

#include <errno.h>

/* Both ways: the first line of a code is what a client gets for it. */
static const struct {
	int code;
	enum grpc_code grpc;
} table[] = {
	{ ECANCELED, GRPC_CANCELLED },	       { EINVAL, GRPC_INVALID_ARGUMENT },
	{ ETIMEDOUT, GRPC_DEADLINE_EXCEEDED }, { ENOENT, GRPC_NOT_FOUND },
	{ EEXIST, GRPC_ALREADY_EXISTS },       { EACCES, GRPC_PERMISSION_DENIED },
	{ EPERM, GRPC_PERMISSION_DENIED },     { ENOSPC, GRPC_RESOURCE_EXHAUSTED },
	{ EBUSY, GRPC_FAILED_PRECONDITION },   { EINPROGRESS, GRPC_ABORTED },
	{ ERANGE, GRPC_OUT_OF_RANGE },	       { EOPNOTSUPP, GRPC_UNIMPLEMENTED },
	{ EAGAIN, GRPC_UNAVAILABLE },	       { ECONNREFUSED, GRPC_UNAVAILABLE },
	{ ECONNRESET, GRPC_UNAVAILABLE },      { ECONNABORTED, GRPC_UNAVAILABLE },
	{ EHOSTUNREACH, GRPC_UNAVAILABLE },    { EHOSTDOWN, GRPC_UNAVAILABLE },
	{ ENETUNREACH, GRPC_UNAVAILABLE },     { ENETDOWN, GRPC_UNAVAILABLE },
	{ ENETRESET, GRPC_UNAVAILABLE },       { ENOTCONN, GRPC_UNAVAILABLE },
	{ EPIPE, GRPC_UNAVAILABLE },
};

static const char *const names[] = {
	[GRPC_OK] = "OK",
	[GRPC_CANCELLED] = "CANCELLED",
	[GRPC_UNKNOWN] = "UNKNOWN",
	[GRPC_INVALID_ARGUMENT] = "INVALID_ARGUMENT",
	[GRPC_DEADLINE_EXCEEDED] = "DEADLINE_EXCEEDED",
	[GRPC_NOT_FOUND] = "NOT_FOUND",
	[GRPC_ALREADY_EXISTS] = "ALREADY_EXISTS",
	[GRPC_PERMISSION_DENIED] = "PERMISSION_DENIED",
	[GRPC_RESOURCE_EXHAUSTED] = "RESOURCE_EXHAUSTED",
	[GRPC_FAILED_PRECONDITION] = "FAILED_PRECONDITION",
	[GRPC_ABORTED] = "ABORTED",
	[GRPC_OUT_OF_RANGE] = "OUT_OF_RANGE",
	[GRPC_UNIMPLEMENTED] = "UNIMPLEMENTED",
	[GRPC_INTERNAL] = "INTERNAL",
	[GRPC_UNAVAILABLE] = "UNAVAILABLE",
	[GRPC_DATA_LOSS] = "DATA_LOSS",
	[GRPC_UNAUTHENTICATED] = "UNAUTHENTICATED",
};

enum grpc_code grpc_code_of(int rc)
{
	if (rc >= 0)
		return GRPC_OK;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].code == -rc)
			return table[i].grpc;
	return GRPC_INTERNAL;
}

int grpc_errno_of(enum grpc_code code)
{
	if (code == GRPC_OK)
		return 0;
	if (code == GRPC_UNAUTHENTICATED)
		return EACCES;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].grpc == code)
			return table[i].code;
	return EIO;
}

const char *grpc_code_name(enum grpc_code code)
{
	return (size_t)code < ARRAY_SIZE(names) ? names[code] : "UNKNOWN";
}
