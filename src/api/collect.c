/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "base/log.h"

#include <errno.h>

/* Objects handled in one transaction: other writers get in between. */
#define AT_ONCE 100
/* Rounds of one call; a chain of owners longer than this is finished by the next call. */
#define ROUNDS 100
#define EXPIRE_EVERY_MS 60000

typedef int (*step_fn)(struct op *op, const struct name *n);

static const struct store_write nobody = { .kind = &KIND_NAMESPACE };

static int remove_named(struct op *op, const struct name *n, const char *propagation)
{
	const struct kube_delete_options options = { .propagation = propagation };
	struct op sub = op_housekeeping(op, n->kind, n->ns, n->name);
	cleanup_json json_t *result = NULL;
	struct stored old = { 0 };
	int rc = row_load(&sub, n->kind, n->ns, n->name, &old);

	if (rc == -ENOENT)
		return 0;
	if (rc >= 0)
		rc = object_remove(&sub, &old, &options, &result);
	stored_done(&old);
	return rc < 0 ? rc : rc == 0;
}

static int expire(struct op *op, const struct name *n)
{
	return remove_named(op, n, "Background");
}

/* Owners that are gone: all of them, and the child goes too; some, and their references go. */
static int release_child(struct op *op, const struct name *n)
{
	struct op sub = op_housekeeping(op, n->kind, n->ns, n->name);
	cleanup_json json_t *next = NULL, *result = NULL;
	struct stored child = { 0 };
	json_t *refs;
	int rc = row_load(&sub, n->kind, n->ns, n->name, &child);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	next = json_deep_copy(child.object);
	refs = jget(next, "metadata", "ownerReferences");
	for (size_t i = json_array_size(refs); i-- > 0;) {
		const char *uid = jstr(json_array_get(refs, i), "uid");

		if (!uid || !row_uid_exists(op, uid))
			json_array_remove(refs, i);
	}
	if (json_array_size(refs) == 0)
		rc = remove_named(op, n, "Background");
	else
		rc = object_replace(&sub, &child, next, NULL, &result);
	stored_done(&child);
	return rc;
}

static bool blocks(const json_t *object, const char *owner_uid)
{
	const json_t *ref;
	size_t i;

	json_array_foreach (jget(object, "metadata", "ownerReferences"), i, ref)
		if (streq(jstr(ref, "uid"), owner_uid) && jbool(ref, "blockOwnerDeletion"))
			return true;
	return false;
}

/* Deletes what depends on uid; *ret_blocked where something that blocks its owner is still there. */
static int remove_dependents(struct op *op, const char *uid, bool *ret_blocked)
{
	struct names children;
	int removed = 0, rc = names_dependents(op, uid, &children);

	*ret_blocked = false;
	if (rc < 0)
		return rc;
	for (size_t i = 0; rc >= 0 && i < children.count; i++) {
		const struct name *n = &children.items[i];
		struct op sub = op_housekeeping(op, n->kind, n->ns, n->name);
		struct stored child = { 0 };

		rc = remove_named(op, n, "Foreground");
		removed += rc > 0;
		if (rc == 0 && row_load(&sub, n->kind, n->ns, n->name, &child) == 0)
			*ret_blocked |= blocks(child.object, uid);
		stored_done(&child);
	}
	names_done(&children);
	return rc < 0 ? rc : removed;
}

static bool drop_item(json_t *list, const char *text)
{
	for (size_t i = 0; i < json_array_size(list); i++)
		if (streq(json_string_value(json_array_get(list, i)), text))
			return json_array_remove(list, i) == 0;
	return false;
}

/* Takes `item` out of the list at metadata.finalizers or spec.finalizers: the object may go then. */
static int finish(struct op *op, struct stored *old, const char *where, const char *item)
{
	cleanup_json json_t *next = json_deep_copy(old->object), *result = NULL;
	int rc;

	if (!drop_item(jget(next, where, "finalizers"), item))
		return 0;
	rc = object_replace(op, old, next, NULL, &result);
	return rc < 0 ? rc : !meta_has_finalizers(next);
}

