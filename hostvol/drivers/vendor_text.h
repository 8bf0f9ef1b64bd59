/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* What vendors' programs print, read without trusting it. Pure functions. */

/* "ret_code=0", "dev_addr=/dev/vdb", "ret_desc=…", a line each, in any order. */
struct sds_output {
	long code;
	char device[256]; /* "" where there is none */
	char words[200]; /* what it says of the code, or "" */
};
/* -EBADMSG: without a ret_code that is a number, or with a device that is no path below /dev. */
int sds_output_read(const char *text, struct sds_output *ret, struct error *err);

/* The next word, as vgc-cluster domain-list -1 prints one a line; NULL at the end. */
const char *next_word(const char **text, size_t *ret_len);
