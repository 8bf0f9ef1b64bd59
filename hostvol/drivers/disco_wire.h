/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* What goes over the wire to a DISCO client: numbers in network order. */
#define DISCO_REQUEST_LEN 26
#define DISCO_REPLY_LEN 4

enum disco_op { DISCO_ATTACH = 1, DISCO_DETACH = 2 };

void disco_request(unsigned char ret[static DISCO_REQUEST_LEN], enum disco_op op, uint64_t volume);
/* 0: done; -EIO: it said no, with its code; -EBADMSG: not a reply. */
int disco_reply(const unsigned char *data, size_t len, struct error *err);
