/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCALITY: a host has one SOFS, described in /etc/sfused.conf and mounted at one place; a volume
 * is the file EXPORT/00/NAME in it.
 */
#include "core/mounts.h"
#include "core/params.h"
#include "drivers.h"

#include "base/mem.h"
#include "base/str.h"

#define SOFS_CONFIG "/etc/sfused.conf"

static const struct param params[] = {
	{ .name = "export",
	  .aliases = (const char *const[]){ "sofsPath", NULL },
	  .required = true,
	  .identity = true,
	  .check = check_sub_path,
	  .help = "The directory of the volumes, relative to the root of the file system.",
	  .example = "cinder/volumes" },
	{ .name = "name",
	  .required = true,
	  .identity = true,
	  .check = check_sub_path,
	  .help = "The volume, below the export's directory \"00\".",
	  .example = "volume-0f3a" },
	{ .name = "mountPointBase",
	  .aliases =
		  (const char *const[]){ "scalityMountPointBase", "scalitySofsMountPoint", NULL },
	  .required = true,
	  .check = check_clean_path,
	  .help = "Where the file system is mounted. One that is mounted there already is used, "
		  "and stays.",
	  .example = "/srv/sofs" },
	{ 0 },
};

static int scality_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	int r = text_format(&path, err, "%s/00/%s", attachment_param(a, "export"),
			    attachment_param(a, "name"));

	return r < 0 ? r : mount_prepare_as(c, a, SOFS_CONFIG, path, err);
}

static int scality_mount(const struct call *c, struct attachment *a, struct error *err)
{
	return mount_run_helper(
		c, a, "Scality's SOFS connector",
		&(struct host_command){
			.argv = (const char *const[]){ "mount.sofs", SOFS_CONFIG,
						       attachment_detail(a, "mountPoint"), NULL } },
		err);
}

/* The client calls itself /dev/fuse. */
static bool scality_is_source(const struct attachment *a, const char *source)
{
	return streq(source, SOFS_CONFIG) || str_has_suffix(source, "fuse") ||
	       streq(source, "sfused");
}

static const struct mount_type mount_type = {
	.fs_types = (const char *const[]){ "fuse", "sofs", "fuse.sofs", "fuse.sfused", NULL },
	.mount = scality_mount,
	.is_source = scality_is_source,
	.in_place = true,
};

const struct driver driver_scality = {
	.name = "SCALITY",
	.title = "Scality",
	.help = "A volume in the SOFS of Scality. The file system, one for the host, is mounted "
		"with "
		"the first volume and unmounted with the last, unless it was mounted before. Needs "
		"mount.sofs and " SOFS_CONFIG " on this host.",
	.params = params,
	.mount = &mount_type,
	.prepare = scality_prepare,
	.connect = mount_connect,
	.disconnect = mount_disconnect,
	.verify = mount_verify,
};
