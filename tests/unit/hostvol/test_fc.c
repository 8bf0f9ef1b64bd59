/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibre Channel on trees as the adapters of several makers have them (trees/): which units are asked
 * for, on which of this host's ports, and that nothing else is.
 */
#include "fake_san.h"
#include "fake_tree.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define DISKS_MAX 8

/* What the array shows one of this host's ports at one of its own. */
struct unit {
	unsigned host, target;
	uint64_t lun;
	const char *serial;
};

struct scene {
	struct rig *rig;
	struct san san;
	const struct unit *units; /* ended by no serial */
	char scans[400]; /* "H:C:T:L " of each, in order of their text */
	char disks[DISKS_MAX][64]; /* sda, sdb, …: their addresses; "" where gone */
	bool multipath, strict; /* strict: multipathd makes no map by itself, and here not at all */
	unsigned down; /* this host's port that does not answer any more */
	bool all_down, stuck; /* stuck: disks cannot be removed */
	bool resized;
	bool dies; /* who scans for a disk is killed when it has come */
};

static struct scene *scene; /* of the test that runs */

static const struct unit *find_unit(unsigned host, unsigned target, uint64_t lun)
{
	for (const struct unit *u = scene->units; u->serial; u++)
		if (u->host == host && u->target == target && u->lun == lun)
			return u;
	return NULL;
}

/* ---- what the kernel does ------------------------------------------------------------------- */

static void remember(const char *wwid)
{
	cleanup_free char *path = xasprintf("%s/etc/multipath/wwids", scene->san.root);
	cleanup_free char *line = xasprintf("/%s/\n", wwid), *text = NULL, *more = NULL;

	file_read(path, 4096, &text, NULL, NULL);
	if (text && strstr(text, line))
		return;
	more = xasprintf("%s%s", text ? text : "# multipath wwids\n", line);
	tree_put(scene->san.root, more, "/etc/multipath/wwids");
}

static bool is_remembered(const char *wwid)
{
	cleanup_free char *path = xasprintf("%s/etc/multipath/wwids", scene->san.root);
	cleanup_free char *line = xasprintf("\n/%s/\n", wwid), *text = NULL;

	return file_read(path, 4096, &text, NULL, NULL) >= 0 && strstr(text, line);
}

static int fc_run(const struct hostvol_host *host, const struct host_command *command,
		  struct host_result *ret)
{
	cleanup_free char *path = xasprintf("%s/etc/multipath/wwids", scene->san.root);
	cleanup_free char *text = NULL, *line = NULL;

	*ret = (struct host_result){ 0 };
	assert_string_equal(command->argv[0], "multipath");
	if (streq(command->argv[1], "-a")) {
		remember("3600");
		snprintf(ret->out, sizeof(ret->out), "wwid '3600' added\n");
		return 0;
	}
	assert_string_equal(command->argv[1], "-w");
	line = xasprintf("\n/%s/\n", command->argv[2]);
	assert_int_equal(file_read(path, 4096, &text, NULL, NULL), 0);
	assert_non_null(strstr(text, line));
	strstr(text, line)[1] = '#';
	tree_put(scene->san.root, text, "/etc/multipath/wwids");
	return 0;
}

static void join_map(char disk)
{
	const char *root = scene->san.root;

	remember("3600");

	tree_put(root, "253:0", "/sys/block/dm-0/dev");
	tree_put(root, "2048", "/sys/block/dm-0/size");
	tree_put(root, "mpath-3600", "/sys/block/dm-0/dm/uuid");
	tree_put(root, "3600", "/sys/block/dm-0/dm/name");
	tree_put(root, "", "/sys/block/dm-0/slaves/sd%c", disk);
	tree_put(root, "", "/sys/block/sd%c/holders/dm-0", disk);
	tree_put(root, "", "/dev/dm-0");
}

static void make_disk(const char *address)
{
	const char *root = scene->san.root;
	char dev[16], device[100];
	int n = 0;

	while (n < DISKS_MAX && scene->disks[n][0])
		n++;
	assert_true(n < DISKS_MAX);
	snprintf(scene->disks[n], sizeof(scene->disks[n]), "%s", address);
	snprintf(dev, sizeof(dev), "8:%d", n * 16);
	snprintf(device, sizeof(device), "/sys/devices/scsi/%s", address);
	tree_put(root, NULL, "%s/block/sd%c/x", device, 'a' + n);
	tree_put(root, NULL, "/sys/block/sd%c/holders/x", 'a' + n);
	tree_put(root, "2048", "/sys/block/sd%c/size", 'a' + n);
	tree_put(root, dev, "/sys/block/sd%c/dev", 'a' + n);
	tree_link(root, device, "/sys/block/sd%c/device", 'a' + n);
	tree_put(root, "", "/dev/sd%c", 'a' + n);
	tree_link(root, device, "/sys/class/scsi_device/%s/device", address);
	for (n = 0; scene->multipath && !scene->strict && n < DISKS_MAX; n++)
		if (scene->disks[n][0])
			join_map((char)('a' + n));
}

