/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AoE, DRBD and RBD on a tree of the test's own, which their orders change as the kernel would:
 * what must be refused, and every connect and disconnect interrupted at every call to the host.
 */
#include "rig.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "drivers/rbd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALLS_MAX 100
#define KEY "AQDTqGVnAAAAABAAdG9wc2VjcmV0LWtleS0wMQ=="
#define AOE_A                                                                                      \
	"{\"driverVolumeType\":\"AOE\",\"data\":{\"volumeId\":\"a\",\"targetShelf\":7,"            \
	"\"targetLun\":3}}"
#define DRBD_A                                                                                     \
	"{\"driverVolumeType\":\"DRBD\",\"data\":{\"volumeId\":\"a\",\"name\":\"r0\",\"device\":"  \
	"\"/dev/drbd1\",\"config\":\"resource r0 {\\n}\",\"provider_auth\":\"topsecret\"}}"
#define RBD_OF(id, name)                                                                           \
	"{\"driverVolumeType\":\"RBD\",\"data\":{\"volumeId\":\"" id "\",\"name\":\"" name         \
	"\",\"hosts\":[\"192.0.2.1\"],\"ports\":[6789],\"keyring\":\"" KEY "\"}}"
#define RBD_A RBD_OF("a", "one/img")
#define RBD_B RBD_OF("b", "two/img")

static char root[300];
static bool busy;
static int64_t waited_ms;
static char serial[21];
static const char *cluster, *image_id; /* of what is mapped next; NULL: the pool's name */

/* ---- the tree ------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *format, ...)
{
	char path[700], dir[700];
	va_list args;

	snprintf(path, sizeof(path), "%s", root);
	va_start(args, format);
	vsnprintf(path + strlen(path), sizeof(path) - strlen(path), format, args);
	va_end(args);
	snprintf(dir, sizeof(dir), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (mkdir_parents(dir, 0755, NULL) < 0 ||
	    file_write(path, text, strlen(text), 0644, NULL) < 0)
		abort();
}

static void drop(const char *path)
{
	char full[700];

	snprintf(full, sizeof(full), "%s%s", root, path);
	remove_tree(full, NULL);
}

static bool there(const char *path)
{
	char full[700];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return access(full, F_OK) == 0;
}

static void make_disk(const char *name, unsigned minor)
{
	char dev[32], node[64];

	snprintf(node, sizeof(node), "/dev/%s", name);
	for (char *p = node; (p = strchr(p, '!'));)
		*p = '/';
	put("", "%s", node); /* one that is left of a disk that has gone means nothing */
	snprintf(dev, sizeof(dev), "250:%u", minor);
	put(dev, "/sys/block/%s/dev", name);
	put("2048", "/sys/block/%s/size", name);
}

