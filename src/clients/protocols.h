/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * The protocols whose client software can be in a container, and what such a container needs of the
 * machine. One table for all who make them (local/client.h, pods/csi.h) and for qm-client, which
 * keeps the daemon.
 *
 * Every client has the machine's network, its /dev, and the directory that hostvol mounts in, with
 * mounts that are seen on both sides; what is said here comes on top of that.
 */

/* A path of the machine, at the same place in the container. */
struct client_path {
	const char *path;
	bool read_only;
	bool make; /* a directory that is made where it is missing; others are left out then */
	bool file; /* left out on Kubernetes, which would make a directory where it is missing */
};

/*
 * A daemon that commands need. Only one may run on a machine: where somebody has the socket, be it
 * the machine's own daemon or whoever starts that on demand, qm-client starts none.
 */
struct client_daemon {
	const char *const *argv; /* stays in the foreground; ended by NULL */
	const char *socket; /* in the abstract namespace, which is the network's */
	const char *users; /* a directory with an entry for each thing that needs the daemon */
};

struct client_protocol {
	const char *name; /* "glusterfs": the directory, and the flag --NAME-mount-container */
	/* what runs in the container, and an image must have; ended by NULL */
	const char *const *programs;
	const char *packages; /* Debian's, that have them */
	/* what those leave behind that nobody has to wait for; ended by NULL, or NULL */
	const char *const *helpers;
	const char *const
		*own; /* directories that are written to, empty at first; ended by NULL, or NULL */
	const struct client_path *paths; /* ended by NULL; or NULL */
	const struct client_daemon *daemon; /* or NULL */
	bool pid; /* the machine's processes: a caller's groups are looked up by its pid */
	bool ipc; /* the machine's semaphores, by which device mapper waits for udev */
};
#define CLIENT_PROTOCOLS_MAX 8
extern const struct client_protocol client_protocols[]; /* ended by a name of NULL */

/* NULL: none of that name. */
const struct client_protocol *client_protocol_find(const char *name);
