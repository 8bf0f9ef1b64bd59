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

/* The machine's own: what node_host_real uses. */
void device_probe(const char *device, struct device_facts *ret);
void directory_probe(const char *directory, struct device_facts *ret);
int device_find(const char *uuid, char device[static DEVICE_PATH_MAX], struct error *err);
int device_format(const char *device, const char *uuid, const char *label, bool overwrite,
		  struct error *err);
int device_wipe(const char *device, const char *uuid, struct error *err);
