/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ATA over Ethernet. The kernel finds every target that answers on its interfaces by itself, once
 * a minute; connecting asks it now, and asks the disk who it is.
 */
#include "base/mem.h"
#include "block/disk_volume.h"
#include "block/events.h"
#include "block/identity.h"
#include "block/usage.h"
#include "drivers.h"

#include <errno.h>
#include <stdio.h>

#define ORDER_MS 10000
#define FOUND_MS 10000 /* for a target to answer; it is asked again each ASK_MS */
#define ASK_MS 1000
#define GONE_MS 10000
#define GROWN_MS 3000 /* a target answers at once; nothing tells that its size is as before */

static int check_shelf(const char *value, struct error *err)
{
	return check_number_to(value, 65534, err);
}

static int check_slot(const char *value, struct error *err)
{
	return check_number_to(value, 254, err);
}

static const struct param params[] = {
	{ .name = "targetShelf",
	  .aliases = (const char *const[]){ "shelf", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .check = check_shelf,
	  .help = "The shelf's number.",
	  .example = "7" },
	{ .name = "targetLun",
	  .aliases = (const char *const[]){ "slot", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .check = check_slot,
	  .help = "The slot in the shelf.",
	  .example = "3" },
	{ .name = "serial",
	  .aliases = (const char *const[]){ "wwn", "expectedSerial", NULL },
	  .expectation = true,
	  .help = "The disk's serial number. Where it is given, no other disk is connected." },
	{ 0 },
};

/* "e7.3", as the kernel calls it. */
static const char *name_of(const struct attachment *a, char buf[static DISK_NAME_MAX])
{
	snprintf(buf, DISK_NAME_MAX, "e%lu.%lu",
		 strtoul(attachment_param(a, "targetShelf"), NULL, 10),
		 strtoul(attachment_param(a, "targetLun"), NULL, 10));
	return buf;
}

static int aoe_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	char name[DISK_NAME_MAX];
	int r = text_format(&target, err, "AoE %s", name_of(a, name));

	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

/* The disk, where the kernel has it. */
static int find(const struct call *c, const char *name, struct disk *ret)
{
	char disk[DISK_NAME_MAX + 8];

	snprintf(disk, sizeof(disk), "etherd!%s", name);
	return disk_read(c, disk, ret);
}

/* "up", or "down,closewait" and the like of one whose target is silent. */
static bool is_up(const struct call *c, const struct disk *d)
{
	char state[64];

	sys_line(c, state, sizeof(state), "/sys/block/%s/state", d->name);
	return strncmp(state, "up", 2) == 0;
}

static int order(const struct call *c, const char *what, const char *name, struct error *err)
{
	int left = call_left(c, ORDER_MS, err), r;

	if (left < 0)
		return left;
	r = c->host->aoe(c->host, what, name, left);
	if (r == -ENOENT || r == -ENXIO)
		return error_set(err, ENODEV,
				 "this host has no ATA over Ethernet: load the module aoe");
	return r < 0 ? error_errno(err, -r, "cannot %s AoE %s", what, name) : 0;
}

/* ---- who it is ------------------------------------------------------------------------------ */

static int check_identity(const struct call *c, struct attachment *a, const struct disk *d,
			  struct error *err)
{
	unsigned char data[ATA_IDENTIFY_SIZE] = { 0 };
	struct identity live = { 0 };
	int r = call_left(c, ORDER_MS, err);

	if (r < 0)
		return r;
	r = c->host->ata_identify(c->host, d->path, data, r);
	if (r < 0)
		return error_errno(err, -r, "%s does not say which disk it is", d->path);
	identity_add(&live, "serial", (char *)data + 20, 20);
	if (!live.count)
		return error_set(err, ENODATA,
				 "%s has no serial number: it cannot be told from another disk",
				 d->path);
	return identity_check(a, d->path, &live, attachment_param(a, "serial"), err);
}

/* ---- operations ----------------------------------------------------------------------------- */

struct awaited {
	const struct call *c;
	const char *name;
	uint64_t size;
};

static int is_gone(void *arg)
{
	struct awaited *w = arg;
	struct disk d;

	return find(w->c, w->name, &d) < 0;
}

static int is_there(void *arg)
{
	struct awaited *w = arg;
	struct disk d;

	return find(w->c, w->name, &d) >= 0 && is_up(w->c, &d) && disk_is_ready(w->c, d.name);
}

static int has_grown(void *arg)
{
	struct awaited *w = arg;
	struct disk d;

	return find(w->c, w->name, &d) < 0 ? -ENODEV : d.size != w->size;
}

static int flush_away(const struct call *c, const char *name, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct awaited awaited = { .c = c, .name = name };
	int r = watch_open(c, &w, err);

	if (r >= 0)
		r = order(c, "flush", name, err);
	if (r >= 0)
		r = watch_until(c, &w, GONE_MS, is_gone, &awaited, err);
	if (r == -ETIMEDOUT)
		return error_set(err, EBUSY, "/dev/etherd/%s does not go: a program has it open",
				 name);
	return r < 0 ? r : 0;
}

static int discover(const struct call *c, const char *name, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct awaited awaited = { .c = c, .name = name };
	int r = watch_open(c, &w, err);

	/* a question or its answer may be lost: it is Ethernet */
	for (int waited = 0; r >= 0 && waited < FOUND_MS; waited += ASK_MS) {
		r = order(c, "discover", name, err);
		if (r >= 0)
			r = watch_until(c, &w, ASK_MS, is_there, &awaited, err);
		if (r > 0)
			return 0;
		if (r == -ETIMEDOUT)
			r = call_left(c, 0, err);
	}
	return r < 0 ? r
		     : error_set(err, ENOENT,
				 "no AoE target answers as %s on this host's interfaces", name);
}

static int aoe_connect(const struct call *c, struct attachment *a, struct error *err)
{
	char name[DISK_NAME_MAX];
	struct disk d;
	int r = 0;

	name_of(a, name);
	/*
	 * What the kernel knows of a disk that it has is as old as its last question, and its target
	 * may be another since: what nobody uses is found anew.
	 */
	if (!a->others && find(c, name, &d) >= 0 && usage_refuse(c, &d, NULL, NULL) >= 0)
		r = flush_away(c, name, err);
	if (r >= 0)
		r = discover(c, name, err);
	if (r >= 0 && find(c, name, &d) < 0)
		r = error_set(err, ENODEV, "/dev/etherd/%s went away", name);
	if (r >= 0)
		r = check_identity(c, a, &d, err);
	return r < 0 ? r : disk_volume_set_path(a, &d, NULL, err);
}

static int aoe_verify(const struct call *c, struct attachment *a, struct error *err)
{
	char name[DISK_NAME_MAX];
	struct disk d;
	int r;

	if (find(c, name_of(a, name), &d) < 0)
		return error_set(err, ENOENT,
				 "/dev/etherd/%s is not on this host any more: connect it again",
				 name);
	if (!is_up(c, &d))
		return error_set(err, ENOTCONN, "%s is down: its target does not answer", d.path);
	r = check_identity(c, a, &d, err);
	return r < 0 ? r : disk_volume_set_path(a, &d, NULL, err);
}

static int aoe_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	char name[DISK_NAME_MAX];
	struct disk d;
	int r;

	if (a->others || find(c, name_of(a, name), &d) < 0)
		return 0;
	/* the kernel would take it from under a file system */
	r = force ? 0 : disk_volume_release(c, a, &d, err);
	if (r == -EBUSY && a->state == STATE_CONNECTING)
		return 0; /* not handed out: whoever uses it had it from the kernel */
	return r < 0 ? r : flush_away(c, name, err);
}

static int aoe_extend(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct awaited awaited = { .c = c };
	char name[DISK_NAME_MAX];
	struct disk before, after;
	int r = aoe_verify(c, a, err);

	if (r >= 0)
		r = watch_open(c, &w, err);
	if (r < 0)
		return r;
	if (find(c, name_of(a, name), &before) < 0)
		return error_set(err, ENODEV, "%s went away", a->path);
	awaited.name = name;
	awaited.size = before.size;
	r = order(c, "revalidate", name, err);
	if (r >= 0)
		r = watch_until(c, &w, GROWN_MS, has_grown, &awaited, err);
	if (r == -ETIMEDOUT)
		r = call_left(c, 0, err);
	if (r < 0)
		return r;
	if (find(c, name, &after) < 0)
		return error_set(err, ENODEV, "%s went away", a->path);
	return disk_volume_report(result, &before, &after, err);
}

static int aoe_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	char name[DISK_NAME_MAX], step[DISK_NAME_MAX + 32];
	struct disk d;
	int r = find(c, name_of(a, name), &d);

	snprintf(step, sizeof(step), "flush AoE %s", name);
	return disk_volume_plan(c, a, r < 0 ? NULL : &d, step, result, err);
}

/* The serial number of an ATA disk is no other protocol's. */
static const char *const aoe_keys[] = { "identity", NULL };

const struct driver driver_aoe = {
	.name = "AOE",
	.title = "ATA over Ethernet",
	.help = "A disk of an ATA over Ethernet target on one of this host's Ethernet segments. "
		"Needs the kernel's module aoe. Disconnecting makes the kernel forget the disk; as "
		"long as its target goes on answering, the kernel finds it again by itself.",
	.params = params,
	.identity = aoe_keys,
	.prepare = aoe_prepare,
	.connect = aoe_connect,
	.disconnect = aoe_disconnect,
	.verify = aoe_verify,
	.extend = aoe_extend,
	.plan = aoe_plan,
};
