/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VZSTORAGE: a cluster of Virtuozzo Storage is found through the list of its servers in
 * /etc/pstorage, this host is allowed in by a password, and pstorage-mount mounts it.
 */
#include "core/journal.h"
#include "core/lock.h"
#include "core/mounts.h"
#include "core/params.h"
#include "drivers.h"
#include "share_text.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>

#define FLAGS_MAX 24
#define MOUNT_PROGRAM "pstorage-mount"
#define END_MS 5000 /* for the client to write out and end after its mount is gone */

/* Words for pstorage-mount, which must not name another cluster. */
static int check_flags(const char *value, struct error *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/=:,- ";
	size_t words = 0;

	if (value[strspn(value, allowed)])
		return error_set(err, EINVAL, "\"%c\" is not allowed",
				 value[strspn(value, allowed)]);
	for (const char *p = value + strspn(value, " "); *p; p += strspn(p, " ")) {
		size_t len = strcspn(p, " ");

		if (strncmp(p, "-c", 2) == 0 || strncmp(p, "--cluster", 9) == 0)
			return error_set(err, EINVAL, "the cluster is named in the export");
		if (++words > FLAGS_MAX)
			return error_set(err, EINVAL, "more than %d words", FLAGS_MAX);
		p += len;
	}
	return 0;
}

static const struct param params[] = {
	{ .name = "export",
	  .required = true,
	  .identity = true,
	  .check = check_vz_export,
	  .help = "The cluster, as [MDS[,MDS…]:/]CLUSTER, with the servers that know it (in place "
		  "of what /etc/pstorage says). A password behind it (CLUSTER:PASSWORD) is taken "
		  "for "
		  "the parameter.",
	  .example = "192.0.2.60,192.0.2.61:/store" },
	{ .name = "password",
	  .secret = true,
	  .help = "The cluster's password, needed once for each host; no record keeps it." },
	MOUNT_PARAM_NAME,
	{ .name = "options",
	  .aliases = (const char *const[]){ "mountOptions", NULL },
	  .check = check_flags,
	  .help = "Arguments of pstorage-mount, separated by spaces.",
	  .example = "-u storage -m 0770" },
	MOUNT_PARAM_BASE,
	{ 0 },
};

static const char *cluster_of(const struct attachment *a)
{
	const char *cluster;
	size_t servers;

	vz_split(attachment_detail(a, "source"), &servers, &cluster);
	return cluster;
}

static int vz_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	if (streq(attachment_param(a, "accessMode"), "ro"))
		return error_set(err, EOPNOTSUPP,
				 "VZSTORAGE cannot be connected for reading only (accessMode)");
	return mount_prepare(c, a, err);
}

/* ---- the list of servers -------------------------------------------------------------------- */

/*
 * The list is the host's, not this library's: what stood there is kept in STATE/vzstorage-CLUSTER
 * (its length or -1, a line break, it, what was written after it) and put back when the last volume
 * of the cluster has gone. All under the cluster's lock.
 */
struct servers_file {
	char *dir, *list, *saved;
};

static void servers_file_done(struct servers_file *f)
{
	free(f->dir);
	free(f->list);
	free(f->saved);
}

static int servers_file_name(const struct call *c, const struct attachment *a,
			     struct servers_file *f, struct error *err)
{
	const char *cluster = cluster_of(a);
	int r = text_format(&f->dir, err, "%s/etc/pstorage/clusters/%s", c->host->root, cluster);

	if (r >= 0)
		r = text_format(&f->list, err, "%s/bs_list", f->dir);
	if (r >= 0)
		r = text_format(&f->saved, err, "%s/vzstorage-%s", c->h->state_dir, cluster);
	return r;
}

/* A server a line. */
static int servers_text(const struct attachment *a, char **ret, struct error *err)
{
	const char *source = attachment_detail(a, "source"), *cluster;
	size_t len;
	int r;

	vz_split(source, &len, &cluster);
	r = text_format(ret, err, "%.*s\n", (int)len, source);
	for (char *p = r < 0 ? NULL : *ret; p && *p; p++)
		if (*p == ',')
			*p = '\n';
	return r;
}

