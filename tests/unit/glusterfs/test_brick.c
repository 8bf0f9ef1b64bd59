/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/*
 * One device and one directory in memory. `crash_at` N lets the Nth writing operation be the last
 * that happens: it and all after it fail, as if the agent had died there.
 */
struct model {
	struct node_host host;
	char signature[32], uuid[UUID_TEXT_MAX];
	bool present, in_use, moved, broken;
	bool mounted;
	const char *path; /* of the brick: NULL for order's */
	bool in_volume, glusterd_down;
	json_t *marker, *record;
	bool files;
	int writes, crash_at, formats;
};

static struct model *model(struct node_host *h)
{
	return (struct model *)h;
}

static bool crashed(struct model *m)
{
	m->writes++;
	return m->crash_at > 0 && m->writes >= m->crash_at;
}

static void m_probe(struct node_host *h, const char *device, struct device_facts *f)
{
	struct model *m = model(h);

	*f = (struct device_facts){ .block = true,
				    .size = 2LL << 30,
				    .in_use = m->in_use || m->mounted };
	if (!m->present || m->moved)
		f->error = ENOENT;
	snprintf(f->signature, sizeof(f->signature), "%s", m->signature);
	snprintf(f->uuid, sizeof(f->uuid), "%s", m->uuid);
}

static int m_find(struct node_host *h, const struct disk_wanted *w,
		char device[static DEVICE_PATH_MAX],
		  struct error *err)
{
	struct model *m = model(h);

	if (!m->present || !streq(m->uuid, w->uuid))
		return -ENOENT;
	snprintf(device, DEVICE_PATH_MAX, "%s", m->moved ? "/dev/vdz" : "/dev/vdb");
	return 0;
}

static int m_format(struct node_host *h, const char *device, const struct device_facts *seen,
		    const char *uuid, const char *label, struct error *err)
{
	struct model *m = model(h);

	if (m->in_use || m->mounted)
		return -EBUSY;
	if (!streq(m->signature, seen->signature) || !streq(m->uuid, seen->uuid))
		return -ESTALE;
	assert_true(strlen(label) <= 12);
	if (crashed(m)) {
		/* half a file system: the signature is there, mounting fails */
		m->broken = true;
		snprintf(m->signature, sizeof(m->signature), "xfs");
		snprintf(m->uuid, sizeof(m->uuid), "%s", uuid);
		return -EIO;
	}
	m->broken = false;
	m->formats++;
	m->files = false;
	json_decref(m->marker);
	m->marker = NULL;
	snprintf(m->signature, sizeof(m->signature), "xfs");
	snprintf(m->uuid, sizeof(m->uuid), "%s", uuid);
	return 0;
}

static int m_mount(struct node_host *h, const char *device, const char *uuid,
		   const char *mountpoint, struct error *err)
{
	struct model *m = model(h);

	if (m->broken)
		return -EINVAL;
	assert_string_equal(m->uuid, uuid);
	assert_string_equal(mountpoint, "/bricks/b-0123456789ab");
	if (crashed(m))
		return -ETIMEDOUT;
	m->mounted = true;
	return 0;
}

static int m_unmount(struct node_host *h, const char *mountpoint, struct error *err)
{
	assert_string_equal(mountpoint, "/bricks/b-0123456789ab");
	if (crashed(model(h)))
		return -EIO;
	model(h)->mounted = false;
	return 0;
}

static int m_wipe(struct node_host *h, const char *device, const char *uuid, struct error *err)
{
	struct model *m = model(h);

	assert_string_equal(m->uuid, uuid);
	if (crashed(m))
		return -EIO;
	m->signature[0] = m->uuid[0] = '\0';
	return 0;
}

static int m_marker_read(struct node_host *h, const char *root, json_t **ret, struct error *err)
{
	struct model *m = model(h);

	if (!m->marker)
		return m->files ? -ENOTEMPTY : -ENOENT;
	*ret = json_incref(m->marker);
	return 0;
}

static int m_marker_write(struct node_host *h, const char *root, const json_t *marker,
			  struct error *err)
{
	if (crashed(model(h)))
		return -EIO;
	json_decref(model(h)->marker);
	model(h)->marker = json_deep_copy(marker);
	return 0;
}

static int m_record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	if (!model(h)->record)
		return -ENOENT;
	*ret = json_deep_copy(model(h)->record);
	return 0;
}

static int m_record_put(struct node_host *h, const char *name, const json_t *record,
			struct error *err)
{
	if (crashed(model(h)))
		return -EIO;
	json_decref(model(h)->record);
	model(h)->record = json_deep_copy(record);
	return 0;
}

static int m_record_remove(struct node_host *h, const char *name, struct error *err)
{
	if (crashed(model(h)))
		return -EIO;
	json_decref(model(h)->record);
	model(h)->record = NULL;
	return 0;
}

