/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "local/config.h"

/*
 * The instance as a whole: the API, the operator and the CSI node service, kept running by the
 * supervisor. The supervisor is kept running by the operator's platform, so that no single kill
 * ends both.
 */

/* Runs as the supervisor until SIGTERM or SIGINT; what it keeps goes on after it. */
int supervisor_run(const struct local_config *config, struct error *err);
/* Starts the supervisor unless it runs. */
int instance_start(struct error *err);
/*
 * Ends operator, supervisor, node service, agents, boxes and the API, in this order; 0 also where
 * none ran.
 */
int instance_stop(struct error *err);
