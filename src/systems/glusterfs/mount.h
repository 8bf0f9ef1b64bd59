/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stdbool.h>
#include <sys/types.h>

/*
 * A brick's file system and the small tree in it: ROOT/.quartermaster.json says whose it is,
 * ROOT/brick is what Gluster gets. See host.h for the meaning of each operation.
 */
/*
 * The device of the uppermost mount at mountpoint, by the text of a mountinfo file; false: there is
 * none.
 */
bool mountinfo_device(const char *text, const char *mountpoint, dev_t *ret);
/*
 * A mount point as the kernel's table has it, without symbolic links. Itself is not looked at: the
 * root of a file system whose disk is gone answers with errors. Caller frees.
 */
char *mount_resolve(const char *mountpoint);
/* The device of what is mounted there now: > 0: that device, 0: none. */
int mount_device_at(const char *mountpoint, dev_t *ret, struct error *err);
int brick_mount(const char *device, const char *mountpoint, struct error *err);
int brick_unmount(const char *mountpoint, struct error *err);
int marker_read(const char *root, json_t **ret, struct error *err);
int marker_write(const char *root, const json_t *marker, struct error *err);
int marker_tree_remove(const char *root, const char *id, struct error *err);
