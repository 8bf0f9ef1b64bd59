/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_san.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "fake_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static struct san *the_san; /* of the test that runs; a fork has its own copy */

#define put(...) tree_put(the_san->root, __VA_ARGS__)
#define link_to(...) tree_link(the_san->root, __VA_ARGS__)
#define drop(...) tree_drop(the_san->root, __VA_ARGS__)

static bool there(const char *format, unsigned n)
{
	char path[600], name[100];

	snprintf(name, sizeof(name), "/%s%u", format, n);
	snprintf(path, sizeof(path), "%s%s", the_san->root, name);
	return access(path, F_OK) == 0;
}

/* ---- what the kernel does ------------------------------------------------------------------- */

static void make_session(void)
{
	static const char device[] = "/sys/devices/platform/host3/session1";

	put(NULL, "%s/x", device);
	put("192.0.2.1", "/sys/class/iscsi_connection/connection1:0/persistent_address");
	put("3260", "/sys/class/iscsi_connection/connection1:0/persistent_port");
	put("hostvol", "/sys/class/iscsi_session/session1/ifacename");
	put("LOGGED_IN", "/sys/class/iscsi_session/session1/state");
	put("0", "/sys/class/iscsi_session/session1/target_id");
	put("1", "/sys/class/iscsi_session/session1/tpgt");
	link_to(device, "/sys/class/iscsi_session/session1/device");
	put(SAN_IQN, "/sys/class/iscsi_session/session1/targetname");
}

static void make_disk(unsigned lun)
{
	char device[100], dev[16];

	snprintf(device, sizeof(device),
		 "/sys/devices/platform/host3/session1/target3:0:0/3:0:0:%u", lun);
	snprintf(dev, sizeof(dev), "8:%u", lun * 16);
	put(NULL, "%s/block/sd%c/x", device, 'a' + (int)lun);
	put(NULL, "/sys/block/sd%c/holders/x", 'a' + (int)lun);
	put("2048", "/sys/block/sd%c/size", 'a' + (int)lun);
	put(dev, "/sys/block/sd%c/dev", 'a' + (int)lun);
	link_to(device, "/sys/block/sd%c/device", 'a' + (int)lun);
	put("", "/dev/sd%c", 'a' + (int)lun);
	put(NULL, "/sys/class/scsi_device/3:0:0:%u/x", lun);
	link_to(device, "/sys/class/scsi_device/3:0:0:%u/device", lun);
}

static void remove_disk(unsigned lun)
{
	drop("/sys/class/scsi_device/3:0:0:%u", lun);
	drop("/sys/block/sd%c", 'a' + (int)lun);
	drop("/dev/sd%c", 'a' + (int)lun);
	drop("/sys/devices/platform/host3/session1/target3:0:0/3:0:0:%u", lun);
}

static void remove_session(void)
{
	for (unsigned lun = 0; lun < 10; lun++)
		remove_disk(lun);
	drop("/sys/class/iscsi_session/session1");
	drop("/sys/class/iscsi_connection/connection1:0");
}

/* ---- time ----------------------------------------------------------------------------------- */

static int64_t waited_ms; /* what was waited for, in no time */
static int64_t gone_ms; /* when the disk goes that was removed last */
static unsigned going; /* which one */

static int64_t san_mono_ms(const struct hostvol_host *host)
{
	return host_real.mono_ms(&host_real) + waited_ms;
}

/* All else that happens has happened at once: who waits still, waits in vain. */
static int san_events_wait(const struct hostvol_host *host, int fd, int timeout_ms)
{
	waited_ms += timeout_ms;
	if (gone_ms && san_mono_ms(host) >= gone_ms) {
		remove_disk(going);
		gone_ms = 0;
	}
	return 0;
}

/* ---- operations ----------------------------------------------------------------------------- */

#define SAN_STEP(host, error, action)                                                              \
	do {                                                                                       \
		struct fake *f_ = (host)->userdata;                                                \
		int call_;                                                                         \
                                                                                                   \
		if (fake_begin(f_, &call_))                                                        \
			return (error);                                                            \
		return fake_end(f_, call_, (action));                                              \
	} while (0)

static int iscsiadm(const struct host_command *command, struct host_result *ret)
{
	*ret = (struct host_result){ 0 };
	for (const char *const *a = command->argv; *a; a++) {
		if (streq(*a, "-l") && san_node_records(the_san) == 0) {
			ret->status = 21;
			snprintf(ret->err, sizeof(ret->err), "iscsiadm: No records found\n");
			return 0;
		}
		if (streq(*a, "-l"))
			make_session();
		if (streq(*a, "-u"))
			remove_session();
	}
	return 0;
}

static int san_run(const struct hostvol_host *host, const struct host_command *command,
		   struct host_result *ret)
{
	SAN_STEP(host, -EIO, iscsiadm(command, ret));
}

