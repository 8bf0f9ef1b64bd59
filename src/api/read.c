/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/*
 * Reads see what is committed. In memory there is one connection: what is open is committed first,
 * so that the same holds.
 */
static int read_begin(struct store *s, struct error *err)
{
	int rc;

	pthread_mutex_lock(s->read_lock);
	if (s->reader == &s->writer)
		rc = batch_commit(s);
	else
		rc = db_run(db_statement(s->reader, SQL_BEGIN_READ), err);
	if (rc < 0)
		pthread_mutex_unlock(s->read_lock);
	return rc;
}

static void read_end(struct store *s)
{
	if (s->reader != &s->writer)
		db_run(db_statement(s->reader, SQL_COMMIT), NULL);
	pthread_mutex_unlock(s->read_lock);
}

static int64_t read_number(struct store *s, enum statement which)
{
	sqlite3_stmt *st = db_statement(s->reader, which);
	int64_t n = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;

	sqlite3_reset(st);
	return n;
}

int store_get_text(struct store *s, const struct kind *kind, const char *ns, const char *name,
		   char **ret, struct error *err)
{
	char resource[RESOURCE_MAX];
	sqlite3_stmt *st;
	int rc = read_begin(s, err);

	if (rc < 0)
		return rc;
	st = db_statement(s->reader, SQL_GET);
	sqlite3_bind_text(st, 1, kind_resource(kind, resource), -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, kind->namespaced && ns ? ns : "", -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 3, name, -1, SQLITE_STATIC);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*ret = xstrdup(db_column(st, 2));
		rc = 0;
	} else if (rc == SQLITE_DONE) {
		rc = error_set(err, ENOENT, "%s \"%.253s\" not found", resource, name);
	} else {
		rc = db_error(s->reader->db, "read", err);
	}
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	read_end(s);
	return rc;
}

