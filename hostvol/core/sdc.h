/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/host.h"

/* The kernel driver of ScaleIO: through it this host is known to the gateway. */
#define SDC_DEVICE "/dev/scini"
#define SDC_GUID_MAX 37

/*
 * This host's GUID as the gateway spells it. -ENOENT: there is no such driver here; -ENXIO: it has
 * no GUID (yet).
 */
int sdc_guid(const struct hostvol_host *host, int timeout_ms, char ret[static SDC_GUID_MAX],
	     struct error *err);
