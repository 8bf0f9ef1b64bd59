/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "attachment.h"

/*
 * The records: one file per attachment, STATE/attachments/ID.json, written before the first step
 * is taken and durable before it is. A record is written and removed only under the lock of its
 * id and the lock of its target, so whoever holds a target's lock sees all its users.
 */

/* -ENOENT: none. */
int journal_load(const struct call *c, const char *id, struct attachment **ret, struct error *err);
int journal_store(const struct call *c, const struct attachment *a, struct error *err);
int journal_remove(const struct call *c, const struct attachment *a, struct error *err);
/*
 * Calls fn for every record, in no order, until it returns < 0. One that cannot be read is told to
 * the log and left out; returns how many there were of these.
 */
int journal_each(const struct call *c, int (*fn)(struct attachment *a, void *userdata),
		 void *userdata, struct error *err);
#define JOURNAL_NAME_MAX (HASH_TEXT_MAX + sizeof(".json") - 1)
/* The same; where there are some that cannot be read, ret_unreadable is the name of one. */
int journal_each_naming(const struct call *c, int (*fn)(struct attachment *a, void *userdata),
			void *userdata, char ret_unreadable[static JOURNAL_NAME_MAX],
			struct error *err);
/*
 * Counts who has to do with the attachment's target (a->others, a->interrupted,
 * a->unreadable). Interrupted ones
 * are no users: their caller has no path, or gave it up.
 */
int journal_count_users(const struct call *c, struct attachment *a, struct error *err);
