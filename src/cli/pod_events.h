/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "kube/kube.h"

/*
 * Tells the cluster what the node service has to say (the forms stand in pod_events.c); ns: the
 * deployment's own. An Event that could not be made is in the log alone.
 */
int pod_events_tell(struct kube *kube, const char *ns, const json_t *what, struct error *err);
