/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"
#include "kube/controller.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What is promised of each pool: the sizes of volumes, of snapshots, and of claims for which a pool was
 * chosen but whose volume is not made yet. Memory only, rebuilt from the API once in each term as leader;
 * in between, a reservation counts from the moment it is made, so that claims in work at the same
 * time do not promise the same bytes twice. Thread-safe.
 */
struct ledger *ledger_new(void);
void ledger_free(struct ledger *l);

/*
 * Reads what is promised from the API, unless that was done in this epoch. Before anything else.
 * 1: not ready yet (another thread reads); the key comes again soon.
 */
int ledger_load(struct ledger *l, struct reconcile *r, int64_t epoch);
/* Whether that has been done, in any epoch; what is set before is not kept. */
bool ledger_loaded(struct ledger *l);

/* A volume (or a claim's choice) as the API has it. claim: "namespace/name" or NULL. */
void ledger_set(struct ledger *l, const char *volume, const char *pool, int64_t bytes,
		const char *claim);
void ledger_drop(struct ledger *l, const char *volume);
/* The claim is gone: drops what was reserved for it and did not become a volume. */
void ledger_drop_claim(struct ledger *l, const char *claim);
/* One that was reserved for it and did not become a volume, and its pool; false: there is none. Caller frees. */
bool ledger_unmade(struct ledger *l, const char *claim, char **ret_volume, char **ret_pool);
/* It has become a volume: dropped with that only. */
void ledger_made(struct ledger *l, const char *volume);

/* It is a file or a device, which its user holds locked and open (see may_interrupt). */
void ledger_device(struct ledger *l, const char *volume);
/* How many of those live in the pool. */
int ledger_devices(struct ledger *l, const char *pool);
/* The claim ("namespace/name") that waits for the volume; NULL: none does, or it has become one. Caller frees. */
char *ledger_claim(struct ledger *l, const char *volume);

struct ledger_offer {
	const char *pool;
	int64_t limit; /* bytes that may be promised of it in total */
};
/*
 * Chooses the pool with the most bytes left and promises them. Gives the pool (caller frees): the
 * one chosen earlier where that has become a volume, or is offered and was of as many bytes, else what was
 * promised then is given back, as is what another volume of that claim was promised that is not there: its
 * claim is gone; or -ENOSPC and the biggest size that would fit.
 */
int ledger_reserve(struct ledger *l, const char *volume, const char *claim, int64_t bytes,
		   const struct ledger_offer *offers, size_t count, char **ret_pool,
		   int64_t *ret_biggest);

/*
 * Promises more of the pool that the volume lives in, of which `limit` bytes may be promised in total.
 * -ENOSPC and the biggest size that it could have; -EAGAIN: it is not known yet.
 */
int ledger_grow(struct ledger *l, const char *volume, int64_t bytes, int64_t limit,
		int64_t *ret_biggest);

int64_t ledger_promised(struct ledger *l, const char *pool); /* NULL: of all pools */
/* What may still be promised of the pool. */
int64_t ledger_left(struct ledger *l, const struct ledger_offer *offer);
int ledger_count(struct ledger *l, const char *pool);
/* Whether something is promised under the name: to a claim, or as a PersistentVolume. */
bool ledger_knows(struct ledger *l, const char *volume);
/* Up to max claims ("namespace/name") that live in the pool, or are to. */
void ledger_claims(struct ledger *l, const char *pool, size_t max, struct strv *ret);

/* Nothing more is promised of the pool from now on; false (and nothing changes) while something is. */
bool ledger_close(struct ledger *l, const char *pool);
void ledger_reopen(struct ledger *l, const char *pool);

/* Claims that wait for room or for their class. */
void ledger_wait(struct ledger *l, const char *claim);
void ledger_waited(struct ledger *l, const char *claim);
void ledger_waiting(struct ledger *l, struct strv *ret);
