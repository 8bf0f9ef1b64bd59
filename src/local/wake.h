/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * For the operator, before it does anything else. When the instance was taken down, or its machine
 * went down, its objects stayed as they were: they say that nodes are Ready, pools Online and the
 * store ONLINE, which is of another time. Where nothing of the instance runs (there is no box), all
 * of them are put down as offline; whoever comes back says so itself. Waits for the API.
 */
int instance_wake(const char *kubeconfig, const char *ns, struct error *err);
