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
	[MUTANT_FORCED_BRICK] = "brick forced where nothing is mounted",
	[MUTANT_COLD_CACHE] = "brick looked up in a cold cache",
	[MUTANT_ALL_WHOLE] = "all copies taken for whole",
	[MUTANT_NAMES_ALONE] = "pools by their names alone",
	[MUTANT_BLIND_WIPE] = "wiped without a look at the records",
	[MUTANT_SAME_PLACE] = "replaced disk not noticed",
};

static void drop_each(json_t *list, const char *key)
{
	json_t *o;
	size_t i;

	json_array_foreach (list, i, o)
		json_object_del(o, key);
}

/*
 * No uid, nor what else says which object is meant, and no memory of the numbers that were given.
 */
static void names_alone(const struct kind *kind, bool agent, json_t *patch)
{
	if (kind == &KIND_STORAGESTATUS)
		json_object_del(jget(patch, "status"), "lastPoolNumber");
	if (kind == &KIND_STORAGENODE) {
		drop_each(jget(patch, "status", "plan", "bricks"), "poolUid");
		drop_each(jget(patch, "status", "agent", "bricks"), "poolUid");
		json_object_del(jget(patch, "status", "plan"), "releasePools");
	}
	if (agent) {
		json_object_del(jget(patch, "metadata"), "uid");
		json_object_del(jget(patch, "metadata"), "resourceVersion");
	}
}

/* A disk whose place another one has is reported like one that is away. */
static void same_place(json_t *patch)
{
	json_t *d;
	size_t i;

	drop_each(jget(patch, "status", "agent", "devices"), "lost");
	json_array_foreach (jget(patch, "status", "agent", "devices"), i, d)
		if (streq(jstr(d, "reason"), "Replaced"))
			json_object_set_new(d, "reason", json_string("NotFound"));
}

void mutate_patch(enum mutant m, const struct kind *kind, bool agent, json_t *patch)
{
	json_t *metadata = jget(patch, "metadata");

	if (m == MUTANT_NO_POOL_ANNOTATION && kind == &KIND_PVC &&
	    json_object_del(jget(metadata, "annotations"), "quartermaster.storage/pool") == 0)
		json_object_del(metadata, "finalizers");
	if (m == MUTANT_NAMES_ALONE)
		names_alone(kind, agent, patch);
	if (m == MUTANT_SAME_PLACE && kind == &KIND_STORAGENODE)
		same_place(patch);
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
