/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Persistent reservations of real devices: changed through the kernel's own ioctls, which speak SCSI
 * and NVMe alike, and read with a command of the protocol, since kernels before 6.5 cannot be asked.
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/fence.h"
#include "csi/node_service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <linux/pr.h>
#include <scsi/sg.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define TRIES 4 /* the first answers may only tell what happened meanwhile (unit attention) */
#define COMMAND_MS 5000
#define TYPE PR_WRITE_EXCLUSIVE_REG_ONLY

/* ---- reading: SCSI ---------------------------------------------------------------------------- */

#define PR_IN 0x5e
#define READ_KEYS 0
#define READ_RESERVATION 1
#define ANSWER_MAX 1024 /* room for FENCE_KEYS_MAX keys */
#define SCSI_CONFLICT 0x18
#define SENSE_ILLEGAL 5
#define SENSE_ATTENTION 6

static uint32_t be32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const unsigned char *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static int sense_key(const unsigned char *sense)
{
	return ((sense[0] & 0x7f) >= 0x72 ? sense[1] : sense[2]) & 0xf;
}

static int scsi_once(int fd, unsigned char action, unsigned char *answer)
{
	unsigned char cdb[10] = { PR_IN, action, [7] = ANSWER_MAX >> 8, [8] = ANSWER_MAX & 0xff };
	unsigned char sense[32] = { 0 };
	struct sg_io_hdr io = { .interface_id = 'S',
				.dxfer_direction = SG_DXFER_FROM_DEV,
				.cmd_len = sizeof(cdb),
				.mx_sb_len = sizeof(sense),
				.dxfer_len = ANSWER_MAX,
				.dxferp = answer,
				.cmdp = cdb,
				.sbp = sense,
				.timeout = COMMAND_MS };

	memset(answer, 0, ANSWER_MAX);
	if (ioctl(fd, SG_IO, &io) < 0)
		return errno == EIO || errno == ENODEV || errno == ENXIO || errno == EBADF
			       ? -errno
			       : -EOPNOTSUPP;
	if (io.status == SCSI_CONFLICT)
		return -EBUSY;
	if (io.status && sense_key(sense) == SENSE_ATTENTION)
		return -EAGAIN;
	if (io.status && sense_key(sense) == SENSE_ILLEGAL)
		return -EOPNOTSUPP;
	return io.status || io.host_status ? -EIO : 0;
}

static int scsi_ask(int fd, unsigned char action, unsigned char *answer)
{
	int r = -EAGAIN;

	for (int i = 0; i < TRIES && r == -EAGAIN; i++)
		r = scsi_once(fd, action, answer);
	return r == -EAGAIN ? -EIO : r;
}

static int scsi_look(int fd, struct fence_view *ret)
{
	unsigned char answer[ANSWER_MAX];
	struct fence_view v = { 0 };
	int r = scsi_ask(fd, READ_KEYS, answer);

	if (r < 0)
		return r;
	v.generation = be32(answer);
	v.count = be32(answer + 4) / 8;
	if (v.count > FENCE_KEYS_MAX)
		v.count = FENCE_KEYS_MAX;
	for (size_t i = 0; i < v.count; i++)
		v.keys[i] = be64(answer + 8 + 8 * i);
	r = scsi_ask(fd, READ_RESERVATION, answer);
	if (r < 0)
		return r;
	if (be32(answer + 4) >= 16)
		v.holder = be64(answer + 8);
	*ret = v;
	return 0;
}

/* ---- reading: NVMe ---------------------------------------------------------------------------- */

#define RESERVATION_REPORT 0x0e
#define REPORT_MAX 8192
#define REPORT_HEAD 64 /* and for each registrant, in the extended form */
#define NVME_CODE 0x7ff
#define NVME_INVALID_OPCODE 0x01
#define NVME_CONFLICT 0x83

static uint64_t le(const unsigned char *p, size_t bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | p[bytes];
	return v;
}

