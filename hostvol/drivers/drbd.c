/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DRBD: a resource of this host, brought up from a configuration that the caller has, and made
 * primary. The configuration may hold secrets, so it is in no record: once the resource is up, the
 * kernel is asked by the resource's name.
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "block/disk_volume.h"
#include "block/events.h"
#include "block/mark.h"
#include "core/params.h"
#include "drivers.h"

#include <errno.h>
#include <stdio.h>

#define STEP_MS 60000
#define READY_MS 15000
#define GROWN_MS 5000 /* the ends agree at once; nothing tells that the size is as before */
#define PEER_SECONDS "20" /* an end tries again every ten */
#define MARKS "drbd"
/* what no program on the way can take for anything but a word */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static int check_name(const char *value, struct error *err)
{
	if (strlen(value) > 127 || value[0] == '-' || strspn(value, NAME_CHARS) != strlen(value))
		return error_set(err, EINVAL, "\"%.60s\" is no name of a resource", value);
	return 0;
}

static int check_device(const char *value, struct error *err)
{
	if (!str_has_prefix(value, "/dev/drbd"))
		return error_set(err, EINVAL, "\"%.60s\" is no DRBD device", value);
	return check_clean_path(value, err);
}

static int check_secret(const char *value, struct error *err)
{
	if (strlen(value) > 63 || strpbrk(value, "\"\\"))
		return error_set(err, EINVAL, "longer than 63 bytes, or with a quote");
	return 0;
}

static const struct param params[] = {
	{ .name = "name",
	  .aliases = (const char *const[]){ "resource", NULL },
	  .required = true,
	  .identity = true,
	  .check = check_name,
	  .help = "The resource.",
	  .example = "r0" },
	{ .name = "device",
	  .aliases = (const char *const[]){ "devicePath", NULL },
	  .required = true,
	  .identity = true,
	  .check = check_device,
	  .help = "The device that the configuration gives it on this host.",
	  .example = "/dev/drbd1" },
	{ .name = "config",
	  .type = PARAM_TEXT,
	  .secret = true,
	  .help = "The text of a configuration file of DRBD with the resource. Without it the one "
		  "of this host, /etc/drbd.conf, is used.",
	  .example = "resource r0 { … }" },
	{ .name = "providerAuth",
	  .aliases = (const char *const[]){ "sharedSecret", NULL },
	  .secret = true,
	  .check = check_secret,
	  .help = "The secret by which both ends know each other, where config leaves it out. "
		  "drbd-utils hands it to the kernel by a command's arguments, for a moment." },
	{ 0 },
};

static int drbd_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	int r = text_format(&target, err, "DRBD %s", attachment_param(a, "name"));

	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

/* ---- programs ------------------------------------------------------------------------------- */

/* What a program said last, without a secret that it may have repeated. */
static void last_words(const struct host_result *result, const char *secret, char *buf, size_t size)
{
	char text[sizeof(result->err)], *line;

	snprintf(text, sizeof(text), "%s", result->err[0] ? result->err : result->out);
	for (size_t len = strlen(text); len && text[len - 1] == '\n';)
		text[--len] = '\0';
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (secret && strstr(line, secret))
		line = (char *)"it named the secret";
	snprintf(buf, size, "%.200s", line[0] ? line : "it said nothing");
}

/* To the program's end, whatever its status. */
static int call_program(const struct call *c, const char *const *argv, struct host_result *result,
			struct error *err)
{
	struct host_command command = { .argv = argv };
	int r = call_left(c, STEP_MS, err);

	if (r < 0)
		return r;
	command.timeout_ms = r;
	r = c->host->run(c->host, &command, result);
	if (r == -ENOENT)
		return error_set(err, ENOENT, "%s is not installed (drbd-utils)", argv[0]);
	return r < 0 ? error_errno(err, -r, "%s could not be run", argv[0]) : 0;
}

static int run(const struct call *c, const char *const *argv, const char *secret, struct error *err)
{
	struct host_result result;
	char said[256];
	int r = call_program(c, argv, &result, err);

	if (r < 0 || result.status == 0)
		return r;
	last_words(&result, secret, said, sizeof(said));
	explicit_bzero(&result, sizeof(result));
	return error_set(err, EIO, "%s %s: %s", argv[0], argv[1], said);
}

