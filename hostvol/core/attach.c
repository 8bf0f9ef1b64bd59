/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"

#include "base/mem.h"
#include "driver.h"
#include "journal.h"
#include "lock.h"
#include "mountinfo.h"
#include "params.h"
#include "recorded.h"

#include <errno.h>

/* Under the record's lock: takes the target's, and counts who else uses it. */
static int lock_target(const struct call *c, struct attachment *a, struct lock *lock,
		       struct error *err)
{
	int r = lock_take(c, "target", a->target_id, lock, err);

	return r < 0 ? r : journal_count_users(c, a, err);
}

static int set_state(const struct call *c, struct attachment *a, enum attach_state state,
		     struct error *err)
{
	a->state = state;
	return journal_store(c, a, err);
}

/* What the record stands for; the record itself stays. */
static int clear_target(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	/* one of these may use the target; nothing is taken away from it unknowingly */
	if (a->unreadable && !a->others && !force)
		return error_set(
			err, EBADMSG,
			"%d records below %s/attachments cannot be read, and might use the same "
			"target: move them away (hostvol -v list names them)",
			a->unreadable, c->h->state_dir);
	return a->driver->disconnect(c, a, force, err);
}

int attach_clear_away(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	int r = clear_target(c, a, force, err);

	return r < 0 ? r : journal_remove(c, a, err);
}

/*
 * A failed connect leaves nothing behind: or, where even that fails, a record that says so. before
 * is what was recorded, and has to outlive the attempt; NULL for nothing.
 */
static void undo_connect(const struct call *c, struct attachment *a, struct attachment *before)
{
	struct call undo = call_undo(c);
	struct error problem = ERROR_INIT;
	char name[256];
	int r;

	if (before) {
		/* its consumer still counts on it (after a reboot, say): only this attempt failed */
		r = a->driver->disconnect(&undo, a, false, &problem);
		if (set_state(&undo, streq(before->target, a->target) ? before : a, before->state,
			      &problem) < 0)
			r = -EIO;
	} else {
		r = attach_clear_away(&undo, a, false, &problem);
	}
	if (r < 0)
		call_log(c, HOSTVOL_LOG_WARNING, "%s: what was begun could not be undone: %s",
			 attachment_name(a, name, sizeof(name)), error_text(&problem, r));
}

/* Under the record's lock. */
static int do_connect(const struct call *c, struct attachment *a, struct attachment *before,
		      struct error *err)
{
	cleanup_lock struct lock target = LOCK_INIT;
	int r;

	r = lock_target(c, a, &target, err);
	if (r >= 0)
		r = recorded_inherit(c, a, err);
	if (r < 0)
		return r;
	r = set_state(c, a, STATE_CONNECTING, err);
	if (r < 0)
		return r;
	r = a->driver->connect(c, a, err);
	if (r >= 0)
		r = set_state(c, a, STATE_ATTACHED, err);
	if (r < 0)
		undo_connect(c, a, before);
	return r;
}

enum settled {
	SETTLED_GONE, /* nothing is in the way */
	SETTLED_KEPT, /* connected, and verified */
	SETTLED_BROKEN, /* its consumer counts on it, but it has to be connected again */
};

/* The caller may expect more of the volume than who connected it did. */
static int check_expectation(const struct call *c, struct attachment *old,
			     const struct attachment *want, struct error *err)
{
	json_t *params = old->params;
	bool another = false;
	int r;

	for (const struct param *p = want->driver->params; p->name; p++) {
		const char *expected = attachment_param(want, p->name),
			   *before = attachment_param(old, p->name);

		another |= p->expectation && expected && (!before || !streq(before, expected));
	}
	if (!another)
		return 0;
	old->params = want->params;
	r = old->driver->verify(c, old, err);
	old->params = params;
	return r;
}

/* Under the locks of record and target: whether what is attached is there, and the one. */
static int look_at_attached(const struct call *c, struct attachment *old,
			    const struct attachment *want, struct error *err)
{
	cleanup_json json_t *before = object_copy(old->detail);
	struct error problem = ERROR_INIT;
	char name[256];
	int r = before ? recorded_inherit(c, old, err) : no_memory(err);

	if (r < 0)
		return r;
	if (old->driver->verify(c, old, &problem) < 0) {
		call_log(c, HOSTVOL_LOG_INFO, "%s is connected again: %s",
			 attachment_name(old, name, sizeof(name)), problem.message);
		return SETTLED_BROKEN;
	}
	r = check_expectation(c, old, want, err);
	/* what was learned just now, of a record that did not say it */
	if (r >= 0 && (old->was_attached || !json_equal(before, old->detail)))
		r = journal_store(c, old, err);
	return r < 0 ? r : SETTLED_KEPT;
}

/* Under the record's lock: what becomes of the record that is there already. */
static int settle_old(const struct call *c, struct attachment *old, const struct attachment *want,
		      struct error *err)
{
	bool same_target = old->driver == want->driver && streq(old->target, want->target);
	cleanup_lock struct lock target = LOCK_INIT;
	char name[256];
	int r;

