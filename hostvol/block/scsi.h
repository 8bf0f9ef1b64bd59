/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sysfs.h"

/* Where the kernel has a logical unit. */
struct scsi_address {
	unsigned host, channel, target;
	uint64_t lun; /* as the kernel numbers them */
};

/* LUN as text for an addressing mode ("", "SAM", "SAM2", "SAM3-flat", "transparent") to the kernel's number. */
int scsi_lun(const char *text, const char *mode, uint64_t *ret, struct error *err);
/* The disk at the address: 1, or 0 where there is none. */
int scsi_find(const struct call *c, const struct scsi_address *at, char name[static DISK_NAME_MAX]);
/* Asks the host adapter for just this unit. That it succeeds does not mean that there is one. */
int scsi_scan(const struct call *c, const struct scsi_address *at, struct error *err);
/*
 * Whether the kernel's notion of the disk (cached when it was found) is of what is there now: a
 * LUN that was given to another volume keeps the old one's size and name until it is removed.
 */
int scsi_is_stale(const struct call *c, const char *name, struct error *err);
/* Removes a disk that nobody uses; force: or that somebody uses. Waits until it is gone. */
int scsi_remove(const struct call *c, const char *name, bool force, struct error *err);
/* Asks the disk for its size again. */
int scsi_rescan(const struct call *c, const char *name, struct error *err);
