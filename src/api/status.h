/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "schema/schema.h"

/*
 * What can go wrong, as Kubernetes names it: each fault is an HTTP status, a reason (clients decide
 * by it) and the errno of kube/kube.h.
 */
enum fault {
	FAULT_BAD_REQUEST,
	FAULT_UNAUTHORIZED,
	FAULT_FORBIDDEN,
	FAULT_NOT_FOUND,
	FAULT_METHOD,
	FAULT_NOT_ACCEPTABLE,
	FAULT_EXISTS,
	FAULT_CONFLICT,
	FAULT_EXPIRED,
	FAULT_TOO_LARGE,
	FAULT_MEDIA_TYPE,
	FAULT_INVALID,
	FAULT_INTERNAL,
};

int fault_http(enum fault fault);
int fault_errno(enum fault fault);
/* The fault that an errno of kube/kube.h stands for. */
enum fault fault_of(int code);

/* A metav1.Status of a failure. kind and name may be NULL; causes (borrowed) too. */
json_t *status_failure(enum fault fault, const char *message, const struct kind *kind,
		       const char *name, json_t *causes);
/* What a DELETE answers when the object is gone. */
json_t *status_deleted(const struct kind *kind, const char *name, const char *uid);

/* "storagenodes.coreos.com", "persistentvolumeclaims": how messages name a resource. */
#define RESOURCE_MAX 192
const char *kind_resource(const struct kind *kind, char buf[static RESOURCE_MAX]);