/* 1: the kernel has the resource, with its minor; 0: it has not. */
static int find(const struct call *c, const char *name, unsigned *ret_minor, struct error *err)
{
	const char *const argv[] = { "drbdsetup", "show", name, NULL };
	struct host_result result;
	const char *at;
	int r = call_program(c, argv, &result, err);

	if (r < 0)
		return r;
	/* the status of no such resource is that of no module, too */
	at = result.status == 0 ? strstr(result.out, "minor ") : NULL;
	r = at && sscanf(at, "minor %u", ret_minor) == 1;
	/* it shows the secret too */
	explicit_bzero(&result, sizeof(result));
	return r;
}

/* ---- the configuration ---------------------------------------------------------------------- */

static int config_path(const struct call *c, const struct attachment *a, char **ret,
		       struct error *err)
{
	return text_format(ret, err, "%s/drbd/%s.res", c->h->run_dir, a->target_id);
}

static void config_remove(const struct call *c, const struct attachment *a)
{
	cleanup_free char *path = NULL;

	if (config_path(c, a, &path, NULL) >= 0)
		c->host->remove_file(c->host, path);
}

/* A file for this user alone, for as long as drbdadm reads it. */
static int config_write(const struct call *c, const struct attachment *a, char **ret,
			struct error *err)
{
	const char *config = attachment_param(a, "config"),
		   *secret = attachment_param(a, "providerAuth");
	cleanup_free char *path = NULL, *dir = NULL, *text = NULL;
	int r = config_path(c, a, &path, err);

	if (r >= 0)
		r = text_format(&dir, err, "%s/drbd", c->h->run_dir);
	if (r >= 0 && secret)
		r = text_format(&text, err, "common { net { %s shared-secret \"%s\"; } }\n%s\n",
				strstr(config, "cram-hmac-alg") ? "" : "cram-hmac-alg \"sha1\";",
				secret, config);
	else if (r >= 0)
		r = text_format(&text, err, "%s\n", config);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r >= 0)
		r = c->host->write_file(c->host, path, text, strlen(text));
	explicit_bzero(text, strlen(text));
	if (r < 0)
		return error_errno(err, -r, "cannot write %s", path);
	*ret = TAKE_PTR(path);
	return 0;
}

static int drbdadm(const struct call *c, const struct attachment *a, const char *what,
		   const char *file, struct error *err)
{
	const char *name = attachment_param(a, "name");
	const char *const given[] = { "drbdadm", what, "-c", file, name, NULL };
	const char *const own[] = { "drbdadm", what, name, NULL };

	return run(c, file ? given : own, attachment_param(a, "providerAuth"), err);
}

/* ---- the disk ------------------------------------------------------------------------------- */

static int read_disk(const struct call *c, unsigned minor, struct disk *ret)
{
	char name[DISK_NAME_MAX];

	snprintf(name, sizeof(name), "drbd%u", minor);
	return disk_read(c, name, ret);
}

/* Whether the device that was asked for is the resource's. */
static int check_device_is(const struct call *c, struct attachment *a, const struct disk *d,
			   struct error *err)
{
	const char *wanted = attachment_param(a, "device");
	char real[300];

	if (!streq(wanted, d->path) &&
	    (sys_resolve(c, real, sizeof(real), "%s", wanted) < 0 || !streq(real, d->path)))
		return error_set(err, ESTALE, "the device of resource %.100s is %s, not %.100s",
				 attachment_param(a, "name"), d->path, wanted);
	return 0;
}

struct awaited {
	const struct call *c;
	const struct disk *disk;
};

static int has_grown(void *arg)
{
	struct awaited *w = arg;
	struct disk now;

	return disk_read(w->c, w->disk->name, &now) < 0 ? -ENODEV : now.size != w->disk->size;
}

/* A secondary cannot be opened. */
static int is_ready(void *arg)
{
	struct awaited *w = arg;

	return disk_is_ready(w->c, w->disk->name);
}

/* ---- operations ----------------------------------------------------------------------------- */

/*
 * An end that becomes primary before it has heard of the other may become the second one, and what
 * is written to both cannot be brought together again. An end whose peer is down goes on alone.
 */
