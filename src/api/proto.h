/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/*
 * kubectl sends the few kinds that it makes itself (create namespace, configmap, secret; auth
 * can-i) as Kubernetes' protobuf, whatever the server prefers. This reads just those, as JSON.
 * -ENOTSUP for any other kind; -EINVAL for what is malformed.
 */
int proto_parse(const void *data, size_t len, json_t **ret, struct error *err);