static int empty_namespace(struct op *op, struct stored *ns, const char *name)
{
	sqlite3_stmt *st = db_statement(&op->s->writer, SQL_NS_CONTENT);
	struct names content;
	int removed = 0, rc;

	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int(st, 2, AT_ONCE);
	rc = names_collect(st, &content, op->err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; rc >= 0 && i < content.count; i++) {
		rc = remove_named(op, &content.items[i], "Background");
		removed += rc > 0;
	}
	if (rc >= 0 && content.count == 0)
		removed = rc = finish(op, ns, "spec", "kubernetes");
	names_done(&content);
	return rc < 0 ? rc : removed;
}

/* An object that is being deleted: does it wait for something that is ours to do? */
static int advance_deletion(struct op *op, const struct name *n)
{
	struct op sub = op_housekeeping(op, n->kind, n->ns, n->name);
	struct stored old = { 0 };
	bool blocked;
	const json_t *item;
	size_t i;
	int rc = row_load(&sub, n->kind, n->ns, n->name, &old);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	json_array_foreach (jget(old.object, "metadata", "finalizers"), i, item)
		if (streq(json_string_value(item), "foregroundDeletion"))
			break;
	if (i < json_array_size(jget(old.object, "metadata", "finalizers"))) {
		rc = remove_dependents(op, jstr(old.object, "metadata", "uid"), &blocked);
		if (rc >= 0 && !blocked)
			rc = finish(&sub, &old, "metadata", "foregroundDeletion");
	} else if (n->kind == &KIND_NAMESPACE) {
		rc = empty_namespace(&sub, &old, n->name);
	}
	stored_done(&old);
	return rc;
}

/* One transaction over the rows of a statement; objects removed, or -errno. */
static int step(struct store *s, enum statement which, int64_t parameter, step_fn fn)
{
	struct error err = ERROR_INIT;
	struct names names = { 0 };
	struct op op;
	int removed = 0, rc = op_begin(&op, s, &nobody, &err);

	if (rc >= 0) {
		sqlite3_stmt *st = db_statement(&s->writer, which);

		sqlite3_bind_int64(st, 1, parameter);
		sqlite3_bind_int(st, 2, AT_ONCE);
		rc = names_collect(st, &names, &err);
	}
	for (size_t i = 0; rc >= 0 && i < names.count; i++) {
		rc = fn(&op, &names.items[i]);
		removed += rc > 0;
	}
	rc = op_end(&op, rc);
	names_done(&names);
	if (rc < 0)
		log_warn("Collecting what is no longer owned failed: %s", error_text(&err, rc));
	return rc < 0 ? rc : removed;
}

static bool work_taken(struct store *s)
{
	bool work;

	pthread_mutex_lock(&s->lock);
	work = s->collect;
	s->collect = false;
	pthread_mutex_unlock(&s->lock);
	return work;
}

static int expire_events(struct store *s)
{
	int64_t now = clock_wall_ms(s->clock);
	int removed = 0, rc;

	if (now < s->expire_at)
		return 0;
	do {
		rc = step(s, SQL_EXPIRED, now - s->event_ttl_ms, expire);
		removed += rc > 0 ? rc : 0;
	} while (rc > 0);
	s->expire_at = now + EXPIRE_EVERY_MS;
	return removed;
}

int store_collect(struct store *s)
{
	int removed = expire_events(s);

	for (int i = 0; i < ROUNDS && work_taken(s); i++) {
		int gone = step(s, SQL_DANGLING, AT_ONCE, release_child);
		int done = gone < 0 ? gone : step(s, SQL_DELETING, 0, advance_deletion);

		if (gone < 0 || done < 0)
			break;
		removed += gone + done;
	}
	return removed;
}

void store_on_work(struct store *s, void (*fn)(void *userdata), void *userdata)
{
	pthread_mutex_lock(&s->lock);
	s->on_work = fn;
	s->on_work_data = userdata;
	pthread_mutex_unlock(&s->lock);
}

int store_bootstrap(struct store *s, struct error *err)
{
	static const char *const names[] = { "default", "kube-system" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_json json_t *ns = json_pack("{s:{s:s}}", "metadata", "name", names[i]);
		struct store_write w = { .kind = &KIND_NAMESPACE, .name = names[i] };
		int rc = store_create(s, &w, ns, NULL, err);

		if (rc < 0 && rc != -EEXIST)
			return rc;
	}
	return 0;
}
