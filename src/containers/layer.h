/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stddef.h>

/*
 * Archives of OCI images, read with libarchive: tar alone, plain or packed with gzip or zstd. What
 * else libarchive knows is not switched on: some of it starts programs.
 */

/* The text of a member, at most limit bytes; -ENOENT. The caller frees. */
int archive_member(const char *path, const char *name, size_t limit, char **ret, size_t *ret_len,
		   struct error *err);
/*
 * The members of an archive that belong to an OCI layout (oci-layout, index.json, blobs/sha256/…), as
 * plain files of that directory, which is made; all else in it is passed over.
 */
int archive_unpack_layout(const char *path, const char *dir, struct error *err);

/*
 * Puts layers, lowest first, one upon the other into the directory root: whiteouts of a layer take
 * away what layers below it have, whatever stands in it itself. Every name is looked up in a
 * process whose root is that directory, so none leads out of it, by "..", by a link of this layer
 * or by one of a layer below.
 */
int layers_apply(const int *layers, size_t count, const char *root, int timeout_ms,
		 struct error *err);
