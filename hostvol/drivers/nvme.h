/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "block/identity.h"
#include "block/nvme.h"
#include "core/driver.h"

#define NVME_PORTALS_MAX 16
#define NVME_LOSS_DEFAULT "600" /* seconds; the kernel's own, but said, so that it stays so */

/* A connection's parameters, taken apart; borrowed from its attachment. */
struct nvme_target {
	const char *nqn;
	struct nvme_wanted want;
	struct nvme_address portals[NVME_PORTALS_MAX];
	int count;
};

/* ---- nvme_params.c ---- */

extern const struct param nvme_params[];
int nvme_target_read(const struct attachment *a, struct nvme_target *ret, struct error *err);
/* nn-0x…:pn-0x…, as the kernel takes it. Pure. */
int nvme_fc_address_parse(const char *text, char *buf, size_t size, struct error *err);
/* One of HOST, HOST:PORT, [IPV6]:PORT, TRANSPORT://…, "HOST;PORT;TRANSPORT"; fallbacks for what is missing. */
int nvme_portal_parse(const char *text, const char *transport, const char *port,
		      struct nvme_address *ret, struct error *err);

/* ---- nvme_fabric.c ---- */

/*
 * Controllers that this library made bear a mark, RUN/nvme/ID, written before they are made and
 * removed after they are gone: others' are used, and left alone.
 */
int nvme_fabric_connect(const struct call *c, const struct attachment *a,
			const struct nvme_target *t, struct error *err);
/* Deletes those of the subsystem that are ours, unless somebody uses a namespace of it but disk (or force). */
int nvme_fabric_disconnect(const struct call *c, const char *nqn, const char *disk, bool force,
			   struct error *err);
int nvme_fabric_audit(const struct call *c, bool repair, json_t *findings, struct error *err);
