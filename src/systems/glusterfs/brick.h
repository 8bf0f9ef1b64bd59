/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "systems/glusterfs/device.h"
#include "systems/glusterfs/host.h"

/*
 * The life of one brick on its node. Before a device is formatted its file system's UUID is chosen
 * and recorded, here and in the node's status; so what a crash leaves behind is known to be ours.
 * A brick is used only when its marker file says that it is this very brick.
 */
#define BRICK_OWNER_MAX 200

struct brick_order { /* an entry of status.plan.bricks */
	const char *id, *device, *directory, *path, *pool;
	const char *pool_uid; /* which pool of that name; NULL: whoever ordered it did not say */
	const char *parent; /* the brick beside which it lies, in the same root; NULL: it lies alone */
	bool wipe;
	/*
	 * What has had its device's name for a while, as brick_result.instead, while its disk was away:
	 * a machine that starts may show another one first. NULL: nothing, or not for long.
	 */
	const char *settled;
	const char *node_uid;
	const char *known_uuid; /* what status.agent remembers of an earlier life, or NULL */
	bool known_ready; /* and that it was in use then */
	/* Its pool has had it in use: whatever is wrong with it, it is never made anew. What the API itself says, not a
	 * cache; without meaning where brick_known. With it the brick is the pool's also where the record names another
	 * of its name. */
	bool prepared;
	/*
	 * Whose brick, but `id`, a file system of this UUID is by what nodes report, asked anew: 1
	 * and who it is, 0: nobody's, -errno: that cannot be asked, and nothing is formatted. NULL:
	 * there are no other nodes.
	 */
	int (*claimed)(void *userdata, const char *uuid, const char *id,
		       char by[static BRICK_OWNER_MAX], struct error *err);
	void *userdata;
};

struct brick_result {
	struct device_verdict verdict; /* state Ready: mounted, verified, usable */
	char uuid[UUID_TEXT_MAX];
	char device
		[DEVICE_PATH_MAX]; /* the name it has now; differs from the order's when it moved */
	bool unsure; /* Replaced, as it seems: one of the two disks does not say who it is */
	char instead[BRICK_OWNER_MAX]; /* its disk is missing: what has the device's name */
};

/* Is this a brick order that can be carried out at all (its fields are there, its path is its own)? */
bool brick_order_valid(const struct brick_order *o);
/*
 * Is it on record as in use, by that very pool as far as both are known? Else nothing is done about
 * it before its pool has been asked for `prepared`.
 */
bool brick_known(struct node_host *h, const char *id, const char *pool_uid);
/* The uid of the pool that it is on record for; NULL: none is known. Caller frees. */
char *brick_pool_uid(struct node_host *h, const char *id);
/* Does the brick at this path answer as this one: is it there, on what it lies on? */
bool brick_is_there(struct node_host *h, const char *path, const char *id);
/* Chooses the UUID and records it. To be reported before brick_prepare. */
int brick_choose(struct node_host *h, const struct brick_order *o, char uuid[static UUID_TEXT_MAX],
		 struct error *err);
/* The device that has the file system of the brick on record, as find_device of the host says. */
int brick_find(struct node_host *h, const json_t *record, char device[static DEVICE_PATH_MAX],
	       struct error *err);
#define BRICK_RECORD_PREFIX "brick."
/* brick_owner.c: 1: the file system is on record for another brick of this node. */
int brick_recorded(struct node_host *h, const char *uuid, const char *id,
		   char by[static BRICK_OWNER_MAX], struct error *err);
/*
 * Is the file system on this device some other brick's, or may one lie inside it, unseen? Then it
 * is formatted for none, whatever wipe says; the verdict says so, or that it cannot be known.
 */
bool brick_spoken_for(struct node_host *h, const struct brick_order *o, const char *device,
		      const struct device_facts *f, struct device_verdict *ret);
/*
 * Brings the brick to Ready, or says in the verdict why not. Every step can be repeated. Missing
 * with the reason Replaced: its disk is not there, and another one, which can be used, has its
 * name.
 */
void brick_prepare(struct node_host *h, const struct brick_order *o, struct brick_result *ret);
/*
 * A brick that left its pool: unmounted, its signature (or its own tree) removed. 0: gone; > 0: its
 * disk is not there; it stays on record and is freed when it appears. One that was replaced while
 * it was away is not: it stays as it is, and is reported when it appears.
 */
int brick_release(struct node_host *h, const char *id, struct error *err);
/* The records of this node's bricks: {id, uuid, device|directory, path, pool, poolUid, ready, wwn, replaced (another
 * disk has its name), released, away (released, but its disk is not there)}. New reference: array. */
json_t *brick_records(struct node_host *h);
/* Adds the ids of bricks whose release was begun and is not done. */
void brick_list_released(struct node_host *h, struct strv *ids);