static int m_record_list(struct node_host *h, const char *prefix, struct strv *ret,
			 struct error *err)
{
	if (model(h)->record)
		strv_add(ret, "brick.b-0123456789ab");
	return 0;
}

static int m_glusterd(struct node_host *h, bool start, struct glusterd_state *ret,
		      struct error *err)
{
	assert_false(start);
	*ret = (struct glusterd_state){ .running = !model(h)->glusterd_down };
	return 0;
}

static int m_volume_get(struct node_host *h, const char *name, enum volume_look look,
			struct gluster_volume *ret, struct error *err)
{
	assert_string_equal(name, "p-1");
	if (!model(h)->in_volume)
		return -ENOENT;
	gluster_volume_add_brick(ret, "10.0.0.2", "/bricks/b-ffffffffffff/brick");
	gluster_volume_add_brick(ret, "10.0.0.1", model(h)->path);
	return 0;
}

static const struct node_host_ops ops = {
	.glusterd_ensure = m_glusterd,
	.volume_get = m_volume_get,
	.probe_device = m_probe,
	.find_device = m_find,
	.format = m_format,
	.mount = m_mount,
	.unmount = m_unmount,
	.wipe = m_wipe,
	.marker_read = m_marker_read,
	.marker_write = m_marker_write,
	.record_get = m_record_get,
	.record_put = m_record_put,
	.record_remove = m_record_remove,
	.record_list = m_record_list,
};

#define OLD_PATH "/bricks/b-0123456789ab/brick" /* of stores made before */
#define PATH "/bricks/b-0123456789ab/.quartermaster-b-0123456789ab/brick"

static const struct brick_order order = { .id = "b-0123456789ab",
					  .device = "/dev/vdb",
					  .path = PATH,
					  .pool = "p-1",
					  .node_uid = "uid-1" };

static void model_init(struct model *m)
{
	*m = (struct model){ .host = { .ops = &ops }, .present = true, .path = PATH };
}

static void model_done(struct model *m)
{
	json_decref(m->marker);
	json_decref(m->record);
}

static const char *prepare(struct model *m, const struct brick_order *o, struct brick_result *r)
{
	char uuid[UUID_TEXT_MAX];

	*r = (struct brick_result){ .verdict = { .state = "Failed", .reason = "" } };
	if (brick_choose(&m->host, o, uuid, NULL) == 0)
		brick_prepare(&m->host, o, r);
	return r->verdict.state;
}

static void test_prepare(void **state)
{
	struct model m;
	struct brick_result r;

	model_init(&m);
	assert_string_equal(prepare(&m, &order, &r), "Ready");
	assert_string_equal(m.uuid, r.uuid);
	assert_string_equal(jstr(m.marker, "id"), order.id);
	assert_string_equal(prepare(&m, &order, &r), "Ready");
	assert_int_equal(m.formats, 1);
	model_done(&m);
}

/* A store made before has the brick at the root of its file system: mounted and freed as ever. */
static void test_old_layout(void **state)
{
	struct brick_order old = order;
	struct model m;
	struct brick_result r;

	model_init(&m);
	m.path = old.path = OLD_PATH;
	assert_string_equal(prepare(&m, &old, &r), "Ready");
	m.in_volume = true;
	assert_int_equal(brick_release(&m.host, old.id, NULL), -EBUSY);
	m.in_volume = false;
	assert_int_equal(brick_release(&m.host, old.id, NULL), 0);
	assert_string_equal(m.signature, "");
	model_done(&m);
}

/* Died at every step in turn; the next life always gets there, formats at most once more, and only its own. */
static void test_crash_anywhere(void **state)
{
	for (int at = 1; at < 12; at++) {
		struct model m;
		struct brick_result r;

		model_init(&m);
		m.crash_at = at;
		prepare(&m, &order, &r);
		m.crash_at = 0;
		assert_string_equal(prepare(&m, &order, &r), "Ready");
		assert_int_equal(m.formats, 1);
		model_done(&m);
	}
}

