/* SPDX-License-Identifier: Apache-2.0 */
/* What asks a device something, and may hang with it: each in a child process. */
#include "host_block.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/hdreg.h>
#include <linux/keyctl.h>
#include <linux/nvme_ioctl.h>
#include <scsi/sg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* What a child is told, and the place where it leaves its answer: shared memory. */
struct question {
	char path[PATH_MAX];
	unsigned what; /* a page, a structure */
	int timeout_ms;
	bool is_order; /* data is a text that says what is to be done, and no secret */
	size_t len; /* of data */
	unsigned char data[NVME_IDENTIFY_SIZE];
};

static int ask(const struct hostvol_host *host, int (*fn)(void *), struct question *q,
	       int timeout_ms)
{
	struct question *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char about[PATH_MAX + 256];
	int r;

	if (shared == MAP_FAILED)
		return -errno;
	*shared = *q;
	shared->timeout_ms = timeout_ms;
	/* one file takes the orders of many devices, and one that hangs says nothing of the others */
	snprintf(about, sizeof(about), "%s %.250s", q->path, q->is_order ? (char *)q->data : "");
	r = process_call(fn, shared, *q->path ? about : NULL, timeout_ms);
	if (r >= 0)
		*q = *shared;
	/* options of a connection may hold a secret */
	explicit_bzero(shared->data, sizeof(shared->data));
	munmap(shared, sizeof(*shared));
	return r;
}

static int set_path(struct question *q, const char *root, const char *path)
{
	return snprintf(q->path, sizeof(q->path), "%s%s", root, path) < (int)sizeof(q->path)
		       ? 0
		       : -ENAMETOOLONG;
}

/* ---- sysfs ---------------------------------------------------------------------------------- */

static int do_write(void *arg)
{
	struct question *q = arg;
	int fd = open(q->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -errno;
	return write(fd, q->data, q->len) < 0 ? -errno : 0;
}

int block_write_kernel(const struct hostvol_host *host, const char *path, const char *text,
		       int timeout_ms)
{
	struct question q = { .len = strlen(text), .is_order = true };
	int r = set_path(&q, host->root, path);

	if (r < 0 || q.len > sizeof(q.data))
		return r < 0 ? r : -E2BIG;
	memcpy(q.data, text, q.len);
	return ask(host, do_write, &q, timeout_ms);
}

/* ---- identity ------------------------------------------------------------------------------- */

static int do_inquiry(void *arg)
{
	struct question *q = arg;
	unsigned char cdb[6] = { 0x12,
				 1,
				 (unsigned char)q->what,
				 (unsigned char)(q->len >> 8),
				 (unsigned char)q->len,
				 0 };
	unsigned char sense[32];
	struct sg_io_hdr io = { .interface_id = 'S',
				.dxfer_direction = SG_DXFER_FROM_DEV,
				.cmd_len = sizeof(cdb),
				.mx_sb_len = sizeof(sense),
				.dxfer_len = (unsigned)q->len,
				.dxferp = q->data,
				.cmdp = cdb,
				.sbp = sense,
				.timeout = (unsigned)q->timeout_ms };
	int fd = open(q->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, SG_IO, &io) < 0)
		return -errno;
	/* a page that the device does not have is refused with CHECK CONDITION */
	if (io.status)
		return -EOPNOTSUPP;
	if (io.host_status || io.driver_status)
		return -EIO;
	q->len -= (size_t)io.resid < q->len ? (size_t)io.resid : q->len;
	return 0;
}

int block_inquiry(const struct hostvol_host *host, const char *device, unsigned page,
		  unsigned char *buf, size_t size, int timeout_ms)
{
	struct question q = { .what = page, .len = size < sizeof(q.data) ? size : sizeof(q.data) };
	int r = set_path(&q, "", device);

	if (r < 0)
		return r;
	r = ask(host, do_inquiry, &q, timeout_ms);
	if (r < 0)
		return r;
	memcpy(buf, q.data, q.len);
	return (int)q.len;
}

static int do_identify(void *arg)
{
	struct question *q = arg;
	struct nvme_passthru_cmd cmd = { .opcode = 0x06,
					 .addr = (uint64_t)(uintptr_t)q->data,
					 .data_len = NVME_IDENTIFY_SIZE,
					 .cdw10 = q->what,
					 .timeout_ms = (unsigned)q->timeout_ms };
	int fd = open(q->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), nsid;

	if (fd < 0)
		return -errno;
	nsid = ioctl(fd, NVME_IOCTL_ID);
	if (nsid < 0)
		return -errno;
	cmd.nsid = (unsigned)nsid;
	nsid = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &cmd);
	return nsid < 0 ? -errno : nsid > 0 ? -EIO : 0;
}

