/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"
#include "kube/url.h"

#include <errno.h>

#define READ_SIZE 16384
#define WATCH_MIN_S 300

struct kube_watch {
	struct kube_http *http;
	struct h2_stream *stream;
	struct watch_lines lines;
	char *what;
};

static int open_watch(struct kube_http *h, const char *path, const char *what,
		      struct h2_stream **ret, struct error *err)
{
	struct http_try t;
	int rc = http_open(h, path, what, h->timeout_ms, ret, &t, err);

	if (rc == -EACCES && auth_refused(h->auth, t.generation))
		rc = http_open(h, path, what, h->timeout_ms, ret, &t, err);
	return rc == -ENOKEY ? -EACCES : rc;
}

/* The server ends a watch after that time, each at another moment: what balances its load, and a limit
 * to how long anything can go wrong unseen. */
static void add_timeout(struct buf *path)
{
	unsigned char jitter;
	char text[16];

	rand_bytes(&jitter, 1);
	snprintf(text, sizeof(text), "%d", WATCH_MIN_S + WATCH_MIN_S * jitter / 256);
	url_query(path, "timeoutSeconds", text);
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
	add_timeout(&path);
	url_selector(&path, sel);
	rc = open_watch(h, path.data, what, &stream, err);
	if (rc < 0)
		return rc;
	w = xcalloc(1, sizeof(*w));
	w->http = h;
	w->stream = stream;
	w->what = TAKE_PTR(what);
	*ret = w;
	return 0;
}

int http_watch_next(struct kube_watch *w, int timeout_ms, struct kube_event *ret, struct error *err)
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
			return transport_error(w->http, (int)n, &(struct error){ 0 }, w->what, err);
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
