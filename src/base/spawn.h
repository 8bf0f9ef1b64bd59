/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Runs a program with a deadline and collects what it prints. No shell is ever involved. The
 * child gets no descriptor but 0, 1, 2; it is killed (its whole process group) and reaped when
 * the deadline passes, so a call that hangs in the kernel costs no thread: a child that cannot
 * even be reaped is left (hung.h) and -ETIMEDOUT returned.
 */
struct spawn {
	const char *const *argv;   /* argv[0] is looked up in PATH */
	const char *const *env;    /* "NAME=VALUE" added to the environment, or NULL */
	const char *input;         /* given on standard input (the place for secrets), or NULL */
	size_t input_len;
	int timeout_ms;            /* > 0 */
	size_t output_limit;       /* bytes kept of each stream; 0: 8 MiB */
};

struct spawn_result {
	int status;                /* exit status, or 128 + signal */
	struct buf out, err;
};

/* 0 when the program ran and ended (whatever its status), else -errno (-ENOENT: no such program). */
int spawn_run(const struct spawn *s, struct spawn_result *ret, struct error *err);
void spawn_result_done(struct spawn_result *r);

/* As spawn_run, but any status other than 0 is an error: -EIO, with the last line of stderr. */
int spawn_check(const struct spawn *s, struct spawn_result *ret /* may be NULL */, struct error *err);

/*
 * Runs fn(arg) in a forked child with the same deadline: for system calls that may hang (mount,
 * umount, statfs on a dead server). fn returns 0 or -errno, and that is what comes back;
 * -ETIMEDOUT when the deadline passed.
 */
int spawn_call(int (*fn)(void *arg), void *arg, int timeout_ms, struct error *err);
/*
 * The same with no descriptor in the child but 0, 1, 2 and keep_fd (-1: none): a child that hangs
 * for good then keeps nothing in use that others are to end. While one hangs that does the same
 * with what about names (a path; NULL: nothing), others are refused at once with -ETIMEDOUT.
 */
int spawn_call_keeping(int (*fn)(void *arg), void *arg, int keep_fd, const char *about,
		       int timeout_ms, struct error *err);

/*
 * Starts a program that outlives us: new session, descriptors 0-2 on /dev/null and log_path
 * (appended), no parent. Returns its pid; -errno where exec failed.
 */
struct spawn_daemon {
	const char *const *argv;
	const char *const *env;
	const char *log_path;
	int netns_fd, mntns_fd;    /* namespaces to enter first, or -1 */
	int keep_fd;               /* a descriptor that the child keeps (such as a lock), or -1 */
};
int spawn_daemon(const struct spawn_daemon *d, pid_t *ret_pid, struct error *err);

/* Whether a program of that name is in one of the usual directories. */
bool program_installed(const char *program);
