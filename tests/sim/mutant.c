/* SPDX-License-Identifier: Apache-2.0 */
#include "mutant.h"

#include "base/json.h"
#include "schema/schema.h"

const char *const mutant_names[MUTANT_COUNT] = {
	[MUTANT_NONE] = "none",
	[MUTANT_NO_POOL_ANNOTATION] = "no pool annotation",
	[MUTANT_INEXACT_HEAL] = "inexact heal",
	[MUTANT_NO_LEASE] = "no lease",
};

void mutate_patch(enum mutant m, const struct kind *kind, json_t *patch)
{
	json_t *metadata = jget(patch, "metadata");

	if (m == MUTANT_NO_POOL_ANNOTATION && kind == &KIND_PVC) {
		json_object_del(jget(metadata, "annotations"), "quartermaster.storage/pool");
		json_object_del(metadata, "finalizers");
	}
}
