/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"
#include "kube/url.h"

#include <errno.h>
#include <time.h>

#define CALL_TIMEOUT_MS 30000
#define READ_TRIES 5
#define RETRY_BASE_MS 100
#define RETRY_MAX_MS 5000
#define PAGE 500
/* Pages for a caller that keeps none of the parsed objects: 500 of them would cost megabytes. */
#define PAGE_STREAMED 100

struct request {
	const char *method;
	struct buf path;
	const char *content_type;
	char *body;
	char *what; /* "get StorageNode a/b" */
};

static void request_done(struct request *r)
{
	buf_done(&r->path);
	free(r->body);
	free(r->what);
}

static struct request request_new(const char *method, const char *verb, const struct kind *kind,
				  const char *ns, const char *name, const char *subresource)
{
	struct request r = { .method = method };

	url_path(&r.path, kind, ns, name, subresource);
	if (name)
		r.what = xasprintf("%s %s %s%s%s", verb, kind->kind, ns ? ns : "",
				   ns && *ns ? "/" : "", name);
	else
		r.what = xasprintf("%s %s", verb, kind->kind);
	return r;
}

void http_headers(struct h2_header headers[static KUBE_HEADERS_MAX], const char *authorization,
		  const char *content_type)
{
	size_t n = 0;

	headers[n++] = (struct h2_header){ "accept", "application/json" };
	headers[n++] = (struct h2_header){ "user-agent", "quartermaster/" QM_VERSION };
	if (authorization)
		headers[n++] = (struct h2_header){ "authorization", authorization };
	if (content_type)
		headers[n++] = (struct h2_header){ "content-type", content_type };
	headers[n] = (struct h2_header){ 0 };
}

/* One exchange; ret_retry_ms: what Retry-After asks for, 0 for a back-off of our own, -1: do not. */
static int exchange(struct kube_http *h, const struct request *r, int timeout_ms, json_t **ret,
		    int *ret_retry_ms, struct error *err)
{
	cleanup_free char *authorization = token_header(h->token);
	cleanup_with(h2_response_done) struct h2_response answer = { 0 };
	struct h2_header headers[KUBE_HEADERS_MAX];
	const char *after;
	int rc;

	http_headers(headers, authorization, r->content_type);
	*ret_retry_ms = -1;
	rc = h2_client_call(h->h2,
			    &(struct h2_request){ .method = r->method,
						  .path = r->path.data,
						  .headers = headers,
						  .body = r->body,
						  .body_len = r->body ? strlen(r->body) : 0 },
			    timeout_ms, &answer, NULL);
	if (rc < 0) {
		if (rc == -ECONNRESET || rc == -EPIPE)
			*ret_retry_ms = 0;
		return transport_error(h, rc, r->what, err);
	}
	if (answer.status >= 200 && answer.status < 300) {
		json_tame(answer.body.data, answer.body.len);
		rc = json_parse(answer.body.data ? answer.body.data : "", answer.body.len, ret,
				err);
		return rc < 0 ? error_set(err, EAGAIN,
					  "cannot %s: the API at %s answered with what is not JSON",
					  r->what, h->where)
			      : 0;
	}
	if (answer.status == 429 || answer.status == 503) {
		after = h2_response_header(&answer, "retry-after");
		*ret_retry_ms = after ? atoi(after) * 1000 : 0;
	}
	return status_error(answer.status, answer.body.data, answer.body.len, r->what, err);
}

static int backoff_ms(int attempt, int asked_ms)
{
	int ms = RETRY_BASE_MS << attempt;
	unsigned char jitter;

	rand_bytes(&jitter, 1);
	if (ms > RETRY_MAX_MS)
		ms = RETRY_MAX_MS;
	ms = ms / 2 + ms * jitter / 512;
	return asked_ms > ms ? asked_ms : ms;
}

