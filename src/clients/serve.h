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

struct serve {
	const char *image; /* what the container was made from, as it was told; or "" */
	pid_t pid; /* the client's own */
	pid_t servers[SERVE_MAX]; /* 0: free */
	int running; /* of them */
	bool ending;
};

/* A socket dir/client.sock that only root can open, in the place of one that was left there. */
int serve_listen(const char *dir, struct error *err);
/* Takes one connection from the socket and has it served. */
void serve_accept(struct serve *s, int socket);
/* Reaps whatever child has ended. */
void serve_reap(struct serve *s);

/*
 * The daemons that commands left behind, which are the client's children by now: an array of
 * objects with pid, program and lastArgument.
 */
json_t *daemons_list(pid_t client);
/* How many mounts there are of the file systems that those daemons serve. */
int daemons_users(const json_t *daemons);
