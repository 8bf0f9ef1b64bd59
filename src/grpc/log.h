/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"

#include <protobuf-c/protobuf-c.h>

/*
 * Adds " name=value" for those fields of a request that a log may show: ids, names, paths, sizes
 * (the list is in log.c). What is not on the list is left out, so secrets and contexts are, and
 * whatever a later version of an interface adds.
 */
void request_text(const ProtobufCMessage *request, struct buf *out);