static void remove_disk(char disk)
{
	const char *root = scene->san.root;
	char *address = scene->disks[disk - 'a'];

	tree_drop(root, "/sys/class/scsi_device/%s", address);
	tree_drop(root, "/sys/devices/scsi/%s", address);
	tree_drop(root, "/sys/block/sd%c", disk);
	tree_drop(root, "/dev/sd%c", disk);
	address[0] = '\0';
}

/* Kept in order, since directories have none. */
static void note_scan(const char *address)
{
	char before[sizeof(scene->scans)], *at = scene->scans;

	while (*at && strncmp(at, address, strlen(address)) < 0)
		at += strcspn(at, " ") + 1;
	snprintf(before, sizeof(before), "%s", at);
	snprintf(at, sizeof(scene->scans) - (size_t)(at - scene->scans), "%s %s", address, before);
}

static int fc_write_kernel(const struct hostvol_host *host, const char *path, const char *text,
			   int timeout_ms)
{
	unsigned number, channel, target;
	char address[64], disk;
	uint64_t lun;

	if (sscanf(path, "/sys/class/scsi_host/host%u/scan", &number) == 1) {
		/* a wildcard would bring other volumes along */
		assert_int_equal(sscanf(text, "%u %u %" SCNu64, &channel, &target, &lun), 3);
		snprintf(address, sizeof(address), "%u:%u:%u:%" PRIu64, number, channel, target,
			 lun);
		if (!strstr(scene->scans, address))
			note_scan(address);
		if (channel == 0 && find_unit(number, target, lun))
			make_disk(address);
		if (scene->dies)
			_exit(0);
		return 0;
	}
	assert_int_equal(sscanf(path, "/sys/block/sd%c/device/", &disk), 1);
	if (str_has_suffix(path, "/delete")) {
		if (scene->stuck)
			return -ETIMEDOUT;
		remove_disk(disk);
		return 0;
	}
	assert_true(str_has_suffix(path, "/rescan"));
	if ((unsigned)atoi(scene->disks[disk - 'a']) == scene->down)
		return -EIO;
	tree_put(scene->san.root, "4096", "/sys/block/sd%c/size", disk);
	return 0;
}

static int fc_inquiry(const struct hostvol_host *host, const char *device, unsigned page,
		      unsigned char *buf, size_t size, int timeout_ms)
{
	unsigned number, target;
	const struct unit *u;
	uint64_t lun;

	if (page != 0x80)
		return -EOPNOTSUPP;
	assert_int_equal(
		sscanf(scene->disks[device[7] - 'a'], "%u:0:%u:%" SCNu64, &number, &target, &lun),
		3);
	u = find_unit(number, target, lun);
	if (!u)
		return -EIO;
	memset(buf, 0, size);
	buf[1] = 0x80;
	buf[3] = (unsigned char)strlen(u->serial);
	memcpy(buf + 4, u->serial, strlen(u->serial));
	return (int)strlen(u->serial) + 4;
}

static int fc_claim(const struct hostvol_host *host, const char *device)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* The map writes by any path that lives. */
static int fc_flush(const struct hostvol_host *host, const char *device, int timeout_ms)
{
	bool is_map = streq(device, "/dev/dm-0");
	bool dead = scene->down && !is_map &&
		    (unsigned)atoi(scene->disks[device[7] - 'a']) == scene->down;

	return dead || scene->all_down ? -ENXIO : 0;
}

static bool fc_multipathd_runs(const struct hostvol_host *host)
{
	return scene->multipath;
}

static int fc_multipathd(const struct hostvol_host *host, const char *command, char *reply,
			 size_t size, int timeout_ms)
{
	snprintf(reply, size, scene->strict ? "find_multipaths \"strict\"\n" : "ok\n");
	if (streq(command, "resize map 3600")) {
		tree_put(scene->san.root, "4096", "/sys/block/dm-0/size");
		scene->resized = true;
	}
	if (!streq(command, "del map 3600"))
		return 0;
	tree_drop(scene->san.root, "/sys/block/dm-0");
	tree_drop(scene->san.root, "/dev/dm-0");
	for (int i = 0; i < DISKS_MAX; i++)
		tree_drop(scene->san.root, "/sys/block/sd%c/holders/dm-0", 'a' + i);
	return 0;
}

