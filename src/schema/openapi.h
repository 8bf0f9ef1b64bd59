/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "schema/schema.h"

/* The OpenAPI document's two halves. */

#define OPENAPI_NAME_MAX 200
#define META_SCHEMA "io.k8s.apimachinery.pkg.apis.meta.v1."
/* "com.coreos.v1.StorageNode", "io.k8s.api.core.v1.Secret": the name of a kind's schema. */
const char *openapi_name(const struct kind *k, char buf[static OPENAPI_NAME_MAX]);
/* {"$ref": "#/components/schemas/NAME"} */
json_t *openapi_ref(const char *name, const char *suffix);
json_t *openapi_gvk(const struct kind *k);
/* Adds what the API serves for a kind. */
void openapi_add_paths(json_t *paths, const struct kind *k);
