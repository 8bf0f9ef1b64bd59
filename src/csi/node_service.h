/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "csi/linear.h"
#include "csi/loop.h"
#include "csi/node.h"
#include "csi/node_args.h"
#include "grpc/grpc.h"
#include "mounts/bind.h"
#include "mounts/records.h"

#include <pthread.h>

struct registration;
struct fences;
struct switches;

/* What the parts of the node service share. Only busy, switching, ending change after the start. */
struct csi_node {
	char *node_id, *base, *endpoint; /* base: what paths lie below, links resolved; NULL: any */
	char *typed_base; /* the same as given: what callers' paths begin with */
	char *pools_dir; /* see pools.h; NULL: none */
	char *published; /* the directory of node_lost.c */
	char *read_only; /* the directory of node_readonly.c */
	char *ungrown; /* the directory of node_grow.c */
	void (*tell)(const json_t *what, void *userdata); /* see csi_node_options */
	void *tell_userdata;
	int64_t max_volumes;
	struct hostvol *h;
	const struct hostvol_host *host;
	struct grpc_server *server;
	struct registration *registration;
	struct fences *fences;
	struct switches *switches;
	pthread_mutex_t lock;
	struct strv busy; /* volumes that a call is at work on */
	const json_t *switching; /* the record that node_switch.c is at work on */
	pthread_t sweeper; /* see ephemeral_sweep_start */
	bool sweeping, ending;
	pthread_cond_t wake; /* with lock: ending has been set */
};

/* A step that may hang is given up after this. */
#define STEP_MS 10000
#define WRITE_OUT_MS 30000 /* the kernel gives up a dead path after 15 s, and takes another */
#define STACKED_MAX 8 /* mounts over one another at one place */

/* ---- one call on a volume (node_volume.c) ----------------------------------------------------- */

/* -EINPROGRESS while another call works on the volume. */
int volume_begin(struct csi_node *n, const char *id, struct error *err);
void volume_end(struct csi_node *n, const char *id);
/* The same for the volume of a record, of which no id is known: whether it may be. */
bool record_begin(struct csi_node *n, const json_t *record);
void record_end(struct csi_node *n);

/*
 * A path of the request with the base's links resolved, as the mount table has it; NULL base: as it
 * is. Caller frees. -EINVAL as check_target_path.
 */
int path_of(const struct csi_node *n, const char *what, const char *path, char **ret,
	    struct error *err);

/* How a volume is staged; found in the mount table. */
enum shape { SHAPE_DIRECTORY, SHAPE_FILESYSTEM, SHAPE_DEVICE };
struct staged {
	enum shape shape;
	json_t *record; /* owned */
	struct mount_entry entry; /* of its file system or device; a directory has none */
	unsigned major, minor; /* of its device; 0: unknown */
};
void staged_done(struct staged *s);
/* Where a device is shown below the staging path. Caller frees. */
char *device_place(const char *staging);
/* Looks at what stands at the record's consumer. Takes a reference to the record. */
int staged_look(json_t *record, struct staged *ret, struct error *err);
/* Whether the mount shows that volume. */
bool staged_is(const struct staged *s, const struct mount_entry *e);
/* The record of the volume at the staging path: 1, or 0 where there is none. New reference. */
int staged_record(struct csi_node *n, const char *id, const char *staging, json_t **ret,
		  struct error *err);
/* Records that may be of the volume (record_is_of), without holding all others. New reference. */
int staged_candidates(struct csi_node *n, const char *id, json_t **ret, struct error *err);
/*
 * The volume that is shown at path, a target or its staging path; -ENOENT where that is not
 * the volume with that id.
 */
int staged_at(struct csi_node *n, const char *id, const char *path, struct staged *ret,
	      struct error *err);
/* Another place where it is shown, but for its staging path and target: 1 and the path. */
int staged_elsewhere(const struct staged *s, const char *target, char **ret, struct error *err);

/* Its loop device, which may be below another. */
struct staged_loop {
	enum loop_state state; /* what it has to do with its file; LOOP_OTHER: nothing else is known */
	unsigned number;
	bool is_linear;
	struct linear_state linear;
};
void staged_find_loop(const struct staged *s, struct staged_loop *ret);
enum loop_state staged_loop(const struct staged *s); /* its state alone */
/* /dev/… of a device's numbers, as the kernel calls it. Caller frees; NULL: there is none. */
char *device_node(unsigned major, unsigned minor);

/* Takes away all mounts at a place; one that is dead or hangs is detached, others too with force. */
int take_away(const char *path, bool force, int timeout_ms, struct error *err);

/* ---- one writer for a device (node_fence.c) --------------------------------------------------- */

/* lapse_s: after so long without a sign a holder counts as gone; 0: the default. */
int fences_start(struct csi_node *n, int64_t lapse_s, struct error *err);
void fences_end(struct csi_node *n); /* NULL-safe */
/* Until nothing of this machine writes to the device, or holds it alone; -EBUSY: something does. */
int device_await_idle(struct csi_node *n, unsigned major, unsigned minor, struct error *err);
/*
 * Reserves the device for this node. -EBUSY: another has it, and has given a sign of life, or
 * something here uses it without a reservation; -EOPNOTSUPP: it has no reservations.
 */
int device_fence(struct csi_node *n, const char *staging, unsigned major, unsigned minor,
		 struct error *err);
/*
 * Of a device that is staged here: 1: this node holds it; 0: it does not, or that cannot be told;
 * -ESTALE: another node has taken it.
 */
