/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/rand.h"
#include "systems/glusterfs/cluster.h"
#include "systems/glusterfs/gluster.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * All contact of an agent with its machine: devices, file systems, glusterd, quota. host_real.c is
 * the machine; tests/sim has a model. Every operation has a deadline of its own, can be repeated,
 * and may be interrupted anywhere: the next call finds what was done. Operations report facts;
 * what follows from them is decided above (device_judge, brick_*, volume_next_step).
 */
struct node_host;

#define DEVICE_PATH_MAX 512

/* What a look at a device or directory found, without writing a byte. */
struct device_facts {
	/* errno of the look itself: ENOENT: not there; 0: the rest is filled in; else WWNs may be */
	int error;
	bool directory; /* asked for as a directory */
	bool block; /* is a block device; for a directory: is one, or can be made */
	bool in_use; /* somebody holds it exclusively (mounted, RAID, LVM, swap…) */
	bool held; /* another device is made of it, through which what is on it is reached */
	bool read_only;
	bool symlink; /* a directory below a symbolic link: not accepted */
	bool inside_brick; /* a directory that lies inside somebody's brick */
	int64_t size; /* bytes; of a directory: of its file system */
	int64_t free; /* of a directory */
	unsigned major, minor;
	bool partition; /* of the disk of these numbers, which that alone does not keep in use */
	unsigned disk_major, disk_minor;
	char disk_wwn[128];
	uint64_t inode; /* of a directory that exists */
	char wwn[128]; /* "" where the device has none */
	char signature[64]; /* "ext4", "gpt", "LVM2_member", …; "" for none */
	char uuid[UUID_TEXT_MAX]; /* of the file system found, "" for none */
};

/* The disk of a brick, which is looked for. */
struct disk_wanted {
	const char *uuid; /* of its XFS file system */
	const char *wwn; /* of the disk on which it was used last; NULL: not known */
	const char *mountpoint; /* where it is mounted when it is in use; NULL: nowhere */
};

struct node_identity {
	char machine_id[40];
	char boot_id[40];
};

struct glusterd_state {
	bool running;
	int pid;
	char uuid[UUID_TEXT_MAX];
	char version[32];
};

struct brick_usage {
	int64_t size, used, free; /* bytes */
	int64_t pending; /* entries of the heal index; -1: cannot be read */
	int pid; /* of its brick process, 0: none */
};

struct quota_support {
	bool enforced;
	char reason[32]; /* "NoKernelSupport", "NotMounted", "NoQuotaOption", "NotXfs" */
	char message[300];
};

struct node_host_ops {
	int (*identity)(struct node_host *h, struct node_identity *ret, struct error *err);

	/* ---- devices and directories; probing never writes ---- */
	void (*probe_device)(struct node_host *h, const char *device, struct device_facts *ret);
	void (*probe_directory)(struct node_host *h, const char *directory,
				struct device_facts *ret);
	/*
	 * The device that carries this file system, under whatever name; -ENOENT: none; -EIO: none,
	 * but a device that may be it could not be read. Where it is seen on the paths of a
	 * multipath map or the members of an array too: the uppermost. Where it was copied to
	 * another disk: what is mounted, else the disk of that WWN, else -ENOTUNIQ.
	 */
	int (*find_device)(struct node_host *h, const struct disk_wanted *wanted,
			   char device[static DEVICE_PATH_MAX], struct error *err);
	/*
	 * Makes an XFS file system of this UUID on the device that was seen, in place of what was
	 * seen on it. Looks again just before: -EBUSY when the device is in use, -ESTALE when it is
	 * another one, or carries anything else, than when that was decided.
	 */
	int (*format)(struct node_host *h, const char *device, const struct device_facts *seen,
		      const char *uuid, const char *label, struct error *err);
	/*
	 * Mounts at mountpoint (made as needed); > 0: it was mounted there before. With project
	 * quota where the kernel has it. Refuses when another file system is mounted there, unless
	 * that one's device is gone: what is left of it is detached.
	 */
	int (*mount)(struct node_host *h, const char *device, const char *uuid,
		     const char *mountpoint, struct error *err);
	/* 0 also when nothing was mounted. */
	int (*unmount)(struct node_host *h, const char *mountpoint, struct error *err);
	/* Makes the device reusable: removes the signature of an XFS file system of exactly this UUID. */
	int (*wipe)(struct node_host *h, const char *device, const char *uuid, struct error *err);

