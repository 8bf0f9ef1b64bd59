/* SPDX-License-Identifier: Apache-2.0 */
/* This machine. */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/step.h"
#include "host.h"
#include "host_block.h"
#include "host_vendor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>

static int64_t real_mono_ms(const struct hostvol_host *host)
{
	return clock_mono_ms(&clock_real);
}

static int64_t real_wall_ms(const struct hostvol_host *host)
{
	return clock_wall_ms(&clock_real);
}

static void real_sleep_ms(const struct hostvol_host *host, int ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

static int real_run(const struct hostvol_host *host, const struct host_command *command,
		    struct host_result *ret)
{
	return process_run(command, ret);
}

static int real_await_end(const struct hostvol_host *host, const char *program,
			  const char *last_arg, bool kill, int timeout_ms)
{
	return process_await_end(program, last_arg, kill, timeout_ms);
}

static int real_mountinfo(const struct hostvol_host *host, char **ret)
{
	return file_read("/proc/self/mountinfo", 0, ret, NULL, NULL);
}

/* ---- what may hang -------------------------------------------------------------------------- */

static int do_unmount(void *arg)
{
	return umount2(arg, UMOUNT_NOFOLLOW) < 0 ? -errno : 0;
}

/* Another function, since it must not be refused where an ordinary unmount hangs. */
static int do_detach(void *arg)
{
	return umount2(arg, UMOUNT_NOFOLLOW | MNT_DETACH) < 0 ? -errno : 0;
}

static int real_unmount(const struct hostvol_host *host, const char *path, enum host_unmount how,
			int timeout_ms)
{
	bool detach = how == HOST_UNMOUNT_DETACH;

	return step_run(
		&(struct step){ detach ? do_detach : do_unmount, (void *)path, path, timeout_ms },
		NULL);
}

/* statfs alone may be answered from a cache; the root's attributes are asked for too. */
static int do_probe(void *arg)
{
	struct statfs fs;
	struct stat st;

	return statfs(arg, &fs) < 0 || stat(arg, &st) < 0 ? -errno : 0;
}

static int real_probe(const struct hostvol_host *host, const char *path, int timeout_ms)
{
	return step_run(&(struct step){ do_probe, (void *)path, path, timeout_ms }, NULL);
}

struct lookup_call {
	const char *dir, *sub;
};

static int do_lookup(void *arg)
{
	struct lookup_call *call = arg;
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	int dir = open(call->dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0 || syscall(SYS_openat2, dir, call->sub, &how, sizeof(how)) < 0)
		return -errno;
	return 0;
}

static int real_lookup(const struct hostvol_host *host, const char *dir, const char *sub,
		       int timeout_ms)
{
	struct lookup_call call = { .dir = dir, .sub = sub };
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", dir, sub);
	return step_run(&(struct step){ do_lookup, &call, path, timeout_ms }, NULL);
}

static int block_size(const char *path, uint64_t *ret)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, ret) < 0)
		return -errno;
	return 0;
}

struct stat_call {
	const char *path;
	struct host_stat found; /* in memory that is shared with the child */
};

static int do_stat(void *arg)
{
	struct stat_call *call = arg;
	struct host_stat *ret = &call->found;
	struct stat st;

	if (stat(call->path, &st) < 0)
		return -errno;
	ret->type = HOST_FILE_OTHER;
	if (S_ISDIR(st.st_mode)) {
		ret->type = HOST_FILE_DIRECTORY;
	} else if (S_ISREG(st.st_mode)) {
		ret->type = HOST_FILE_REGULAR;
		ret->size = (uint64_t)st.st_size;
	} else if (S_ISBLK(st.st_mode)) {
		ret->type = HOST_FILE_BLOCK;
		ret->major = major(st.st_rdev);
		ret->minor = minor(st.st_rdev);
		return block_size(call->path, &ret->size);
	}
	return 0;
}

