/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mounts.h"
#include "core/params.h"
#include "drivers.h"

#include "base/mem.h"

#include <errno.h>

static const struct param params[] = {
	{ .name = "export",
	  .required = true,
	  .identity = true,
	  .check = check_export,
	  .help = "What the server exports, as HOST:/PATH; an IPv6 address stands in brackets.",
	  .example = "192.0.2.10:/exports/data" },
	MOUNT_PARAM_NAME,
	{ .name = "options",
	  .aliases = (const char *const[]){ "mountOptions", NULL },
	  .check = check_mount_options,
	  .help = "Mount options, separated by commas (nfs(5)). Without a version among them 4.2, "
		  "4.1 "
		  "and 3 are tried, the next one only where the server does not speak the one "
		  "before.",
	  .example = "vers=4.2,nconnect=4" },
	MOUNT_PARAM_BASE,
	{ 0 },
};

/*
 * What mount.nfs says, on one line: the way out stands on the second one ("Either use '-o nolock' to
 * keep locks local, or start statd."). In place.
 */
static void join_lines(char *text)
{
	static const char prefix[] = "mount.nfs: ";
	char *out = text;
	size_t len;

	for (char *line = text, *rest; (line = strtok_r(line, "\n", &rest)); line = NULL) {
		if (out != text) {
			*out++ = ' ';
			if (strncmp(line, prefix, strlen(prefix)) == 0)
				line += strlen(prefix);
		}
		len = strlen(line);
		memmove(out, line, len);
		out += len;
	}
	*out = '\0';
}

/* One attempt. -EPROTONOSUPPORT: the server does not speak this version. */
static int try_version(const struct call *c, struct attachment *a, const char *version,
		       struct error *err)
{
	const char *given = attachment_detail(a, "options"),
		   *source = attachment_detail(a, "source");
	struct host_result result = { 0 };
	cleanup_free char *options = NULL;
	int r;

	/* the helper's own patience is minutes; the caller's deadline rules, and an error should say why */
	r = text_format(&options, err, "%s%s%s%s%s", given, *given ? "," : "",
			option_is_set(given, "retry") ? "" : "retry=0", version ? ",vers=" : "",
			version ? version : "");
	if (r < 0)
		return r;
	r = call_left(c, 0, err);
	if (r < 0)
		return r;
	r = c->host->run(c->host,
			 &(struct host_command){
				 .argv = (const char *const[]){ "mount.nfs", source,
								attachment_detail(a, "mountPoint"),
								"-o", options, NULL },
				 .timeout_ms = r },
			 &result);
	if (r == -ENOENT && !result.err[0])
		return error_set(err, ENOENT,
				 "cannot mount %s: mount.nfs is not installed (package "
				 "nfs-common)",
				 source);
	if (r < 0)
		return host_cannot_mount(source, r, &result, err);
	if (result.status == 0)
		return 0;
	join_lines(result.err);
	if (strstr(result.err, "rotocol not supported") ||
	    strstr(result.err, "requested NFS version"))
		return error_set(err, EPROTONOSUPPORT, "cannot mount %s: %s", source, result.err);
	return error_set(err, EIO, "cannot mount %s: %.400s", source,
			 result.err[0] ? result.err : "mount.nfs failed without saying why");
}

static int nfs_mount(const struct call *c, struct attachment *a, struct error *err)
{
	static const char *const versions[] = { "4.2", "4.1", "3" };
	const char *options = attachment_detail(a, "options");
	int r = -EPROTONOSUPPORT;

	if (option_is_set(options, "vers") || option_is_set(options, "nfsvers") ||
	    option_is_set(options, "minorversion"))
		return try_version(c, a, NULL, err);
	for (size_t i = 0; i < ARRAY_SIZE(versions) && r == -EPROTONOSUPPORT; i++)
		r = try_version(c, a, versions[i], err);
	return r;
}

static const struct mount_type mount_type = {
	.fs_types = (const char *const[]){ "nfs", "nfs4", NULL },
	.mount = nfs_mount,
};

const struct driver driver_nfs = {
	.name = "NFS",
	.title = "NFS",
	.help = "A directory or file of an NFS server. One mount serves all volumes of an export; "
		"the "
		"last one that is disconnected unmounts it. Needs mount.nfs on this host.",
	.params = params,
	.mount = &mount_type,
	.prepare = mount_prepare,
	.connect = mount_connect,
	.disconnect = mount_disconnect,
	.verify = mount_verify,
};