static int await_peer(const struct call *c, const struct attachment *a, struct error *err)
{
	const char *name = attachment_param(a, "name");
	const char *argv[] = { "drbdsetup",
			       "wait-connect-resource",
			       name,
			       "--wfc-timeout=" PEER_SECONDS,
			       "--degr-wfc-timeout=" PEER_SECONDS,
			       "--outdated-wfc-timeout=" PEER_SECONDS,
			       NULL };
	struct error problem = ERROR_INIT;
	struct host_result result;
	char version[32], number[16];
	unsigned minor;
	bool met;
	int r;

	sys_line(c, version, sizeof(version), "/sys/module/drbd/version");
	if (str_has_prefix(version, "8.")) { /* the kernel's own, which asks by minor */
		r = find(c, name, &minor, err);
		if (r < 0)
			return r;
		snprintf(number, sizeof(number), "%u", r ? minor : 0);
		argv[1] = "wait-connect";
		argv[2] = number;
	}
	met = run(c, argv, NULL, &problem) >= 0;
	argv[1] = "cstate";
	argv[3] = NULL;
	r = call_program(c, argv, &result, err);
	if (r < 0)
		return r;
	if (strstr(result.out, "StandAlone"))
		return error_set(
			err, EIO,
			"the ends of resource %.100s have met, and do not agree (both were "
			"written to, or the secret is another): that has to be settled first",
			name);
	if (!met)
		call_log(c, HOSTVOL_LOG_WARNING,
			 "resource %s: the other end does not answer, this one goes on alone (%s)",
			 name, problem.message);
	return call_left(c, 0, err);
}

static int bring_up(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *file = NULL;
	unsigned minor;
	int r = find(c, attachment_param(a, "name"), &minor, err);

	/* of one that is there already, and not marked, somebody else takes care */
	if (r == 0)
		r = mark_set(c, MARKS, a->target, err);
	if (r >= 0 && attachment_param(a, "config"))
		r = config_write(c, a, &file, err);
	if (r >= 0)
		r = drbdadm(c, a, "adjust", file, err);
	if (r >= 0)
		r = await_peer(c, a, err);
	if (r >= 0)
		r = drbdadm(c, a, "primary", file, err);
	config_remove(c, a);
	return r;
}

static int drbd_connect(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct awaited awaited = { .c = c };
	struct disk d;
	unsigned minor;
	int r;

	if (!attachment_param(a, "config") && attachment_param(a, "providerAuth"))
		return error_set(err, EINVAL, "providerAuth is given without config");
	r = watch_open(c, &w, err);
	if (r >= 0)
		r = bring_up(c, a, err);
	if (r >= 0)
		r = find(c, attachment_param(a, "name"), &minor, err);
	if (r < 0)
		return r;
	if (r == 0 || read_disk(c, minor, &d) < 0)
		return error_set(err, ENODEV, "resource %.100s did not come up",
				 attachment_param(a, "name"));
	r = check_device_is(c, a, &d, err);
	if (r < 0)
		return r;
	awaited.disk = &d;
	r = watch_until(c, &w, READY_MS, is_ready, &awaited, err);
	if (r == -ETIMEDOUT)
		return error_set(err, EIO, "%s was made primary, and cannot be opened", d.path);
	return r < 0 ? r : disk_volume_set_path(a, &d, NULL, err);
}

static int drbd_verify(const struct call *c, struct attachment *a, struct error *err)
{
	struct disk d;
	unsigned minor;
	int r = find(c, attachment_param(a, "name"), &minor, err);

	if (r < 0)
		return r;
	if (r == 0 || read_disk(c, minor, &d) < 0)
		return error_set(err, ENOENT,
				 "resource %.100s is not up on this host: connect it again",
				 attachment_param(a, "name"));
	r = check_device_is(c, a, &d, err);
	if (r < 0)
		return r;
	if (!disk_is_ready(c, d.name))
		return error_set(err, ENOTCONN,
				 "%s is not primary, or has no data that can be used", d.path);
	return disk_volume_set_path(a, &d, NULL, err);
}

static int drbd_disconnect(const struct call *c, struct attachment *a, bool force,
			   struct error *err)
{
	const char *name = attachment_param(a, "name");
	const char *const down[] = { "drbdsetup", "down", name, NULL };
	const char *secondary[] = { "drbdsetup", "secondary", NULL, NULL };
	char number[16];
	struct disk d;
	unsigned minor;
	int r;

