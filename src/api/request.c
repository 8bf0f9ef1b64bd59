/* SPDX-License-Identifier: Apache-2.0 */
#include "api/request.h"
#include "api/proto.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define PARTS_MAX 16
#define PARAMS_MAX 64

const char *verb_text(enum verb verb)
{
	static const char *const texts[] = { "",      "get",	"list",
					     "watch", "create", "update",
					     "patch", "delete", "deletecollection" };

	return texts[verb];
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Percent-decoding; NULL where it is malformed or hides a NUL. */
static char *decode(const char *text, size_t len, bool plus)
{
	char *out = xmalloc(len + 1);
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int c = (unsigned char)text[i];

		if (c == '+' && plus)
			c = ' ';
		if (c == '%') {
			int high = i + 2 < len ? hex(text[i + 1]) : -1;
			int low = high < 0 ? -1 : hex(text[i + 2]);

			c = low < 0 ? 0 : high * 16 + low;
			i += 2;
		}
		if (c == 0) {
			free(out);
			return NULL;
		}
		out[n++] = (char)c;
	}
	out[n] = '\0';
	return out;
}

static int add_part(struct strv *v, const char *text, size_t len, bool plus, size_t max)
{
	char *part = decode(text, len, plus);

	if (!part)
		return -EINVAL;
	strv_add_take(v, part);
	return v->count > max ? -EINVAL : 0;
}

static int parse_query(struct request *r, const char *p)
{
	int rc = 0;

	while (*p && rc >= 0) {
		size_t len = strcspn(p, "&"), name = strcspn(p, "=&");

		if (len) {
			rc = add_part(&r->query, p, name, true, 2 * PARAMS_MAX);
			if (rc >= 0)
				rc = name < len ? add_part(&r->query, p + name + 1, len - name - 1,
							   true, 2 * PARAMS_MAX)
						: add_part(&r->query, "", 0, true, 2 * PARAMS_MAX);
		}
		p += len + (p[len] == '&');
	}
	return rc;
}

int request_parse(struct request *r, const char *path)
{
	const char *end = path + strcspn(path, "?#");
	int rc = path[0] == '/' ? 0 : -EINVAL;

	while (path < end && rc >= 0) {
		size_t len;

		path++; /* the slash */
		len = strcspn(path, "/?#");
		if (len)
			rc = add_part(&r->parts, path, len, false, PARTS_MAX);
		path += len;
	}
	if (rc >= 0 && *end == '?')
		rc = parse_query(r, end + 1);
	return rc;
}

void request_done(struct request *r)
{
	strv_done(&r->parts);
	strv_done(&r->query);
}

const char *request_param(const struct request *r, const char *name)
{
	for (size_t i = 0; i + 1 < r->query.count; i += 2)
		if (streq(r->query.items[i], name))
			return r->query.items[i + 1];
	return NULL;
}

bool request_flag(const struct request *r, const char *name)
{
	const char *v = request_param(r, name);

	return v && (streq(v, "true") || streq(v, "1") || streq(v, ""));
}

static const char *part(const struct request *r, size_t i)
{
	return i < r->parts.count ? r->parts.items[i] : NULL;
}

/* The resource of parts[at…], below group and version. */
static int route_resource(struct request *r, const char *group, const char *version, size_t at)
{
	size_t rest = r->parts.count - at;
	bool below_ns = rest >= 3 && streq(part(r, at), "namespaces");

	/* /api/v1/namespaces/NAME/status is about the namespace itself */
	if (below_ns && group[0] == '\0' && rest == 3 && streq(part(r, at + 2), "status"))
		below_ns = false;
	if (below_ns) {
		r->ns = part(r, at + 1);
		at += 2;
		rest -= 2;
	}
	if (rest > 3)
		return -ENOENT;
	r->kind = kind_by_path(group, version, part(r, at));
	r->name = part(r, at + 1);
	r->subresource = part(r, at + 2);
	if (!r->kind || (r->ns && !r->kind->namespaced))
		return -ENOENT;
	if (r->subresource && (!streq(r->subresource, "status") || !r->kind->has_status))
		return -ENOENT;
	/* An object of a namespaced kind has no name without its namespace. */
	if (r->kind->namespaced && !r->ns && r->name)
		return -ENOENT;
	return 0;
}