static int disks(void)
{
	char path[700];
	struct dirent *e;
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/sys/block", root);
	d = opendir(path);
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

/* ---- what the kernel and drbd-utils do ------------------------------------------------------ */

#define STEP(host, action)                                                                         \
	do {                                                                                       \
		struct fake *f_ = (host)->userdata;                                                \
		int call_;                                                                         \
                                                                                                   \
		if (fake_begin(f_, &call_))                                                        \
			return -EIO;                                                               \
		return fake_end(f_, call_, (action));                                              \
	} while (0)

static int aoe_order(const char *order, const char *device)
{
	if (streq(order, "flush"))
		drop("/sys/block/etherd!e7.3");
	if (streq(order, "discover") && serial[0]) {
		make_disk("etherd!e7.3", 3);
		put("up", "/sys/block/etherd!e7.3/state");
	}
	return 0;
}

static int fake_aoe(const struct hostvol_host *host, const char *order, const char *device,
		    int timeout_ms)
{
	STEP(host, aoe_order(order, device));
}

static int fake_ata_identify(const struct hostvol_host *host, const char *device,
			     unsigned char *buf, int timeout_ms)
{
	memset(buf, 0, ATA_IDENTIFY_SIZE);
	memcpy(buf + 20, serial, strlen(serial));
	return 0;
}

static int drbd_program(const struct host_command *command, struct host_result *ret)
{
	const char *what = command->argv[1];

	*ret = (struct host_result){ 0 };
	for (const char *const *a = command->argv; *a; a++)
		assert_null(strstr(*a, "topsecret"));
	if (streq(what, "adjust")) {
		cleanup_free char *text = NULL;

		assert_int_equal(file_read(command->argv[3], 4096, &text, NULL, NULL), 0);
		assert_non_null(strstr(text, "shared-secret \"topsecret\""));
		make_disk("drbd1", 1);
	}
	if (streq(what, "down"))
		drop("/sys/block/drbd1");
	if (streq(what, "show")) {
		ret->status = there("/sys/block/drbd1") ? 0 : 10;
		snprintf(ret->out, sizeof(ret->out), "resource r0 { device minor 1; }");
	}
	return 0;
}

static int fake_run(const struct hostvol_host *host, const struct host_command *command,
		    struct host_result *ret)
{
	STEP(host, drbd_program(command, ret));
}

static int rbd_add(const char *text, const unsigned char *secret, size_t len)
{
	char monitors[100], options[200], pool[40], image[40], disk[16];
	int id = 0;

	assert_non_null(memmem(secret, len, "topsecret", 9));
	assert_null(strstr(text, KEY));
	if (sscanf(text, "%99s %199s %39s %39s", monitors, options, pool, image) != 4)
		return -EINVAL;
	do
		snprintf(disk, sizeof(disk), "/rbd%d", id++);
	while (there(disk));
	id--;
	snprintf(disk, sizeof(disk), "rbd%d", id);
	put("", "/%s", disk);
	put(text, "/sys/bus/rbd/devices/%d/config_info", id);
	put(cluster, "/sys/bus/rbd/devices/%d/cluster_fsid", id);
	put(image_id ? image_id : pool, "/sys/bus/rbd/devices/%d/image_id", id);
	put("-", "/sys/bus/rbd/devices/%d/current_snap", id);
	put("", "/sys/bus/rbd/devices/%d/pool_ns", id);
	put(image, "/sys/bus/rbd/devices/%d/name", id);
	put(pool, "/sys/bus/rbd/devices/%d/pool", id);
	make_disk(disk, (unsigned)id);
	return 0;
}

static int fake_rbd_add(const struct hostvol_host *host, const char *path, const char *text,
			const unsigned char *secret, size_t len, int timeout_ms)
{
	STEP(host, rbd_add(text, secret, len));
}

static int rbd_remove(const char *path, const char *text)
{
	char name[100];

	if (!streq(path, "/sys/bus/rbd/remove"))
		return -ENOENT;
	snprintf(name, sizeof(name), "/sys/bus/rbd/devices/%c", text[0]);
	drop(name);
	snprintf(name, sizeof(name), "/sys/block/rbd%c", text[0]);
	drop(name);
	snprintf(name, sizeof(name), "/rbd%c", text[0]);
	drop(name);
	return 0;
}

static int fake_write_kernel(const struct hostvol_host *host, const char *path, const char *text,
			     int timeout_ms)
{
	STEP(host, rbd_remove(path, text));
}

static int fake_claim(const struct hostvol_host *host, const char *device)
{
	return busy ? -EBUSY : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int fake_flush(const struct hostvol_host *host, const char *device, int timeout_ms)
{
	STEP(host, 0);
}

static int fake_writers(const struct hostvol_host *host, unsigned major, unsigned minor, char *buf,
			size_t size)
{
	buf[0] = '\0';
	return 0;
}

static int fake_events_open(const struct hostvol_host *host)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int fake_events_wait(const struct hostvol_host *host, int fd, int timeout_ms)
{
	waited_ms += timeout_ms;
	return 0;
}

static int64_t fake_mono_ms(const struct hostvol_host *host)
{
	return host_real.mono_ms(&host_real) + waited_ms;
}

static int fake_stat(const struct hostvol_host *host, const char *path, struct host_stat *ret,
		     int timeout_ms)
{
	*ret = (struct host_stat){ .type = HOST_FILE_BLOCK,
				   .size = 1 << 20,
				   .major = 250,
				   .minor = (unsigned)(path[strlen(path) - 1] - '0') };
	return 0;
}

static int setup(void **state)
{
	struct hostvol_host *host;
	struct rig *rig;

	rig_setup(state);
	rig = *state;
	snprintf(root, sizeof(root), "%s/root", rig->dir);
	host = &rig->fake->host;
	host->root = root;
	host->aoe = fake_aoe;
	host->ata_identify = fake_ata_identify;
	host->run = fake_run;
	host->rbd_add = fake_rbd_add;
	host->write_kernel = fake_write_kernel;
	host->claim = fake_claim;
	host->flush = fake_flush;
	host->writers = fake_writers;
	host->events_open = fake_events_open;
	host->events_wait = fake_events_wait;
	host->mono_ms = fake_mono_ms;
	host->stat = fake_stat;
	put("", "/sys/bus/rbd/add");
	put("", "/sys/bus/rbd/remove");
	snprintf(serial, sizeof(serial), "serial-a");
	cluster = "f-1";
	image_id = NULL;
	busy = false;
	return 0;
}

static int connects(struct rig *rig, const char *json)
{
	cleanup_free char *path = NULL;
	int r;

	path = rig_connect(rig, json, &r);
	return r;
}

static void assert_state(struct rig *rig, int records, int disk_count)
{
	assert_int_equal(rig_records(rig), records);
	assert_int_equal(disks(), disk_count);
}

/* ---- tests ---------------------------------------------------------------------------------- */

static void test_in_use(void **state)
{
	static const char *const volumes[] = { AOE_A, DRBD_A, RBD_A };

	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++) {
		assert_int_equal(connects(*state, volumes[i]), 0);
		assert_state(*state, 1, 1);
		busy = true;
		assert_int_equal(rig_disconnect(*state, "a", "", 0), -EBUSY);
		assert_state(*state, 1, 1);
		busy = false;
		assert_int_equal(rig_disconnect(*state, "a", "", 0), 0);
		assert_state(*state, 0, 0);
	}
}

static void test_aoe_identity(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *path = NULL;

	serial[0] = '\0';
	assert_int_equal(connects(rig, AOE_A), -ENOENT);
	assert_state(rig, 0, 0);
	snprintf(serial, sizeof(serial), "serial-a");
	assert_int_equal(connects(rig, AOE_A), 0);
	snprintf(serial, sizeof(serial), "serial-x");
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, NULL), -ESTALE);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_state(rig, 0, 0);
}

