/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/node_args.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/driver.h"
#include "csi/handle.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>

#define FENCING "fencing"
#define ID_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

int check_volume_id(const char *id, bool with_context, struct error *err)
{
	size_t len = strlen(id);

	if (!len)
		return error_set(err, EINVAL, "volume_id is missing");
	if (len <= VOLUME_ID_MAX && id[strspn(id, ID_LETTERS)] == '\0' && !strstr(id, ".."))
		return 0;
	return error_set(err, with_context ? EINVAL : ENOENT,
			 "there is no volume with such an id: at most %d of [A-Za-z0-9._:-] are "
			 "understood, without \"..\"",
			 VOLUME_ID_MAX);
}

int check_target_path(const char *what, const char *path, const char *base, struct error *err)
{
	size_t len = base ? strlen(base) : 0;

	if (!*path)
		return error_set(err, EINVAL, "%s is missing", what);
	/* room for what is appended to it */
	if (!path_is_clean(path) || !path[1] || strlen(path) > PATH_MAX - 64)
		return error_set(err, EINVAL,
				 "%s is not an absolute path without \".\", \"..\" and \"//\"",
				 what);
	if (base && (strncmp(path, base, len) != 0 || path[len] != '/'))
		return error_set(err, EINVAL, "%s is not below %s", what, base);
	return 0;
}

/* ---- capabilities ----------------------------------------------------------------------------- */

#define ATIME MOUNT_ATTR__ATIME

/* Flags of a mount; all others are for the file system. */
static const struct mount_flag {
	const char *name;
	uint64_t set, clear;
} mount_flags[] = {
	{ "ro", MOUNT_ATTR_RDONLY, 0 },
	{ "rw", 0, 0 },
	{ "nosuid", MOUNT_ATTR_NOSUID, 0 },
	{ "suid", 0, MOUNT_ATTR_NOSUID },
	{ "nodev", MOUNT_ATTR_NODEV, 0 },
	{ "dev", 0, MOUNT_ATTR_NODEV },
	{ "noexec", MOUNT_ATTR_NOEXEC, 0 },
	{ "exec", 0, MOUNT_ATTR_NOEXEC },
	{ "noatime", MOUNT_ATTR_NOATIME, ATIME },
	{ "relatime", MOUNT_ATTR_RELATIME, ATIME },
	{ "strictatime", MOUNT_ATTR_STRICTATIME, ATIME },
	{ "nodiratime", MOUNT_ATTR_NODIRATIME, 0 },
	{ "diratime", 0, MOUNT_ATTR_NODIRATIME },
	{ "defaults", 0, 0 },
	{ "_netdev", 0, 0 },
	{ "nofail", 0, 0 },
};

