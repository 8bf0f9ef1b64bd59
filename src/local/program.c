/* SPDX-License-Identifier: Apache-2.0 */
#include "local/program.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/spawn.h"
#include "base/str.h"
#include "local/box.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/pidfd.h>

static char *lock_path(const char *name)
{
	return run_path("%s.lock", name);
}

struct program *program_new(const char *name, const char *const *argv, const char *box)
{
	struct program *p = xcalloc(1, sizeof(*p));
	struct strv words = { 0 };

	for (; *argv; argv++)
		strv_add(&words, *argv);
	p->name = xstrdup(name);
	p->argv = words.items;
	p->box = box ? xstrdup(box) : NULL;
	return p;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	for (char **a = p->argv; *a; a++)
		free(*a);
	free(p->argv);
	free(p->name);
	free(p->box);
	free(p);
}

/*
 * A record lock rather than flock: the kernel itself tells who holds it, so there is no moment
 * at which the lock is held and the file has another's pid in it.
 */
int program_lock(const char *name, struct error *err)
{
	cleanup_free char *path = lock_path(name);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int fd, r = mkdir_parents(run_dir(), 0755, err);

	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return error_errno(err, errno, "opening %s", path);
	if (fcntl(fd, F_SETLK, &lock) == 0)
		return 0; /* stays open, and so locked, as long as the process lives */
	r = errno;
	close(fd);
	if (r != EAGAIN && r != EACCES)
		return error_errno(err, r, "locking %s", path);
	return error_set(err, EEXIST, "%s runs already (pid %d)", name, program_pid(name));
}

pid_t program_pid(const char *name)
{
	cleanup_free char *path = lock_path(name);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	cleanup_close int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0 || fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
		return 0;
	return lock.l_pid;
}

static char *forbidden_path(void)
{
	return run_path("down");
}

int programs_forbid(struct error *err)
{
	cleanup_free char *path = forbidden_path();
	int r = mkdir_parents(run_dir(), 0755, err);

	return r < 0 ? r : file_write(path, "", 0, 0644, err);
}

int programs_allow(struct error *err)
{
	cleanup_free char *path = forbidden_path();

	if (unlink(path) < 0 && errno != ENOENT)
		return error_errno(err, errno, "removing %s", path);
	return 0;
}

/* argv with the words of QM_WRAP before it. */
static void wrapped_argv(const struct program *p, struct strv *ret)
{
	const char *wrap = getenv("QM_WRAP");
	cleanup_free char *words = wrap ? xstrdup(wrap) : NULL;
	char *save = NULL;

	for (char *w = words ? strtok_r(words, " ", &save) : NULL; w;
	     w = strtok_r(NULL, " ", &save))
		strv_add(ret, w);
	for (char **a = p->argv; *a; a++)
		strv_add(ret, *a);
}

/* Without it each of a daemon's threads keeps what it freed; daemon_begin takes it out again. */
static const char *const lean_env[] = { "GLIBC_TUNABLES=glibc.malloc.tcache_count=0", NULL };

int program_start(const struct program *p, pid_t *ret_pid, struct error *err)
{
	cleanup_free char *log_dir = state_path("log");
	cleanup_free char *log = state_path("log/%s.log", p->name);
	cleanup_close int net = -1, mnt = -1;
	cleanup_free char *forbidden = forbidden_path();
	struct strv argv = { 0 };
	pid_t pid = program_pid(p->name);
	int r = 0;

	if (access(forbidden, F_OK) == 0)
		return error_set(
			err, ECANCELED,
			"%s is not started: the instance was taken down; run: quartermaster up",
			p->name);
	if (p->start) {
		r = p->start(p, &pid, err);
	} else if (pid == 0) {
		r = mkdir_parents(log_dir, 0755, err);
		if (r == 0 && p->box)
			r = box_open(p->box, &net, &mnt, err);
		wrapped_argv(p, &argv);
		if (r == 0)
			r = spawn_daemon(
				&(struct spawn_daemon){ .argv = (const char *const *)argv.items,
							.env = lean_env,
							.log_path = log,
							.netns_fd = net,
							.mntns_fd = mnt,
							.keep_fd = -1 },
				&pid, err);
		strv_done(&argv);
	}
	if (r < 0)
		return error_prefix(err, "starting %s", p->name);
	*ret_pid = pid;
	return 0;
}

int program_stop(const char *name, int timeout_ms, struct error *err)
{
	static const int signals[] = { SIGTERM, SIGKILL };

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		pid_t pid = program_pid(name);
		cleanup_close int fd = pid ? pidfd_open(pid, 0) : -1;
		struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

		/* asked again with the descriptor in hand: the pid is still the one that holds the lock */
		if (pid == 0 || fd < 0 || program_pid(name) != pid)
			return 0;
		if (pidfd_send_signal(fd, signals[i], NULL, 0) < 0 && errno != ESRCH)
			return error_errno(err, errno, "ending %s (pid %d)", name, pid);
		if (poll(&poll_fd, 1, timeout_ms) > 0)
			return 0;
	}
	return error_set(err, EBUSY, "%s (pid %d) does not end even after SIGKILL", name,
			 program_pid(name));
}
