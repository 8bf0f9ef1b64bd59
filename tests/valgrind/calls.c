/* SPDX-License-Identifier: Apache-2.0 */
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <valgrind/valgrind.h>

#define EXPORT __attribute__((visibility("default")))

/* The real system call, without the C library, whose own syscall() is replaced below. */
static long direct(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

static int connect_helper(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *path = getenv(SOCKET_ENV);
	int fd = path ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0) : -1;

	if (fd < 0)
		return -1;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int send_call(int channel, struct call *call, const int fds[CALL_FDS])
{
	char control[CMSG_SPACE(sizeof(int) * CALL_FDS)] = { 0 };
	struct iovec data = { .iov_base = call, .iov_len = sizeof(*call) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	int given[CALL_FDS], count = 0;

	for (int i = 0; i < CALL_FDS; i++) {
		call->has[i] = fds[i] >= 0;
		if (fds[i] >= 0)
			given[count++] = fds[i];
	}
	if (count > 0) {
		struct cmsghdr *part;

		message.msg_control = control;
		message.msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
		memcpy(CMSG_DATA(part), given, sizeof(int) * (size_t)count);
	}
	return sendmsg(channel, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* The descriptor that came along, or 0; -1 and errno. */
static int take_answer(int channel)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct answer answer = { .rc = -EIO };
	struct iovec data = { .iov_base = &answer, .iov_len = sizeof(answer) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *part;
	int fd = 0;

	if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != sizeof(answer))
		return -1;
	part = CMSG_FIRSTHDR(&message);
	if (part && part->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(part), sizeof(fd));
	if (answer.rc >= 0)
		return fd;
	errno = -answer.rc;
	return -1;
}

static int ask(struct call *call, int first, int second, int third)
{
	const int fds[CALL_FDS] = { first, second, third };
	int channel = connect_helper(), rc = -1;

	if (channel < 0) {
		errno = ENOSYS;
		return -1;
	}
	if (send_call(channel, call, fds) == 0)
		rc = take_answer(channel);
	close(channel);
	return rc;
}

static int ask_mount(struct call *call, int first, int second)
{
	int ns = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC), rc;

	if (ns < 0)
		return -1;
	rc = ask(call, ns, first, second);
	close(ns);
	return rc;
}

EXPORT int pidfd_open(pid_t pid, unsigned flags)
{
	struct call call = { .kind = CALL_PIDFD_OPEN, .number = pid, .flags = flags };

	if (!RUNNING_ON_VALGRIND)
		return (int)direct(SYS_pidfd_open, pid, flags, 0, 0, 0, 0);
	return ask(&call, -1, -1, -1);
}

EXPORT int pidfd_send_signal(int fd, int sig, siginfo_t *info, unsigned flags)
{
	struct call call = { .kind = CALL_PIDFD_SIGNAL, .number = sig, .flags = flags };

	if (!RUNNING_ON_VALGRIND)
		return (int)direct(SYS_pidfd_send_signal, fd, sig, (long)info, flags, 0, 0);
	return ask(&call, fd, -1, -1);
}

EXPORT int open_tree(int dir, const char *path, unsigned flags)
{
	struct call call = { .kind = CALL_OPEN_TREE, .flags = flags };

	if (!RUNNING_ON_VALGRIND)
		return (int)direct(SYS_open_tree, dir, (long)path, flags, 0, 0, 0);
	(void)snprintf(call.path[0], sizeof(call.path[0]), "%s", path);
	return ask_mount(&call, dir, -1);
}

EXPORT int move_mount(int from, const char *from_path, int to, const char *to_path, unsigned flags)
{
	struct call call = { .kind = CALL_MOVE_MOUNT, .flags = flags };

	if (!RUNNING_ON_VALGRIND)
		return (int)direct(SYS_move_mount, from, (long)from_path, to, (long)to_path, flags,
				   0);
	(void)snprintf(call.path[0], sizeof(call.path[0]), "%s", from_path);
	(void)snprintf(call.path[1], sizeof(call.path[1]), "%s", to_path);
	return ask_mount(&call, from, to);
}

static int openat2_by_helper(int dir, const char *path, const struct open_how *how)
{
	struct call call = { .kind = CALL_OPENAT2, .how = *how };

	(void)snprintf(call.path[0], sizeof(call.path[0]), "%s", path);
	return ask_mount(&call, dir, -1);
}

/* libhostvol's children: a fork, whose pidfd the parent gets. */
static long clone_by_fork(const struct clone_args *args)
{
	pid_t pid = fork();

	if (pid > 0 && (args->flags & CLONE_PIDFD))
		*(int *)(uintptr_t)args->pidfd = pidfd_open(pid, 0);
	return pid;
}

EXPORT long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	switch (number) {
	case SYS_pidfd_open:
		return pidfd_open((pid_t)a[0], (unsigned)a[1]);
	case SYS_pidfd_send_signal:
		return pidfd_send_signal((int)a[0], (int)a[1], (siginfo_t *)a[2], (unsigned)a[3]);
	case SYS_open_tree:
		return open_tree((int)a[0], (const char *)a[1], (unsigned)a[2]);
	case SYS_move_mount:
		return move_mount((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3],
				  (unsigned)a[4]);
	case SYS_openat2:
		if (RUNNING_ON_VALGRIND)
			return openat2_by_helper((int)a[0], (const char *)a[1],
						 (const struct open_how *)a[2]);
		break;
	case SYS_clone3:
		if (RUNNING_ON_VALGRIND)
			return clone_by_fork((const struct clone_args *)a[0]);
		break;
	case SYS_quotactl_fd:
		/* what a kernel without quota says: nothing else is tried here */
		if (RUNNING_ON_VALGRIND) {
			errno = ENOSYS;
			return -1;
		}
		break;
	default:
		break;
	}
	return direct(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