static void sleep_ms(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/*
 * An exchange with what may be tried again: reads after 429, 503 and a broken connection; anything
 * after a 401 where the token file has a new token. A write whose outcome is unknown is the
 * caller's to find out.
 */
static int call(struct kube_http *h, const struct request *r, json_t **ret, struct error *err)
{
	int64_t deadline = clock_mono_ms(&clock_real) + h->timeout_ms;
	bool read = streq(r->method, "GET"), refreshed = false;
	int rc, retry, tries = 0;

	for (;;) {
		int64_t left = deadline - clock_mono_ms(&clock_real);

		rc = exchange(h, r, left > 1 ? (int)left : 1, ret, &retry, err);
		if (rc == -EACCES && !refreshed && token_refused(h->token)) {
			refreshed = true;
			continue;
		}
		if (rc >= 0 || !read || retry < 0 || ++tries >= READ_TRIES)
			return rc;
		retry = backoff_ms(tries, retry);
		if (clock_mono_ms(&clock_real) + retry >= deadline)
			return rc;
		sleep_ms(retry);
	}
}

static int http_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		    json_t **ret, struct error *err)
{
	cleanup_with(request_done) struct request r =
		request_new("GET", "get", kind, ns, name, NULL);

	return call((struct kube_http *)k, &r, ret, err);
}

/* Items of Kubernetes' own kinds come without kind and apiVersion; an object should say what it is. */
static void name_kind(const struct kind *kind, json_t *item)
{
	char version[200];

	if (json_object_get(item, "kind"))
		return;
	json_object_set_new(item, "kind", json_string(kind->kind));
	json_object_set_new(item, "apiVersion",
			    json_string(kind_api_version(kind, version, sizeof(version))));
}

struct list {
	const struct kind *kind;
	const char *ns;
	const struct kube_selector *sel;
	int limit; /* 0: no pages */
	int (*fn)(json_t *object, void *userdata);
	void *userdata;
};

static int list_page(struct kube_http *h, const struct list *l, const char *token, json_t **ret,
		     struct error *err)
{
	cleanup_with(request_done) struct request r =
		request_new("GET", "list", l->kind, l->ns, NULL, NULL);
	char limit[16];

	url_selector(&r.path, l->sel);
	snprintf(limit, sizeof(limit), "%d", l->limit);
	url_query(&r.path, "limit", l->limit ? limit : NULL);
	url_query(&r.path, "continue", token);
	return call(h, &r, ret, err);
}

static int list_pages(struct kube_http *h, const struct list *l, char **ret_version,
		      struct error *err)
{
	cleanup_free char *token = NULL;
	cleanup_free char *version = NULL;

	do {
		cleanup_json json_t *page = NULL;
		const char *text;
		json_t *item;
		size_t i;
		int rc = list_page(h, l, token, &page, err);

		if (rc < 0)
			return rc;
		json_array_foreach (json_object_get(page, "items"), i, item) {
			name_kind(l->kind, item);
			rc = l->fn(item, l->userdata);
			if (rc)
				return rc;
		}
		free(token);
		text = jstr(page, "metadata", "continue");
		token = text && *text ? xstrdup(text) : NULL;
		free(version);
		text = jstr(page, "metadata", "resourceVersion");
		version = xstrdup(text ? text : "");
	} while (token);
	*ret_version = TAKE_PTR(version);
	return 0;
}

static int http_list_each(struct kube *k, const struct kind *kind, const char *ns,
			  const struct kube_selector *sel,
			  int (*fn)(json_t *object, void *userdata), void *userdata,
			  char **ret_version, struct error *err)
{
	struct list l = { kind, ns, sel, PAGE_STREAMED, fn, userdata };

	return list_pages((struct kube_http *)k, &l, ret_version, err);
}

static int append_item(json_t *object, void *userdata)
{
	json_array_append(userdata, object);
	return 0;
}

static int http_list(struct kube *k, const struct kind *kind, const char *ns,
		     const struct kube_selector *sel, json_t **ret, char **ret_version,
		     struct error *err)
{
	cleanup_json json_t *items = json_array();
	struct list l = { kind, ns, sel, PAGE, append_item, items };
	int rc = list_pages((struct kube_http *)k, &l, ret_version, err);

	if (rc == -EIDRM) { /* the pages' snapshot is gone: all in one answer then */
		json_array_clear(items);
		l.limit = 0;
		rc = list_pages((struct kube_http *)k, &l, ret_version, err);
	}
	if (rc < 0)
		return rc;
	*ret = TAKE_PTR(items);
	return 0;
}

static int http_create(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		       struct error *err)
{
	struct kube_http *h = (struct kube_http *)k;
	const char *ns = object_namespace(object);
	cleanup_with(request_done) struct request r =
		request_new("POST", "create", kind, *ns ? ns : h->ns, NULL, NULL);

	url_query(&r.path, "fieldManager", h->manager);
	r.content_type = "application/json";
	r.body = json_text(object);
	return call(h, &r, ret, err);
}

