/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ATA over Ethernet: whatever answers on this host's wires has a device. There is neither a login
 * nor a name in the protocol; which one it is, shelf, slot and the answering address say.
 */
#include "base/mem.h"
#include "block/events.h"
#include "block/usage.h"
#include "drivers.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define ANSWER_MS 10000 /* for a target to answer on the wire */
#define GONE_MS 10000
#define GROWN_MS 10000
#define FLUSH_MS 60000

static int check_number(const char *value, struct error *err)
{
	if (!*value || strlen(value) > 5 || strspn(value, "0123456789") != strlen(value))
		return error_set(err, EINVAL, "\"%.40s\" is no number", value);
	return 0;
}

static const struct param params[] = {
	{ .name = "targetShelf",
	  .aliases = (const char *const[]){ "shelf", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .check = check_number,
	  .help = "The target's shelf (major) number.",
	  .example = "7" },
	{ .name = "targetLun",
	  .aliases = (const char *const[]){ "slot", "targetSlot", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .check = check_number,
	  .help = "Its slot (minor) number.",
	  .example = "3" },
	{ .name = "targetMac",
	  .aliases = (const char *const[]){ "mac", NULL },
	  .help = "The Ethernet address that answers. Where it is given, no other one's device is "
		  "connected.",
	  .example = "02:00:00:00:00:07" },
	{ 0 },
};

/* eSHELF.SLOT, as the kernel calls it. */
static void unit_name(const struct attachment *a, char *buf, size_t size)
{
	snprintf(buf, size, "e%.5s.%.5s", attachment_param(a, "targetShelf"),
		 attachment_param(a, "targetLun"));
}

static int aoe_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	char unit[24], *target = NULL;
	int r;

	unit_name(a, unit, sizeof(unit));
	r = text_format(&target, err, "AoE %s", unit);
	return r < 0 ? r : attachment_set_target(a, target);
}

static int find(const struct call *c, const struct attachment *a, struct disk *ret)
{
	char unit[24], name[DISK_NAME_MAX];

	unit_name(a, unit, sizeof(unit));
	snprintf(name, sizeof(name), "etherd!%.20s", unit);
	return disk_read(c, name, ret);
}

/* ---- waiting -------------------------------------------------------------------------------- */

struct awaited {
	const struct call *c;
	const struct attachment *a;
	uint64_t other_than; /* a size; 0: any */
};

static int is_up(void *arg)
{
	struct awaited *w = arg;
	struct disk d;
	char state[32];

	if (find(w->c, w->a, &d) < 0)
		return 0;
	sys_line(w->c, state, sizeof(state), "/sys/block/%s/state", d.name);
	return strncmp(state, "up", 2) == 0 && d.size != w->other_than &&
	       disk_is_ready(w->c, d.name);
}

static int is_gone(void *arg)
{
	struct awaited *w = arg;
	struct disk d;

	return find(w->c, w->a, &d) < 0;
}

/* Who answers is what it was, and what is expected. */
static int check_mac(const struct call *c, struct attachment *a, const struct disk *d,
		     struct error *err)
{
	const char *expected = attachment_param(a, "targetMac"),
		   *before = attachment_detail(a, "identity");
	char mac[64], want[64] = "";
	size_t n = 0;

	sys_line(c, mac, sizeof(mac), "/sys/block/%s/mac", d->name);
	if (!mac[0])
		return error_set(err, ENODEV, "%s does not say who answers for it", d->path);
	/* the kernel shows it without colons */
	for (const char *p = expected ? expected : ""; *p && n < sizeof(want) - 1; p++)
		if (*p != ':' && *p != '-')
			want[n++] = *p;
	want[n] = '\0';
	if (expected && strcasecmp(want, mac) != 0)
		return error_set(err, ESTALE, "%s is of %s, not of %.40s as expected", d->path, mac,
				 expected);
	if (before[0] && !streq(before, mac))
		return error_set(err, ESTALE,
				 "%s is of %s, and was of %.60s when it was connected: another "
				 "volume stands there now",
				 d->path, mac, before);
	return before[0] ? 0 : attachment_set_detail(a, "identity", mac, err);
}

/* ---- operations ----------------------------------------------------------------------------- */

static int aoe_verify(const struct call *c, struct attachment *a, struct error *err)
{
	struct awaited w = { .c = c, .a = a };
	struct disk d;
	char *path;
	int r;

	if (find(c, a, &d) < 0 || !is_up(&w))
		return error_set(err, ENOENT, "nobody answers for %s any more: connect it again",
				 a->target);
	r = check_mac(c, a, &d, err);
	if (r < 0)
		return r;
	path = strdup(d.path);
	if (!path)
		return no_memory(err);
	free(a->path);
	a->path = path;
	return 0;
}

static int aoe_connect(const struct call *c, struct attachment *a, struct error *err)
{
	struct awaited w = { .c = c, .a = a };
	cleanup_watch struct watch watch = WATCH_INIT;
	int r = watch_open(c, &watch, err);

	if (r < 0)
		return r;
	if (!sys_exists(c, "/dev/etherd/discover"))
		return error_set(err, ENODEV,
				 "this host has no ATA over Ethernet: load the module aoe");
	r = is_up(&w) ? 0 : sys_write(c, "/dev/etherd/discover", "1", err);
	if (r >= 0)
		r = watch_until(c, &watch, ANSWER_MS, is_up, &w, err);
	if (r == -ETIMEDOUT && call_left(c, 0, NULL) > 0)
		return error_set(err, ENOENT, "nobody on this host's networks answers for %s",
				 a->target);
	return r < 0 ? r : aoe_verify(c, a, err);
}

static int aoe_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	struct awaited w = { .c = c, .a = a };
	cleanup_watch struct watch watch = WATCH_INIT;
	char unit[24];
	struct disk d;
	int r = watch_open(c, &watch, err);

	if (r < 0 || a->others || find(c, a, &d) < 0)
		return r < 0 ? r : 0;
	r = force ? 0 : usage_refuse(c, &d, NULL, err);
	if (r >= 0 && !force && a->state != STATE_CONNECTING) {
		r = call_left(c, FLUSH_MS, err);
		if (r >= 0)
			r = c->host->flush(c->host, d.path, r);
		if (r < 0)
			return error_errno(err, -r,
					   "what was written to %s cannot be brought to the "
					   "storage (by force it is given up)",
					   d.path);
	}
	if (r < 0)
		return r;
	unit_name(a, unit, sizeof(unit));
	/* the kernel takes the word only without a final newline, and says nothing where it does not */
	r = sys_write(c, "/dev/etherd/flush", unit, err);
	if (r >= 0)
		r = watch_until(c, &watch, GONE_MS, is_gone, &w, err);
	if (r == -ETIMEDOUT && force)
		return 0; /* its users keep it; it goes with them */
	if (r == -ETIMEDOUT)
		return error_set(err, EBUSY, "%s is still there: something has it open", d.path);
	return r < 0 ? r : 0;
}

