/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/linear.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/str.h"
#include "core/handle.h"
#include "core/mountinfo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#define CONTROL_DIR "/dev/" DM_DIR
#define CONTROL CONTROL_DIR "/" DM_CONTROL_NODE
#define CONTROL_MAJOR 10
#define CONTROL_MINOR 236
#define UUID_PREFIX "QUARTERMASTER-"
#define NAMES_MAX 16 /* of one file: dead ones may be used on, and have theirs until then */
#define MINOR_DEFERRED 27 /* of the interface, since which a device can be removed later */
#define SECTOR 512
#define BLOCK 4096
/*
 * For udev's rules, which get it as DM_COOKIE: no names, no links, no look at what is on it. (All of
 * libdevmapper's DM_UDEV_DISABLE_…, and that this comes from the source.)
 */
#define UDEV_LEAVE_ALONE (UINT32_C(0x6f) << 16)

/* ---- orders ----------------------------------------------------------------------------------- */

struct request {
	struct dm_ioctl head;
	union {
		struct {
			struct dm_target_spec spec;
			char params[64];
		} target;
		char message[sizeof(struct dm_target_msg) + 64]; /* its text follows the head */
	};
};

/* In memory that is shared with the child. */
struct order {
	int control;
	char uuid[LINEAR_UUID_MAX];
	dev_t device;
	unsigned old, next; /* loop devices */
	size_t count;
	unsigned loops[LINEAR_LOOPS_MAX];
};

