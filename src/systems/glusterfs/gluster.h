/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What glusterd says about its peers and volumes, as small structs. They are filled in by the
 * reader of `gluster --xml` (xml.h) or by a model of a cluster (tests/sim). Zero-initialised is
 * empty; *_done frees what is inside and leaves it empty.
 */
struct gluster_peer {
	char *uuid;
	char *address; /* as glusterd calls it: a host name where the name service has one for it */
	struct strv
		names; /* all that it is known by; the address by which it was asked to join is one */
	bool connected;
	int state; /* glusterd's peer state: 3 is "Peer in Cluster", 6 is "Peer Rejected" */
	char *state_text;
};

#define GLUSTER_PEER_BEFRIENDED 3
#define GLUSTER_PEER_REJECTED 6

/* The other members of the trusted pool: never the node itself. */
struct gluster_peers {
	struct gluster_peer *items;
	size_t count;
};
void gluster_peers_done(struct gluster_peers *p);
const struct gluster_peer *gluster_peer_find(const struct gluster_peers *p, const char *address);

enum gluster_volume_state { VOLUME_CREATED, VOLUME_STARTED, VOLUME_STOPPED };

struct gluster_brick {
	char *address;
	char *path;
	bool arbiter;
	bool online;
	int pid; /* on its own node; 0: not running */
	int64_t size, free; /* bytes of the brick's file system; 0: not known */
	int64_t pending; /* entries that still have to be healed according to this brick; -1: not known */
	bool connected; /* the crawler of an exact look reached it: so it serves */
	bool unasked; /* the crawl did not end in time: neither is known */
	bool whole; /* not gluster's word: its mark in the pool's status (volume_mark) */
};

/* How closely a volume is looked at. All but the first ask every node, and wait for one that does not answer. */
enum volume_look {
	VOLUME_LOOK_DEFINITION, /* bricks seem to be offline, with nothing known of what they have to heal */
	VOLUME_LOOK, /* what is left to heal by the bricks' indices */
	VOLUME_LOOK_EXACT, /* or by a crawl: before a copy is given up */
};

struct gluster_volume {
	char *name;
	char *id;
	enum gluster_volume_state state;
	int replica; /* 1 for a volume of single bricks and for disperse */
	int arbiter; /* 0 or 1 */
	int disperse; /* bricks of a disperse set, 0 otherwise */
	int redundancy;
	struct gluster_brick *bricks;
	size_t brick_count;
	json_t *options; /* object: option name to its value, those that were set */
};
void gluster_volume_done(struct gluster_volume *v);
struct gluster_brick *gluster_brick_find(const struct gluster_volume *v, const char *address,
					 const char *path);
struct gluster_brick *gluster_volume_add_brick(struct gluster_volume *v, const char *address,
					       const char *path);
