/* SPDX-License-Identifier: Apache-2.0 */
#include "local/box.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "local/boxnet.h"
#include "local/self.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <mntent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

#define BRICKS_DIR "/var/lib/quartermaster/bricks"

/* What a box has of its own: where processes see it, and its place in STATE/boxes/NAME. */
static const struct {
	const char *target, *own;
} own_dirs[] = {
	{ "/var/lib/glusterd", "glusterd" },
	{ "/var/log/glusterfs", "log" },
	{ BRICKS_DIR, "bricks" },
};

static char *pin_path(const char *name, const char *kind)
{
	return run_path("boxes/%s.%s", name, kind);
}

static bool is_pinned(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

bool box_exists(const char *name)
{
	cleanup_free char *mnt = pin_path(name, "mnt");

	return is_pinned(mnt);
}

bool box_any(void)
{
	cleanup_free char *dir = run_path("boxes");
	DIR *d = opendir(dir);
	struct dirent *e;
	bool any = false;

	while (d && !any && (e = readdir(d))) {
		cleanup_free char *path = xasprintf("%s/%s", dir, e->d_name);

		any = str_has_suffix(e->d_name, ".mnt") && is_pinned(path);
	}
	if (d)
		closedir(d);
	return any;
}

/* A mount namespace can only be pinned where mounts do not propagate: RUN/boxes is made such a place. */
static int prepare_pin_dir(struct error *err)
{
	cleanup_free char *dir = run_path("boxes");
	struct statx st;
	int r = mkdir_parents(dir, 0755, err);

	if (r < 0)
		return r;
	if (statx(AT_FDCWD, dir, 0, 0, &st) < 0)
		return error_errno(err, errno, "looking at %s", dir);
	if (st.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return 0;
	if (mount(dir, dir, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, dir, NULL, MS_PRIVATE, NULL) < 0)
		return error_errno(err, errno, "making %s a private mount", dir);
	return 0;
}

static int bind_mount(const char *source, const char *target, struct error *err)
{
	if (mount(source, target, NULL, MS_BIND, NULL) < 0)
		return error_errno(err, errno, "mounting %s on %s", source, target);
	return 0;
}

/* Something directly below a directory that is replaced, which has to stay in its place. */
struct kept {
	char *path;
	int tree;
};

/* 1: path lies below dir, and what is to be kept of it is in *ret; 0: it does not. */
static int keep(const char *dir, const char *path, struct kept *ret, struct error *err)
{
	size_t len = strlen(dir);

	if (strncmp(path, dir, len) != 0 || path[len] != '/')
		return 0;
	ret->path = xstrndup(path, len + 1 + strcspn(path + len + 1, "/"));
	ret->tree = (int)syscall(SYS_open_tree, AT_FDCWD, ret->path,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return ret->tree < 0 ? error_errno(err, errno, "opening %s", ret->path) : 1;
}

static int put_back(const struct kept *k, struct error *err)
{
	struct stat st;
	int r = 0;

	if (fstat(k->tree, &st) == 0 && S_ISDIR(st.st_mode))
		r = mkdir_parents(k->path, 0755, err);
	else
		r = file_write(k->path, "", 0, 0755, err);
	if (r < 0)
		return r;
	if (syscall(SYS_move_mount, k->tree, "", AT_FDCWD, k->path, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_errno(err, errno, "mounting %s where it was", k->path);
	return 0;
}

/*
 * A fresh directory in which only what this instance needs is as it was: daemons put sockets with
 * fixed names in /run, and glusterd writes files with fixed names in /tmp, which those of other
 * boxes would write at the same moment.
 */
static int replace_dir(const char *dir, const char *options, struct error *err)
{
	const char *const needed[] = { run_dir(), state_dir(), self_path() };
	struct kept kept[ARRAY_SIZE(needed)];
	size_t count = 0;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(needed) && r >= 0; i++) {
		kept[count] = (struct kept){ .tree = -1 };
		r = keep(dir, needed[i], &kept[count], err);
		count += r != 0;
	}
	if (r >= 0 && mount("tmpfs", dir, "tmpfs", MS_NOSUID | MS_NODEV, options) < 0)
		r = error_errno(err, errno, "mounting a fresh %s", dir);
	for (size_t i = 0; i < count; i++) {
		if (r >= 0)
			r = put_back(&kept[i], err);
		close(kept[i].tree);
		free(kept[i].path);
	}
	return r < 0 ? r : 0;
}

/*
 * No name is ever looked up outside: glusterd asks for the names of its peers, and would wait for
 * name servers that cannot be reached from here. Without any, the library asks this very box.
 */
static int no_name_servers(const char *name, struct error *err)
{
	cleanup_free char *source = state_path("boxes/%s/resolv.conf", name);

	if (access("/etc/resolv.conf", F_OK) < 0)
		return 0;
	return bind_mount(source, "/etc/resolv.conf", err);
}

/*
 * glusterd configures geo-replication at every start, by some twenty runs of a Python program:
 * seconds of two cores for each box. Nothing here replicates to other places, so in a box that
 * program is a script that agrees to everything.
 */
static int no_geo_replication(const char *name, struct error *err)
{
	cleanup_free char *source = state_path("boxes/%s/gsyncd", name);
	glob_t found = { 0 };
	int r = 0;

	glob("/usr/lib/*/glusterfs/gsyncd", 0, NULL, &found);
	for (size_t i = 0; i < found.gl_pathc && r == 0; i++)
		r = bind_mount(source, found.gl_pathv[i], err);
	globfree(&found);
	return r;
}

/*
 * A box begins with a copy of every mount of the machine. What is unmounted there later goes here
 * too where mounts propagate; where they do not, a volume that was mounted at this moment would
 * never end: its client serves the copy.
 */
static void drop_volumes(void)
{
	FILE *mounts = setmntent("/proc/thread-self/mounts", "re");
	struct strv points = { 0 };
	struct mntent *e;

	while (mounts && (e = getmntent(mounts)))
		if (str_has_prefix(e->mnt_type, "fuse"))
			strv_add(&points, e->mnt_dir);
	if (mounts)
		endmntent(mounts);
	for (size_t i = points.count; i > 0; i--)
		umount2(points.items[i - 1], MNT_DETACH);
	strv_done(&points);
}

static int own_mounts(const char *name, struct error *err)
{
	cleanup_free char *pins = run_path("boxes");
	int r;

	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return error_errno(err, errno, "separating the mounts of box %s", name);
	drop_volumes();
	/* else this box would hold the other boxes' network namespaces alive */
	umount2(pins, MNT_DETACH);
	for (size_t i = 0; i < ARRAY_SIZE(own_dirs); i++) {
		cleanup_free char *source = state_path("boxes/%s/%s", name, own_dirs[i].own);

		r = bind_mount(source, own_dirs[i].target, err);
		if (r < 0)
			return r;
	}
	r = replace_dir("/run", "mode=755", err);
	if (r == 0)
		r = replace_dir("/tmp", "mode=1777", err);
	if (r == 0)
		r = no_name_servers(name, err);
	if (r == 0)
		r = no_geo_replication(name, err);
	if (r == 0)
		r = mkdir_parents("/run/gluster", 0755, err);
	if (r == 0)
		r = mkdir_parents("/run/lock", 0755, err);
	return r;
}

/* Namespaces are made by a thread of their own, which the pins then outlive: no fork of a threaded process. */
struct maker {
	const char *name;
	bool own_network;
	pid_t tid;
	int result;
	struct error error;
	pthread_barrier_t made, pinned;
};

static void *make_namespaces(void *arg)
{
	struct maker *m = arg;

	m->tid = gettid();
	if (unshare(CLONE_NEWNS | (m->own_network ? CLONE_NEWNET : 0)) < 0)
		m->result =
			error_errno(&m->error, errno, "making the namespaces of box %s", m->name);
	else
		m->result = own_mounts(m->name, &m->error);
	pthread_barrier_wait(&m->made);
	pthread_barrier_wait(&m->pinned);
	return NULL;
}

static int pin(const struct maker *m, const char *kind, struct error *err)
{
	cleanup_free char *path = pin_path(m->name, kind);
	cleanup_free char *source = xasprintf("/proc/self/task/%d/ns/%s", m->tid, kind);
	cleanup_close int fd = open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return error_errno(err, errno, "making %s", path);
	return bind_mount(source, path, err);
}

static int make_and_pin(const char *name, bool own_network, struct error *err)
{
	struct maker m = { .name = name, .own_network = own_network };
	pthread_t thread;
	int r;

	pthread_barrier_init(&m.made, NULL, 2);
	pthread_barrier_init(&m.pinned, NULL, 2);
	r = pthread_create(&thread, NULL, make_namespaces, &m);
	if (r != 0)
		return error_errno(err, r, "starting a thread for box %s", name);
	pthread_barrier_wait(&m.made);
	r = m.result;
	if (r < 0 && err)
		*err = m.error;
	/* the mount pin comes last: it is what says that the box is whole */
	if (r == 0 && own_network)
		r = pin(&m, "net", err);
	if (r == 0)
		r = pin(&m, "mnt", err);
	pthread_barrier_wait(&m.pinned);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&m.made);
	pthread_barrier_destroy(&m.pinned);
	return r;
}

static int make_own_dirs(const char *name, struct error *err)
{
	static const char script[] = "#!/bin/sh\necho gsyncd\n";
	cleanup_free char *names = state_path("boxes/%s/resolv.conf", name);
	cleanup_free char *gsyncd = state_path("boxes/%s/gsyncd", name);
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(own_dirs) && r == 0; i++) {
		cleanup_free char *source = state_path("boxes/%s/%s", name, own_dirs[i].own);

		r = mkdir_parents(source, 0755, err);
		if (r == 0)
			r = mkdir_parents(own_dirs[i].target, 0755, err);
	}
	if (r == 0)
		r = file_write(names, "", 0, 0644, err);
	if (r == 0)
		r = file_write(gsyncd, script, strlen(script), 0755, err);
	return r;
}

int box_ensure(const struct box *box, struct error *err)
{
	cleanup_free char *lock_path = run_path("boxes.lock");
	cleanup_free char *net = pin_path(box->name, "net");
	cleanup_close int lock = -1;
	int r = mkdir_parents(run_dir(), 0755, err);

	if (r < 0)
		return r;
	lock = lock_file(lock_path, true, err);
	if (lock < 0)
		return lock;
	r = prepare_pin_dir(err);
	if (r == 0 && !box_exists(box->name)) {
		if (is_pinned(net)) /* half a box, from a crash between the two pins */
			umount2(net, MNT_DETACH);
		r = make_own_dirs(box->name, err);
		if (r == 0)
			r = make_and_pin(box->name, !boxnet_is_machine(box->addresses), err);
	}
	if (r == 0 && is_pinned(net))
		r = boxnet_ensure(box->name, net, box->addresses, err);
	return r < 0 ? error_prefix(err, "preparing box %s", box->name) : 0;
}

int box_open(const char *name, int *ret_net, int *ret_mnt, struct error *err)
{
	cleanup_free char *net = pin_path(name, "net"), *mnt = pin_path(name, "mnt");
	cleanup_close int net_fd = -1, mnt_fd = -1;

	if (!is_pinned(mnt))
		return error_set(err, ENOENT, "there is no box %s; run: quartermaster up", name);
	mnt_fd = open(mnt, O_RDONLY | O_CLOEXEC);
	if (mnt_fd < 0)
		return error_errno(err, errno, "opening %s", mnt);
	if (is_pinned(net)) {
		net_fd = open(net, O_RDONLY | O_CLOEXEC);
		if (net_fd < 0)
			return error_errno(err, errno, "opening %s", net);
	}
	*ret_net = TAKE_FD(net_fd);
	*ret_mnt = TAKE_FD(mnt_fd);
	return 0;
}

int box_signal(const char *name, int sig)
{
	cleanup_free char *mnt = pin_path(name, "mnt");
	struct stat pinned, st;
	struct dirent *e;
	DIR *proc;
	int count = 0;

	if (!is_pinned(mnt) || stat(mnt, &pinned) < 0)
		return 0;
	proc = opendir("/proc");
	if (!proc)
		return 0;
	while ((e = readdir(proc))) {
		char path[64];
		pid_t pid = (pid_t)atoi(e->d_name);

		if (!isdigit((unsigned char)e->d_name[0]) || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
		if (stat(path, &st) < 0 || st.st_ino != pinned.st_ino || st.st_dev != pinned.st_dev)
			continue;
		count++;
		if (sig)
			kill(pid, sig);
	}
	closedir(proc);
	return count;
}

/* Waits for the processes of a box to end; how many are left. */
static int wait_empty(const char *name, int timeout_ms)
{
	int left;

	while ((left = box_signal(name, 0)) > 0 && timeout_ms > 0) {
		nanosleep(&(struct timespec){ .tv_nsec = 20 * 1000 * 1000 }, NULL);
		timeout_ms -= 20;
	}
	return left;
}

static void unpin(const char *name, const char *kind)
{
	cleanup_free char *path = pin_path(name, kind);

	if (is_pinned(path))
		umount2(path, MNT_DETACH);
	unlink(path);
}

int box_remove(const char *name, struct error *err)
{
	cleanup_free char *lock_path = run_path("boxes.lock");
	cleanup_close int lock = lock_file(lock_path, true, err);

	if (lock < 0)
		return lock == -ENOENT ? 0 : lock;
	box_signal(name, SIGTERM);
	if (wait_empty(name, 5000) > 0) {
		box_signal(name, SIGKILL);
		if (wait_empty(name, 5000) > 0)
			return error_set(
				err, EBUSY,
				"processes of box %s do not end even after SIGKILL: a disk or a "
				"mount that hangs; see: ps axo pid,stat,wchan,cmd",
				name);
	}
	boxnet_remove(name);
	unpin(name, "net");
	unpin(name, "mnt");
	return 0;
}

int box_remove_all(struct error *err)
{
	cleanup_free char *dir = run_path("boxes");
	struct dirent *e;
	int r = 0;
	DIR *d = opendir(dir);

	while (d && r == 0 && (e = readdir(d))) {
		cleanup_free char *name = NULL;

		if (!str_has_suffix(e->d_name, ".mnt") && !str_has_suffix(e->d_name, ".net"))
			continue;
		name = xstrndup(e->d_name, strlen(e->d_name) - 4);
		r = box_remove(name, err);
	}
	if (d)
		closedir(d);
	if (r < 0)
		return r;
	boxnet_remove_bridge();
	umount2(dir, MNT_DETACH);
	return 0;
}

bool box_dirs_in_use(void)
{
	const struct dirent *e;
	DIR *proc = opendir("/proc");
	bool found = false;

	while (proc && !found && (e = readdir(proc))) {
		cleanup_free char *path = xasprintf("/proc/%s/mounts", e->d_name);
		FILE *mounts = isdigit((unsigned char)e->d_name[0]) ? setmntent(path, "re") : NULL;
		const struct mntent *m;

		while (mounts && !found && (m = getmntent(mounts)))
			found = streq(m->mnt_dir, BRICKS_DIR);
		if (mounts)
			endmntent(mounts);
	}
	if (proc)
		closedir(proc);
	return found;
}
