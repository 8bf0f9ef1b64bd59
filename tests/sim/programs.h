/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model.h"

/* The real operator and agents as simulated processes. */
#define SIM_NS "default"
#define SIM_DEPLOYMENT "glusterfs"
#define SIM_CLUSTER "home"
#define SIM_PROTECTION "kubernetes.io/pvc-protection" /* of claims, on a cluster */

struct sim_options {
	struct model *model;
	const char *volume_type;
	bool ignores_leases; /* a mistake to be caught: everybody believes to lead */
	bool cluster;        /* Kubernetes binds, not the operator: volumes are made in two halves */
	int binder_slow_ms;  /* at most so long between two writes of Kubernetes' */
};

/* Sets up an operator (the options are borrowed); start it with proc_start. */
void operator_proc_setup(struct proc *p, const struct sim_options *options, const char *name);
/* Kubernetes' controller manager (kubernetes.c), of which there is one on a cluster. */
void manager_proc_setup(struct proc *p, const struct sim_options *options);
/* For model.agent_setup; model.userdata is the struct sim_options. */
void agent_proc_setup(struct model *m, struct model_node *n, struct proc *p);
