/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/op.h"

/*
 * Classes whose parameters are a ConnectionInfo: storage that others made and keep. A claim of one
 * gets a PersistentVolume with those attributes, and nothing else is made, or destroyed when it goes.
 * An export of a file protocol may be shared, by any number of claims; a device of a block protocol is
 * one volume, which the PersistentVolume's name stands for (lun-<hash of what identifies the device>),
 * so that a second one cannot be made, by whichever operator.
 */
#define QM_ANNOTATION_CONNECTION QM_PREFIX "connection" /* PV: of such a class; lun-<hash> */
#define QM_LABEL_CONNECTION QM_PREFIX "connection" /* PV: the same, to be found by; older ones lack it */

bool class_is_connection(const json_t *class);
bool pv_is_connection(const json_t *pv);
/*
 * Makes the claim's volume, or finds that it is there: 0; 1 where it was made now. -EINVAL: class or
 * claim cannot be served as they are; -EBUSY: the device has another claim.
 */
int connection_provide(struct reconcile *r, const json_t *claim, const json_t *class,
		       struct error *err);
