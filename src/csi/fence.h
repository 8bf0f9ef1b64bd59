/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * One writer for a block device that several nodes see: a persistent reservation (SCSI, NVMe) of the
 * type "write exclusive, registrants only". The target itself then refuses the writes of every node
 * that is not registered, so whoever is put out gets errors, whatever it still believes. Of that
 * type, since a node has several paths, each of which registers the node's key, and since others may
 * read on: whoever scans for disks does.
 *
 * A holder registers its key again from time to time, which the target counts (its generation).
 * One that does not is gone, or cannot be told from that: another node may put it out. That is never
 * unsafe, since it cannot write any more; it would only be rude to a holder that is well.
 *
 * Who was put out may come back with data that it has not written yet. So a device of which that may
 * be so is never without a reservation again: who ends its use leaves one behind, with a mark in
 * its key, in the place of which any other node may put its own at once.
 *
 * Here are the rules alone; what touches a device is struct fence_ops.
 */
#define FENCE_PATHS_MAX 32
#define FENCE_NAME_MAX 48
#define FENCE_KEYS_MAX 126

struct fence_view {
	uint32_t generation;
	uint64_t holder; /* 0: nobody */
	uint64_t keys[FENCE_KEYS_MAX]; /* registered; one of several paths is there once for each */
	size_t count;
};

struct fence_device {
	const struct fence_ops *ops;
	size_t paths;
	size_t alive; /* of the real ones: so many of the first, which the kernel has not given up */
	char names[FENCE_PATHS_MAX][FENCE_NAME_MAX]; /* of the real ones: /dev/… */
	int fds[FENCE_PATHS_MAX];
};

/* -EBUSY: the target refuses it because of others; -EOPNOTSUPP: it has no reservations. */
struct fence_ops {
	int (*look)(struct fence_device *d, struct fence_view *ret);
	/* On one path: key takes the place of old; old 0: of none, or of whatever there was. */
	int (*enroll)(struct fence_device *d, size_t path, uint64_t old, uint64_t key);
	/* These come from any path that answers. */
	int (*reserve)(struct fence_device *d, uint64_t key);
	int (*preempt)(struct fence_device *d, uint64_t key, uint64_t victim);
	int (*clear)(struct fence_device *d, uint64_t key);
};

/*
 * A node's key: the same in each of its lives, so that after a reboot it takes back what is its own.
 * machine tells nodes of the same name apart; it may be "". Its first 16 bits are the same in all,
 * its last two are marks.
 */
uint64_t fence_key(const char *node_id, const char *machine);
#define FENCE_TAKEN 1 /* somebody was put out, by this holder or before */
#define FENCE_LEFT 2 /* nobody writes; it keeps out who was put out */
#define FENCE_MARKS 3

/* Whether another node of ours holds it, by what is to be seen, and writes. */
bool fence_is_rival(uint64_t holder, uint64_t key);
/* Whether the node with that key holds it, in this life or an earlier one, or left that behind. */
bool fence_is_own(uint64_t holder, uint64_t key);
/*
 * Takes the device, which nothing here writes to yet: registered on every path, and its holder.
 * lapsed: a holder that may be put out, or 0. On failure nothing of ours is left at the target.
 */
int fence_take(struct fence_device *d, uint64_t key, uint64_t lapsed, struct error *err);
/*
 * Says that the holder lives: 0; 1 where it is not held by that key; -ESTALE where another has it.
 * Never registers anew: who was put out stays out.
 */
int fence_renew(struct fence_device *d, uint64_t key, struct error *err);
/*
 * Lets go of it; 1 where another has it by now, or the reservation that another left. One path that
 * answers is enough: it takes away what was registered on the others, too. So nothing is left by
 * which a path that comes back later could write, and nobody has to wait for it.
 */
int fence_drop(struct fence_device *d, uint64_t key, struct error *err);

/*
 * The device with these numbers, by itself or (a multipath map) by its paths. -EOPNOTSUPP: none of
 * a kind that has reservations. Only looks at the kernel's tables.
 */
int fence_device_find(unsigned major, unsigned minor, struct fence_device *ret);
/*
 * Opens its paths, of which one must be alive: orders to the others fail at once, where they would
 * wait for them. This and all calls on it may hang; none of them allocates memory.
 */
int fence_device_open(struct fence_device *d);
/* The first of several that live has not answered: it counts as dead, too. */
void fence_device_pass_over(struct fence_device *d);
