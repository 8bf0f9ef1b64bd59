/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/operator.h"

/*
 * The CSI controller and identity services of an operator on a unix socket, for any orchestrator; who
 * is not root is refused. runner: for whom loops are woken; it and the operator outlive the service.
 */
struct csi_service;
int csi_service_start(struct operator* op, struct kube *kube, struct runner *runner,
		      const char *socket, struct csi_service **ret, struct error *err);
void csi_service_stop(struct csi_service *s); /* NULL-safe; waits for calls that run */
