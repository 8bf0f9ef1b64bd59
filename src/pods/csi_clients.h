/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pods/csi.h"

/*
 * How the clients of one protocol move from one image to another.
 *
 * A new image is a second DaemonSet beside the old one. Machines use it for new mounts as soon as
 * its client listens there, which it does only when its programs run; until then, and wherever it
 * never does, the old client goes on. When it is ready everywhere the old DaemonSet is deleted;
 * its pods end when what they serve is no longer mounted. When it is not after a time, it is taken
 * back: it stays as a record of that (CSI_REFUSED), on no machine, until another image is wanted or
 * somebody deletes it.
 */
struct clients_view {
	const char *image; /* the one that is wanted */
	const json_t *daemonsets; /* of the protocol, all */
	/* of the protocol, as client_pod gives them; NULL: not looked at, the DaemonSet will do */
	const json_t *pods;
	const json_t *named; /* {id: image} of classes and volumes: these are neither old nor new */
	const json_t *order; /* as the node service has it, or NULL */
	const json_t *counts; /* the ConfigMap CSI_COUNTS, or NULL */
	int64_t now_ms, patience_ms;
};

struct clients_plan {
	bool create; /* the wanted one's */
	bool refuse; /* takes the wanted one back, message says why */
	json_t *remove; /* names of DaemonSets */
	json_t *order; /* ids for new mounts, best first */
	bool updated;
	const char *reason; /* one word */
	char *message;
};
void clients_plan_done(struct clients_plan *p);

/* What is to be known of a client's pod; new reference. */
json_t *client_pod(const json_t *pod);
void clients_plan(const struct clients_view *v, struct clients_plan *ret);