/* Where nobody makes device files we do; opening it has the kernel load the module. */
static int open_control(void)
{
	int fd = open(CONTROL, O_RDWR | O_CLOEXEC);

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	(void)mkdir(CONTROL_DIR, 0755);
	if (mknod(CONTROL, S_IFCHR | 0600, makedev(CONTROL_MAJOR, CONTROL_MINOR)) < 0 &&
	    errno != EEXIST)
		return -errno;
	fd = open(CONTROL, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	fd = -errno;
	(void)unlink(CONTROL);
	(void)rmdir(CONTROL_DIR);
	return fd;
}

static int ask(int control, unsigned long command, const char *uuid, uint32_t flags,
	       struct request *q)
{
	q->head.version[0] = DM_VERSION_MAJOR;
	q->head.version[1] = q->head.version[2] = 0;
	q->head.data_size = sizeof(*q);
	q->head.data_start = offsetof(struct request, target);
	q->head.flags = flags;
	if (uuid)
		snprintf(q->head.uuid, sizeof(q->head.uuid), "%s", uuid);
	return ioctl(control, command, q) < 0 ? -errno : 0;
}

bool linear_available(void)
{
	cleanup_close int control = open_control();
	struct request q = { 0 };

	return control >= 0 && ask(control, DM_VERSION, NULL, 0, &q) == 0 &&
	       q.head.version[0] == DM_VERSION_MAJOR && q.head.version[1] >= MINOR_DEFERRED;
}

/* Runs fn in a child with the order, and with nothing open but the control device. */
static int run(int (*fn)(void *arg), struct order *o, const char *about, int timeout_ms)
{
	cleanup_close int control = open_control();
	struct order *shared;
	int r;

	if (control < 0)
		return control;
	shared = mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return -errno;
	o->control = control;
	*shared = *o;
	r = spawn_call_keeping(fn, shared, control, about, timeout_ms, NULL);
	*o = *shared;
	munmap(shared, sizeof(*shared));
	return r;
}

static struct order order_of(const struct linear_state *s)
{
	struct order o = { .count = s->count, .device = makedev(s->major, s->minor) };

	memcpy(o.uuid, s->uuid, sizeof(o.uuid));
	memcpy(o.loops, s->loops, sizeof(o.loops));
	return o;
}

/* ---- steps, in a child ------------------------------------------------------------------------ */

/* What is loaded is used from the next resume on. */
static int load(const struct order *o, unsigned loop)
{
	struct request q = { .head.target_count = 1 };
	char path[LOOP_PATH_MAX];
	cleanup_close int fd = loop_open(loop, path, O_RDONLY);
	uint64_t bytes;

	if (fd < 0)
		return fd;
	if (ioctl(fd, BLKGETSIZE64, &bytes) < 0)
		return -errno;
	q.target.spec.length = bytes / SECTOR;
	snprintf(q.target.spec.target_type, sizeof(q.target.spec.target_type), "linear");
	snprintf(q.target.params, sizeof(q.target.params), "%d:%u 0", LOOP_MAJOR, loop);
	return ask(o->control, DM_TABLE_LOAD, o->uuid, 0, &q);
}

/*
 * Waits until all that was begun is done. Not for the file system: to freeze it, all that it has not
 * written yet would have to be written, for which its users would wait; what is below has the same
 * blocks after the switch as before.
 */
static int suspend(const struct order *o)
{
	struct request q = { 0 };

	return ask(o->control, DM_DEV_SUSPEND, o->uuid, DM_SUSPEND_FLAG | DM_SKIP_LOCKFS_FLAG, &q);
}

/* Of what was loaded and cannot be used nothing is left after the first failure. */
static int resume(const struct order *o)
{
	int r = -EIO;

	for (int i = 0; i < 2 && r < 0; i++) {
		struct request q = { .head.event_nr = UDEV_LEAVE_ALONE };

		r = ask(o->control, DM_DEV_SUSPEND, o->uuid, DM_SKIP_LOCKFS_FLAG, &q);
	}
	return r;
}

static int drop(const struct order *o, uint32_t flags)
{
	struct request q = { .head.event_nr = UDEV_LEAVE_ALONE };
	int r = ask(o->control, DM_DEV_REMOVE, o->uuid, flags, &q);

	return r == -ENXIO ? 0 : r;
}

static int do_make(void *arg)
{
	struct order *o = arg;
	size_t len = strlen(o->uuid);
	struct request q;
	int r = -EBUSY;

	for (unsigned i = 0; i < NAMES_MAX && r == -EBUSY; i++) {
		snprintf(o->uuid + len, sizeof(o->uuid) - len, "-%u", i);
		q = (struct request){ 0 };
		snprintf(q.head.name, sizeof(q.head.name), "%s", o->uuid);
		r = ask(o->control, DM_DEV_CREATE, o->uuid, 0, &q);
	}
	if (r < 0)
		return r;
	o->device = (dev_t)q.head.dev;
	r = load(o, o->next);
	if (r == 0)
		r = resume(o);
	if (r < 0)
		(void)drop(o, 0);
	return r;
}

static int do_drop_later(void *arg)
{
	return drop(arg, DM_DEFERRED_REMOVE);
}

static int do_drop_now(void *arg)
{
	return drop(arg, 0);
}

static int do_keep(void *arg)
{
	const struct order *o = arg;
	struct request q = { 0 };

	snprintf(q.message + sizeof(struct dm_target_msg),
		 sizeof(q.message) - sizeof(struct dm_target_msg), "@cancel_deferred_remove");
	return ask(o->control, DM_TARGET_MSG, o->uuid, 0, &q);
}

static int do_resize(void *arg)
{
	const struct order *o = arg;
	int r = load(o, o->next), rc;

	if (r < 0)
		return r;
	r = suspend(o);
	rc = resume(o);
	return r < 0 ? r : rc;
}

/*
 * Who writes to the loop device below a suspended one says so with a lock on its file: what it has
 * begun may be written long after it was killed, and must not come after what users write then.
 */
static int claim(int fd)
{
	/* udev has it for a moment now and then */
	for (int i = 0; i < 20; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return -errno;
		nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
	}
	return -EBUSY;
}

static int do_settle(void *arg)
{
	const struct order *o = arg;
	char path[LOOP_PATH_MAX];
	int r = 0;

	/* they are closed at the end of this process */
	for (size_t i = 0; i < o->count && r == 0; i++) {
		int fd = loop_open(o->loops[i], path, O_RDONLY);

		r = fd < 0 ? fd : claim(fd);
	}
	return r < 0 ? r : resume(o);
}

static char block[BLOCK] __attribute__((aligned(BLOCK)));

/* All of it has to reach the storage: a write that too few copies take fails. */
static int prove(int fd)
{
	ssize_t n = pread(fd, block, BLOCK, 0);

	if (n == BLOCK)
		n = pwrite(fd, block, BLOCK, 0);
	return n == BLOCK && fdatasync(fd) == 0 ? 0 : -ESTALE;
}

/*
 * It goes on when the service is ended: its user would wait until there is one again. It has the next
 * loop device open, so that its number is no other's then. From the suspension on nothing is touched but
 * the two loop devices and memory that is there.
 */
static int do_switch(void *arg)
{
	struct order *o = arg;
	char path[LOOP_PATH_MAX];
	cleanup_close int fd = loop_open(o->old, path, O_RDWR | O_DIRECT);
	struct request clear = { 0 };
	sigset_t all;
	int r = fd < 0 ? fd : claim(fd), rc;

	o->control = r < 0 ? r : open_control();
	if (o->control < 0)
		return o->control;
	/* of a change that was interrupted nothing may come into force here */
	r = ask(o->control, DM_TABLE_CLEAR, o->uuid, 0, &clear);
	if (r < 0)
		return r;
	memset(block, 1, BLOCK);
	sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)prctl(PR_SET_PDEATHSIG, 0);
	r = suspend(o);
	if (r == 0)
		r = prove(fd);
	if (r == 0)
		r = load(o, o->next);
	rc = resume(o);
	return r < 0 ? r : rc;
}

