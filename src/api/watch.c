/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Changes read from history at a time while a watch catches up. */
#define CHUNK 200
/* Rounds of catching up beside writers; after them the rest is read with the writers waiting. */
#define ROUNDS 3

struct store_watch {
	struct store *s;
	const struct kind *kind;
	char *ns;
	struct selector *selector;
	change_fn fn;
	void *userdata;
	store_watch_fn object_fn; /* of store_watch_start */
	void *object_userdata;
	struct store_watch *next;
};

bool watch_wanted(const struct store *s, const struct kind *kind)
{
	for (const struct store_watch *w = s->watches; w; w = w->next)
		if (w->kind == kind)
			return true;
	return false;
}

static void give(struct store_watch *w, struct change *c)
{
	enum kube_event_type type = c->type;

	if (w->selector) {
		bool is = c->type != KUBE_DELETED && selector_match(w->selector, change_object(c));
		bool was = change_old(c) && selector_match(w->selector, change_old(c));

		if (!is && !was)
			return;
		type = !was ? KUBE_ADDED : !is ? KUBE_DELETED : KUBE_MODIFIED;
	}
	w->fn(c, type, w->userdata);
}

void watch_deliver(struct store *s, struct change *c)
{
	for (struct store_watch *w = s->watches; w; w = w->next)
		if (w->kind == c->kind && (!w->ns || streq(w->ns, c->ns)))
			give(w, c);
}

void watch_at_version(struct store *s, void (*fn)(int64_t version, void *userdata), void *userdata)
{
	pthread_mutex_lock(&s->lock);
	fn(s->committed, userdata);
	pthread_mutex_unlock(&s->lock);
}

/* ---- what is there already ------------------------------------------------------------------ */

struct texts {
	char *items[CHUNK];
	size_t count;
};

static int keep_text(const struct row *row, void *userdata)
{
	struct texts *t = userdata;

	t->items[t->count++] = xstrndup(row->text, row->len);
	return 0;
}

/* ADDED for every object; a page at a time, so that readers do not wait for a slow watcher. */
static int give_existing(struct store_watch *w, const struct store_query *q, int64_t *ret_version,
			 struct error *err)
{
	cleanup_free char *token = NULL;
	int rc;

	do {
		struct store_query page_query = *q;
		struct texts texts = { 0 };
		struct page page;

		page_query.limit = CHUNK;
		page_query.continue_token = token;
		rc = store_each(w->s, &page_query, keep_text, &texts, &page, err);
		for (size_t i = 0; i < texts.count; i++) {
			struct change c = { .type = KUBE_ADDED,
					    .kind = w->kind,
					    .text = texts.items[i] };

			if (rc >= 0)
				w->fn(&c, KUBE_ADDED, w->userdata);
			json_decref(c.object);
			free(texts.items[i]);
		}
		if (rc < 0)
			return rc;
		*ret_version = page.version;
		free(token);
		token = page.next;
	} while (token);
	return 0;
}

/* ---- what has happened since ---------------------------------------------------------------- */

static struct change *change_from_row(const struct kind *kind, sqlite3_stmt *st)
{
	struct change *c = xcalloc(1, sizeof(*c));
	const char *old = (const char *)sqlite3_column_text(st, 5);

	c->kind = kind;
	c->version = sqlite3_column_int64(st, 0);
	c->type = (enum kube_event_type)sqlite3_column_int(st, 1);
	c->ns = xstrdup(db_column(st, 2));
	c->name = xstrdup(db_column(st, 3));
	c->text = xstrdup(db_column(st, 4));
	c->old_text = old ? xstrdup(old) : NULL;
	return c;
}

/* Changes after *version up to `to`, at most CHUNK; *version moves on. With the read lock held. */
static int read_history(struct store_watch *w, int64_t *version, int64_t to, struct change **ret,
			struct error *err)
{
	sqlite3_stmt *st = db_statement(w->s->reader, SQL_HISTORY);
	char resource[RESOURCE_MAX];
	struct change **tail = ret;
	int rows = 0, rc;

	*ret = NULL;
	sqlite3_bind_int64(st, 1, *version);
	sqlite3_bind_int64(st, 2, to);
	sqlite3_bind_text(st, 3, kind_resource(w->kind, resource), -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 4, w->ns ? w->ns : "", -1, SQLITE_STATIC);
	sqlite3_bind_int(st, 5, CHUNK);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		*tail = change_from_row(w->kind, st);
		*version = (*tail)->version;
		tail = &(*tail)->next;
		rows++;
	}
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	if (rows < CHUNK)
		*version = to;
	return rc == SQLITE_DONE ? 0 : db_error(w->s->reader->db, "read", err);
}

