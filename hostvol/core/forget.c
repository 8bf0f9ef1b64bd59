/* SPDX-License-Identifier: Apache-2.0 */
/* A person says that a volume is not what it was, and that the next connect may take what is there. */
#include "attach.h"
#include "base/mem.h"
#include "driver.h"
#include "journal.h"

#include <errno.h>

struct forgetting {
	const struct call *c;
	const char *volume_id;
	json_t *out;
	struct error *err;
};

/* Of a volume that works there is nothing to forget. */
static int refuse_healthy(struct attachment *a, void *userdata)
{
	struct forgetting *f = userdata;

	if (!streq(a->volume_id, f->volume_id) || !attachment_has_consumer(a) ||
	    a->driver->verify(f->c, a, NULL) < 0)
		return 0;
	return error_set(f->err, EBUSY,
			 "volume %.150s is at %.150s, and is what was connected: nothing is "
			 "forgotten (hostvol disconnect ends its use)",
			 a->volume_id, a->path ? a->path : "its place");
}

/* As its consumer's disconnect: what is in use stays, and so does its record. */
static int forget_one(struct attachment *a, void *userdata)
{
	struct forgetting *f = userdata;
	cleanup_attachment struct attachment *gone = NULL;
	json_t *o;
	int r;

	if (!streq(a->volume_id, f->volume_id))
		return 0;
	r = attach_disconnect(f->c, a->volume_id, a->consumer, false, &gone, f->err);
	if (r != 0)
		return r < 0 ? r : 0; /* another call has ended it */
	o = json_pack("{s:s, s:s, s:s}", "volumeId", a->volume_id, "consumer", a->consumer, "path",
		      a->path ? a->path : "");
	return json_array_append_new(f->out, o) < 0 ? no_memory(f->err) : 0;
}

int attach_forget(const struct call *c, const char *volume_id, json_t **ret, struct error *err)
{
	cleanup_json json_t *out = json_array();
	struct forgetting f = { .c = c, .volume_id = volume_id, .out = out, .err = err };
	int r;

	if (!out)
		return no_memory(err);
	r = journal_each(c, refuse_healthy, &f, err);
	if (r >= 0)
		r = journal_each(c, forget_one, &f, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(out);
	return json_array_size(*ret) == 0;
}
