/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vendors' drivers, interrupted at every call to the host: the process dies before or after
 * the call's effect, or the call fails. Then recovery, or the next call, must end in order, and
 * what was there before must be there again.
 */
#include "fake_tree.h"
#include "fake_vendors.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALLS_MAX 200
#define FORGET_A "{\"volumeId\":\"a\"}"

static bool is_here(const struct rig *rig, const struct vendor *v)
{
	return v->device ? fake_device(rig->fake, v->device)->there : rig->fake->mount_count > 0;
}

static int disconnect_with(struct rig *rig, const struct vendor *v, unsigned flags)
{
	cleanup_free char *json = vendor_json(rig, v), *out = NULL;

	return hostvol_disconnect_volume_json(rig->h, json, flags, &out, NULL);
}

static int connect_with(struct rig *rig, const struct vendor *v, struct hostvol_error *err)
{
	cleanup_free char *json = vendor_json(rig, v), *out = NULL;

	return hostvol_connect_volume_json(rig->h, json, &out, err);
}

static bool has_file(const struct rig *rig, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", rig->dir, name);

	return access(path, F_OK) == 0;
}

/* Nothing is connected, and nothing else is left of it. */
static void assert_clean(struct rig *rig, const struct vendor *v)
{
	assert_false(is_here(rig, v));
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
	assert_false(has_file(rig, "etc/pstorage/clusters/c"));
	assert_false(has_file(rig, "state/vzstorage-c"));
}

static void assert_usable(struct rig *rig, const struct vendor *v)
{
	cleanup_free char *found = NULL;
	struct hostvol_error err = { 0 };

	if (connect_with(rig, v, &err) != 0)
		fail_msg("%s: %s", v->json, err.message);
	assert_true(is_here(rig, v));
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &found, NULL), 0);
	if (v->device)
		assert_string_equal(found, v->device);
	assert_int_equal(disconnect_with(rig, v, 0), 0);
	assert_clean(rig, v);
}

