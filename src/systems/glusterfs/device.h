/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "systems/glusterfs/host.h"

/*
 * What may become a brick. Looking (device_probe, directory_probe) never writes; judging is pure.
 */
#define DEVICE_SIZE_MIN (1LL << 30)

struct device_verdict {
	const char *state; /* "Available", "Ready", "Refused", "Missing", "Failed" */
	const char *reason; /* "" for Available and Ready */
	char message[400]; /* what is wrong, and what to do */
};

/* Could this be formatted (or a directory be used)? wipe: the spec allows to erase what is on it. */
void device_judge(const char *source, const struct device_facts *facts, bool wipe,
		  struct device_verdict *ret);

/* Are these two the same device or directory, whatever their names? */
bool device_same(const struct device_facts *a, const struct device_facts *b);
/* Is `a` the device `b`, or a partition of it? */
bool device_in(const struct device_facts *a, const struct device_facts *b);
/* Is a device still the one that was seen, with nothing else on it than was seen? */
bool device_unchanged(const struct device_facts *seen, const struct device_facts *now);

/* The machine's own: what node_host_real uses. */
void device_probe(const char *device, struct device_facts *ret);
void directory_probe(const char *directory, struct device_facts *ret);
int device_find(const struct disk_wanted *wanted, char device[static DEVICE_PATH_MAX],
		struct error *err);
/* The same with another sysfs and another look, for tests. */
int device_find_in(const char *sysfs, void (*probe)(const char *device, struct device_facts *ret),
		   const struct disk_wanted *wanted, char device[static DEVICE_PATH_MAX],
		   struct error *err);
/* Is another device made of the one that has this name in sysfs? */
bool device_held(const char *sysfs, const char *name);
/* Says of which disk a device is a partition; false: of none. */
bool device_part_of(const char *sysfs, struct device_facts *f);
/*
 * Whether a device that is named by its number is no more; what was mounted from it may still be
 * there.
 */
bool device_gone(unsigned major, unsigned minor);
int device_format(const char *device, const struct device_facts *seen, const char *uuid,
		  const char *label, struct error *err);
int device_wipe(const char *device, const char *uuid, struct error *err);
