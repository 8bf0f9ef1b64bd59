/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "operator/op.h"

/*
 * What a claim's volume is to begin with: the data of another claim's volume (a clone) or of a
 * snapshot. Both are verified from both ends by what the API itself says, since a claim's or a
 * snapshot's author could name a volume of somebody else's.
 */
struct source {
	struct handle handle; /* of the volume or the snapshot; a copy is made in the same pool */
	int64_t bytes; /* a copy is at least that large */
	char *why; /* SOURCE_WAITS and SOURCE_OTHERS: a sentence */
};

enum source_state {
	SOURCE_NONE, /* the claim asks for an empty volume */
	SOURCE_THERE,
	SOURCE_WAITS, /* not there (yet), or not to be had */
	SOURCE_OTHERS, /* of a kind that a volume populator serves */
};

/* An enum source_state, or -errno in r->error. kind: of the volume to be made. */
int source_find(struct reconcile *r, const json_t *claim, enum volume_kind kind,
		struct source *ret);
void source_done(struct source *s);

/* The claim's dataSourceRef or dataSource, or NULL. */
const json_t *source_ref(const json_t *claim);
/* Whether that names a claim (clone) or a VolumeSnapshot of the namespace. */
bool source_is_claim(const json_t *ref);
bool source_is_snapshot(const json_t *ref);
/* Whether a claim still needs its source: it has no volume yet, and nothing of it is to be undone. */
bool source_needed(const json_t *claim);

/*
 * A claim that is being cloned must not lose its volume: it is held by a finalizer, from before the
 * first copy until no claim needs it any more.
 */
#define SOURCE_FINALIZER "provisioner.storage.kubernetes.io/cloning-protection"
int source_hold(struct reconcile *r, const json_t *claim);
/* For the claim itself: drops the finalizer when nothing needs it. */
int source_release(struct reconcile *r, const json_t *claim);