/* These would not mount the volume, but do something with what is mounted. */
static bool is_other_operation(const char *flag)
{
	static const char *const words[] = { "bind",	"rbind",    "move",   "remount",
					     "shared",	"private",  "slave",  "unbindable",
					     "rshared", "rprivate", "rslave", "runbindable" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (streq(flag, words[i]))
			return true;
	return false;
}

static int read_flag(const char *flag, struct wanted *w, struct buf *rest, struct error *err)
{
	for (const char *p = flag; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			return error_set(err, EINVAL, "a mount flag has control characters");
	if (is_other_operation(flag))
		return error_set(err, EINVAL, "the mount flag \"%s\" is refused", flag);
	for (size_t i = 0; i < ARRAY_SIZE(mount_flags); i++) {
		const struct mount_flag *f = &mount_flags[i];

		if (!streq(flag, f->name))
			continue;
		w->set = (w->set & ~f->clear) | f->set;
		w->clear = (w->clear & ~f->set) | f->clear;
		return 0;
	}
	if (*flag)
		buf_printf(rest, "%s%s", rest->len ? "," : "", flag);
	return 0;
}

int wanted_flags(const char *const *flags, size_t count, struct wanted *w, struct error *err)
{
	struct buf rest = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < count; i++) {
		cleanup_free char *copy = xstrdup(flags[i]);
		char *save = NULL;

		for (char *flag = strtok_r(copy, ",", &save); flag && r == 0;
		     flag = strtok_r(NULL, ",", &save))
			r = read_flag(flag, w, &rest, err);
	}
	w->options = buf_take(&rest);
	return r;
}

static int read_mode(const Csi__V1__VolumeCapability *c, struct wanted *w, struct error *err)
{
	switch (c->access_mode ? c->access_mode->mode : 0) {
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_MULTI_WRITER:
		return 0;
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_SINGLE_WRITER:
		w->one_target = true;
		return 0;
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY:
		w->read_only = true;
		return 0;
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER:
		w->many_nodes = true;
		return 0;
	default:
		return error_set(err, EINVAL, "volume_capability has no access mode that is known");
	}
}

static bool is_fs_name(const char *name)
{
	return strlen(name) < 32 &&
	       name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

int wanted_read(const Csi__V1__VolumeCapability *c, struct wanted *ret, struct error *err)
{
	struct wanted w = { .fs_type = "" };
	int r;

	if (!c)
		return error_set(err, EINVAL, "volume_capability is missing");
	if (c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
		w.block = true;
	else if (c->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT)
		return error_set(err, EINVAL, "volume_capability says neither block nor mount");
	r = read_mode(c, &w, err);
	if (r < 0)
		return r;
	if (w.block) {
		w.options = xstrdup("");
	} else {
		w.fs_type = c->mount->fs_type;
		if (!is_fs_name(w.fs_type))
			return error_set(err, EINVAL, "fs_type is not the name of a file system");
		r = wanted_flags((const char *const *)c->mount->mount_flags,
				 c->mount->n_mount_flags, &w, err);
	}
	if (r < 0) {
		wanted_done(&w);
		return r;
	}
	if (w.read_only)
		w.set |= MOUNT_ATTR_RDONLY;
	*ret = w;
	return 0;
}

void wanted_done(struct wanted *w)
{
	free(w->options);
	*w = (struct wanted){ 0 };
}

/* ---- connections ------------------------------------------------------------------------------ */

bool options_are_of_mount(const char *id, const char *driver_name)
{
	const struct driver *driver;
	struct handle h;

	if (id && handle_parse(id, &h, NULL) == 0 &&
	    (h.kind == VOLUME_FILE || h.kind == VOLUME_BLOCK))
		return false;
	return driver_name && driver_find(driver_name, &driver, NULL) == 0 && driver->mount;
}

void connection_add_options(json_t *data, const char *options)
{
	const char *key = jstr(data, "mountOptions") ? "mountOptions" : "options";
	const char *old = jstr(data, key);
	cleanup_free char *all =
		xasprintf("%s%s%s", old ? old : "", old && *old ? "," : "", options);

	(void)json_object_set_new(data, key, json_string(all));
}

static int add_map(json_t *data, struct map m, bool orchestrators_too, struct error *err)
{
	for (size_t i = 0; i < m.count; i++) {
		const struct map_entry *e = m.entries[i];

		if (!orchestrators_too && (strchr(e->key, '/') || streq(e->key, FENCING)))
			continue;
		/* what is no UTF-8 is refused by the library */
		if (json_object_set_new(data, e->key, json_string(e->value)) < 0)
			return error_set(err, EINVAL,
					 "a key or value of the volume's context is not UTF-8");
	}
	return 0;
}

int context_unfenced(struct map context, bool *ret, struct error *err)
{
	*ret = false;
	for (size_t i = 0; i < context.count; i++) {
		const struct map_entry *e = context.entries[i];

		if (!streq(e->key, FENCING))
			continue;
		if (!streq(e->value, "none") && !streq(e->value, "reservation"))
			return error_set(err, EINVAL,
					 "the volume's attribute fencing is \"%.32s\": use none or "
					 "reservation (the default)",
					 e->value);
		*ret = streq(e->value, "none");
	}
	return 0;
}

int connection_of(struct map context, struct map secrets, const char *id, const char *consumer,
		  const char *options, char **ret, struct error *err)
{
	cleanup_json json_t *data = json_object(), *o = NULL;
	const char *driver;
	int r = add_map(data, context, false, err);

	if (r == 0)
		r = add_map(data, secrets, true, err);
	if (r < 0)
		return r;
	driver = jstr(data, "driverVolumeType");
	if (!driver)
		driver = jstr(data, "driver_volume_type");
	if (!driver || !*driver)
		return error_set(err, EINVAL, "volume_context has no driverVolumeType");
	o = json_pack("{s:s, s:s, s:O}", "driverVolumeType", driver, "consumer", consumer, "data",
		      data);
	if (!o)
		return error_set(err, EINVAL, "the staging path is not UTF-8");
	(void)json_object_del(data, "driverVolumeType");
	(void)json_object_del(data, "driver_volume_type");
	if (!jget(data, "volumeId") && !jget(data, "volume_id"))
		(void)json_object_set_new(data, "volumeId", json_string(id));
	if (*options)
		connection_add_options(data, options);
	*ret = json_text(o);
	return 0;
}

void connection_free(char *text)
{
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
}

bool record_is_of(const json_t *record, const char *id)
{
	const char *volume = jstr(record, "volumeId");
	struct handle h;

	if (streq(volume, id))
		return true;
	/* the context of a pool's volume has its name; that of another may have anything */
	return handle_parse(id, &h, NULL) < 0 || streq(volume, h.name);
}
