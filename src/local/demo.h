/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/*
 * The demonstration's hardware: three machines in three zones with two disks each, which are loop
 * devices over sparse files in STATE/demo.
 */
enum { DEMO_NODES = 3, DEMO_DISKS = 2 };

/* Attaches the disks that are not attached, making their files where missing, and gives the
 * StorageNode objects that describe the machines (new reference to an array). */
int demo_nodes(const char *ns, json_t **ret, struct error *err);
/* Detaches the disks (they may be in use no more) and, where asked to, removes their files. */
int demo_remove(bool delete_files, struct error *err);
