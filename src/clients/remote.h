/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "clients/protocols.h"

struct hostvol_host;

/*
 * The machine, for libhostvol (struct hostvol_options, host), whose client software runs in
 * containers: programs of a protocol run in that protocol's container (client.h), everything else
 * is this machine's as always. Which protocols these are is said by directories: where DIR/PROTOCOL
 * exists, that protocol's client is a container, and nowhere else; where it does not, the host has
 * it. So what was chosen holds before the container first runs, and when it does not run: then
 * commands fail with -EAGAIN, and the result's err says why in one sentence.
 *
 * A protocol has one container, with its socket in DIR/PROTOCOL, or several (of different images),
 * each with its socket in DIR/PROTOCOL/ID. Then new mounts go to the first that listens of those
 * that clients_host_prefer names, and one that exists is its own client's until it is unmounted.
 *
 * Where the caller is in a pod itself, the host has two meanings: the pod's own image, or the
 * machine below it, which clients_host_prefer chooses for a protocol by "host" (machine.h).
 */
struct clients_host;

/* dir need not exist, or may be NULL: then everything is this machine's. */
int clients_host_new(const char *dir, struct clients_host **ret, struct error *err);
#define CLIENT_HOST "host" /* instead of an image, or of ids: the machine's own software */
/*
 * "PROTOCOL=ID,ID…", best first; a protocol without has one container. "PROTOCOL=host": it has none,
 * its programs are those of the machine. Before the host is used.
 */
int clients_host_prefer(struct clients_host *c, const char *text, struct error *err);
/* For tests: another process than /proc/1 stands for the machine. Borrowed; before prefer. */
void clients_host_set_proc(struct clients_host *c, const char *proc);
const struct hostvol_host *clients_host(struct clients_host *c);
void clients_host_free(struct clients_host *c); /* NULL-safe */
