/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/selector.h"
#include "api/status.h"
#include "api/store.h"
#include "base/mem.h"
#include "base/str.h"

#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>

/*
 * Inside the store. One connection writes, guarded by `lock`; another reads what is committed,
 * guarded by `read_lock` (a store in memory has one connection and one lock for both).
 *
 * Group commit: a writer does its work inside the open transaction and, when no other writer is
 * waiting for the lock, commits for all; otherwise it waits for whoever comes last to commit.
 * While a commit waits for the disk, new writers queue up and become the next batch.
 */

/* The largest object, as text; Kubernetes' own limit. */
#define OBJECT_MAX (1536 * 1024)

enum statement {
	SQL_BEGIN,
	SQL_BEGIN_READ,
	SQL_COMMIT,
	SQL_ROLLBACK,
	SQL_GET,
	SQL_INSERT,
	SQL_UPDATE,
	SQL_DELETE,
	SQL_CHANGE,
	SQL_PRUNE,
	SQL_VERSION,
	SQL_OLDEST,
	SQL_LIST,
	SQL_LIST_NS,
	SQL_OVERLAY,
	SQL_HISTORY,
	SQL_OWNER_ADD,
	SQL_OWNER_CLEAR,
	SQL_DEPENDENTS,
	SQL_DANGLING,
	SQL_UID_EXISTS,
	SQL_NS_CONTENT,
	SQL_EXPIRED,
	SQL_DELETING,
	SQL_COUNT,
};

struct database {
	sqlite3 *db;
	sqlite3_stmt *statements[SQL_COUNT];
};

/* Writers that share one commit. */
struct batch {
	int refs;
	int writers;
	bool done;
	int result;
};

/* One change on its way to watchers; text is the object as stored. Objects are parsed on demand. */
struct change {
	enum kube_event_type type;
	const struct kind *kind;
	int64_t version;
	char *ns, *name;
	char *text, *old_text; /* old_text: the object before, or NULL */
	json_t *object, *old; /* parsed forms of them, NULL until asked for */
	struct change *next;
};
void change_free(struct change *c);
json_t *change_object(struct change *c); /* borrowed */
json_t *change_old(struct change *c); /* borrowed, or NULL */

/* type is what the change is to this watch: an object that stops matching a selector is DELETED. */
typedef void (*change_fn)(struct change *c, enum kube_event_type type, void *userdata);

struct store {
	struct database writer, reader_own, *reader;
	pthread_mutex_t lock, read_lock_own, *read_lock;
	pthread_cond_t batch_done;
	atomic_int queued; /* threads that want the lock in order to write */
	struct batch *batch; /* open transaction, or NULL */
	struct change *pending, **pending_tail; /* of the open transaction */
	int64_t version; /* newest given out, committed or not */
	_Atomic int64_t committed;
	int64_t pruned; /* history up to this version is gone */
	int64_t history_bytes;
	struct store_watch *watches;
	bool collect; /* owner references, namespaces or finalizers need a look */
	void (*on_work)(void *userdata);
	void *on_work_data;
	int64_t expire_at; /* wall time of the next look at Events */
	const struct clock *clock;
	int history;
	int64_t event_ttl_ms;
	struct prng *ids;
};

/* ---- store.c: statements and transactions ------------------------------------------------- */
sqlite3_stmt *db_statement(struct database *d, enum statement which);
/* Runs a statement that gives no row, and resets it. */
int db_run(sqlite3_stmt *st, struct error *err);
int db_error(sqlite3 *db, const char *what, struct error *err);
const char *db_column(sqlite3_stmt *st, int column); /* "" for NULL */