static int read_if_there(const char *path, char **ret, struct error *err)
{
	int r = file_read(path, 65536, ret, NULL, err);

	return r == -ENOENT ? 0 : r;
}

struct saved {
	char *text; /* NULL: this library has written no list */
	const char *before; /* into text; NULL: there was no list */
	size_t before_len;
	const char *written;
};

static void saved_done(struct saved *s)
{
	free(s->text);
}

static int read_saved(const struct servers_file *f, struct saved *ret, struct error *err)
{
	char *end;
	long len;
	int r = read_if_there(f->saved, &ret->text, err);

	if (r < 0 || !ret->text)
		return r;
	len = strtol(ret->text, &end, 10);
	if (*end != '\n' || len < -1 || (len > 0 && strlen(end + 1) < (size_t)len))
		return error_set(err, EBADMSG, "%s is damaged: remove it", f->saved);
	ret->before = len < 0 ? NULL : end + 1;
	ret->before_len = len < 0 ? 0 : (size_t)len;
	ret->written = end + 1 + ret->before_len;
	return 0;
}

/* Of a list that was written before this time, what stood there first counts. */
static int save_before(const struct call *c, const struct servers_file *f, const char *now,
		       const char *wanted, struct error *err)
{
	cleanup_with(saved_done) struct saved s = { 0 };
	cleanup_free char *text = NULL;
	const char *before = now;
	size_t len = now ? strlen(now) : 0;
	int r = read_saved(f, &s, err);

	if (r < 0)
		return r;
	if (s.text) {
		before = s.before;
		len = s.before_len;
	}
	r = text_format(&text, err, "%ld\n%.*s%s", before ? (long)len : -1L, (int)len,
			before ? before : "", wanted);
	if (r < 0)
		return r;
	r = c->host->write_file(c->host, f->saved, text, strlen(text));
	return r < 0 ? error_errno(err, -r, "cannot write %s", f->saved) : 0;
}

static int write_servers(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_with(servers_file_done) struct servers_file f = { 0 };
	cleanup_lock struct lock lock = LOCK_INIT;
	cleanup_free char *wanted = NULL, *now = NULL;
	int r;

	r = servers_text(a, &wanted, err);
	if (r >= 0)
		r = servers_file_name(c, a, &f, err);
	if (r >= 0)
		r = lock_take(c, "vzstorage", cluster_of(a), &lock, err);
	if (r >= 0)
		r = read_if_there(f.list, &now, err);
	if (r < 0)
		return r;
	if (streq(wanted, "\n") || streq(wanted, now))
		return 0;
	r = save_before(c, &f, now, wanted, err);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, f.dir, 0755);
	if (r >= 0)
		r = c->host->write_file(c->host, f.list, wanted, strlen(wanted));
	return r < 0 ? error_errno(err, -r, "cannot write %s", f.list) : 0;
}

struct other_users {
	const struct attachment *a;
	int count;
};

static int count_user(struct attachment *a, void *userdata)
{
	struct other_users *u = userdata;

	u->count += a->driver == u->a->driver && !streq(a->id, u->a->id) &&
		    streq(cluster_of(a), cluster_of(u->a));
	return 0;
}

/* now: what stands there. A list that somebody else has written since stays. */
static int put_back(const struct call *c, const struct servers_file *f, const struct saved *saved,
		    const char *now, struct error *err)
{
	const char *before = saved->before;
	int r = 0;

	if (now && !streq(now, saved->written))
		return 0;
	if (before)
		r = c->host->write_file(c->host, f->list, before, saved->before_len);
	else if (now)
		r = c->host->remove_file(c->host, f->list);
	if (r >= 0 && !before)
		r = c->host->remove_dir(c->host, f->dir);
	if (r == -ENOENT || r == -ENOTEMPTY || r == -EEXIST) /* others' files may be in it */
		return 0;
	return r < 0 ? error_errno(err, -r, "cannot put back %s as it was", f->list) : 0;
}