static void test_record_lost(void **state)
{
	struct model m;
	struct brick_result r;
	struct brick_order known = order;
	char uuid[UUID_TEXT_MAX];

	model_init(&m);
	prepare(&m, &order, &r);
	json_decref(m.record);
	m.record = NULL;
	m.mounted = false;
	memcpy(uuid, r.uuid, sizeof(uuid));
	/* the API remembers: it is found again */
	known.known_uuid = uuid;
	known.known_ready = true;
	assert_string_equal(prepare(&m, &known, &r), "Ready");
	assert_int_equal(m.formats, 1);
	/* it could not be mounted when it was last reported, nor now; but its pool has used it */
	json_decref(m.record);
	m.record = NULL;
	m.mounted = false;
	m.broken = true;
	known.known_ready = false;
	known.prepared = true;
	assert_string_equal(prepare(&m, &known, &r), "Failed");
	assert_string_equal(r.verdict.reason, "MountFailed");
	assert_int_equal(m.formats, 1);
	m.broken = false;
	/* nobody remembers which file system it was; that it was in use is enough, whatever wipe says */
	json_decref(m.record);
	m.record = NULL;
	m.mounted = false;
	known.known_uuid = NULL;
	known.wipe = true;
	assert_string_equal(prepare(&m, &known, &r), "Failed");
	assert_null(m.record);
	assert_int_equal(m.formats, 1);
	/* nobody remembers: a file system like any other */
	json_decref(m.record);
	m.record = NULL;
	m.mounted = false;
	assert_string_equal(prepare(&m, &order, &r), "Refused");
	assert_string_equal(r.verdict.reason, "Signature");
	assert_int_equal(m.formats, 1);
	model_done(&m);
}

static void test_foreign(void **state)
{
	struct model m;
	struct brick_result r;
	struct brick_order wipe = order;

	model_init(&m);
	snprintf(m.signature, sizeof(m.signature), "ext4");
	assert_string_equal(prepare(&m, &order, &r), "Refused");
	m.in_use = true;
	wipe.wipe = true;
	assert_string_equal(prepare(&m, &wipe, &r), "Refused");
	assert_string_equal(r.verdict.reason, "InUse");
	assert_int_equal(m.formats, 0);
	m.in_use = false;
	assert_string_equal(prepare(&m, &wipe, &r), "Ready");
	assert_int_equal(m.formats, 1);
	model_done(&m);
}

static void test_ready_is_never_formatted(void **state)
{
	struct model m;
	struct brick_result r;
	struct brick_order wipe = order;

	model_init(&m);
	prepare(&m, &order, &r);
	wipe.wipe = true;
	m.mounted = false;
	m.broken = true;
	assert_string_equal(prepare(&m, &wipe, &r), "Failed");
	assert_string_equal(r.verdict.reason, "MountFailed");
	m.broken = false;
	m.present = false;
	assert_string_equal(prepare(&m, &wipe, &r), "Missing");
	m.present = true;
	json_decref(m.marker);
	m.marker = NULL;
	assert_string_equal(prepare(&m, &wipe, &r), "Failed");
	assert_string_equal(r.verdict.reason, "MarkerMissing");
	m.marker = json_pack("{s:s, s:s}", "id", order.id, "node", "uid-2");
	assert_string_equal(prepare(&m, &wipe, &r), "Failed");
	assert_string_equal(r.verdict.reason, "ForeignBrick");
	assert_int_equal(m.formats, 1);
	model_done(&m);
}

static void test_moved(void **state)
{
	struct model m;
	struct brick_result r;

	model_init(&m);
	prepare(&m, &order, &r);
	m.mounted = false;
	m.moved = true;
	assert_string_equal(prepare(&m, &order, &r), "Ready");
	assert_string_equal(r.device, "/dev/vdz");
	model_done(&m);
}

static void test_release(void **state)
{
	for (int at = 1; at < 8; at++) {
		struct model m;
		struct brick_result r;

		model_init(&m);
		prepare(&m, &order, &r);
		m.writes = 0;
		m.crash_at = at;
		brick_release(&m.host, order.id, NULL);
		m.crash_at = 0;
		assert_int_equal(brick_release(&m.host, order.id, NULL), 0);
		assert_null(m.record);
		assert_false(m.mounted);
		assert_string_equal(m.signature, "");
		/* and may come back, as a new one */
		assert_string_equal(prepare(&m, &order, &r), "Ready");
		assert_int_equal(m.formats, 2);
		model_done(&m);
	}
}

/* A brick that is here for one pool is not given to another that has got its name. */
static void test_names_come_again(void **state)
{
	struct brick_order old = order, new = order;
	struct brick_result r;
	struct model m;

	old.pool_uid = "uid-a";
	new.pool_uid = "uid-b";
	model_init(&m);
	assert_string_equal(prepare(&m, &old, &r), "Ready");
	assert_string_equal(jstr(m.record, "poolUid"), "uid-a");
	assert_true(brick_known(&m.host, old.id, "uid-a"));
	assert_false(brick_known(&m.host, new.id, "uid-b"));
	assert_string_equal(prepare(&m, &new, &r), "Failed");
	brick_prepare(&m.host, &new, &r);
	assert_string_equal(r.verdict.reason, "OtherPool");
	assert_string_equal(jstr(m.record, "poolUid"), "uid-a");
	/* when it was let go of, it is made anew */
	assert_int_equal(brick_release(&m.host, old.id, NULL), 0);
	assert_string_equal(prepare(&m, &new, &r), "Ready");
	assert_string_equal(jstr(m.record, "poolUid"), "uid-b");
	assert_int_equal(m.formats, 2);
	/* the pool was declared anew, and says itself that it has it in use: that one's it is */
	old.prepared = true;
	assert_string_equal(prepare(&m, &old, &r), "Ready");
	assert_string_equal(jstr(m.record, "poolUid"), "uid-a");
	assert_int_equal(m.formats, 2);
	model_done(&m);
}

