/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "attachment.h"

/*
 * Connecting and disconnecting as steps over records: whatever step a process dies at, the next
 * call on the volume, or attach_recover, finds in the record what to take up.
 */

/*
 * Connects want, or finds it connected. On success *want is replaced by the attachment as it is
 * recorded. 1: connected before, with other options that stay in force. -ESTALE: another volume
 * than the records of its consumers say; they stay as they were.
 */
int attach_connect(const struct call *c, struct attachment **want, struct error *err);
enum attach_end {
	ATTACH_END_CAREFUL, /* -EBUSY: it is in use */
	ATTACH_END_FORCE,
	ATTACH_END_BROKEN, /* -EBUSY also where attach_refuse_forgetting says so */
};
/* 1: was not connected, *ret is NULL. Else the attachment that was. */
int attach_disconnect(const struct call *c, const char *volume_id, const char *consumer,
		      enum attach_end how, struct attachment **ret, struct error *err);
/*
 * -EBUSY: it is what was connected, and works; of such there is nothing to forget. Or its consumer
 * has it mounted, or somebody uses what a disconnect would leave where it is.
 */
int attach_refuse_forgetting(const struct call *c, struct attachment *a, struct error *err);
/* Under the locks of record and target: takes away what a connect did, or a disconnect has not yet. */
int attach_clear_away(const struct call *c, struct attachment *a, bool force, struct error *err);
/*
 * Ends every consumer's use of a volume that is not what was connected: the next connect takes what
 * is there. A JSON array of those that went; 1: there was none. -EBUSY: it is in use, or it works,
 * for one of them: then for all of them it is as it was.
 */
int attach_forget(const struct call *c, const char *volume_id, json_t **ret, struct error *err);
/* The first healthy attachment of the volume. */
int attach_find(const struct call *c, const char *volume_id, struct attachment **ret,
		struct error *err);
/* A JSON array; 1: some remain interrupted. */
int attach_recover(const struct call *c, json_t **ret, struct error *err);
int attach_list(const struct call *c, const char *volume_id, json_t **ret, struct error *err);

/*
 * Under the locks of every record of the volume: makes the host see that the storage has grown it.
 * A JSON object {"volumeId", "path", "size", "paths"}; set where paths failed, too.
 */
int attach_extend(const struct call *c, const char *volume_id, json_t **ret, struct error *err);
/* {"volumeId", "consumer", "path", "usedBy", "devices", "steps"} of a disconnect. */
int attach_plan(const struct call *c, const char *volume_id, const char *consumer, json_t **ret,
		struct error *err);
/* Recovery, and what no record names; repair: takes that away. 1: some remain. */
int attach_audit(const struct call *c, bool repair, json_t **ret, struct error *err);
