/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "core/mountinfo.h"
#include "hostvol/hostvol.h"

#include <stdbool.h>

/*
 * What hostvol's records say to those who show a volume at a place of their own: which volume is
 * meant for that place (its consumer), and where it is now. Read from the files alone: no file
 * system and no storage is asked, so nothing here can hang.
 */

/* Records of that consumer, of that volume id; NULL: of any. An array, new reference. */
int records_find(struct hostvol *h, const char *volume_id, const char *consumer, json_t **ret,
		 struct error *err);
/*
 * All of them, for who destroys what no record keeps. *ret_unreadable: how many could not be read,
 * and may be anybody's; hostvol's log names them.
 */
int records_all(struct hostvol *h, json_t **ret, size_t *ret_unreadable, struct error *err);

/* Where the volume is, and the part of it that is meant ("": all). Borrowed. */
const char *record_root(const json_t *record);
const char *record_sub(const json_t *record);
/*
 * Whether the mount is the record's directory, though perhaps by a client that died, or a file
 * system on its device. Of a directory whose source the record does not name (LOCAL) only the end of
 * its path is compared.
 */
bool record_is_mount(const json_t *record, const struct mount_entry *e);

/* Ends the record's use; flags as HOSTVOL_FORCE. */
int record_disconnect(struct hostvol *h, const json_t *record, unsigned flags, struct error *err);

/* hostvol's error as ours. */
int from_hostvol(int r, const struct hostvol_error *from, struct error *err);
