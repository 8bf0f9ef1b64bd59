/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "events.h"
#include "identity.h"
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
/*
 * Asks the host adapter for just this unit, and waits for its disk. That the kernel could scan does
 * not mean that there is a unit: -ENOENT.
 */
int scsi_scan(const struct call *c, const struct scsi_address *at, char name[static DISK_NAME_MAX],
	      struct error *err);
/*
 * Whether the kernel's notion of the disk (cached when it was found) is of another volume than what
 * answers now: a LUN that was given to another volume keeps the old one's size until it is removed.
 */
bool scsi_is_stale(const struct call *c, const char *name, const struct identity *live);
enum scsi_removal {
	SCSI_CAREFUL, /* -EBUSY while somebody uses it, -EIO where data cannot be written out */
	SCSI_LOOKED_AT, /* as that, when the caller has just seen that nobody uses it */
	SCSI_WRITTEN, /* looked at, and written out through its map: a dead path is as good as any */
	SCSI_UNDO, /* of a connect that failed: nobody wrote to it, but in use is in use */
	SCSI_FORCE, /* whoever uses it gets errors */
};
/* Removes a disk, and waits until it is gone. */
int scsi_remove(const struct call *c, const char *name, enum scsi_removal how, struct error *err);
/* Asks the disk for its size again. */
int scsi_rescan(const struct call *c, const char *name, struct error *err);
