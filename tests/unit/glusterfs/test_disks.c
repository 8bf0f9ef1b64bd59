/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that swap their names, are replaced, come back, or are seen on several paths: which of them
 * is used, or erased.
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "systems/glusterfs/brick.h"
#include "systems/glusterfs/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#define DISKS 3
#define ID_A "b-00000000000a"
#define ID_B "b-00000000000b"
#define PATH_OF(id) "/bricks/" id "/.quartermaster-" id "/brick"

struct disk {
	const char *name; /* NULL: not attached */
	const char *wwn;
	char signature[32], uuid[UUID_TEXT_MAX];
	char mounted[64];
	bool held, broken;
	bool shut_down, open_files; /* what is mounted of it */
	const struct disk *part_of;
	json_t *marker;
	int formats, wipes;
};

/* A machine with some disks. */
struct machine {
	struct node_host host;
	struct disk disks[DISKS];
	json_t *records;
	bool swap_before_format; /* the names of the first two, as late as that */
	int list_error;
};

static struct machine *machine(struct node_host *h)
{
	return (struct machine *)h;
}

static struct disk *named(struct machine *m, const char *name)
{
	for (size_t i = 0; i < DISKS; i++)
		if (streq(m->disks[i].name, name))
			return &m->disks[i];
	return NULL;
}

static struct disk *mounted_for(struct machine *m, const char *root)
{
	for (size_t i = 0; i < DISKS; i++)
		if (m->disks[i].mounted[0] && str_has_prefix(root, m->disks[i].mounted))
			return &m->disks[i];
	return NULL;
}

static void swap_names(struct machine *m)
{
	const char *name = m->disks[0].name;

	m->disks[0].name = m->disks[1].name;
	m->disks[1].name = name;
}

static void probe(struct node_host *h, const char *device, struct device_facts *f)
{
	struct disk *d = named(machine(h), device);

	*f = (struct device_facts){ .error = d ? 0 : ENOENT };
	if (!d)
		return;
	f->block = true;
	f->size = 2LL << 30;
	f->minor = (unsigned)(d - machine(h)->disks);
	f->partition = d->part_of;
	f->disk_minor = d->part_of ? (unsigned)(d->part_of - machine(h)->disks) : 0;
	f->held = d->held;
	f->in_use = d->mounted[0] || d->held;
	snprintf(f->wwn, sizeof(f->wwn), "%s", d->wwn ? d->wwn : "");
	snprintf(f->signature, sizeof(f->signature), "%s", d->signature);
	snprintf(f->uuid, sizeof(f->uuid), "%s", d->uuid);
}

static int find(struct node_host *h, const struct disk_wanted *w,
		char device[static DEVICE_PATH_MAX], struct error *err)
{
	const struct disk *found = NULL;
	int count = 0;

	for (size_t i = 0; i < DISKS; i++) {
		const struct disk *d = &machine(h)->disks[i];
		bool best = d->mounted[0] || (d->wwn && streq(d->wwn, w->wwn));

		if (!d->name || d->held || !streq(d->uuid, w->uuid))
			continue;
		count = best ? -DISKS : count + 1;
		if (best || !found)
			found = d;
	}
	if (count > 1)
		return error_set(err, ENOTUNIQ, "there are two");
	if (found)
		snprintf(device, DEVICE_PATH_MAX, "%s", found->name);
	return found ? 0 : -ENOENT;
}

static int format(struct node_host *h, const char *device, const struct device_facts *seen,
		  const char *uuid, const char *label, struct error *err)
{
	struct device_facts now;
	struct disk *d;

	if (machine(h)->swap_before_format)
		swap_names(machine(h));
	probe(h, device, &now);
	d = named(machine(h), device);
	if (!d || d->mounted[0])
		return -EBUSY;
	if (!device_unchanged(seen, &now))
		return error_set(err, ESTALE, "%s is another", device);
	d->formats++;
	d->broken = false;
	json_decref(d->marker);
	d->marker = NULL;
	snprintf(d->signature, sizeof(d->signature), "xfs");
	snprintf(d->uuid, sizeof(d->uuid), "%s", uuid);
	return 0;
}

static int mount_device(struct node_host *h, const char *device, const char *uuid,
			const char *mountpoint, struct error *err)
{
	struct disk *d = named(machine(h), device);

	assert_non_null(d); /* never a name that nothing has, nor none */
	assert_string_equal(d->uuid, uuid);
	if (d->held)
		return error_set(err, EBUSY, "%s is held", device);
	if (d->broken)
		return error_set(err, EUCLEAN, "%s does not mount", device);
	if (streq(d->mounted, mountpoint))
		return 1;
	snprintf(d->mounted, sizeof(d->mounted), "%s", mountpoint);
	return 0;
}

static int unmount(struct node_host *h, const char *mountpoint, struct error *err)
{
	struct disk *d = mounted_for(machine(h), mountpoint);

	if (d && d->open_files)
		return error_set(err, EBUSY, "%s is busy", mountpoint);
	if (d)
		d->mounted[0] = '\0', d->shut_down = false;
	return 0;
}

static int wipe(struct node_host *h, const char *device, const char *uuid, struct error *err)
{
	struct disk *d = named(machine(h), device);

	assert_non_null(d);
	assert_string_equal(d->uuid, uuid);
	if (d->held)
		return -EBUSY;
	d->wipes++;
	d->signature[0] = d->uuid[0] = '\0';
	return 0;
}

