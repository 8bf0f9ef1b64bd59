/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that is staged for reading alone is not reserved, since others may read it too. So the
 * kernel is told that it is read-only: a pod that has the device itself cannot write to it, and no
 * file system replays its journal beside a writer of another node. Loop devices are made that way.
 *
 * What stays when the volume goes (a disk of this machine) can be written again then. That it was we
 * who made it read-only, and no administrator, is noted in RUN/readonly/MAJOR:MINOR before; /run
 * and what the kernel knows of devices end together, with the machine's reboot.
 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "csi/node_service.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

static char *note_of(const struct csi_node *n, unsigned major, unsigned minor)
{
	return xasprintf("%s/%u:%u", n->read_only, major, minor);
}

bool device_is_reader(const struct csi_node *n, unsigned major, unsigned minor)
{
	cleanup_free char *note = note_of(n, major, minor);

	return access(note, F_OK) == 0;
}

static int device_at(unsigned major, unsigned minor)
{
	cleanup_free char *node = device_node(major, minor);
	cleanup_close int fd = node ? open(node, O_RDONLY | O_NONBLOCK | O_CLOEXEC) : -1;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return node ? -errno : -ENODEV;
	return S_ISBLK(st.st_mode) && st.st_rdev == makedev(major, minor) ? TAKE_FD(fd) : -ESTALE;
}

static int set_read_only(int fd, int read_only)
{
	return ioctl(fd, BLKROSET, &read_only) < 0 ? -errno : 0;
}

int device_make_reader(const struct csi_node *n, unsigned major, unsigned minor, struct error *err)
{
	cleanup_free char *note = note_of(n, major, minor);
	cleanup_close int fd = device_at(major, minor);
	int is = 0, r = fd < 0 ? fd : ioctl(fd, BLKROGET, &is) < 0 ? -errno : 0;

	if (r == 0 && is)
		return 0;
	if (r == 0)
		r = mkdir_parents(n->read_only, 0700, NULL);
	if (r == 0)
		r = file_write(note, "", 0, 0600, NULL);
	if (r == 0)
		r = set_read_only(fd, 1);
	return r < 0 ? error_errno(err, -r, "cannot make device %u:%u read-only", major, minor) : 0;
}

static int make_writable(struct csi_node *n, unsigned major, unsigned minor, struct error *err)
{
	cleanup_close int fd = -1;
	/* who has it open would be let in */
	int r = device_await_idle(n, major, minor, err);

	if (r < 0)
		return r;
	fd = device_at(major, minor);
	r = fd < 0 ? fd : set_read_only(fd, 0);
	return r < 0 ? error_errno(err, -r, "cannot write to it") : 0;
}

int device_end_reader(struct csi_node *n, unsigned major, unsigned minor, struct error *err)
{
	cleanup_free char *note = note_of(n, major, minor);
	struct error why = ERROR_INIT;
	int r;

	if (!device_is_reader(n, major, minor))
		return 0;
	r = make_writable(n, major, minor, &why);
	if (r == -EBUSY)
		return error_set(err, EBUSY, "%s", error_text(&why, r));
	/* one whose storage is gone must be let go all the same; a writer of it would try again */
	if (r < 0)
		log_warn("device %u:%u stays read-only: %s", major, minor, error_text(&why, r));
	else
		(void)unlink(note);
	return 0;
}
