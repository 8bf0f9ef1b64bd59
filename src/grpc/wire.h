/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/str.h"
#include "grpc/grpc.h"

/* What gRPC puts around a message: its frame, and header fields with an encoding of their own. */

#define GRPC_FRAME_HEAD 5 /* whether it is compressed, and its length */
#define GRPC_MESSAGE_MAX (4 * 1024 * 1024) /* what peers take where nothing else was agreed */

/* Puts the head of a frame of len bytes there. */
void frame_head(uint8_t head[static GRPC_FRAME_HEAD], size_t len);
/*
 * The one message of a body, which it points into. encoding is the header field grpc-encoding, or
 * NULL. A message that is compressed is UNIMPLEMENTED, one of more than max bytes
 * RESOURCE_EXHAUSTED; less than one message, or more, is INTERNAL, as elsewhere.
 */
enum grpc_code frame_read(const void *body, size_t len, const char *encoding, size_t max,
			  const uint8_t **ret, size_t *ret_len, struct error *err);

/* grpc-message: bytes that are not printable ASCII, '%' and blanks at its ends, as %XX; what is
 * not UTF-8 as '?'. */
char *percent_encode(const char *text);
/* What is not %XX stays as it is; a NUL byte becomes '?'. */
char *percent_decode(const char *text);

/* grpc-timeout: at most eight digits and one of HMSmun. In ms, rounded up; -EINVAL. */
int timeout_parse(const char *text, int64_t *ret_ms);
#define TIMEOUT_TEXT_MAX 16
const char *timeout_format(int ms, char text[static TIMEOUT_TEXT_MAX]);

/* application/grpc, also with +proto, also with parameters. */
bool content_type_is_grpc(const char *type);
