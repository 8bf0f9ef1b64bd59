/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "worker/worker.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A qm-gluster process and our end of its socket. */
struct process {
	pid_t pid;
	int fd;
};
int process_start(const char *program, const char *log_dir, const struct worker_pool *pool,
		  int64_t epoch, struct process *ret, struct error *err);

/* Processes on their way out: one that hangs in the kernel cannot be reaped at once, and nobody waits for it. */
struct process_end {
	pid_t pid;
	int64_t kill_at; /* mono ms */
};
struct process_list {
	struct process_end *items;
	size_t count;
};
/* Closes the socket, on which the process ends by itself; it is killed after grace_ms, with 0 at once. */
void process_list_add(struct process_list *l, struct process *p, int grace_ms);
/* Reaps those that have ended and kills those whose time is up; true while some are left. */
bool process_list_reap(struct process_list *l);
void process_list_done(struct process_list *l);