static int kernel_write(const char *path, const char *text)
{
	unsigned lun;
	char disk;

	if (str_has_suffix(path, "/scan") && sscanf(text, "0 0 %u", &lun) == 1 &&
	    there("luns/", lun))
		make_disk(lun);
	if (sscanf(path, "/sys/block/sd%c/device/delete", &disk) == 1 &&
	    str_has_suffix(path, "delete")) {
		the_san->removals++;
		going = (unsigned)(disk - 'a');
		gone_ms = the_san->removal_ms ? san_mono_ms(NULL) + the_san->removal_ms : 0;
		if (!gone_ms)
			remove_disk(going);
	}
	return 0;
}

static int san_write_kernel(const struct hostvol_host *host, const char *path, const char *text,
			    int timeout_ms)
{
	SAN_STEP(host, -EIO, kernel_write(path, text));
}

static int inquiry(const char *device, unsigned page, unsigned char *buf, size_t size)
{
	char path[600];
	cleanup_free char *serial = NULL;
	size_t len;

	snprintf(path, sizeof(path), "%s/luns/%u", the_san->root, (unsigned)(device[7] - 'a'));
	if (page != 0x80)
		return -EOPNOTSUPP;
	if (file_read(path, 100, &serial, &len, NULL) < 0)
		return -EIO;
	memset(buf, 0, size);
	buf[1] = 0x80;
	buf[3] = (unsigned char)len;
	memcpy(buf + 4, serial, len);
	return (int)len + 4;
}

static int san_inquiry(const struct hostvol_host *host, const char *device, unsigned page,
		       unsigned char *buf, size_t size, int timeout_ms)
{
	SAN_STEP(host, -EIO, inquiry(device, page, buf, size));
}

static int san_claim(const struct hostvol_host *host, const char *device)
{
	if (there("busy/", (unsigned)(device[7] - 'a')))
		return -EBUSY;
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int san_flush(const struct hostvol_host *host, const char *device, int timeout_ms)
{
	int ms = the_san->flush_ms < timeout_ms ? the_san->flush_ms : timeout_ms;

	waited_ms += ms;
	SAN_STEP(host, -EIO, ms < the_san->flush_ms ? -ETIMEDOUT : 0);
}

static int san_writers(const struct hostvol_host *host, unsigned major, unsigned minor, char *buf,
		       size_t size)
{
	buf[0] = '\0';
	return 0;
}

static int san_events_open(const struct hostvol_host *host)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int san_stat(const struct hostvol_host *host, const char *path, struct host_stat *ret,
		    int timeout_ms)
{
	*ret = (struct host_stat){ .type = HOST_FILE_BLOCK,
				   .size = 1 << 20,
				   .major = 8,
				   .minor = (unsigned)(path[7] - 'a') * 16 };
	return 0;
}

static bool san_multipathd_runs(const struct hostvol_host *host)
{
	return false;
}

void san_setup(struct rig *rig, struct san *san)
{
	struct hostvol_host *host = &rig->fake->host;

	*san = (struct san){ .fake = rig->fake };
	snprintf(san->root, sizeof(san->root), "%s/root", rig->dir);
	the_san = san;
	host->root = san->root;
	host->run = san_run;
	host->write_kernel = san_write_kernel;
	host->inquiry = san_inquiry;
	host->claim = san_claim;
	host->flush = san_flush;
	host->writers = san_writers;
	host->events_open = san_events_open;
	host->events_wait = san_events_wait;
	host->mono_ms = san_mono_ms;
	host->stat = san_stat;
	host->multipathd_runs = san_multipathd_runs;
	put(NULL, "/etc/iscsi/nodes/x");
	put(NULL, "/busy/x");
	put(NULL, "/luns/x");
}

void san_export(const struct san *san, unsigned lun, const char *serial)
{
	if (serial[0])
		put(serial, "/luns/%u", lun);
	else
		drop("/luns/%u", lun);
}

void san_set_busy(const struct san *san, unsigned lun, bool busy)
{
	if (busy)
		put("", "/busy/%u", lun);
	else
		drop("/busy/%u", lun);
}

void san_reboot(const struct rig *rig, const struct san *san)
{
	remove_session();
	remove_tree(rig->run_dir, NULL);
}

int san_sessions(const struct san *san)
{
	return tree_entries(san->root, "/sys/class/iscsi_session");
}

int san_disks(const struct san *san)
{
	return tree_entries(san->root, "/sys/block");
}

static int access_record(const char *group)
{
	char path[600];

	snprintf(path, sizeof(path), "%s/etc/iscsi/nodes/" SAN_IQN "/192.0.2.1,3260,%s/hostvol",
		 the_san->root, group);
	return access(path, F_OK) == 0;
}

int san_node_records(const struct san *san)
{
	return access_record("0") + access_record("1");
}
