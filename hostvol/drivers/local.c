/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LOCAL and GPFS: what is on this host already. Connecting checks that it is there, and stays the
 * same. Of a file in GPFS the file system counts too: without it the path may lead to another.
 */
#include "core/mountinfo.h"
#include "core/params.h"
#include "device.h"
#include "drivers.h"

#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

#define LOOK_MS 10000 /* for what lies on a server, which may hang for ever */

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

/* " on TYPE SOURCE": the file system in which path lies. */
static int add_file_system(const struct call *c, const char *path, char *buf, size_t size,
			   struct error *err)
{
	cleanup_free char *text = NULL, *place = strdup(path);
	size_t len = strlen(buf);
	int r = 0;

	if (!place)
		return no_memory(err);
	r = c->host->mountinfo(c->host, &text);
	if (r < 0)
		return error_errno(err, -r, "cannot read the mount table");
	/* from the path itself upwards, the first that something is mounted at */
	while (r == 0 && *place) {
		cleanup_with(mount_entry_done) struct mount_entry e = { 0 };

		r = mountinfo_find(text, place, &e);
		if (r > 0)
			snprintf(buf + len, size - len, " on %.40s %.200s", e.fs_type, e.source);
		else if (streq(place, "/"))
			break;
		*strrchr(place, '/') = '\0';
		if (!*place)
			strcpy(place, "/");
	}
	return r < 0 ? no_memory(err) : 0;
}

static int identify(const struct call *c, const struct attachment *a, char *buf, size_t size,
		    struct error *err)
{
	const char *path = attachment_param(a, "devicePath");
	struct host_stat st;
	int r = call_left(c, LOOK_MS, err);

	if (r < 0)
		return r;
	r = c->host->stat(c->host, path, &st, r);
	if (r < 0)
		return error_errno(err, -r, "cannot use %s", path);
	switch (st.type) {
	case HOST_FILE_DIRECTORY:
	case HOST_FILE_REGULAR:
		snprintf(buf, size, "%s", st.type == HOST_FILE_DIRECTORY ? "directory" : "file");
		if (a->driver == &driver_gpfs)
			return add_file_system(c, path, buf, size, err);
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
	int r = text_format(&target, err, "%s %s", a->driver->name,
			    attachment_param(a, "devicePath"));

	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

static int local_connect(const struct call *c, struct attachment *a, struct error *err)
{
	char identity[512], *path;
	int r = identify(c, a, identity, sizeof(identity), err);

	if (r >= 0)
		r = device_check(a, attachment_param(a, "devicePath"), identity, err);
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
	char identity[512];
	int r = identify(c, a, identity, sizeof(identity), err);

	return r < 0 ? r : device_check(a, attachment_param(a, "devicePath"), identity, err);
}

static int local_disconnect(const struct call *c, struct attachment *a, bool force,
			    struct error *err)
{
	return 0;
}

/* A directory or a file does not say who uses it; a device does. */
static int local_in_use(const struct call *c, struct attachment *a, struct error *err)
{
	const char *path = attachment_param(a, "devicePath");
	struct host_stat st;
	int r = call_left(c, LOOK_MS, err);

	if (r < 0)
		return r;
	r = c->host->stat(c->host, path, &st, r);
	if (r == -ENOENT || r == -ENXIO || r == -ENODEV)
		return 0;
	if (r < 0)
		return error_errno(err, -r, "cannot tell whether %s is in use", path);
	return st.type == HOST_FILE_BLOCK ? device_check_free(c, path, err) : 0;
}

const struct driver driver_local = {
	.name = "LOCAL",
	.title = "Local",
	.help = "A block device, directory or file that this host has already. Connecting checks "
		"that "
		"it is there and records what it is; nothing is changed.",
	.params = params,
	.identity = device_keys,
	.prepare = local_prepare,
	.connect = local_connect,
	.disconnect = local_disconnect,
	.in_use = local_in_use,
	.verify = local_verify,
};

/* In other words than those of all other devices: a file with its file system. */
static const char *const gpfs_keys[] = { "identity", NULL };

const struct driver driver_gpfs = {
	.name = "GPFS",
	.aliases = (const char *const[]){ "gpfs_local", NULL },
	.title = "GPFS",
	.help = "A file, directory or device of a GPFS (Spectrum Scale) file system that this host "
		"has "
		"mounted. Connecting checks that it is there and records in which file system; "
		"nothing is changed.",
	.params = params,
	.identity = gpfs_keys,
	.prepare = local_prepare,
	.connect = local_connect,
	.disconnect = local_disconnect,
	.in_use = local_in_use,
	.verify = local_verify,
};
