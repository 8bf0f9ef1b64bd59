/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* What the pods of all our workloads are put together from. */
struct pod {
	json_t *volumes, *mounts; /* of the pod, and of its one container */
};

/* volume (stolen): what it is, without its name. propagation: NULL for none. */
void pod_add_volume(struct pod *p, const char *name, json_t *volume, const char *path,
		    const char *propagation);
/* A directory of the machine, made where it is missing. */
void pod_add_host_path(struct pod *p, const char *name, const char *host, const char *path,
		       const char *propagation);

/* Changes with what a workload's spec says; caller frees. */
char *pod_hash(const json_t *spec);
