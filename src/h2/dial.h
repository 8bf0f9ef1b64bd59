/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/h2.h"

#include <netdb.h>

/* Where a client connects to (its proxy, where it has one): the addresses of a name are tried one after the other. */
struct dial {
	struct addrinfo *addresses; /* NULL for a unix socket */
	struct addrinfo *next;
};

/* A name is looked up here, which takes as long as the system's resolver is willing to wait. */
int dial_init(struct dial *d, const struct h2_target *target, struct error *err);
void dial_done(struct dial *d);

/* A non-blocking socket that is connected or connecting, or -errno of the last address. -EAGAIN:
 * the backlog of a unix socket is full, try again soon (the kernel does not let us wait for it). */
int dial_next(struct dial *d, const struct h2_target *target, struct error *err);
bool dial_has_next(const struct dial *d);