static int find_verb(struct request *r)
{
	static const struct {
		const char *method;
		bool named;
		enum verb verb;
	} verbs[] = {
		{ "GET", true, VERB_GET },
		{ "GET", false, VERB_LIST },
		{ "POST", false, VERB_CREATE },
		{ "PUT", true, VERB_UPDATE },
		{ "PATCH", true, VERB_PATCH },
		{ "DELETE", true, VERB_DELETE },
		{ "DELETE", false, VERB_DELETE_COLLECTION },
	};

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (streq(verbs[i].method, r->method) && verbs[i].named == (r->name != NULL))
			r->verb = verbs[i].verb;
	if (r->verb == VERB_LIST && request_flag(r, "watch"))
		r->verb = VERB_WATCH;
	if (r->verb == VERB_NONE || (r->verb == VERB_DELETE && r->subresource))
		return -EPERM;
	if (r->kind->namespaced && !r->ns && r->verb != VERB_LIST && r->verb != VERB_WATCH)
		return -EPERM;
	return 0;
}

static enum form find_form(const char *accept)
{
	/* The first of them that we know wins, as the client's order says. */
	const char *table = accept ? strstr(accept, "as=Table") : NULL;
	const char *metadata = accept ? strstr(accept, "as=PartialObjectMetadata") : NULL;

	if (table && (!metadata || table < metadata))
		return FORM_TABLE;
	return metadata ? FORM_METADATA : FORM_OBJECT;
}

int request_route(struct request *r)
{
	int rc = -ENOENT;

	if (streq(part(r, 0), "api") && streq(part(r, 1), "v1") && r->parts.count > 2)
		rc = route_resource(r, "", "v1", 2);
	else if (streq(part(r, 0), "apis") && r->parts.count > 3)
		rc = route_resource(r, part(r, 1), part(r, 2), 3);
	if (rc < 0)
		return rc;
	if (r->call)
		r->form = find_form(h2_call_header(r->call, "accept"));
	return find_verb(r);
}

int request_body(const struct request *r, json_t **ret, struct error *err)
{
	const char *type = h2_call_header(r->call, "content-type");
	size_t len;
	const char *body = h2_call_body(r->call, &len);
	struct yaml_docs docs;
	int rc;

	if (type && strstr(type, "protobuf"))
		return proto_parse(body ? body : "", len, ret, err);
	if (!type || !strstr(type, "yaml"))
		return json_parse(body ? body : "", len, ret, err);
	rc = yaml_parse(body ? body : "", len, "body", &docs, err);
	if (rc < 0)
		return rc;
	if (docs.count == 1)
		*ret = json_incref(docs.items[0].value);
	else
		rc = error_set(err, EINVAL, "the body must hold exactly one document");
	yaml_docs_done(&docs);
	return rc;
}

void reply_text(const struct request *r, int status, const char *type, const char *text, size_t len,
		const char *warning)
{
	struct h2_header headers[5] = { { "content-type", type },
					{ "cache-control", "no-cache, private" } };
	cleanup_free char *quoted = NULL;
	size_t n = 2;

	if (warning) {
		quoted = xasprintf("299 - \"%s\"", warning);
		/* what is inside must not end the quoted text */
		for (char *p = quoted + 7; p[1]; p++)
			if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ')
				*p = '\'';
		headers[n++] = (struct h2_header){ "warning", quoted };
	}
	h2_call_reply(r->call, status, headers, text, len);
}

void reply_json(const struct request *r, int status, const json_t *value, const char *warning)
{
	cleanup_free char *text = json_text(value);

	reply_text(r, status, "application/json", text, strlen(text), warning);
}

void reply_fault(const struct request *r, enum fault fault, const char *format, ...)
{
	cleanup_json json_t *status = NULL;
	char message[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	status = status_failure(fault, message, r->kind, r->name, NULL);
	reply_json(r, fault_http(fault), status, NULL);
}
