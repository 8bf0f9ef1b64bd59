/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * Containers of this machine, made with crun or runc. A container is its own processes: the runtime
 * ends when it has started them, and what it remembers of them is in a directory of ours (root). So
 * whoever looks later finds it there, and nobody has to live for it.
 */

/* The name of the runtime, or NULL and which package is missing. */
const char *runtime_find(struct error *err);
/* Whether the runtime can give a container a cgroup of its own here. */
bool runtime_has_cgroups(void);

/* The pid of its first process, or 0: it does not run. */
int container_pid(const char *root, const char *id, pid_t *ret, struct error *err);
/*
 * Makes and starts it, from bundle/config.json; what its processes print is appended to log. What
 * was left of one of that name, which does not run, is removed first.
 */
int container_run(const char *root, const char *bundle, const char *id, const char *log, pid_t *ret,
		  struct error *err);
/* The last line of a log, which is where a runtime says what it could not do. */
void container_last_words(const char *log, char *ret, size_t size);
/* Kills what runs of it, and forgets it; 0 also where there was none. */
int container_delete(const char *root, const char *id, struct error *err);
