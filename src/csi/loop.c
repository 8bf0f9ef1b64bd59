/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/loop.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "mounts/bind.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define TRIES 64 /* another may take the free device before us */
#define SLOTS_FROM (UINT64_C(1) << 62)

/* ---- making one ------------------------------------------------------------------------------- */

struct attach {
	const struct loop_options *o;
	int loop_fd;
};

static int open_how(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
	struct open_how how = { .flags = O_CLOEXEC | flags,
				.resolve = resolve | RESOLVE_NO_SYMLINKS };
	long fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
}

static int open_file(const struct loop_options *o)
{
	uint64_t access = o->read_only ? O_RDONLY : O_RDWR;
	cleanup_close int root = -1;

	if (!o->sub[0])
		return open_how(AT_FDCWD, o->root, access, 0);
	root = open_how(AT_FDCWD, o->root, O_PATH | O_DIRECTORY, 0);
	return root < 0 ? root : open_how(root, o->sub, access, RESOLVE_BENEATH);
}

uint64_t loop_slots(const char *sub)
{
	return SLOTS_FROM | (XXH3_64bits(sub, strlen(sub)) % (SLOTS_FROM / 2) * 2);
}

/* len 0: all from there on */
static int lock_bytes(int fd, int type, uint64_t from, uint64_t len)
{
	struct flock lock = { .l_type = (short)type,
			      .l_whence = SEEK_SET,
			      .l_start = (off_t)from,
			      .l_len = (off_t)len };

	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return 0;
	return errno == EAGAIN || errno == EACCES ? -ETXTBSY : -errno;
}

/*
 * 0 or 1: the byte. Who comes anew takes the first and then sees that nobody has the second: a writer
 * that has the second cannot get the first meanwhile, so it still has the second. By a descriptor of
 * its own: GlusterFS's client forgets the rest of a lock that is given back in part.
 */
static int take_slot(int fd, const struct loop_options *o)
{
	int r = lock_bytes(fd, F_WRLCK, o->slots, 1);
	cleanup_close int probe = -1;

	if (o->next && r == -ETXTBSY) {
		r = lock_bytes(fd, F_WRLCK, o->slots + 1, 1);
		return r < 0 ? r : 1;
	}
	if (r < 0 || o->next)
		return r;
	probe = open_file(o);
	if (probe < 0)
		return probe;
	r = lock_bytes(probe, F_WRLCK, o->slots + 1, 1);
	return r < 0 ? r : lock_bytes(probe, F_UNLCK, o->slots + 1, 1);
}

/* A reader cannot hold a writer's lock; and readers only have to keep the writer out. */
static int take_lock(int fd, const struct loop_options *o)
{
	bool writes = o->lock == LOOP_LOCK_WRITER && !o->read_only;

	if (o->lock == LOOP_LOCK_NONE)
		return 0;
	if (writes && o->slots)
		return take_slot(fd, o);
	return lock_bytes(fd, writes ? F_WRLCK : F_RDLCK, 0, 0);
}

/* In a child: the file may lie on a server that does not answer. As take_slot. */
static int do_attach(void *arg)
{
	const struct attach *a = arg;
	struct loop_config config = { .info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO };
	cleanup_close int fd = open_file(a->o);
	struct stat st;
	int slot;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	slot = take_lock(fd, a->o);
	if (slot < 0)
		return slot;
	if (a->o->read_only)
		config.info.lo_flags |= LO_FLAGS_READ_ONLY;
	config.fd = (unsigned)fd;
	if (ioctl(a->loop_fd, LOOP_CONFIGURE, &config) == 0)
		return slot;
	if (errno != EINVAL)
		return -errno;
	config.info.lo_flags &= ~(unsigned)LO_FLAGS_DIRECT_IO;
	return ioctl(a->loop_fd, LOOP_CONFIGURE, &config) < 0 ? -errno : slot;
}

