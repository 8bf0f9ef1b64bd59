/* SPDX-License-Identifier: Apache-2.0 */
/* SMB: mount.cifs, which is given the password on its standard input. */
#include "core/mounts.h"
#include "core/params.h"
#include "drivers.h"
#include "share_text.h"

#include "base/mem.h"

#include <errno.h>

static int check_word(const char *value, struct error *err)
{
	if (strchr(value, ','))
		return error_set(err, EINVAL, "a comma is not allowed");
	return 0;
}

static const struct param params[] = {
	{ .name = "export",
	  .required = true,
	  .identity = true,
	  .check = check_smb_export,
	  .help = "The share, as //HOST/SHARE; backslashes are understood too.",
	  .example = "//192.0.2.50/data" },
	MOUNT_PARAM_NAME,
	{ .name = "options",
	  .aliases = (const char *const[]){ "mountOptions", NULL },
	  .check = check_smb_options,
	  .help = "Mount options, separated by commas (mount.cifs(8)). username, domain and "
		  "password "
		  "among them are taken for the parameters.",
	  .example = "vers=3.1.1,seal" },
	{ .name = "username",
	  .aliases = (const char *const[]){ "user", NULL },
	  .check = check_word,
	  .help = "Who connects; a guest where it is missing and the options do not say more.",
	  .example = "storage" },
	{ .name = "password", .secret = true, .help = "The password; no record keeps it." },
	{ .name = "domain",
	  .aliases = (const char *const[]){ "workgroup", NULL },
	  .check = check_word,
	  .help = "The domain of the user." },
	MOUNT_PARAM_BASE,
	{ 0 },
};

/* Whether options say by themselves who connects. */
static bool says_who(const char *options)
{
	static const char *const names[] = { "credentials", "cred", "guest", "sec", "multiuser" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (option_is_set(options, names[i]))
			return true;
	return false;
}

static int smb_mount(const struct call *c, struct attachment *a, struct error *err)
{
	/* a descriptor, not a variable: others of the same user can read the environment */
	static const char *const env[] = { "PASSWD_FD=0", NULL };
	const char *given = attachment_detail(a, "options"),
		   *password = attachment_param(a, "password");
	bool named = option_is_set(given, "username"), anybody = !named && !says_who(given);
	cleanup_free char *options = NULL;
	int r = text_format(&options, err, "%s%s%s", given, *given && anybody ? "," : "",
			    anybody ? "guest" : "");

	if (r < 0)
		return r;
	return mount_run_helper(
		c, a, "package cifs-utils",
		&(struct host_command){
			.argv = (const char *const[]){ "mount.cifs", attachment_detail(a, "source"),
						       attachment_detail(a, "mountPoint"),
						       *options ? "-o" : NULL, options, NULL },
			.input = password ? password : "",
			.input_len = password ? strlen(password) : 0,
			/* without a user it would be told a password, and so not be a guest */
			.env = named ? env : NULL },
		err);
}

static const struct mount_type mount_type = {
	.fs_types = (const char *const[]){ "cifs", "smb3", NULL },
	.mount = smb_mount,
};

const struct driver driver_smb = {
	.name = "SMB",
	.aliases = (const char *const[]){ "cifs", "smbfs", NULL },
	.title = "SMB",
	.help = "A directory or file of an SMB server (Windows, Samba). One mount serves all "
		"volumes "
		"with the same export and options; the last one that is disconnected unmounts it. "
		"Needs mount.cifs on this host.",
	.params = params,
	.mount = &mount_type,
	.prepare = mount_prepare,
	.connect = mount_connect,
	.disconnect = mount_disconnect,
	.verify = mount_verify,
	.tidy = smb_tidy,
};
