/* SPDX-License-Identifier: Apache-2.0 */
#include "usage.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define FLUSH_MAX_MS 60000

struct usage {
	const struct call *c;
	const char *disk; /* whose partitions are looked at */
	const char *ignore;
	const char *mountinfo;
	json_t *out;
};

__attribute__((format(printf, 2, 3))) static int add(struct usage *u, const char *format, ...)
{
	char text[400];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return json_array_append_new(u->out, json_string(text)) < 0 ? -ENOMEM : 0;
}

/* Lines of mountinfo begin with two numbers, then the device; the fifth word is where. */
static int add_mounts(struct usage *u, const char *device)
{
	char dev[32], point[300];
	int r = 0;

	for (const char *line = u->mountinfo; r >= 0 && *line;) {
		if (sscanf(line, "%*d %*d %31s %*s %299s", dev, point) == 2 && streq(dev, device))
			r = add(u, "mounted at %s", point);
		line += strcspn(line, "\n");
		line += *line == '\n';
	}
	return r;
}

static int add_holder(const char *name, void *userdata)
{
	struct usage *u = userdata;
	char map[128];

	if (streq(name, u->ignore))
		return 0;
	sys_line(u->c, map, sizeof(map), "/sys/block/%s/dm/name", name);
	return map[0] ? add(u, "held by %s (%s)", name, map) : add(u, "held by %s", name);
}

/* Of the disk itself ("sdb") or one of its partitions ("sdb/sdb1"). */
static int add_part(struct usage *u, const char *part)
{
	char path[128], device[32], writers[300];
	unsigned major, minor;
	int r;

	sys_line(u->c, device, sizeof(device), "/sys/block/%s/dev", part);
	if (sscanf(device, "%u:%u", &major, &minor) != 2)
		return 0;
	r = add_mounts(u, device);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/sys/block/%s/holders", part);
	r = sys_each(u->c, path, add_holder, u);
	if (r < 0)
		return r;
	u->c->host->writers(u->c->host, major, minor, writers, sizeof(writers));
	return writers[0] ? add(u, "opened for writing by %s", writers) : 0;
}

static int add_partition(const char *name, void *userdata)
{
	struct usage *u = userdata;
	char part[2 * DISK_NAME_MAX];

	if (!str_has_prefix(name, u->disk) ||
	    snprintf(part, sizeof(part), "%s/%s", u->disk, name) >= (int)sizeof(part) ||
	    !sys_exists(u->c, "/sys/block/%s/partition", part))
		return 0;
	return add_part(u, part);
}

int usage_list(const struct call *c, const struct disk *d, const char *ignore, json_t **ret,
	       struct error *err)
{
	cleanup_json json_t *out = json_array();
	cleanup_free char *mountinfo = NULL;
	struct usage u = { .c = c, .disk = d->name, .ignore = ignore, .out = out };
	char dir[64];
	int r;

	if (!out)
		return no_memory(err);
	r = c->host->mountinfo(c->host, &mountinfo);
	if (r < 0)
		return error_errno(err, -r, "cannot read the mount table");
	u.mountinfo = mountinfo;
	snprintf(dir, sizeof(dir), "/sys/block/%s", d->name);
	r = add_part(&u, d->name);
	if (r >= 0)
		r = sys_each(c, dir, add_partition, &u);
	if (r < 0)
		return r == -ENOMEM ? no_memory(err)
				    : error_errno(err, -r, "cannot read who uses %s", d->path);
	/* mounts in other name spaces, swap and the like show only so; a path's map claims it itself */
	if (json_array_size(out) == 0 && !ignore) {
		cleanup_close int fd = c->host->claim(c->host, d->path);

		if (fd == -EBUSY && add(&u, "claimed (mounted elsewhere, swap, or an exclusive "
					    "user)") < 0)
			return no_memory(err);
	}
	*ret = TAKE_PTR(out);
	return 0;
}

int usage_refuse(const struct call *c, const struct disk *d, const char *ignore, struct error *err)
{
	cleanup_json json_t *users = NULL;
	int r = usage_list(c, d, ignore, &users, err);

	if (r < 0)
		return r;
	if (!json_array_size(users))
		return 0;
	return error_set(err, EBUSY, "%s is in use (%.200s%s): end that first", d->path,
			 json_string_value(json_array_get(users, 0)),
			 json_array_size(users) > 1 ? ", …" : "");
}

int disk_flush(const struct call *c, const struct disk *d, struct error *err)
{
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	r -= r / 4;
	r = c->host->flush(c->host, d->path, r < FLUSH_MAX_MS ? r : FLUSH_MAX_MS);
	if (r < 0)
		return error_errno(err, -r,
				   "what was written to %s cannot be brought to the storage (by "
				   "force it is given up)",
				   d->path);
	return 0;
}