static int act_in_child(struct rig *rig, const struct vendor *v, bool disconnect)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit((disconnect ? disconnect_with(rig, v, 0) : connect_with(rig, v, NULL)) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool interrupt_at(const struct vendor *v, bool disconnect, enum fake_fault fault, int at,
			 bool recover)
{
	struct rig *rig = vendor_rig();
	cleanup_free char *done = NULL;
	void *state = rig;
	int calls;

	if (disconnect)
		assert_int_equal(connect_with(rig, v, NULL), 0);
	fake_set_fault(rig->fake, fault, at);
	act_in_child(rig, v, disconnect);
	calls = atomic_load(&rig->fake->calls);
	fake_set_fault(rig->fake, FAULT_NONE, 0);
	/* without the password nobody can ask the gateway again: only the next call has it */
	if (recover && !strstr(v->json, "SCALEIO")) {
		assert_int_equal(hostvol_recover_json(rig->h, &done, NULL), 0);
		if (rig_records(rig) == 0)
			assert_clean(rig, v);
		else
			assert_true(is_here(rig, v));
	}
	assert_usable(rig, v);
	rig_teardown(&state);
	return calls >= at;
}

static void run_all(enum fake_fault fault, bool recover)
{
	for (size_t i = 0; i < VENDOR_COUNT * 2; i++) {
		int at = rig_first_fault();

		while (interrupt_at(&vendors[i / 2], i % 2, fault, at, recover)) {
			at += rig_fault_step();
			assert_true(at < CALLS_MAX);
		}
		assert_true(at > 4);
	}
}

static void test_die_before(void **state)
{
	run_all(FAULT_DIE_BEFORE, true);
	run_all(FAULT_DIE_BEFORE, false);
}

static void test_die_after(void **state)
{
	run_all(FAULT_DIE_AFTER, true);
	run_all(FAULT_DIE_AFTER, false);
}

static void test_fail(void **state)
{
	run_all(FAULT_FAIL, true);
	run_all(FAULT_FAIL, false);
}

/* A storage system that says no, or nothing, leaves all as it was. */
static void test_refusals(void **state)
{
	for (size_t i = 0; i < VENDOR_COUNT * 2; i++) {
		const struct vendor *v = &vendors[i / 2];
		struct rig *rig = vendor_rig();
		struct hostvol_error err = { 0 };
		void *to_free = rig;

		rig->fake->refuses = i % 2;
		rig->fake->unreachable = !(i % 2);
		assert_true(connect_with(rig, v, &err) < 0);
		assert_string_not_equal(err.message, "");
		assert_null(strstr(err.message, SECRET));
		assert_clean(rig, v);
		rig_teardown(&to_free);
	}
}

/* What was there before a connect that fails is there afterwards. */
static void test_found_stays(void **state)
{
	for (size_t i = 0; i < VENDOR_COUNT; i++) {
		struct rig *rig = vendor_rig();
		void *to_free = rig;

		if (vendors[i].device) {
			fake_device(rig->fake, vendors[i].device)->there = true;
			rig->fake->refuses = true;
			/* DISCO asks nobody for a device that is here */
			if (connect_with(rig, &vendors[i], NULL) < 0)
				assert_int_equal(rig_records(rig), 0);
			assert_true(is_here(rig, &vendors[i]));
		}
		rig_teardown(&to_free);
	}
}

/* After a reboot the vendor's software brings another device to the same path. */
static void test_another_device(void **state)
{
	for (size_t i = 0; i < VENDOR_COUNT; i++) {
		struct rig *rig = vendor_rig();
		struct hostvol_error err = { 0 };
		void *to_free = rig;

		if (vendors[i].device) {
			tree_put(rig->dir, "naa.mine", "/sys/dev/block/7:0/wwid");
			assert_int_equal(connect_with(rig, &vendors[i], NULL), 0);
			fake_device(rig->fake, vendors[i].device)->there = false;
			tree_put(rig->dir, "naa.stranger", "/sys/dev/block/7:0/wwid");
			for (int n = 0; n < 2; n++)
				assert_int_equal(connect_with(rig, &vendors[i], &err), -ESTALE);
			assert_non_null(strstr(err.message, "naa.mine"));
			assert_non_null(strstr(err.message, "naa.stranger"));
			assert_int_equal(rig_records(rig), 1);
			tree_put(rig->dir, "naa.mine", "/sys/dev/block/7:0/wwid");
			assert_int_equal(connect_with(rig, &vendors[i], NULL), 0);
		}
		rig_teardown(&to_free);
	}
}

/* A device that said nothing of itself when it was connected is known as soon as it does. */
static void test_named_later(void **state)
{
	struct rig *rig = vendor_rig();
	cleanup_free char *list = NULL;
	void *to_free = rig;

	assert_int_equal(connect_with(rig, &vendors[0], NULL), 0);
	tree_put(rig->dir, "naa.mine", "/sys/dev/block/7:0/wwid");
	assert_int_equal(connect_with(rig, &vendors[0], NULL), 0);
	assert_int_equal(hostvol_list_json(rig->h, "a", &list, NULL), 0);
	assert_non_null(strstr(list, "naa.mine"));
	tree_put(rig->dir, "naa.stranger", "/sys/dev/block/7:0/wwid");
	assert_int_equal(connect_with(rig, &vendors[0], NULL), -ESTALE);
	rig_teardown(&to_free);
}

/* The name is another volume's by now. */
static void test_scaleio_name(void **state)
{
	static const struct vendor named = {
		"{\"driverVolumeType\":\"SCALEIO\",\"data\":{\"scaleIoVolname\":\"vol\",\"serverIp\":"
		"\"h\",\"server_username\":\"u\",\"server_password\":\"p\",\"volumeId\":\"a\"}}",
		"/dev/disk/by-id/emc-vol-1-abc1"
	};
	struct rig *rig = vendor_rig();
	struct hostvol_error err = { 0 };
	void *to_free = rig;

	rig->fake->sio_id = "abc1";
	assert_int_equal(connect_with(rig, &named, NULL), 0);
	fake_device(rig->fake, named.device)->there = false;
	rig->fake->sio_id = "def2";
	for (int n = 0; n < 2; n++)
		assert_int_equal(connect_with(rig, &named, &err), -ESTALE);
	assert_non_null(strstr(err.message, "abc1"));
	assert_non_null(strstr(err.message, "def2"));
	assert_false(fake_device(rig->fake, named.device)->there);
	rig->fake->sio_id = "abc1";
	assert_int_equal(connect_with(rig, &named, NULL), 0);
	rig_teardown(&to_free);
}

static int connect_json(struct rig *rig, const char *json, struct hostvol_error *err)
{
	cleanup_free char *out = NULL;

	return hostvol_connect_volume_json(rig->h, json, &out, err);
}

/* Who names it by its id, and who by its name, mean one volume: their volumeId says so. */
static void test_scaleio_id_and_name(void **state)
{
#define SIO_OF(consumer, which)                                                                    \
	"{\"driverVolumeType\":\"SCALEIO\",\"consumer\":\"" consumer                               \
	"\",\"data\":{\"serverIp\":\"h\",\"serverUsername\":\"u\",\"serverPassword\":\"p\","       \
	"\"volumeId\":\"a\"," which "}}"
#define SIO_ID(consumer, id) SIO_OF(consumer, "\"scaleIoVolumeId\":\"" id "\"")
#define SIO_NAME(consumer) SIO_OF(consumer, "\"scaleIoVolname\":\"vol\"")
	struct rig *rig = vendor_rig();
	struct hostvol_error err = { 0 };
	void *to_free = rig;

	rig->fake->sio_id = "def2";
	fake_device(rig->fake, "/dev/disk/by-id/emc-vol-1-abc1");
	assert_int_equal(connect_json(rig, SIO_ID("one", "abc1"), &err), 0);
	assert_int_equal(connect_json(rig, SIO_NAME("two"), &err), -ESTALE);
	assert_non_null(strstr(err.message, "abc1"));
	assert_non_null(strstr(err.message, "def2"));
	assert_int_equal(connect_json(rig, SIO_ID("two", "def2"), &err), -ESTALE);
	rig->fake->sio_id = "abc1";
	assert_int_equal(connect_json(rig, SIO_NAME("two"), &err), 0);
	assert_int_equal(rig_records(rig), 2);
	rig_teardown(&to_free);
}

static void put_name(struct rig *rig, const char *file, const char *value)
{
	tree_drop(rig->dir, "/sys/dev/block");
	tree_put(rig->dir, value, "/sys/dev/block/7:0/%s", file);
}

/* A link may lead to the disk, or to the multipath map that was made of it meanwhile, and back. */
static void test_disk_and_map(void **state)
{
	struct rig *rig = vendor_rig();
	struct hostvol_error err = { 0 };
	void *to_free = rig;

	put_name(rig, "device/wwid", "naa.600140581f1c2a9e0000400080000000");
	assert_int_equal(connect_with(rig, &vendors[0], NULL), 0);
	put_name(rig, "dm/uuid", "mpath-3600140581f1c2a9e0000400080000000");
	assert_int_equal(connect_with(rig, &vendors[0], &err), 0);
	put_name(rig, "dm/uuid", "mpath-3600140581f1c2a9e0000400080000001");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	put_name(rig, "dm/uuid", "LVM-600140581f1c2a9e0000400080000000");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	put_name(rig, "device/wwid", "t10.ATA     QEMU HARDDISK     QM00001");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	put_name(rig, "device/wwid", "naa.600140581f1c2a9e0000400080000000");
	assert_int_equal(connect_with(rig, &vendors[0], &err), 0);
	rig_teardown(&to_free);
}

/* A disk of a virtual machine has a serial number of its own, an array of disks a UUID. */
static void test_other_names(void **state)
{
	static const char *const files[] = { "serial", "md/uuid" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		struct rig *rig = vendor_rig();
		void *to_free = rig;

		put_name(rig, files[i], "mine");
		assert_int_equal(connect_with(rig, &vendors[0], NULL), 0);
		put_name(rig, files[i], "stranger");
		assert_int_equal(connect_with(rig, &vendors[0], NULL), -ESTALE);
		rig_teardown(&to_free);
	}
}

/* A partition is known by its disk, and its number there. */
static void test_partition(void **state)
{
	struct rig *rig = vendor_rig();
	struct hostvol_error err = { 0 };
	void *to_free = rig;

	tree_put(rig->dir, "1", "/sys/dev/block/7:0/partition");
	tree_put(rig->dir, "naa.mine", "/sys/dev/block/device/wwid"); /* above it: its disk's */
	assert_int_equal(connect_with(rig, &vendors[0], NULL), 0);
	tree_put(rig->dir, "naa.stranger", "/sys/dev/block/device/wwid");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	assert_non_null(strstr(err.message, "naa.mine"));
	assert_non_null(strstr(err.message, "naa.stranger"));
	tree_put(rig->dir, "naa.mine", "/sys/dev/block/device/wwid");
	tree_put(rig->dir, "2", "/sys/dev/block/7:0/partition");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	/* nor is the whole disk, or its map, the partition; but that of the map is */
	put_name(rig, "device/wwid", "naa.mine");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	put_name(rig, "dm/uuid", "mpath-naa.mine");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	put_name(rig, "dm/uuid", "part2-mpath-naa.mine");
	assert_int_equal(connect_with(rig, &vendors[0], &err), -ESTALE);
	put_name(rig, "dm/uuid", "part1-mpath-naa.mine");
	assert_int_equal(connect_with(rig, &vendors[0], &err), 0);
	tree_drop(rig->dir, "/sys/dev/block/7:0");
	tree_put(rig->dir, "1", "/sys/dev/block/7:0/partition");
	tree_put(rig->dir, "naa.mine", "/sys/dev/block/device/wwid");
	assert_int_equal(connect_with(rig, &vendors[0], &err), 0);
	rig_teardown(&to_free);
}

static int forgets(struct rig *rig, const char *json, struct hostvol_error *err)
{
	cleanup_free char *gone = NULL;

	return hostvol_forget_json(rig->h, json, &gone, err);
}

/* Who has to ask a gateway for it needs the password, which no record has. */
static void test_forget_with_secrets(void **state)
{
	static const struct vendor *const sio = &vendors[3];
	struct rig *rig = vendor_rig();
	struct hostvol_error err = { 0 };
	cleanup_free char *json = vendor_json(rig, sio);
	void *to_free = rig;

	put_name(rig, "wwid", "naa.mine");
	assert_int_equal(connect_with(rig, sio, &err), 0);
	put_name(rig, "wwid", "naa.stranger");
	assert_int_equal(connect_with(rig, sio, &err), -ESTALE);
	assert_int_equal(forgets(rig, FORGET_A, &err), -EACCES);
	assert_int_equal(rig_records(rig), 1);
	assert_true(is_here(rig, sio));
	assert_int_equal(forgets(rig, json, &err), 0);
	assert_clean(rig, sio);
	assert_null(strstr(rig->log, SECRET));
	assert_int_equal(forgets(rig, json, &err), 1);
	assert_int_equal(connect_with(rig, sio, &err), 0);
	rig_teardown(&to_free);
}

/* What was of this host already ends for nobody who still uses it. */
static void test_forget_local_in_use(void **state)
{
	static const char local[] = "{\"driverVolumeType\":\"LOCAL\",\"consumer\":\"/pod/x\","
				    "\"data\":{\"devicePath\":\"/dev/l\",\"volumeId\":\"a\"}}";
	struct rig *rig = vendor_rig();
	struct fake_device *d = fake_device(rig->fake, "/dev/l");
	struct hostvol_error err = { 0 };
	void *to_free = rig;

	d->there = true;
	put_name(rig, "wwid", "naa.mine");
	assert_int_equal(connect_json(rig, local, &err), 0);
	put_name(rig, "wwid", "naa.stranger");
	d->busy = true;
	assert_int_equal(forgets(rig, FORGET_A, &err), -EBUSY);
	assert_non_null(strstr(err.message, "/dev/l"));
	d->busy = false;
	fake_mount(rig->fake, "/dev/l", "/pod/x", "xfs");
	assert_int_equal(forgets(rig, FORGET_A, &err), -EBUSY);
	assert_non_null(strstr(err.message, "/pod/x"));
	d->there = false;
	assert_int_equal(forgets(rig, FORGET_A, &err), -EBUSY);
	assert_int_equal(rig_records(rig), 1);
	rig->fake->mount_count = 0;
	assert_int_equal(forgets(rig, FORGET_A, &err), 0);
	assert_int_equal(rig_records(rig), 0);
	rig_teardown(&to_free);
}

static void test_in_use(void **state)
{
	for (size_t i = 0; i < VENDOR_COUNT; i++) {
		const struct vendor *v = &vendors[i];
		struct rig *rig = vendor_rig();
		cleanup_free char *path = NULL;
		void *to_free = rig;

		assert_int_equal(connect_with(rig, v, NULL), 0);
		if (v->device)
			fake_device(rig->fake, v->device)->busy = true;
		else
			rig->fake->mounts[0].busy = true;
		assert_int_equal(disconnect_with(rig, v, 0), -EBUSY);
		assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, NULL), 0);
		assert_int_equal(disconnect_with(rig, v, HOSTVOL_FORCE), 0);
		assert_clean(rig, v);
		rig_teardown(&to_free);
	}
}