static int read_marker(struct node_host *h, const char *root, json_t **ret, struct error *err)
{
	struct disk *d = mounted_for(machine(h), root);

	if (d && d->shut_down)
		return error_set(err, EIO, "%s cannot be read", root);
	if (!d || !d->marker)
		return -ENOENT;
	*ret = json_incref(d->marker);
	return 0;
}

static int write_marker(struct node_host *h, const char *root, const json_t *marker,
			struct error *err)
{
	struct disk *d = mounted_for(machine(h), root);

	assert_non_null(d);
	json_decref(d->marker);
	d->marker = json_deep_copy(marker);
	return 0;
}

static int record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	*ret = json_deep_copy(json_object_get(machine(h)->records, name));
	return *ret ? 0 : -ENOENT;
}

static int record_put(struct node_host *h, const char *name, const json_t *record,
		      struct error *err)
{
	return json_object_set_new(machine(h)->records, name, json_deep_copy(record));
}

static int record_remove(struct node_host *h, const char *name, struct error *err)
{
	return json_object_del(machine(h)->records, name);
}

static int record_list(struct node_host *h, const char *prefix, struct strv *ret, struct error *err)
{
	const char *name;
	json_t *record;

	if (machine(h)->list_error)
		return error_set(err, machine(h)->list_error, "the records cannot be listed");
	json_object_foreach (machine(h)->records, name, record)
		strv_add(ret, name);
	return 0;
}

static const struct node_host_ops ops = {
	.probe_device = probe,
	.find_device = find,
	.format = format,
	.mount = mount_device,
	.unmount = unmount,
	.wipe = wipe,
	.marker_read = read_marker,
	.marker_write = write_marker,
	.record_get = record_get,
	.record_put = record_put,
	.record_remove = record_remove,
	.record_list = record_list,
};

static void machine_init(struct machine *m)
{
	*m = (struct machine){ .host.ops = &ops, .records = json_object() };
	m->disks[0] = (struct disk){ .name = "/dev/sdb", .wwn = "naa.0" };
	m->disks[1] = (struct disk){ .name = "/dev/sdc", .wwn = "naa.1" };
}

static void machine_done(struct machine *m)
{
	for (size_t i = 0; i < DISKS; i++)
		json_decref(m->disks[i].marker);
	json_decref(m->records);
}

/* The machine starts again: nothing is mounted. */
static void restart(struct machine *m)
{
	for (size_t i = 0; i < DISKS; i++)
		m->disks[i].mounted[0] = '\0';
}

static const struct brick_order brick_a = {
	.id = ID_A, .device = "/dev/sdb", .path = PATH_OF(ID_A), .node_uid = "uid-1"
};
static const struct brick_order brick_b = {
	.id = ID_B, .device = "/dev/sdc", .path = PATH_OF(ID_B), .node_uid = "uid-1"
};

static const char *prepare(struct machine *m, const struct brick_order *o, struct brick_result *r)
{
	char uuid[UUID_TEXT_MAX];

	*r = (struct brick_result){ .verdict = { .state = "Failed", .reason = "" } };
	if (brick_choose(&m->host, o, uuid, NULL) == 0)
		brick_prepare(&m->host, o, r);
	return r->verdict.state;
}

static const json_t *record_of(struct machine *m, const char *id)
{
	cleanup_free char *name = xasprintf("brick.%s", id);

	return json_object_get(m->records, name);
}

/* ---- what is erased ------------------------------------------------------------------------ */
/*
 * sdb holds a brick, sdc is another's to be, and listed in wipe; then they swap their names at a
 * start.
 */
static void wipe_spares_the_nodes_own_brick(void **state)
{
	struct brick_order wiped = brick_b;
	struct machine m;
	struct brick_result r;
	char uuid[UUID_TEXT_MAX];

	machine_init(&m);
	wiped.wipe = true;
	snprintf(m.disks[1].signature, sizeof(m.disks[1].signature), "ext4");
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_int_equal(brick_choose(&m.host, &wiped, uuid, NULL), 0);
	restart(&m);
	swap_names(&m);
	assert_string_equal(prepare(&m, &wiped, &r), "Refused");
	assert_string_equal(r.verdict.reason, "OtherBrick");
	assert_non_null(strstr(r.verdict.message, ID_A));
	assert_int_equal(m.disks[0].formats, 1);
	/* nor while nobody can say what is on record */
	m.list_error = EIO;
	assert_string_equal(prepare(&m, &wiped, &r), "Failed");
	assert_int_equal(m.disks[0].formats, 1);
	m.list_error = 0;
	/* its own is found by what is on it */
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdc");
	swap_names(&m);
	assert_string_equal(prepare(&m, &wiped, &r), "Ready");
	assert_int_equal(m.disks[1].formats, 1);
	machine_done(&m);
}

/* What is on record of a brick that was in use, whose disk is not to be seen. */
static json_t *missing_brick(const char *wwn)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s*, s:b}", "id", ID_A, "uuid", "1111", "device",
			 "/dev/md0", "path", PATH_OF(ID_A), "wwn", wwn, "ready", 1);
}

/*
 * Brick a lies inside of what sdc is today: an array that is not up, an encrypted disk, a
 * partition. Its file system is to be seen nowhere, and sdc may be erased.
 */
