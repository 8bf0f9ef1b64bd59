/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GLUSTERFS: the client program is started itself, not through mount.glusterfs, which is a shell
 * script that splits its options into words again. It puts itself into the background once the
 * volume is mounted, in a session of its own, and so outlives its caller.
 */
#include "drivers.h"
#include "glusterfs_args.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/mounts.h"
#include "core/params.h"

#include <errno.h>

#define END_MS 5000 /* for a client to write out and end after its mount is gone */
#define ANSWER_MS 2000 /* for a server to accept a connection */
#define SERVER_PORT 24007

static int check_gluster_export(const char *value, struct error *err)
{
	int r = check_export(value, err);

	if (r < 0)
		return r;
	value = strstr(value, ":/") + 2;
	if (!*value || strchr(value, '/'))
		return error_set(err, EINVAL,
				 "not HOST:/VOLUME (a directory of the volume goes into "
				 "\"name\")");
	return 0;
}

static int check_gluster_options(const char *value, struct error *err)
{
	int r = check_mount_options(value, err);

	return r < 0 ? r : gluster_check_options(options_text(value), err);
}

/* It names a directory. */
static int check_client_id(const char *value, struct error *err)
{
	if (!name_is_label(value) || strlen(value) >= CLIENT_ID_MAX)
		return error_set(err, EINVAL, "\"%.100s\" is not the id of a client", value);
	return 0;
}

static const struct param params[] = {
	{ .name = "export",
	  .required = true,
	  .identity = true,
	  .check = check_gluster_export,
	  .help = "HOST:/VOLUME, or HOST,HOST:/VOLUME; any server of the volume will do.",
	  .example = "192.0.2.11:/store-1" },
	MOUNT_PARAM_NAME,
	{ .name = "options",
	  .aliases = (const char *const[]){ "mountOptions", NULL },
	  .check = check_gluster_options,
	  .help = "Mount options, separated by commas, as for mount.glusterfs. "
		  "backup-volfile-servers "
		  "names more servers to ask for the volume, separated by colons. "
		  "Without attribute-timeout, entry-timeout and fopen-keep-cache these are 0, 0 "
		  "and no: what another host wrote and closed is read by who opens it then.",
	  .example = "backup-volfile-servers=192.0.2.12:192.0.2.13" },
	MOUNT_PARAM_BASE,
	{ .name = "client",
	  .check = check_client_id,
	  .help = "Which of several client containers of this machine mounts it, by its id; "
		  "without it the one that is meant for all. It means nothing where the client is "
		  "the host's.",
	  .example = "a556c02e" },
	{ 0 },
};

/* STATE/log/glusterfs-<hash>.log: kept while mounted, and after a failure. */
static int log_path(const struct call *c, const struct attachment *a, char **ret, struct error *err)
{
	return text_format(ret, err, "%s/log/glusterfs-%s.log", c->h->state_dir, a->target_id);
}

/* The last error in the client's log ("[time] E [MSGID…] [place] 0-part: words"), or NULL. */
static char *last_complaint(const char *log)
{
	cleanup_free char *text = NULL;
	char *found = NULL;

	if (file_read(log, 4 << 20, &text, NULL, NULL) < 0)
		return NULL;
	for (char *line = text, *save; (line = strtok_r(line, "\n", &save)); line = NULL) {
		char *level = strstr(line, "] E ["), *words;

		if (!level)
			continue;
		words = strstr(level, "] 0-");
		found = words ? words + 4 : level + 4;
	}
	return found ? strdup(found) : NULL;
}

static int mount_failed(struct attachment *a, const struct host_result *result, const char *log,
			struct error *err)
{
	cleanup_free char *why = last_complaint(log);

	return error_set(err, EIO, "cannot mount %s: %.250s (status %d, more in %.150s)",
			 attachment_detail(a, "source"), why ? why : "glusterfs failed",
			 result->status, log);
}

/*
 * Of a machine that lost its power the client waits most of a minute for an answer, so one that
 * answers is asked first. A name is asked for by the client only.
 */
