/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "local/program.h"

/*
 * Keeps programs running: each is watched by a pidfd (so it may have been started by somebody
 * who is gone) and started again when it ends: at once when it had lived for a while, with a growing pause
 * (to 30 s) while it keeps ending early. One thread; nothing polls.
 */
struct keeper;

int keeper_start(struct keeper **ret, struct error *err);
/* Takes the program over; a name that is kept already only gets the new argv for its next start. */
void keeper_add(struct keeper *k, struct program *p);
/* Forgets it without ending it. */
void keeper_forget(struct keeper *k, const char *name);
/* Ends the thread; the programs go on. */
void keeper_free(struct keeper *k);
