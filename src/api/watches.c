/* SPDX-License-Identifier: Apache-2.0 */
#include "api/serving.h"
#include "base/rand.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define BOOKMARK_EVERY_MS 60000
/* Without timeoutSeconds a watch ends after 30 to 60 minutes, as on Kubernetes. */
#define TIMEOUT_MIN_S 1800
/* While it catches up a watch writes at most this much at a time, then lets the peer read. */
#define PACE_BYTES (256 * 1024)
#define PACE_NS 5000000L

struct http_watch {
	struct api_server *server;
	struct request request; /* its own copy of what the form of events needs */
	struct h2_call *call;
	struct store_watch *watch;
	bool bookmarks, columns_sent;
	bool catching_up;
	size_t paced;
	atomic_bool broken; /* the peer is gone or reads too slowly */
	bool over; /* the time is up */
	int64_t ends_ms, bookmark_ms;
	struct http_watch *next;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void send_text(struct http_watch *w, const char *type, const char *object)
{
	struct buf line = { 0 };

	if (atomic_load(&w->broken))
		return;
	buf_printf(&line, "{\"type\":\"%s\",\"object\":", type);
	buf_puts(&line, object);
	buf_puts(&line, "}\n");
	if (h2_call_write(w->call, line.data, line.len) < 0) {
		atomic_store(&w->broken, true);
		server_wake(w->server);
	}
	w->paced += line.len;
	buf_done(&line);
	if (w->catching_up && w->paced > PACE_BYTES) {
		w->paced = 0;
		nanosleep(&(struct timespec){ .tv_nsec = PACE_NS }, NULL);
	}
}

static void send_value(struct http_watch *w, const char *type, const json_t *object)
{
	cleanup_free char *text = json_text(object);

	send_text(w, type, text);
}

static void on_change(struct change *c, enum kube_event_type type, void *userdata)
{
	static const char *const types[] = { [KUBE_ADDED] = "ADDED",
					     [KUBE_MODIFIED] = "MODIFIED",
					     [KUBE_DELETED] = "DELETED",
					     [KUBE_BOOKMARK] = "BOOKMARK" };
	struct http_watch *w = userdata;
	cleanup_json json_t *formed = NULL;

	if (w->request.form == FORM_OBJECT) {
		send_text(w, types[type], c->text);
		return;
	}
	formed = output_form(&w->request, change_object(c), !w->columns_sent,
			     clock_wall_ms(w->server->store->clock));
	w->columns_sent = true;
	send_value(w, types[type], formed);
}

/* An event without an object that says up to where the client has seen everything. */
static json_t *bookmark_object(const struct http_watch *w, int64_t version)
{
	const struct kind *kind = w->request.kind;
	char text[24], api_version[128];

	snprintf(text, sizeof(text), "%" PRId64, version);
	if (w->request.form == FORM_TABLE)
		return schema_table(kind, NULL, text, false, 0);
	return json_pack("{s:s, s:s, s:{s:s}}", "kind", kind->kind, "apiVersion",
			 kind_api_version(kind, api_version, sizeof(api_version)), "metadata",
			 "resourceVersion", text);
}

static void send_bookmark(int64_t version, void *userdata)
{
	struct http_watch *w = userdata;
	cleanup_json json_t *object = bookmark_object(w, version);

	send_value(w, "BOOKMARK", object);
}

/* The bookmark that ends the initial events of a streaming list. */
static void send_initial_end(int64_t version, void *userdata)
{
	struct http_watch *w = userdata;
	cleanup_json json_t *object = bookmark_object(w, version);

	jset(object, json_string("true"), "metadata", "annotations", "k8s.io/initial-events-end");
	send_value(w, "BOOKMARK", object);
}

static void watch_drop(struct http_watch *w, bool end)
{
	store_watch_stop(w->watch);
	if (end)
		h2_call_end(w->call, NULL);
	h2_call_unref(w->call);
	request_done(&w->request);
	free(w);
}

static int64_t ends_after_ms(const struct request *r)
{
	const char *text = request_param(r, "timeoutSeconds");
	int64_t s = text ? strtoll(text, NULL, 10) : 0;
	uint32_t jitter;

	if (s > 0 && s <= 24 * 3600)
		return s * 1000;
	rand_bytes(&jitter, sizeof(jitter));
	return (TIMEOUT_MIN_S + jitter % TIMEOUT_MIN_S) * INT64_C(1000);
}

/* userdata is the server, which outlives every call; the keeper finds out whose peer is gone. */
static void on_gone(struct h2_call *call, void *userdata)
{
	(void)call;
	server_wake(userdata);
}

static struct http_watch *watch_new(struct api_server *s, const struct request *r)
{
	struct http_watch *w = xcalloc(1, sizeof(*w));

