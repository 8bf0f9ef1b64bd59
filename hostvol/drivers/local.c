/* SPDX-License-Identifier: Apache-2.0 */
/* LOCAL: what is on this host already. Connecting checks that it is there, and stays the same. */
#include "core/params.h"
#include "drivers.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

static const struct param params[] = {
	{ .name = "devicePath",
	  .aliases = (const char *const[]){ "path", NULL },
	  .required = true,
	  .identity = true,
	  .check = check_clean_path,
	  .help = "A block device, a directory or a file of this host. A link, as below "
		  "/dev/disk/by-id/, is followed.",
	  .example = "/dev/disk/by-id/nvme-eui.0025385b" },
	{ 0 },
};

/* What tells a block device from another that gets its number: the first of these that is there. */
static void block_identity(const struct call *c, const struct host_stat *st, char *buf, size_t size)
{
	static const char *const files[] = { "dm/uuid", "wwid", "device/wwid", "device/serial",
					     "loop/backing_file" };
	char path[128], value[400];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/sys/dev/block/%u:%u/%s", st->major, st->minor,
			 files[i]);
		host_read_line(c->host, path, value, sizeof(value));
		if (value[0]) {
			snprintf(buf, size, "block %s %s", files[i], value);
			return;
		}
	}
	snprintf(buf, size, "block");
}

static int identify(const struct call *c, const struct attachment *a, char *buf, size_t size,
		    struct error *err)
{
	const char *path = attachment_param(a, "devicePath");
	struct host_stat st;
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	r = c->host->stat(c->host, path, &st, r);
	if (r < 0)
		return error_errno(err, -r, "cannot use %s", path);
	switch (st.type) {
	case HOST_FILE_DIRECTORY:
		snprintf(buf, size, "directory");
		return 0;
	case HOST_FILE_REGULAR:
		snprintf(buf, size, "file");
		return 0;
	case HOST_FILE_BLOCK:
		if (st.size == 0)
			return error_set(err, ENXIO, "%s is a block device without a medium", path);
		block_identity(c, &st, buf, size);
		return 0;
	default:
		return error_set(err, EINVAL,
				 "%s is neither a block device nor a directory nor a file", path);
	}
}

static int local_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	int r = text_format(&target, err, "LOCAL %s", attachment_param(a, "devicePath"));

	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

static int local_connect(const struct call *c, struct attachment *a, struct error *err)
{
	char identity[512], *path;
	int r = identify(c, a, identity, sizeof(identity), err);

	if (r >= 0)
		r = attachment_set_detail(a, "identity", identity, err);
	if (r < 0)
		return r;
	path = strdup(attachment_param(a, "devicePath"));
	if (!path)
		return no_memory(err);
	free(a->path);
	a->path = path;
	return 0;
}

static int local_verify(const struct call *c, struct attachment *a, struct error *err)
{
	const char *before = attachment_detail(a, "identity");
	char identity[512];
	int r = identify(c, a, identity, sizeof(identity), err);

	if (r < 0)
		return r;
	if (!streq(identity, before))
		return error_set(err, ESTALE,
				 "%s is not what was connected: it was \"%.100s\", it is "
				 "\"%.100s\"; connect it again if that is meant",
				 attachment_param(a, "devicePath"), before, identity);
	return 0;
}

static int local_disconnect(const struct call *c, struct attachment *a, bool force,
			    struct error *err)
{
	return 0;
}

const struct driver driver_local = {
	.name = "LOCAL",
	.title = "Local",
	.help = "A block device, directory or file that this host has already. Connecting checks "
		"that "
		"it is there and records what it is; nothing is changed.",
	.params = params,
	.prepare = local_prepare,
	.connect = local_connect,
	.disconnect = local_disconnect,
	.verify = local_verify,
};