static int setup(void **state)
{
	struct hostvol_host *host;

	scene = xcalloc(1, sizeof(*scene));
	rig_setup(state);
	scene->rig = *state;
	san_setup(scene->rig, &scene->san);
	host = &scene->rig->fake->host;
	host->run = fc_run;
	host->write_kernel = fc_write_kernel;
	host->inquiry = fc_inquiry;
	host->claim = fc_claim;
	host->flush = fc_flush;
	host->multipathd_runs = fc_multipathd_runs;
	host->multipathd = fc_multipathd;
	return 0;
}

static int teardown(void **state)
{
	rig_teardown(state);
	free(scene);
	return 0;
}

static void load(const char *tree, const struct unit *units)
{
	cleanup_free char *file = xasprintf("%s/%s", getenv("QM_TREES"), tree);

	tree_load(scene->san.root, file);
	scene->units = units;
}

/* targets and more are JSON; what was asked for is compared as text. */
static int connects(const char *targets, const char *lun, const char *more, const char *scans)
{
	cleanup_free char *path = NULL, *json = NULL;
	int r;

	scene->scans[0] = '\0';
	json = xasprintf("{\"driverVolumeType\":\"FIBRE_CHANNEL\",\"data\":{\"volumeId\":\"v\","
			 "\"targetWwn\":%s,\"targetLun\":%s%s}}",
			 targets, lun, more);
	path = rig_connect(scene->rig, json, &r);
	assert_string_equal(scene->scans, scans);
	return r;
}

static void assert_nothing_left(void)
{
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 0);
	assert_int_equal(rig_records(scene->rig), 0);
}

static void ends(void)
{
	assert_int_equal(rig_disconnect(scene->rig, "v", "", 0), 0);
	assert_nothing_left();
}

/* ---- QLogic --------------------------------------------------------------------------------- */

static const struct unit hitachi[] = { { 7, 0, 300, "one" },
				       { 7, 2, 300, "one" },
				       { 8, 0, 300, "one" },
				       { 8, 4, 300, "one" },
				       { 7, 0, 16640, "two" },
				       { 8, 0, 12, "three" },
				       { 0 } };
#define HITACHI                                                                                    \
	"[\"50060e801049cfd1\",\"0x50060E801049CFD2\",\"50:06:0e:80:10:49:cf:d3\","                \
	"\"50060e801049cfd4\"]"

/* Trap 13: just the unit, by the number of the target and not of its port, on all paths. */
static void test_trap_13_qlogic_paths(void **state)
{
	load("qla2xxx", hitachi);
	scene->multipath = true;
	assert_int_equal(connects(HITACHI, "300", ",\"wwn\":\"one\"",
				  "7:0:0:300 7:0:2:300 8:0:0:300 8:0:4:300 "),
			 0);
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 5); /* four, and the map */
	ends();
}

/* One LUN for each of the target's ports. */
static void test_qlogic_numbers(void **state)
{
	load("qla2xxx", hitachi);
	assert_int_equal(
		connects("[\"50060e801049cfd2\",\"50060e801049cfd4\"]", "[12,13]", "", "8:0:0:12 "),
		0);
	ends();
}

/* Trap 14: flat addressing from 256 on. by-path has such a number in hexadecimal. */
static void test_trap_14_qlogic_flat(void **state)
{
	static const char link[] = "/dev/disk/by-path/pci-0000:82:00.0-fc-0x50060e801049cfd1-lun-"
				   "0x4100000000000000";
	cleanup_free char *path = NULL, *found = NULL, *wanted = NULL, *a = NULL, *b = NULL;

	load("qla2xxx", hitachi);
	assert_int_equal(connects("\"50060e801049cfd1\"", "256", ",\"addressingMode\":\"SAM2\"",
				  "7:0:0:16640 "),
			 0);
	tree_link(scene->san.root, "/dev/sda", "%s", link);
	assert_int_equal(hostvol_get_device_path(scene->rig->h, "v", &path, NULL), 0);
	found = xasprintf("%s%s", scene->san.root, link);
	wanted = xasprintf("%s%s", scene->san.root, path);
	a = realpath(found, NULL);
	b = realpath(wanted, NULL);
	assert_non_null(a);
	assert_string_equal(a, b);
	ends();
}

