/* SPDX-License-Identifier: Apache-2.0 */
#include "mutant.h"

#include "base/json.h"
#include "base/mem.h"
#include "kube/kube.h"
#include "schema/schema.h"

const char *const mutant_names[MUTANT_COUNT] = {
	[MUTANT_NONE] = "none",
	[MUTANT_NO_POOL_ANNOTATION] = "no pool annotation",
	[MUTANT_INEXACT_HEAL] = "inexact heal",
	[MUTANT_NO_LEASE] = "no lease",
	[MUTANT_EARLY_END] = "claim let go of before the second half",
	[MUTANT_FORGOTTEN_HALF] = "second half forgotten by a restart",
	[MUTANT_DELETED_HALF] = "no second half for a claim that goes",
};

void mutate_patch(enum mutant m, const struct kind *kind, json_t *patch)
{
	json_t *metadata = jget(patch, "metadata");

	if (m == MUTANT_NO_POOL_ANNOTATION && kind == &KIND_PVC &&
	    json_object_del(jget(metadata, "annotations"), "quartermaster.storage/pool") == 0)
		json_object_del(metadata, "finalizers");
}

/* The claim of a volume, with our finalizer or without; NULL: it is gone. New reference. */
static json_t *claim_of(struct kube *api, const char *volume)
{
	cleanup_json json_t *pv = NULL;
	json_t *claim = NULL;

	if (kube_get(api, &KIND_PV, NULL, volume, &pv, NULL) == 0)
		kube_get(api, &KIND_PVC, jstr(pv, "spec", "claimRef", "namespace"),
			 jstr(pv, "spec", "claimRef", "name"), &claim, NULL);
	return claim;
}

bool mutate_complete(enum mutant m, struct kube *api, const char *volume, bool made)
{
	cleanup_json json_t *claim = NULL;

	if (m == MUTANT_FORGOTTEN_HALF)
		return !made;
	if (m != MUTANT_EARLY_END && m != MUTANT_DELETED_HALF)
		return false;
	claim = claim_of(api, volume);
	if (m == MUTANT_DELETED_HALF)
		return object_deleting(claim);
	if (claim && object_remove_finalizer(claim, "quartermaster.storage/provision"))
		kube_update(api, &KIND_PVC, claim, NULL, NULL);
	return false;
}
