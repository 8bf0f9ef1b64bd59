/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stddef.h>

/*
 * A thread that stays connected with every client container below a directory (remote.h) and learns
 * when a daemon of one ended, or the client itself did ("watch" in client.h). It does not learn
 * which: whoever is told looks at the mounts.
 */
struct clients_watch;

/*
 * Both are called from the thread. told: at the start, and twice after each such end, now and a
 * little later. looked, or NULL: every ten seconds, with the largest number of clients that one
 * protocol has now (more than one: its image is being changed).
 */
int clients_watch_start(const char *dir, void (*told)(void *userdata),
			void (*looked)(size_t most, void *userdata), void *userdata,
			struct clients_watch **ret, struct error *err);
void clients_watch_free(struct clients_watch *w); /* NULL-safe */
