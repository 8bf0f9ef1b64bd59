/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/h2.h"

#include <sys/stat.h>

/* A listening socket. */
struct listener {
	int fd; /* -1: none */
	bool is_unix;
	char *path; /* of a unix socket */
	dev_t dev; /* which file it is, so that a successor's is not removed */
	ino_t ino;
};

/* Replaces a file that is left of an earlier server. Nobody can connect before it has that mode. */
int listener_unix(const char *path, mode_t mode, struct listener *ret, struct error *err);
/* On 127.0.0.1; port 0 is any free one. */
int listener_tcp(int port, struct listener *ret, int *ret_port, struct error *err);
/* A connected, non-blocking socket, or -errno (-EAGAIN: no one waits). */
int listener_accept(const struct listener *l, struct h2_peer *ret_peer);
void listener_done(struct listener *l);