static void wipe_spares_what_a_brick_lies_in(void **state)
{
	static const char *const signatures[] = { "crypto_LUKS", "linux_raid_member",
						  "LVM2_member", "gpt" };
	struct brick_order wiped = brick_b;
	struct brick_result r;

	wiped.wipe = true;
	for (size_t i = 0; i < ARRAY_SIZE(signatures); i++) {
		struct machine m;

		machine_init(&m);
		snprintf(m.disks[1].signature, sizeof(m.disks[1].signature), "%s", signatures[i]);
		json_object_set_new(m.records, "brick." ID_A, missing_brick(NULL));
		assert_string_equal(prepare(&m, &wiped, &r), "Refused");
		assert_string_equal(r.verdict.reason, "OwnerUnknown");
		assert_non_null(strstr(r.verdict.message, ID_A));
		/* nor when it was given up, unless a person erases it */
		json_object_update_new(json_object_get(m.records, "brick." ID_A),
				       json_pack("{s:b, s:b}", "released", 1, "replaced", 1));
		assert_string_equal(prepare(&m, &wiped, &r), "Refused");
		assert_int_equal(m.disks[1].formats, 0);
		/* what is to be freed needs no care */
		json_object_del(json_object_get(m.records, "brick." ID_A), "replaced");
		assert_string_equal(prepare(&m, &wiped, &r), "Ready");
		assert_int_equal(m.disks[1].formats, 1);
		machine_done(&m);
	}
}

/* It is seen elsewhere, or was on a disk that says that it is another. */
static void wipe_goes_on_where_all_bricks_are_seen(void **state)
{
	struct brick_order wiped = brick_b;
	struct machine m;
	struct brick_result r;

	wiped.wipe = true;
	machine_init(&m);
	snprintf(m.disks[1].signature, sizeof(m.disks[1].signature), "gpt");
	json_object_set_new(m.records, "brick." ID_A, missing_brick(NULL));
	snprintf(m.disks[0].uuid, sizeof(m.disks[0].uuid), "1111");
	m.disks[0].part_of = &m.disks[1]; /* sdc's own partition, which is not mounted */
	assert_string_equal(prepare(&m, &wiped, &r), "Refused");
	m.disks[0].part_of = NULL;
	assert_string_equal(prepare(&m, &wiped, &r), "Ready");
	machine_done(&m);
	machine_init(&m);
	snprintf(m.disks[1].signature, sizeof(m.disks[1].signature), "gpt");
	json_object_set_new(m.records, "brick." ID_A, missing_brick("naa.7"));
	assert_string_equal(prepare(&m, &wiped, &r), "Ready");
	machine_done(&m);
}

/* A directory says nothing of the disk below it: it is there, or may be anywhere. */
static void wipe_spares_what_a_directory_may_lie_on(void **state)
{
	struct brick_order wiped = brick_b;
	struct machine m;
	struct brick_result r;

	wiped.wipe = true;
	machine_init(&m);
	snprintf(m.disks[1].signature, sizeof(m.disks[1].signature), "gpt");
	json_object_set_new(m.records, "brick." ID_A,
			    json_pack("{s:s, s:s, s:s, s:s, s:b}", "id", ID_A, "uuid", "1111",
				      "directory", "/bricks", "path",
				      "/bricks/.quartermaster-" ID_A "/brick", "ready", 1));
	assert_string_equal(prepare(&m, &wiped, &r), "Refused");
	assert_string_equal(r.verdict.reason, "OwnerUnknown");
	snprintf(m.disks[0].mounted, sizeof(m.disks[0].mounted), "/bricks/.quartermaster-" ID_A);
	m.disks[0].marker = json_pack("{s:s}", "id", ID_A);
	assert_string_equal(prepare(&m, &wiped, &r), "Ready");
	machine_done(&m);
}

/* Two names of one disk, each with an order, and the disk may be erased: the first one has it. */
static void two_names_format_once(void **state)
{
	struct brick_order one = brick_a, two = brick_b;
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	one.wipe = two.wipe = true;
	two.device = one.device;
	assert_string_equal(prepare(&m, &one, &r), "Ready");
	assert_string_equal(prepare(&m, &two, &r), "Refused");
	restart(&m);
	assert_string_equal(prepare(&m, &two, &r), "Refused");
	assert_string_equal(r.verdict.reason, "OtherBrick");
	assert_string_equal(prepare(&m, &one, &r), "Ready");
	assert_int_equal(m.disks[0].formats, 1);
	machine_done(&m);
}

static int answer; /* of the nodes */

static int claimed(void *userdata, const char *uuid, const char *id,
		   char by[static BRICK_OWNER_MAX], struct error *err)
{
	assert_string_equal(uuid, "1111");
	snprintf(by, BRICK_OWNER_MAX, "brick b-2 of node n2");
	return answer < 0 ? error_set(err, -answer, "the API does not answer") : answer;
}

/* A disk that was another node's is not erased for a name, while that node still reports it. */
static void wipe_spares_what_another_node_reports(void **state)
{
	struct brick_order wiped = brick_b;
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	wiped.wipe = true;
	wiped.claimed = claimed;
	snprintf(m.disks[1].signature, sizeof(m.disks[1].signature), "xfs");
	snprintf(m.disks[1].uuid, sizeof(m.disks[1].uuid), "1111");
	answer = 1;
	assert_string_equal(prepare(&m, &wiped, &r), "Refused");
	assert_non_null(strstr(r.verdict.message, "node n2"));
	answer = -ETIMEDOUT;
	assert_string_equal(prepare(&m, &wiped, &r), "Failed");
	assert_int_equal(m.disks[1].formats, 0);
	answer = 0;
	assert_string_equal(prepare(&m, &wiped, &r), "Ready");
	machine_done(&m);
}

