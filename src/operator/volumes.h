/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/volumes.h"
#include "kube/controller.h"

/*
 * Volumes for an orchestrator without claims (src/csi): the record of each is a PersistentVolume with
 * the annotation QM_ANNOTATION_CSI_NAME, which the binder and Kubernetes take for one whose claim is
 * gone and that is to be retained. It is written before anything is made in a pool and goes after
 * everything there is removed, so what a crash leaves is completed or removed by the same call again.
 *
 *   annotation making   set until it is made
 *   reclaim policy      Retain; Delete from the moment that its removal was asked for, so that the
 *                       volume loop ends it even if nobody asks again
 */

/* A volume for each call: r is copied (kube, cache, app and so on); what it points to is borrowed. */
struct volumes *operator_volumes_new(const struct reconcile *r);
void operator_volumes_free(struct volumes *v);
