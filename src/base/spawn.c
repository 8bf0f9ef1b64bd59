/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/*
 * Our processes have threads, so between fork and exec only system calls are made: everything
 * that needs memory (the environment, the program's path) is ready before the fork.
 * libhostvol uses this file: nothing here may end the program for want of memory.
 */

#define OUTPUT_LIMIT_DEFAULT (8u << 20)
#define KILL_WAIT_MS 1000
#define EXEC_WAIT_MS 10000

/* Children that did not end although killed: looked at again whenever a child is started. */
static struct {
	pthread_mutex_t lock;
	pid_t *pids;
	size_t count;
} unreaped = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void unreaped_add(pid_t pid)
{
	pid_t *pids;

	pthread_mutex_lock(&unreaped.lock);
	pids = realloc(unreaped.pids, (unreaped.count + 1) * sizeof(*pids));
	if (pids) {
		unreaped.pids = pids;
		unreaped.pids[unreaped.count++] = pid;
	}
	pthread_mutex_unlock(&unreaped.lock);
}

static void unreaped_collect(void)
{
	pthread_mutex_lock(&unreaped.lock);
	for (size_t i = 0; i < unreaped.count;) {
		if (waitpid(unreaped.pids[i], NULL, WNOHANG) == 0)
			i++;
		else
			unreaped.pids[i] = unreaped.pids[--unreaped.count];
	}
	if (unreaped.count == 0) {
		free(unreaped.pids);
		unreaped.pids = NULL;
	}
	pthread_mutex_unlock(&unreaped.lock);
}

static int remaining(int64_t end)
{
	int64_t left = end - clock_mono_ms(&clock_real);

	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

/* What exec needs, made before the fork. */
struct program {
	char path[PATH_MAX];
	char **argv;
	char **env;
};

static bool is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static int find_program(const char *name, char ret[static PATH_MAX])
{
	const char *path = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		if (strlen(name) >= PATH_MAX)
			return -ENAMETOOLONG;
		strcpy(ret, name);
		return is_program(name) ? 0 : access(name, F_OK) == 0 ? -EACCES : -ENOENT;
	}
	if (!path)
		path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	for (; *name && path; path = *end ? end + 1 : NULL) {
		int n;

		end = strchrnul(path, ':');
		n = snprintf(ret, PATH_MAX, "%.*s/%s", (int)(end - path), path, name);
		/* an empty part of PATH means the current directory, which is never searched */
		if (end > path && n > 0 && n < PATH_MAX && is_program(ret))
			return 0;
	}
	return -ENOENT;
}

static bool same_variable(const char *a, const char *b)
{
	size_t len = strcspn(a, "=");

	return strncmp(a, b, len + 1) == 0;
}

/* Our environment with the given variables added or put in place of ours. */
static char **merged_env(const char *const *add)
{
	size_t n = 0, have = 0, extra = 0;
	char **env;

	while (environ && environ[have])
		have++;
	while (add && add[extra])
		extra++;
	env = calloc(have + extra + 1, sizeof(*env));
	if (!env)
		return NULL;
	for (size_t i = 0; i < have; i++) {
		bool replaced = false;

		for (size_t j = 0; j < extra; j++)
			replaced |= same_variable(add[j], environ[i]);
		if (!replaced)
			env[n++] = environ[i];
	}
	for (size_t j = 0; j < extra; j++)
		env[n++] = (char *)add[j];
	return env;
}

static int program_init(struct program *p, const char *const *argv, const char *const *env,
			struct error *err)
{
	int r = find_program(argv[0], p->path);

	if (r == -ENOENT)
		return error_set(err, ENOENT, "cannot run %s: no such program; is it installed?",
				 argv[0]);
	if (r < 0)
		return error_errno(err, -r, "cannot run %s", argv[0]);
	p->argv = (char **)argv;
	p->env = merged_env(env);
	if (!p->env)
		return error_errno(err, ENOMEM, "cannot run %s", argv[0]);
	return 0;
}