	r = lock_target(c, old, &target, err);
	if (r < 0)
		return r;
	/* whoever connected it again died: it is what it was before, as far as it still works */
	if (attachment_has_consumer(old))
		old->state = STATE_ATTACHED;
	if (old->state == STATE_ATTACHED) {
		if (old->driver != want->driver ||
		    !params_same_volume(want->driver, old->params, want->params))
			return error_set(err, EEXIST,
					 "%s is connected already from another place (%.150s): "
					 "disconnect it first, or use another volumeId",
					 attachment_name(old, name, sizeof(name)), old->target);
		r = look_at_attached(c, old, want, err);
		if (r != SETTLED_BROKEN)
			return r;
	}
	/* whatever is left at the same target, connect finds and uses */
	if (same_target)
		return old->state == STATE_ATTACHED ? SETTLED_BROKEN : SETTLED_GONE;
	/*
	 * Its record stays until that of the new target takes its place: no crash loses the
	 * consumer, nor, where that has half gone, which volume it was.
	 */
	r = clear_target(c, old, false, err);
	if (r < 0)
		return r;
	return old->state == STATE_ATTACHED ? SETTLED_BROKEN : SETTLED_GONE;
}

/* Also in the record of an attempt that is killed: what is there may work again without another. */
static int take_over_place(struct attachment *want, const struct attachment *old, struct error *err)
{
	if (old->path && !want->path) {
		want->path = strdup(old->path);
		if (!want->path)
			return no_memory(err);
	}
	return recorded_carry_form(want, old, err);
}

/*
 * What the new record has of the one before it: which volume it is, for as long as there is a
 * record, in whatever words its place was written there; and what is at that place, while its
 * consumer counts on it. 1: old has to outlive an attempt that fails.
 */
static int take_over(struct attachment *want, const struct attachment *old, struct error *err)
{
	int r;

	if (old->driver != want->driver && !recorded_is_comparable(want, old))
		return 0;
	r = recorded_carry(want, old, err);
	if (r >= 0 && want->was_attached && streq(old->target, want->target))
		r = take_over_place(want, old, err);
	if (r < 0)
		return r;
	return want->was_attached || recorded_is_known(old);
}

int attach_connect(const struct call *c, struct attachment **want, struct error *err)
{
	cleanup_lock struct lock record = LOCK_INIT;
	cleanup_attachment struct attachment *old = NULL;
	int r, settled = SETTLED_GONE;

	r = lock_take(c, "record", (*want)->id, &record, err);
	if (r < 0)
		return r;
	r = journal_load(c, (*want)->id, &old, err);
	if (r < 0 && r != -ENOENT)
		return r;
	if (old)
		settled = settle_old(c, old, *want, err);
	if (settled < 0)
		return settled;
	if (settled == SETTLED_KEPT) {
		r = streq(old->target, (*want)->target) ? 0 : 1;
		attachment_free(*want);
		*want = TAKE_PTR(old);
		return r;
	}
	(*want)->was_attached = settled == SETTLED_BROKEN;
	r = old ? take_over(*want, old, err) : 0;
	return r < 0 ? r : do_connect(c, *want, r > 0 ? old : NULL, err);
}

/* Who is named by a path has what he connected there: the CSI node service does. */
static int refuse_mounted(const struct call *c, const struct attachment *a, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	cleanup_free char *text = NULL;
	int r;

	if (a->consumer[0] != '/')
		return 0;
	r = c->host->mountinfo(c->host, &text);
	if (r < 0)
		return error_errno(err, -r, "cannot read the mount table");
	r = mountinfo_find(text, a->consumer, &e);
	if (r <= 0)
		return r < 0 ? no_memory(err) : 0;
	return error_set(err, EBUSY,
			 "volume %.150s is in use: its consumer %.150s is a mount point; unmount "
			 "it first",
			 a->volume_id, a->consumer);
}

int attach_refuse_forgetting(const struct call *c, struct attachment *a, struct error *err)
{
	int r;

	if (attachment_has_consumer(a) && a->driver->verify(c, a, NULL) >= 0)
		return error_set(err, EBUSY,
				 "volume %.150s is at %.150s, and is what was connected: nothing "
				 "is forgotten (hostvol disconnect ends its use)",
				 a->volume_id, a->path ? a->path : "its place");
	r = refuse_mounted(c, a, err);
	return r < 0 || !a->driver->in_use ? r : a->driver->in_use(c, a, err);
}

/* Under the record's lock. A disconnect that was refused leaves the volume as it was. */
static int do_disconnect(const struct call *c, struct attachment *a, enum attach_end how,
			 struct error *err)
{
	cleanup_lock struct lock target = LOCK_INIT;
	bool had_consumer = attachment_has_consumer(a);
	struct call undo;
	int r;

	r = lock_target(c, a, &target, err);
	if (r >= 0 && how == ATTACH_END_BROKEN)
		r = attach_refuse_forgetting(c, a, err);
	if (r >= 0)
		r = set_state(c, a, STATE_DISCONNECTING, err);
	if (r < 0)
		return r;
	r = attach_clear_away(c, a, how == ATTACH_END_FORCE, err);
	if (r < 0 && had_consumer) {
		undo = call_undo(c);
		/* who did not ask for its end counts on it, whatever is left */
		if (how == ATTACH_END_BROKEN || a->driver->verify(&undo, a, NULL) >= 0)
			set_state(&undo, a, STATE_ATTACHED, NULL);
	}
	return r;
}

int attach_disconnect(const struct call *c, const char *volume_id, const char *consumer,
		      enum attach_end how, struct attachment **ret, struct error *err)
{
	cleanup_lock struct lock record = LOCK_INIT;
	cleanup_attachment struct attachment *a = NULL;
	char id[HASH_TEXT_MAX];
	int r;

	hash_of(id, volume_id, consumer);
	r = lock_take(c, "record", id, &record, err);
	if (r < 0)
		return r;
	r = journal_load(c, id, &a, err);
	if (r == -ENOENT) {
		*ret = NULL;
		return 1;
	}
	if (r < 0)
		return r;
	r = do_disconnect(c, a, how, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(a);
	return 0;
}
