/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over all records: finding a volume, listing, recovery. */
#include "attach.h"
#include "base/mem.h"
#include "driver.h"
#include "journal.h"
#include "lock.h"

#include <errno.h>

struct survey {
	const struct call *c;
	const char *volume_id; /* NULL: all */
	json_t *out;
	struct attachment *found;
	struct error *err;
	int result;
};

static int find_one(struct attachment *a, void *userdata)
{
	struct survey *s = userdata;
	struct error problem = ERROR_INIT;
	int r;

	if (s->found || a->state != STATE_ATTACHED || !streq(a->volume_id, s->volume_id))
		return 0;
	r = a->driver->verify(s->c, a, &problem);
	if (r < 0) {
		/* another consumer's may be healthy */
		s->result = r;
		if (s->err)
			*s->err = problem;
		return 0;
	}
	r = journal_load(s->c, a->id, &s->found, s->err);
	/* as it was seen just now: udev may have made a better name for it since it was connected */
	if (r >= 0) {
		char *path = s->found->path;

		s->found->path = a->path;
		a->path = path;
	}
	return r;
}

int attach_find(const struct call *c, const char *volume_id, struct attachment **ret,
		struct error *err)
{
	struct survey s = { .c = c, .volume_id = volume_id, .err = err };
	int r;

	s.result = error_set(err, ENOENT, "volume %.200s is not connected", volume_id);
	r = journal_each(c, find_one, &s, err);
	if (r < 0)
		return r;
	if (!s.found)
		return s.result;
	*ret = s.found;
	return 0;
}

static const char *health_of(const struct call *c, struct attachment *a, struct error *problem)
{
	if (a->state != STATE_ATTACHED)
		return "interrupted: run hostvol recover, or the same command again";
	return a->driver->verify(c, a, problem) < 0 ? problem->message : "ok";
}

static int list_one(struct attachment *a, void *userdata)
{
	struct survey *s = userdata;
	struct error problem = ERROR_INIT;
	json_t *o = NULL;
	int r;

	if (s->volume_id && !streq(a->volume_id, s->volume_id))
		return 0;
	r = attachment_to_json(a, &o, s->err);
	if (r < 0)
		return r;
	if (json_array_append_new(s->out, o) < 0 ||
	    json_object_set_new(o, "health", json_string(health_of(s->c, a, &problem))) < 0)
		return no_memory(s->err);
	return 0;
}

int attach_list(const struct call *c, const char *volume_id, json_t **ret, struct error *err)
{
	cleanup_json json_t *out = json_array();
	struct survey s = { .c = c, .volume_id = volume_id, .out = out, .err = err };
	int r;

	if (!out)
		return no_memory(err);
	r = journal_each(c, list_one, &s, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(out);
	return 0;
}

/*
 * Both an undone connect and a finished disconnect are a disconnect. What was only being connected
 * again is its consumer's as before, and whether it works is verified by whoever asks next. Read again under the lock:
 * whoever was at work on it may have come to its end meanwhile.
 */
static int recover_locked(const struct call *c, const char *id, struct attachment **ret,
			  struct error *err)
{
	cleanup_lock struct lock record = LOCK_INIT, target = LOCK_INIT;
	cleanup_attachment struct attachment *a = NULL;
	int r;

	r = lock_take(c, "record", id, &record, err);
	if (r < 0)
		return r;
	r = journal_load(c, id, &a, err);
	if (r == -ENOENT || (r >= 0 && a->state == STATE_ATTACHED))
		return 0;
	if (r < 0)
		return r;
	r = lock_take(c, "target", a->target_id, &target, err);
	if (r < 0)
		return r;
	r = journal_count_users(c, a, err);
	if (r < 0)
		return r;
	if (attachment_has_consumer(a)) {
		a->state = STATE_ATTACHED;
		r = journal_store(c, a, err);
	} else {
		r = attach_clear_away(c, a, false, err);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(a);
	return 1;
}

static int recover_one(struct attachment *a, void *userdata)
{
	struct survey *s = userdata;
	struct error problem = ERROR_INIT;
	cleanup_attachment struct attachment *done = NULL;
	const char *action = "failed";
	json_t *o;
	int r;

	if (a->state == STATE_ATTACHED)
		return 0;
	r = recover_locked(s->c, a->id, &done, &problem);
	if (r == 0)
		return 0;
	if (r > 0)
		action = done->state == STATE_CONNECTING ? "undone"
			 : done->state == STATE_ATTACHED ? "kept"
							 : "finished";
	else
		s->result = 1;
	o = json_pack("{s:s, s:s, s:s, s:s}", "volumeId", a->volume_id, "consumer", a->consumer,
		      "action", action, "message", problem.message);
	return json_array_append_new(s->out, o) < 0 ? no_memory(s->err) : 0;
}

int attach_recover(const struct call *c, json_t **ret, struct error *err)
{
	cleanup_json json_t *out = json_array();
	struct survey s = { .c = c, .out = out, .err = err };
	int r;

	if (!out)
		return no_memory(err);
	r = journal_each(c, recover_one, &s, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(out);
	return s.result;
}
