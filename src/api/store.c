/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define SCHEMA_VERSION 1

/*
 * objects: what is. owners: which uid each child names as an owner. changes: what happened, newest
 * last, each with the state before it, so that a watch goes on after a restart, and a paged list
 * shows one moment.
 */
static const char schema_sql[] =
	"CREATE TABLE objects (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, ns TEXT NOT NULL,"
	" name TEXT NOT NULL, uid TEXT NOT NULL, version INTEGER NOT NULL, written INTEGER NOT "
	"NULL,"
	" deleting INTEGER NOT NULL, body TEXT NOT NULL, UNIQUE (kind, ns, name));"
	"CREATE INDEX objects_uid ON objects (uid);"
	"CREATE INDEX objects_ns ON objects (ns);"
	"CREATE INDEX objects_deleting ON objects (id) WHERE deleting;"
	"CREATE TABLE owners (owner TEXT NOT NULL, child INTEGER NOT NULL,"
	" PRIMARY KEY (owner, child)) WITHOUT ROWID;"
	"CREATE INDEX owners_child ON owners (child);"
	"CREATE TABLE changes (version INTEGER PRIMARY KEY, type INTEGER NOT NULL, kind TEXT NOT "
	"NULL,"
	" ns TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, old TEXT);";

static const char *const sql[SQL_COUNT] = {
	[SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SQL_BEGIN_READ] = "BEGIN",
	[SQL_COMMIT] = "COMMIT",
	[SQL_ROLLBACK] = "ROLLBACK",
	[SQL_GET] =
		"SELECT id, version, body FROM objects WHERE kind = ?1 AND ns = ?2 AND name = ?3",
	[SQL_INSERT] = "INSERT INTO objects (kind, ns, name, uid, version, written, deleting, body)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[SQL_UPDATE] = "UPDATE objects SET version = ?2, written = ?3, deleting = ?4, body = ?5"
		       " WHERE id = ?1",
	[SQL_DELETE] = "DELETE FROM objects WHERE id = ?1",
	[SQL_CHANGE] = "INSERT INTO changes (version, type, kind, ns, name, body, old)"
		       " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[SQL_PRUNE] = "DELETE FROM changes WHERE version <= ?1"
		      " RETURNING length(body) + ifnull(length(old), 0)",
	[SQL_VERSION] = "SELECT ifnull(max(version), 0) FROM changes",
	[SQL_OLDEST] = "SELECT ifnull(min(version), 1) FROM changes",
	[SQL_LIST] = "SELECT ns, name, version, body FROM objects"
		     " WHERE kind = ?1 AND (ns, name) > (?2, ?3) ORDER BY ns, name",
	[SQL_LIST_NS] = "SELECT ns, name, version, body FROM objects"
			" WHERE kind = ?1 AND ns = ?2 AND name > ?3 ORDER BY name",
	[SQL_OVERLAY] = "SELECT ns, name, min(version), old FROM changes"
			" WHERE version > ?1 AND kind = ?2 AND (?3 = '' OR ns = ?3)"
			" AND (ns, name) > (?4, ?5) GROUP BY ns, name",
	[SQL_HISTORY] =
		"SELECT version, type, ns, name, body, old FROM changes"
		" WHERE version > ?1 AND version <= ?2 AND kind = ?3 AND (?4 = '' OR ns = ?4)"
		" ORDER BY version LIMIT ?5",
	[SQL_OWNER_ADD] = "INSERT OR IGNORE INTO owners (owner, child) VALUES (?1, ?2)",
	[SQL_OWNER_CLEAR] = "DELETE FROM owners WHERE child = ?1",
	[SQL_DEPENDENTS] =
		"SELECT o.kind, o.ns, o.name FROM owners w JOIN objects o ON o.id = w.child"
		" WHERE w.owner = ?1",
	[SQL_DANGLING] = "SELECT DISTINCT o.kind, o.ns, o.name FROM owners w"
			 " JOIN objects o ON o.id = w.child"
			 " WHERE NOT o.deleting"
			 " AND NOT EXISTS (SELECT 1 FROM objects p WHERE p.uid = w.owner) LIMIT ?1",
	[SQL_UID_EXISTS] = "SELECT 1 FROM objects WHERE uid = ?1 LIMIT 1",
	[SQL_NS_CONTENT] = "SELECT kind, ns, name FROM objects WHERE ns = ?1 ORDER BY deleting"
			   " LIMIT ?2",
	[SQL_EXPIRED] = "SELECT kind, ns, name FROM objects WHERE kind = 'events' AND written < ?1"
			" LIMIT ?2",
	[SQL_DELETING] = "SELECT kind, ns, name FROM objects WHERE deleting AND id > 0",
};

int db_error(sqlite3 *db, const char *what, struct error *err)
{
	return error_set(err, EAGAIN, "The store could not be %s: %s", what,
			 db ? sqlite3_errmsg(db) : "out of memory");
}