static int http_update(struct kube *k, const struct kind *kind, const char *subresource,
		       const json_t *object, json_t **ret, struct error *err)
{
	struct kube_http *h = (struct kube_http *)k;
	const char *ns = object_namespace(object);
	cleanup_with(request_done) struct request r = request_new(
		"PUT", "update", kind, *ns ? ns : h->ns, object_name(object), subresource);

	url_query(&r.path, "fieldManager", h->manager);
	r.content_type = "application/json";
	r.body = json_text(object);
	return call(h, &r, ret, err);
}

static int http_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		      const char *subresource, enum kube_patch type, const json_t *patch,
		      json_t **ret, struct error *err)
{
	static const char *const types[] = {
		[KUBE_PATCH_MERGE] = "application/merge-patch+json",
		[KUBE_PATCH_JSON] = "application/json-patch+json",
		[KUBE_PATCH_APPLY] = "application/apply-patch+yaml",
	};
	struct kube_http *h = (struct kube_http *)k;
	cleanup_with(request_done) struct request r =
		request_new("PATCH", "patch", kind, ns, name, subresource);

	url_query(&r.path, "fieldManager", h->manager);
	url_query(&r.path, "force", type == KUBE_PATCH_APPLY ? "true" : NULL);
	r.content_type = types[type];
	r.body = json_text(patch);
	return call(h, &r, ret, err);
}

static int http_remove(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		       const struct kube_delete_options *options, struct error *err)
{
	cleanup_with(request_done) struct request r =
		request_new("DELETE", "delete", kind, ns, name, NULL);
	cleanup_json json_t *body =
		json_pack("{ss ss}", "apiVersion", "v1", "kind", "DeleteOptions");
	cleanup_json json_t *answer = NULL;

	jset(body, json_string(options->propagation ? options->propagation : "Background"),
	     "propagationPolicy");
	if (options->uid)
		jset(body, json_string(options->uid), "preconditions", "uid");
	if (options->resource_version)
		jset(body, json_string(options->resource_version), "preconditions",
		     "resourceVersion");
	r.content_type = "application/json";
	r.body = json_text(body);
	return call((struct kube_http *)k, &r, &answer, err);
}

static void http_free(struct kube *k)
{
	struct kube_http *h = (struct kube_http *)k;

	h2_client_free(h->h2);
	token_free(h->token);
	free(h->where);
	free(h->manager);
	free(h->ns);
	free(h);
}

static const struct kube_ops http_ops = {
	.get = http_get,
	.list = http_list,
	.create = http_create,
	.update = http_update,
	.patch = http_patch,
	.remove = http_remove,
	.watch = http_watch,
	.watch_next = http_watch_next,
	.watch_cancel = http_watch_cancel,
	.watch_close = http_watch_close,
	.free = http_free,
	.list_each = http_list_each,
};

int kube_connect(const struct kube_config *config, struct kube **ret, struct error *err)
{
	struct h2_target target = {
		.unix_path = config->unix_path,
		.host = config->unix_path ? NULL : config->host,
		.port = config->port,
		.tls = !config->unix_path && config->ca_pem,
		.ca_pem = config->ca_pem,
		.cert_pem = config->cert_pem,
		.key_pem = config->key_pem,
	};
	struct h2_client *h2;
	struct kube_http *h;
	int rc;

	if (!config->unix_path && !config->host)
		return error_set(err, EINVAL,
				 "the API's address is not known: neither a socket "
				 "nor a host is configured");
	rc = h2_client_new(&target, &h2, err);
	if (rc < 0)
		return rc;
	h = xcalloc(1, sizeof(*h));
	h->kube = (struct kube){ .ops = &http_ops, .clock = &clock_real };
	h->h2 = h2;
	h->where = config->unix_path ? xstrdup(config->unix_path)
				     : xasprintf("%s:%d", config->host, config->port);
	h->manager = xstrdup(config->manager ? config->manager : "quartermaster");
	h->ns = xstrdup(config->ns ? config->ns : "default");
	h->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : CALL_TIMEOUT_MS;
	h->token = token_new(config->token, config->token_file, &clock_real);
	*ret = &h->kube;
	return 0;
}