/* What was looked at is what is formatted, or nothing is. */
static void format_is_told_what_was_seen(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	m.swap_before_format = true;
	assert_string_equal(prepare(&m, &brick_a, &r), "Failed");
	assert_string_equal(r.verdict.reason, "Changed");
	assert_int_equal(m.disks[0].formats + m.disks[1].formats, 0);
	machine_done(&m);
}

static void a_device_is_what_was_seen_of_it(void **state)
{
	struct device_facts seen = { .block = true, .major = 8, .minor = 16, .size = 1 };
	struct device_facts now = seen;

	assert_true(device_unchanged(&seen, &now));
	now.minor = 32;
	assert_false(device_unchanged(&seen, &now));
	now = seen;
	snprintf(now.wwn, sizeof(now.wwn), "naa.1");
	assert_false(device_unchanged(&seen, &now));
	now = seen;
	snprintf(now.signature, sizeof(now.signature), "ext4");
	assert_false(device_unchanged(&seen, &now));
	now = seen;
	snprintf(now.uuid, sizeof(now.uuid), "1111");
	assert_false(device_unchanged(&seen, &now));
	now = seen;
	now.size = 2;
	assert_false(device_unchanged(&seen, &now));
}

/*
 * A crash left half a file system, and the disk has another name since: it is made again there, and
 * mounted.
 */
