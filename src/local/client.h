/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "clients/remote.h"
#include "local/program.h"

#include <stdbool.h>

/*
 * Client software of this machine's instance in containers (clients/client.h), one a protocol, made
 * with crun or runc from an OCI archive:
 *   STATE/clients/PROTOCOL.json   what was chosen: archive, digest, rootfs, env; no file: the host
 *   STATE/images/…                what archives were unpacked to (containers/image.h); read-only
 *   RUN/clients/PROTOCOL/         the socket; that it is there says that the client is a container
 *   RUN/containers/PROTOCOL/      the bundle, written anew for each start
 * A container depends on no process of ours: it is found by what the runtime has put down of it. It
 * ends when it is told to and nobody uses it.
 */

/* Chooses the image (an OCI archive) or "host" for a protocol. An image that cannot serve is refused. */
int local_client_choose(const struct client_protocol *p, const char *image, struct error *err);
bool local_client_chosen(const struct client_protocol *p);

/* Sees to what has to be there before a volume is connected: the directories, a shared mount. */
int local_clients_prepare(struct error *err);
/* What keeps it running; for a keeper. */
struct program *local_client_program(const struct client_protocol *p);

/*
 * Waits until the client that was chosen serves. One that runs with another image is told to end; 1
 * where it stays for those who use it, and is replaced after them.
 */
int local_client_await(const struct client_protocol *p, int timeout_ms, struct error *err);

/* Of all clients, chosen or not: -EBUSY where somebody uses one. */
int local_clients_idle(struct error *err);
/* Ends those that were not chosen any more, or all; with force also while they are used. */
enum local_clients_which { LOCAL_CLIENTS_LEFT, LOCAL_CLIENTS_ALL };
int local_clients_stop(enum local_clients_which which, bool force, struct error *err);

/* The machine for libhostvol, with these clients; clients_host_free ends it. */
int local_clients_host(struct clients_host **ret, struct error *err);
