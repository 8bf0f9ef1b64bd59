/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * The parts of qm-client. Each request is served by a process of its own, a child in the same
 * process group; the command that it runs is that one's child. So every other child was left to us:
 * a daemon, in a process group of its own.
 */
#define SERVE_MAX 128 /* requests at once */
#define SERVE_WATCHERS 16
#define SERVE_FUSE 64

/* A FUSE server that is kept running (fuse_serve.c). */
struct fuse_server {
	json_t *text; /* the request, owned: mountPoint, argv; NULL: free */
	int fd; /* of /dev/fuse */
	pid_t pid; /* 0: does not run */
	int64_t started, due; /* when it was started; when it is to be started, 0: not */
	int starts, quick; /* in all; that ended soon, in a row */
	char message[160]; /* why it was given up */
};

struct serve {
	const char *image; /* what the container was made from, as it was told; or "" */
	pid_t pid; /* the client's own */
	pid_t servers[SERVE_MAX]; /* 0: free */
	int running; /* of them */
	bool ending;
	/*
	 * What outlives its request is the client's own: the process that serves the request hands
	 * it up, together with the connection, which is answered from there. What is asked of it is
	 * found in that process' copy.
	 */
	int up[2]; /* written by those processes, read by the client */
	int watchers[SERVE_WATCHERS]; /* connections; 0: free */
	struct fuse_server fuse[SERVE_FUSE];
	const struct client_protocol *protocol; /* or NULL */
	pid_t kept; /* its daemon; 0: does not run, or is the machine's */
	int64_t kept_due; /* when to look after it next */
};

/* A socket dir/client.sock that only root can open, in the place of one that was left there. */
int serve_listen(const char *dir, struct error *err);
/* Takes one connection from the socket and has it served. */
void serve_accept(struct serve *s, int socket);
/* Makes s->up. */
int serve_open(struct serve *s, struct error *err);
/* Takes what was handed up. */
void serve_handed_up(struct serve *s);
/* Reaps whatever child has ended, and tells those who watch. */
void serve_reap(struct serve *s);

/* ---- FUSE servers (fuse_serve.c) ---- */

/* Keeps the descriptor, which is its own from now on, and has it served. Takes a reference to the request. */
int fuse_serve(struct serve *s, json_t *request, int fd, struct error *err);
/* Whether that child was one of them. */
bool fuse_ended(struct serve *s, pid_t pid);
/* Starts those whose time has come; gives how long to wait until the next one, -1: none is due. */
int fuse_start_due(struct serve *s);
/* Whether one runs or will. */
bool fuse_any(const struct serve *s);
const struct fuse_server *fuse_find(const struct serve *s, const char *mount_point);
json_t *fuse_list(const struct serve *s);
/* Their processes are named by where they are mounted, which their arguments do not say. */
void fuse_name_daemons(const struct serve *s, json_t *daemons);

/* ---- the protocol's daemon (keep.c) ---- */

/* Has it run, where the protocol has one, and waits until it listens. */
int keep_begin(struct serve *s, struct error *err);
/* Whether that child was it. */
bool keep_ended(struct serve *s, pid_t pid);
/* Starts it where it does not run; how long to wait until the next look, -1: none is needed. */
int keep_due(struct serve *s);
/* How many need the daemon that we started. */
int keep_users(const struct serve *s);
/* Whether the client has to stay for one of these daemons (daemons_list). */
bool keep_holds(const struct serve *s, const json_t *daemons);

/*
 * The daemons that commands left behind, which are the client's children by now: an array of
 * objects with pid, program and lastArgument.
 */
json_t *daemons_list(pid_t client);
/* How many mounts there are of the file systems that those daemons serve. */
int daemons_users(const json_t *daemons);
