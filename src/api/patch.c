/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch.h"
#include "base/mem.h"

#include <errno.h>

static bool is_type(const char *given, const char *type)
{
	size_t len = strlen(type);

	return given && strncmp(given, type, len) == 0 && strchr("; \t", given[len]);
}

bool patch_is_apply(const char *type)
{
	return is_type(type, PATCH_APPLY);
}

json_t *patch_merge(json_t *target, const json_t *patch)
{
	const char *key;
	json_t *value;

	if (!json_is_object(patch))
		return json_deep_copy(patch);
	target = json_is_object(target) ? json_incref(target) : json_object();
	json_object_foreach ((json_t *)patch, key, value) {
		if (json_is_null(value))
			json_object_del(target, key);
		else
			json_object_set_new(target, key,
					    patch_merge(json_object_get(target, key), value));
	}
	return target;
}

int patch_object(const struct kind *kind, const json_t *object, const json_t *patch,
		 const char *type, json_t **ret, struct error *err)
{
	cleanup_json json_t *next = json_deep_copy(object);
	bool json = type ? is_type(type, PATCH_JSON) : json_is_array(patch);
	bool strategic = is_type(type, PATCH_STRATEGIC) && !kind->custom;
	int rc = 0;

	if (type && !json && !strategic && !is_type(type, PATCH_MERGE))
		return error_set(
			err, ENOTSUP,
			"the body of the request was in an unknown format - accepted media types "
			"include: " PATCH_JSON ", " PATCH_MERGE ", %s" PATCH_APPLY,
			kind->custom ? "" : PATCH_STRATEGIC ", ");
	if (!json && !json_is_object(patch))
		return error_set(err, EINVAL, "the patch must be an object");
	if (json)
		rc = patch_json(&next, patch, err);
	else if (strategic)
		rc = patch_strategic(kind, next, patch, err);
	else
		json_decref(patch_merge(next, patch)); /* an object is changed in place */
	if (rc < 0)
		return rc;
	if (!json_is_object(next))
		return error_set(err, ERANGE, "the patch leaves no object");
	*ret = TAKE_PTR(next);
	return 0;
}