static void half_made_disk_that_moved(void **state)
{
	struct machine m;
	struct brick_result r;
	char uuid[UUID_TEXT_MAX];

	machine_init(&m);
	assert_int_equal(brick_choose(&m.host, &brick_a, uuid, NULL), 0);
	m.disks[0].broken = true;
	snprintf(m.disks[0].signature, sizeof(m.disks[0].signature), "xfs");
	snprintf(m.disks[0].uuid, sizeof(m.disks[0].uuid), "%s", uuid);
	swap_names(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdc");
	assert_int_equal(m.disks[0].formats, 1);
	machine_done(&m);
}

/* ---- a disk that is replaced --------------------------------------------------------------- */
/* The disk of brick a is gone, and this one has its name. */
static const char *put_in_place(struct machine *m, const char *wwn, const char *signature,
				struct brick_result *r)
{
	struct brick_order o = brick_a;
	char instead[BRICK_OWNER_MAX];

	m->disks[0].name = NULL;
	assert_string_equal(prepare(m, &o, r), "Missing");
	m->disks[2] = (struct disk){ .name = "/dev/sdb", .wwn = wwn };
	snprintf(m->disks[2].signature, sizeof(m->disks[2].signature), "%s", signature);
	/* not at the first look: its own may be found a moment later */
	assert_string_equal(prepare(m, &o, r), "Missing");
	assert_string_not_equal(r->verdict.reason, "Replaced");
	/* nor because something else had the name for long */
	o.settled = "naa.7 0:7 4096";
	assert_string_equal(prepare(m, &o, r), "Missing");
	assert_string_not_equal(r->verdict.reason, "Replaced");
	snprintf(instead, sizeof(instead), "%s", r->instead);
	o.settled = instead;
	assert_string_equal(prepare(m, &o, r), "Missing");
	assert_int_equal(m->disks[2].formats, 0);
	return r->verdict.reason;
}

static void another_disk_has_the_name(void **state)
{
	static const struct {
		const char *had, *has, *signature;
		const char *reason;
		bool unsure;
	} cases[] = {
		{ "naa.0", "naa.9", "", "Replaced" },
		{ "naa.0", "naa.9", "ext4", "NotFound" },
		/* the very same one, without its file system */
		{ "naa.0", "naa.0", "", "Erased" },
		{ "naa.0", "naa.0", "ext4", "Erased" },
		/* neither says who it is */
		{ NULL, NULL, "", "Replaced", true },
		{ NULL, NULL, "ext4", "NotFound" },
		{ "naa.0", NULL, "", "Replaced", true },
		{ NULL, "naa.9", "", "Replaced", true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct machine m;
		struct brick_result r;

		machine_init(&m);
		m.disks[0].wwn = cases[i].had;
		assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
		restart(&m);
		assert_string_equal(put_in_place(&m, cases[i].has, cases[i].signature, &r),
				    cases[i].reason);
		assert_int_equal(r.unsure, cases[i].unsure);
		machine_done(&m);
	}
}

static void a_disk_that_is_away_is_waited_for(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	restart(&m);
	m.disks[0].name = NULL;
	assert_string_equal(prepare(&m, &brick_a, &r), "Missing");
	assert_string_equal(r.verdict.reason, "NotFound");
	m.disks[0].name = "/dev/sdx";
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdx");
	/* it is used although another has its name meanwhile */
	restart(&m);
	m.disks[2] = (struct disk){ .name = "/dev/sdb", .wwn = "naa.9" };
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_int_equal(m.disks[0].formats + m.disks[2].formats, 1);
	machine_done(&m);
}

/*
 * Its place is taken by a brick of its own; should the old one come back, it is neither used for
 * that nor erased.
 */
static void the_old_disk_comes_back(void **state)
{
	struct brick_order new_one = brick_a;
	struct machine m;
	struct brick_result r;

	new_one.id = ID_B;
	new_one.path = PATH_OF(ID_B);
	machine_init(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	restart(&m);
	assert_string_equal(put_in_place(&m, "naa.9", "", &r), "Replaced");
	assert_string_equal(prepare(&m, &new_one, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdb");
	assert_int_equal(m.disks[2].formats, 1);
	/* who still asks for the old one hears the same, now that its place is in use */
	assert_string_equal(prepare(&m, &brick_a, &r), "Missing");
	assert_string_equal(r.verdict.reason, "Replaced");
	/* nor is it mounted, as long as it is still ordered: its volume has let go of it */
	m.disks[0].name = "/dev/sdx";
	assert_string_equal(prepare(&m, &brick_a, &r), "Refused");
	assert_string_equal(r.verdict.reason, "OldDisk");
	assert_string_equal(m.disks[0].mounted, "");
	assert_true(jbool(record_of(&m, ID_A), "replaced"));
	m.disks[0].name = NULL;
	assert_int_equal(brick_release(&m.host, ID_A, NULL), 1);
	m.disks[0].name = "/dev/sdx";
	assert_int_equal(brick_release(&m.host, ID_A, NULL), 1);
	assert_int_equal(m.disks[0].wipes, 0);
	assert_true(jbool(record_of(&m, ID_A), "away"));
	assert_string_equal(prepare(&m, &new_one, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdb");
	machine_done(&m);
}

/* Before its place is taken, it is used again, and is then like any other. */
static void the_old_disk_comes_back_in_time(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	restart(&m);
	assert_string_equal(put_in_place(&m, "naa.9", "", &r), "Replaced");
	m.disks[0].name = "/dev/sdx";
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_false(jbool(record_of(&m, ID_A), "replaced"));
	assert_int_equal(brick_release(&m.host, ID_A, NULL), 0);
	assert_int_equal(m.disks[0].wipes, 1);
	machine_done(&m);
}

/* Its path timed out, and is back under the same name: what is mounted answers nothing. */
static void a_disk_that_failed_is_mounted_again(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	m.disks[0].shut_down = m.disks[0].open_files = true;
	assert_string_equal(prepare(&m, &brick_a, &r), "Failed");
	assert_string_equal(r.verdict.reason, "MountFailed");
	m.disks[0].open_files = false;
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_false(m.disks[0].shut_down);
	assert_string_equal(m.disks[0].mounted, "/bricks/" ID_A);
	assert_int_equal(m.disks[0].formats, 1);
	machine_done(&m);
}

/* ---- a disk that was copied ------------------------------------------------------------------ */
/* A copy of days ago is still attached, and has the name of the brick's disk after a restart. */
static void the_disk_is_mounted_not_its_copy(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	restart(&m);
	m.disks[1] = m.disks[0];
	json_incref(m.disks[1].marker);
	m.disks[1].name = "/dev/sdc";
	m.disks[1].wwn = "naa.1";
	swap_names(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdc");
	assert_string_equal(m.disks[1].mounted, "");
	assert_string_equal(jstr(record_of(&m, ID_A), "wwn"), "naa.0");
	/* it comes alone: then it was restored from it */
	restart(&m);
	m.disks[0].name = NULL;
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdb");
	assert_string_equal(jstr(record_of(&m, ID_A), "wwn"), "naa.1");
	machine_done(&m);
}

/* Nothing tells them apart: none is mounted, and none is erased, until a person has decided. */
static void two_that_cannot_be_told_apart(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	m.disks[0].wwn = NULL;
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	m.disks[1] = m.disks[0];
	json_incref(m.disks[1].marker);
	m.disks[1].name = "/dev/sdc";
	m.disks[1].mounted[0] = '\0';
	/* one that comes while the brick is in use is not the brick */
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/sdb");
	restart(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Failed");
	assert_string_equal(r.verdict.reason, "Ambiguous");
	assert_string_equal(m.disks[0].mounted, "");
	assert_string_equal(m.disks[1].mounted, "");
	assert_true(brick_release(&m.host, ID_A, NULL) < 0);
	assert_int_equal(m.disks[0].wipes + m.disks[1].wipes, 0);
	m.disks[1].name = NULL;
	assert_int_equal(brick_release(&m.host, ID_A, NULL), 0);
	assert_int_equal(m.disks[0].wipes, 1);
	machine_done(&m);
}

/* ---- several paths to one disk -------------------------------------------------------------- */
/* The device of the spec is a path of a map since: the map is mounted, and freed. */
static void the_map_is_used_not_its_path(void **state)
{
	struct machine m;
	struct brick_result r;

	machine_init(&m);
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	restart(&m);
	m.disks[2] = m.disks[0];
	json_incref(m.disks[2].marker);
	m.disks[2].name = "/dev/dm-0";
	m.disks[0].held = true;
	assert_string_equal(prepare(&m, &brick_a, &r), "Ready");
	assert_string_equal(r.device, "/dev/dm-0");
	assert_int_equal(brick_release(&m.host, ID_A, NULL), 0);
	assert_int_equal(m.disks[2].wipes, 1);
	machine_done(&m);
}

static void add_block(const char *sysfs, const char *name, const char *below, const char *holder)
{
	cleanup_free char *real = below ? xasprintf("%s/devices/%s/%s", sysfs, below, name) :
					  xasprintf("%s/devices/%s", sysfs, name);
	cleanup_free char *holders = xasprintf("%s/holders", real),
			  *link = xasprintf("%s/class/block/%s", sysfs, name),
			  *entry = holder ? xasprintf("%s/%s", holders, holder) : NULL,
			  *partition = xasprintf("%s/partition", real);

	assert_int_equal(mkdir_parents(holders, 0755, NULL), 0);
	assert_int_equal(symlink(real, link), 0);
	if (entry)
		assert_int_equal(mkdir(entry, 0755), 0);
	if (below)
		assert_int_equal(file_write(partition, "1\n", 2, 0644, NULL), 0);
}

/* As in /sys/dev/block: 8:16 is sdb, 8:17 its partition. */
static void a_partition_says_whose_it_is(void **state)
{
	char dir[] = "/tmp/qm-sysfs.XXXXXX";
	struct device_facts f = { .block = true, .major = 8, .minor = 17 },
			    disk = { .block = true, .major = 8, .minor = 16 };
	cleanup_free char *numbers = NULL, *class = NULL, *link = NULL, *part = NULL, *dev = NULL;

	assert_non_null(mkdtemp(dir));
	class = xasprintf("%s/class/block", dir);
	numbers = xasprintf("%s/dev/block", dir);
	assert_int_equal(mkdir_parents(class, 0755, NULL), 0);
	assert_int_equal(mkdir_parents(numbers, 0755, NULL), 0);
	add_block(dir, "sdb", NULL, NULL);
	add_block(dir, "sdb1", "sdb", NULL);
	part = xasprintf("%s/devices/sdb/sdb1", dir);
	link = xasprintf("%s/8:17", numbers);
	dev = xasprintf("%s/devices/sdb/dev", dir);
	assert_int_equal(symlink(part, link), 0);
	assert_int_equal(file_write(dev, "8:16\n", 5, 0644, NULL), 0);
	assert_true(device_part_of(dir, &f));
	assert_false(device_part_of(dir, &disk));
	assert_true(device_in(&f, &disk));
	assert_true(device_in(&disk, &disk));
	assert_false(device_in(&disk, &f));
	assert_int_equal(remove_tree(dir, NULL), 0);
}

static int find_uuid(const char *sysfs, void (*look)(const char *, struct device_facts *),
		     const char *uuid, char device[static DEVICE_PATH_MAX])
{
	struct disk_wanted w = { .uuid = uuid };

	return device_find_in(sysfs, look, &w, device, NULL);
}

static bool array_runs; /* its members carry what it carries, behind their own superblock */

static void probe_paths(const char *device, struct device_facts *f)
{
	static const char *const same[] = { "/dev/sda1", "/dev/sdb1", "/dev/dm-1" };

	*f = (struct device_facts){ .block = true };
	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (streq(device, same[i])) {
			snprintf(f->uuid, sizeof(f->uuid), "1111");
			snprintf(f->signature, sizeof(f->signature), "xfs");
		}
	if (streq(device, "/dev/sdc") || streq(device, "/dev/sdd") ||
	    (array_runs && streq(device, "/dev/md0"))) {
		snprintf(f->uuid, sizeof(f->uuid), "2222");
		snprintf(f->signature, sizeof(f->signature), "%s",
			 streq(device, "/dev/md0") ? "xfs" : "linux_raid_member, xfs");
	}
	if (streq(device, "/dev/cciss/c0d0")) {
		snprintf(f->uuid, sizeof(f->uuid), "3333");
		snprintf(f->signature, sizeof(f->signature), "xfs");
	}
}

/*
 * As in /sys: two paths to a disk with a partition, of which multipath makes dm-0 and dm-1; a
 * mirror of sdc and sdd.
 */
static void the_uppermost_is_found(void **state)
{
	char dir[] = "/tmp/qm-sysfs.XXXXXX";
	cleanup_free char *class = NULL;
	char device[DEVICE_PATH_MAX];

	assert_non_null(mkdtemp(dir));
	class = xasprintf("%s/class/block", dir);
	assert_int_equal(mkdir_parents(class, 0755, NULL), 0);
	add_block(dir, "sda", NULL, "dm-0");
	add_block(dir, "sda1", "sda", NULL);
	add_block(dir, "sdb", NULL, "dm-0");
	add_block(dir, "sdb1", "sdb", NULL);
	add_block(dir, "dm-0", NULL, "dm-1");
	add_block(dir, "dm-1", NULL, NULL);
	add_block(dir, "sdc", NULL, "md0");
	add_block(dir, "sdd", NULL, "md0");
	add_block(dir, "md0", NULL, NULL);
	add_block(dir, "cciss!c0d0", NULL, NULL);
	assert_int_equal(find_uuid(dir, probe_paths, "1111", device), 0);
	assert_string_equal(device, "/dev/dm-1");
	array_runs = true;
	assert_int_equal(find_uuid(dir, probe_paths, "2222", device), 0);
	assert_string_equal(device, "/dev/md0");
	assert_int_equal(find_uuid(dir, probe_paths, "3333", device), 0);
	assert_string_equal(device, "/dev/cciss/c0d0");
	assert_int_equal(find_uuid(dir, probe_paths, "4444", device), -ENOENT);
	assert_int_equal(remove_tree(dir, NULL), 0);
}

/*
 * A mirror that is not put together: what is written to one member alone would be lost, or spoil
 * the other.
 */
static void a_member_alone_is_not_used(void **state)
{
	char dir[] = "/tmp/qm-sysfs.XXXXXX";
	cleanup_free char *class = NULL;
	char device[DEVICE_PATH_MAX];

	assert_non_null(mkdtemp(dir));
	class = xasprintf("%s/class/block", dir);
	assert_int_equal(mkdir_parents(class, 0755, NULL), 0);
	add_block(dir, "sdc", NULL, NULL);
	add_block(dir, "sdd", NULL, NULL);
	assert_int_equal(find_uuid(dir, probe_paths, "2222", device), -ENOENT);
	assert_int_equal(remove_tree(dir, NULL), 0);
}

/* A disk, its copy, and another path to it. */
static void probe_copies(const char *device, struct device_facts *f)
{
	*f = (struct device_facts){ .block = true, .minor = (unsigned)device[7] };
	snprintf(f->uuid, sizeof(f->uuid), "1111");
	snprintf(f->wwn, sizeof(f->wwn), "naa.%c",
		 str_has_suffix(device, "sdc") ? 'b' : device[7]);
	if (str_has_suffix(device, "sdd") || str_has_suffix(device, "sde"))
		f->wwn[0] = '\0';
}

/* Whatever order the machine lists them in, a copy is not taken for the brick. */
static void a_copy_is_not_taken_for_it(void **state)
{
	static const struct {
		const char *names[3], *wwn;
		const char *found; /* NULL: none is */
	} cases[] = {
		{ { "sda", "sdb" }, "naa.b", "/dev/sdb" },
		{ { "sdb", "sda" }, "naa.a", "/dev/sda" },
		{ { "sda", "sdd" }, "naa.a", "/dev/sda" },
		/* a disk that was restored from a copy: there is no other */
		{ { "sda" }, "naa.9", "/dev/sda" },
		{ { "sdd" }, "naa.9", "/dev/sdd" },
		{ { "sda" }, NULL, "/dev/sda" },
		/* two that are nothing to choose between */
		{ { "sda", "sdb" }, "naa.9", NULL },
		{ { "sda", "sdb" }, NULL, NULL },
		{ { "sdd", "sde" }, "naa.a", NULL },
		{ { "sda", "sdd", "sde" }, NULL, NULL },
		/* two paths to one */
		{ { "sdb", "sdc" }, NULL, "/dev/sd" },
		{ { "sdb", "sdc", "sda" }, "naa.b", "/dev/sd" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct disk_wanted w = { .uuid = "1111", .wwn = cases[i].wwn };
		char dir[] = "/tmp/qm-sysfs.XXXXXX", device[DEVICE_PATH_MAX];
		struct error err = ERROR_INIT;
		cleanup_free char *class = NULL;

		assert_non_null(mkdtemp(dir));
		class = xasprintf("%s/class/block", dir);
		assert_int_equal(mkdir_parents(class, 0755, NULL), 0);
		for (size_t k = 0; k < ARRAY_SIZE(cases[i].names) && cases[i].names[k]; k++)
			add_block(dir, cases[i].names[k], NULL, NULL);
		assert_int_equal(device_find_in(dir, probe_copies, &w, device, &err),
				 cases[i].found ? 0 : -ENOTUNIQ);
		if (cases[i].found)
			assert_true(str_has_prefix(device, cases[i].found));
		else
			assert_non_null(strstr(err.message, "neither is mounted"));
		assert_int_equal(remove_tree(dir, NULL), 0);
	}
}

static void probe_broken(const char *device, struct device_facts *ret)
{
	*ret = (struct device_facts){ .error = str_has_prefix(device, "/dev/sdc")   ? EIO
					       : str_has_prefix(device, "/dev/vda") ? EPERM
										    : ENOMEDIUM,
				      .partition = str_has_suffix(device, "1") };
	snprintf(ret->partition ? ret->disk_wwn : ret->wwn, sizeof(ret->wwn), "naa.c");
}

static int find_named(const char *sysfs, const char *wwn)
{
	struct disk_wanted w = { .uuid = "2222", .wwn = wwn };
	char device[DEVICE_PATH_MAX];

	return device_find_in(sysfs, probe_broken, &w, device, NULL);
}

/* A dead disk of somebody else does not keep one from being replaced. */
static void others_need_not_be_readable(void **state)
{
	char dir[] = "/tmp/qm-sysfs.XXXXXX";
	cleanup_free char *class = NULL, *holder = NULL;

	assert_non_null(mkdtemp(dir));
	class = xasprintf("%s/class/block", dir);
	assert_int_equal(mkdir_parents(class, 0755, NULL), 0);
	add_block(dir, "sdc", NULL, NULL);
	add_block(dir, "sdc1", "sdc", NULL);
	assert_int_equal(find_named(dir, "naa.c"), -EIO);
	assert_int_equal(find_named(dir, NULL), -EIO);
	assert_int_equal(find_named(dir, "naa.a"), -ENOENT);
	/* a path that stands by: what is on it shows on the map */
	holder = xasprintf("%s/devices/sdc/holders/dm-0", dir);
	assert_int_equal(mkdir(holder, 0755), 0);
	assert_int_equal(find_named(dir, NULL), -ENOENT);
	assert_int_equal(remove_tree(dir, NULL), 0);
}

/* One that cannot be read may be the disk: that it is gone, and was replaced, does not follow. */
static void unreadable_is_not_gone(void **state)
{
	char dir[] = "/tmp/qm-sysfs.XXXXXX";
	cleanup_free char *class = NULL;
	char device[DEVICE_PATH_MAX];

	assert_non_null(mkdtemp(dir));
	class = xasprintf("%s/class/block", dir);
	assert_int_equal(mkdir_parents(class, 0755, NULL), 0);
	add_block(dir, "sr0", NULL, NULL);
	add_block(dir, "vda", NULL, NULL); /* nobody may open it: so nobody made a brick there */
	assert_int_equal(find_uuid(dir, probe_broken, "2222", device), -ENOENT);
	add_block(dir, "sdc", NULL, NULL);
	assert_int_equal(find_uuid(dir, probe_broken, "2222", device), -EIO);
	assert_int_equal(remove_tree(dir, NULL), 0);
	assert_false(device_gone(0, 51)); /* of a tmpfs: it has none */
}

/* ---- what is freed --------------------------------------------------------------------------- */
/* A disk in a file of 1 GiB, with an XFS of this UUID. False: there is no mkfs.xfs here. */
static bool make_xfs(const char *path, const char *uuid)
{
	cleanup_free char *option = xasprintf("uuid=%s", uuid);
	const char *argv[] = { "mkfs.xfs", "-q", "-f", "-m", option, path, NULL };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 30), 0);
	close(fd);
	return spawn_check(&(struct spawn){ .argv = argv, .timeout_ms = 60000 }, NULL, NULL) == 0;
}

static bool is_xfs(int fd)
{
	char magic[4];

	assert_int_equal(pread(fd, magic, sizeof(magic), 0), sizeof(magic));
	return memcmp(magic, "XFSB", sizeof(magic)) == 0;
}

/* A superblock that is damaged is found as the brick's; it is freed as the brick's, too. */
static void a_damaged_brick_is_freed(void **state)
{
	static const char uuid[] = "0c5d3a2e-0000-4000-8000-000000000001",
			  other[] = "0c5d3a2e-0000-4000-8000-000000000002";
	char dir[] = "/tmp/qm-wipe.XXXXXX";
	cleanup_free char *path = NULL;
	int fd;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/disk", dir);
	if (!make_xfs(path, uuid)) {
		remove_tree(dir, NULL);
		skip();
	}
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pwrite(fd, "damaged", 7, 108), 7); /* its label: the checksum is wrong */
	assert_int_equal(device_wipe(path, other, NULL), -EPERM);
	assert_true(is_xfs(fd));
	assert_int_equal(device_wipe(path, uuid, NULL), 0);
	assert_false(is_xfs(fd));
	/* once more is nothing */
	assert_int_equal(device_wipe(path, uuid, NULL), 0);
	close(fd);
	assert_int_equal(remove_tree(dir, NULL), 0);
}

/* ---- mounts --------------------------------------------------------------------------------- */
static void the_uppermost_mount(void **state)
{
	static const char text[] = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
				   "30 22 8:16 / /bricks/b-1 rw - xfs /dev/sdb rw\n"
				   "31 22 8:48 / /bricks/b-10 rw - xfs /dev/sdd rw\n"
				   "32 30 8:32 / /bricks/b-1 rw - xfs /dev/sdc rw\n";
	dev_t dev = 0;

	assert_true(mountinfo_device(text, "/bricks/b-1", &dev));
	assert_int_equal(dev, makedev(8, 32));
	assert_true(mountinfo_device(text, "/bricks/b-10", &dev));
	assert_int_equal(dev, makedev(8, 48));
	assert_false(mountinfo_device(text, "/bricks", &dev));
	assert_false(mountinfo_device("", "/bricks", &dev));
}

/* /var/lib/quartermaster is a link to another disk: the kernel's table has where it leads. */
static void links_on_the_way_to_a_mount(void **state)
{
	char dir[] = "/tmp/qm-link.XXXXXX";
	cleanup_free char *real = NULL, *link = NULL, *at = NULL, *want = NULL, *resolved = NULL,
			  *missing = NULL, *top = mount_resolve("/bricks");

	assert_non_null(mkdtemp(dir));
	real = xasprintf("%s/real/bricks", dir);
	link = xasprintf("%s/link", dir);
	at = xasprintf("%s/link/bricks/b-1", dir);
	want = xasprintf("%s/real/bricks/b-1", dir);
	assert_int_equal(mkdir_parents(real, 0755, NULL), 0);
	assert_int_equal(symlink("real", link), 0);
	/* whether it can be looked at or not */
	resolved = mount_resolve(at);
	assert_string_equal(resolved, want);
	missing = mount_resolve("/nowhere/at/all");
	assert_string_equal(missing, "/nowhere/at/all");
	assert_string_equal(top, "/bricks");
	assert_int_equal(remove_tree(dir, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wipe_spares_the_nodes_own_brick),
		cmocka_unit_test(wipe_spares_what_a_brick_lies_in),
		cmocka_unit_test(wipe_goes_on_where_all_bricks_are_seen),
		cmocka_unit_test(wipe_spares_what_a_directory_may_lie_on),
		cmocka_unit_test(two_names_format_once),
		cmocka_unit_test(wipe_spares_what_another_node_reports),
		cmocka_unit_test(a_partition_says_whose_it_is),
		cmocka_unit_test(format_is_told_what_was_seen),
		cmocka_unit_test(a_device_is_what_was_seen_of_it),
		cmocka_unit_test(half_made_disk_that_moved),
		cmocka_unit_test(another_disk_has_the_name),
		cmocka_unit_test(a_disk_that_is_away_is_waited_for),
		cmocka_unit_test(the_old_disk_comes_back),
		cmocka_unit_test(the_old_disk_comes_back_in_time),
		cmocka_unit_test(a_disk_that_failed_is_mounted_again),
		cmocka_unit_test(the_disk_is_mounted_not_its_copy),
		cmocka_unit_test(two_that_cannot_be_told_apart),
		cmocka_unit_test(a_copy_is_not_taken_for_it),
		cmocka_unit_test(the_map_is_used_not_its_path),
		cmocka_unit_test(the_uppermost_is_found),
		cmocka_unit_test(a_member_alone_is_not_used),
		cmocka_unit_test(unreadable_is_not_gone),
		cmocka_unit_test(others_need_not_be_readable),
		cmocka_unit_test(a_damaged_brick_is_freed),
		cmocka_unit_test(the_uppermost_mount),
		cmocka_unit_test(links_on_the_way_to_a_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
