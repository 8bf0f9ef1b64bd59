/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/driver.h"

/* One file each. The table that lists them is table.c. */
extern const struct driver driver_glusterfs, driver_local, driver_nfs;
/* block devices */
extern const struct driver driver_fc, driver_iscsi, driver_iser, driver_nvmeof;
extern const struct driver driver_aoe, driver_drbd, driver_rbd;
