/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"
#include "kube/url.h"

#include <errno.h>
#include <time.h>

#define CALL_TIMEOUT_MS 30000
#define TRIES 5
#define RETRY_BASE_MS 100
#define RETRY_MAX_MS 5000
#define RETRY_AFTER_MAX_S 3600
#define ERROR_BODY_MAX 65536

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

#define HEADERS_MAX 5
static void fill_headers(struct h2_header headers[static HEADERS_MAX], const char *authorization,
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

/* What an answer that is no success, or none at all, means for another try. */
static void judge(struct kube_http *h, int status, const char *after, struct http_try *t)
{
	long seconds = after ? strtol(after, NULL, 10) : 0;

	t->refused = status == 429;
	if (status != 429 && status < 500)
		return;
	if (seconds < 0 || seconds > RETRY_AFTER_MAX_S)
		seconds = RETRY_AFTER_MAX_S;
	t->retry_ms = (int)seconds * 1000;
	if (seconds > 0)
		h->kube.quiet_until_ms = clock_mono_ms(&clock_real) + t->retry_ms;
}

static int lost(struct kube_http *h, int rc, const struct error *why, const char *what,
		struct http_try *t, struct error *err)
{
	if (rc == -ECONNRESET || rc == -EPIPE)
		t->retry_ms = 0;
	return transport_error(h, rc, why, what, err);
}

static int take_credentials(struct kube_http *h, struct auth_use *ret, const char *what,
			    struct http_try *t, struct error *err)
{
	int rc = auth_take(h->auth, ret, err);

	*t = (struct http_try){ .generation = ret->generation, .retry_ms = -1 };
	if (rc < 0 && err)
		error_prefix(err, "cannot %s", what);
	return rc < 0 ? -ENOKEY : 0; /* not what a 401 gives: there is nothing to refresh */
}

static int exchange(struct kube_http *h, const struct request *r, int timeout_ms, json_t **ret,
		    struct http_try *t, struct error *err)
{
	cleanup_with(auth_use_done) struct auth_use use = { 0 };
	cleanup_with(h2_response_done) struct h2_response answer = { 0 };
	struct h2_header headers[HEADERS_MAX];
	struct error why = ERROR_INIT;
	int rc = take_credentials(h, &use, r->what, t, err);

	if (rc < 0)
		return rc;
	fill_headers(headers, use.header, r->content_type);
	rc = h2_client_call(h->h2,
			    &(struct h2_request){ .method = r->method,
						  .path = r->path.data,
						  .headers = headers,
						  .body = r->body,
						  .body_len = r->body ? strlen(r->body) : 0 },
			    timeout_ms, &answer, &why);
	if (rc < 0)
		return lost(h, rc, &why, r->what, t, err);
	if (answer.status >= 200 && answer.status < 300) {
		json_tame(answer.body.data, answer.body.len);
		rc = json_parse(answer.body.data ? answer.body.data : "", answer.body.len, ret,
				err);
		return rc < 0 ? error_set(err, EAGAIN,
					  "cannot %s: the API at %s answered with what is not JSON",
					  r->what, h->where)
			      : 0;
	}
	judge(h, answer.status, h2_response_header(&answer, "retry-after"), t);
	return status_error(answer.status, answer.body.data, answer.body.len, r->what, err);
}

/* The body of a refusal, for its message. */
static int refused(struct kube_http *h, struct h2_stream *s, int status, const char *what,
		   struct error *err)
{
	cleanup_with(buf_done) struct buf body = { 0 };
	char chunk[1024];
	ssize_t n;

	while (body.len < ERROR_BODY_MAX &&
	       (n = h2_stream_read(s, chunk, sizeof(chunk), h->timeout_ms)) > 0)
		buf_add(&body, chunk, (size_t)n);
	return status_error(status, body.data, body.len, what, err);
}

int http_open(struct kube_http *h, const char *path, const char *what, int timeout_ms,
	      struct h2_stream **ret, struct http_try *ret_try, struct error *err)
{
	cleanup_with(auth_use_done) struct auth_use use = { 0 };
	struct h2_header headers[HEADERS_MAX];
	struct h2_request request = { .method = "GET", .path = path, .headers = headers };
	struct error why = ERROR_INIT;
	struct h2_stream *stream;
	int status, rc = take_credentials(h, &use, what, ret_try, err);

	if (rc < 0)
		return rc;
	fill_headers(headers, use.header, NULL);
	rc = h2_stream_open(h->h2, &request, timeout_ms, &stream, &status, &why);
	if (rc < 0)
		return lost(h, rc, &why, what, ret_try, err);
	if (status != 200) {
		judge(h, status, h2_stream_header(stream, "retry-after"), ret_try);
		rc = refused(h, stream, status, what, err);
		h2_stream_close(stream);
		return rc;
	}
	*ret = stream;
	return 0;
}

static int backoff_ms(int attempt, int asked_ms)
{
	int ms = RETRY_BASE_MS << attempt;
	unsigned char jitter;

	rand_bytes(&jitter, 1);
	if (ms > RETRY_MAX_MS)
		ms = RETRY_MAX_MS;
	ms = ms / 2 + ms * jitter / 512;
	return asked_ms + ms; /* not all at the very moment that the server named */
}

static void sleep_ms(int64_t ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

struct http_tries http_tries_new(const struct kube_http *h)
{
	return (struct http_tries){ .deadline_ms = clock_mono_ms(&clock_real) + h->timeout_ms };
}

int http_tries_left_ms(const struct http_tries *t)
{
	int64_t left = t->deadline_ms - clock_mono_ms(&clock_real);

	return left > 1 ? (int)left : 1;
}

/*
 * Reads are tried again after 429, 5xx and a broken connection, writes after 429 only; anything after a
 * 401 where there are new credentials. A write whose outcome is unknown is the caller's to find out.
 */
bool http_try_again(struct kube_http *h, struct http_tries *t, const struct http_try *last, int rc,
		    bool read)
{
	int wait;

	if (rc == -EACCES && !t->refreshed && auth_refused(h->auth, last->generation)) {
		t->refreshed = true;
		return true;
	}
	if (rc >= 0 || last->retry_ms < 0 || !(read || last->refused) || ++t->count >= TRIES)
		return false;
	wait = backoff_ms(t->count, last->retry_ms);
	if (clock_mono_ms(&clock_real) + wait >= t->deadline_ms)
		return false;
	sleep_ms(wait);
	return true;
}

static int call(struct kube_http *h, const struct request *r, json_t **ret, struct error *err)
{
	struct http_tries tries = http_tries_new(h);
	struct http_try last;
	int rc;

	do
		rc = exchange(h, r, http_tries_left_ms(&tries), ret, &last, err);
	while (http_try_again(h, &tries, &last, rc, streq(r->method, "GET")));
	return rc == -ENOKEY ? -EACCES : rc;
}

static int http_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		    json_t **ret, struct error *err)
{
	cleanup_with(request_done) struct request r =
		request_new("GET", "get", kind, ns, name, NULL);

	return call((struct kube_http *)k, &r, ret, err);
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
	auth_free(h->auth);
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

static char *describe(const struct kube_config *c)
{
	cleanup_free char *where = NULL;

	if (c->unix_path)
		return xstrdup(c->unix_path);
	where = xasprintf(strchr(c->host, ':') ? "[%s]:%d" : "%s:%d", c->host, c->port);
	if (c->proxy_host)
		return xasprintf("%s (by the proxy %s:%d)", where, c->proxy_host, c->proxy_port);
	return TAKE_PTR(where);
}

static int connect_h2(const struct kube_config *config, struct h2_client **ret, struct error *err)
{
	struct h2_target target = {
		.unix_path = config->unix_path,
		.host = config->unix_path ? NULL : config->host,
		.port = config->port,
		.tls = !config->unix_path && (config->ca_pem || config->insecure),
		.ca_pem = config->ca_pem,
		.insecure = config->insecure,
		.tls_name = config->tls_name,
		.cert_pem = config->cert_pem,
		.key_pem = config->key_pem,
		.proxy_host = config->unix_path ? NULL : config->proxy_host,
		.proxy_port = config->proxy_port,
		.proxy_auth = config->proxy_auth,
		.ping_ms = config->ping_ms,
	};

	if (!config->unix_path && !config->host)
		return error_set(err, EINVAL,
				 "the API's address is not known: neither a socket nor a host is "
				 "configured");
	return h2_client_new(&target, ret, err);
}

int kube_connect(const struct kube_config *config, struct kube **ret, struct error *err)
{
	struct h2_client *h2;
	struct kube_http *h;
	int rc = connect_h2(config, &h2, err);

	if (rc < 0)
		return rc;
	h = xcalloc(1, sizeof(*h));
	h->kube.ops = &http_ops;
	h->kube.clock = &clock_real;
	h->h2 = h2;
	h->where = describe(config);
	h->manager = xstrdup(config->manager ? config->manager : "quartermaster");
	h->ns = xstrdup(config->ns ? config->ns : "default");
	h->timeout_ms = config->timeout_ms > 0 ? config->timeout_ms : CALL_TIMEOUT_MS;
	h->auth = auth_new(config, h2, &clock_real);
	*ret = &h->kube;
	return 0;
}
