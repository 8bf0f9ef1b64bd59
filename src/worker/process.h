/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/worker.h"

#include <stdbool.h>
#include <sys/types.h>

/* A qm-gluster process and our end of its socket. */
struct process {
	pid_t pid;
	int fd;
};
int process_start(const char *program, const char *log_dir, const struct worker_pool *pool,
		  struct process *ret, struct error *err);
/* Kills it and closes the socket; it still has to be reaped. */
void process_kill(struct process *p);

/* Killed processes: one that hangs in the kernel cannot be reaped at once, and nobody waits for it. */
struct process_list {
	pid_t *pids;
	size_t count;
};
void process_list_add(struct process_list *l, const struct process *p);
/* Reaps those that have ended; true while some are left. */
bool process_list_reap(struct process_list *l);
void process_list_done(struct process_list *l);
