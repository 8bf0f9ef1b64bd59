/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stddef.h>

/* Writes a gzip-compressed tar archive (ustar), readable by the owner only. */
struct tar;
int tar_create(const char *path, struct tar **ret, struct error *err);
/* name: at most 100 bytes, or 255 with a "/" at a place where it can be split; -ENAMETOOLONG otherwise. */
int tar_add(struct tar *t, const char *name, const void *data, size_t len, struct error *err);
/* Ends the archive and frees t; it is complete only where this returns 0. */
int tar_close(struct tar *t, struct error *err);
