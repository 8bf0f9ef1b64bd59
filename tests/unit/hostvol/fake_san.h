/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rig.h"

/*
 * An iSCSI target beside a fake host: a sysfs tree below the rig's directory, which iscsiadm, scans
 * and removals change as the kernel's would. All state is in that tree, so that a process which
 * dies leaves it as it is. One portal, one session, LUNs 0 to 9.
 */
struct san {
	struct fake *fake;
	char root[200];
	int flush_ms; /* how long it takes to write a disk out */
	int removal_ms; /* and for a disk to go */
	int removals; /* how many were told to go */
};

#define SAN_IQN "iqn.2026-01.net.example:t"

/* Makes the rig's host one that has the target. */
void san_setup(struct rig *rig, struct san *san);
/* What volume a LUN is from now on (its serial number); "" for none. */
void san_export(const struct san *san, unsigned lun, const char *serial);
/* Whether somebody has the LUN's disk mounted. */
void san_set_busy(const struct san *san, unsigned lun, bool busy);
/* All that a reboot takes: sessions, disks, and the volatile directory. Records stay. */
void san_reboot(const struct rig *rig, const struct san *san);
int san_sessions(const struct san *san);
int san_disks(const struct san *san);
int san_node_records(const struct san *san);
