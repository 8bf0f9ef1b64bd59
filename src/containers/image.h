/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/*
 * OCI images, unpacked below a directory of ours (store), each under its digest and once:
 *   STORE/HEX/rootfs       what its layers make
 *   STORE/HEX/image.json   {"digest", "rootfs", "env": ["NAME=VALUE"…]}
 * source is an archive of an OCI layout, or such a layout as a directory, with one image for this
 * machine's architecture. Each blob is read only if it is what its digest says. Whoever is killed
 * leaves STORE/new.*, which the next one removes.
 */
int image_unpack(const char *source, const char *store, json_t **ret, struct error *err);
