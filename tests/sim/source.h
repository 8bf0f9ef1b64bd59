/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proc.h"

/* The caches of a simulated process, and the lossy way on which events come to them. */
struct proc_source {
	struct cache cache;
	struct proc *proc;
	const char *ns;
	struct store_watch *watch;
	bool watching;             /* else events are lost until the next list */
	bool synced;
	bool delivering;           /* a timer is set */
	struct pending *first, *last;
	struct kube_event old[3];  /* the latest events, which may come again */
	size_t old_at;
};

bool source_is(const struct cache *c, const struct controller_watch *w);
/* The argument of a timer for this source, and back: NULL where the process is another now. */
void *source_timer(struct proc_source *s);
struct proc_source *source_of_timer(void *arg);

/* proc.c: starts reconciles for what is due. */
void proc_pump(struct proc *p);
