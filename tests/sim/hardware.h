/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scenario.h"

/*
 * What happens to machines and disks, and what a person does about it, in minutes instead of
 * seconds. In the end all of it is repaired, as the documentation says.
 */
#define HARDWARE_EVENTS 9 /* odd: each comes with old and with new paths */

/* One of these events; they go on by timers until hardware_repair. */
void hardware_event(struct scenario *s, int kind);
/* How long it is until all has come of it that is to be expected. */
int64_t hardware_takes_ms(int kind);
/* Clients write to every volume that serves, now and then. */
void hardware_clients(struct scenario *s);
/* Power and disks are there again, each under its own name. */
void hardware_repair(struct scenario *s);
/*
 * What a person is asked for: to give up a lost disk where it is not known whether the others are
 * whole, and to erase one that came back after another had taken its place.
 */
void hardware_follow_advice(struct scenario *s);
/* Called at each write of a pool, while the API writes. */
void hardware_pool_event(struct scenario *s, const json_t *pool);
