/* SPDX-License-Identifier: Apache-2.0 */
#include "core/mounts.h"
#include "core/params.h"
#include "drivers.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>

static const char scheme[] = "quobyte://";

/* [quobyte://]REGISTRY[,REGISTRY…]/VOLUME; also HOST:/VOLUME, as other file systems have it. */
static int check_quobyte_export(const char *value, struct error *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:%[],/@+=~ -";
	const char *rest = str_has_prefix(value, scheme) ? value + sizeof(scheme) - 1 : value;
	const char *slash = strchr(rest, '/');

	if (!slash || slash == rest || !slash[1] || rest[0] == '-' || rest[strspn(rest, allowed)] ||
	    strstr(rest, "/../") || str_has_suffix(rest, "/.."))
		return error_set(err, EINVAL, "\"%.100s\" is not [quobyte://]REGISTRY/VOLUME",
				 value);
	return 0;
}

static const struct param params[] = {
	{ .name = "export",
	  .required = true,
	  .identity = true,
	  .check = check_quobyte_export,
	  .help = "The volume, as [quobyte://]REGISTRY/VOLUME; several registries are separated by "
		  "commas.",
	  .example = "quobyte://192.0.2.40/data" },
	MOUNT_PARAM_NAME,
	{ .name = "options",
	  .aliases = (const char *const[]){ "mountOptions", NULL },
	  .check = check_mount_options,
	  .help = "Mount options, separated by commas, as mount.quobyte knows them.",
	  .example = "user-xattrs" },
	MOUNT_PARAM_BASE,
	{ 0 },
};

static int quobyte_mount(const struct call *c, struct attachment *a, struct error *err)
{
	const char *options = attachment_detail(a, "options");

	return mount_run_helper(
		c, a, "Quobyte's client package",
		&(struct host_command){
			.argv = (const char *const[]){ "mount.quobyte",
						       attachment_detail(a, "source"),
						       attachment_detail(a, "mountPoint"),
						       *options ? "-o" : NULL, options, NULL } },
		err);
}

/* The client calls itself "quobyte@REGISTRY/VOLUME", without a scheme. */
static bool quobyte_is_source(const struct attachment *a, const char *source)
{
	const char *own = attachment_detail(a, "source");

	if (str_has_prefix(own, scheme))
		own += sizeof(scheme) - 1;
	if (str_has_prefix(source, "quobyte@"))
		source += strlen("quobyte@");
	else if (str_has_prefix(source, scheme))
		source += sizeof(scheme) - 1;
	return streq(own, source);
}

static const struct mount_type mount_type = {
	.fs_types = (const char *const[]){ "fuse.quobyte", "fuse", "quobyte", NULL },
	.mount = quobyte_mount,
	.is_source = quobyte_is_source,
	.client = "mount.quobyte",
};

const struct driver driver_quobyte = {
	.name = "QUOBYTE",
	.title = "Quobyte",
	.help = "A directory or file of a Quobyte volume. One mount serves all volumes with the "
		"same "
		"export and options; the last one that is disconnected unmounts it. Needs "
		"mount.quobyte on this host.",
	.params = params,
	.mount = &mount_type,
	.prepare = mount_prepare,
	.connect = mount_connect,
	.disconnect = mount_disconnect,
	.verify = mount_verify,
};
