/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "schema/schema.h"

#define PATCH_JSON "application/json-patch+json"
#define PATCH_MERGE "application/merge-patch+json"
#define PATCH_STRATEGIC "application/strategic-merge-patch+json"
#define PATCH_APPLY "application/apply-patch+yaml"

/*
 * A copy of object with the patch applied. type is a content type (parameters are ignored); NULL:
 * a JSON patch where patch is an array, else a merge patch. -ENOTSUP: not a type for this kind;
 * -EINVAL: the patch is malformed; -ERANGE: it does not fit the object.
 */
int patch_object(const struct kind *kind, const json_t *object, const json_t *patch,
		 const char *type, json_t **ret, struct error *err);
bool patch_is_apply(const char *type);

/* RFC 7386; changes target, gives the result (a new reference, often target itself). */
json_t *patch_merge(json_t *target, const json_t *patch);
/* RFC 6902; changes *document. */
int patch_json(json_t **document, const json_t *patch, struct error *err);
/* Kubernetes' strategic merge; changes object. */
int patch_strategic(const struct kind *kind, json_t *object, const json_t *patch,
		    struct error *err);
