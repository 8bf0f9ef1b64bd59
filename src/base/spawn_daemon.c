/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "base/spawn_child.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>

#define EXEC_WAIT_MS 10000

struct daemon_fds {
	int null, log, report[2];
};

static void daemon_fds_done(struct daemon_fds *f)
{
	close_fd(&f->null);
	close_fd(&f->log);
	close_fd(&f->report[0]);
	close_fd(&f->report[1]);
}

static int daemon_fds_open(struct daemon_fds *f, const struct spawn_daemon *d, struct error *err)
{
	f->null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (f->null < 0)
		return error_errno(err, errno, "cannot open /dev/null");
	/* opened here: in another mount namespace the path might not exist */
	f->log = open(d->log_path ? d->log_path : "/dev/null",
		      O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0640);
	if (f->log < 0)
		return error_errno(err, errno, "cannot open the log %s", d->log_path);
	if (pipe2(f->report, O_CLOEXEC) < 0)
		return error_errno(err, errno, "cannot make a pipe");
	return 0;
}

static int enter_namespaces(const struct spawn_daemon *d)
{
	if (d->netns_fd >= 0 && setns(d->netns_fd, CLONE_NEWNET) < 0)
		return -errno;
	if (d->mntns_fd >= 0 && setns(d->mntns_fd, CLONE_NEWNS) < 0)
		return -errno;
	return chdir("/") < 0 ? -errno : 0;
}

/* The middle process: makes the session and the daemon, tells its pid, and is gone. */
static _Noreturn void daemon_child(const struct spawn_daemon *d, const struct program *prog,
				   const struct daemon_fds *f)
{
	int fds[3] = { f->null, f->log, f->log };
	int report = fcntl(f->report[1], F_DUPFD_CLOEXEC, 3);
	int keep = d->keep_fd >= 0 ? fcntl(d->keep_fd, F_DUPFD_CLOEXEC, 3) : -1;
	pid_t pid;
	int r;

	setsid();
	pid = _Fork();
	if (pid < 0)
		child_report(report, -errno);
	if (pid > 0)
		child_report(report, pid);
	r = enter_namespaces(d);
	if (r == 0)
		r = child_take_fds(fds, keep);
	if (r == 0) {
		execve(prog->path, prog->argv, prog->env);
		r = -errno;
	}
	child_report(report, r);
}

/* Two reports, in either order: the pid, and the error of a failed exec or the pipe's end. */
static int daemon_outcome(int fd, pid_t *ret_pid)
{
	int64_t end = clock_mono_ms(&clock_real) + EXEC_WAIT_MS;
	int value, r, failure = 0;
	pid_t pid = 0;

	while ((r = child_read_report(fd, end, &value)) > 0) {
		if (value > 0)
			pid = value;
		else
			failure = value;
	}
	if (r < 0 && pid > 0)
		kill(pid, SIGKILL);
	if (r < 0)
		return r;
	if (failure < 0)
		return failure;
	*ret_pid = pid;
	return pid > 0 ? 0 : -EIO;
}

int spawn_daemon(const struct spawn_daemon *d, pid_t *ret_pid, struct error *err)
{
	cleanup_with(daemon_fds_done) struct daemon_fds fds = { -1, -1, { -1, -1 } };
	cleanup_close int pidfd = -1;
	struct program prog = { 0 };
	pid_t pid;
	int r = hung_check(NULL, NULL, err);

	if (r == 0)
		r = daemon_fds_open(&fds, d, err);
	if (r == 0)
		r = program_init(&prog, d->argv, d->env, err);
	if (r < 0)
		return r;
	pid = child_fork();
	if (pid == 0)
		daemon_child(d, &prog, &fds);
	program_done(&prog);
	if (pid < 0)
		return error_errno(err, -pid, "cannot start %s", d->argv[0]);
	pidfd = child_pidfd(pid);
	close_fd(&fds.report[1]);
	r = daemon_outcome(fds.report[0], ret_pid);
	child_reap(pid, pidfd, r == -ETIMEDOUT, NULL, NULL);
	if (r < 0)
		return error_errno(err, -r, "cannot start %s", d->argv[0]);
	return 0;
}
