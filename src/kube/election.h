/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/kube.h"

/*
 * Taking part in an election, one step at a time: lease.c calls it from a thread, the simulation
 * from its schedule. Zero-initialise and fill in the first part; clock is that of the kube.
 *
 * Clocks of machines differ, so another's lease is taken only after it has not changed for its
 * duration on our own monotonic clock.
 */
struct election {
	struct kube *kube;
	const char *ns, *name, *identity;
	int duration_s;

	int64_t renewed_ms; /* monotonic, when the renewal that went through was begun; 0: not held */
	int64_t epoch;
	char *seen;         /* "holder renewTime" */
	int64_t seen_ms;
	json_t *last;       /* as our last write left it: renewed without being read again */
};

/* Takes or renews the lease where that is due; reads it first unless it is ours. */
int election_step(struct election *e, struct error *err);
/* Held with certainty at this monotonic time. */
bool election_held(const struct election *e, int64_t mono_ms);
/* How long to wait for the next step, after one that returned rc. */
int64_t election_wait_ms(const struct election *e, int rc, int64_t mono_ms);
/* Gives the lease back, so that nobody has to wait for its end. */
void election_give_up(struct election *e);
void election_done(struct election *e);
