/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/connect.h"
#include "csi/node_args.h"

/*
 * From a claim's name to what can be connected: waits until the claim is bound, shows what it
 * waits for, and gives the volume (a PersistentVolume; new reference). QM_OK, or an exit code
 * after a line on standard error.
 */
int claim_wait_bound(struct session *s, const char *claim, int64_t timeout_ms, json_t **ret_volume);

/*
 * Waits until the volume's size is enforced on every brick that holds data of it. Where it is not,
 * or cannot be known, says so once on standard error, and why: the volume can be used all the same.
 */
void claim_wait_quota(struct session *s, const json_t *volume, int64_t timeout_ms);

/* How it is to be mounted, by its mountOptions; to be ended with wanted_done. -EINVAL. */
int claim_flags(const json_t *volume, struct wanted *ret, struct error *err);

/*
 * The volume's ConnectionInfo for a consumer, as text, with the servers that its pool has now and
 * the options that it is to be mounted with; NULL: it has none, said so. Caller frees.
 */
char *claim_connection(struct session *s, const json_t *volume, const char *consumer);
