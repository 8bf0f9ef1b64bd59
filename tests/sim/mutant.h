/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

/*
 * Mistakes that the loops do not make, made here on their behalf: between a loop and the world,
 * so that the product has no switch for them. Each must be caught, or the simulation is blind.
 */
enum mutant {
	MUTANT_NONE,
	MUTANT_NO_POOL_ANNOTATION, /* a claim's pool and finalizer are not written before the directory is made */
	MUTANT_INEXACT_HEAL,       /* copies are given up on the word of the index */
	MUTANT_NO_LEASE,           /* operators do not ask whether they lead */
	/* of volumes that are made in two halves */
	MUTANT_EARLY_END,          /* a claim is let go of before the second half */
	MUTANT_FORGOTTEN_HALF,     /* the second half is left out by who did not make the first in this life */
	MUTANT_DELETED_HALF,       /* the second half is left out for a claim that is being deleted */
	/* of machines and disks */
	MUTANT_FORCED_BRICK,       /* gluster is told to use a brick that nobody looked for */
	MUTANT_COLD_CACHE,         /* a brick is looked up in a cache that is not filled yet */
	MUTANT_ALL_WHOLE,          /* every copy that serves is taken for whole */
	MUTANT_NAMES_ALONE,        /* pools and volumes go by names, which are given again */
	MUTANT_BLIND_WIPE,         /* what is wiped is not compared with the bricks on record */
	MUTANT_SAME_PLACE,         /* a disk that took a brick's place is not noticed */
	MUTANT_COUNT,
};
extern const char *const mutant_names[MUTANT_COUNT];

struct kind;
struct kube;
/* Changes a patch on its way to the API; agent: it is one that sends it. */
void mutate_patch(enum mutant m, const struct kind *kind, bool agent, json_t *patch);
/* Before the second half of a volume's making; true: it is left out. made: the first half was made in this life. */
bool mutate_complete(enum mutant m, struct kube *api, const char *volume, bool made);