/* One write in progress. Fill in s, w, kind, ns, name; op_begin … op_end around the work. */
struct op {
	struct store *s;
	const struct store_write *w;
	const struct kind *kind;
	const char *ns, *name; /* ns "" for cluster-scoped kinds */
	enum fault fault; /* of a failure */
	json_t *causes;
	bool system; /* our own housekeeping: no guard, no managed fields */
	bool applying; /* server-side apply: managed fields are its own business */
	json_t *applied; /* managedFields of an object that an apply creates */
	char name_buf[254];
	struct batch *batch;
	struct error *err;
	struct error own_err;
};
int op_begin(struct op *op, struct store *s, const struct store_write *w, struct error *err);
/* The same transaction, about another object, in our own name. */
struct op op_housekeeping(struct op *op, const struct kind *kind, const char *ns, const char *name);
void op_set_name(struct op *op, const char *name);
/* Commits (perhaps together with others), unlocks and returns rc, or the commit's failure. */
int op_end(struct op *op, int rc);
/* Records what is wrong; field may be NULL. Returns -errno of the fault. */
int op_refuse(struct op *op, enum fault fault, const char *field, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* Commits the open transaction, if there is one, and delivers its changes. With the lock held. */
int batch_commit(struct store *s);

/* ---- rows.c: objects as rows -------------------------------------------------------------- */
/* An object as it stands, inside the transaction. */
struct stored {
	int64_t id;
	int64_t version;
	char *text;
	json_t *object;
};
void stored_done(struct stored *o);
/* 0; -ENOENT without a message. */
int row_load(struct op *op, const struct kind *kind, const char *ns, const char *name,
	     struct stored *ret);
/* Writes object (its resourceVersion is set) as a new state; old NULL: it is new. */
int row_save(struct op *op, const struct stored *old, json_t *object);
/* Removes it; object (its resourceVersion is set) is what the DELETED event shows. */
int row_remove(struct op *op, const struct stored *old, json_t *object);
/* True where any object has this uid. */
bool row_uid_exists(struct op *op, const char *uid);

/* Names of rows, collected before acting on them (a statement must not be open while rows change). */
struct names {
	struct name {
		const struct kind *kind;
		char *ns, *name;
	} * items;
	size_t count;
};
/* The rows of a bound statement whose first columns are kind, ns and name. */
int names_collect(sqlite3_stmt *st, struct names *ret, struct error *err);
void names_done(struct names *n);
/* Objects that name this uid as an owner. */
int names_dependents(struct op *op, const char *uid, struct names *ret);

/* ---- objects.c: what a write means ---------------------------------------------------------- */
/* Writes `object` as the new state of `old` by all rules; *ret_stored as it was stored. */
int object_replace(struct op *op, struct stored *old, json_t *object, const char *subresource,
		   json_t **ret);
int object_create(struct op *op, const json_t *given, json_t **ret);
/* > 0: marked. */
int object_remove(struct op *op, struct stored *old, const struct kube_delete_options *options,
		  json_t **ret);
/* Defaults, pruning, validation, size. */
int object_check(struct op *op, json_t *object, const json_t *old);

/* ---- apply.c: who set which field ----------------------------------------------------------- */
/* Brings metadata.managedFields of object up to date after an ordinary write. */
void managed_update(struct op *op, const json_t *old, json_t *object);
int object_apply(struct op *op, const json_t *config, json_t **ret);

/* ---- meta.c: metadata ----------------------------------------------------------------------- */
/* Type, namespace and form of what a client sent. */
int meta_check(struct op *op, json_t *object);
int meta_for_create(struct op *op, json_t *object);
int meta_for_update(struct op *op, json_t *object, const json_t *old);
int meta_namespace(struct op *op); /* it must exist, and not be going away */
void meta_stamp(struct op *op, const char *key, json_t *metadata);
bool meta_has_finalizers(const json_t *object);
int meta_precondition(struct op *op, const char *uid, const char *version, const json_t *old);
bool json_same(const json_t *a, const json_t *b); /* NULL equals NULL */
void json_drop_nulls(json_t *value);

/* ---- read.c --------------------------------------------------------------------------------- */
struct row {
	const char *ns, *name, *text;
	size_t len;
	json_t *object; /* parsed where a selector needed it, else NULL */
};
typedef int (*row_fn)(const struct row *row, void *userdata);
struct page {
	int64_t version;
	char *next; /* continue token, or NULL (caller frees) */
};
/* Every object of the query, in order of namespace and name; fn must not call the store. */
int store_each(struct store *s, const struct store_query *q, row_fn fn, void *userdata,
	       struct page *ret, struct error *err);
/* As store_get, the text as stored (caller frees). */
int store_get_text(struct store *s, const struct kind *kind, const char *ns, const char *name,
		   char **ret, struct error *err);

/* ---- watch.c -------------------------------------------------------------------------------- */
/* As store_watch_start, for readers that take the stored text. While this call lasts, fn may block. */
int watch_start(struct store *s, const struct store_query *q, const char *version, change_fn fn,
		void *userdata, struct store_watch **ret, struct error *err);
void watch_deliver(struct store *s, struct change *c); /* with the lock held */
/* Calls fn with the version up to which everything has been delivered, before anything newer is. */
void watch_at_version(struct store *s, void (*fn)(int64_t version, void *userdata), void *userdata);
/* True where somebody watches the kind: a change is worth keeping until the commit. */
bool watch_wanted(const struct store *s, const struct kind *kind);

/* ---- collect.c ------------------------------------------------------------------------------ */
/* fn is called, with the store locked, when store_collect has something to do; it must not block. */
void store_on_work(struct store *s, void (*fn)(void *userdata), void *userdata);
