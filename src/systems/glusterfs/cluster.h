/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rand.h"
#include "base/str.h"
#include "systems/glusterfs/gluster.h"
#include "systems/glusterfs/plan.h"

/*
 * The cluster's part: brings one Gluster volume nearer to what its StoragePool says. Deciding is a
 * pure function of the pool and of what gluster reports, giving one step at a time; so whoever
 * comes after an interruption finds the same next step. Carrying it out is the host's business.
 */
enum volume_step_kind {
	STEP_NONE, /* the volume is as it should be */
	STEP_WAIT, /* nothing to do now; why says what is awaited */
	STEP_BLOCKED, /* cannot go on without a person; why says what to do */
	STEP_CREATE, /* bricks in order (an arbiter last), replica/arbiter/disperse/redundancy */
	STEP_SET, /* options: all of them in one transaction */
	STEP_START,
	STEP_START_FORCE, /* starts bricks whose process is gone */
	STEP_ADD_BRICK, /* bricks[0], replica: the new count */
	STEP_HEAL, /* makes the self-heal daemons look at their indices now */
	STEP_REMOVE_BRICK, /* bricks[0], replica: the new count; its data is not moved: all others have it */
	STEP_REPLACE_BRICK, /* bricks[0] by bricks[1] */
	STEP_STOP,
	STEP_DELETE,
	STEP_GONE, /* a deleted pool has no volume any more */
};

struct volume_step {
	enum volume_step_kind kind;
	char volume[64];
	char id[UUID_TEXT_MAX]; /* of the volume: it is done to no other; "": there is none yet */
	struct strv bricks; /* "ADDRESS:/path" */
	int replica, arbiter, disperse, redundancy;
	json_t *options; /* STEP_SET: object of strings */
	char why[700]; /* for people */
};
void volume_step_done(struct volume_step *s);
/* Binds a step to the volume of that id; NULL: not known. */
void volume_step_of(struct volume_step *s, const char *id);
/* Right before it is carried out: -ESTALE where what is there now is another volume of the name. */
int volume_step_check(const struct volume_step *s, const struct gluster_volume *now,
		      struct error *err);
const char *volume_step_name(enum volume_step_kind kind);

struct volume_view {
	const json_t *pool; /* the StoragePool */
	const struct gluster_volume *volume; /* NULL: gluster knows no such volume */
	const struct gluster_peers *peers;
	const char *address; /* of the node that looks; it is not among its peers */
	size_t members; /* how many nodes the cluster is to have; 0: not known */
	/* How long a brick of the volume has been seen offline, in ms; NULL: just now. */
	int64_t (*offline_ms)(void *userdata, const char *address, const char *path);
	/* Whether a brick of the spec is there now, asked anew of whoever knows best; NULL: all are. */
	bool (*mounted)(void *userdata, const json_t *brick);
	/* Whether a brick that is offline here runs all the same, as its node tells; NULL: none. */
	bool (*runs)(void *userdata, const char *address, const char *path);
	void *userdata;
};

/* No more than half of the cluster is in the looking node's trusted pool: what it does not know may exist. */
bool volume_view_of_half(const struct volume_view *view);

/*
 * Names come again, so a volume is a pool's by the id that its status has; one that was not
 * reported yet by the option that holds the pool's uid. Or, since the option comes a moment after
 * the volume: it was never started, and has a brick that was prepared for this pool, which is so
 * only when no other volume had it any more.
 */
#define VOLUME_OPTION_POOL "user.quartermaster-pool"
bool volume_is_of(const json_t *pool, const struct gluster_volume *v);
/* The volume of the view, if it is the pool's own; NULL: there is none. */
const struct gluster_volume *volume_view_own(const struct volume_view *view);

/*
 * Offline longer than this, a brick that has to leave is given up instead of being emptied, if
 * enough others are whole.
 */
#define BRICK_LOST_MS (5 * 60 * 1000)

/*
 * Which copies are whole stands in the pool's status (status.bricks[].whole), since the agent that
 * leads next has to know it too. Sets it in a volume that was just looked at, from the marks before
 * (status.bricks) and from what the look says. True: one brick may be what others miss, or be dead
 * without gluster's knowing it yet: ask again soon, patiently for a while.
 */
struct volume_marking {
	bool exact; /* the look was: only that makes a copy whole */
	bool blind; /* a brick that cannot be seen from here takes in what others may miss */
	bool patient; /* nothing is made yet of what may explain itself */
};
bool volume_mark(struct gluster_volume *v, const json_t *marks, const struct volume_marking *how);
/* All are online; but of one alone nothing is known, or it alone lists nothing. NULL: none. */
struct gluster_brick *volume_silent_brick(struct gluster_volume *v);
/* All bricks serve, and none has anything to heal: what an exact look has to confirm. */
bool volume_seems_whole(const struct gluster_volume *v);
/* The bricks as they stand in the pool's status, with their marks. New reference. */
json_t *volume_bricks_status(const struct gluster_volume *v);
/* The id of a brick of ours, which is part of its path. New reference. */
json_t *volume_brick_id(const char *path);

void volume_next_step(const struct volume_view *view, struct volume_step *ret);

/* The status of the pool that follows from the same view. New reference; without the numbers' history. */
json_t *volume_pool_status(const struct volume_view *view, const struct volume_step *step);
