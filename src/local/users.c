/* SPDX-License-Identifier: Apache-2.0 */
#include "local/users.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "csi/loop.h"
#include "kube/kube.h"
#include "mounts/bind.h"
#include "mounts/records.h"

#include <dirent.h>
#include <errno.h>
#include <unistd.h>

#define NAMED_MAX 3 /* more are counted */

/* Those who connect a volume call it as its attributes say; else by its name, or its handle. */
static bool is_of(const json_t *record, const json_t *pv)
{
	const char *id = jstr(record, "volumeId");

	return streq(id, jstr(pv, "spec", "csi", "volumeAttributes", "volumeId")) ||
	       streq(id, jstr(pv, "spec", "csi", "volumeHandle")) || streq(id, object_name(pv));
}

/* Whatever is mounted there: the name of a device does not say whose it is. */
static int is_place_taken(const json_t *record, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	const char *consumer = jstr(record, "consumer");

	return consumer && consumer[0] == '/' ? bind_find(consumer, &e, err) : 0;
}

/*
 * A record outlives a reboot, what it connected does not. Whether that is shown anywhere is not
 * asked: whoever has it connected may do so at any moment. The mount that it was connected by is not
 * all: that may have been detached, or be in another mount namespace. A device on the volume's file
 * is seen from everywhere, and what is mounted from it outlives the mount that the file lies in.
 */
static int is_connected(const json_t *record, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	const char *point = jstr(record, "detail", "mountPoint"), *path = jstr(record, "path");
	const char *sub = record_sub(record);
	int r = point ? bind_find(point, &e, err) : path && access(path, F_OK) == 0;

	if (r == 0 && point && *sub)
		r = loop_is_on(point, sub);
	return r == 0 ? is_place_taken(record, err) : r;
}

static int is_mounted(const json_t *record, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	int r = bind_find(jstr(record, "consumer"), &e, err);

	return r > 0 ? record_is_mount(record, &e) : r;
}

static int say_user(const json_t *record, size_t before, struct buf *out, struct error *err)
{
	const char *consumer = jstr(record, "consumer");
	bool path = consumer && consumer[0] == '/';
	int mounted = path ? is_mounted(record, err) : 0;

	if (mounted < 0 || before >= NAMED_MAX)
		return mounted;
	buf_printf(out, "%s", before ? ", and " : "");
	if (mounted)
		buf_printf(out, "it is mounted on %s: quartermaster umount %s", consumer, consumer);
	else if (path)
		buf_printf(out, "it is staged at %s: unpublish and unstage it there, or, of a "
				"mount that was interrupted, quartermaster umount %s",
			   consumer, consumer);
	else
		buf_printf(out, "it is connected: hostvol disconnect %s", jstr(record, "volumeId"));
	return 0;
}

