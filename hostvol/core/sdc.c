/* SPDX-License-Identifier: Apache-2.0 */
#include "sdc.h"

#include <errno.h>
#include <stdio.h>

#define SDC_GET_GUID 0x610e /* _IO('a', 14) */

int sdc_guid(const struct hostvol_host *host, int timeout_ms, char ret[static SDC_GUID_MAX],
	     struct error *err)
{
	/* a return code of 8 bytes, the GUID, and 8 bytes that newer drivers fill in */
	unsigned char buf[32] = { 0 }, *g = buf + 8, any = 0;
	int r = host->control_device(host, SDC_DEVICE, SDC_GET_GUID, buf, sizeof(buf), timeout_ms);

	if (r < 0)
		return error_errno(err, -r,
				   "cannot ask " SDC_DEVICE " for this host's GUID (is the "
				   "ScaleIO client installed?)");
	for (int i = 0; i < 16; i++)
		any |= g[i];
	if (!any)
		return error_set(err, ENXIO, SDC_DEVICE " gives no GUID (code %u)", buf[0]);
	snprintf(ret, SDC_GUID_MAX,
		 "%02X%02X%02X%02X-%02X%02X-%02X%02X-%02X%02X-%02X%02X%02X%02X%02X%02X", g[0], g[1],
		 g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12], g[13], g[14],
		 g[15]);
	return 0;
}