static void answering_first(const struct call *c, struct gluster_args *args)
{
	char **first = NULL;
	size_t servers = 0;

	for (size_t i = 0; i < args->count; i++)
		servers += gluster_server(args->items[i]) != NULL;
	for (size_t i = 0; i < args->count && servers > 1; i++) {
		const char *server = gluster_server(args->items[i]);
		int r;

		if (!server)
			continue;
		if (!first)
			first = &args->items[i];
		r = c->host->exchange(c->host, server, SERVER_PORT, "", 0, NULL, 0, ANSWER_MS);
		if (r == 0) {
			char *other = *first;

			*first = args->items[i];
			args->items[i] = other;
		}
		if (r == 0 || r == -EADDRNOTAVAIL)
			return;
	}
}

/* The mount table names the server that was asked first. */
static bool gluster_is_source(const struct attachment *a, const char *source)
{
	cleanup_with(gluster_args_done) struct gluster_args args = { 0 };
	const char *ours = attachment_detail(a, "source"), *volume = strstr(ours, ":/"),
		   *theirs = strstr(source, ":/");
	size_t len = theirs ? (size_t)(theirs - source) : 0;

	if (mount_same_source(source, ours))
		return true;
	if (!theirs || !volume || !mount_same_source(theirs, volume) ||
	    gluster_args_build(&args, ours, attachment_detail(a, "options"), "", "", NULL) < 0)
		return false;
	for (size_t i = 0; i < args.count; i++) {
		const char *server = gluster_server(args.items[i]);

		if (server && strlen(server) == len && strncmp(server, source, len) == 0)
			return true;
	}
	return false;
}

static int gluster_mount(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_with(gluster_args_done) struct gluster_args args = { 0 };
	const char *source = attachment_detail(a, "source");
	cleanup_free char *log = NULL, *dir = NULL;
	struct host_result result = { 0 };
	int r;

	r = log_path(c, a, &log, err);
	if (r >= 0)
		r = text_format(&dir, err, "%s/log", c->h->state_dir);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r < 0)
		return error_errno(err, -r, "cannot make %s", dir);
	r = gluster_args_build(&args, source, attachment_detail(a, "options"), log,
			       attachment_detail(a, "mountPoint"), err);
	if (r < 0)
		return r;
	if (!option_is_set(attachment_detail(a, "options"), "server-port") &&
	    !option_is_set(attachment_detail(a, "options"), "volfile-server-port"))
		answering_first(c, &args);
	r = call_left(c, 0, err);
	if (r < 0)
		return r;
	r = c->host->run(c->host,
			 &(struct host_command){ .argv = (const char *const *)args.items,
						 .timeout_ms = r,
						 .client = mount_client(a) },
			 &result);
	if (r == -ENOENT && !result.err[0])
		return error_set(err, ENOENT,
				 "cannot mount %s: the program glusterfs is not installed "
				 "(package glusterfs-client)",
				 source);
	if (r < 0)
		return host_cannot_mount(source, r, &result, err);
	return result.status ? mount_failed(a, &result, log, err) : 0;
}

/*
 * After an unmount the client ends by itself. After a connect that failed it may still be at work,
 * and would mount later.
 */
static void gluster_end_helper(const struct call *c, struct attachment *a, bool kill)
{
	const char *point = attachment_detail(a, "mountPoint");
	cleanup_free char *log = NULL;

	if (c->host->await_end(c->host, GLUSTER_PROGRAM, point, kill, END_MS) < 0)
		call_log(c, HOSTVOL_LOG_WARNING, "the client that served %s has not ended yet",
			 point);
	/* one that failed is explained there */
	if (!kill && log_path(c, a, &log, NULL) >= 0)
		c->host->remove_file(c->host, log);
}

static const struct mount_type mount_type = {
	.fs_types = (const char *const[]){ "fuse.glusterfs", NULL },
	.is_source = gluster_is_source,
	.mount = gluster_mount,
	.end_helper = gluster_end_helper,
	.client = GLUSTER_PROGRAM,
};

const struct driver driver_glusterfs = {
	.name = "GLUSTERFS",
	.aliases = (const char *const[]){ "gluster", NULL },
	.title = "GlusterFS",
	.help = "A directory or file of a GlusterFS volume. One client serves all volumes with the "
		"same "
		"export and options; the last one that is disconnected ends it. Its log is "
		"STATE/log/glusterfs-*.log. Needs the program glusterfs on this host.",
	.params = params,
	.mount = &mount_type,
	.prepare = mount_prepare,
	.connect = mount_connect,
	.disconnect = mount_disconnect,
	.verify = mount_verify,
};
