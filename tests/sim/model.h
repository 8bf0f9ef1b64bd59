/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proc.h"
#include "operator/platform.h"
#include "systems/glusterfs/host.h"
#include "worker/worker.h"

/*
 * Machines with disks, and the GlusterFS that runs on them, as far as the control loops can tell
 * it from the real thing. What it holds outlives every process. Whoever destroys data, or gives
 * one disk to two volumes, has broken a promise (sim_fail) at that very moment.
 */
#define MODEL_NODES 6
#define MODEL_DEVICES 4
#define MODEL_VOLUMES 40 /* whole volumes of claims among them */
#define MODEL_BRICKS 8

struct model_device { /* a disk; its name is that of the moment */
	char name[32];
	int64_t size;            /* 0: no such device */
	int serial;              /* of the disk, which another may take the place of */
	bool away;               /* not attached now */
	int64_t sick_until_ms;   /* what is on it cannot be mounted until then */
	char signature[32];
	char uuid[UUID_TEXT_MAX];
	char mounted[300];       /* where, "" for nowhere */
	json_t *marker;          /* of the file system on it */
	json_t *trees;           /* directories of bricks that lie beside: path to marker; NULL: none */
	json_t *volumes;         /* glusterd's marks: a brick's path to its volume's id */
};

struct model_node {
	struct model *model;
	char name[64];           /* of the StorageNode; "" for an empty slot */
	char address[40];
	struct model_device devices[MODEL_DEVICES];
	json_t *records;
	json_t *root_dirs;       /* mount points that were made on the root file system */
	json_t *dead_mounts;     /* of disks that dropped off */
	bool forgot;             /* its records were lost once */
	json_t *wipe;            /* names whose content a person has given up */
	int boots;
	bool up, glusterd;
	int trust;               /* the trusted pool that it belongs to */
	char uuid[UUID_TEXT_MAX];
	struct proc agent;
	bool agent_wanted;       /* the platform keeps it running */
	struct model_host *host; /* of the agent that runs */
};

struct model_brick {
	struct model_node *node;
	char path[300];
	bool arbiter;
	bool running;
	int pid;                 /* another one each time that it is started */
	uint64_t lacks;          /* entries of which it has no whole copy or part, by bit */
	int64_t added_ms;        /* the index of what it lacks is not complete for a while */
};

struct model_volume {
	char name[64];           /* "" for an empty slot */
	char id[UUID_TEXT_MAX];
	int trust;
	char pool_uid[UUID_TEXT_MAX]; /* of the StoragePool that its maker meant */
	enum gluster_volume_state state;
	int replica, arbiter, disperse, redundancy;
	struct model_brick bricks[MODEL_BRICKS];
	size_t brick_count;
	json_t *options;
	json_t *dirs;            /* volumes: name to size; "f.name", "b.name" where it is not a directory */
	json_t *infos;           /* their info files: name to size, null for one that is torn */
	json_t *copies;          /* those that are copies, and snapshots ("s.name"): what is said of them */
	json_t *archived;
	int entries;             /* so many, at most 64 */
	int next_entry;          /* that is written to */
	int64_t healed_ms;
};

struct model {
	struct world *world;
	struct model_node nodes[MODEL_NODES];
	struct model_volume volumes[MODEL_VOLUMES];
	int next_trust, next_serial, next_pid;
	int heal_ms;             /* what an entry takes to be healed */
	/* Sets up a node's agent (p->controllers, start, stopped); the model fills in the rest. */
	void (*agent_setup)(struct model *m, struct model_node *n, struct proc *p);
	void *userdata;
};

void machines_init(struct model *m, struct world *w);
void machines_done(struct model *m);

/* ---- the machines ------------------------------------------------------------------------------ */
struct model_node *model_node_add(struct model *m, const char *name, const char *address);
struct model_node *model_node_named(struct model *m, const char *name);
struct model_node *model_node_at(struct model *m, const char *address);
struct model_device *model_device_add(struct model_node *n, const char *name, int64_t size);
struct model_device *model_device_named(struct model_node *n, const char *name);
struct model_device *model_device_of_path(struct model_node *n, const char *brick_path);
/*
 * The place of its name among those that a person gives, or -1; and the disk that has that name
 * now.
 */
