/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/platform.h"

/*
 * The platform of one machine without Kubernetes: each StorageNode gets a box, its agent is a
 * process in it, kept running for as long as the operator lives (and found again by the next one).
 * The supervisor is kept running too, as the supervisor keeps the operator: neither is left alone.
 */
int platform_local_new(struct platform **ret, struct error *err);
void platform_local_free(struct platform *p);

/* The box of a StorageNode, "namespace-name"; the caller frees. */
char *node_box_name(const char *ns, const char *name);
