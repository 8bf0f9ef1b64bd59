/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The CSI node service: brings volumes to this machine with libhostvol and shows them where an
 * orchestrator wants them. It remembers nothing: hostvol's records and the mount table say what is
 * staged and published, so it may be ended at any moment and go on in its next life. Calls on one
 * volume come one after another (the second is ABORTED), those on different volumes at once.
 *
 * A volume is staged as what hostvol gives:
 *   a directory          nothing but the record; it is bound to each target from there
 *   a file               a loop device, with a lock on the file that lives as long as the device;
 *   a block device       as it is, reserved for this node where it alone writes;
 *     with a file system, mounted at the staging path, or as a device, bound to <staging path>/device
 * An ephemeral volume, which is published without being staged, is a file that is made then.
 */
#define CSI_DEFAULT_KUBELET_DIR "/var/lib/kubelet"
#define CSI_DEFAULT_LAPSE_S 300 /* longer than the service is away when it is replaced */

struct hostvol_host;

struct csi_node_options {
	const char *endpoint; /* the socket */
	const char *node_id;
	const char *kubelet_dir; /* staging and target paths lie below it, unless any_target */
	bool any_target;
	bool registration; /* with kubelet */
	const char *state_dir, *run_dir; /* hostvol's */
	const char *pools_dir; /* how pools are reached (pools.h); NULL: as each volume says */
	int64_t max_volumes; /* 0: no limit is said */
	int64_t lapse_s; /* a holder that has not renewed for so long may be put out; 0: default */
	const struct hostvol_host *host; /* NULL: this machine */
	/*
	 * What is to be told to pods, from any thread, which waits: {"ungrown": [{name, namespace, uid, message}]}. NULL:
	 * nobody can be.
	 */
	void (*tell)(const json_t *what, void *userdata);
	void *tell_userdata;
};

struct csi_node;
int csi_node_start(const struct csi_node_options *o, struct csi_node **ret, struct error *err);
/* What is staged and published stays. NULL-safe. */
void csi_node_free(struct csi_node *n);
/* Whether kubelet refused us; the process was sent SIGTERM then, and should end with a failure. */
bool csi_node_refused(const struct csi_node *n);

/*
 * What is published and will never answer again, since its client died: an array of objects with
 * volume, target, and the pod's namespace, name and uid. New reference. From any thread.
 */
json_t *csi_node_lost(struct csi_node *n);

/* {ID: how many volumes are here by the client container of that id}. New reference. From any thread. */
json_t *csi_node_clients(struct csi_node *n);

/*
 * For who ends the instance of this machine: takes away all that is published of the volumes of
 * these hostvol directories, and what is staged on loop devices; what then remains are hostvol's
 * records, with the staging path as their consumer. -EBUSY while something is in use, unless force.
 */
int csi_node_release_all(const char *state_dir, const char *run_dir, bool force, struct error *err);
