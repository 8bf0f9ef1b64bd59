/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"
#include "sysfs.h"

/* Who uses a disk: file systems, other devices on top of it, programs. */

/*
 * An array of words for people: "mounted at /mnt", "held by dm-3 (crypt-x)", "opened for writing by
 * qemu (71)", "claimed"; empty where nobody does. ignore: a device on top that is none of these (a
 * path's map), or NULL.
 */
int usage_list(const struct call *c, const struct disk *d, const char *ignore, json_t **ret,
	       struct error *err);
/* -EBUSY and who uses it. */
int usage_refuse(const struct call *c, const struct disk *d, const char *ignore, struct error *err);
/*
 * Writes out what is cached of it. That may take long: a quarter of the call's time is left over for
 * the steps that follow, so that a slow one ends before any of them is begun, not in their middle.
 */
int disk_flush(const struct call *c, const struct disk *d, struct error *err);