/* Another volume is there than the record says: refused, both are named, and nothing is left of it. */
static void assert_refused(struct rig *rig, const char *json, const char *now, const char *before)
{
	cleanup_free char *record = NULL, *list = NULL;
	struct hostvol_error err = { 0 };

	assert_int_equal(hostvol_connect_volume_json(rig->h, json, &record, &err), -ESTALE);
	assert_non_null(strstr(err.message, now));
	assert_non_null(strstr(err.message, before));
	assert_non_null(strstr(err.message, "hostvol forget a"));
	assert_state(rig, 1, 0);
	assert_int_equal(hostvol_list_json(rig->h, "a", &list, NULL), 0);
	assert_non_null(strstr(list, "\"attached\""));
	assert_null(strstr(list, now));
}

static void test_aoe_reconnect(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(connects(rig, AOE_A), 0);
	snprintf(serial, sizeof(serial), "serial-x");
	assert_refused(rig, AOE_A, "serial.serial-x", "serial.serial-a");
	drop("/sys/block/etherd!e7.3");
	assert_refused(rig, AOE_A, "serial.serial-x", "serial.serial-a");
	snprintf(serial, sizeof(serial), "serial-a");
	assert_int_equal(connects(rig, AOE_A), 0);
}

/* The image was removed, and another one has its name; or the monitors are another cluster's. */
static void test_rbd_reconnect(void **state)
{
	struct rig *rig = *state;

	image_id = "1f00";
	assert_int_equal(connects(rig, RBD_A), 0);
	assert_int_equal(rbd_remove("/sys/bus/rbd/remove", "0"), 0);
	remove_tree(rig->run_dir, NULL);
	image_id = "2f00";
	assert_refused(rig, RBD_A, "image 2f00 of cluster f-1", "image 1f00 of cluster f-1");
	image_id = "1f00";
	cluster = "f-2";
	assert_refused(rig, RBD_A, "image 1f00 of cluster f-2", "image 1f00 of cluster f-1");
	cluster = "f-1";
	assert_int_equal(connects(rig, RBD_A), 0);
	assert_state(rig, 1, 1);
}

