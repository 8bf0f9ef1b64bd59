/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/driver.h"

/* One file each. The table that lists them is table.c. */
extern const struct driver driver_glusterfs, driver_local, driver_nfs;
/* block devices */
extern const struct driver driver_aoe, driver_drbd, driver_fc, driver_iscsi, driver_iser,
	driver_nvmeof, driver_rbd;
extern const struct driver driver_disco, driver_gpfs, driver_hgst, driver_huawei, driver_quobyte,
	driver_scaleio, driver_scality, driver_smb, driver_vzstorage;

/* Of a number: a TCP port. */
int check_port(const char *value, struct error *err);
