/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/http.h"

#include "base/mem.h"
#include "kube/url.h"

#include <errno.h>

#define PAGE 500
#define READ_SIZE 16384

struct list {
	struct kube_http *h;
	const struct kind *kind;
	const char *ns;
	const struct kube_selector *sel;
	int limit; /* 0: no pages */
	int (*fn)(json_t *object, void *userdata);
	void *userdata;

	char *what; /* "list StorageNode" */
	char *token; /* of the page; NULL: the first */
	char *version;
	size_t given; /* items of this page */
	size_t skip; /* … that were given before the connection broke */
	int fn_rc;
};

static void list_done(struct list *l)
{
	free(l->what);
	free(l->token);
	free(l->version);
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

static int give(json_t *item, void *userdata)
{
	struct list *l = userdata;

	if (l->skip > 0) {
		l->skip--;
		return 0;
	}
	l->given++;
	name_kind(l->kind, item);
	l->fn_rc = l->fn(item, l->userdata);
	return l->fn_rc;
}

static void page_path(const struct list *l, struct buf *path)
{
	char limit[16];

	url_path(path, l->kind, l->ns, NULL, NULL);
	url_selector(path, l->sel);
	snprintf(limit, sizeof(limit), "%d", l->limit);
	url_query(path, "limit", l->limit ? limit : NULL);
	url_query(path, "continue", l->token);
	url_query(path, "resourceVersion", l->sel && l->sel->recent && !l->token ? "0" : NULL);
}

/* What stands beside the items; moves on to the next page. */
static int turn_page(struct list *l, struct list_items *items, struct error *err)
{
	cleanup_json json_t *rest = NULL;
	const char *token, *version;
	int rc = list_items_end(items, &rest, err);

	if (rc < 0)
		return rc;
	token = jstr(rest, "metadata", "continue");
	version = jstr(rest, "metadata", "resourceVersion");
	free(l->token);
	l->token = token && *token ? xstrdup(token) : NULL;
	free(l->version);
	l->version = xstrdup(version ? version : "");
	l->given = 0;
	return 0;
}

static int read_page(struct list *l, struct h2_stream *s, const struct http_tries *tries,
		     struct http_try *last, struct error *err)
{
	cleanup_with(list_items_done) struct list_items items = { 0 };
	char chunk[READ_SIZE];
	ssize_t n;
	int rc = 0;

	while ((n = h2_stream_read(s, chunk, sizeof(chunk), http_tries_left_ms(tries))) > 0) {
		rc = list_items_feed(&items, chunk, (size_t)n, give, l, err);
		if (rc)
			return rc;
	}
	if (n == 0)
		return turn_page(l, &items, err);
	if (n == -ECONNRESET)
		last->retry_ms = 0;
	return transport_error(l->h, (int)n, &(struct error){ 0 }, l->what, err);
}

static int try_page(struct list *l, const struct http_tries *tries, struct http_try *last,
		    struct error *err)
{
	cleanup_with(buf_done) struct buf path = { 0 };
	struct h2_stream *s;
	int rc;

	page_path(l, &path);
	rc = http_open(l->h, path.data, l->what, http_tries_left_ms(tries), &s, last, err);
	if (rc < 0)
		return rc;
	/* a page with a token is always the same, the first one is not */
	if (l->given > 0 && !l->token) {
		h2_stream_close(s);
		last->retry_ms = -1;
		return error_set(err, EAGAIN, "cannot %s: the connection to the API at %s broke",
				 l->what, l->h->where);
	}
	l->skip = l->given;
	rc = read_page(l, s, tries, last, err);
	h2_stream_close(s);
	if (rc == -EPROTO)
		return error_set(err, EAGAIN,
				 "cannot %s: the API at %s answered with what is not a list",
				 l->what, l->h->where);
	return rc;
}

static int list_pages(struct list *l, char **ret_version, struct error *err)
{
	int rc;

	l->what = xasprintf("list %s", l->kind->kind);
	do {
		struct http_tries tries = http_tries_new(l->h);
		struct http_try last;

		do
			rc = try_page(l, &tries, &last, err);
		while (!l->fn_rc && http_try_again(l->h, &tries, &last, rc, true));
	} while (rc == 0 && l->token);
	if (rc == -ENOKEY && !l->fn_rc)
		rc = -EACCES;
	if (rc)
		return rc;
	*ret_version = TAKE_PTR(l->version);
	return 0;
}

int http_list_each(struct kube *k, const struct kind *kind, const char *ns,
		   const struct kube_selector *sel, int (*fn)(json_t *object, void *userdata),
		   void *userdata, char **ret_version, struct error *err)
{
	cleanup_with(list_done) struct list l = { .h = (struct kube_http *)k,
						  .kind = kind,
						  .ns = ns,
						  .sel = sel,
						  .limit = PAGE,
						  .fn = fn,
						  .userdata = userdata };

	return list_pages(&l, ret_version, err);
}

static int append_item(json_t *object, void *userdata)
{
	json_array_append(userdata, object);
	return 0;
}

int http_list(struct kube *k, const struct kind *kind, const char *ns,
	      const struct kube_selector *sel, json_t **ret, char **ret_version, struct error *err)
{
	cleanup_json json_t *items = json_array();
	cleanup_with(list_done) struct list whole = { .h = (struct kube_http *)k,
						      .kind = kind,
						      .ns = ns,
						      .sel = sel,
						      .fn = append_item,
						      .userdata = items };
	int rc = http_list_each(k, kind, ns, sel, append_item, items, ret_version, err);

	if (rc == -EIDRM) { /* the pages' snapshot is gone: all in one answer then */
		json_array_clear(items);
		rc = list_pages(&whole, ret_version, err);
	}
	if (rc < 0)
		return rc;
	*ret = TAKE_PTR(items);
	return 0;
}