/* In no record, no argument, no variable, no line of the log. */
static void test_secrets(void **state)
{
	for (size_t i = 0; i < VENDOR_COUNT; i++) {
		struct rig *rig = vendor_rig();
		cleanup_free char *list = NULL;
		void *to_free = rig;

		assert_int_equal(connect_with(rig, &vendors[i], NULL), 0);
		assert_int_equal(hostvol_list_json(rig->h, NULL, &list, NULL), 0);
		assert_null(strstr(list, SECRET));
		assert_non_null(strstr(list, "\"health\":\"ok\""));
		assert_null(strstr(rig->fake->seen, SECRET));
		assert_int_equal(disconnect_with(rig, &vendors[i], 0), 0);
		assert_null(strstr(rig->fake->seen, SECRET));
		assert_null(strstr(rig->log, SECRET));
		rig_teardown(&to_free);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_die_before),  cmocka_unit_test(test_die_after),
		cmocka_unit_test(test_fail),	    cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_found_stays), cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_secrets),	    cmocka_unit_test(test_another_device),
		cmocka_unit_test(test_scaleio_name), cmocka_unit_test(test_named_later),
		cmocka_unit_test(test_scaleio_id_and_name), cmocka_unit_test(test_disk_and_map),
		cmocka_unit_test(test_forget_with_secrets),
		cmocka_unit_test(test_forget_local_in_use),
		cmocka_unit_test(test_other_names), cmocka_unit_test(test_partition),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