static int nvme_look(int fd, unsigned nsid, struct fence_view *ret)
{
	unsigned char report[REPORT_MAX] = { 0 };
	struct nvme_passthru_cmd cmd = { .opcode = RESERVATION_REPORT,
					 .nsid = nsid,
					 .addr = (uint64_t)(uintptr_t)report,
					 .data_len = sizeof(report),
					 .cdw10 = sizeof(report) / 4 - 1,
					 .cdw11 = 1,
					 .timeout_ms = COMMAND_MS };
	int r = ioctl(fd, NVME_IOCTL_IO_CMD, &cmd);
	struct fence_view v = { 0 };

	if (r != 0)
		return r < 0 ? -errno : (r & NVME_CODE) == NVME_INVALID_OPCODE ? -EOPNOTSUPP : -EIO;
	v.generation = (uint32_t)le(report, 4);
	v.count = le(report + 5, 2);
	if (v.count > FENCE_KEYS_MAX)
		v.count = FENCE_KEYS_MAX;
	for (size_t i = 0; i < v.count; i++) {
		const unsigned char *one = report + REPORT_HEAD * (i + 1);

		v.keys[i] = le(one + 8, 8);
		if (one[2] & 1)
			v.holder = v.keys[i];
	}
	*ret = v;
	return 0;
}

/* ---- changing --------------------------------------------------------------------------------- */

/* What the kernel gives back is the protocol's own status, if no error of its own. */
static int from_status(int r)
{
	if (r < 0)
		return errno == ENOTTY || errno == EOPNOTSUPP ? -EOPNOTSUPP : -errno;
	if (r == 0)
		return 0;
	if ((r & 0xff) == SCSI_CONFLICT || (r & NVME_CODE) == NVME_CONFLICT)
		return -EBUSY;
	return (r & NVME_CODE) == NVME_INVALID_OPCODE ? -EOPNOTSUPP : -EIO;
}

static int order(int fd, unsigned long request, void *arg)
{
	int r = -EIO;

	for (int i = 0; i < TRIES && r == -EIO; i++)
		r = from_status(ioctl(fd, request, arg));
	return r;
}

/* From the first path that answers. */
static int order_any(struct fence_device *d, unsigned long request, void *arg)
{
	int r = -ENODEV;

	for (size_t i = 0; i < d->alive; i++) {
		int one = order(d->fds[i], request, arg);

		if (one == 0 || one == -EOPNOTSUPP)
			return one;
		/* a path that came later has no key, and is refused; that says nothing of the others */
		r = r == -EBUSY ? r : one;
	}
	return r;
}

static int real_look(struct fence_device *d, struct fence_view *ret)
{
	int r = -ENODEV;

	for (size_t i = 0; i < d->alive; i++) {
		int nsid = ioctl(d->fds[i], NVME_IOCTL_ID);

		r = nsid > 0 ? nvme_look(d->fds[i], (unsigned)nsid, ret)
			     : scsi_look(d->fds[i], ret);
		if (r == 0 || r == -EOPNOTSUPP)
			break;
	}
	return r;
}

static int real_enroll(struct fence_device *d, size_t path, uint64_t old, uint64_t key)
{
	struct pr_registration o = { .old_key = old,
				     .new_key = key,
				     .flags = old ? 0 : PR_FL_IGNORE_KEY };
	int r = path < d->alive ? order(d->fds[path], IOC_PR_REGISTER, &o) : -ENXIO;

	/* NVMe: a host that has a key can replace it, whatever it is, but not register another */
	if (r == -EBUSY && !old) {
		o.old_key = key;
		r = order(d->fds[path], IOC_PR_REGISTER, &o);
	}
	return r;
}

static int real_reserve(struct fence_device *d, uint64_t key)
{
	struct pr_reservation o = { .key = key, .type = TYPE };

	return order_any(d, IOC_PR_RESERVE, &o);
}

/*
 * With its commands: what the target has of it, but has not written yet, must not come later. The
 * kernel takes "old" for the key of who asks, and "new" for the one that goes, whatever its
 * documentation says.
 */
static int real_preempt(struct fence_device *d, uint64_t key, uint64_t victim)
{
	struct pr_preempt o = { .old_key = key, .new_key = victim, .type = TYPE };

	return order_any(d, IOC_PR_PREEMPT_ABORT, &o);
}

