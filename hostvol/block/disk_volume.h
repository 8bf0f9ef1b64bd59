/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/driver.h"
#include "sysfs.h"

/* A volume that is one disk with one way to it: what AoE, DRBD and RBD have in common. */

/* A number of at most max, for the checks of parameters. */
int check_number_to(const char *value, unsigned long max, struct error *err);

/* Sets the path (link, or the disk itself where it is NULL) and detail "device". */
int disk_volume_set_path(struct attachment *a, const struct disk *d, const char *link,
			 struct error *err);
/* -EBUSY while somebody uses it; then, of a volume that was handed out, writes out what is cached. */
int disk_volume_release(const struct call *c, const struct attachment *a, const struct disk *d,
			struct error *err);
/* Adds "paths" and "size" to the result of an extend. */
int disk_volume_report(json_t *result, const struct disk *before, const struct disk *after,
		       struct error *err);
/* Adds the disk (NULL: it is not there), who uses it, and the step that takes it away. */
int disk_volume_plan(const struct call *c, const struct attachment *a, const struct disk *d,
		     const char *step, json_t *result, struct error *err);
