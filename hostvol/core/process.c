/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Child processes with a deadline, for use inside other people's processes: a child is made with
 * clone3() and no exit signal, so that neither the host program's SIGCHLD handler nor its
 * waitpid(-1) ever sees it, and is followed by its pidfd.
 */
#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILL_WAIT_MS                                                                               \
	1000 /* for a killed child to be reaped; one in an uninterruptible call is left to hung.h */

struct child {
	pid_t pid;
	int pidfd;
};

/* 0 in the child, 1 in the parent. */
static int child_start(struct child *ret)
{
	int pidfd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD, .pidfd = (uint64_t)(uintptr_t)&pidfd };
	sigset_t all, old;
	long pid;

	/* a handler of the host program must not run in the child */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		return 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (pid < 0)
		return -errno;
	*ret = (struct child){ .pid = (pid_t)pid, .pidfd = pidfd };
	return 1;
}

static void child_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setpgid(0, 0);
}

/* Exit status as a shell gives it. The child must have ended. */
static int child_reap(struct child *c)
{
	siginfo_t info = { 0 };
	int r;

	do {
		r = waitid(P_PIDFD, (id_t)c->pidfd, &info, WEXITED | __WALL);
	} while (r < 0 && errno == EINTR);
	close(c->pidfd);
	c->pidfd = -1;
	if (r < 0)
		return -errno;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static int wait_pidfd(int pidfd, int timeout_ms)
{
	return await_fd(pidfd, POLLIN, clock_mono_ms(&clock_real) + timeout_ms);
}

/* fn, about: what it does and on what, as hung.h has it. */
static void child_kill(struct child *c, int (*fn)(void *arg), const char *about)
{
	/* the pid cannot be another's: it was not reaped yet */
	kill(-c->pid, SIGKILL);
	kill(c->pid, SIGKILL);
	if (wait_pidfd(c->pidfd, KILL_WAIT_MS) == 0) {
		child_reap(c);
		return;
	}
	close(c->pidfd);
	hung_leave(c->pid, fn, about, NULL, 0);
}

int process_call(int (*fn)(void *arg), void *arg, const char *about, int timeout_ms)
{
	struct child c = { .pidfd = -1 };
	int r = hung_check(fn, about, NULL);

	if (r == 0)
		r = child_start(&c);
	if (r < 0)
		return r;
	if (r == 0) {
		/* signals stay blocked: none but SIGKILL is for it, and it runs no program */
		setpgid(0, 0);
		/* a device that another thread has open is not to stay so for as long as this one hangs */
		r = close_range(3, ~0U, 0) < 0 ? -errno : fn(arg);
		/* not _exit: a sanitizer puts work before it that needs locks which other threads may have had */
		syscall(SYS_exit_group, r < 0 ? (-r <= 127 ? -r : EIO) : 0);
	}
	r = wait_pidfd(c.pidfd, timeout_ms);
	if (r < 0) {
		child_kill(&c, fn, about);
		return r;
	}
	r = child_reap(&c);
	return r > 127 ? -EIO : r > 0 ? -r : r;
}

/* ---- programs ------------------------------------------------------------------------------- */

/* given: directories to look in first, as in PATH; or NULL. */
static int find_program(const char *name, const char *given, char path[static PATH_MAX])
{
	static const char *const system_dirs = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin";
	const char *lists[] = { given ? given : "", system_dirs };

	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENAMETOOLONG;
		return access(path, X_OK) == 0 ? 0 : -ENOENT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		for (const char *p = lists[i]; *p;) {
			int len = (int)strcspn(p, ":");

			if (*p == '/' &&
			    snprintf(path, PATH_MAX, "%.*s/%s", len, p, name) < PATH_MAX &&
			    access(path, X_OK) == 0)
				return 0;
			p += len;
			p += *p == ':';
		}
	}
	return -ENOENT;
}

