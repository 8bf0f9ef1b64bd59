/* SPDX-License-Identifier: Apache-2.0 */
#include "api/status.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

static const struct {
	int http;
	int code;
	const char *reason;
} faults[] = {
	[FAULT_BAD_REQUEST] = { 400, EINVAL, "BadRequest" },
	[FAULT_UNAUTHORIZED] = { 401, EACCES, "Unauthorized" },
	[FAULT_FORBIDDEN] = { 403, EPERM, "Forbidden" },
	[FAULT_NOT_FOUND] = { 404, ENOENT, "NotFound" },
	[FAULT_METHOD] = { 405, EINVAL, "MethodNotAllowed" },
	[FAULT_NOT_ACCEPTABLE] = { 406, EINVAL, "NotAcceptable" },
	[FAULT_EXISTS] = { 409, EEXIST, "AlreadyExists" },
	[FAULT_CONFLICT] = { 409, ESTALE, "Conflict" },
	[FAULT_EXPIRED] = { 410, EIDRM, "Expired" },
	[FAULT_TOO_LARGE] = { 413, E2BIG, "RequestEntityTooLarge" },
	[FAULT_MEDIA_TYPE] = { 415, EINVAL, "UnsupportedMediaType" },
	[FAULT_INVALID] = { 422, EINVAL, "Invalid" },
	[FAULT_INTERNAL] = { 500, EAGAIN, "InternalError" },
};

int fault_http(enum fault fault)
{
	return faults[fault].http;
}

int fault_errno(enum fault fault)
{
	return faults[fault].code;
}

enum fault fault_of(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(faults); i++)
		if (faults[i].code == code)
			return (enum fault)i;
	return FAULT_INTERNAL;
}

const char *kind_resource(const struct kind *kind, char buf[static RESOURCE_MAX])
{
	snprintf(buf, RESOURCE_MAX, kind->group[0] ? "%s.%s" : "%s", kind->plural, kind->group);
	return buf;
}

static json_t *status_details(const struct kind *kind, const char *name, const char *kind_word)
{
	json_t *details = json_object();

	if (name && name[0])
		jset(details, json_string(name), "name");
	if (kind && kind->group[0])
		jset(details, json_string(kind->group), "group");
	if (kind)
		jset(details, json_string(kind_word), "kind");
	return details;
}

json_t *status_failure(enum fault fault, const char *message, const struct kind *kind,
		       const char *name, json_t *causes)
{
	json_t *status = json_pack("{s:s, s:s, s:{}, s:s, s:s, s:s}", "kind", "Status",
				   "apiVersion", "v1", "metadata", "status", "Failure", "message",
				   message, "reason", faults[fault].reason);

	if (kind || json_array_size(causes)) {
		/* Kubernetes names the kind of an invalid object, and the resource otherwise. */
		const char *word = !kind		    ? NULL
				   : fault == FAULT_INVALID ? kind->kind
							    : kind->plural;
		json_t *details = status_details(kind, name, word);

		if (json_array_size(causes))
			jset(details, json_incref(causes), "causes");
		jset(status, details, "details");
	}
	jset(status, json_integer(faults[fault].http), "code");
	return status;
}

json_t *status_deleted(const struct kind *kind, const char *name, const char *uid)
{
	json_t *status = json_pack("{s:s, s:s, s:{}, s:s}", "kind", "Status", "apiVersion", "v1",
				   "metadata", "status", "Success");
	json_t *details = status_details(kind, name, kind->plural);

	if (uid)
		jset(details, json_string(uid), "uid");
	jset(status, details, "details");
	return status;
}