static int say_users(const json_t *records, const json_t *pv, struct buf *out, size_t *ret,
		     bool *ret_known, struct error *err)
{
	const json_t *record;
	size_t i;

	json_array_foreach (records, i, record) {
		int r = is_of(record, pv) ? is_connected(record, err) : 0;

		*ret_known |= is_of(record, pv);

		if (r > 0)
			r = say_user(record, (*ret)++, out, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- mounts that no record tells of --------------------------------------------------------------- */

/*
 * What was mounted by quartermaster may have been shown at another place by somebody else, where it stays when it is
 * unmounted here; or all of it was done in a mount namespace of its own.
 */
struct showing {
	const char *volume; /* ":/VOLUME" */
	char *root; /* the directory in it */
	char *where;
};

static int is_shown(const struct mount_entry *e, void *userdata)
{
	struct showing *s = userdata;

	if (!streq(e->fs_type, "fuse.glusterfs") || !streq(strstr(e->source, ":/"), s->volume) ||
	    !streq(e->root, s->root))
		return 0;
	s->where = xstrdup(e->mount_point);
	return 1;
}

/* A process that ends meanwhile shows nothing. */
static int look_in(const char *pid, struct showing *s)
{
	cleanup_free char *path = xasprintf("/proc/%s/mountinfo", pid), *text = NULL;

	if (file_read(path, 0, &text, NULL, NULL) < 0)
		return 0;
	return mountinfo_each(text, is_shown, s);
}

/* The file system's own client is none of its users, though it may be the last in the namespace that it was started in. */
static bool is_client(const char *pid)
{
	cleanup_free char *path = xasprintf("/proc/%s/comm", pid), *name = NULL;

	return file_read(path, 0, &name, NULL, NULL) == 0 && str_has_prefix(name, "glusterfs");
}

static bool is_new_namespace(const char *pid, struct strv *seen)
{
	cleanup_free char *path = xasprintf("/proc/%s/ns/mnt", pid);
	char name[64] = "";

	if (readlink(path, name, sizeof(name) - 1) < 0 || strv_contains(seen, name) ||
	    is_client(pid))
		return false;
	strv_add(seen, name);
	return true;
}

static int look_elsewhere(struct showing *s, struct buf *out)
{
	struct strv seen cleanup_with(strv_done) = { 0 };
	DIR *proc = opendir("/proc");
	int r = 0;

	(void)is_new_namespace("self", &seen);
	for (struct dirent *e; r == 0 && proc && (e = readdir(proc));) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' || !is_new_namespace(e->d_name, &seen))
			continue;
		r = look_in(e->d_name, s);
		if (r > 0)
			buf_printf(out, "process %s has it mounted on %s, where others do not see it: "
					"end that process",
				   e->d_name, s->where);
	}
	if (proc)
		closedir(proc);
	return r;
}

/* A device on the volume's file, whose record was lost; it may be mounted where nobody sees it. */
static int say_device(const char *name, struct buf *out)
{
	cleanup_free char *state = state_path("hostvol");
	unsigned number;

	if (!loop_find_below(state, name, &number))
		return 0;
	buf_printf(out,
		   "its file is the device /dev/loop%u: end who uses that (lsblk /dev/loop%u), and "
		   "what is left of it: losetup -d /dev/loop%u",
		   number, number, number);
	return 1;
}

/*
 * 1: somebody has. Of a whole volume it cannot be told: all that serves it has it mounted. elsewhere: a record tells of
 * a mount that is not seen here; without one, what other namespaces have is a copy that nobody asked for.
 */
static int say_shown(const json_t *pv, bool elsewhere, struct buf *out)
{
	const json_t *at = jget(pv, "spec", "csi", "volumeAttributes");
	const char *export = jstr(at, "export"), *name = jstr(at, "name");
	struct showing s = { .volume = export ? strstr(export, ":/") : NULL };
	int r;

	if (!s.volume || !name || !*name)
		return 0;
	s.root = xasprintf("/%s", name);
	r = look_in("self", &s);
	if (r > 0)
		buf_printf(out, "it is mounted on %s: umount %s", s.where, s.where);
	else if (r == 0 && elsewhere)
		r = look_elsewhere(&s, out);
	free(s.root);
	free(s.where);
	return r == 0 ? say_device(name, out) : r;
}

struct records {
	json_t *all;
	size_t unreadable;
	char *first; /* of these: which, and why */
};

static void records_done(struct records *r)
{
	json_decref(r->all);
	free(r->first);
}

static void keep_first(enum hostvol_log_level level, const char *message, void *userdata)
{
	struct records *r = userdata;

	if (level >= HOSTVOL_LOG_WARNING && !r->first)
		r->first = xstrdup(message);
}

static int read_records(struct records *ret, struct error *err)
{
	cleanup_free char *state = state_path("hostvol"), *run = run_path("hostvol");
	struct hostvol_error failed = { 0 };
	struct hostvol *h = NULL;
	int r = hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = state,
							.run_dir = run,
							.log = keep_first,
							.log_userdata = ret },
			     &h, &failed);

	if (r < 0)
		return from_hostvol(r, &failed, err);
	r = records_all(h, &ret->all, &ret->unreadable, err);
	hostvol_close(h);
	return r;
}

/* A record that was torn, or was written by a later version, may be of any volume. */
static int say_unknown(const struct records *records, struct error *err)
{
	if (!records->unreadable)
		return 0;
	return error_set(err, EBADMSG,
			 "whether it is in use here cannot be told, since %s, if nothing of the "
			 "volume that it names is mounted or staged here; one of a later version is "
			 "read by that version",
			 records->first ? records->first : "a record of hostvol cannot be read");
}

int volume_users(const json_t *pv, char **ret, struct error *err)
{
	cleanup_with(records_done) struct records records = { 0 };
	struct buf out = { 0 };
	bool known = false;
	size_t count = 0;
	int r = read_records(&records, err);

	if (r == 0)
		r = say_users(records.all, pv, &out, &count, &known, err);
	if (r == 0 && count > NAMED_MAX)
		buf_printf(&out, ", and %zu more", count - NAMED_MAX);
	if (r == 0)
		r = count ? 1 : say_shown(pv, known, &out);
	if (r == 0)
		r = say_unknown(&records, err);
	if (r > 0)
		*ret = xstrdup(out.data);
	buf_done(&out);
	return r;
}
