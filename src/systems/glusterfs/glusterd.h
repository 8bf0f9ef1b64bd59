/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "systems/glusterfs/host.h"

/*
 * glusterd and its brick processes on this machine (or in this box: all paths are seen from the
 * agent's mount namespace). They are started detached, found again by their pid files, and watched
 * through pidfds.
 */
#define GLUSTERD_RUN_DIR "/run/gluster"
#define GLUSTERD_SOCKET "/run/glusterd.socket"
#define GLUSTERD_PID_FILE "/run/glusterd.pid"

/* Finds glusterd; with start, starts it with a configuration file written at config_path and waits until it answers. */
int glusterd_start(const char *config_path, bool start, struct glusterd_state *ret,
		   struct error *err);
/* Of a brick process by its pid file; 0: none runs. */
int glusterd_brick_pid(const char *volume, const char *path);
/* Removes pid files of brick processes that are gone, which glusterd may take for running ones. */
void glusterd_forget_dead(const char *volume);
/* Entries of the brick's heal index, or -errno. */
int64_t glusterd_brick_pending(const char *path);

/* Calls changed when a process that was added ends. A thread, asleep otherwise. */
struct pid_watch;
struct pid_watch *pid_watch_new(void (*changed)(void *userdata), void *userdata);
void pid_watch_add(struct pid_watch *w, int pid); /* again and again is fine */
void pid_watch_free(struct pid_watch *w);