/* In the child: no handler of the parent may run in it, and the mask starts empty. */
static void reset_signals(void)
{
	struct sigaction sa = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, &sa, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* fork with all signals held, so that no handler runs in the child before reset_signals. */
static pid_t fork_quiet(void)
{
	sigset_t all, old;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = fork();
	if (pid != 0)
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	else
		reset_signals();
	return pid < 0 ? -errno : pid;
}

/* In the child: fds become 0, 1, 2; all others go at exec, but for keep_fd. */
static int take_descriptors(const int fds[static 3], int keep_fd)
{
	int high[3];

	for (int i = 0; i < 3; i++) {
		high[i] = fcntl(fds[i], F_DUPFD, 3);
		if (high[i] < 0)
			return -errno;
	}
	for (int i = 0; i < 3; i++)
		if (dup2(high[i], i) < 0)
			return -errno;
	if (close_range(3, ~0U, CLOSE_RANGE_CLOEXEC) < 0)
		return -errno;
	if (keep_fd >= 0 && fcntl(keep_fd, F_SETFD, 0) < 0)
		return -errno;
	return 0;
}

/* In the child: the last thing said on the pipe, where exec did not happen. */
static _Noreturn void report_and_exit(int fd, int value)
{
	ssize_t n = write(fd, &value, sizeof(value));

	_exit(n == sizeof(value) ? 127 : 126);
}

/* Dies with us: a program half done must not run beside the one that a restart begins. */
static void die_with_parent(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(125);
}

/* Kills what is left, reaps, or leaves the child to unreaped_collect. Returns a wait status. */
static int reap(pid_t pid, int pidfd, bool kill_it)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int64_t end = clock_mono_ms(&clock_real) + KILL_WAIT_MS;
	int status = 0, n;

	if (kill_it) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
	}
	do
		n = poll(&p, 1, remaining(end));
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		unreaped_add(pid);
		return -ETIMEDOUT;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int open_pidfd(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

/* Appends to b up to limit; what is beyond is read and dropped. 1: more may come, 0: end. */
static int collect(int fd, struct buf *b, size_t limit)
{
	char chunk[16384];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	size_t keep;

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 1 : -errno;
	if (n == 0)
		return 0;
	keep = (size_t)n < limit - b->len ? (size_t)n : limit - b->len;
	if (b->len + keep + 1 > b->cap) {
		size_t cap = (b->len + keep) * 2 + 64;
		char *data = realloc(b->data, cap);

		if (!data)
			return -ENOMEM;
		b->data = data;
		b->cap = cap;
	}
	memcpy(b->data + b->len, chunk, keep);
	b->len += keep;
	b->data[b->len] = '\0';
	return 1;
}

static int drain(int fd, struct buf *b, size_t limit)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int r = 1;

	/* only what the child itself wrote: a daemon that it left may hold the pipe for ever */
	while (r > 0 && poll(&p, 1, 0) > 0 && (p.revents & POLLIN))
		r = collect(fd, b, limit);
	return r < 0 ? r : 0;
}

/* Reads both streams until the child ends. */
static int watch(int pidfd, const int fds[static 2], int64_t end, size_t limit,
		 struct spawn_result *result)
{
	struct pollfd p[3] = {
		{ .fd = pidfd, .events = POLLIN },
		{ .fd = fds[0], .events = POLLIN },
		{ .fd = fds[1], .events = POLLIN },
	};
	struct buf *bufs[] = { &result->out, &result->err };
	int r;

	for (;;) {
		int n = poll(p, 3, remaining(end));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0) {
			if (remaining(end) == 0)
				return -ETIMEDOUT;
			continue;
		}
		for (int i = 0; i < 2; i++) {
			if (!p[i + 1].revents)
				continue;
			r = collect(fds[i], bufs[i], limit);
			if (r < 0)
				return r;
			if (r == 0)
				p[i + 1].fd = -1;
		}
		if (p[0].revents)
			break;
	}
	r = drain(fds[0], bufs[0], limit);
	return r < 0 ? r : drain(fds[1], bufs[1], limit);
}

static int memory_file(const void *data, size_t len)
{
	cleanup_close int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const char *)data + done, len - done, (off_t)done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return TAKE_FD(fd);
}