static int give_history(struct store_watch *w, int64_t *version, int64_t to, bool locked,
			struct error *err)
{
	struct store *s = w->s;
	bool lock = !locked || s->read_lock != &s->lock;
	int rc = 0;

	while (*version < to && rc >= 0) {
		struct change *c;

		if (lock)
			pthread_mutex_lock(s->read_lock);
		rc = read_history(w, version, to, &c, err);
		if (lock)
			pthread_mutex_unlock(s->read_lock);
		while (c) {
			struct change *next = c->next;

			if (rc >= 0)
				give(w, c);
			change_free(c);
			c = next;
		}
	}
	return rc;
}

static int check_age(struct store *s, int64_t version, struct error *err)
{
	int64_t now = s->committed, oldest;

	pthread_mutex_lock(&s->lock);
	oldest = s->pruned;
	pthread_mutex_unlock(&s->lock);
	if (version >= oldest && version <= now)
		return 0;
	return error_set(err, EIDRM, "too old resource version: %" PRId64 " (%" PRId64 ")", version,
			 version > now ? now : oldest);
}

/* Catches up, then joins the live watches at exactly the version that was reached. */
static int watch_join(struct store_watch *w, int64_t version, struct error *err)
{
	struct store *s = w->s;
	int rc = check_age(s, version, err);

	for (int i = 0; i < ROUNDS && rc >= 0 && version < s->committed; i++)
		rc = give_history(w, &version, s->committed, false, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&s->lock);
	/* Writers keep changes only for those who watch already: what is open ends here. */
	batch_commit(s);
	if (version < s->pruned)
		rc = error_set(err, EIDRM, "too old resource version: %" PRId64 " (%" PRId64 ")",
			       version, s->pruned);
	else
		rc = give_history(w, &version, s->committed, true, err);
	if (rc >= 0) {
		w->next = s->watches;
		s->watches = w;
	}
	pthread_mutex_unlock(&s->lock);
	return rc;
}

static void watch_free(struct store_watch *w)
{
	selector_free(w->selector);
	free(w->ns);
	free(w);
}

static int version_parse(const char *text, int64_t *ret, struct error *err)
{
	char *end;

	errno = 0;
	*ret = text ? strtoll(text, &end, 10) : 0;
	if (text && (errno || *end || *ret < 0))
		return error_set(err, EINVAL, "invalid resource version \"%.40s\"", text);
	return 0;
}

static int watch_run(struct store_watch *w, const struct store_query *q, const char *version,
		     struct store_watch **ret, struct error *err)
{
	int64_t from;
	int rc = version_parse(version, &from, err);

	if (rc >= 0)
		rc = selector_parse(q->kind, q->labels, q->fields, &w->selector, err);
	if (rc >= 0 && from == 0)
		rc = give_existing(w, q, &from, err);
	if (rc >= 0)
		rc = watch_join(w, from, err);
	if (rc < 0)
		watch_free(w);
	else
		*ret = w;
	return rc;
}

static struct store_watch *watch_new(struct store *s, const struct store_query *q)
{
	struct store_watch *w = xcalloc(1, sizeof(*w));

	w->s = s;
	w->kind = q->kind;
	w->ns = q->kind->namespaced && q->ns && q->ns[0] ? xstrdup(q->ns) : NULL;
	return w;
}

int watch_start(struct store *s, const struct store_query *q, const char *version, change_fn fn,
		void *userdata, struct store_watch **ret, struct error *err)
{
	struct store_watch *w = watch_new(s, q);

	w->fn = fn;
	w->userdata = userdata;
	return watch_run(w, q, version, ret, err);
}

static void give_object(struct change *c, enum kube_event_type type, void *userdata)
{
	struct store_watch *w = userdata;

	w->object_fn(&(struct kube_event){ .type = type, .object = change_object(c) },
		     w->object_userdata);
}

int store_watch_start(struct store *s, const struct store_query *q, const char *version,
		      store_watch_fn fn, void *userdata, struct store_watch **ret,
		      struct error *err)
{
	struct store_watch *w = watch_new(s, q);

	w->fn = give_object;
	w->userdata = w;
	w->object_fn = fn;
	w->object_userdata = userdata;
	return watch_run(w, q, version, ret, err);
}

void store_watch_stop(struct store_watch *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->s->lock);
	for (struct store_watch **p = &w->s->watches; *p; p = &(*p)->next) {
		if (*p == w) {
			*p = w->next;
			break;
		}
	}
	pthread_mutex_unlock(&w->s->lock);
	watch_free(w);
}
