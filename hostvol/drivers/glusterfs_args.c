/* SPDX-License-Identifier: Apache-2.0 */
#include "glusterfs_args.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/handle.h"
#include "core/mounts.h"

#include <errno.h>
#include <stdio.h>

enum option_kind {
	OPTION_FLAG, /* given on as --argument */
	OPTION_VALUE, /* as --argument=value */
	OPTION_MAYBE, /* as either, as it was given */
	OPTION_SERVERS, /* more servers, separated by colons */
	OPTION_KERNEL, /* for the kernel */
	OPTION_NOTHING, /* for others: fstab, systemd */
};

static const struct option {
	const char *name;
	enum option_kind kind;
	const char *argument; /* NULL: as the option */
} table[] = {
	{ "acl", OPTION_FLAG, NULL },
	{ "attr-times-granularity", OPTION_VALUE, NULL },
	{ "attribute-timeout", OPTION_VALUE, NULL },
	{ "auto", OPTION_NOTHING, NULL },
	{ "auto-invalidation", OPTION_VALUE, NULL },
	{ "aux-gfid-mount", OPTION_FLAG, NULL },
	{ "background-qlen", OPTION_VALUE, NULL },
	{ "backup-volfile-servers", OPTION_SERVERS, NULL },
	{ "backupvolfile-server", OPTION_SERVERS, NULL },
	{ "congestion-threshold", OPTION_VALUE, NULL },
	{ "defaults", OPTION_NOTHING, NULL },
	{ "direct-io-mode", OPTION_VALUE, NULL },
	{ "enable-ino32", OPTION_FLAG, NULL },
	{ "entry-timeout", OPTION_VALUE, NULL },
	{ "event-history", OPTION_VALUE, NULL },
	{ "fopen-keep-cache", OPTION_MAYBE, NULL },
	{ "gid-timeout", OPTION_VALUE, NULL },
	{ "global-threading", OPTION_FLAG, NULL },
	{ "invalidate-limit", OPTION_VALUE, NULL },
	{ "io-engine", OPTION_VALUE, NULL },
	{ "kernel-writeback-cache", OPTION_VALUE, NULL },
	{ "localtime-logging", OPTION_FLAG, NULL },
	{ "log-level", OPTION_VALUE, NULL },
	{ "lru-limit", OPTION_VALUE, NULL },
	{ "negative-timeout", OPTION_VALUE, NULL },
	{ "no-root-squash", OPTION_FLAG, NULL },
	{ "noatime", OPTION_KERNEL, NULL },
	{ "noauto", OPTION_NOTHING, NULL },
	{ "nodev", OPTION_KERNEL, NULL },
	{ "nodiratime", OPTION_KERNEL, NULL },
	{ "noexec", OPTION_KERNEL, NULL },
	{ "nofail", OPTION_NOTHING, NULL },
	{ "nosuid", OPTION_KERNEL, NULL },
	{ "oom-score-adj", OPTION_VALUE, NULL },
	{ "reader-thread-count", OPTION_VALUE, NULL },
	{ "relatime", OPTION_KERNEL, NULL },
	{ "resolve-gids", OPTION_FLAG, NULL },
	{ "ro", OPTION_FLAG, "read-only" },
	{ "rw", OPTION_NOTHING, NULL },
	{ "selinux", OPTION_FLAG, NULL },
	{ "server-port", OPTION_VALUE, "volfile-server-port" },
	{ "thin-client", OPTION_FLAG, NULL },
	{ "transport", OPTION_VALUE, "volfile-server-transport" },
	{ "use-readdirp", OPTION_VALUE, NULL },
	{ "volfile-server-port", OPTION_VALUE, NULL },
	{ "worm", OPTION_FLAG, NULL },
	{ "xlator-option", OPTION_VALUE, NULL },
	{ "_netdev", OPTION_NOTHING, NULL },
};

