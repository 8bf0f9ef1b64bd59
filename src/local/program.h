/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * A program of ours that runs once: it holds the lock RUN/NAME.lock, which has its pid, for as
 * long as it lives. Whoever wants it running looks at the lock, so nothing has to remember it.
 */
struct program {
	char *name; /* "api", "operator", "agent-default-node1" */
	char **argv; /* NULL-terminated; QM_WRAP's words come before it */
	char *box; /* the box it runs in, or NULL */
	/* finds it or starts it in a way of its own, argv is its affair then; NULL: as said above */
	int (*start)(const struct program *p, pid_t *ret_pid, struct error *err);
};

/* Copies; argv ended by NULL. */
struct program *program_new(const char *name, const char *const *argv, const char *box);
void program_free(struct program *p);

/* Called by the program itself: takes its lock, -EEXIST (with the pid in the message) where it runs. */
int program_lock(const char *name, struct error *err);
/* The pid that holds the lock, or 0. */
pid_t program_pid(const char *name);
/* Starts it unless it runs; its output goes to STATE/log/NAME.log. Gives its pid either way. -ECANCELED after programs_forbid. */
int program_start(const struct program *p, pid_t *ret_pid, struct error *err);
/* While an instance is taken down nothing of it may be started again, whoever keeps it. */
int programs_forbid(struct error *err);
int programs_allow(struct error *err);
/* SIGTERM, and SIGKILL after timeout_ms; 0 when it is gone (or was). */
int program_stop(const char *name, int timeout_ms, struct error *err);
