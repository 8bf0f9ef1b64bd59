/* SPDX-License-Identifier: Apache-2.0 */
#include "api/access.h"
#include "api/serving.h"

#include <stdio.h>

#ifndef QM_VERSION
#define QM_VERSION "0"
#endif

static const char *part(const struct request *r, size_t i)
{
	return i < r->parts.count ? r->parts.items[i] : NULL;
}

static void give(const struct request *r, json_t *document)
{
	if (!document) {
		reply_fault(r, FAULT_NOT_FOUND, "the server could not find the requested resource");
		return;
	}
	reply_json(r, 200, document, NULL);
	json_decref(document);
}

static void give_version(const struct request *r)
{
	/* The API is spoken as this Kubernetes speaks it; clients compare the numbers. */
	give(r, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "major", "1", "minor",
			  "34", "gitVersion", "v1.34.0+quartermaster." QM_VERSION, "gitCommit", "",
			  "gitTreeState", "clean", "buildDate", "1970-01-01T00:00:00Z", "goVersion",
			  "", "compiler", "cc", "platform", "linux"));
}

/* ---- discovery ------------------------------------------------------------------------------ */

/* kubectl asks for all of it at once; other clients go group by group. */
static void give_aggregated(const struct request *r, json_t *document)
{
	static const char type[] =
		"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
	cleanup_free char *text = json_text(document);

	reply_text(r, 200, type, text, strlen(text), NULL);
	json_decref(document);
}

static bool wants_aggregated(const struct request *r)
{
	const char *accept = h2_call_header(r->call, "accept");

	return accept && strstr(accept, "v=v2;as=APIGroupDiscoveryList");
}

static bool discovery(const struct request *r)
{
	bool core = streq(part(r, 0), "api"), groups = streq(part(r, 0), "apis");
	size_t n = r->parts.count;

	if (!core && !groups)
		return false;
	if (n == 1 && wants_aggregated(r))
		give_aggregated(r, core ? schema_discovery_core_aggregated()
					: schema_discovery_groups_aggregated());
	else if (n == 1)
		give(r, core ? schema_discovery_core() : schema_discovery_groups());
	else if (n == 2)
		give(r, core ? schema_discovery_resources("", part(r, 1))
			     : schema_discovery_group(part(r, 1)));
	else if (n == 3 && groups)
		give(r, schema_discovery_resources(part(r, 1), part(r, 2)));
	else
		return false;
	return true;
}

/* ---- OpenAPI -------------------------------------------------------------------------------- */

/* The index is made from hashes of all documents, so it is kept: they never change while we run. */
static json_t *openapi_index;

static void make_index(void)
{
	openapi_index = schema_openapi_index();
}

static json_t *get_index(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_index);
	return openapi_index;
}

/* The hash by which the index names a document: changes when the document does. */
static char *document_hash(const char *key)
{
	const char *url = jstr(get_index(), "paths", key, "serverRelativeURL");
	const char *hash = url ? strstr(url, "hash=") : NULL;

	return hash ? xasprintf("\"%s\"", hash + 5) : NULL;
}

static void give_openapi(const struct request *r, const char *group, const char *version)
{
	cleanup_free char *key =
		group[0] ? xasprintf("apis/%s/%s", group, version) : xasprintf("api/%s", version);
	cleanup_free char *etag = document_hash(key), *text = NULL;
	const char *known = h2_call_header(r->call, "if-none-match");
	const struct h2_header headers[] = {
		{ "content-type", "application/json" },
		{ "etag", etag },
		{ "cache-control",
		  request_param(r, "hash") ? "public, immutable, max-age=31536000" : "no-cache" },
		{ NULL, NULL }
	};
	cleanup_json json_t *document = NULL;

	if (!etag) {
		give(r, NULL);
		return;
	}
	if (known && strstr(known, etag)) {
		h2_call_reply(r->call, 304, headers, NULL, 0);
		return;
	}
	document = schema_openapi(group, version);
	text = json_text(document);
	h2_call_reply(r->call, 200, headers, text, strlen(text));
}

/*
 * kubectl asks for the old document, in protobuf, before it reads a file of kind List, to check the
 * items itself. What it does not find there it leaves to the server: so the document has no types.
 */
static void give_openapi_v2(const struct request *r)
{
	/* swagger: "2.0", info: {title: "quartermaster", version: "v1"} */
	static const char proto[] = "\x0a\x03"
				    "2.0"
				    "\x12\x13\x0a\x0d"
				    "quartermaster"
				    "\x12\x02"
				    "v1";
	static const char type[] = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
	const char *accept = h2_call_header(r->call, "accept");

	if (accept && strstr(accept, "protobuf"))
		reply_text(r, 200, type, proto, sizeof(proto) - 1, NULL);
	else
		give(r, json_pack("{s:s, s:{s:s, s:s}, s:{}}", "swagger", "2.0", "info", "title",
				  "quartermaster", "version", "v1", "paths"));
}

