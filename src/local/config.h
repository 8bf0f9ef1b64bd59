/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/*
 * What `quartermaster up` was asked for, in STATE/config.json: whoever starts the operator again
 * (the supervisor, after a crash or a reboot) starts it the same way.
 */
struct local_config {
	char *deployment; /* "glusterfs" */
	char *ns; /* "default" */
	char *type; /* "glusterfs" */
	char *volume_type; /* "replicate:3" */
	char *overcommit; /* "1" */
	char *reclaim; /* "delete", "retain" or "archive" */
	bool demo; /* its disks are files that `up --demo` made */
};

/* -ENOENT where `up` never ran. */
int local_config_load(struct local_config *ret, struct error *err);
int local_config_save(const struct local_config *c, struct error *err);
/*
 * Removes all that STATE and RUN hold. The configuration goes last: as long as it is there an
 * instance is known, so who was killed on the way only has to be called again.
 */
int local_config_forget(struct error *err);
/* All fields as `up` without options sets them. */
void local_config_default(struct local_config *ret);
void local_config_done(struct local_config *c);