int loop_open(unsigned number, char *ret_path, int flags)
{
	int fd;

	snprintf(ret_path, LOOP_PATH_MAX, "/dev/loop%u", number);
	fd = open(ret_path, flags | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		(void)mknod(ret_path, S_IFBLK | 0600, makedev(LOOP_MAJOR, number));
		fd = open(ret_path, flags | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

static int attach_next(const struct loop_options *o, int control, int timeout_ms, struct loop *l)
{
	cleanup_free char *file = xasprintf("%s/%s", o->root, o->sub);
	struct attach a = { .o = o };
	int number = ioctl(control, LOOP_CTL_GET_FREE), r;

	if (number < 0)
		return -errno;
	l->number = (unsigned)number;
	l->fd = loop_open(l->number, l->device, o->read_only ? O_RDONLY : O_RDWR);
	if (l->fd < 0)
		return l->fd;
	a.loop_fd = l->fd;
	r = spawn_call_keeping(do_attach, &a, a.loop_fd, file, timeout_ms, NULL);
	if (r < 0)
		loop_close(l);
	else
		l->slot = (unsigned)r;
	return r;
}

int loop_attach(const struct loop_options *o, int timeout_ms, struct loop *ret, struct error *err)
{
	cleanup_close int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	struct loop l = LOOP_INIT;
	int r = -EBUSY;

	if (control < 0)
		return error_errno(err, errno, "cannot open /dev/loop-control (module loop)");
	for (int i = 0; i < TRIES && r == -EBUSY; i++)
		r = attach_next(o, control, timeout_ms, &l);
	if (r == -ETXTBSY)
		return error_set(err, EBUSY,
				 "%s%s%s is in use by another writer, here or on another node: end "
				 "that first",
				 o->root, *o->sub ? "/" : "", o->sub);
	if (r < 0)
		return error_errno(err, r == -EBUSY ? EAGAIN : -r,
				   "cannot make a loop device of %s%s%s", o->root,
				   *o->sub ? "/" : "", o->sub);
	*ret = l;
	return 0;
}

void loop_close(struct loop *l)
{
	cleanup_close_p(&l->fd);
	l->fd = -1;
}

static int do_keep(void *arg)
{
	const struct loop *l = arg;
	struct loop_info64 info;

	if (ioctl(l->fd, LOOP_GET_STATUS64, &info) < 0)
		return -errno;
	info.lo_flags &= ~(unsigned)LO_FLAGS_AUTOCLEAR;
	return ioctl(l->fd, LOOP_SET_STATUS64, &info) < 0 ? -errno : 0;
}

int loop_keep(struct loop *l, int timeout_ms, struct error *err)
{
	int r = spawn_call_keeping(do_keep, l, l->fd, l->device, timeout_ms, NULL);

	return r < 0 ? error_errno(err, -r, "cannot keep %s", l->device) : 0;
}

/* ---- one that is there ------------------------------------------------------------------------ */

static char *backing_file(unsigned number)
{
	cleanup_free char *path = xasprintf("/sys/block/loop%u/loop/backing_file", number);
	char *text = NULL;

	if (file_read(path, 0, &text, NULL, NULL) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

struct ask {
	int fd;
	dev_t now;
};

/* In a child: the kernel asks the file's own file system. 1: it is that of now. */
static int do_ask(void *arg)
{
	const struct ask *a = arg;
	struct loop_info64 info;

	if (ioctl(a->fd, LOOP_GET_STATUS64, &info) < 0)
		return -errno;
	return info.lo_device == a->now;
}

/* So long the kernel may answer by itself for a client that died: it remembers files for a second. */
#define REMEMBERED_MS 1500

/*
 * A file whose path begins at its file system lies in a mount that is gone. That mount alone may be
 * (with the container that made it, or after an outage in which it was made anew), or the client
 * behind it, too. That another file system is there now does not tell: while the old one answers,
 * its users write on through it, and a second device on the file would be a second writer. One that
 * does not answer in time is not dead either.
 */
static enum loop_state ask_device(unsigned number, dev_t now, int timeout_ms)
{
	struct ask a = { .now = now };
	char path[LOOP_PATH_MAX];
	int r;

	a.fd = loop_open(number, path, O_RDONLY);
	r = a.fd < 0 ? a.fd : spawn_call_keeping(do_ask, &a, a.fd, path, timeout_ms, NULL);
	if (r == 0) {
		nanosleep(&(struct timespec){ .tv_sec = REMEMBERED_MS / 1000,
					      .tv_nsec = REMEMBERED_MS % 1000 * 1000000L },
			  NULL);
		r = spawn_call_keeping(do_ask, &a, a.fd, path, timeout_ms, NULL);
	}
	cleanup_close_p(&a.fd);
	if (r == -ENXIO)
		return LOOP_OTHER;
	return bind_is_dead(r) ? LOOP_LOST : LOOP_SERVES;
}

/* The kernel adds this to the name of a file that was removed. */
#define REMOVED " (deleted)"

enum loop_state loop_look(unsigned number, const char *root, const char *sub, dev_t now,
			  int timeout_ms)
{
	cleanup_free char *file = backing_file(number);
	cleanup_free char *whole = xasprintf("%s%s%s", root, *sub ? "/" : "", sub);
	cleanup_free char *inside = xasprintf("/%s", sub);

	if (!file)
		return LOOP_OTHER;
	if (streq(file, whole))
		return LOOP_SERVES;
	return streq(file, inside) ? ask_device(number, now, timeout_ms) : LOOP_OTHER;
}

bool loop_was_on(unsigned number, const char *root, const char *sub)
{
	cleanup_free char *file = backing_file(number);
	cleanup_free char *whole = xasprintf("%s%s%s", root, *sub ? "/" : "", sub);
	cleanup_free char *inside = xasprintf("/%s", sub);

	if (file && str_has_suffix(file, REMOVED))
		file[strlen(file) - strlen(REMOVED)] = '\0';
	return file && (streq(file, whole) || (*sub && streq(file, inside)));
}

/* What is sought: the file root/sub, in whichever mount; deep: or one of that name below root. */
struct sought {
	const char *root, *sub;
	bool deep;
};

static bool is_sought(const struct sought *s, const char *file)
{
	cleanup_free char *inside = xasprintf("/%s", s->sub);
	size_t root = strlen(s->root), end = strlen(inside), len = strlen(file);

	if (streq(file, inside))
		return true;
	return str_has_suffix(file, inside) && strncmp(file, s->root, root) == 0 &&
	       (s->deep ? len > root + end && file[root] == '/' : len == root + end);
}

static bool is_device_of(const struct sought *s, unsigned number)
{
	cleanup_free char *file = backing_file(number);

	return file && is_sought(s, file);
}

static bool find_device(const struct sought *s, unsigned *ret_number)
{
	DIR *d = opendir("/sys/block");
	bool found = false;

	for (struct dirent *e; d && !found && (e = readdir(d));) {
		unsigned number;

		found = sscanf(e->d_name, "loop%u", &number) == 1 && is_device_of(s, number);
		if (found)
			*ret_number = number;
	}
	if (d)
		closedir(d);
	return found;
}

bool loop_is_on(const char *root, const char *sub)
{
	unsigned number;

	return find_device(&(struct sought){ .root = root, .sub = sub }, &number);
}

bool loop_find_below(const char *dir, const char *sub, unsigned *ret_number)
{
	return find_device(&(struct sought){ .root = dir, .sub = sub, .deep = true }, ret_number);
}

struct resize {
	int fd;
	const struct loop_options *file;
};

static int do_resize(void *arg)
{
	const struct resize *r = arg;
	cleanup_close int fd = open_file(r->file);
	struct statx st;

	/* the kernel remembers a size from before, unless it is told to ask */
	if (fd < 0)
		return fd;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &st) < 0 ||
	    ioctl(r->fd, LOOP_SET_CAPACITY, 0) < 0)
		return -errno;
	return 0;
}

int loop_resize(unsigned number, const char *root, const char *sub, int timeout_ms,
		struct error *err)
{
	struct loop_options file = { .root = root, .sub = sub, .read_only = true };
	struct resize r = { .file = &file };
	char path[LOOP_PATH_MAX];
	int rc;

	r.fd = loop_open(number, path, O_RDONLY);
	rc = r.fd < 0 ? r.fd : spawn_call_keeping(do_resize, &r, r.fd, path, timeout_ms, NULL);
	cleanup_close_p(&r.fd);
	return rc < 0 ? error_errno(err, -rc, "cannot resize %s", path) : 0;
}

static int do_detach(void *arg)
{
	return ioctl(*(int *)arg, LOOP_CLR_FD, 0) < 0 && errno != ENXIO ? -errno : 0;
}

int loop_detach(unsigned number, int timeout_ms, struct error *err)
{
	char path[LOOP_PATH_MAX];
	int fd = loop_open(number, path, O_RDONLY);
	int r = fd < 0 ? fd : spawn_call_keeping(do_detach, &fd, fd, path, timeout_ms, NULL);

	cleanup_close_p(&fd);
	return r < 0 ? error_errno(err, -r, "cannot end %s", path) : 0;
}

int loop_await_end(unsigned number, int timeout_ms, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;

	/* the kernel tells nobody when the last user, udev often, has closed it */
	for (;;) {
		cleanup_free char *file = backing_file(number);

		if (!file)
			return 0;
		if (clock_mono_ms(&clock_real) > end)
			return error_set(err, EBUSY, "/dev/loop%u, with %s, is still in use",
					 number, file);
		nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
	}
}
