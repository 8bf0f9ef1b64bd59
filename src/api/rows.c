/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

void change_free(struct change *c)
{
	if (!c)
		return;
	json_decref(c->object);
	json_decref(c->old);
	free(c->text);
	free(c->old_text);
	free(c->ns);
	free(c->name);
	free(c);
}

static json_t *parse_stored(const char *text)
{
	json_t *o = NULL;

	/* What was stored was once dumped from a value; nothing but damage makes it unreadable. */
	if (text)
		json_parse(text, strlen(text), &o, NULL);
	return o;
}

json_t *change_object(struct change *c)
{
	if (!c->object)
		c->object = parse_stored(c->text);
	return c->object;
}

json_t *change_old(struct change *c)
{
	if (!c->old)
		c->old = parse_stored(c->old_text);
	return c->old;
}

void stored_done(struct stored *o)
{
	json_decref(o->object);
	free(o->text);
	*o = (struct stored){ 0 };
}

static void bind_text(sqlite3_stmt *st, int index, const char *text)
{
	sqlite3_bind_text(st, index, text, -1, SQLITE_STATIC);
}

static void bind_key(sqlite3_stmt *st, const struct kind *kind, const char *ns, const char *name)
{
	char resource[RESOURCE_MAX];

	sqlite3_bind_text(st, 1, kind_resource(kind, resource), -1, SQLITE_TRANSIENT);
	bind_text(st, 2, ns);
	bind_text(st, 3, name);
}

int row_load(struct op *op, const struct kind *kind, const char *ns, const char *name,
	     struct stored *ret)
{
	sqlite3_stmt *st = db_statement(&op->s->writer, SQL_GET);
	struct stored o = { 0 };
	int rc;

	bind_key(st, kind, ns, name);
	rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		o.id = sqlite3_column_int64(st, 0);
		o.version = sqlite3_column_int64(st, 1);
		o.text = xstrdup(db_column(st, 2));
	}
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	if (rc == SQLITE_DONE)
		return -ENOENT;
	if (rc != SQLITE_ROW)
		return db_error(op->s->writer.db, "read", op->err);
	rc = json_parse(o.text, strlen(o.text), &o.object, op->err);
	if (rc < 0) {
		stored_done(&o);
		return error_set(op->err, EAGAIN, "The stored object \"%s\" is damaged", name);
	}
	*ret = o;
	return 0;
}

bool row_uid_exists(struct op *op, const char *uid)
{
	sqlite3_stmt *st = db_statement(&op->s->writer, SQL_UID_EXISTS);
	bool found;

	bind_text(st, 1, uid);
	found = sqlite3_step(st) == SQLITE_ROW;
	sqlite3_reset(st);
	return found;
}

static int owners_write(struct op *op, int64_t id, const json_t *refs)
{
	sqlite3_stmt *st = db_statement(&op->s->writer, SQL_OWNER_CLEAR);
	const json_t *ref;
	size_t i;
	int rc;

	sqlite3_bind_int64(st, 1, id);
	rc = db_run(st, op->err);
	json_array_foreach (refs, i, ref) {
		if (rc < 0 || !jstr(ref, "uid"))
			continue;
		st = db_statement(&op->s->writer, SQL_OWNER_ADD);
		bind_text(st, 1, jstr(ref, "uid"));
		sqlite3_bind_int64(st, 2, id);
		rc = db_run(st, op->err);
		/* The owner may be gone already: the collector looks. */
		op->s->collect |= !row_uid_exists(op, jstr(ref, "uid"));
	}
	return rc;
}

/* Appends to the history, and to what the commit will tell watchers. */
static int record(struct op *op, enum kube_event_type type, const struct stored *old, char *text)
{
	struct store *s = op->s;
	sqlite3_stmt *st = db_statement(&s->writer, SQL_CHANGE);
	char resource[RESOURCE_MAX];
	int rc;

	sqlite3_bind_int64(st, 1, s->version);
	sqlite3_bind_int(st, 2, type);
	bind_text(st, 3, kind_resource(op->kind, resource));
	bind_text(st, 4, op->ns);
	bind_text(st, 5, op->name);
	bind_text(st, 6, text);
	if (old)
		bind_text(st, 7, old->text);
	rc = db_run(st, op->err);
	if (rc < 0) {
		free(text);
		return rc;
	}
	s->history_bytes += (int64_t)(strlen(text) + (old ? strlen(old->text) : 0));
	if (watch_wanted(s, op->kind)) {
		struct change *c = xcalloc(1, sizeof(*c));

		*c = (struct change){ .type = type, .kind = op->kind, .version = s->version };
		c->ns = xstrdup(op->ns);
		c->name = xstrdup(op->name);
		c->text = TAKE_PTR(text);
		c->old_text = old ? xstrdup(old->text) : NULL;
		*s->pending_tail = c;
		s->pending_tail = &c->next;
	}
	free(text);
	return 0;
}

