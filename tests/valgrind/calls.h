/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Debian 12's valgrind answers ENOSYS to system calls that are newer than itself. A process that
 * runs under it has them made by a helper outside (serve.c), which passes descriptors back and
 * forth; calls.c, preloaded, puts itself in their place. Only the test under valgrind uses this.
 */
#include <linux/openat2.h>

#define SOCKET_ENV "QM_VALGRIND_SOCKET"

enum call_kind {
	CALL_PIDFD_OPEN,
	CALL_PIDFD_SIGNAL,
	CALL_OPEN_TREE,
	CALL_MOVE_MOUNT,
	CALL_OPENAT2
};

/* Descriptors that go with it: pidfd (signal); mount namespace, directory or tree, target (mounts). */
#define CALL_FDS 3
struct call {
	enum call_kind kind;
	int number; /* pid or signal */
	unsigned flags;
	struct open_how how;
	int has[CALL_FDS]; /* which of the descriptors are there */
	char path[2][512];
};

struct answer {
	int rc; /* 0 (a descriptor comes along where the call gives one) or -errno */
};
