/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * A box makes one machine look like several: a network and a mount namespace, pinned in
 * RUN/boxes/NAME.{net,mnt} so that they outlive the processes in them. In it /run and /tmp (but for what we need there),
 * /var/lib/glusterd, /var/log/glusterfs and /var/lib/quartermaster/bricks are the node's own, from
 * STATE/boxes/NAME. Its addresses are reached over a bridge that all boxes of the instance share
 * and that leads nowhere else. A node whose address is one of this machine's own gets no network
 * namespace: it is the machine.
 */
struct box {
	const char *name;
	const char *const *addresses; /* ended by NULL */
};

/* Makes what is missing of the box; 0 also where all was there. */
int box_ensure(const struct box *box, struct error *err);
/* Descriptors of its namespaces (-1 in net where it shares the machine's); the caller closes them. */
int box_open(const char *name, int *ret_net, int *ret_mnt, struct error *err);
bool box_exists(const char *name);
/* Whether the instance has any. */
bool box_any(void);
/* Sends the signal to every process that lives in the box; how many there were. */
int box_signal(const char *name, int sig);
/* Ends its processes, undoes its network and its mounts. Its files in STATE stay. */
int box_remove(const char *name, struct error *err);
/* Removes every box of the instance, and the bridge. */
int box_remove_all(struct error *err);
/*
 * Whether a process in any mount namespace, of whatever instance, has something mounted on the
 * bricks' directory: the machine's own directory of that name has to stay then.
 */
bool box_dirs_in_use(void);
