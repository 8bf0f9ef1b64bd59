/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * The common ground of spawn_run, spawn_call and spawn_daemon. Our processes have threads, so
 * between fork and exec only system calls are made: everything that needs memory (the
 * environment, the program's path) is ready before the fork. libhostvol uses these: nothing here
 * ends the program for want of memory.
 */

/* What exec needs; the strings are borrowed. */
struct program {
	char path[PATH_MAX];
	char **argv;
	char **env;
};

int program_init(struct program *p, const char *const *argv, const char *const *env,
		 struct error *err);
void program_done(struct program *p);

/* fork; in the child signals have their default actions and none is held. A pid or -errno. */
pid_t child_fork(void);
int child_pidfd(pid_t pid);
/*
 * Reaps the child (with kill_it: after killing its process group) and returns its exit status or
 * 128 + signal; one that does not end in a second is left (hung.h, with fn and about), -ETIMEDOUT.
 */
int child_reap(pid_t pid, int pidfd, bool kill_it, int (*fn)(void *arg), const char *about);

/* In the child: it dies with its parent, as a program half done must not outlive the one that
 * would begin it again. */
void child_die_with(pid_t parent);
/* In the child: fds become 0, 1, 2; all others go at exec, but for keep_fd (-1: none). */
int child_take_fds(const int fds[static 3], int keep_fd);
/* In the child: the last words on the pipe. */
_Noreturn void child_report(int fd, int value);
/* In the parent: one report: 1 when it came, 0 at the pipe's end, -ETIMEDOUT. */
int child_read_report(int fd, int64_t end, int *ret);

/* Milliseconds until end (monotonic), for poll. */
int time_left(int64_t end);
/* Closes and forgets. */
void close_fd(int *fd);