/* Somebody has mapped the image of the cluster that is behind these monitors now. */
static void map_for_another(void)
{
	static const unsigned char key[] = "topsecret";

	assert_int_equal(rbd_add("192.0.2.1:6789 name=admin one img -", key, sizeof(key)), 0);
}

static void assert_another_stays(struct rig *rig, const char *json)
{
	cleanup_free char *record = NULL;
	struct hostvol_error err = { 0 };

	for (int i = 0; i < 3; i++) {
		assert_int_equal(hostvol_connect_volume_json(rig->h, json, &record, &err), -ESTALE);
		assert_non_null(strstr(err.message, "f-2"));
		assert_non_null(strstr(err.message, "f-1"));
		assert_int_equal(disks(), 1);
		assert_true(there("/sys/bus/rbd/devices/0"));
	}
}

/* It is neither mapped once more nor taken away, whatever was ours before. */
static void test_rbd_reconnect_beside_another(void **state)
{
	static const char known[] =
		"{\"driverVolumeType\":\"RBD\",\"data\":{\"volumeId\":\"k\",\"name\":\"one/img\","
		"\"hosts\":\"192.0.2.1\",\"ports\":6789,\"keyring\":\"" KEY "\","
		"\"clusterFsid\":\"f-1\"}}";
	struct rig *rig = *state;

	for (int reboot = 0; reboot < 2; reboot++) {
		assert_int_equal(connects(rig, RBD_A), 0);
		assert_int_equal(rbd_remove("/sys/bus/rbd/remove", "0"), 0);
		if (reboot)
			remove_tree(rig->run_dir, NULL);
		cluster = "f-2";
		map_for_another();
		assert_another_stays(rig, RBD_A);
		assert_int_equal(rig_records(rig), 1);
		assert_another_stays(rig, known);
		assert_int_equal(rig_records(rig), 1);
		assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
		assert_state(rig, 0, 1);
		assert_int_equal(rbd_remove("/sys/bus/rbd/remove", "0"), 0);
		cluster = "f-1";
	}
}

/* What one consumer's attempt has mapped may be another's: it stays, once, until the last goes. */
static void test_rbd_reconnect_of_two(void **state)
{
	static const char other[] =
		"{\"driverVolumeType\":\"RBD\",\"consumer\":\"other\",\"data\":{\"volumeId\":\"a\","
		"\"name\":\"one/img\",\"hosts\":\"192.0.2.1\",\"keyring\":\"" KEY "\"}}";
	struct rig *rig = *state;

	assert_int_equal(connects(rig, RBD_A), 0);
	assert_int_equal(connects(rig, other), 0);
	assert_int_equal(rbd_remove("/sys/bus/rbd/remove", "0"), 0);
	cluster = "f-2";
	for (int i = 0; i < 3; i++) {
		assert_int_equal(connects(rig, RBD_A), -ESTALE);
		assert_int_equal(connects(rig, other), -ESTALE);
		assert_state(rig, 2, 1);
	}
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig_disconnect(rig, "a", "other", 0), 0);
	assert_state(rig, 0, 0);
}

