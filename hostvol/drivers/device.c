/* SPDX-License-Identifier: Apache-2.0 */
#include "device.h"

#include "base/mem.h"
#include "block/identity.h"
#include "core/journal.h"
#include "core/recorded.h"

#include <errno.h>
#include <stdio.h>

#define POLL_FIRST_MS 10
#define POLL_MAX_MS 250
#define NAMELESS "block" /* a device that says nothing of itself */

const char *const device_keys[] = { "identity", NULL };

int check_plain_name(const char *value, struct error *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

	if (value[0] == '-' || value[0] == '.' || strlen(value) > 255 ||
	    value[strspn(value, allowed)])
		return error_set(err, EINVAL,
				 "letters, digits, dots, colons, \"_\" and \"-\" only, and no dot "
				 "or \"-\" at its start");
	return 0;
}

int device_run(const struct call *c, const struct host_command *command, struct host_result *ret,
	       struct error *err)
{
	struct host_command timed = *command;
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	timed.timeout_ms = r;
	r = c->host->run(c->host, &timed, ret);
	if (r == -ENOENT)
		return error_set(err, ENOENT, "the program %s is not installed on this host",
				 command->argv[0]);
	return r < 0 ? error_errno(err, -r, "cannot run %s", command->argv[0]) : 0;
}

/* ---- what is there -------------------------------------------------------------------------- */

/* The first name below the device's directory in sysfs, as "FILE VALUE". */
static bool read_name(const struct call *c, const char *dir, char *buf, size_t size)
{
	static const char *const files[] = { "dm/uuid",	      "wwid",	 "device/wwid",
					     "device/serial", "loop/backing_file", "serial",
					     "md/uuid" };
	char path[128], value[400];

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		host_read_line(c->host, path, value, sizeof(value));
		if (value[0]) {
			snprintf(buf, size, "%s %s", files[i], value);
			return true;
		}
	}
	return false;
}

void block_identity(const struct call *c, const struct host_stat *st, char *buf, size_t size)
{
	char dir[64], disk[80], file[80], number[16], name[450];

	snprintf(dir, sizeof(dir), "/sys/dev/block/%u:%u", st->major, st->minor);
	snprintf(disk, sizeof(disk), "%s/..", dir); /* of a partition */
	snprintf(file, sizeof(file), "%s/partition", dir);
	host_read_line(c->host, file, number, sizeof(number));
	if (read_name(c, dir, name, sizeof(name)))
		snprintf(buf, size, NAMELESS " %s", name);
	else if (number[0] && read_name(c, disk, name, sizeof(name)))
		snprintf(buf, size, NAMELESS " partition %s of %s", number, name);
	else
		snprintf(buf, size, NAMELESS);
}