/* Another server's port, one that is gone, and one that ceased to be a target. */
static void test_qlogic_no_target(void **state)
{
	load("qla2xxx", hitachi);
	assert_int_equal(connects("\"21000024ff7f2b20\"", "0", "", ""), -ENOTCONN);
	assert_int_equal(connects("\"50060e801049cfe9\"", "0", "", ""), -ENOTCONN);
	assert_int_equal(connects("\"50060e801049cfea\"", "0", "", ""), -ENOTCONN);
	assert_nothing_left();
}

/* ---- Emulex --------------------------------------------------------------------------------- */

/* The guest's virtual port sees another volume at the same number. */
static const struct unit array[] = {
	{ 1, 0, 5, "ours" }, { 2, 0, 5, "ours" }, { 4, 0, 5, "guest's" }, { 0 }
};
#define ARRAY "[\"21000011c6aa0001\",\"21000011c6aa0002\",\"21000011c6aa0003\"]"
#define MAP                                                                                        \
	",\"initiator_target_map\":{\"100000109b5a6c01\":[\"21000011c6aa0001\","                   \
	"\"21000011c6aa0003\"],\"10:00:00:10:9b:5a:6c:02\":\"21000011c6aa0002\"}"

/* Trap 1: paths to two volumes are never one device. */
static void test_trap_1_emulex_virtual_port(void **state)
{
	load("lpfc", array);
	scene->multipath = true;
	assert_int_equal(connects(ARRAY, "5", ",\"wwn\":\"ours\"", "1:0:0:5 4:0:0:5 "), -ESTALE);
	assert_nothing_left();
}

static void test_emulex_map(void **state)
{
	load("lpfc", array);
	scene->multipath = true;
	assert_int_equal(connects(ARRAY, "5", ",\"wwn\":\"ours\"" MAP, "1:0:0:5 2:0:0:5 "), 0);
	ends();
	assert_int_equal(connects(ARRAY, "5",
				  ",\"initiatorTargetMap\":{\"2101000000000a01\":"
				  "[\"21000011c6aa0001\"]},\"multipath\":false",
				  "4:0:0:5 "),
			 0);
	ends();
	assert_int_equal(connects(ARRAY, "5",
				  ",\"initiatorTargetMap\":{\"100000109b5a6c01\":"
				  "[\"21000011c6aa0002\"]}",
				  ""),
			 -ENOTCONN);
	assert_int_equal(connects(ARRAY, "5", ",\"initiatorTargetMap\":{\"x\":[]}", ""), -EINVAL);
	assert_int_equal(connects(ARRAY, "5", ",\"initiatorTargetMap\":[7]", ""), -EINVAL);
	assert_nothing_left();
}

/* A marginal port answers: it is taken where there is no better one. */
static void test_emulex_marginal(void **state)
{
	load("lpfc", array);
	assert_int_equal(connects(ARRAY, "5", MAP, "1:0:0:5 "), 0);
	ends();
	assert_int_equal(connects("\"21000011c6aa0002\"", "5", "", "2:0:0:5 "), 0);
	ends();
}

/* ---- Cisco ---------------------------------------------------------------------------------- */

static const struct unit flash[] = {
	{ 5, 0, 1, "one" }, { 5, 1, 1, "one" }, { 6, 2, 1, "one" }, { 6, 2, 2, "two" }, { 0 }
};
#define FLASH                                                                                      \
	"[\"524a937000000000\",\"524a937000000010\",\"524a937000000001\",\"524a937000000011\"]"

/* What is blocked or gone is not asked: it would not answer for as long as dev_loss_tmo says. */
static void test_cisco_blocked(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	ends();
	assert_int_equal(connects("\"524a937000000010\"", "1", "", ""), -ENOTCONN);
	assert_int_equal(connects("\"524a937000000011\"", "1", "", ""), -ENOTCONN);
	assert_nothing_left();
}

/* Trap 12: one port of the array does not have the unit; the other one does. */
static void test_trap_12_cisco_second_port(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "2", "", "5:0:0:2 6:0:2:2 "), 0);
	ends();
}

/* A path that is blocked after connect goes with the others: its disk is still there. */
static void test_trap_8_cisco_blocked_later(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	tree_put(scene->san.root, "Blocked", "/sys/class/fc_remote_ports/rport-6:0-0/port_state");
	ends();
}

