/* SPDX-License-Identifier: Apache-2.0 */
/* valgrind-serve SOCKET: makes the calls of calls.h for whoever connects, until it is killed. */
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static int take_call(int channel, struct call *call, int fds[CALL_FDS])
{
	char control[CMSG_SPACE(sizeof(int) * CALL_FDS)] = { 0 };
	struct iovec data = { .iov_base = call, .iov_len = sizeof(*call) };
	struct msghdr message = { .msg_iov = &data,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *part;
	int at = 0;

	if (recvmsg(channel, &message, MSG_CMSG_CLOEXEC) != sizeof(*call))
		return -1;
	part = CMSG_FIRSTHDR(&message);
	for (int i = 0; i < CALL_FDS; i++) {
		fds[i] = AT_FDCWD;
		if (call->has[i] && part)
			memcpy(&fds[i], CMSG_DATA(part) + sizeof(int) * (size_t)at++, sizeof(int));
	}
	return 0;
}

/* In the mount namespace of the caller: its paths and descriptors mean what they mean to it. */
static int mounts(const struct call *call, const int fds[CALL_FDS])
{
	int rc = setns(fds[0], CLONE_NEWNS);

	if (rc < 0)
		return -errno;
	switch (call->kind) {
	case CALL_OPEN_TREE:
		rc = open_tree(fds[1], call->path[0], call->flags);
		break;
	case CALL_OPENAT2:
		rc = (int)syscall(SYS_openat2, fds[1], call->path[0], &call->how,
				  sizeof(call->how));
		break;
	default:
		rc = move_mount(fds[1], call->path[0], fds[2], call->path[1], call->flags);
	}
	return rc < 0 ? -errno : rc;
}

/* A descriptor where the call gives one, 0, or -errno. */
static int carry_out(const struct call *call, const int fds[CALL_FDS])
{
	int rc;

	switch (call->kind) {
	case CALL_PIDFD_OPEN:
		rc = pidfd_open(call->number, call->flags);
		break;
	case CALL_PIDFD_SIGNAL:
		rc = pidfd_send_signal(fds[0], call->number, NULL, call->flags);
		break;
	default:
		return mounts(call, fds);
	}
	return rc < 0 ? -errno : rc;
}

static void reply(int channel, int rc)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct answer answer = { .rc = rc < 0 ? rc : 0 };
	struct iovec data = { .iov_base = &answer, .iov_len = sizeof(answer) };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (rc > 0) {
		struct cmsghdr *part;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		part = CMSG_FIRSTHDR(&message);
		part->cmsg_level = SOL_SOCKET;
		part->cmsg_type = SCM_RIGHTS;
		part->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(part), &rc, sizeof(int));
	}
	(void)sendmsg(channel, &message, MSG_NOSIGNAL);
}

static int serve(int channel)
{
	struct call call;
	int fds[CALL_FDS];

	if (take_call(channel, &call, fds) < 0)
		return 1;
	reply(channel, carry_out(&call, fds));
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), channel;

	if (argc != 2 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 2;
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", argv[1]);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, 64) < 0) {
		perror(argv[1]);
		return 1;
	}
	signal(SIGCHLD, SIG_IGN);
	while ((channel = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		/* a child for each: it goes into the caller's namespace and does not come back */
		if (fork() == 0)
			_exit(serve(channel));
		close(channel);
	}
	return 1;
}
