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
#define GLUSTERD_BRICK_FLAG                                                                        \
	"--brick-name" /* on the command line of a brick process, before its path */

/*
 * Before it starts: half of a join that was cut short, with which it would never start, is put aside. Only
 * where no peer is a friend yet, and no volume has a brick on this machine.
 */
int glusterd_forget_half_join(struct error *err);
/* Starts it, with a configuration file written at config_path. address: where alone it listens, or
 * NULL. */
int glusterd_launch(const char *config_path, const char *address, pid_t *ret, struct error *err);
/* Waits until it takes requests; pid tells which process it is, 0 for none. */
int glusterd_wait(int (*pid)(void *userdata), void *userdata, struct error *err);
/* The identity that it gave itself, "" before it first ran. */
void glusterd_uuid(char uuid[static UUID_TEXT_MAX]);
/* Finds glusterd; with start, starts it and waits until it answers. */
int glusterd_start(const char *config_path, bool start, struct glusterd_state *ret,
		   struct error *err);
/* Of a brick process by its pid file; 0: none runs. */
int glusterd_brick_pid(const char *volume, const char *path);
/* Neither gone nor a zombie, and running this program (argv[0] ends with it) or with this argument. */
bool process_is(int pid, const char *word);
/* Pid files of brick processes that are gone, which glusterd may take for running ones, are emptied. */
void glusterd_forget_dead(const char *volume);
/* Entries of the brick's heal index, or -errno. */
int64_t glusterd_brick_pending(const char *path);

/* Calls changed when a process that was added ends. A thread, asleep otherwise. */
struct pid_watch;
struct pid_watch *pid_watch_new(void (*changed)(void *userdata), void *userdata);
void pid_watch_add(struct pid_watch *w, int pid); /* again and again is fine */
void pid_watch_free(struct pid_watch *w);
