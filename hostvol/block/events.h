/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/handle.h"

/*
 * Waiting for the kernel and udev. The condition is asked once when the wait begins and again
 * whenever a device came, changed or went; it looks at sysfs, and returns > 0 when it holds, 0
 * when it does not yet, or -errno to give up.
 */
struct watch {
	int fd; /* -1: not open; opened before the step whose effect is awaited */
};
#define WATCH_INIT ((struct watch){ .fd = -1 })

int watch_open(const struct call *c, struct watch *w, struct error *err);
void watch_close(struct watch *w);
#define cleanup_watch __attribute__((cleanup(watch_close)))

/*
 * What the condition gave, or -ETIMEDOUT (without a message) after max_ms (0: the call's own
 * deadline), or what ended the call.
 */
int watch_until(const struct call *c, struct watch *w, int max_ms, int (*condition)(void *arg),
		void *arg, struct error *err);