/* The text of the object under its new version. */
static int next_version(struct op *op, json_t *object, char **ret)
{
	char version[24];
	char *text;

	snprintf(version, sizeof(version), "%" PRId64, op->s->version + 1);
	jset(object, json_string(version), "metadata", "resourceVersion");
	text = json_text(object);
	if (strlen(text) > OBJECT_MAX) {
		free(text);
		return op_refuse(op, FAULT_TOO_LARGE, NULL,
				 "Request entity too large: an object may have at most %d bytes",
				 OBJECT_MAX);
	}
	op->s->version++;
	*ret = text;
	return 0;
}

int row_save(struct op *op, const struct stored *old, json_t *object)
{
	struct store *s = op->s;
	const json_t *refs = jget(object, "metadata", "ownerReferences");
	int deleting = jstr(object, "metadata", "deletionTimestamp") != NULL;
	int64_t now = clock_wall_ms(s->clock);
	char *text;
	sqlite3_stmt *st;
	int rc;

	if (op->w->dry_run)
		return 0;
	rc = next_version(op, object, &text);
	if (rc < 0)
		return rc;
	if (old) {
		st = db_statement(&s->writer, SQL_UPDATE);
		sqlite3_bind_int64(st, 1, old->id);
		sqlite3_bind_int64(st, 2, s->version);
		sqlite3_bind_int64(st, 3, now);
		sqlite3_bind_int(st, 4, deleting);
		bind_text(st, 5, text);
	} else {
		st = db_statement(&s->writer, SQL_INSERT);
		bind_key(st, op->kind, op->ns, op->name);
		bind_text(st, 4, jstr(object, "metadata", "uid"));
		sqlite3_bind_int64(st, 5, s->version);
		sqlite3_bind_int64(st, 6, now);
		sqlite3_bind_int(st, 7, deleting);
		bind_text(st, 8, text);
	}
	rc = db_run(st, op->err);
	if (rc >= 0 &&
	    !json_same(refs, old ? jget(old->object, "metadata", "ownerReferences") : NULL))
		rc = owners_write(op, old ? old->id : sqlite3_last_insert_rowid(s->writer.db),
				  refs);
	if (rc < 0) {
		free(text);
		return rc;
	}
	s->collect |= deleting;
	return record(op, old ? KUBE_MODIFIED : KUBE_ADDED, old, text);
}

int row_remove(struct op *op, const struct stored *old, json_t *object)
{
	struct store *s = op->s;
	sqlite3_stmt *st;
	char *text;
	int rc;

	if (op->w->dry_run)
		return 0;
	rc = next_version(op, object, &text);
	if (rc < 0)
		return rc;
	rc = owners_write(op, old->id, NULL);
	if (rc >= 0) {
		st = db_statement(&s->writer, SQL_DELETE);
		sqlite3_bind_int64(st, 1, old->id);
		rc = db_run(st, op->err);
	}
	if (rc < 0) {
		free(text);
		return rc;
	}
	/* Dependents, a namespace or an owner that waited for it: the collector looks. */
	s->collect = true;
	return record(op, KUBE_DELETED, old, text);
}

static const struct kind *kind_of_resource(const char *resource)
{
	char buf[RESOURCE_MAX];

	for (size_t i = 0; kinds[i]; i++)
		if (streq(kind_resource(kinds[i], buf), resource))
			return kinds[i];
	/* the store in memory stands for a cluster in tests, and holds them too */
	for (size_t i = 0; foreign_kinds[i]; i++)
		if (streq(kind_resource(foreign_kinds[i], buf), resource))
			return foreign_kinds[i];
	return NULL;
}

int names_collect(sqlite3_stmt *st, struct names *ret, struct error *err)
{
	struct names n = { 0 };
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const struct kind *kind = kind_of_resource(db_column(st, 0));

		if (!kind)
			continue;
		n.items = xrealloc(n.items, (n.count + 1) * sizeof(*n.items));
		n.items[n.count].kind = kind;
		n.items[n.count].ns = xstrdup(db_column(st, 1));
		n.items[n.count++].name = xstrdup(db_column(st, 2));
	}
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	if (rc != SQLITE_DONE) {
		names_done(&n);
		return db_error(sqlite3_db_handle(st), "read", err);
	}
	*ret = n;
	return 0;
}

void names_done(struct names *n)
{
	for (size_t i = 0; i < n->count; i++) {
		free(n->items[i].ns);
		free(n->items[i].name);
	}
	free(n->items);
	*n = (struct names){ 0 };
}

int names_dependents(struct op *op, const char *uid, struct names *ret)
{
	sqlite3_stmt *st = db_statement(&op->s->writer, SQL_DEPENDENTS);

	bind_text(st, 1, uid);
	return names_collect(st, ret, op->err);
}
