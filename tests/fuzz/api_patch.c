/* SPDX-License-Identifier: Apache-2.0 */
#include "api/patch.h"
#include "api/store.h"
#include "base/mem.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const types[] = { PATCH_MERGE, PATCH_JSON, PATCH_STRATEGIC, PATCH_APPLY, NULL };

static struct store *open_store(void)
{
	const struct store_options options = { .path = ":memory:" };
	const struct store_write w = { .kind = &KIND_STORAGENODE,
				       .ns = "default",
				       .manager = "first" };
	json_t *node =
		json_pack("{s:{s:s}, s:{s:s, s:[s], s:{s:s}}}", "metadata", "name", "n", "spec",
			  "type", "glusterfs", "devices", "/dev/vdb", "glusterfs", "cluster", "c");
	struct store *s;

	if (store_open(&options, &s, NULL) < 0 || store_bootstrap(s, NULL) < 0 ||
	    store_create(s, &w, node, NULL, NULL) < 0)
		abort();
	json_decref(node);
	return s;
}

/* Through the store: whatever the patch, what comes out is a StorageNode of that name, or nothing. */
static void patch_stored(const json_t *patch)
{
	static struct store *s;

	if (!s)
		s = open_store();
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		const struct store_write w = { .kind = &KIND_STORAGENODE,
					       .ns = "default",
					       .name = "n",
					       .manager = "fuzz",
					       .force = true,
					       .dry_run = true,
					       .patch_type = types[i] };
		json_t *result = NULL;
		int rc = store_patch(s, &w, patch, &result, NULL);

		if (rc >= 0 && !streq(jstr(result, "metadata", "name"), "n"))
			abort();
		json_decref(result);
	}
}

/* The input is JSON: [object, patch]. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kind *const some[] = { &KIND_CONFIGMAP, &KIND_PVC, &KIND_STORAGENODE };
	cleanup_json json_t *both = NULL;
	const json_t *patch;

	if (json_parse((const char *)data, size, &both, NULL) < 0 || json_array_size(both) != 2)
		return 0;
	patch = json_array_get(both, 1);
	for (size_t k = 0; k < ARRAY_SIZE(some); k++) {
		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			json_t *result = NULL;

			if (patch_object(some[k], json_array_get(both, 0), patch, types[i], &result,
					 NULL) >= 0 &&
			    !json_is_object(result))
				abort();
			json_decref(result);
		}
	}
	patch_stored(patch);
	return 0;
}
