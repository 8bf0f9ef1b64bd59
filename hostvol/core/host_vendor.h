/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "host.h"

/* Operations of host_real; struct hostvol_host says what each does. */
int vendor_control_device(const struct hostvol_host *host, const char *path, unsigned request,
			  void *buf, size_t size, int timeout_ms);
int vendor_device_in_use(const struct hostvol_host *host, const char *path, int timeout_ms);
int vendor_find_name(const struct hostvol_host *host, const char *dir, const char *prefix,
		     const char *suffix, char *name, size_t size);
int vendor_exchange(const struct hostvol_host *host, const char *address, unsigned port,
		    const void *request, size_t request_len, void *reply, size_t reply_len,
		    int timeout_ms);
bool vendor_has_address(const struct hostvol_host *host, const char *address);
