/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "host.h"

/* The block devices of this machine: host_real's part of the same names (host.h). */
int block_write_kernel(const struct hostvol_host *host, const char *path, const char *text,
		       int timeout_ms);
int block_inquiry(const struct hostvol_host *host, const char *device, unsigned page,
		  unsigned char *buf, size_t size, int timeout_ms);
int block_nvme_identify(const struct hostvol_host *host, const char *device, unsigned cns,
			unsigned char *buf, int timeout_ms);
int block_ata_identify(const struct hostvol_host *host, const char *device, unsigned char *buf,
		       int timeout_ms);
int block_claim(const struct hostvol_host *host, const char *device);
int block_flush(const struct hostvol_host *host, const char *device, int timeout_ms);
int block_writers(const struct hostvol_host *host, unsigned major, unsigned minor, char *buf,
		  size_t size);
int block_events_open(const struct hostvol_host *host);
int block_events_wait(const struct hostvol_host *host, int fd, int timeout_ms);
int block_multipathd(const struct hostvol_host *host, const char *command, char *reply, size_t size,
		     int timeout_ms);
int block_fabrics(const struct hostvol_host *host, const char *options, char *reply, size_t size,
		  int timeout_ms);
int block_aoe(const struct hostvol_host *host, const char *order, const char *device,
	      int timeout_ms);
int block_rbd_add(const struct hostvol_host *host, const char *path, const char *text,
		  const unsigned char *secret, size_t secret_len, int timeout_ms);
/* A connection to multipathd's control socket; -errno. */
int multipathd_connect(void);