/* ---- making one ------------------------------------------------------------------------------- */

static int open_linear(struct linear *l)
{
	cleanup_close int fd = -1;
	struct stat st;

	snprintf(l->device, sizeof(l->device), "/dev/dm-%u", l->minor);
	fd = open(l->device, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		(void)mknod(l->device, S_IFBLK | 0600, makedev(l->major, l->minor));
		fd = open(l->device, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISBLK(st.st_mode) || st.st_rdev != makedev(l->major, l->minor))
		return -ESTALE;
	l->fd = TAKE_FD(fd);
	return 0;
}

static void file_uuid(char ret[static LINEAR_UUID_MAX], const char *root, const char *sub)
{
	char hash[HASH_TEXT_MAX];

	hash_of(hash, root, sub);
	snprintf(ret, LINEAR_UUID_MAX, UUID_PREFIX "%s", hash);
}

int linear_make(const struct loop *l, const char *root, const char *sub, int timeout_ms,
		struct linear *ret, struct error *err)
{
	struct linear made = LINEAR_INIT;
	struct order o = { .next = l->number };
	int r;

	file_uuid(o.uuid, root, sub);
	r = run(do_make, &o, l->device, timeout_ms);
	if (r < 0)
		return error_errno(err, -r, "cannot make a device above %s", l->device);
	made.major = major(o.device);
	made.minor = minor(o.device);
	memcpy(made.uuid, o.uuid, sizeof(made.uuid));
	r = open_linear(&made);
	if (r == 0)
		r = run(do_drop_later, &o, made.uuid, timeout_ms);
	if (r < 0) {
		linear_close(&made);
		(void)run(do_drop_now, &o, made.uuid, timeout_ms);
		return error_errno(err, -r, "cannot use %s above %s", made.device, l->device);
	}
	*ret = made;
	return 0;
}

int linear_keep(const struct linear *l, int timeout_ms, struct error *err)
{
	struct order o = { 0 };
	int r;

	memcpy(o.uuid, l->uuid, sizeof(o.uuid));
	r = run(do_keep, &o, o.uuid, timeout_ms);
	return r < 0 ? error_errno(err, -r, "cannot keep %s", l->device) : 0;
}

void linear_close(struct linear *l)
{
	cleanup_close_p(&l->fd);
	l->fd = -1;
}

/* ---- one that is there ------------------------------------------------------------------------ */

static bool read_line(char *ret, size_t size, const char *dir, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name), *text = NULL;

	if (file_read(path, 256, &text, NULL, NULL) < 0)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return (size_t)snprintf(ret, size, "%s", text) < size;
}

static void find_loops(const char *dir, struct linear_state *s)
{
	cleanup_free char *path = xasprintf("%s/slaves", dir);
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && s->count < LINEAR_LOOPS_MAX && (e = readdir(d)))
		if (sscanf(e->d_name, "loop%u", &s->loops[s->count]) == 1)
			s->count++;
	if (d)
		closedir(d);
}

static bool look_in(const char *dir, struct linear_state *ret)
{
	struct linear_state s = { 0 };
	char text[32];

	if (!read_line(s.uuid, sizeof(s.uuid), dir, "dm/uuid") ||
	    !str_has_prefix(s.uuid, UUID_PREFIX) || !read_line(text, sizeof(text), dir, "dev") ||
	    sscanf(text, "%u:%u", &s.major, &s.minor) != 2)
		return false;
	s.suspended = read_line(text, sizeof(text), dir, "dm/suspended") && streq(text, "1");
	find_loops(dir, &s);
	*ret = s;
	return true;
}

bool linear_look(unsigned major, unsigned minor, struct linear_state *ret)
{
	cleanup_free char *dir = xasprintf("/sys/dev/block/%u:%u", major, minor);

	return look_in(dir, ret);
}

