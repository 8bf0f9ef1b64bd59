/* SPDX-License-Identifier: Apache-2.0 */
/* Beyond connecting and disconnecting: growing a volume, saying what would be done, tidying up. */
#include "attach.h"
#include "base/mem.h"
#include "driver.h"
#include "journal.h"
#include "lock.h"

#include <errno.h>

/* ---- extend --------------------------------------------------------------------------------- */

/* A path without a protocol that could tell: what the file or device says. */
static int add_size(const struct call *c, const struct attachment *a, json_t *result,
		    struct error *err)
{
	struct host_stat st;
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	r = c->host->stat(c->host, a->path, &st, r);
	if (r < 0)
		return error_errno(err, -r, "cannot read the size of %s", a->path);
	if (st.type != HOST_FILE_BLOCK && st.type != HOST_FILE_REGULAR)
		return 0;
	return json_object_set_new(result, "size", json_integer((json_int_t)st.size)) < 0
		       ? no_memory(err)
		       : 0;
}

int attach_extend(const struct call *c, const char *volume_id, json_t **ret, struct error *err)
{
	cleanup_attachment struct attachment *a = NULL;
	cleanup_lock struct lock target = LOCK_INIT;
	cleanup_json json_t *result = NULL;
	int r = attach_find(c, volume_id, &a, err);

	if (r >= 0)
		r = lock_take(c, "target", a->target_id, &target, err);
	if (r < 0)
		return r;
	result = json_pack("{s:s, s:s}", "volumeId", a->volume_id, "path", a->path);
	if (!result)
		return no_memory(err);
	if (!a->driver->extend) {
		/* nothing to be told; it is verified that it is there */
		r = a->driver->verify(c, a, err);
		if (r >= 0)
			r = add_size(c, a, result, err);
	} else {
		r = a->driver->extend(c, a, result, err);
	}
	/* what came of each path matters most where some failed */
	if (r != -ENOMEM)
		*ret = TAKE_PTR(result);
	return r;
}

/* ---- plan ----------------------------------------------------------------------------------- */

int attach_plan(const struct call *c, const char *volume_id, const char *consumer, json_t **ret,
		struct error *err)
{
	cleanup_attachment struct attachment *a = NULL;
	cleanup_json json_t *result = NULL;
	char id[HASH_TEXT_MAX];
	int r;

	hash_of(id, volume_id, consumer);
	r = journal_load(c, id, &a, err);
	if (r == -ENOENT)
		return error_set(err, ENOENT, "volume %.200s is not connected", volume_id);
	if (r >= 0)
		r = journal_count_users(c, a, err);
	if (r < 0)
		return r;
	result = json_pack("{s:s, s:s, s:s, s:[], s:[], s:[]}", "volumeId", a->volume_id,
			   "consumer", a->consumer, "path", a->path ? a->path : "", "devices",
			   "usedBy", "steps");
	if (!result)
		return no_memory(err);
	r = a->driver->plan ? a->driver->plan(c, a, result, err) : 0;
	if (r < 0)
		return r;
	if (json_array_append_new(jget(result, "steps"), json_string("remove the record")) < 0)
		return no_memory(err);
	*ret = TAKE_PTR(result);
	return 0;
}

/* ---- audit ---------------------------------------------------------------------------------- */

struct interrupted {
	json_t *out;
	struct error *err;
};

static int list_interrupted(struct attachment *a, void *userdata)
{
	struct interrupted *i = userdata;
	char name[256];

	if (a->state == STATE_ATTACHED)
		return 0;
	return json_array_append_new(i->out,
				     json_pack("{s:s, s:s, s:s, s:s}", "kind", "record", "name",
					       attachment_name(a, name, sizeof(name)), "message",
					       "interrupted in the middle", "action", "none")) < 0
		       ? no_memory(i->err)
		       : 0;
}

/* What recovery did, as findings. */
static int add_recovered(const json_t *recovered, json_t *out, struct error *err)
{
	const json_t *r;
	size_t i;

	json_array_foreach ((json_t *)recovered, i, r)
		if (json_array_append_new(out, json_pack("{s:s, s:s, s:s, s:s}", "kind", "record",
							 "name", jstr(r, "volumeId"), "message",
							 jstr(r, "message")[0]
								 ? jstr(r, "message")
								 : "interrupted in the middle",
							 "action", jstr(r, "action"))) < 0)
			return no_memory(err);
	return 0;
}

int attach_audit(const struct call *c, bool repair, json_t **ret, struct error *err)
{
	cleanup_json json_t *out = json_array(), *recovered = NULL;
	struct interrupted i = { .out = out, .err = err };
	int r, left = 0;

	if (!out)
		return no_memory(err);
	if (repair) {
		left = r = attach_recover(c, &recovered, err);
		if (r >= 0)
			r = add_recovered(recovered, out, err);
	} else {
		r = journal_each(c, list_interrupted, &i, err);
	}
	for (size_t d = 0; r >= 0 && drivers[d]; d++) {
		if (!drivers[d]->audit)
			continue;
		r = drivers[d]->audit(c, repair, out, err);
		left |= r > 0;
	}
	if (r < 0)
		return r;
	if (!repair && json_array_size(out))
		left = 1;
	*ret = TAKE_PTR(out);
	return left > 0;
}
