/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/kube.h"

/*
 * Registers our kinds with a cluster's API server (not for the embedded API, which knows them) and
 * waits until they are served: a definition that is missing is created, one of an older
 * schema-version replaced, one of a newer left as it is. Safe to be called by several operators at
 * once. Needs get, create, update and watch on customresourcedefinitions.
 *   -EPERM  our account may not; the error says how they can be registered by hand
 *   -EEXIST one is there that is not ours; of kinds that are shared (snapshots) it is left as it is
 *   -ETIMEDOUT not served in time
 */
int crds_ensure(struct kube *k, struct error *err);
