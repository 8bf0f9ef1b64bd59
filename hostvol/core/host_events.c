/* SPDX-License-Identifier: Apache-2.0 */
/* Who tells of devices: the kernel and udev (netlink), multipathd (its socket), /proc. */
#include "base/clock.h"
#include "base/mem.h"
#include "host_block.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

/* ---- events --------------------------------------------------------------------------------- */

int block_events_open(const struct hostvol_host *host)
{
	/* the kernel's own group, and the one on which udev says that it is done with a device */
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 | 2 };
	cleanup_close int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

	if (fd < 0 || bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

int block_events_wait(const struct hostvol_host *host, int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char event[8192];
	int r = poll(&p, 1, timeout_ms);

	if (r <= 0)
		return r < 0 && errno != EINTR ? -errno : 0;
	/* what they say does not matter: whoever waits looks for itself */
	while (recv(fd, event, sizeof(event), 0) >= 0 || errno == ENOBUFS)
		;
	return 1;
}

/* ---- multipathd ----------------------------------------------------------------------------- */

int multipathd_connect(void)
{
	/* its control socket, in the abstract name space */
	static const char name[] = "\0/org/kernel/linux/storage/multipathd";
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	memcpy(addr.sun_path, name, sizeof(name) - 1);
	if (connect(fd, (struct sockaddr *)&addr,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof(name) - 1)) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Reads or writes all of it; the socket does not block. */
static int transfer(int fd, void *data, size_t len, bool out, int64_t end)
{
	char *at = data;

	while (len) {
		struct pollfd p = { .fd = fd, .events = out ? POLLOUT : POLLIN };
		int64_t left = end - clock_mono_ms(&clock_real);
		ssize_t n = out ? send(fd, at, len, MSG_NOSIGNAL) : recv(fd, at, len, 0);

		if (n > 0) {
			at += n;
			len -= (size_t)n;
		} else if (n == 0) {
			return -ECONNRESET;
		} else if (errno != EAGAIN && errno != EINTR) {
			return -errno;
		} else if (left <= 0 || (poll(&p, 1, (int)left) == 0)) {
			return -ETIMEDOUT;
		}
	}
	return 0;
}

int block_multipathd(const struct hostvol_host *host, const char *command, char *reply, size_t size,
		     int timeout_ms)
{
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;
	cleanup_close int fd = multipathd_connect();
	size_t len = strlen(command) + 1, n;
	char rest[256];
	int r;

	if (fd < 0)
		return fd;
	/* each message is its length (with the final NUL), then itself */
	r = transfer(fd, &len, sizeof(len), true, end);
	if (r >= 0)
		r = transfer(fd, (void *)command, len, true, end);
	if (r >= 0)
		r = transfer(fd, &len, sizeof(len), false, end);
	if (r < 0)
		return r;
	n = len < size ? len : size - 1;
	r = transfer(fd, reply, n, false, end);
	reply[r < 0 ? 0 : n] = '\0';
	for (len -= n; r >= 0 && len; len -= n) {
		n = len < sizeof(rest) ? len : sizeof(rest);
		r = transfer(fd, rest, n, false, end);
	}
	return r;
}

/* ---- who writes to it ----------------------------------------------------------------------- */

static bool opened_for_writing(const char *pid, const char *fd)
{
	char path[300], line[64];
	unsigned long flags = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%.20s/fdinfo/%.20s", pid, fd);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "flags: %lo", &flags) == 1)
			break;
	if (f)
		fclose(f);
	return (flags & O_ACCMODE) != O_RDONLY;
}

static bool writes_to(const char *pid, dev_t device)
{
	char path[300], target[64];
	bool found = false;
	struct dirent *e;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	dir = opendir(path);
	while (dir && !found && (e = readdir(dir))) {
		ssize_t n = e->d_name[0] == '.'
				    ? 0
				    : readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);

		/* only of these: asking about a file of a dead server would hang */
		if (n < 5 || memcmp(target, "/dev/", 5) != 0)
			continue;
		found = fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISBLK(st.st_mode) &&
			st.st_rdev == device && opened_for_writing(pid, e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/*
 * Threads of the kernel's own have no memory, no program and no files; most of a machine's processes
 * are such. Moving none of a process's pages tells so in a fraction of the time that a path in /proc
 * takes, but a container or a kernel may not have that.
 */
static bool has_program(const char *pid)
{
	char path[64], target[1];

	if (syscall(SYS_move_pages, atoi(pid), 0L, NULL, NULL, NULL, 0L) == 0)
		return true;
	if (errno == EINVAL)
		return false;
	snprintf(path, sizeof(path), "/proc/%.20s/exe", pid);
	return readlink(path, target, sizeof(target)) >= 0 || errno != ENOENT;
}

int block_writers(const struct hostvol_host *host, unsigned major, unsigned minor, char *buf,
		  size_t size)
{
	DIR *dir = opendir("/proc");
	size_t len = 0;
	struct dirent *e;
	char path[64], name[64];

	buf[0] = '\0';
	if (!dir)
		return -errno;
	while ((e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) || !has_program(e->d_name) ||
		    !writes_to(e->d_name, makedev(major, minor)))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
		host_read_line(&host_real, path, name, sizeof(name));
		if (len < size)
			len += (size_t)snprintf(buf + len, size - len, "%s%s (%.20s)",
						len ? ", " : "", name, e->d_name);
	}
	closedir(dir);
	return 0;
}