static int unknown_option(const char *option, int len, struct error *err)
{
	const char *names[ARRAY_SIZE(table) + 1] = { 0 }, *near;
	char word[64];

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		names[i] = table[i].name;
	snprintf(word, sizeof(word), "%.*s", len, option);
	near = str_suggest(word, names);
	return error_set(err, EINVAL, "GlusterFS has no mount option \"%s\"%s%s%s", word,
			 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* fn for every option of the list, checked against the table; value is NULL for a bare word. */
static int each_option(const char *options,
		       int (*fn)(const struct option *o, const char *value, int len, void *userdata,
				 struct error *err),
		       void *userdata, struct error *err)
{
	for (const char *p = options; *p;) {
		int len = (int)strcspn(p, ","), name_len = (int)strcspn(p, ",="), r;
		const struct option *o = NULL;
		bool has_value = name_len < len;

		for (size_t i = 0; i < ARRAY_SIZE(table) && !o; i++)
			if (strlen(table[i].name) == (size_t)name_len &&
			    strncmp(table[i].name, p, (size_t)name_len) == 0)
				o = &table[i];
		if (!o && len > 0 && strncmp(p, "x-", 2) != 0)
			return unknown_option(p, name_len, err);
		if (o && o->kind != OPTION_MAYBE &&
		    has_value != (o->kind == OPTION_VALUE || o->kind == OPTION_SERVERS))
			return error_set(err, EINVAL, "the mount option \"%s\" %s", o->name,
					 has_value ? "takes no value" : "needs a value");
		if (o && fn) {
			r = fn(o, has_value ? p + name_len + 1 : NULL, len - name_len - 1, userdata,
			       err);
			if (r < 0)
				return r;
		}
		p += len;
		p += *p == ',';
	}
	return 0;
}

int gluster_check_options(const char *options, struct error *err)
{
	return each_option(options, NULL, NULL, err);
}

/* Takes the text. */
static int add(struct gluster_args *args, char *text, struct error *err)
{
	if (args->count >= ARRAY_SIZE(args->items) - 1) {
		free(text);
		return error_set(err, E2BIG, "too many mount options");
	}
	args->items[args->count++] = text;
	return 0;
}

static int add_format(struct gluster_args *args, struct error *err, const char *prefix,
		      const char *value, int len)
{
	char *text;
	int r = text_format(&text, err, "%s%.*s", prefix, len, value);

	return r < 0 ? r : add(args, text, err);
}

#define SERVER_WORD "--volfile-server="

const char *gluster_server(const char *word)
{
	size_t len = strlen(SERVER_WORD);

	return strncmp(word, SERVER_WORD, len) == 0 ? word + len : NULL;
}

/* Servers separated by one of separators; an IPv6 address stands in brackets. */
static int add_servers(struct gluster_args *args, const char *list, int len, char separator,
		       struct error *err)
{
	const char *end = list + len;

	for (const char *p = list; p < end;) {
		bool bracket = *p == '[';
		const char *stop = memchr(p, bracket ? ']' : separator, (size_t)(end - p));
		int r;

		if (!stop)
			stop = end;
		p += bracket;
		if (stop > p) {
			r = add_format(args, err, SERVER_WORD, p, (int)(stop - p));
			if (r < 0)
				return r;
		}
		p = stop < end ? stop + 1 : end;
	}
	return 0;
}

struct build {
	struct gluster_args *args;
	char kernel[256];
};

static int add_option(const struct option *o, const char *value, int len, void *userdata,
		      struct error *err)
{
	struct build *b = userdata;
	char prefix[64];
	size_t have;

	switch (o->kind) {
	case OPTION_FLAG:
	case OPTION_VALUE:
	case OPTION_MAYBE:
		snprintf(prefix, sizeof(prefix), "--%s%s", o->argument ? o->argument : o->name,
			 value ? "=" : "");
		return add_format(b->args, err, prefix, value ? value : "", value ? len : 0);
	case OPTION_SERVERS:
		return add_servers(b->args, value, len, ':', err);
	case OPTION_KERNEL:
		have = strlen(b->kernel);
		snprintf(b->kernel + have, sizeof(b->kernel) - have, "%s%s", have ? "," : "",
			 o->name);
		return 0;
	case OPTION_NOTHING:
		return 0;
	}
	return 0;
}

/*
 * What one host wrote and closed, every other one that opens it then must read. GlusterFS's own caches
 * are the volume's to turn off; these are the kernel's, on this side. By itself the client lets it
 * keep the pages of a file over an open, since the kernel drops them when it sees another time or size;
 * but it believes times and sizes for a second, and a writer whose clock is behind, or who sets the time
 * (tar, rsync), changes neither. Names it believes for a second as well; of one that is missing it is
 * told nothing (negative-timeout is 0).
 */
static const struct {
	const char *name, *argument;
} fresh[] = {
	{ "attribute-timeout", "--attribute-timeout=0" },
	{ "entry-timeout", "--entry-timeout=0" },
	{ "fopen-keep-cache", "--fopen-keep-cache=no" },
};

/* Unless the options say otherwise: a person's word wins. */
static int add_fresh(struct gluster_args *args, const char *options, struct error *err)
{
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(fresh) && r >= 0; i++)
		if (!option_is_set(options, fresh[i].name))
			r = add_format(args, err, fresh[i].argument, "", 0);
	return r;
}

int gluster_args_build(struct gluster_args *args, const char *source, const char *options,
		       const char *log, const char *mount_point, struct error *err)
{
	const char *volume = strstr(source, ":/");
	struct build b = { .args = args };
	int r;

	r = add_format(args, err, GLUSTER_PROGRAM, "", 0);
	if (r >= 0)
		r = add_format(args, err, "--process-name=fuse", "", 0);
	if (r >= 0)
		r = add_format(args, err, "--log-file=", log, (int)strlen(log));
	/* the export's own servers are asked first */
	if (r >= 0)
		r = add_servers(args, source, (int)(volume - source), ',', err);
	if (r >= 0)
		r = add_fresh(args, options, err);
	if (r >= 0)
		r = each_option(options, add_option, &b, err);
	if (r >= 0 && b.kernel[0])
		r = add_format(args, err, "--fuse-mountopts=", b.kernel, (int)strlen(b.kernel));
	if (r >= 0)
		r = add_format(args, err, "--volfile-id=", volume + 1, (int)strlen(volume + 1));
	if (r >= 0)
		r = add_format(args, err, "", mount_point, (int)strlen(mount_point));
	return r;
}

void gluster_args_done(struct gluster_args *args)
{
	for (size_t i = 0; i < args->count; i++)
		free(args->items[i]);
	*args = (struct gluster_args){ 0 };
}
