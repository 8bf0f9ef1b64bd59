/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "attachment.h"

/*
 * Which volume it was: what driver.identity names in a record's detail. It is learned once, and
 * from then on every record of the volume says the same until all of them are gone. A way to the
 * storage may be made anew as often as it takes; the volume at its end has to be that one.
 */

/* Whether the record says which volume it is. */
bool recorded_is_known(const struct attachment *a);
/*
 * Whether the two say it in the same words: also of different drivers, where these are several ways
 * to the same units (iSCSI and iSER).
 */
bool recorded_is_comparable(const struct attachment *a, const struct attachment *b);
/* Takes over what from knows and to does not; the two are comparable. */
int recorded_carry(struct attachment *to, const struct attachment *from, struct error *err);
/* The same of driver.form; both are of one driver. */
int recorded_carry_form(struct attachment *to, const struct attachment *from, struct error *err);
/*
 * Under the target's lock: where a does not know, asks the records of the volume's other consumers.
 * -EBADMSG: nobody says it, no parameter either, and there are records that cannot be read.
 */
int recorded_inherit(const struct call *c, struct attachment *a, struct error *err);
/* -ESTALE with the sentence: what stands at where is now, what it was before, and what to do. */
int recorded_differs(const struct attachment *a, const char *where, const char *now,
		     const char *before, struct error *err);
