/* SPDX-License-Identifier: Apache-2.0 */
/* A person says that a volume is not what it was, and that the next connect may take what is there. */
#include "attach.h"
#include "base/mem.h"
#include "driver.h"
#include "journal.h"
#include "lock.h"

#include <errno.h>

struct forgetting {
	const struct call *c;
	const char *volume_id;
	json_t *records; /* of the volume, as they were */
	struct error *err;
};

static int add_record(struct attachment *a, void *userdata)
{
	struct forgetting *f = userdata;
	json_t *o = NULL;
	int r;

	if (!streq(a->volume_id, f->volume_id))
		return 0;
	r = attachment_to_json(a, &o, f->err);
	if (r >= 0)
		r = attach_refuse_forgetting(f->c, a, f->err);
	if (r < 0) {
		json_decref(o);
		return r;
	}
	return json_array_append_new(f->records, o) < 0 ? no_memory(f->err) : 0;
}

/*
 * As its consumer's disconnect: what is in use stays, and so does its record. Whether it works is
 * looked at once more there, under the locks: the storage may have given it its place back.
 */
static int forget_one(const struct forgetting *f, const json_t *record, json_t *out)
{
	cleanup_attachment struct attachment *gone = NULL;
	const char *consumer = jstr(record, "consumer");
	json_t *o;
	int r = attach_disconnect(f->c, f->volume_id, consumer, ATTACH_END_BROKEN, &gone, f->err);

	if (r != 0)
		return r < 0 ? r : 0; /* another call has ended it */
	o = json_pack("{s:s, s:s, s:s}", "volumeId", f->volume_id, "consumer", consumer, "path",
		      jstr(record, "path"));
	return json_array_append_new(out, o) < 0 ? no_memory(f->err) : 0;
}

/* Its consumer counts on it still, unless he has come back by himself. */
static int put_back(const struct call *c, const json_t *record, struct error *err)
{
	cleanup_attachment struct attachment *a = NULL, *now = NULL;
	cleanup_lock struct lock lock = LOCK_INIT;
	int r = attachment_from_json(record, &a, err);

	if (r >= 0)
		r = lock_take(c, "record", a->id, &lock, err);
	if (r >= 0 && journal_load(c, a->id, &now, NULL) == -ENOENT)
		r = journal_store(c, a, err);
	return r;
}

/* In use are all of them or none: it shows with the last, when the others have gone. */
static void put_all_back(const struct forgetting *f, const json_t *out)
{
	struct call undo = call_undo(f->c);
	struct error problem = ERROR_INIT;
	const json_t *record, *gone;
	size_t i, k;

	json_array_foreach ((json_t *)out, k, gone)
		json_array_foreach (f->records, i, record)
			if (streq(jstr(record, "consumer"), jstr(gone, "consumer")) &&
			    put_back(&undo, record, &problem) < 0)
				call_log(f->c, HOSTVOL_LOG_WARNING,
					 "volume %s is not in use by %s any more: %s", f->volume_id,
					 jstr(record, "consumer"), problem.message);
}

int attach_forget(const struct call *c, const char *volume_id, json_t **ret, struct error *err)
{
	cleanup_json json_t *out = json_array(), *records = json_array();
	struct forgetting f = { .c = c, .volume_id = volume_id, .records = records, .err = err };
	const json_t *record;
	size_t i;
	int r;

	if (!out || !records)
		return no_memory(err);
	r = journal_each(c, add_record, &f, err);
	if (r < 0)
		return r;
	r = 0;
	json_array_foreach (records, i, record)
		if (r >= 0)
			r = forget_one(&f, record, out);
	if (r < 0) {
		put_all_back(&f, out);
		return r;
	}
	*ret = TAKE_PTR(out);
	return json_array_size(*ret) == 0;
}
