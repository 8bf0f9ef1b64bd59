/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "core/host.h"

/*
 * The machine's own programs, for a node service that runs in a pod: a command is run in the
 * namespaces of the machine's first process, and in cgroups of the machine, since what it leaves
 * behind (the daemon of a FUSE mount) is to outlive the pod. Deadline, standard input and the rest
 * are those of any other run (process_run_at).
 *
 * It needs the machine's processes to be seen (hostPID), and CAP_SYS_ADMIN. Where the caller is on
 * the machine itself already it is the same as running the program.
 */
struct machine;

/* proc: "/proc/1"; another one in tests. -EPERM: it cannot be reached from here, and what to do. */
int machine_open(const char *proc, struct machine **ret, struct error *err);
/* -ENOENT: the machine has no such program. */
int machine_run(const struct machine *m, const struct host_command *command,
		struct host_result *ret);
void machine_free(struct machine *m); /* NULL-safe */
