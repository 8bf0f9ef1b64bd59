/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "clients/protocols.h"

/*
 * What a client's container is made from, as the OCI runtime specification has it. settings: see
 * local/client.h. The root is the image's, read-only; what is to be written lies in memory, and what
 * is ours, qm-client, is brought in from outside.
 */
int bundle_write(const struct client_protocol *p, const json_t *settings, const char *id,
		 const char *dir, struct error *err);

/* What the client tells as its image: "ARCHIVE@DIGEST". Caller frees. */
char *bundle_image(const json_t *settings);
