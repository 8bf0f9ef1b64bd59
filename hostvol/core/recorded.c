/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded.h"

#include "base/mem.h"
#include "driver.h"
#include "journal.h"

#include <errno.h>

bool recorded_is_known(const struct attachment *a)
{
	for (const char *const *key = a->driver->identity; key && *key; key++)
		if (attachment_detail(a, *key)[0])
			return true;
	return false;
}

bool recorded_is_comparable(const struct attachment *a, const struct attachment *b)
{
	return a->driver->identity && a->driver->identity == b->driver->identity;
}

static int carry(struct attachment *to, const struct attachment *from, const char *const *keys,
		 struct error *err)
{
	int r = 0;

	for (const char *const *key = keys; key && *key && r >= 0; key++) {
		const char *value = attachment_detail(from, *key);

		if (value[0] && !attachment_detail(to, *key)[0])
			r = attachment_set_detail(to, *key, value, err);
	}
	return r;
}

int recorded_carry(struct attachment *to, const struct attachment *from, struct error *err)
{
	return carry(to, from, to->driver->identity, err);
}

int recorded_carry_form(struct attachment *to, const struct attachment *from, struct error *err)
{
	return carry(to, from, to->driver->form, err);
}

struct inheritance {
	struct attachment *heir;
	struct error *err;
};

/* The id says which volume it is; its place can be written in many ways (ports in any order). */
static int inherit_from(struct attachment *a, void *userdata)
{
	struct inheritance *i = userdata;
	const struct attachment *heir = i->heir;

	if (streq(a->id, heir->id) || !streq(a->volume_id, heir->volume_id) ||
	    !recorded_is_comparable(a, heir))
		return 0;
	return recorded_carry(i->heir, a, i->err);
}

int recorded_inherit(const struct call *c, struct attachment *a, struct error *err)
{
	struct inheritance i = { .heir = a, .err = err };
	int r;

	if (!a->driver->identity || recorded_is_known(a))
		return 0;
	r = journal_each(c, inherit_from, &i, err);
	return r < 0 ? r : 0;
}

int recorded_differs(const struct attachment *a, const char *where, const char *now,
		     const char *before, struct error *err)
{
	return error_set(err, ESTALE,
			 "%.80s is %.90s, and was %.90s when it was connected: another volume "
			 "stands there now, and is left alone (if it is meant: hostvol forget %.100s)",
			 where, now, before, a->volume_id);
}