int device_fence_kept(struct csi_node *n, unsigned major, unsigned minor, struct error *err);
/* Lets go of it, which nothing here writes to any more. Whether another node has taken it. */
bool device_unfence(struct csi_node *n, unsigned major, unsigned minor);

/* ---- devices for readers alone (node_readonly.c) ---------------------------------------------- */

/* Whether it was made read-only here. */
bool device_is_reader(const struct csi_node *n, unsigned major, unsigned minor);
/* Has the kernel refuse writes to it. What is read-only already stays so for ever. */
int device_make_reader(const struct csi_node *n, unsigned major, unsigned minor, struct error *err);
/* Undoes that, where it was done here and it answers. -EBUSY while it is written to, or mounted. */
int device_end_reader(struct csi_node *n, unsigned major, unsigned minor, struct error *err);

/* ---- copies that restart (node_switch.c) ------------------------------------------------------ */

/*
 * In a thread: devices of single writers (linear.h) whose GlusterFS client has their file not open on a
 * brick that is there are switched to a descriptor that has.
 */
int switches_start(struct csi_node *n, struct error *err);
void switches_end(struct csi_node *n); /* NULL-safe */
/* Why the record's device misses a copy, or NULL. Caller frees. */
char *switches_problem(struct csi_node *n, const json_t *record);

/* ---- whose a target is (node_lost.c) ---------------------------------------------------------- */

/* context: of the publishing call, where the orchestrator names the pod. */
void published_note(const struct csi_node *n, const char *id, const char *target,
		    struct map context);
void published_forget(const struct csi_node *n, const char *target);
/* Of that key, or NULL. */
const char *map_value(struct map m, const char *key);

/* ---- file systems that are to grow (node_grow.c) ---------------------------------------------- */

/* Before it is mounted to be staged: until it is settled whether it has grown, it counts as not grown. */
void ungrown_begin(const struct csi_node *n, const char *staging, const struct wanted *w);
/* Then, as m says; for writers only. What fails is noted, and it is used as it is. -errno: it cannot be, and is not mounted. */
struct filesystem_mount;
int grow_staged(const struct csi_node *n, const struct filesystem_mount *m, const struct wanted *w,
		struct error *err);
/* Why what is staged there could not be grown; NULL: it was. Caller frees. */
char *ungrown_why(const struct csi_node *n, const char *staging);
/* Tells the pod that it is published for, if so; context: as published_note. */
void ungrown_tell(const struct csi_node *n, const char *id, const char *staging, struct map context);
/* It is grown, or not staged any more. */
void ungrown_forget(const struct csi_node *n, const char *staging);

/* ---- staging (node_stage.c) ------------------------------------------------------------------- */

/* Has hostvol connect it: the record as it is then, new reference. */
int connect_volume(struct csi_node *n, const char *connection, json_t **ret, struct error *err);
/* What hostvol connected, made ready at the staging path; what is there already is kept. */
int stage_present(struct csi_node *n, const json_t *record, const char *staging,
		  const struct wanted *w, struct error *err);
/*
 * Ends the record's use, and the reservation of its device: instead of record_disconnect wherever
 * stage_present came before. -EBUSY while something here still writes to the device.
 */
int stage_disconnect(struct csi_node *n, const json_t *record, struct error *err);
/* Undoes stage_present, but for that; the record stays. */
int stage_remove(const struct staged *s, bool force, struct error *err);
/* Of a volume without a record: takes away what was staged there all the same (node_leftover.c). */
int unstage_leftover(struct csi_node *n, const char *id, const char *staging, struct error *err);

/* ---- ephemeral volumes (node_ephemeral.c) ----------------------------------------------------- */

/*
 * A volume that a pod's own spec asks for, which is there as long as the pod: a sparse file with a
 * file system of its own, ephemeral/<node id>/<volume id> in a pool, mounted at its only target.
 * hostvol's record, of the whole pool with the target as its consumer, is there before the file and
 * goes after it: so what a crash leaves is found by it.
 */
bool is_ephemeral(const Csi__V1__NodePublishVolumeRequest *q);
int ephemeral_publish(struct csi_node *n, const Csi__V1__NodePublishVolumeRequest *q,
		      const char *target, struct wanted *w, struct error *err);
/* 1: there is no such volume at the target. */
int ephemeral_unpublish(struct csi_node *n, const char *id, const char *target, struct error *err);
/* Records of such volumes, as if the file were what they had connected; all others stay as they are. */
void ephemeral_settle(const struct csi_node *n, json_t *records);
/* In a thread: takes away those that kubelet has forgotten, whose pod's directory is gone. */
void ephemeral_sweep_start(struct csi_node *n);
void ephemeral_sweep_end(struct csi_node *n);

int node_stage(struct grpc_call *call, const void *request, void *reply, struct error *err);
int node_unstage(struct grpc_call *call, const void *request, void *reply, struct error *err);
int node_publish(struct grpc_call *call, const void *request, void *reply, struct error *err);
int node_unpublish(struct grpc_call *call, const void *request, void *reply, struct error *err);
int node_stats(struct grpc_call *call, const void *request, void *reply, struct error *err);
int node_health(struct grpc_call *call, const void *request, void *reply, struct error *err);
int node_storage_health(struct grpc_call *call, const void *request, void *reply,
			struct error *err);
int node_expand(struct grpc_call *call, const void *request, void *reply, struct error *err);
