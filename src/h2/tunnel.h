/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/h2.h"

/* The way through an HTTP proxy: CONNECT, asked for on a connected, non-blocking socket. */
struct tunnel {
	char *request;
	size_t sent;
	struct buf answer;
};

/* To the target's host and port, with what its proxy wants. */
struct tunnel *tunnel_new(const struct h2_target *target);
void tunnel_free(struct tunnel *t); /* NULL-safe */
bool tunnel_wants_write(const struct tunnel *t);
/* One step: 0 when the way is open, -EAGAIN when not yet, else refused: -EACCES where the proxy wants
 * other credentials, -EHOSTUNREACH where it cannot or does not want to get there. No byte beyond the
 * proxy's own answer is taken from the socket. */
int tunnel_work(struct tunnel *t, int fd, struct error *err);