/* A reconnect that dies when it has mapped the stranger: the next one takes that away. */
static void test_rbd_killed_reconnect(void **state)
{
	struct rig *rig = *state;
	bool mapped = false;

	for (int at = rig_first_fault(), ended = 0; !ended; at += rig_fault_step()) {
		pid_t pid;

		cluster = "f-1";
		assert_int_equal(connects(rig, RBD_A), 0);
		assert_int_equal(rbd_remove("/sys/bus/rbd/remove", "0"), 0);
		cluster = "f-2";
		fake_set_fault(rig->fake, FAULT_DIE_AFTER, at);
		pid = fork();
		if (pid == 0)
			_exit(connects(rig, RBD_A) < 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		ended = atomic_load(&rig->fake->calls) < at;
		fake_set_fault(rig->fake, FAULT_NONE, 0);
		mapped |= disks() > 0;
		assert_refused(rig, RBD_A, "cluster f-2", "cluster f-1");
		assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
		assert_state(rig, 0, 0);
	}
	assert_true(mapped || rig_fault_step() > 1);
}

/* Trap 6: the same image name in two pools. */
static void test_rbd_pools(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *path = NULL;

	assert_int_equal(connects(rig, RBD_A), 0);
	assert_int_equal(connects(rig, RBD_B), 0);
	assert_state(rig, 2, 2);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_state(rig, 1, 1);
	assert_int_equal(hostvol_get_device_path(rig->h, "b", &path, NULL), 0);
	assert_string_equal(path, "/dev/rbd1");
	/* another cluster's image in its place */
	put("f-2", "/sys/bus/rbd/devices/1/cluster_fsid");
	free(TAKE_PTR(path));
	assert_int_equal(hostvol_get_device_path(rig->h, "b", &path, NULL), -ENOENT);
	assert_int_equal(rig_disconnect(rig, "b", "", 0), 0);
	assert_state(rig, 0, 1); /* that one is not ours to take away */
}

/* A mapping that was there before stays. */
static void test_rbd_others(void **state)
{
	static const unsigned char key[] = "topsecret";

	assert_int_equal(rbd_add("192.0.2.1:6789 name=admin one img -", key, sizeof(key)), 0);
	assert_int_equal(connects(*state, RBD_A), 0);
	assert_state(*state, 1, 1);
	assert_int_equal(rig_disconnect(*state, "a", "", 0), 0);
	assert_state(*state, 0, 1);
}

/* The lock goes with the mapping: one that somebody made without it will not do. */
static void test_rbd_exclusive(void **state)
{
	static const char alone[] =
		"{\"driverVolumeType\":\"RBD\",\"data\":{\"volumeId\":\"a\","
		"\"name\":\"one/img\",\"hosts\":\"192.0.2.1\",\"keyring\":\"" KEY
		"\",\"exclusive\":\"true\"}}";
	static const unsigned char key[] = "topsecret";
	cleanup_free char *path = xasprintf("%s/sys/bus/rbd/devices/0/config_info", root),
			  *text = NULL;

	assert_int_equal(connects(*state, alone), 0);
	assert_int_equal(file_read(path, 0, &text, NULL, NULL), 0);
	assert_non_null(strstr(text, ",exclusive,lock_timeout="));
	assert_int_equal(connects(*state, alone), 0);
	assert_int_equal(rig_disconnect(*state, "a", "", 0), 0);
	assert_int_equal(rbd_add("192.0.2.1:6789 name=admin one img -", key, sizeof(key)), 0);
	assert_int_equal(connects(*state, alone), -EBUSY);
	assert_state(*state, 0, 1);
}

/* Died or failed at every call: the same again works, and then nothing is left. */
static void interrupt(struct rig *rig, const char *json, enum fake_fault fault, bool disconnecting)
{
	for (int at = rig_first_fault(); at < CALLS_MAX; at += rig_fault_step()) {
		int status;
		pid_t pid;

		if (disconnecting)
			assert_int_equal(connects(rig, json), 0);
		pid = fork();
		if (pid == 0) {
			fake_set_fault(rig->fake, fault, at);
			if (disconnecting)
				rig_disconnect(rig, "a", "", 0);
			else
				connects(rig, json);
			_exit(rig->fake->calls < at ? 1 : 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		fake_set_fault(rig->fake, FAULT_NONE, 0);
		if (disconnecting)
			assert_true(rig_disconnect(rig, "a", "", 0) >= 0);
		else
			assert_int_equal(connects(rig, json), 0);
		assert_true(rig_disconnect(rig, "a", "", 0) >= 0);
		assert_state(rig, 0, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
			return;
	}
	fail_msg("it never got through");
}

static void test_interrupted(void **state)
{
	static const char *const volumes[] = { AOE_A, DRBD_A, RBD_A };
	static const enum fake_fault faults[] = { FAULT_DIE_BEFORE, FAULT_DIE_AFTER, FAULT_FAIL };

	for (size_t i = 0; i < ARRAY_SIZE(volumes); i++)
		for (size_t f = 0; f < ARRAY_SIZE(faults); f++) {
			interrupt(*state, volumes[i], faults[f], false);
			interrupt(*state, volumes[i], faults[f], true);
		}
}

/* Trap 21 */
static void test_secrets(void **state)
{
	struct rig *rig = *state;
	cleanup_free char *command = NULL;

	assert_int_equal(connects(rig, DRBD_A), 0);
	command = xasprintf("! grep -r -q -e topsecret -e 'resource r0' %s/state %s/run", rig->dir,
			    rig->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(connects(rig, RBD_A), 0);
	free(TAKE_PTR(command));
	command = xasprintf("! grep -r -q %s %s", KEY, rig->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
}

static void test_rbd_texts(void **state)
{
	cleanup_free char *text = NULL;
	unsigned char key[64];
	struct rbd_image image;
	bool v2;

	assert_int_equal(rbd_name_parse("p/i", &image, NULL), 0);
	assert_string_equal(image.space, "");
	assert_int_equal(rbd_name_parse("p/n/i", &image, NULL), 0);
	assert_string_equal(image.space, "n");
	assert_string_equal(image.image, "i");
	assert_int_equal(rbd_name_parse("i", &image, NULL), -EINVAL);
	assert_int_equal(rbd_name_parse("p/i@s", &image, NULL), -EINVAL);
	assert_int_equal(rbd_name_parse("p/", &image, NULL), -EINVAL);
	assert_int_equal(rbd_monitors("192.0.2.1,2001:db8::1", "6789", &text, &v2, NULL), 0);
	assert_string_equal(text, "192.0.2.1:6789,[2001:db8::1]:6789");
	assert_false(v2);
	free(TAKE_PTR(text));
	assert_int_equal(rbd_monitors("a,a", "3300,6789", &text, &v2, NULL), 0);
	assert_string_equal(text, "a:6789");
	free(TAKE_PTR(text));
	assert_int_equal(rbd_monitors("a,b", "3300", &text, &v2, NULL), 0);
	assert_string_equal(text, "a:3300,b:3300");
	assert_true(v2);
	assert_int_equal(rbd_key_parse("[client.x]\n\tkey = " KEY "\n", key, sizeof(key), NULL),
			 28);
	assert_memory_equal(key + 12, "topsecret-key-01", 16);
	assert_int_equal(rbd_key_parse(KEY, key, sizeof(key), NULL), 28);
	assert_int_equal(rbd_key_parse("not a key!", key, sizeof(key), NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_use, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_aoe_identity, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_aoe_reconnect, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_reconnect, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_reconnect_beside_another, setup,
						rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_reconnect_of_two, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_killed_reconnect, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_pools, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_others, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_rbd_exclusive, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_interrupted, setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_secrets, setup, rig_teardown),
		cmocka_unit_test(test_rbd_texts),
	};

	return cmocka_run_group_tests_name("hostvol-single", tests, NULL, NULL);
}
