/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "systems/glusterfs/host.h"

/*
 * The storage pod: glusterd and its bricks as children of a process 1 of ours, apart from the agent,
 * so that an agent's end or upgrade stops no brick, and a dead glusterd leaves its bricks running.
 *
 * The two pods have process namespaces of their own and share /run. What runs is told on a unix
 * socket: whoever connects gets a line {"glusterd": PID, "bricks": {"/path": PID, …}} at once, and
 * another one after each change; pids are those of the storage pod, 0 for none. Nothing is ever
 * asked, so nothing that is sent there has an effect.
 */
#define STORAGE_SOCKET "/run/quartermaster/storage.sock"

struct storage_options {
	const char *config_path; /* where glusterd's configuration is written */
	const char *address; /* where it listens, or NULL for everywhere */
	bool secure; /* its own connections use TLS, with the certificates where GlusterFS looks for them */
};
/* Works until SIGTERM or SIGINT; then ends bricks and glusterd, so that clients need not wait for a timeout. */
int storage_run(const struct storage_options *options, struct error *err);

/* ---- for the agent ------------------------------------------------------------------------- */
/* Calls changed when what runs in the storage pod has changed; a thread, asleep otherwise. */
struct storage_watch;
struct storage_watch *storage_watch_new(void (*changed)(void *userdata), void *userdata);
void storage_watch_free(struct storage_watch *w); /* NULL-safe */
/* glusterd of the storage pod, waited for as long as it takes to start. */
int storage_glusterd(struct glusterd_state *ret, struct error *err);
/* Of the process of a brick; 0: none runs. */
int storage_brick_pid(const char *path);