	config_remove(c, a); /* of a connect that died */
	if (a->others)
		return 0;
	r = find(c, name, &minor, err);
	if (r <= 0) {
		if (r == 0)
			mark_clear(c, MARKS, a->target);
		return r;
	}
	if (!force && read_disk(c, minor, &d) >= 0)
		r = disk_volume_release(c, a, &d, err);
	if (r < 0)
		return r;
	snprintf(number, sizeof(number), "%u", minor);
	secondary[2] = number;
	if (!mark_is_set(c, MARKS, a->target))
		return run(c, secondary, NULL, err);
	r = run(c, down, NULL, err);
	if (r >= 0)
		mark_clear(c, MARKS, a->target);
	return r;
}

static int drbd_extend(const struct call *c, struct attachment *a, json_t *result,
		       struct error *err)
{
	const char *argv[] = { "drbdsetup", "resize", NULL, NULL };
	cleanup_watch struct watch w = WATCH_INIT;
	struct disk before, after;
	struct awaited awaited = { .c = c, .disk = &before };
	char number[16];
	unsigned minor;
	int r = drbd_verify(c, a, err);

	if (r >= 0)
		r = watch_open(c, &w, err);
	if (r >= 0)
		r = find(c, attachment_param(a, "name"), &minor, err);
	if (r < 0)
		return r;
	if (r == 0 || read_disk(c, minor, &before) < 0)
		return error_set(err, ENODEV, "%s went away", a->path);
	snprintf(number, sizeof(number), "%u", minor);
	argv[2] = number;
	r = run(c, argv, NULL, err);
	if (r >= 0)
		r = watch_until(c, &w, GROWN_MS, has_grown, &awaited, err);
	if (r == -ETIMEDOUT)
		r = call_left(c, 0, err);
	if (r < 0)
		return r;
	if (read_disk(c, minor, &after) < 0)
		return error_set(err, ENODEV, "%s went away", a->path);
	return disk_volume_report(result, &before, &after, err);
}

static int drbd_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	char step[200];
	struct disk d;
	unsigned minor = 0;
	int r = find(c, attachment_param(a, "name"), &minor, err);

	if (r < 0)
		return r;
	snprintf(step, sizeof(step), "%s DRBD resource %.127s",
		 mark_is_set(c, MARKS, a->target) ? "take down" : "make secondary",
		 attachment_param(a, "name"));
	return disk_volume_plan(c, a, r == 0 || read_disk(c, minor, &d) < 0 ? NULL : &d, step,
				result, err);
}

/* ---- audit ---------------------------------------------------------------------------------- */

static int remove_marked(const struct call *c, const char *target, bool repair, struct error *err)
{
	const char *name = target + strlen("DRBD ");
	const char *const down[] = { "drbdsetup", "down", name, NULL };
	unsigned minor;
	int r;

	if (!str_has_prefix(target, "DRBD "))
		return 0;
	r = find(c, name, &minor, err);
	if (r <= 0 || !repair)
		return r;
	/* the kernel refuses while it is open */
	r = run(c, down, NULL, err);
	if (r >= 0)
		mark_clear(c, MARKS, target);
	return r < 0 ? r : 1;
}

static int drbd_audit(const struct call *c, bool repair, json_t *findings, struct error *err)
{
	const struct mark_audit audit = { .kind = MARKS,
					  .what = "resource",
					  .driver = "DRBD",
					  .repair = repair,
					  .remove = remove_marked };

	return mark_audit(c, &audit, findings, err);
}

const struct driver driver_drbd = {
	.name = "DRBD",
	.title = "DRBD",
	.help = "A replicated device of which this host is an end: its resource is brought up and "
		"made primary, and taken down again; one that was up before is only made "
		"secondary. Needs drbd-utils, and the resource's metadata on its disk.",
	.params = params,
	.prepare = drbd_prepare,
	.connect = drbd_connect,
	.disconnect = drbd_disconnect,
	.verify = drbd_verify,
	.extend = drbd_extend,
	.plan = drbd_plan,
	.audit = drbd_audit,
};