/* A path that is dead does not keep the others: what was written went through the map. */
static void test_trap_24_cisco_dead_path(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	scene->down = 6;
	ends();
	/* by no path: nothing is touched without force */
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	scene->all_down = true;
	assert_int_equal(rig_disconnect(scene->rig, "v", "", 0), -ENXIO);
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 3);
	scene->all_down = false;
	ends();
}

/* Nor where a call before has come no further than to its map. */
static void test_trap_24_cisco_dead_path_later(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	scene->stuck = true;
	assert_int_equal(rig_disconnect(scene->rig, "v", "", 0), -ETIMEDOUT);
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 2);
	scene->stuck = false;
	scene->all_down = true;
	ends();
	/* of a single disk that never had a map nobody knows: it is asked */
	scene->multipath = scene->all_down = false;
	assert_int_equal(connects("\"524a937000000000\"", "1", "", "5:0:0:1 "), 0);
	scene->all_down = true;
	assert_int_equal(rig_disconnect(scene->rig, "v", "", 0), -ENXIO);
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 1);
	scene->all_down = false;
	ends();
}

/* ---- recorded ------------------------------------------------------------------------------- */

static void has_properties(const char *names)
{
	cleanup_free char *json = NULL;

	assert_int_equal(
		hostvol_get_connector_properties_json(scene->rig->h, true, false, &json, NULL), 0);
	assert_non_null(strstr(json, names));
}

/* What disconnecting would take away. */
static void plans(const char *devices)
{
	cleanup_free char *json = NULL;

	assert_int_equal(hostvol_plan_json(scene->rig->h, "{\"volumeId\":\"v\"}", &json, NULL), 0);
	assert_non_null(strstr(json, devices));
}

static const struct unit ds8000[] = { { 3, 0, 12, "9100" }, { 4, 0, 12, "9100" }, { 0 } };

/* Each fabric has one port of the array, and both are target 0 of their host. */
static void test_recorded_qlogic(void **state)
{
	load("qle2460", ds8000);
	has_properties("\"wwpns\":[\"2100001b32891911\",\"2100001b3289b710\"],"
		       "\"wwnns\":[\"2000001b32891911\",\"2000001b3289b710\"]");
	scene->multipath = true;
	assert_int_equal(connects("[\"500507630a18c54f\",\"500507630a00054f\"]", "12",
				  ",\"wwn\":\"9100\"", "3:0:0:12 4:0:0:12 "),
			 0);
	plans("\"devices\":[\"/dev/dm-0\",\"/dev/sda\",\"/dev/sdb\"]");
	ends();
	assert_int_equal(
		connects("\"500507630a00054f\"", "12", ",\"multipath\":false", "4:0:0:12 "), 0);
	ends();
}

static const struct unit storwize[] = { { 0, 11, 1, "s" }, { 0, 13, 1, "s" }, { 1, 4, 1, "s" },
					{ 1, 5, 1, "s" },  { 0, 0, 1, "d" },  { 0 } };
#define STORWIZE                                                                                   \
	"[\"0x500507680b21bac6\",\"0x500507680b21bac7\",\"0x500507680b22bac6\","                   \
	"\"0x500507680b22bac7\"]"

/* The name by which storage knows the host is NPIV's; the channel's own is another's too. */
static void test_recorded_zfcp(void **state)
{
	load("zfcp", storwize);
	has_properties("\"wwpns\":[\"c05076e511803b48\",\"c05076e511803cb0\"],"
		       "\"wwnns\":[\"5005076400c1b2b8\"]");
	scene->multipath = true;
	assert_int_equal(
		connects(STORWIZE, "1", ",\"wwn\":\"s\"", "0:0:11:1 0:0:13:1 1:0:4:1 1:0:5:1 "), 0);
	plans("\"devices\":[\"/dev/dm-0\",\"/dev/sda\",\"/dev/sdb\",\"/dev/sdc\",\"/dev/sdd\"]");
	ends();
	assert_int_equal(connects(STORWIZE, "1",
				  ",\"wwn\":\"s\",\"initiatorTargetMap\":{\"c05076e511803b48\":"
				  "[\"500507680b22bac6\"]}",
				  "1:0:5:1 "),
			 0);
	ends();
}

/* ---- maps ----------------------------------------------------------------------------------- */

/* Trap 20: with a path down the map keeps its size, and so does what is said of it. */
static void test_trap_20_path_down(void **state)
{
	cleanup_free char *result = NULL, *later = NULL;

	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	scene->down = 6;
	assert_int_equal(hostvol_extend_volume_json(scene->rig->h, "v", &result, NULL), -EIO);
	assert_false(scene->resized);
	scene->down = 0;
	assert_int_equal(hostvol_extend_volume_json(scene->rig->h, "v", &later, NULL), 0);
	assert_true(scene->resized);
	ends();
}

