/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into qm-gluster by tests/gluster/worker.sh: stops or kills it right before one of its calls of libgfapi, so that
 * what happens then does not depend on the clock. QM_TRAP names a file; each worker takes the first line of it:
 *   stop|kill|cut FUNCTION PATTERN N     at the N-th call whose entry's name (of a rename the old one) is like the pattern;
 *                                        cut: kills it in the middle of the call
 * A file that is opened counts as "rw" or "ro"; calls that have no name count as "-". Where there is no file, or no line is left, nothing happens.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <glusterfs/api/glfs-handles.h>
#include <glusterfs/api/glfs.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCKS_US 1200000
#define CUT_US 3000

static struct {
	char function[32], pattern[128];
	int signal;
	bool cut;
	atomic_int left; /* calls until it happens */
} trap;

static void set_trap(const char *line)
{
	char action[8];
	int count;
	if (sscanf(line, "%7s %31s %127s %d", action, trap.function, trap.pattern, &count) != 4)
		abort();
	trap.signal = strcmp(action, "stop") == 0 ? SIGSTOP : SIGKILL;
	trap.cut = strcmp(action, "cut") == 0;
	trap.left = count;
}

__attribute__((constructor)) static void take_line(void)
{
	const char *path = getenv("QM_TRAP");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	char text[4096];
	if (fd < 0)
		return;
	flock(fd, LOCK_EX);
	ssize_t len = read(fd, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = 0;
	char *end = strchr(text, '\n');
	if (end) {
		size_t rest = strlen(end + 1);
		*end = 0;
		if (pwrite(fd, end + 1, rest, 0) != (ssize_t)rest || ftruncate(fd, (off_t)rest) < 0)
			abort();
		set_trap(text);
	}
	close(fd);
}

static void *kill_soon(void *arg)
{
	usleep((useconds_t)(getpid() % CUT_US));
	kill(getpid(), SIGKILL);
	return arg;
}

/* Locks that GlusterFS gives back after a call has ended, by a timer of a second, are not held by one that is stopped. */
static void look(const char *function, const char *name)
{
	if (!trap.signal || strcmp(function, trap.function) != 0 ||
	    fnmatch(trap.pattern, name, 0) != 0 || atomic_fetch_sub(&trap.left, 1) != 1)
		return;
	pthread_t thread;
	if (trap.signal == SIGSTOP)
		usleep(LOCKS_US);
	if (trap.cut)
		pthread_create(&thread, NULL, kill_soon, NULL);
	else
		raise(trap.signal);
}

/* The same function of libgfapi, after a look. */
#define TRAP(type, function, params, args, name)                                                   \
	__attribute__((visibility("default"))) type function params                                \
	{                                                                                          \
		static type(*real) params;                                                         \
		if (!real)                                                                         \
			*(void **)&real = dlsym(RTLD_NEXT, #function);                             \
		look(#function, name);                                                             \
		return real args;                                                                  \
	}

TRAP(struct glfs_fd *, glfs_h_open, (struct glfs * fs, struct glfs_object *object, int flags),
     (fs, object, flags), (flags & O_ACCMODE) == O_RDONLY ? "ro" : "rw")
TRAP(int, glfs_h_rename,
     (struct glfs * fs, struct glfs_object *old_dir, const char *old_name,
      struct glfs_object *new_dir, const char *new_name),
     (fs, old_dir, old_name, new_dir, new_name), old_name)
TRAP(int, glfs_h_unlink, (struct glfs * fs, struct glfs_object *dir, const char *name),
     (fs, dir, name), name)
TRAP(struct glfs_object *, glfs_h_mkdir,
     (struct glfs * fs, struct glfs_object *dir, const char *name, mode_t mode, struct stat *st),
     (fs, dir, name, mode, st), name)
TRAP(struct glfs_object *, glfs_h_creat_open,
     (struct glfs * fs, struct glfs_object *dir, const char *name, int flags, mode_t mode,
      struct stat *st, struct glfs_fd **fd),
     (fs, dir, name, flags, mode, st, fd), name)
TRAP(struct glfs_object *, glfs_h_symlink,
     (struct glfs * fs, struct glfs_object *dir, const char *name, const char *target,
      struct stat *st),
     (fs, dir, name, target, st), name)
TRAP(int, glfs_h_link,
     (struct glfs * fs, struct glfs_object *object, struct glfs_object *dir, const char *name),
     (fs, object, dir, name), name)
TRAP(int, glfs_h_setattrs,
     (struct glfs * fs, struct glfs_object *object, struct stat *st, int valid),
     (fs, object, st, valid), "-")
TRAP(int, glfs_h_setxattrs,
     (struct glfs * fs, struct glfs_object *object, const char *name, const void *value,
      size_t size, int flags),
     (fs, object, name, value, size, flags), name)
TRAP(ssize_t, glfs_pwrite,
     (struct glfs_fd * fd, const void *data, size_t len, off_t at, int flags,
      struct glfs_stat *before, struct glfs_stat *after),
     (fd, data, len, at, flags, before, after), "-")
TRAP(int, glfs_fsync,
     (struct glfs_fd * fd, struct glfs_stat *before, struct glfs_stat *after), (fd, before, after),
     "-")