static bool openapi(const struct request *r)
{
	size_t n = r->parts.count;

	if (n == 2 && streq(part(r, 0), "openapi") && streq(part(r, 1), "v2")) {
		give_openapi_v2(r);
		return true;
	}
	if (!streq(part(r, 0), "openapi") || !streq(part(r, 1), "v3"))
		return false;
	if (n == 2)
		give(r, json_incref(get_index()));
	else if (n == 4 && streq(part(r, 2), "api"))
		give_openapi(r, "", part(r, 3));
	else if (n == 5 && streq(part(r, 2), "apis"))
		give_openapi(r, part(r, 3), part(r, 4));
	else
		return false;
	return true;
}

/* ---- who am I, may I ------------------------------------------------------------------------ */

static void review_self(const struct request *r)
{
	cleanup_free char *group = xasprintf("quartermaster:%s", r->who.role);

	cleanup_json json_t *review = json_pack(
		"{s:s, s:s, s:{}, s:{s:{s:s, s:[s, s]}}}", "kind", "SelfSubjectReview",
		"apiVersion", "authentication.k8s.io/v1", "metadata", "status", "userInfo",
		"username", r->who.name, "groups", group, "system:authenticated");

	reply_json(r, 201, review, NULL);
}

static enum verb verb_of(const char *text)
{
	for (int v = VERB_GET; v <= VERB_DELETE_COLLECTION; v++)
		if (streq(verb_text((enum verb)v), text))
			return (enum verb)v;
	return VERB_NONE;
}

static const struct kind *kind_of(const char *group, const char *plural)
{
	for (size_t i = 0; kinds[i]; i++)
		if (streq(kinds[i]->plural, plural) && streq(kinds[i]->group, group ? group : ""))
			return kinds[i];
	return NULL;
}

static const char *or_null(const char *text)
{
	return text && text[0] ? text : NULL;
}

static void review_access(const struct request *r)
{
	cleanup_json json_t *body = NULL, *result = NULL;
	const json_t *what;
	struct error err = ERROR_INIT;
	struct access a;
	bool allowed;

	if (request_body(r, &body, &err) < 0) {
		reply_fault(r, FAULT_BAD_REQUEST, "the body cannot be read: %s", err.message);
		return;
	}
	what = jget(body, "spec", "resourceAttributes");
	a = (struct access){ .verb = verb_of(jstr(what, "verb")),
			     .kind = kind_of(jstr(what, "group"), jstr(what, "resource")),
			     .ns = or_null(jstr(what, "namespace")),
			     .name = or_null(jstr(what, "name")),
			     .subresource = or_null(jstr(what, "subresource")) };
	allowed = streq(r->who.role, "admin") ||
		  (a.kind && a.verb != VERB_NONE && access_allowed(&r->who, &a));
	result = json_pack("{s:s, s:s, s:{}, s:O?, s:{s:b}}", "kind", "SelfSubjectAccessReview",
			   "apiVersion", "authorization.k8s.io/v1", "metadata", "spec",
			   json_object_get(body, "spec"), "status", "allowed", allowed);
	reply_json(r, 201, result, NULL);
}

static bool reviews(const struct request *r)
{
	if (!streq(r->method, "POST") || r->parts.count != 4 || !streq(part(r, 0), "apis"))
		return false;
	if (streq(part(r, 1), "authentication.k8s.io") && streq(part(r, 3), "selfsubjectreviews"))
		review_self(r);
	else if (streq(part(r, 1), "authorization.k8s.io") &&
		 streq(part(r, 3), "selfsubjectaccessreviews"))
		review_access(r);
	else
		return false;
	return true;
}

static bool health(const struct request *r)
{
	static const char *const paths[] = { "healthz", "livez", "readyz" };

	if (r->parts.count != 1)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (streq(part(r, 0), paths[i])) {
			reply_text(r, 200, "text/plain; charset=utf-8", "ok", 2, NULL);
			return true;
		}
	}
	if (!streq(part(r, 0), "version"))
		return false;
	give_version(r);
	return true;
}

bool docs_handle(struct request *r, bool open_only)
{
	if (!streq(r->method, "GET"))
		return !open_only && reviews(r);
	if (open_only)
		return health(r);
	return discovery(r) || openapi(r);
}