/*
 * The input comes in a memory file and not in a pipe: nothing to feed, and no SIGPIPE where
 * the program does not read it.
 */
static int open_input(const struct spawn *s)
{
	int fd;

	if (s->input)
		return memory_file(s->input, s->input_len);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

struct pipes {
	int in;
	int out[2], err[2], failure[2];
};

#define PIPES_INIT                                                                                 \
	{                                                                                          \
		-1, { -1, -1 }, { -1, -1 },                                                        \
		{                                                                                  \
			-1, -1                                                                     \
		}                                                                                  \
	}

static void close_fd(int *fd)
{
	cleanup_close_p(fd);
	*fd = -1;
}

static void pipes_close_child_ends(struct pipes *p)
{
	close_fd(&p->in);
	close_fd(&p->out[1]);
	close_fd(&p->err[1]);
	close_fd(&p->failure[1]);
}

static void pipes_done(struct pipes *p)
{
	pipes_close_child_ends(p);
	close_fd(&p->out[0]);
	close_fd(&p->err[0]);
	close_fd(&p->failure[0]);
}

static int pipes_open(struct pipes *p, const struct spawn *s)
{
	p->in = open_input(s);
	if (p->in < 0)
		return p->in;
	if (pipe2(p->out, O_CLOEXEC) < 0 || pipe2(p->err, O_CLOEXEC) < 0 ||
	    pipe2(p->failure, O_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static _Noreturn void run_child(const struct program *prog, const struct pipes *p, pid_t parent)
{
	int fds[3] = { p->in, p->out[1], p->err[1] }, failure;
	int r;

	setpgid(0, 0);
	die_with_parent(parent);
	/* out of the way of 0-2, which are about to be replaced */
	failure = fcntl(p->failure[1], F_DUPFD_CLOEXEC, 3);
	r = take_descriptors(fds, -1);
	if (r == 0) {
		execve(prog->path, prog->argv, prog->env);
		r = -errno;
	}
	report_and_exit(failure, r);
}

/* What the child said about a failed exec; 0: it was done. The child has ended by now. */
static int read_failure(int fd)
{
	int value;

	return read(fd, &value, sizeof(value)) == sizeof(value) ? value : 0;
}

static int run_program(const struct spawn *s, const struct program *prog, struct pipes *p,
		       struct spawn_result *result)
{
	int64_t end = clock_mono_ms(&clock_real) + s->timeout_ms;
	cleanup_close int pidfd = -1;
	pid_t parent = getpid(), pid;
	int r, status;

	pid = fork_quiet();
	if (pid < 0)
		return pid;
	if (pid == 0)
		run_child(prog, p, parent);
	pidfd = open_pidfd(pid);
	pipes_close_child_ends(p);
	r = pidfd < 0 ? pidfd
		      : watch(pidfd, (int[]){ p->out[0], p->err[0] }, end,
			      s->output_limit ? s->output_limit : OUTPUT_LIMIT_DEFAULT, result);
	status = reap(pid, pidfd, r < 0);
	if (r < 0)
		return r;
	if (status < 0)
		return status;
	r = read_failure(p->failure[0]);
	result->status = status;
	return r;
}

int spawn_run(const struct spawn *s, struct spawn_result *ret, struct error *err)
{
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	cleanup_with(pipes_done) struct pipes pipes = PIPES_INIT;
	struct program prog;
	int r;

	unreaped_collect();
	r = program_init(&prog, s->argv, s->env, err);
	if (r < 0)
		return r;
	r = pipes_open(&pipes, s);
	if (r == 0)
		r = run_program(s, &prog, &pipes, &result);
	free(prog.env);
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "%s did not end within %d ms and was killed",
				 s->argv[0], s->timeout_ms);
	if (r < 0)
		return error_errno(err, -r, "cannot run %s", s->argv[0]);
	*ret = result;
	result = (struct spawn_result){ 0 };
	return 0;
}

void spawn_result_done(struct spawn_result *r)
{
	free(r->out.data);
	free(r->err.data);
	*r = (struct spawn_result){ 0 };
}

/* The last line that is not empty, at most max bytes of it. */
static int last_line(const struct buf *b, int max, const char **ret)
{
	size_t end = b->len, start;

	while (end && strchr(" \t\r\n", b->data[end - 1]))
		end--;
	start = end;
	while (start && b->data[start - 1] != '\n')
		start--;
	*ret = b->data ? b->data + start : "";
	return end - start > (size_t)max ? max : (int)(end - start);
}

int spawn_check(const struct spawn *s, struct spawn_result *ret, struct error *err)
{
	cleanup_with(spawn_result_done) struct spawn_result result = { 0 };
	const char *line;
	int r, len;

	r = spawn_run(s, &result, err);
	if (r < 0)
		return r;
	if (result.status != 0) {
		len = last_line(&result.err, 300, &line);
		return error_set(err, EIO, "%s failed with status %d%s%.*s", s->argv[0],
				 result.status, len ? ": " : "", len, line);
	}
	if (ret) {
		*ret = result;
		result = (struct spawn_result){ 0 };
	}
	return 0;
}

/* Waits for one int on the pipe: 1 when it came, 0 at the end without one. */
static int read_int(int fd, int64_t end, int *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		int ready = poll(&p, 1, remaining(end));

		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready == 0)
			return -ETIMEDOUT;
		if (ready > 0)
			break;
	}
	n = read(fd, ret, sizeof(*ret));
	if (n < 0)
		return -errno;
	return n == sizeof(*ret);
}

static _Noreturn void call_child(int (*fn)(void *arg), void *arg, int fd, pid_t parent)
{
	setpgid(0, 0);
	die_with_parent(parent);
	report_and_exit(fd, fn(arg));
}

int spawn_call(int (*fn)(void *arg), void *arg, int timeout_ms, struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;
	int ends[2], value = 0, r;
	cleanup_close int from = -1, to = -1, pidfd = -1;
	pid_t parent = getpid(), pid;

	unreaped_collect();
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_errno(err, errno, "cannot make a pipe");
	from = ends[0];
	to = ends[1];
	pid = fork_quiet();
	if (pid < 0)
		return error_errno(err, -pid, "cannot start a process");
	if (pid == 0)
		call_child(fn, arg, to, parent);
	pidfd = open_pidfd(pid);
	close(TAKE_FD(to));
	r = pidfd < 0 ? pidfd : read_int(from, end, &value);
	reap(pid, pidfd, r != 1);
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "a system call did not return within %d ms",
				 timeout_ms);
	if (r < 0)
		return error_errno(err, -r, "cannot wait for a process");
	if (r == 0)
		return error_set(err, EIO, "the process that made a system call was killed");
	if (value < 0)
		return error_errno(err, -value, "a system call failed");
	return value;
}

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
		report_and_exit(report, -errno);
	if (pid > 0)
		report_and_exit(report, pid);
	r = enter_namespaces(d);
	if (r == 0)
		r = take_descriptors(fds, keep);
	if (r == 0) {
		execve(prog->path, prog->argv, prog->env);
		r = -errno;
	}
	report_and_exit(report, r);
}

/* Two reports, in either order: the pid, and the error of a failed exec or the pipe's end. */
static int daemon_outcome(int fd, pid_t *ret_pid)
{
	int64_t end = clock_mono_ms(&clock_real) + EXEC_WAIT_MS;
	int value, r, failure = 0;
	pid_t pid = 0;

	while ((r = read_int(fd, end, &value)) > 0) {
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
	int r;

	unreaped_collect();
	r = daemon_fds_open(&fds, d, err);
	if (r == 0)
		r = program_init(&prog, d->argv, d->env, err);
	if (r < 0)
		return r;
	pid = fork_quiet();
	if (pid == 0)
		daemon_child(d, &prog, &fds);
	free(prog.env);
	if (pid < 0)
		return error_errno(err, -pid, "cannot start %s", d->argv[0]);
	pidfd = open_pidfd(pid);
	close_fd(&fds.report[1]);
	r = daemon_outcome(fds.report[0], ret_pid);
	reap(pid, pidfd, r == -ETIMEDOUT);
	if (r < 0)
		return error_errno(err, -r, "cannot start %s", d->argv[0]);
	return 0;
}
