/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"
#include "kube/url.h"

#include <errno.h>

#define READ_SIZE 16384
#define ERROR_BODY_MAX 65536

/* ---- lines ---------------------------------------------------------------------------------- */

static int event_type(const char *text, enum kube_event_type *ret)
{
	static const char *const names[] = {
		[KUBE_ADDED] = "ADDED",
		[KUBE_MODIFIED] = "MODIFIED",
		[KUBE_DELETED] = "DELETED",
		[KUBE_BOOKMARK] = "BOOKMARK",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (streq(text, names[i])) {
			*ret = (enum kube_event_type)i;
			return 0;
		}
	}
	return -EPROTO;
}

static int parse_line(const char *line, size_t len, struct kube_event *ret, struct error *err)
{
	cleanup_json json_t *event = NULL;
	const char *type, *message;
	json_t *object;
	int rc = json_parse(line, len, &event, NULL);

	if (rc < 0)
		return error_set(err, EPROTO, "a watch brought a line that is not JSON");
	type = jstr(event, "type");
	object = json_object_get(event, "object");
	if (streq(type, "ERROR")) {
		message = jstr(object, "message");
		return error_set(err, status_errno((int)jint(object, "code"), object),
				 "the watch ended: %s", message ? message : "the server says no more");
	}
	if (!json_is_object(object) || event_type(type, &ret->type) < 0)
		return error_set(err, EPROTO, "a watch brought an event of unknown type");
	ret->object = json_incref(object);
	return 1;
}

int watch_lines_feed(struct watch_lines *l, const void *data, size_t len, struct error *err)
{
	if (l->taken > 0) { /* what was given out goes before more comes in */
		memmove(l->buf.data, l->buf.data + l->taken, l->buf.len - l->taken);
		l->buf.len -= l->taken;
		l->searched -= l->taken;
		l->taken = 0;
	}
	if (l->buf.len + len > WATCH_LINE_MAX)
		return error_set(err, EPROTO, "a watch brought a line longer than %u bytes",
				 WATCH_LINE_MAX);
	buf_add(&l->buf, data, len);
	return 0;
}

int watch_lines_next(struct watch_lines *l, struct kube_event *ret, struct error *err)
{
	while (l->searched < l->buf.len) {
		char *start = l->buf.data + l->taken;
		char *end = memchr(l->buf.data + l->searched, '\n', l->buf.len - l->searched);
		size_t len;

		if (!end) {
			l->searched = l->buf.len;
			break;
		}
		len = (size_t)(end - start);
		l->taken += len + 1;
		l->searched = l->taken;
		if (len > 0)
			return parse_line(start, len, ret, err);
	}
	if (l->taken == l->buf.len) { /* a large event's buffer is not kept for the quiet times */
		buf_done(&l->buf);
		*l = (struct watch_lines){ 0 };
	}
	return 0;
}

/* ---- the stream ----------------------------------------------------------------------------- */

struct kube_watch {
	struct kube_http *http;
	struct h2_stream *stream;
	struct watch_lines lines;
	char *what;
};

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

static int open_stream(struct kube_http *h, const char *path, const char *what,
		       struct h2_stream **ret, struct error *err)
{
	cleanup_free char *authorization = token_header(h->token);
	struct h2_header headers[KUBE_HEADERS_MAX];
	struct h2_request request = { .method = "GET", .path = path, .headers = headers };
	struct h2_stream *stream;
	int status, rc;

	http_headers(headers, authorization, NULL);
	rc = h2_stream_open(h->h2, &request, h->timeout_ms, &stream, &status, NULL);
	if (rc < 0)
		return transport_error(h, rc, what, err);
	if (status != 200) {
		rc = refused(h, stream, status, what, err);
		h2_stream_close(stream);
		return rc;
	}
	*ret = stream;
	return 0;
}

int http_watch(struct kube *k, const struct kind *kind, const char *ns,
	       const struct kube_selector *sel, const char *version, struct kube_watch **ret,
	       struct error *err)
{
	struct kube_http *h = (struct kube_http *)k;
	cleanup_with(buf_done) struct buf path = { 0 };
	cleanup_free char *what = xasprintf("watch %s", kind->kind);
	struct h2_stream *stream;
	struct kube_watch *w;
	int rc;

	url_path(&path, kind, ns, NULL, NULL);
	url_query(&path, "watch", "1");
	url_query(&path, "allowWatchBookmarks", "true");
	url_query(&path, "resourceVersion", version);
	url_selector(&path, sel);
	rc = open_stream(h, path.data, what, &stream, err);
	if (rc == -EACCES && token_refused(h->token))
		rc = open_stream(h, path.data, what, &stream, err);
	if (rc < 0)
		return rc;
	w = xcalloc(1, sizeof(*w));
	w->http = h;
	w->stream = stream;
	w->what = TAKE_PTR(what);
	*ret = w;
	return 0;
}

int http_watch_next(struct kube_watch *w, int timeout_ms, struct kube_event *ret,
		    struct error *err)
{
	int64_t deadline = clock_mono_ms(&clock_real) + timeout_ms;

	for (;;) {
		char chunk[READ_SIZE];
		int rc = watch_lines_next(&w->lines, ret, err);
		int64_t left = deadline - clock_mono_ms(&clock_real);
		ssize_t n;

		if (rc)
			return rc;
		n = h2_stream_read(w->stream, chunk, sizeof(chunk), left > 0 ? (int)left : 0);
		if (n == 0 || n == -ECANCELED)
			return 0; /* half a line that may be left says nothing: it is sent again */
		if (n == -ETIMEDOUT)
			return error_set(err, ETIMEDOUT, "nothing came from the %s for %d s",
					 w->what, timeout_ms / 1000);
		if (n < 0)
			return transport_error(w->http, (int)n, w->what, err);
		rc = watch_lines_feed(&w->lines, chunk, (size_t)n, err);
		if (rc < 0)
			return rc;
	}
}

void http_watch_cancel(struct kube_watch *w)
{
	h2_stream_cancel(w->stream);
}

void http_watch_close(struct kube_watch *w)
{
	if (!w)
		return;
	h2_stream_close(w->stream);
	buf_done(&w->lines.buf);
	free(w->what);
	free(w);
}