static int real_clear(struct fence_device *d, uint64_t key)
{
	struct pr_clear o = { .key = key };

	return order_any(d, IOC_PR_CLEAR, &o);
}

static const struct fence_ops real = { .look = real_look,
				       .enroll = real_enroll,
				       .reserve = real_reserve,
				       .preempt = real_preempt,
				       .clear = real_clear };

/* ---- finding ---------------------------------------------------------------------------------- */

static int add_path(struct fence_device *d, unsigned major, unsigned minor)
{
	cleanup_free char *node = device_node(major, minor);

	if (!node)
		return -ENODEV;
	if (d->paths == FENCE_PATHS_MAX || strlen(node) >= FENCE_NAME_MAX)
		return -E2BIG;
	snprintf(d->names[d->paths++], FENCE_NAME_MAX, "%s", node);
	return 0;
}

static void swap_paths(struct fence_device *d, size_t a, size_t b)
{
	char name[FENCE_NAME_MAX];

	memcpy(name, d->names[a], sizeof(name));
	memmove(d->names[a], d->names[b], sizeof(name));
	memcpy(d->names[b], name, sizeof(name));
}

void fence_device_pass_over(struct fence_device *d)
{
	swap_paths(d, 0, --d->alive);
}

/* What the kernel thinks of a SCSI disk; NVMe's have another word, and give up by themselves. */
static bool is_alive(const char *map, const char *slave)
{
	cleanup_free char *path = xasprintf("%s/slaves/%s/device/state", map, slave), *text = NULL;

	return file_read(path, 64, &text, NULL, NULL) < 0 ||
	       (!strstr(text, "block") && !strstr(text, "offline"));
}

static int add_slave(struct fence_device *d, const char *map, const char *slave)
{
	cleanup_free char *path = xasprintf("%s/slaves/%s/dev", map, slave), *text = NULL;
	unsigned major, minor;
	int r = file_read(path, 64, &text, NULL, NULL);

	if (r < 0)
		return r;
	r = sscanf(text, "%u:%u", &major, &minor) == 2 ? add_path(d, major, minor) : -EINVAL;
	if (r == 0 && is_alive(map, slave))
		swap_paths(d, d->alive++, d->paths - 1);
	return r;
}

/*
 * A map's paths are told one by one: the kernel's own way through the map takes back all
 * registrations where one path fails. Those that live come first.
 */
static int add_slaves(struct fence_device *d, const char *map)
{
	cleanup_free char *path = xasprintf("%s/slaves", map);
	DIR *dir = opendir(path);
	struct dirent *e;
	int r = 0;

	if (!dir)
		return -errno;
	while (r == 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.')
			r = add_slave(d, map, e->d_name);
	(void)closedir(dir);
	return r == 0 && !d->paths ? -ENODEV : r;
}

int fence_device_find(unsigned major, unsigned minor, struct fence_device *ret)
{
	cleanup_free char *dir = xasprintf("/sys/dev/block/%u:%u", major, minor);
	cleanup_free char *part = xasprintf("%s/partition", dir),
			  *uuid_path = xasprintf("%s/dm/uuid", dir), *uuid = NULL;

	*ret = (struct fence_device){ .ops = &real };
	/* a part of a disk: reserving would be for all of it */
	if (access(part, F_OK) == 0)
		return -EOPNOTSUPP;
	if (file_read(uuid_path, 256, &uuid, NULL, NULL) < 0) {
		ret->alive = 1;
		return add_path(ret, major, minor);
	}
	return str_has_prefix(uuid, "mpath-") ? add_slaves(ret, dir) : -EOPNOTSUPP;
}

int fence_device_open(struct fence_device *d)
{
	int r = -ENXIO;

	/* one that died just now: orders to it fail, too, and the others can do */
	for (size_t i = 0; i < d->alive; i++) {
		d->fds[i] = open(d->names[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		r = d->fds[i] >= 0 ? 0 : r < 0 ? -errno : r;
	}
	return r;
}
