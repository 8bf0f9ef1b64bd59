/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/request.h"

/* What the roles of server.h may do. */
struct access {
	enum verb verb;
	const struct kind *kind;
	const char *ns, *name, *subresource; /* NULL: none, all */
};
bool access_allowed(const struct identity *who, const struct access *a);
/* As Kubernetes words a 403: 'storagenodes.coreos.com "x" is forbidden: User "y" cannot …'. */
const char *access_refusal(const struct identity *who, const struct access *a, char *buf,
			   size_t size);

/* What cannot be decided before the object is known: for store_write.guard, userdata is this. */
struct access_guard {
	const struct identity *who;
	const struct access *access;
};
int access_guard(const json_t *old, const json_t *new, void *userdata, struct error *err);