/* Records of before name no pool's uid. */
static void test_old_record_learns_its_pool(void **state)
{
	struct brick_order o = order;
	struct brick_result r;
	struct model m;

	model_init(&m);
	assert_string_equal(prepare(&m, &o, &r), "Ready");
	assert_null(jget(m.record, "poolUid"));
	assert_true(brick_known(&m.host, o.id, "uid-a"));
	o.pool_uid = "uid-a";
	assert_string_equal(prepare(&m, &o, &r), "Ready");
	assert_string_equal(jstr(m.record, "poolUid"), "uid-a");
	assert_true(jbool(m.record, "ready"));
	/* and an operator of before does not say it */
	o.pool_uid = NULL;
	assert_string_equal(prepare(&m, &o, &r), "Ready");
	assert_string_equal(jstr(m.record, "poolUid"), "uid-a");
	model_done(&m);
}

/* An order to let go of what a volume still has is not carried out, whoever gave it. */
static void test_release_of_a_member(void **state)
{
	struct model m;
	struct brick_result r;
	struct error err = ERROR_INIT;

	model_init(&m);
	prepare(&m, &order, &r);
	m.in_volume = true;
	assert_int_equal(brick_release(&m.host, order.id, &err), -EBUSY);
	assert_non_null(strstr(err.message, "still part of volume p-1"));
	assert_true(m.mounted);
	assert_string_equal(m.signature, "xfs");
	assert_false(jbool(m.record, "released"));
	m.glusterd_down = true; /* who cannot be asked has not agreed */
	assert_int_equal(brick_release(&m.host, order.id, NULL), -EAGAIN);
	assert_true(m.mounted);
	m.glusterd_down = m.in_volume = false;
	assert_int_equal(brick_release(&m.host, order.id, NULL), 0);
	model_done(&m);
}

static void test_release_of_a_missing_disk(void **state)
{
	struct model m;
	struct brick_result r;

	model_init(&m);
	prepare(&m, &order, &r);
	m.present = false;
	assert_int_equal(brick_release(&m.host, order.id, NULL), 1);
	assert_string_equal(prepare(&m, &order, &r), "Failed");
	/* its old data never comes back as a brick */
	m.present = true;
	assert_string_equal(prepare(&m, &order, &r), "Ready");
	assert_int_equal(m.formats, 2);
	model_done(&m);
}

static void test_orders(void **state)
{
	struct brick_order o = order;

	assert_true(brick_order_valid(&o));
	o.path = OLD_PATH;
	assert_true(brick_order_valid(&o));
	o.path = "/bricks/other/brick";
	assert_false(brick_order_valid(&o));
	o.path = "/bricks/b-0123456789ab/.quartermaster-b-ffffffffffff/brick";
	assert_false(brick_order_valid(&o));
	o.path = "/bricks/.quartermaster-b-0123456789ab/brick";
	assert_false(brick_order_valid(&o));
	o.path = "/bricks/../b-0123456789ab/brick";
	assert_false(brick_order_valid(&o));
	o = order;
	o.id = "../x";
	assert_false(brick_order_valid(&o));
	o = order;
	o.directory = "/d";
	assert_false(brick_order_valid(&o));
	o.device = NULL;
	o.path = "/d/.quartermaster-b-0123456789ab/brick";
	assert_true(brick_order_valid(&o));
}

static void test_duplicates(void **state)
{
	struct device_facts a = { .block = true, .major = 8, .minor = 16 }, b = a;

	assert_true(device_same(&a, &b));
	b.minor = 32;
	assert_false(device_same(&a, &b));
	snprintf(a.wwn, sizeof(a.wwn), "naa.5000");
	snprintf(b.wwn, sizeof(b.wwn), "naa.5000");
	assert_true(device_same(&a, &b));
	b.error = ENOENT;
	assert_false(device_same(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prepare),
		cmocka_unit_test(test_old_layout),
		cmocka_unit_test(test_crash_anywhere),
		cmocka_unit_test(test_record_lost),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_ready_is_never_formatted),
		cmocka_unit_test(test_moved),
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_names_come_again),
		cmocka_unit_test(test_old_record_learns_its_pool),
		cmocka_unit_test(test_release_of_a_member),
		cmocka_unit_test(test_release_of_a_missing_disk),
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_duplicates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
