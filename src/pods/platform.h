/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/kube.h"
#include "operator/platform.h"
#include "pods/csi.h"
#include "pods/workload.h"

/*
 * The platform of a Kubernetes cluster: a StorageNode's machine is the one Node that its
 * nodeSelector matches, its workloads are two Deployments that are pinned there (workload.h).
 *
 * A storage pod that is to change is rolled only when that costs nobody anything: the operator says
 * whether the node's pools are whole, and no other storage pod of the deployment may be down. The
 * PodDisruptionBudget says the same to those who drain machines.
 */
struct platform_pods_options {
	struct kube *kube; /* borrowed */
	const char *ns;
	struct workload_settings settings; /* strings are borrowed */
	const char *tls_dir; /* with settings.tls: where the operator's own certificates go */
	const char *secure_file; /* see certs.h */
	struct csi_settings csi; /* without a node_image nothing of it is made */
};
struct platform *platform_pods_new(const struct platform_pods_options *options);
void platform_pods_free(struct platform *p); /* NULL-safe */