static int aoe_extend(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	cleanup_watch struct watch watch = WATCH_INIT;
	struct awaited w = { .c = c, .a = a };
	struct disk before, after;
	char unit[24];
	int r = aoe_verify(c, a, err);

	if (r >= 0)
		r = watch_open(c, &watch, err);
	if (r < 0)
		return r;
	if (find(c, a, &before) < 0)
		return error_set(err, ENODEV, "%s went away", a->target);
	unit_name(a, unit, sizeof(unit));
	w.other_than = before.size;
	r = sys_write(c, "/dev/etherd/revalidate", unit, err);
	/* the answer comes when it comes; none that differs means that it has not grown */
	if (r >= 0)
		r = watch_until(c, &watch, GROWN_MS, is_up, &w, err);
	if (r < 0 && r != -ETIMEDOUT)
		return r;
	if (find(c, a, &after) < 0)
		return error_set(err, ENODEV, "%s went away", a->target);
	if (json_object_set_new(result, "paths",
				json_pack("[{s:s, s:I, s:I}]", "device", after.path, "before",
					  (json_int_t)before.size, "after",
					  (json_int_t)after.size)) < 0 ||
	    json_object_set_new(result, "size", json_integer((json_int_t)after.size)) < 0)
		return no_memory(err);
	return 0;
}

static int aoe_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	cleanup_json json_t *users = NULL;
	struct disk d;
	char step[80];
	int r;

	if (a->others || find(c, a, &d) < 0)
		return 0;
	r = usage_list(c, &d, NULL, &users, err);
	if (r < 0)
		return r;
	snprintf(step, sizeof(step), "flush and remove %s", d.path);
	if (json_array_append_new(jget(result, "devices"), json_string(d.path)) < 0 ||
	    json_array_extend(jget(result, "usedBy"), users) < 0 ||
	    json_array_append_new(jget(result, "steps"), json_string(step)) < 0)
		return no_memory(err);
	return 0;
}

const struct driver driver_aoe = {
	.name = "AOE",
	.title = "ATA over Ethernet",
	.help = "A disk that a target on the same Ethernet offers. The protocol has no names for "
		"volumes: give targetMac where shelf and slot may be answered by another. Needs "
		"the "
		"kernel's module aoe.",
	.params = params,
	.prepare = aoe_prepare,
	.connect = aoe_connect,
	.disconnect = aoe_disconnect,
	.verify = aoe_verify,
	.extend = aoe_extend,
	.plan = aoe_plan,
};