/* What is left of text behind prefix, or NULL. */
static const char *after(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* "partition N of …" of a disk, "partN-…" of its map: both without that, or false. */
static bool same_partition(const char **uuid, const char **disk)
{
	const char *of = after(*disk, "partition ");
	char prefix[32];
	int len = of ? (int)strcspn(of, " ") : 0;

	if (!of)
		return true;
	snprintf(prefix, sizeof(prefix), "part%.*s-", len, of);
	*uuid = after(*uuid, prefix);
	*disk = after(of + len, " of ");
	return *uuid && *disk;
}

/* One is the multipath map of the other: udev's links lead to the disk, or to its map. */
static bool is_map_of(const char *map, const char *disk)
{
	const char *uuid = after(map, NAMELESS " dm/uuid "), *wwid;
	struct identity id = { 0 };

	disk = after(disk, NAMELESS " ");
	if (!uuid || !disk || !same_partition(&uuid, &disk))
		return false;
	wwid = after(disk, "wwid ");
	if (!wwid)
		wwid = after(disk, "device/wwid ");
	wwid = wwid ? strchr(wwid, '.') : NULL; /* naa.…, eui.… */
	if (!wwid || !after(uuid, "mpath-"))
		return false;
	identity_add(&id, "wwid", wwid + 1, strlen(wwid + 1));
	return identity_is_called(&id, uuid);
}

static bool is_same(const char *a, const char *b)
{
	return streq(a, b) || is_map_of(a, b) || is_map_of(b, a);
}

int device_check(struct attachment *a, const char *where, const char *identity, struct error *err)
{
	const char *before = attachment_detail(a, "identity");

	/* one that had no name then may have one by now: what it was, was never known */
	if (!before[0] || (streq(before, NAMELESS) && strncmp(identity, NAMELESS, 5) == 0))
		return attachment_set_detail(a, "identity", identity, err);
	return is_same(identity, before) ? 0 : recorded_differs(a, where, identity, before, err);
}

static int look_at(const struct call *c, const char *path, struct host_stat *ret, struct error *err)
{
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	r = c->host->stat(c->host, path, ret, r);
	if (r == -ENXIO || r == -ENOENT || r == -ENODEV) /* the node of a device that is no more */
		return 0;
	return r < 0 ? error_errno(err, -r, "cannot look at %s", path) : 1;
}

int device_find_at(const struct call *c, const char *path, char **ret, struct error *err)
{
	struct host_stat st;
	int r = look_at(c, path, &st, err);

	if (r <= 0)
		return r;
	*ret = strdup(path);
	return *ret ? 1 : no_memory(err);
}

/* 1: a block device that can be used, with its identity. 0: nothing, or not yet. */
static int examine(const struct call *c, struct attachment *a, char **ret_path, char *identity,
		   size_t size, struct error *err)
{
	cleanup_free char *path = NULL;
	struct host_stat st;
	int r = a->driver->device->find(c, a, &path, err);

	if (r > 0)
		r = look_at(c, path, &st, err);
	if (r <= 0)
		return r;
	/* whatever else lies there would be taken for the volume */
	if (st.type != HOST_FILE_BLOCK)
		return error_set(err, ENOTBLK, "%s is not a block device", path);
	if (st.size == 0)
		return 0;
	block_identity(c, &st, identity, size);
	*ret_path = TAKE_PTR(path);
	return 1;
}

/* Sleeps a little, longer each time; -ETIMEDOUT once the call's time is over. */
static int pause_before_next(const struct call *c, int *ms)
{
	int r = call_left(c, *ms, NULL);

	if (r < 0)
		return r;
	c->host->sleep_ms(c->host, r);
	*ms = *ms * 2 > POLL_MAX_MS ? POLL_MAX_MS : *ms * 2;
	return 0;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int await_device(const struct call *c, struct attachment *a, struct error *err)
{
	char identity[512], name[200];
	int r = 0, ms = POLL_FIRST_MS;

	while (r >= 0) {
		cleanup_free char *path = NULL;

		r = examine(c, a, &path, identity, sizeof(identity), err);
		if (r > 0) {
			r = device_check(a, path, identity, err);
			if (r < 0)
				return r;
			free(a->path);
			a->path = TAKE_PTR(path);
			return 0;
		}
		if (r == 0)
			r = pause_before_next(c, &ms);
	}
	if (r == -ETIMEDOUT)
		error_set(err, ETIMEDOUT, "no device of %s has come to this host within %d ms",
			  attachment_name(a, name, sizeof(name)), c->h->deadline_ms);
	return r;
}

static int await_gone(const struct call *c, struct attachment *a, struct error *err)
{
	char name[200];
	int r = 0, ms = POLL_FIRST_MS;

	while (r >= 0) {
		cleanup_free char *path = NULL;

		r = a->driver->device->find(c, a, &path, err);
		if (r == 0)
			return 0;
		if (r > 0)
			r = pause_before_next(c, &ms);
	}
	if (r == -ETIMEDOUT)
		error_set(err, ETIMEDOUT, "the device of %s has not gone from this host in time",
			  attachment_name(a, name, sizeof(name)));
	return r;
}

int device_connect(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	int r = a->driver->device->find(c, a, &path, err);

	if (r < 0)
		return r;
	if (r > 0 && a->others) /* who asked for it before is still here */
		return await_device(c, a, err);
	/* an attempt that fails leaves it where it was; unless it is what one that died has left */
	if (r > 0 && !a->interrupted)
		r = attachment_set_detail(a, "found", path, err);
	if (r >= 0)
		r = attachment_set_detail(a, "asked", "yes", err);
	if (r >= 0)
		r = journal_store(c, a, err);
	if (r >= 0)
		r = a->driver->device->attach(c, a, err);
	return r < 0 ? r : await_device(c, a, err);
}

void device_refused(struct attachment *a)
{
	json_object_del(a->detail, "asked");
}

int device_check_free(const struct call *c, const char *path, struct error *err)
{
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	r = c->host->device_in_use(c->host, path, r);
	if (r > 0)
		return error_set(err, EBUSY,
				 "%s is in use (mounted, or part of another device): end what uses "
				 "it",
				 path);
	/* a device that gives errors, or is gone, has no user that could lose anything */
	if (r < 0 && r != -ENOENT && r != -ENXIO && r != -ENODEV && r != -ENOMEDIUM && r != -EIO)
		return error_errno(err, -r, "cannot tell whether %s is in use", path);
	return 0;
}

int device_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	cleanup_free char *path = NULL;
	int r;

	if (a->others || (a->state == STATE_CONNECTING && *attachment_detail(a, "found")))
		return 0;
	/* never asked for, or not given: there is nothing to undo, and maybe nobody to ask */
	if (a->state == STATE_CONNECTING && !*attachment_detail(a, "asked") && !a->interrupted)
		return 0;
	r = a->driver->device->find(c, a, &path, err);
	if (r > 0 && !force)
		r = device_check_free(c, path, err);
	if (r < 0)
		return r;
	r = a->driver->device->detach(c, a, err);
	return r == 0 ? await_gone(c, a, err) : r < 0 ? r : 0;
}

int device_verify(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	char identity[512], name[200];
	int r = examine(c, a, &path, identity, sizeof(identity), err);

	if (r < 0)
		return r;
	attachment_name(a, name, sizeof(name));
	if (r == 0)
		return error_set(err, ENOENT, "the device of %s is gone: connect it again", name);
	if (!a->path || !streq(path, a->path))
		return error_set(err, ESTALE,
				 "%s is at %s, and was at %.100s when it was connected: connect it "
				 "again",
				 name, path, a->path ? a->path : "no place");
	return device_check(a, path, identity, err);
}