bool linear_is_of(const struct linear_state *s, const char *root, const char *sub)
{
	char uuid[LINEAR_UUID_MAX];

	file_uuid(uuid, root, sub);
	return str_has_prefix(s->uuid, uuid);
}

int linear_each(int (*fn)(const struct linear_state *s, void *userdata), void *userdata)
{
	DIR *d = opendir("/sys/block");
	int r = 0;

	for (struct dirent *e; d && r == 0 && (e = readdir(d));) {
		cleanup_free char *dir = xasprintf("/sys/block/%s", e->d_name);
		struct linear_state s;

		if (str_has_prefix(e->d_name, "dm-") && look_in(dir, &s))
			r = fn(&s, userdata);
	}
	if (d)
		closedir(d);
	return r;
}

int linear_settle(const struct linear_state *s, int timeout_ms, struct error *err)
{
	struct order o = order_of(s);
	int r = s->suspended ? run(do_settle, &o, s->uuid, timeout_ms) : 0;

	return r < 0 ? error_errno(err, -r, "cannot resume device %u:%u", s->major, s->minor) : 0;
}

int linear_resize(const struct linear_state *s, int timeout_ms, struct error *err)
{
	struct order o = order_of(s);
	int r;

	o.next = s->loops[0];
	r = s->count == 1 ? run(do_resize, &o, s->uuid, timeout_ms) : -EBUSY;
	return r < 0 ? error_errno(err, -r, "cannot resize device %u:%u", s->major, s->minor) : 0;
}

int linear_switch(const struct linear_state *s, unsigned old, const struct loop *next,
		  int timeout_ms, struct error *err)
{
	struct order o = order_of(s);
	int r;

	o.old = old;
	o.next = next->number;
	r = spawn_call_keeping(do_switch, &o, next->fd, s->uuid, timeout_ms, NULL);
	if (r == -ESTALE)
		return error_set(err, ESTALE,
				 "it lost its lock on too many copies at once: another may have "
				 "written to it");
	return r < 0 ? error_errno(err, -r, "cannot switch device %u:%u to %s", s->major, s->minor,
				   next->device)
		     : 0;
}

int linear_detach(const struct linear_state *s, int timeout_ms, struct error *err)
{
	struct order o = order_of(s);
	int r = run(do_drop_later, &o, s->uuid, timeout_ms);

	return r < 0 ? error_errno(err, -r, "cannot end device %u:%u", s->major, s->minor) : 0;
}

int linear_await_end(const struct linear_state *s, int timeout_ms, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;
	struct linear_state now;

	while (linear_look(s->major, s->minor, &now) && streq(now.uuid, s->uuid)) {
		if (clock_mono_ms(&clock_real) > end)
			return error_set(err, EBUSY, "/dev/dm-%u is still in use", s->minor);
		nanosleep(&(struct timespec){ .tv_nsec = 10 * 1000 * 1000 }, NULL);
	}
	return 0;
}

/* ---- what is left ----------------------------------------------------------------------------- */

/* Its file bound somewhere. */
static int is_shown(const struct mount_entry *e, void *userdata)
{
	return streq(e->root, userdata);
}

struct sweep {
	const char *root, *sub;
	int timeout_ms;
	struct error *err;
};

static int sweep_one(const struct linear_state *s, void *userdata)
{
	const struct sweep *w = userdata;
	cleanup_free char *mounts = NULL;
	struct order o = order_of(s);
	char place[32];
	int r;

	if (!linear_is_of(s, w->root, w->sub))
		return 0;
	snprintf(place, sizeof(place), "/dm-%u", s->minor);
	r = file_read("/proc/self/mountinfo", 0, &mounts, NULL, w->err);
	if (r < 0 || mountinfo_each(mounts, is_shown, place) != 0)
		return r;
	r = linear_settle(s, w->timeout_ms, w->err);
	if (r == 0)
		r = run(do_drop_now, &o, s->uuid, w->timeout_ms);
	if (r == -EBUSY)
		return 0;
	if (r < 0)
		return error_errno(w->err, -r, "cannot take away device %u:%u", s->major, s->minor);
	for (size_t i = 0; i < s->count && r == 0; i++)
		r = loop_await_end(s->loops[i], w->timeout_ms, w->err);
	return r;
}

int linear_sweep(const char *root, const char *sub, int timeout_ms, struct error *err)
{
	struct sweep w = { .root = root, .sub = sub, .timeout_ms = timeout_ms, .err = err };

	return root ? linear_each(sweep_one, &w) : 0;
}
