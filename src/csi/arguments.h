/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/volumes.h"
#include "proto/csi.pb-c.h"

/*
 * What the arguments of CSI calls may be. All return 0, or -errno (grpc_code_of) and a sentence
 * that names the argument.
 */

/* A name or an id: not empty, text without control characters. what: "name", "volume_id". */
int argument_text(const char *text, const char *what, struct error *err);

/* Bytes that are wanted and the limit; 0 where not stated. NULL: neither is. */
int argument_capacity(const Csi__V1__CapacityRange *range, int64_t *ret_bytes, int64_t *ret_limit,
		      struct error *err);

struct parameter {
	const char *key, *value;
};
/*
 * The kind of volume that offers all these capabilities, and the pool, as the parameters say.
 * Parameters with a / in their name are the orchestrator's own.
 */
int argument_kind(Csi__V1__VolumeCapability *const *capabilities, size_t count,
		  const struct parameter *parameters, size_t parameter_count,
		  struct volume_request *ret, struct error *err);
/* Whether a volume of that kind can be used like that: -EINVAL and why not. */
int argument_capability(enum volume_kind kind, const Csi__V1__VolumeCapability *capability,
			struct error *err);