sqlite3_stmt *db_statement(struct database *d, enum statement which)
{
	sqlite3_stmt **st = &d->statements[which];

	if (!*st && sqlite3_prepare_v3(d->db, sql[which], -1, SQLITE_PREPARE_PERSISTENT, st,
				       NULL) != SQLITE_OK) {
		/* The statements are constants: only a damaged or foreign database gets here. */
		log_err("The store's database does not fit this program: %s",
			sqlite3_errmsg(d->db));
		abort();
	}
	return *st;
}

const char *db_column(sqlite3_stmt *st, int column)
{
	const char *text = (const char *)sqlite3_column_text(st, column);

	return text ? text : "";
}

int db_run(sqlite3_stmt *st, struct error *err)
{
	int rc;

	do
		rc = sqlite3_step(st);
	while (rc == SQLITE_ROW);
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return rc == SQLITE_DONE ? 0 : db_error(sqlite3_db_handle(st), "written", err);
}

static int64_t db_number(struct database *d, enum statement which)
{
	sqlite3_stmt *st = db_statement(d, which);
	int64_t n = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : 0;

	sqlite3_reset(st);
	return n;
}

static int64_t pragma_number(sqlite3 *db, const char *text)
{
	sqlite3_stmt *st = NULL;
	int64_t n = 0;

	if (sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* Secrets are in it; SQLite gives the files beside it the same mode. */
static int make_private(const char *path, struct error *err)
{
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || fchmod(fd, 0600) < 0)
		return error_errno(err, errno, "The store %s cannot be opened", path);
	return 0;
}

static int db_open(struct database *d, const char *path, const char *pragmas, struct error *err)
{
	/* Each connection has a lock of ours around it. */
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;

	if (sqlite3_open_v2(path, &d->db, flags, NULL) != SQLITE_OK ||
	    sqlite3_busy_timeout(d->db, 5000) != SQLITE_OK ||
	    sqlite3_exec(d->db, pragmas, NULL, NULL, NULL) != SQLITE_OK)
		return error_set(err, EIO, "The store %s cannot be opened: %s", path,
				 d->db ? sqlite3_errmsg(d->db) : "out of memory");
	return 0;
}

static void db_close(struct database *d)
{
	for (int i = 0; i < SQL_COUNT; i++)
		sqlite3_finalize(d->statements[i]);
	sqlite3_close(d->db);
}

static int prepare_schema(struct store *s, const char *path, struct error *err)
{
	int64_t version = pragma_number(s->writer.db, "PRAGMA user_version");
	char set[64];

	if (version > SCHEMA_VERSION)
		return error_set(
			err, EINVAL,
			"The store %s was written by a newer version of this program: use that "
			"version, or restore a backup",
			path);
	if (version == SCHEMA_VERSION)
		return 0;
	snprintf(set, sizeof(set), "PRAGMA user_version = %d", SCHEMA_VERSION);
	if (sqlite3_exec(s->writer.db, "BEGIN", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(s->writer.db, schema_sql, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(s->writer.db, set, NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(s->writer.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		return db_error(s->writer.db, "set up", err);
	return 0;
}

int store_open(const struct store_options *options, struct store **ret, struct error *err)
{
	bool memory = streq(options->path, ":memory:");
	struct store *s = xcalloc(1, sizeof(*s));
	int rc;

	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->read_lock_own, NULL);
	pthread_cond_init(&s->batch_done, NULL);
	s->pending_tail = &s->pending;
	s->clock = options->clock ? options->clock : &clock_real;
	s->history = options->history > 0 ? options->history : 10000;
	s->event_ttl_ms = (options->event_ttl_s > 0 ? options->event_ttl_s : 3600) * 1000;
	s->ids = options->ids;
	s->reader = memory ? &s->writer : &s->reader_own;
	s->read_lock = memory ? &s->lock : &s->read_lock_own;
	s->collect = true;

	rc = memory ? 0 : make_private(options->path, err);
	if (rc >= 0)
		rc = db_open(&s->writer, options->path,
			     memory ? "PRAGMA journal_mode = MEMORY"
				    : "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
				      "PRAGMA cache_size = -512; PRAGMA temp_store = MEMORY",
			     err);
	if (rc >= 0)
		rc = prepare_schema(s, options->path, err);
	if (rc >= 0 && !memory)
		rc = db_open(&s->reader_own, options->path,
			     "PRAGMA query_only = 1; PRAGMA cache_size = -256;"
			     "PRAGMA temp_store = MEMORY",
			     err);
	if (rc < 0) {
		store_close(s);
		return rc;
	}
	s->version = db_number(&s->writer, SQL_VERSION);
	s->committed = s->version;
	s->pruned = db_number(&s->writer, SQL_OLDEST) - 1;
	s->history_bytes = pragma_number(
		s->writer.db, "SELECT sum(length(body) + ifnull(length(old), 0)) FROM changes");
	*ret = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	db_close(&s->writer);
	db_close(&s->reader_own);
	pthread_cond_destroy(&s->batch_done);
	pthread_mutex_destroy(&s->read_lock_own);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int64_t store_version(struct store *s)
{
	return s->committed;
}