int model_device_slot(const struct model_device *d);
struct model_device *model_device_at_slot(struct model_node *n, int slot);
/* Is it the root of the device's own brick: its file system's, or the directory of that in which new ones lie? */
bool model_own_root(const struct model_device *d, const char *root);
/* Is it below the mount of a disk that dropped off? */
bool model_is_dead(const struct model_node *n, const char *path);
/*
 * The id of a brick, from the directory that holds it: ".quartermaster-ID" or, on a device in
 * stores made before, "ID".
 */
const char *model_id_of_root(const char *root);
/* The marker at the root of a brick, on a device that is mounted; NULL: there is none. */
json_t *model_marker(struct model_node *n, const char *root);
/* Power off: agent, glusterd, bricks and mounts are gone; the disks keep what they have. */
void model_node_down(struct model_node *n);
void model_node_up(struct model_node *n);
/*
 * A disk drops off: its mount is dead, what ran on it ends. It comes back under a name that nobody
 * has.
 */
void model_disk_off(struct model_node *n, struct model_device *d);
void model_disk_on(struct model_node *n, struct model_device *d, const char *name);
/* A new, empty one in its place. */
void model_disk_exchange(struct model_node *n, struct model_device *d);
void model_device_clear(struct model_device *d);
/* The system of the machine is installed anew: what the agent wrote down is gone. */
void model_records_lost(struct model_node *n);
void model_glusterd_kill(struct model_node *n);
void model_bricks_kill(struct model_node *n);

/* ---- what an agent sees of its machine (struct node_host) ------------------------------------------ */
struct model_host {
	struct node_host host;
	struct model_node *node;
	struct proc *proc;
};
struct node_host *model_host_new(struct model_node *n, struct proc *p);
extern const struct node_host_ops model_host_ops;

/* ---- gluster ------------------------------------------------------------------------------------- */
struct model_volume *model_volume_named(struct model *m, const char *name);
/* As the members of one trusted pool know it. */
struct model_volume *model_volume_in(struct model *m, int trust, const char *name);
/* The disk that has what is in a brick, mounted or not; NULL: that is lost. */
struct model_device *model_brick_disk(const struct model_volume *v, const struct model_brick *b);
/*
 * Would every entry be left with enough whole copies or parts without what is on that disk, or
 * (NULL) as it is?
 */
bool model_volume_kept(const struct model_volume *v, const struct model_device *without);
bool model_brick_online(const struct model_brick *b);
bool model_brick_whole(const struct model_brick *b);
/* Enough bricks for writes. */
bool model_volume_serves(const struct model_volume *v);
/* Starts the processes of bricks that can start, on one node or (NULL) on all. */
void model_volume_start_bricks(struct model_volume *v, struct model_node *only);
void model_heal(struct model_volume *v);
/* Something is written: bricks that are not there miss it. */
void model_volume_written(struct model_volume *v);
int gluster_glusterd_ensure(struct node_host *h, bool start, struct glusterd_state *ret,
			    struct error *err);
int gluster_brick_usage(struct node_host *h, const char *volume, const char *path,
			struct brick_usage *ret, struct error *err);
int gluster_peers_get(struct node_host *h, struct gluster_peers *ret, struct error *err);
int gluster_peer_probe(struct node_host *h, const char *address, struct error *err);
int gluster_peer_detach(struct node_host *h, const char *address, struct error *err);
int gluster_volume_get(struct node_host *h, const char *name, enum volume_look look,
		       struct gluster_volume *ret, struct error *err);
int gluster_volume_apply(struct node_host *h, const struct volume_step *step, struct error *err);

/* ---- what an operator acts on ----------------------------------------------------------------------- */
struct model_platform {
	struct platform platform;
	struct model *model;
	struct proc *proc;
};
void model_platform_init(struct model_platform *p, struct model *m, struct proc *proc);

struct model_workers {
	struct workers workers;
	struct model *model;
	struct proc *proc;
	json_t *made;            /* by the first half, in this life */
};
void model_workers_init(struct model_workers *w, struct model *m, struct proc *proc);
void model_workers_done(struct model_workers *w);

/* ---- mutants ----------------------------------------------------------------------------------------- */
void model_mutate(struct world *w);
/* Changes what gluster tells of a volume; and what a look at a device finds. */
void model_mutate_volume(struct proc *p, struct gluster_volume *v);
void model_mutate_facts(const struct model_node *n, const struct model_device *d,
			struct device_facts *f);
