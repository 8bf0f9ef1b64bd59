/* SPDX-License-Identifier: Apache-2.0 */
#include "mounts/records.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/attachment.h"
#include "core/journal.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct finding {
	const char *volume_id, *consumer;
	json_t *out;
	struct error *err;
};

static int find_one(struct attachment *a, void *userdata)
{
	struct finding *f = userdata;
	json_t *o;
	int r;

	if ((f->volume_id && !streq(a->volume_id, f->volume_id)) ||
	    (f->consumer && !streq(a->consumer, f->consumer)))
		return 0;
	r = attachment_to_json(a, &o, f->err);
	if (r >= 0)
		(void)json_array_append_new(f->out, o);
	return r;
}

/* How many could not be read. */
static int find(struct hostvol *h, const char *volume_id, const char *consumer, json_t **ret,
		struct error *err)
{
	cleanup_json json_t *out = json_array();
	struct finding f = { .volume_id = volume_id, .consumer = consumer, .out = out, .err = err };
	struct call c = call_begin(h);
	int r = journal_each(&c, find_one, &f, err);

	if (r >= 0)
		*ret = TAKE_PTR(out);
	return r;
}

int records_find(struct hostvol *h, const char *volume_id, const char *consumer, json_t **ret,
		 struct error *err)
{
	int r = find(h, volume_id, consumer, ret, err);

	return r < 0 ? r : 0;
}

int records_all(struct hostvol *h, json_t **ret, size_t *ret_unreadable, struct error *err)
{
	int r = find(h, NULL, NULL, ret, err);

	if (r < 0)
		return r;
	*ret_unreadable = (size_t)r;
	return 0;
}

const char *record_root(const json_t *record)
{
	const char *point = jstr(record, "detail", "mountPoint");

	return point ? point : jstr(record, "path");
}

const char *record_sub(const json_t *record)
{
	const char *name = NULL;

	if (jstr(record, "detail", "mountPoint")) {
		name = jstr(record, "detail", "subPath");
		if (!name || !*name)
			name = jstr(record, "data", "name");
	}
	return name ? name : "";
}

/* GlusterFS shows the server that was asked first, which may be any of a volume's. */
static bool is_source(const struct mount_entry *e, const char *source)
{
	const char *volume = strstr(e->source, ":/"), *ours = strstr(source, ":/");

	return streq(e->source, source) ||
	       (streq(e->fs_type, "fuse.glusterfs") && volume && ours && streq(volume, ours));
}

/* NFS has no root: it shows a directory below an export as if that had been mounted. */
static bool is_below_source(const struct mount_entry *e, const char *source, const char *sub)
{
	size_t len = strlen(source);

	while (len && source[len - 1] == '/')
		len--;
	return strncmp(e->fs_type, "nfs", 3) == 0 && streq(e->root, "/") &&
	       strncmp(e->source, source, len) == 0 && e->source[len] == '/' &&
	       streq(e->source + len + 1, sub);
}

/* The kernel adds this to the name of a directory that was removed while it is mounted: it is the same mount. */
#define REMOVED "//deleted"

/* Caller frees. */
static char *shown_root(const struct mount_entry *e)
{
	size_t len = strlen(e->root);

	if (str_has_suffix(e->root, REMOVED))
		len -= strlen(REMOVED);
	return xasprintf("%.*s", (int)len, e->root);
}

/* A file system on the device itself. Of what a path may lead to, what is in /dev always answers. */
static bool is_of_device(const char *path, const struct mount_entry *e)
{
	cleanup_free char *number = NULL;
	struct stat st;

	if (!str_has_prefix(path, "/dev/") || stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return false;
	number = xasprintf("%u:%u", major(st.st_rdev), minor(st.st_rdev));
	return streq(e->device, number);
}

/* Its file system's own root is above or below ours. */
static bool is_local_directory(const char *path, const char *shown)
{
	return str_has_suffix(path, shown) || str_has_suffix(shown, path) || streq(shown, "/");
}

bool record_is_mount(const json_t *record, const struct mount_entry *e)
{
	const char *sub = record_sub(record), *identity = jstr(record, "detail", "identity");
	cleanup_free char *root = xasprintf("/%s", sub), *shown = shown_root(e);
	const char *source = jstr(record, "detail", "source"), *path = jstr(record, "path");

	if (source)
		return (is_source(e, source) && streq(shown, root)) ||
		       is_below_source(e, source, sub);
	if (!path || !*path)
		return false; /* it was never connected, so nothing of it was shown */
	return identity && str_has_prefix(identity, "directory") ? is_local_directory(path, shown)
								 : is_of_device(path, e);
}

int from_hostvol(int r, const struct hostvol_error *from, struct error *err)
{
	return r < 0 ? error_set(err, -r, "%s", from->message) : r;
}

int record_disconnect(struct hostvol *h, const json_t *record, unsigned flags, struct error *err)
{
	cleanup_free char *text = json_text(record), *gone = NULL;
	struct hostvol_error failed = { 0 };
	int r = hostvol_disconnect_volume_json(h, text, flags, &gone, &failed);

	return from_hostvol(r, &failed, err);
}