	w->server = s;
	w->request.kind = r->kind;
	w->request.form = r->form;
	for (size_t i = 0; i < r->query.count; i++)
		strv_add(&w->request.query, r->query.items[i]);
	w->call = h2_call_ref(r->call);
	w->bookmarks = request_flag(r, "allowWatchBookmarks");
	w->ends_ms = now_ms() + ends_after_ms(r);
	w->bookmark_ms = now_ms() + BOOKMARK_EVERY_MS;
	w->catching_up = true;
	return w;
}

/* Hands the watch to the keeper; false where the server is stopping. */
static bool watch_enlist(struct http_watch *w)
{
	struct api_server *s = w->server;
	bool stopping;

	pthread_mutex_lock(&s->lock);
	stopping = s->stopping;
	if (!stopping) {
		w->next = s->watches;
		s->watches = w;
	}
	s->work = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	return !stopping;
}

/* The headers are out: what is wrong now is told as an event. */
static void send_error(struct http_watch *w, int rc, const struct error *err)
{
	cleanup_json json_t *status =
		status_failure(fault_of(-rc), error_text(err, rc), NULL, NULL, NULL);

	send_value(w, "ERROR", status);
}

void watches_start(struct api_server *s, const struct request *r, const struct store_query *q)
{
	static const struct h2_header headers[] = { { "content-type", "application/json" },
						    { "cache-control", "no-cache, private" },
						    { NULL, NULL } };
	bool initial = request_flag(r, "sendInitialEvents");
	const char *version = initial ? "0" : request_param(r, "resourceVersion");
	struct selector *selector = NULL;
	struct error err = ERROR_INIT;
	struct http_watch *w;
	int rc = selector_parse(q->kind, q->labels, q->fields, &selector, &err);

	selector_free(selector);
	if (rc < 0) {
		reply_fault(r, FAULT_BAD_REQUEST, "%s", err.message);
		return;
	}
	w = watch_new(s, r);
	h2_call_start(r->call, 200, headers);
	rc = watch_start(s->store, q, version, on_change, w, &w->watch, &err);
	if (rc < 0) {
		send_error(w, rc, &err);
		watch_drop(w, true);
		return;
	}
	if (initial && w->bookmarks)
		watch_at_version(s->store, send_initial_end, w);
	w->catching_up = false;
	h2_call_on_gone(w->call, on_gone, s);
	if (!watch_enlist(w))
		watch_drop(w, true);
}

/* Takes what is over out of the list and picks whose bookmark is due; ms until the next deadline. */
static int pick(struct api_server *s, struct http_watch **ret_over, struct http_watch ***ret_due)
{
	int64_t now = now_ms(), next = -1;
	struct http_watch **p, *w;
	size_t n = 0;

	*ret_over = NULL;
	*ret_due = NULL;
	pthread_mutex_lock(&s->lock);
	for (p = &s->watches; (w = *p);) {
		int64_t at =
			w->bookmarks && w->bookmark_ms < w->ends_ms ? w->bookmark_ms : w->ends_ms;

		if (atomic_load(&w->broken) || h2_call_gone(w->call) || now >= w->ends_ms) {
			w->over = now >= w->ends_ms;
			*p = w->next;
			w->next = *ret_over;
			*ret_over = w;
			continue;
		}
		if (now >= at) {
			*ret_due = xrealloc(*ret_due, (n + 2) * sizeof(**ret_due));
			(*ret_due)[n++] = w;
			(*ret_due)[n] = NULL;
			w->bookmark_ms = now + BOOKMARK_EVERY_MS;
			at = w->bookmark_ms < w->ends_ms ? w->bookmark_ms : w->ends_ms;
		}
		next = next < 0 || at < next ? at : next;
		p = &w->next;
	}
	pthread_mutex_unlock(&s->lock);
	return next < 0 ? -1 : (int)(next - now);
}

int watches_tend(struct api_server *s)
{
	struct http_watch *over, **due;
	int next = pick(s, &over, &due);

	for (size_t i = 0; due && due[i]; i++)
		watch_at_version(s->store, send_bookmark, due[i]);
	free(due);
	while (over) {
		struct http_watch *w = over;

		over = w->next;
		if (w->over && w->bookmarks && !atomic_load(&w->broken))
			watch_at_version(s->store, send_bookmark, w);
		watch_drop(w, w->over);
	}
	return next;
}

void watches_end_all(struct api_server *s)
{
	struct http_watch *w;

	pthread_mutex_lock(&s->lock);
	w = s->watches;
	s->watches = NULL;
	pthread_mutex_unlock(&s->lock);
	while (w) {
		struct http_watch *next = w->next;

		watch_drop(w, true);
		w = next;
	}
}
