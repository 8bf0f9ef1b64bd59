/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn_child.h"

#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define KILL_WAIT_MS 1000

int time_left(int64_t end)
{
	int64_t left = end - clock_mono_ms(&clock_real);

	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

void close_fd(int *fd)
{
	cleanup_close_p(fd);
	*fd = -1;
}

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

int program_init(struct program *p, const char *const *argv, const char *const *env,
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

void program_done(struct program *p)
{
	free(p->env);
	p->env = NULL;
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

/* fork with all signals held, so that no handler of ours runs in the child. */
pid_t child_fork(void)
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

int child_take_fds(const int fds[static 3], int keep_fd)
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

_Noreturn void child_report(int fd, int value)
{
	ssize_t n = write(fd, &value, sizeof(value));

	_exit(n == sizeof(value) ? 127 : 126);
}

void child_die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(125);
}

int child_reap(pid_t pid, int pidfd, bool kill_it, int (*fn)(void *arg), const char *about)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int64_t end = clock_mono_ms(&clock_real) + KILL_WAIT_MS;
	int status = 0, n;

	if (kill_it) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
	}
	do
		n = poll(&p, 1, time_left(end));
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		hung_leave(pid, fn, about, NULL, 0);
		return -ETIMEDOUT;
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int child_pidfd(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);

	return fd < 0 ? -errno : (int)fd;
}

int child_read_report(int fd, int64_t end, int *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	for (;;) {
		int ready = poll(&p, 1, time_left(end));

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