static int restore_servers(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_with(servers_file_done) struct servers_file f = { 0 };
	cleanup_lock struct lock lock = LOCK_INIT;
	cleanup_with(saved_done) struct saved saved = { 0 };
	cleanup_free char *now = NULL;
	struct other_users users = { .a = a };
	int r;

	r = servers_file_name(c, a, &f, err);
	if (r >= 0)
		r = lock_take(c, "vzstorage", cluster_of(a), &lock, err);
	if (r >= 0)
		r = journal_each(c, count_user, &users, err);
	/* one that cannot be read may be a user too */
	if (r < 0 || r > 0 || users.count)
		return r < 0 ? r : 0;
	r = read_saved(&f, &saved, err);
	if (r < 0 || !saved.text)
		return r;
	r = read_if_there(f.list, &now, err);
	if (r >= 0)
		r = put_back(c, &f, &saved, now, err);
	if (r < 0)
		return r;
	r = c->host->remove_file(c->host, f.saved);
	return r < 0 && r != -ENOENT ? error_errno(err, -r, "cannot remove %s", f.saved) : 0;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int authenticate(const struct call *c, struct attachment *a, const char *password,
			struct error *err)
{
	int r = mount_run_helper(
		c, a, "Virtuozzo Storage's client",
		&(struct host_command){ .argv = (const char *const[]){ "pstorage", "-c",
								       cluster_of(a), "auth-node",
								       "-P", NULL },
					.input = password,
					.input_len = strlen(password) },
		err);

	return r < 0 ? error_prefix(err, "the password is not taken") : 0;
}

static int vz_mount(const struct call *c, struct attachment *a, struct error *err)
{
	const char *password = attachment_param(a, "password");
	const char *argv[FLAGS_MAX + 8] = { MOUNT_PROGRAM, "-c", cluster_of(a) };
	cleanup_free char *flags = strdup(attachment_detail(a, "options"));
	size_t n = 3;
	int r;

	if (!flags)
		return no_memory(err);
	r = write_servers(c, a, err);
	if (r >= 0 && password)
		r = authenticate(c, a, password, err);
	if (r < 0)
		return r;
	for (char *p = flags, *save, *word; (word = strtok_r(p, " ", &save)) && n < FLAGS_MAX + 3;
	     p = NULL)
		argv[n++] = word;
	argv[n] = attachment_detail(a, "mountPoint");
	return mount_run_helper(c, a, "Virtuozzo Storage's client",
				&(struct host_command){ .argv = argv }, err);
}

/* The program that mounts stays to serve the mount, and writes out before it ends. */
static void vz_end_helper(const struct call *c, struct attachment *a, bool kill)
{
	const char *point = attachment_detail(a, "mountPoint");

	if (c->host->await_end(c->host, MOUNT_PROGRAM, point, kill, END_MS) < 0)
		call_log(c, HOSTVOL_LOG_WARNING, "the client that served %s has not ended yet",
			 point);
}

static int vz_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	int r = mount_disconnect(c, a, force, err);

	return r < 0 || a->others ? r : restore_servers(c, a, err);
}

/* "pstorage://CLUSTER" */
static bool vz_is_source(const struct attachment *a, const char *source)
{
	const char *name = strstr(source, "://");

	return streq(name ? name + 3 : source, cluster_of(a));
}

static const struct mount_type mount_type = {
	.fs_types = (const char *const[]){ "fuse.pstorage", "fuse.vstorage", NULL },
	.mount = vz_mount,
	.end_helper = vz_end_helper,
	.is_source = vz_is_source,
	.client = MOUNT_PROGRAM,
};

const struct driver driver_vzstorage = {
	.name = "VZSTORAGE",
	.title = "Virtuozzo Storage",
	.help = "A directory or file of a Virtuozzo Storage cluster. One mount serves all volumes "
		"with "
		"the same export and options; the last one that is disconnected unmounts it. "
		"Needs the programs pstorage and pstorage-mount on this host.",
	.params = params,
	.mount = &mount_type,
	.prepare = vz_prepare,
	.connect = mount_connect,
	.disconnect = vz_disconnect,
	.verify = mount_verify,
	.tidy = vz_tidy,
};