int store_get(struct store *s, const struct kind *kind, const char *ns, const char *name,
	      json_t **ret, struct error *err)
{
	cleanup_free char *text = NULL;
	int rc = store_get_text(s, kind, ns, name, &text, err);

	if (rc < 0 || !ret)
		return rc;
	rc = json_parse(text, strlen(text), ret, err);
	return rc < 0 ? error_set(err, EAGAIN, "The stored object \"%s\" is damaged", name) : 0;
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* One sorted source of rows; at is NULL at its end. */
struct cursor {
	sqlite3_stmt *st;
	const char *ns, *name, *text;
	int64_t version;
	bool end;
};

static int cursor_next(struct cursor *c, struct error *err)
{
	int rc = c->end ? SQLITE_DONE : sqlite3_step(c->st);

	if (rc == SQLITE_ROW) {
		c->ns = db_column(c->st, 0);
		c->name = db_column(c->st, 1);
		c->version = sqlite3_column_int64(c->st, 2);
		c->text = (const char *)sqlite3_column_text(c->st, 3);
		return 0;
	}
	c->end = true;
	return rc == SQLITE_DONE ? 0 : db_error(sqlite3_db_handle(c->st), "read", err);
}

static void cursor_done(struct cursor *c)
{
	if (c->st) {
		sqlite3_reset(c->st);
		sqlite3_clear_bindings(c->st);
	}
}

static int cursor_compare(const struct cursor *a, const struct cursor *b)
{
	int d;

	if (a->end || b->end)
		return a->end - b->end;
	d = strcmp(a->ns, b->ns);
	return d ? d : strcmp(a->name, b->name);
}

/* A list in the making. */
struct listing {
	struct store *s;
	const struct store_query *q;
	struct selector *selector;
	char after_ns[254], after_name[254]; /* where the page before ended */
	int64_t at; /* the version that the list shows */
	int64_t now;
	struct cursor objects, overlay;
	char resource[RESOURCE_MAX];
};

/* "v1.VERSION.NAMESPACE/NAME": where the page before ended, and what moment it showed. */
static int token_parse(struct listing *l, const char *token, struct error *err)
{
	const char *slash = strchr(token, '/');
	int end = 0;

	if (slash && sscanf(token, "v1.%" SCNd64 ".%n", &l->at, &end) == 1 && end > 0 &&
	    l->at >= 0) {
		const char *ns = token + end, *name = slash + 1;
		size_t ns_len = (size_t)(slash - ns), name_len = strlen(name);

		if (ns <= slash && ns_len < sizeof(l->after_ns) &&
		    name_len < sizeof(l->after_name)) {
			memcpy(l->after_ns, ns, ns_len);
			l->after_ns[ns_len] = '\0';
			memcpy(l->after_name, name, name_len + 1);
			return 0;
		}
	}
	return error_set(err, EINVAL, "continue key is not valid: start the list again");
}

static void open_objects(struct listing *l)
{
	const char *ns = l->q->kind->namespaced ? l->q->ns : NULL;
	sqlite3_stmt *st = db_statement(l->s->reader, ns ? SQL_LIST_NS : SQL_LIST);

	sqlite3_bind_text(st, 1, l->resource, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, ns ? ns : l->after_ns, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(st, 3, l->after_name, -1, SQLITE_TRANSIENT);
	l->objects.st = st;
}

/* What has changed since the version that the list shows, as it was then. */
static void open_overlay(struct listing *l)
{
	const char *ns = l->q->kind->namespaced && l->q->ns ? l->q->ns : "";
	sqlite3_stmt *st = db_statement(l->s->reader, SQL_OVERLAY);

	sqlite3_bind_int64(st, 1, l->at);
	sqlite3_bind_text(st, 2, l->resource, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 3, ns, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 4, l->after_ns, -1, SQLITE_TRANSIENT);
	sqlite3_bind_text(st, 5, l->after_name, -1, SQLITE_TRANSIENT);
	l->overlay.st = st;
	l->overlay.end = false;
}

static int listing_open(struct listing *l, struct error *err)
{
	int rc = 0;

	kind_resource(l->q->kind, l->resource);
	l->now = read_number(l->s, SQL_VERSION);
	l->overlay.end = true;
	if (l->q->continue_token && l->q->continue_token[0]) {
		rc = token_parse(l, l->q->continue_token, err);
		if (rc >= 0 && (l->at < read_number(l->s, SQL_OLDEST) - 1 || l->at > l->now))
			rc = error_set(err, EIDRM,
				       "The provided continue parameter is too old to display a "
				       "consistent "
				       "list result: start the list again without it");
	} else {
		l->at = l->now;
	}
	if (rc < 0)
		return rc;
	open_objects(l);
	if (l->at != l->now)
		open_overlay(l);
	rc = cursor_next(&l->objects, err);
	return rc < 0 ? rc : cursor_next(&l->overlay, err);
}

/* 1 and a row as it was at the version; 0 at the end. `used` says which cursors to move on. */
static int listing_row(struct listing *l, struct row *ret, struct cursor *used[2],
		       struct error *err)
{
	for (;;) {
		int d = cursor_compare(&l->objects, &l->overlay), rc = 0;
		struct cursor *c = d <= 0 ? &l->objects : &l->overlay;
		/* Where both have it, the overlay knows how it was. */
		const struct cursor *source = d >= 0 ? &l->overlay : &l->objects;

		used[0] = c;
		used[1] = d == 0 ? &l->overlay : NULL;
		if (c->end)
			return 0;
		if (source->text && (source == &l->overlay || source->version <= l->at)) {
			*ret = (struct row){ .ns = source->ns, .name = source->name };
			ret->text = source->text;
			ret->len = strlen(source->text);
			return 1;
		}
		for (int i = 0; i < 2 && rc >= 0; i++)
			rc = used[i] ? cursor_next(used[i], err) : 0;
		if (rc < 0)
			return rc;
	}
}

/* Gives the row to fn where it matches: 1, 0 where not. */
static int listing_give(struct listing *l, struct row *row, row_fn fn, void *userdata)
{
	int rc = 0;

	if (l->selector) {
		json_parse(row->text, row->len, &row->object, NULL);
		if (!row->object || !selector_match(l->selector, row->object))
			goto out;
	}
	rc = fn(row, userdata);
	rc = rc < 0 ? rc : 1;
out:
	json_decref(row->object);
	return rc;
}

static int listing_run(struct listing *l, row_fn fn, void *userdata, char **ret_next,
		       struct error *err)
{
	struct cursor *used[2];
	int64_t given = 0;
	struct row row;
	int rc;

	while ((rc = listing_row(l, &row, used, err)) > 0) {
		if (l->q->limit > 0 && given >= l->q->limit) {
			*ret_next = xasprintf("v1.%" PRId64 ".%s/%s", l->at, l->after_ns,
					      l->after_name);
			return 0;
		}
		rc = listing_give(l, &row, fn, userdata);
		if (rc < 0)
			return rc;
		given += rc;
		snprintf(l->after_ns, sizeof(l->after_ns), "%s", row.ns);
		snprintf(l->after_name, sizeof(l->after_name), "%s", row.name);
		rc = 0;
		for (int i = 0; i < 2 && rc >= 0; i++)
			rc = used[i] ? cursor_next(used[i], err) : 0;
		if (rc < 0)
			return rc;
	}
	return rc;
}

int store_each(struct store *s, const struct store_query *q, row_fn fn, void *userdata,
	       struct page *ret, struct error *err)
{
	struct listing l = { .s = s, .q = q };
	cleanup_free char *next = NULL;
	int rc = selector_parse(q->kind, q->labels, q->fields, &l.selector, err);

	if (rc < 0)
		return rc;
	rc = read_begin(s, err);
	if (rc >= 0) {
		rc = listing_open(&l, err);
		if (rc >= 0)
			rc = listing_run(&l, fn, userdata, &next, err);
		cursor_done(&l.objects);
		cursor_done(&l.overlay);
		read_end(s);
	}
	selector_free(l.selector);
	if (rc < 0)
		return rc;
	*ret = (struct page){ .version = l.at, .next = TAKE_PTR(next) };
	return 0;
}

static int add_item(const struct row *row, void *userdata)
{
	json_t *items = userdata, *o = NULL;
	int rc;

	if (row->object)
		return json_array_append(items, row->object);
	rc = json_parse(row->text, row->len, &o, NULL);
	return rc < 0 ? -EAGAIN : json_array_append_new(items, o);
}

int store_list(struct store *s, const struct store_query *q, json_t **ret, struct error *err)
{
	cleanup_json json_t *items = json_array();
	cleanup_free char *kind = xasprintf("%sList", q->kind->kind);
	char api_version[128], version[24];
	struct page page;
	int rc = store_each(s, q, add_item, items, &page, err);

	if (rc < 0)
		return rc;
	snprintf(version, sizeof(version), "%" PRId64, page.version);
	*ret = json_pack("{s:s, s:s, s:{s:s}, s:O}", "kind", kind, "apiVersion",
			 kind_api_version(q->kind, api_version, sizeof(api_version)), "metadata",
			 "resourceVersion", version, "items", items);
	if (page.next)
		jset(*ret, json_string(page.next), "metadata", "continue");
	free(page.next);
	return 0;
}
