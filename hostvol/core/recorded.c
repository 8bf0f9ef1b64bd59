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

/* A parameter that is the volume's own name, or NULL; *ret: whether such a one is given. */
static const char *expectation(const struct attachment *a, bool *ret)
{
	const char *name = NULL;

	for (const struct param *p = a->driver->params; p->name; p++) {
		if (!p->expectation)
			continue;
		*ret |= attachment_param(a, p->name) != NULL;
		name = name ? name : p->name;
	}
	return name;
}

/* One that cannot be read may be the one that knows; what stands there is not taken for it. */
static int refuse_unknown(const struct call *c, const struct attachment *a, int unreadable,
			  const char *file, struct error *err)
{
	bool given = false;
	const char *name = expectation(a, &given);

	if (given)
		return 0;
	return error_set(err, EBADMSG,
			 "%d records cannot be read (%.200s/attachments/%s), and may say which "
			 "volume %.80s is: put back what stood there, or move away what is not of "
			 "this volume%s%s%s",
			 unreadable, c->h->state_dir, file, a->volume_id,
			 name ? "; or say which one is meant (parameter " : "", name ? name : "",
			 name ? ")" : "");
}

int recorded_inherit(const struct call *c, struct attachment *a, struct error *err)
{
	struct inheritance i = { .heir = a, .err = err };
	char file[JOURNAL_NAME_MAX];
	int r;

	if (!a->driver->identity || recorded_is_known(a))
		return 0;
	r = journal_each_naming(c, inherit_from, &i, file, err);
	if (r <= 0 || recorded_is_known(a))
		return r < 0 ? r : 0;
	return refuse_unknown(c, a, r, file, err);
}

int recorded_differs(const struct attachment *a, const char *where, const char *now,
		     const char *before, struct error *err)
{
	return error_set(err, ESTALE,
			 "%.80s is %.90s, and was %.90s when it was connected: another volume "
			 "stands there now, and is left alone (if it is meant: hostvol forget %.100s)",
			 where, now, before, a->volume_id);
}
