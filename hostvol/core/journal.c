/* SPDX-License-Identifier: Apache-2.0 */
#include "journal.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <dirent.h>
#include <errno.h>

static int record_path(const struct call *c, const char *id, char **ret, struct error *err)
{
	return text_format(ret, err, "%s/attachments/%s.json", c->h->state_dir, id);
}

int journal_load(const struct call *c, const char *id, struct attachment **ret, struct error *err)
{
	cleanup_free char *path = NULL, *text = NULL;
	cleanup_json json_t *o = NULL;
	cleanup_attachment struct attachment *a = NULL;
	struct error why = ERROR_INIT;
	size_t len;
	int r;

	r = record_path(c, id, &path, err);
	if (r < 0)
		return r;
	r = file_read(path, 1 << 20, &text, &len, err);
	if (r < 0)
		return r;
	r = json_parse(text, len, &o, &why);
	if (r >= 0)
		r = attachment_from_json(o, &a, &why);
	if (r >= 0 && !streq(a->id, id))
		r = error_set(&why, EBADMSG, "it belongs to another volume");
	if (r == -ENOMEM)
		return no_memory(err);
	if (r < 0)
		return error_set(err, EBADMSG, "the record %s is damaged (%s): move it away", path,
				 why.message);
	*ret = TAKE_PTR(a);
	return 0;
}

int journal_store(const struct call *c, const struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL, *dir = NULL, *text = NULL;
	cleanup_json json_t *o = NULL;
	int r;

	r = attachment_to_json(a, &o, err);
	if (r < 0)
		return r;
	text = json_compose(o, JSON_INDENT(1));
	if (!text)
		return no_memory(err);
	r = record_path(c, a->id, &path, err);
	if (r < 0)
		return r;
	r = text_format(&dir, err, "%s/attachments", c->h->state_dir);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r < 0)
		return error_errno(err, -r, "cannot make %s", dir);
	r = c->host->write_file(c->host, path, text, strlen(text));
	if (r < 0)
		return error_errno(err, -r, "cannot write the record %s", path);
	return 0;
}

int journal_remove(const struct call *c, const struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	int r = record_path(c, a->id, &path, err);

	if (r < 0)
		return r;
	r = c->host->remove_file(c->host, path);
	if (r < 0 && r != -ENOENT)
		return error_errno(err, -r, "cannot remove the record %s", path);
	return 0;
}

static int visit(const struct call *c, const char *name, int (*fn)(struct attachment *, void *),
		 void *userdata, struct error *err)
{
	cleanup_attachment struct attachment *a = NULL;
	char id[HASH_TEXT_MAX] = { 0 };
	struct error problem = ERROR_INIT;
	int r;

	/* others are temporary files of a write that died */
	if (strlen(name) != sizeof(id) - 1 + strlen(".json") || !str_has_suffix(name, ".json"))
		return 0;
	memcpy(id, name, sizeof(id) - 1);
	r = journal_load(c, id, &a, &problem);
	if (r == -ENOENT)
		return 0;
	if (r == -ENOMEM)
		return no_memory(err);
	if (r < 0) {
		call_log(c, HOSTVOL_LOG_WARNING, "%s", problem.message);
		return 1;
	}
	return fn(a, userdata);
}

int journal_each_naming(const struct call *c, int (*fn)(struct attachment *a, void *userdata),
			void *userdata, char ret_unreadable[static JOURNAL_NAME_MAX],
			struct error *err)
{
	cleanup_free char *path = NULL;
	int r, unreadable = 0;
	struct dirent *e;
	DIR *dir;

	r = text_format(&path, err, "%s/attachments", c->h->state_dir);

	if (r < 0)
		return r;
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? 0 : error_errno(err, errno, "cannot read %s", path);
	while (r >= 0 && (e = readdir(dir))) {
		r = visit(c, e->d_name, fn, userdata, err);
		/* what visit takes for a record has a name of just that length */
		if (r > 0 && unreadable++ == 0)
			memcpy(ret_unreadable, e->d_name, JOURNAL_NAME_MAX);
	}
	closedir(dir);
	return r < 0 ? r : unreadable;
}

int journal_each(const struct call *c, int (*fn)(struct attachment *a, void *userdata),
		 void *userdata, struct error *err)
{
	char unreadable[JOURNAL_NAME_MAX];

	return journal_each_naming(c, fn, userdata, unreadable, err);
}

static int count_one(struct attachment *a, void *userdata)
{
	struct attachment *of = userdata;

	if (!streq(a->target, of->target))
		return 0;
	if (a->state != STATE_ATTACHED)
		of->interrupted++;
	if (attachment_has_consumer(a) && !streq(a->id, of->id))
		of->others++;
	return 0;
}

int journal_count_users(const struct call *c, struct attachment *a, struct error *err)
{
	int r;

	a->others = a->interrupted = 0;
	r = journal_each(c, count_one, a, err);
	if (r < 0)
		return r;
	a->unreadable = r;
	return 0;
}
