/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* A batch never grows so long that its first writer waits noticeably. */
#define BATCH_MAX 64
/* History is pruned in steps, so that most commits do not touch its old end. */
#define PRUNE_STEP 128
#define HISTORY_BYTES_MAX (48LL * 1024 * 1024)

static void batch_unref(struct batch *b)
{
	if (--b->refs == 0)
		free(b);
}

static int history_prune(struct store *s)
{
	sqlite3_stmt *st;
	int64_t upto = s->version - s->history;
	int step = s->history / 8 < PRUNE_STEP ? s->history / 8 + 1 : PRUNE_STEP;
	int rc;

	if (s->history_bytes > HISTORY_BYTES_MAX) {
		int64_t half = s->pruned + (s->version - s->pruned) / 2;

		upto = half > upto ? half : upto;
	} else if (upto < s->pruned + step) {
		return 0;
	}
	st = db_statement(&s->writer, SQL_PRUNE);
	sqlite3_bind_int64(st, 1, upto);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		s->history_bytes -= sqlite3_column_int64(st, 0);
	sqlite3_reset(st);
	if (rc != SQLITE_DONE)
		return -EAGAIN;
	s->pruned = upto;
	return 0;
}

/* Ends the open transaction one way or the other and tells its writers. With the lock held. */
static void batch_finish(struct store *s, int result)
{
	struct batch *b = s->batch;
	struct change *c = s->pending;

	s->batch = NULL;
	s->pending = NULL;
	s->pending_tail = &s->pending;
	if (result < 0) {
		s->version = s->committed;
		if (!sqlite3_get_autocommit(s->writer.db))
			db_run(db_statement(&s->writer, SQL_ROLLBACK), NULL);
	} else {
		s->committed = s->version;
	}
	while (c) {
		struct change *next = c->next;

		if (result >= 0)
			watch_deliver(s, c);
		change_free(c);
		c = next;
	}
	b->done = true;
	b->result = result;
	pthread_cond_broadcast(&s->batch_done);
	batch_unref(b);
}

int batch_commit(struct store *s)
{
	int64_t pruned = s->pruned, bytes = s->history_bytes;
	int rc;

	if (!s->batch)
		return 0;
	rc = history_prune(s);
	if (rc >= 0)
		rc = db_run(db_statement(&s->writer, SQL_COMMIT), NULL);
	if (rc < 0) {
		log_err("The store could not be written: %s; check the disk",
			sqlite3_errmsg(s->writer.db));
		s->pruned = pruned;
		s->history_bytes = bytes;
	}
	batch_finish(s, rc);
	return rc;
}

static int batch_join(struct op *op)
{
	struct store *s = op->s;
	int rc;

	if (!s->batch) {
		rc = db_run(db_statement(&s->writer, SQL_BEGIN), op->err);
		if (rc < 0)
			return rc;
		s->batch = xcalloc(1, sizeof(*s->batch));
		s->batch->refs = 1;
	}
	op->batch = s->batch;
	op->batch->refs++;
	op->batch->writers++;
	return 0;
}

int op_begin(struct op *op, struct store *s, const struct store_write *w, struct error *err)
{
	*op = (struct op){ .s = s, .w = w, .kind = w->kind, .fault = FAULT_INTERNAL };
	op->ns = w->kind->namespaced && w->ns ? w->ns : "";
	op->name = w->name;
	op->err = err ? err : &op->own_err;
	*op->err = ERROR_INIT;
	atomic_fetch_add(&s->queued, 1);
	pthread_mutex_lock(&s->lock);
	atomic_fetch_sub(&s->queued, 1);
	return batch_join(op);
}

struct op op_housekeeping(struct op *op, const struct kind *kind, const char *ns, const char *name)
{
	struct op sub = { .s = op->s, .w = op->w, .kind = kind, .ns = ns, .name = name };

	sub.fault = FAULT_INTERNAL;
	sub.system = true;
	sub.batch = op->batch;
	sub.err = op->err;
	return sub;
}

void op_set_name(struct op *op, const char *name)
{
	snprintf(op->name_buf, sizeof(op->name_buf), "%s", name);
	op->name = op->name_buf;
}

/* Waits until the batch is on disk: by committing, unless a writer after us will. */
static int op_settle(struct op *op, int rc)
{
	struct store *s = op->s;
	struct batch *b = op->batch;

	if (!b)
		return rc < 0 ? rc : -EAGAIN;
	/*
	 * A statement that failed has left half a change behind, or SQLite has rolled everything back
	 * by itself (disk full): everybody's work in this batch is undone.
	 */
	if (!b->done &&
	    ((rc < 0 && op->fault == FAULT_INTERNAL) || sqlite3_get_autocommit(s->writer.db)))
		batch_finish(s, -EAGAIN);
	if (!b->done && (atomic_load(&s->queued) == 0 || b->writers >= BATCH_MAX))
		batch_commit(s);
	while (!b->done)
		pthread_cond_wait(&s->batch_done, &s->lock);
	if (b->result < 0 && rc >= 0) {
		op->fault = FAULT_INTERNAL;
		rc = error_set(
			op->err, EAGAIN,
			"The change was not stored because the disk refused it: check its free "
			"space and health, then try again");
	}
	batch_unref(b);
	return rc;
}

int op_end(struct op *op, int rc)
{
	struct store *s = op->s;

	rc = op_settle(op, rc);
	if (s->collect && s->on_work)
		s->on_work(s->on_work_data);
	pthread_mutex_unlock(&s->lock);
	if (rc < 0 && op->w->ret_status)
		*op->w->ret_status = status_failure(op->fault, error_text(op->err, rc), op->kind,
						    op->name, op->causes);
	json_decref(op->causes);
	json_decref(op->applied);
	return rc;
}

int op_refuse(struct op *op, enum fault fault, const char *field, const char *format, ...)
{
	char text[sizeof(op->err->message)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	op->fault = fault;
	if (fault == FAULT_INVALID) {
		bool prefixed = field && str_has_prefix(text, field);
		json_t *cause = json_pack(
			"{s:s, s:s, s:s}", "reason", "FieldValueInvalid", "message",
			prefixed ? text + strlen(field) + strspn(text + strlen(field), ": ") : text,
			"field", field ? field : "");
		char resource[RESOURCE_MAX];

		if (!op->causes)
			op->causes = json_array();
		json_array_append_new(op->causes, cause);
		snprintf(resource, sizeof(resource), op->kind->group[0] ? "%s.%s" : "%s",
			 op->kind->kind, op->kind->group);
		return error_set(op->err, EINVAL, "%s \"%s\" is invalid: %s%s%s", resource,
				 op->name ? op->name : "", prefixed || !field ? "" : field,
				 prefixed || !field ? "" : ": ", text);
	}
	return error_set(op->err, fault_errno(fault), "%s", text);
}
