/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "csi/loop.h"

#include <stdbool.h>

/*
 * A device (dm-linear) above the loop device of a file's single writer, as large as that. What is below
 * can be switched while it is in use: to another loop device, on another descriptor of the same file.
 * Nothing is remembered but by the kernel; a device is known by its uuid, with a hash of its file in it.
 */
#define LINEAR_UUID_MAX 64
#define LINEAR_LOOPS_MAX 2

/* Whether the kernel has device mapper. */
bool linear_available(void);

struct linear {
	int fd; /* while it is open the device stays; without linear_keep it goes with its last user */
	unsigned major, minor;
	char uuid[LINEAR_UUID_MAX];
	char device[32]; /* /dev/dm-N */
};
#define LINEAR_INIT                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

int linear_make(const struct loop *l, const char *root, const char *sub, int timeout_ms,
		struct linear *ret, struct error *err);
/* Lets it stay without users, until linear_detach. */
int linear_keep(const struct linear *l, int timeout_ms, struct error *err);
void linear_close(struct linear *l);

/* One that is there. */
struct linear_state {
	unsigned major, minor;
	char uuid[LINEAR_UUID_MAX];
	bool suspended;
	size_t count; /* of loops: more than one while it is switched */
	unsigned loops[LINEAR_LOOPS_MAX]; /* below it, by number */
};
/* Whether the device is one of ours. */
bool linear_look(unsigned major, unsigned minor, struct linear_state *ret);
/* Whether it is of that file. */
bool linear_is_of(const struct linear_state *s, const char *root, const char *sub);
/* Calls fn for each that is ours, until that is not 0; what it returned. */
int linear_each(int (*fn)(const struct linear_state *s, void *userdata), void *userdata);

/* One that was left suspended goes on. -EBUSY: not yet, since who suspended it is still at work. */
int linear_settle(const struct linear_state *s, int timeout_ms, struct error *err);
/* Takes note of the size of the loop device. */
int linear_resize(const struct linear_state *s, int timeout_ms, struct error *err);
/*
 * From the loop device old to the one called next, both on the same file and each with a lock of its
 * own; that of next has been there before this is called. While nobody writes, a block is read and
 * written back through old: if that fails, old may have lost its lock, and others may have written.
 * Then all stays as it was, -ESTALE.
 */
int linear_switch(const struct linear_state *s, unsigned old, const struct loop *next,
		  int timeout_ms, struct error *err);
/* Ends it, at its last close where it is open. */
int linear_detach(const struct linear_state *s, int timeout_ms, struct error *err);
/* Until it is gone; -EBUSY: it is still used. */
int linear_await_end(const struct linear_state *s, int timeout_ms, struct error *err);
/* Takes away what one who was killed left of that file: what is not open, and is shown nowhere. */
int linear_sweep(const char *root, const char *sub, int timeout_ms, struct error *err);