	/* ---- the tree around a brick: ROOT/.quartermaster.json (marker) and ROOT/brick ---- */
	/* The marker; -ENOENT: none and the tree is empty (or not there); -ENOTEMPTY: none, but there are files. */
	int (*marker_read)(struct node_host *h, const char *root, json_t **ret, struct error *err);
	/* Makes ROOT (if its parent is there), ROOT/brick and the marker. */
	int (*marker_write)(struct node_host *h, const char *root, const json_t *marker,
			    struct error *err);
	/* Removes ROOT whole; only for ROOT = <directory>/.quartermaster-<id> whose marker has this id. */
	int (*tree_remove)(struct node_host *h, const char *root, const char *id,
			   struct error *err);

	/* ---- the node's own small records, durable; names are [a-z0-9.-] ---- */
	int (*record_get)(struct node_host *h, const char *name, json_t **ret,
			  struct error *err); /* -ENOENT */
	int (*record_put)(struct node_host *h, const char *name, const json_t *record,
			  struct error *err);
	int (*record_remove)(struct node_host *h, const char *name,
			     struct error *err); /* 0 also when missing */
	int (*record_list)(struct node_host *h, const char *prefix, struct strv *ret,
			   struct error *err);

	/* ---- glusterd and brick processes ---- */
	/* Finds glusterd and, with start, sees to it that it runs and answers; it outlives the agent. Afterwards
	 * `changed` is called when it or a brick process of this node ends. */
	int (*glusterd_ensure)(struct node_host *h, bool start, struct glusterd_state *ret,
			       struct error *err);
	/* -ENODEV: the device of its file system is gone. */
	int (*brick_usage)(struct node_host *h, const char *volume, const char *path,
			   struct brick_usage *ret, struct error *err);

	/* ---- the cluster, through this node's glusterd; -EBUSY: another transaction is under way, try again ---- */
	int (*peers)(struct node_host *h, struct gluster_peers *ret, struct error *err);
	/* 0 also when it is a peer already; -EXDEV: it belongs to another trusted pool; -EHOSTUNREACH. */
	int (*peer_probe)(struct node_host *h, const char *address, struct error *err);
	int (*peer_detach)(struct node_host *h, const char *address, struct error *err);
	/* -ENOENT. */
	int (*volume_get)(struct node_host *h, const char *name, enum volume_look look,
			  struct gluster_volume *ret, struct error *err);
	int (*volume_apply)(struct node_host *h, const struct volume_step *step, struct error *err);

	/* ---- project quota on a local brick ---- */
	void (*quota_support)(struct node_host *h, const char *brick, struct quota_support *ret);
	/* Limits the tree brick/dir (relative, no symlink followed); 0 = no limit. -ENOENT: not there (yet). */
	int (*quota_set)(struct node_host *h, const char *brick, const char *dir, int64_t bytes,
			 int64_t inodes, struct error *err);
	/* Forgets limits of projects that hold no file any more. */
	int (*quota_sweep)(struct node_host *h, const char *brick, struct error *err);

	void (*free)(struct node_host *h);
};

struct node_host {
	const struct node_host_ops *ops;
	/* Called from any thread when something of the node changed by itself (glusterd or a brick ended). */
	void (*changed)(void *userdata);
	void *changed_data;
};

struct node_host_options {
	const char *state_dir; /* records live in STATE/agent/NAMESPACE.NODE */
	const char *ns, *node;
	bool storage_pod; /* glusterd and bricks run in a pod of their own (storage.h), and not by us */
	const char *
		machine_id; /* of the machine, where /etc/machine-id is not the machine's own; or NULL */
};
int node_host_real(const struct node_host_options *options, struct node_host **ret,
		   struct error *err);