int block_nvme_identify(const struct hostvol_host *host, const char *device, unsigned cns,
			unsigned char *buf, int timeout_ms)
{
	struct question q = { .what = cns };
	int r = set_path(&q, "", device);

	if (r < 0)
		return r;
	r = ask(host, do_identify, &q, timeout_ms);
	if (r >= 0)
		memcpy(buf, q.data, NVME_IDENTIFY_SIZE);
	return r;
}

static int do_ata_identify(void *arg)
{
	struct question *q = arg;
	int fd = open(q->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 || ioctl(fd, HDIO_GET_IDENTITY, q->data) < 0 ? -errno : 0;
}

int block_ata_identify(const struct hostvol_host *host, const char *device, unsigned char *buf,
		       int timeout_ms)
{
	struct question q = { 0 };
	int r = set_path(&q, "", device);

	if (r >= 0)
		r = ask(host, do_ata_identify, &q, timeout_ms);
	if (r >= 0)
		memcpy(buf, q.data, ATA_IDENTIFY_SIZE);
	return r;
}

/* ---- use ------------------------------------------------------------------------------------ */

int block_claim(const struct hostvol_host *host, const char *device)
{
	int fd = open(device, O_RDONLY | O_EXCL | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int do_flush(void *arg)
{
	struct question *q = arg;
	int fd = open(q->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	/* BLKFLSBUF would drop what is cached, too, and wait for every processor to do so */
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int block_flush(const struct hostvol_host *host, const char *device, int timeout_ms)
{
	struct question q = { 0 };
	int r = set_path(&q, "", device);

	return r < 0 ? r : ask(host, do_flush, &q, timeout_ms);
}

/* ---- NVMe over fabrics ---------------------------------------------------------------------- */

static int do_fabrics(void *arg)
{
	struct question *q = arg;
	int fd = open("/dev/nvme-fabrics", O_RDWR | O_CLOEXEC);
	ssize_t n;

	if (fd < 0 || write(fd, q->data, q->len) < 0)
		return -errno;
	n = read(fd, q->data, sizeof(q->data) - 1);
	if (n < 0)
		return -errno;
	q->data[n] = '\0';
	return 0;
}

int block_fabrics(const struct hostvol_host *host, const char *options, char *reply, size_t size,
		  int timeout_ms)
{
	struct question q = { .len = strlen(options) };
	int r;

	if (q.len >= sizeof(q.data))
		return -E2BIG;
	memcpy(q.data, options, q.len);
	r = ask(host, do_fabrics, &q, timeout_ms);
	if (r >= 0)
		snprintf(reply, size, "%s", (char *)q.data);
	explicit_bzero(&q, sizeof(q));
	return r;
}

/* ---- ATA over Ethernet ---------------------------------------------------------------------- */

/*
 * With the NUL that ends the name: without it "flush" takes e7.3 for the beginning of a name, and
 * e7.30 goes too; with a newline it finds nothing.
 */
int block_aoe(const struct hostvol_host *host, const char *order, const char *device,
	      int timeout_ms)
{
	struct question q = { .len = strlen(device) + 1, .is_order = true };

	if (q.len > sizeof(q.data) || snprintf(q.path, sizeof(q.path), "%s/dev/etherd/%s",
					       host->root, order) >= (int)sizeof(q.path))
		return -E2BIG;
	memcpy(q.data, device, q.len);
	return ask(host, do_write, &q, timeout_ms);
}

/* ---- Ceph ----------------------------------------------------------------------------------- */

/*
 * The text ends at its NUL; what follows is the secret. A keyring of this process alone goes with
 * it, and unlike a "secret=" in the text, a key's name is all that sysfs shows afterwards.
 */
static int do_rbd_add(void *arg)
{
	struct question *q = arg;
	size_t text = strlen((char *)q->data);
	int fd;

	if (q->len > text + 1 && syscall(SYS_add_key, "ceph", RBD_KEY_NAME, q->data + text + 1,
					 q->len - text - 1, KEY_SPEC_PROCESS_KEYRING) < 0)
		return errno == ENODEV ? -ENOENT : -errno;
	fd = open(q->path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 || write(fd, q->data, text) < 0 ? -errno : 0;
}

int block_rbd_add(const struct hostvol_host *host, const char *path, const char *text,
		  const unsigned char *secret, size_t secret_len, int timeout_ms)
{
	struct question q = { .len = strlen(text) + 1 + secret_len, .is_order = true };
	int r = set_path(&q, host->root, path);

	if (r < 0 || q.len > sizeof(q.data))
		return r < 0 ? r : -E2BIG;
	memcpy(q.data, text, strlen(text) + 1);
	if (secret_len)
		memcpy(q.data + strlen(text) + 1, secret, secret_len);
	r = ask(host, do_rbd_add, &q, timeout_ms);
	explicit_bzero(&q, sizeof(q));
	return r;
}
