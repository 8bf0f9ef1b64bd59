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
	MUTANT_COUNT,
};
extern const char *const mutant_names[MUTANT_COUNT];

struct kind;
struct kube;
/* Changes a patch on its way to the API. */
void mutate_patch(enum mutant m, const struct kind *kind, json_t *patch);
/* Before the second half of a volume's making; true: it is left out. made: the first half was made in this life. */
bool mutate_complete(enum mutant m, struct kube *api, const char *volume, bool made);
