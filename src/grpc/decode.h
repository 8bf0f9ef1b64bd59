/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "grpc/arena.h"
#include "grpc/grpc.h"

#define DECODE_DEPTH_MAX 16 /* messages in messages; CSI has at most 5 */
#define DECODE_MEMORY_MAX (16UL * 1024 * 1024) /* that one message may take up in memory */

/*
 * Whether the bytes are a message of that type whose text is UTF-8 without NUL (protobuf-c checks
 * neither, and gives text as C strings: what is behind a NUL would be lost) and whose messages in
 * messages are not too deep for a thread's stack. Returns 0 or -EBADMSG.
 */
int message_check(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
		  struct error *err);
/*
 * Checks and unpacks, into the arena: -EBADMSG, or -ENOSPC where it would take more than
 * DECODE_MEMORY_MAX (a few bytes can mean many: empty messages in a list).
 */
int message_decode(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len,
		   struct arena *arena, ProtobufCMessage **ret, struct error *err);
