/* SPDX-License-Identifier: Apache-2.0 */
#include "mark.h"

#include "base/file.h"
#include "base/mem.h"
#include "core/driver.h"
#include "core/journal.h"
#include "core/lock.h"
#include "sysfs.h"

#include <errno.h>

#define NAME_MAX_BYTES 4096

static int mark_path(const struct call *c, const char *kind, const char *name, char **ret,
		     struct error *err)
{
	char id[HASH_TEXT_MAX];

	hash_of(id, name);
	return text_format(ret, err, "%s/%s/%s", c->h->run_dir, kind, id);
}

int mark_set(const struct call *c, const char *kind, const char *name, struct error *err)
{
	cleanup_free char *path = NULL, *dir = NULL;
	int r = mark_path(c, kind, name, &path, err);

	if (r >= 0)
		r = text_format(&dir, err, "%s/%s", c->h->run_dir, kind);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r >= 0)
		r = c->host->write_file(c->host, path, name, strlen(name));
	return r < 0 ? error_errno(err, -r, "cannot write %s", path) : 0;
}

bool mark_is_set(const struct call *c, const char *kind, const char *name)
{
	cleanup_free char *path = NULL;

	return mark_path(c, kind, name, &path, NULL) >= 0 && access(path, F_OK) == 0;
}

void mark_clear(const struct call *c, const char *kind, const char *name)
{
	cleanup_free char *path = NULL;

	if (mark_path(c, kind, name, &path, NULL) >= 0)
		c->host->remove_file(c->host, path);
}

/* ---- audit ---------------------------------------------------------------------------------- */

struct search {
	const struct call *c;
	const struct mark_audit *audit;
	json_t *findings;
	struct error *err;
	const char *name;
	int users, result;
};

static int count_user(struct attachment *a, void *userdata)
{
	struct search *s = userdata;

	s->users += streq(a->driver->name, s->audit->driver) && streq(a->target, s->name);
	return 0;
}

static int audit_one(const char *file, void *userdata)
{
	struct search *s = userdata;
	cleanup_free char *path = NULL, *name = NULL, *message = NULL;
	cleanup_lock struct lock lock = LOCK_INIT;
	struct error problem = ERROR_INIT;
	char id[HASH_TEXT_MAX];
	int r;

	if (text_format(&path, NULL, "%s/%s/%s", s->c->h->run_dir, s->audit->kind, file) < 0 ||
	    file_read(path, NAME_MAX_BYTES, &name, NULL, NULL) < 0)
		return 0;
	hash_of(id, name);
	if (!streq(id, file)) /* another's file */
		return 0;
	s->name = name;
	s->users = 0;
	r = lock_take(s->c, "target", id, &lock, s->err);
	if (r >= 0)
		r = journal_each(s->c, count_user, s, s->err);
	if (r < 0 || s->users)
		return r < 0 ? r : 0;
	r = s->audit->remove(s->c, name, s->audit->repair, &problem);
	if (r == 0) {
		mark_clear(s->c, s->audit->kind, name);
		return 0;
	}
	s->result |= r < 0;
	if (text_format(&message, s->err, "%s that no record names: %.100s", s->audit->what, name) <
	    0)
		return -ENOMEM;
	return json_array_append_new(s->findings,
				     json_pack("{s:s, s:s, s:s, s:s}", "kind", s->audit->what,
					       "name", name, "message",
					       r < 0 ? problem.message : message, "action",
					       !s->audit->repair ? "none"
					       : r < 0		 ? "failed"
								 : "removed")) < 0
		       ? no_memory(s->err)
		       : 0;
}

int mark_audit(const struct call *c, const struct mark_audit *audit, json_t *findings,
	       struct error *err)
{
	struct search s = { .c = c, .audit = audit, .findings = findings, .err = err };
	struct hostvol_host plain = *c->host;
	struct call below = *c;
	cleanup_free char *dir = NULL;
	int r = text_format(&dir, err, "%s/%s", c->h->run_dir, audit->kind);

	if (r < 0)
		return r;
	/* the run directory is not below the host's root */
	plain.root = "";
	below.host = &plain;
	r = sys_each(&below, dir, audit_one, &s);
	return r < 0 ? r : s.result;
}