struct stdio {
	int in[2], out[2], err[2];
	int failed[2]; /* an errno, from a child that could not get to where its program is */
};
static const struct stdio stdio_none = { { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };

static void stdio_done(struct stdio *s)
{
	int *fds = &s->in[0];

	for (int i = 0; i < 8; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int stdio_open(struct stdio *s)
{
	/* a socket, since writing to one that nobody reads can be told not to raise SIGPIPE */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->in) < 0 ||
	    pipe2(s->out, O_CLOEXEC) < 0 || pipe2(s->err, O_CLOEXEC) < 0 ||
	    pipe2(s->failed, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	/* only our ends: the child expects ordinary ones */
	if (fcntl(s->in[1], F_SETFL, O_NONBLOCK) < 0 || fcntl(s->out[0], F_SETFL, O_NONBLOCK) < 0 ||
	    fcntl(s->err[0], F_SETFL, O_NONBLOCK) < 0)
		return -errno;
	return 0;
}

/* ---- another place -------------------------------------------------------------------------- */

/*
 * One of its own where the kernel lets it (a cpuset of version 1 wants to be told of CPUs first).
 * What the mount table has may be hidden below another mount: then there is nothing to be entered.
 */
static int enter_cgroup(const char *top)
{
	static const char *const names[] = { "/" PROCESS_CGROUP, "" };
	char path[PATH_MAX];
	int r = 0;

	snprintf(path, sizeof(path), "%s/cgroup.procs", top);
	if (access(path, F_OK) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cleanup_close int fd = -1;

		snprintf(path, sizeof(path), "%s%s", top, names[i]);
		(void)mkdir(path, 0755);
		snprintf(path, sizeof(path), "%s%s/cgroup.procs", top, names[i]);
		fd = open(path, O_WRONLY | O_CLOEXEC);
		if (fd >= 0 && write(fd, "0", 1) == 1)
			return 0;
		r = -errno;
	}
	return r;
}

/* In the child, by system calls only. Namespaces first: the rest is as seen from there. */
static int enter(const struct process_place *place, const char *program, char *path)
{
	int r;

	for (size_t i = 0; i < place->ns_count; i++)
		if (setns(place->ns[i], 0) < 0)
			return -errno;
	r = find_program(program, NULL, path);
	for (const char *const *top = place->cgroups; r == 0 && *top; top++)
		r = enter_cgroup(*top);
	return r;
}

static void child_enter(const struct process_place *place, const char *program, char *path,
			int failed)
{
	int r = enter(place, program, path), code;

	if (r == 0)
		return;
	code = -r;
	(void)!write(failed, &code, sizeof(code));
	_exit(127);
}

_Noreturn static void child_exec(const char *path, const struct host_command *command,
				 struct stdio *s)
{
	char *env[16] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)"LC_ALL=C",
			  (char *)"HOME=/" };
	/* moved out of the way first: the host program may have closed its 0, 1 or 2 */
	int in = fcntl(s->in[0], F_DUPFD, 3), out = fcntl(s->out[1], F_DUPFD, 3),
	    err = fcntl(s->err[1], F_DUPFD, 3);

	child_signals();
	if (in < 0 || out < 0 || err < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(127);
	close_range(3, ~0u, 0);
	umask(022);
	for (size_t i = 0; command->env && command->env[i] && i < ARRAY_SIZE(env) - 4; i++)
		env[3 + i] = (char *)command->env[i];
	execve(path, (char *const *)command->argv, env);
	_exit(127);
}

/* Keeps the end of what is printed: that is where errors stand. */
static void keep_tail(char *text, size_t size, const char *data, size_t len)
{
	size_t have = strlen(text);

	if (len >= size) {
		data += len - (size - 1);
		len = size - 1;
	}
	if (have + len >= size) {
		size_t drop = have + len - (size - 1);

		memmove(text, text + drop, have - drop);
		have -= drop;
	}
	for (size_t i = 0; i < len; i++)
		text[have + i] = data[i] ? data[i] : '?';
	text[have + len] = '\0';
}

static void read_into(int *fd, char *text, size_t size)
{
	char data[4096];
	ssize_t n;

	while ((n = read(*fd, data, sizeof(data))) > 0)
		keep_tail(text, size, data, (size_t)n);
	if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		close(*fd);
		*fd = -1;
	}
}

static void write_from(int *fd, const struct host_command *command, size_t *done)
{
	ssize_t n = 0;

	if (*done < command->input_len)
		n = send(*fd, command->input + *done, command->input_len - *done, MSG_NOSIGNAL);
	if (n > 0)
		*done += (size_t)n;
	if (*done == command->input_len || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		close(*fd);
		*fd = -1;
	}
}

/* Until the program ends: not until its pipes do, since a daemon it leaves may hold them. */
static int converse(struct child *c, struct stdio *s, const struct host_command *command,
		    struct host_result *result)
{
	int64_t end = clock_mono_ms(&clock_real) + command->timeout_ms;
	char *out = command->out ? command->out : result->out;
	size_t done = 0, out_size = command->out ? command->out_size : sizeof(result->out);

	for (;;) {
		struct pollfd p[] = { { .fd = c->pidfd, .events = POLLIN },
				      { .fd = s->out[0], .events = POLLIN },
				      { .fd = s->err[0], .events = POLLIN },
				      { .fd = s->in[1], .events = POLLOUT } };
		int64_t left = end - clock_mono_ms(&clock_real);
		int r = left > 0 ? poll(p, ARRAY_SIZE(p), (int)left) : 0;

		if (r == 0)
			return -ETIMEDOUT;
		if (r < 0 && errno != EINTR)
			return -errno;
		if (r < 0)
			continue;
		if (p[1].revents)
			read_into(&s->out[0], out, out_size);
		if (p[2].revents)
			read_into(&s->err[0], result->err, sizeof(result->err));
		if (p[3].revents)
			write_from(&s->in[1], command, &done);
		if (!p[0].revents)
			continue;
		/* what it printed just before it ended */
		if (s->out[0] >= 0)
			read_into(&s->out[0], out, out_size);
		if (s->err[0] >= 0)
			read_into(&s->err[0], result->err, sizeof(result->err));
		return 0;
	}
}

int process_run(const struct host_command *command, struct host_result *ret)
{
	return process_run_at(NULL, command, ret);
}

int process_run_at(const struct process_place *place, const struct host_command *command,
		   struct host_result *ret)
{
	cleanup_with(stdio_done) struct stdio s = stdio_none;
	char path[PATH_MAX];
	struct child c = { .pidfd = -1 };
	struct error why = ERROR_INIT;
	int r, code;

	*ret = (struct host_result){ 0 };
	if (command->out)
		command->out[0] = '\0';
	r = place ? 0 : find_program(command->argv[0], secure_getenv("PATH"), path);
	if (r == 0 && (r = hung_check(NULL, NULL, &why)) < 0)
		snprintf(ret->err, sizeof(ret->err), "%s", why.message);
	if (r == 0)
		r = stdio_open(&s);
	if (r == 0)
		r = child_start(&c);
	if (r < 0)
		return r;
	if (r == 0) {
		if (place)
			child_enter(place, command->argv[0], path, s.failed[1]);
		child_exec(path, command, &s);
	}
	close(s.in[0]);
	close(s.out[1]);
	close(s.err[1]);
	s.in[0] = s.out[1] = s.err[1] = -1;
	r = converse(&c, &s, command, ret);
	if (r < 0) {
		child_kill(&c, NULL, NULL);
		return r;
	}
	r = child_reap(&c);
	if (r < 0)
		return r;
	if (read(s.failed[0], &code, sizeof(code)) == sizeof(code))
		return -code;
	ret->status = r;
	return 0;
}
