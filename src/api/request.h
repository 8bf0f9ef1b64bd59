/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/status.h"
#include "api/tokens.h"
#include "base/str.h"
#include "h2/h2.h"

enum verb {
	VERB_NONE, /* not a resource: discovery and the like */
	VERB_GET,
	VERB_LIST,
	VERB_WATCH,
	VERB_CREATE,
	VERB_UPDATE,
	VERB_PATCH,
	VERB_DELETE,
	VERB_DELETE_COLLECTION,
};
const char *verb_text(enum verb verb);

/* How the client wants objects to look. */
enum form { FORM_OBJECT, FORM_TABLE, FORM_METADATA };

/* A request taken apart. Everything it points to lives as long as itself. */
struct request {
	struct h2_call *call;
	const char *method;
	struct strv parts; /* of the path, decoded */
	struct strv query; /* name, value, name, value …, decoded */
	enum verb verb;
	const struct kind *kind;
	const char *ns, *name, *subresource; /* NULL where the path has none */
	enum form form;
	struct identity who;
};

/* Splits path and query; -EINVAL where they are malformed. Knows nothing of resources yet. */
int request_parse(struct request *r, const char *path);
/* Finds what resource the path means: 0, or -ENOENT where it is none of ours; -EPERM for a method
 * that the resource does not have. */
int request_route(struct request *r);
void request_done(struct request *r);
const char *request_param(const struct request *r, const char *name); /* NULL: not given */
bool request_flag(const struct request *r, const char *name); /* "true" or "1" */

/* The body as a value: JSON, or YAML where the content type says so. */
int request_body(const struct request *r, json_t **ret, struct error *err);

void reply_json(const struct request *r, int status, const json_t *value, const char *warning);
void reply_text(const struct request *r, int status, const char *type, const char *text, size_t len,
		const char *warning);
void reply_fault(const struct request *r, enum fault fault, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