/* All of it in a child: a server, or a device, that answered once may not do so a second time. */
static int real_stat(const struct hostvol_host *host, const char *path, struct host_stat *ret,
		     int timeout_ms)
{
	struct stat_call *call = mmap(NULL, sizeof(*call), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (call == MAP_FAILED)
		return -errno;
	call->path = path;
	r = process_call(do_stat, call, path, timeout_ms);
	if (r >= 0)
		*ret = call->found;
	munmap(call, sizeof(*call));
	return r;
}

/* ---- files ---------------------------------------------------------------------------------- */

static int real_make_dir(const struct hostvol_host *host, const char *path, unsigned mode)
{
	return mkdir_parents(path, mode, NULL);
}

static int real_remove_dir(const struct hostvol_host *host, const char *path)
{
	return rmdir(path) < 0 ? -errno : 0;
}

static int real_write_file(const struct hostvol_host *host, const char *path, const char *data,
			   size_t len)
{
	return file_write(path, data, len, 0600, NULL);
}

static int real_remove_file(const struct hostvol_host *host, const char *path)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(path, '/');
	cleanup_close int fd = -1;

	if (!slash || (size_t)(slash - path) >= sizeof(dir))
		return -EINVAL;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = '\0';
	if (unlink(path) < 0)
		return -errno;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

/* ---- who this is ---------------------------------------------------------------------------- */

static bool address_text(const struct sockaddr *addr, int family, char *buf, size_t size)
{
	const void *bytes;

	if (!addr || addr->sa_family != family)
		return false;
	if (family == AF_INET) {
		bytes = &((const struct sockaddr_in *)addr)->sin_addr;
	} else {
		bytes = &((const struct sockaddr_in6 *)addr)->sin6_addr;
		if (IN6_IS_ADDR_LINKLOCAL((const struct in6_addr *)bytes))
			return false;
	}
	return inet_ntop(family, bytes, buf, (socklen_t)size) != NULL;
}

static int real_address(const struct hostvol_host *host, char *buf, size_t size)
{
	static const int families[] = { AF_INET, AF_INET6 };
	struct ifaddrs *list;

	buf[0] = '\0';
	if (getifaddrs(&list) < 0)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(families) && !buf[0]; i++)
		for (struct ifaddrs *a = list; a; a = a->ifa_next)
			if (!(a->ifa_flags & IFF_LOOPBACK) && (a->ifa_flags & IFF_UP) &&
			    address_text(a->ifa_addr, families[i], buf, size))
				break;
	freeifaddrs(list);
	return 0;
}

static int real_identify(const struct hostvol_host *host, char *machine, char *name, size_t size)
{
	struct utsname u;

	if (uname(&u) < 0)
		return -errno;
	snprintf(machine, size, "%s", u.machine);
	snprintf(name, size, "%s", u.nodename);
	return 0;
}

static bool real_multipathd_runs(const struct hostvol_host *host)
{
	cleanup_close int fd = multipathd_connect();

	return fd >= 0;
}

const struct hostvol_host host_real = {
	.root = "",
	.mono_ms = real_mono_ms,
	.wall_ms = real_wall_ms,
	.sleep_ms = real_sleep_ms,
	.run = real_run,
	.await_end = real_await_end,
	.mountinfo = real_mountinfo,
	.unmount = real_unmount,
	.probe = real_probe,
	.lookup = real_lookup,
	.stat = real_stat,
	.make_dir = real_make_dir,
	.remove_dir = real_remove_dir,
	.write_file = real_write_file,
	.remove_file = real_remove_file,
	.address = real_address,
	.identify = real_identify,
	.multipathd_runs = real_multipathd_runs,
	.write_kernel = block_write_kernel,
	.inquiry = block_inquiry,
	.nvme_identify = block_nvme_identify,
	.ata_identify = block_ata_identify,
	.claim = block_claim,
	.flush = block_flush,
	.writers = block_writers,
	.events_open = block_events_open,
	.events_wait = block_events_wait,
	.multipathd = block_multipathd,
	.fabrics = block_fabrics,
	.aoe = block_aoe,
	.rbd_add = block_rbd_add,
	.control_device = vendor_control_device,
	.device_in_use = vendor_device_in_use,
	.find_name = vendor_find_name,
	.exchange = vendor_exchange,
	.has_address = vendor_has_address,
};
