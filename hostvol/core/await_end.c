/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the client process of a mount. Nothing in the mount table names it, but it has the mount
 * point as its last argument; so no pid has to be remembered over a crash.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

static bool command_matches(int proc_fd, const char *pid, const char *program, const char *last_arg)
{
	cleanup_close int fd = -1;
	char path[64], text[8192];
	const char *name, *last;
	ssize_t len;

	snprintf(path, sizeof(path), "%.20s/cmdline", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	len = read(fd, text, sizeof(text) - 1);
	if (len <= 1 || text[len - 1] != '\0')
		return false;
	text[len] = '\0';
	name = strrchr(text, '/');
	last = memrchr(text, '\0', (size_t)len - 1);
	return last && streq(name ? name + 1 : text, program) && streq(last + 1, last_arg);
}

/* A pidfd of the first such process, or -1. */
static int find_process(const char *program, const char *last_arg)
{
	DIR *proc = opendir("/proc");
	struct dirent *e;
	int found = -1;

	if (!proc)
		return -1;
	while (found < 0 && (e = readdir(proc))) {
		if (e->d_name[0] < '1' || e->d_name[0] > '9' ||
		    !command_matches(dirfd(proc), e->d_name, program, last_arg))
			continue;
		found = (int)syscall(SYS_pidfd_open, atoi(e->d_name), 0);
		/* opened after it was looked at: the number may be another's by now */
		if (found >= 0 && !command_matches(dirfd(proc), e->d_name, program, last_arg)) {
			close(found);
			found = -1;
		}
	}
	closedir(proc);
	return found;
}

int process_await_end(const char *program, const char *last_arg, bool kill, int timeout_ms)
{
	int64_t end = clock_mono_ms(&clock_real) + timeout_ms;

	for (;;) {
		cleanup_close int fd = find_process(program, last_arg);
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left = end - clock_mono_ms(&clock_real);

		if (fd < 0)
			return 0;
		if (kill)
			syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
		if (left <= 0 || poll(&p, 1, (int)left) == 0)
			return -ETIMEDOUT;
	}
}