/* Trap 23: what multipathd remembers because of us it forgets with the map; nothing else. */
static void test_trap_23_remembered_names(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	remember("36001");
	remember("13600");
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	assert_true(is_remembered("3600"));
	ends();
	assert_false(is_remembered("3600"));
	remember("3600");
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	ends();
	assert_true(is_remembered("3600"));
	assert_true(is_remembered("36001"));
	assert_true(is_remembered("13600"));
}

/* Trap 23: the name goes also where no map came of it. */
static void test_trap_23_no_map(void **state)
{
	load("fnic", flash);
	scene->multipath = scene->strict = true;
	remember("36001");
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), -ETIMEDOUT);
	assert_false(is_remembered("3600"));
	assert_nothing_left();
	remember("3600");
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), -ETIMEDOUT);
	assert_true(is_remembered("3600"));
	assert_true(is_remembered("36001"));
	assert_nothing_left();
}

/* Trap 1: behind the same paths there is another unit after a reboot, on all of them or on one. */
static void test_trap_1_reconnect(void **state)
{
	static const struct unit all[] = { { 5, 0, 1, "two" }, { 6, 2, 1, "two" }, { 0 } },
				 one[] = { { 5, 0, 1, "one" }, { 6, 2, 1, "two" }, { 0 } };

	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	tree_drop(scene->san.root, "/sys/block/dm-0");
	remove_disk('a');
	remove_disk('b');
	scene->units = all;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 "), -ESTALE);
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 0);
	scene->units = one;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), -ESTALE);
	assert_int_equal(tree_entries(scene->san.root, "/sys/block"), 0);
	assert_int_equal(rig_records(scene->rig), 1);
	scene->units = flash;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	ends();
}

/* The host goes down, and comes up without disks. */
static void reboot(void)
{
	tree_drop(scene->san.root, "/sys/block/dm-0");
	for (int i = 0; i < DISKS_MAX; i++)
		if (scene->disks[i][0])
			remove_disk((char)('a' + i));
	remove_tree(scene->rig->run_dir, NULL);
}

/* A reconnect dies when the first path has come: that is not yet the volume, which had two. */
static void test_killed_reconnect(void **state)
{
	pid_t pid;

	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	reboot();
	scene->strict = scene->dies = true;
	pid = fork();
	if (pid == 0)
		_exit(connects(FLASH, "1", "", ""));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	scene->strict = scene->dies = false;
	snprintf(scene->disks[0], sizeof(scene->disks[0]), "5:0:0:1");
	assert_int_equal(connects(FLASH, "1", "", "6:0:2:1 "), 0);
	plans("\"devices\":[\"/dev/dm-0\",\"/dev/sda\",\"/dev/sdb\"]");
	ends();
}

/* And where it is connected without a map since, none is missed. */
static void test_reconnect_without_a_map(void **state)
{
	load("fnic", flash);
	scene->multipath = true;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 6:0:2:1 "), 0);
	reboot();
	scene->multipath = false;
	assert_int_equal(connects(FLASH, "1", "", "5:0:0:1 "), 0);
	assert_int_equal(connects(FLASH, "1", "", ""), 0);
	ends();
}

#define FC_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FC_TEST(test_trap_13_qlogic_paths),
		FC_TEST(test_qlogic_numbers),
		FC_TEST(test_trap_14_qlogic_flat),
		FC_TEST(test_qlogic_no_target),
		FC_TEST(test_trap_1_emulex_virtual_port),
		FC_TEST(test_emulex_map),
		FC_TEST(test_emulex_marginal),
		FC_TEST(test_cisco_blocked),
		FC_TEST(test_recorded_qlogic),
		FC_TEST(test_recorded_zfcp),
		FC_TEST(test_trap_20_path_down),
		FC_TEST(test_trap_23_remembered_names),
		FC_TEST(test_trap_23_no_map),
		FC_TEST(test_trap_1_reconnect),
		FC_TEST(test_killed_reconnect),
		FC_TEST(test_reconnect_without_a_map),
		FC_TEST(test_trap_12_cisco_second_port),
		FC_TEST(test_trap_8_cisco_blocked_later),
		FC_TEST(test_trap_24_cisco_dead_path),
		FC_TEST(test_trap_24_cisco_dead_path_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
