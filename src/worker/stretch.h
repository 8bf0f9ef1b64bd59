/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Blocks of zeros that are not written, so that a sparse file stays sparse where its holes cannot be asked for. */
#define STRETCH_BLOCK 65536

/*
 * The next bytes of data[0…len) from *at on that are to be written: *at and *ret_end are their bounds, multiples of
 * STRETCH_BLOCK (or len). False: only zeros are left.
 */
bool stretch_next(const char *data, size_t len, size_t *at, size_t *ret_end);
