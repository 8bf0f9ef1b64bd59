/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Loop devices on files of a shared file system. A lock (F_OFD_SETLK) is taken on the very
 * descriptor that the kernel then keeps for the device: so it lives exactly as long as the device,
 * whoever dies, and a second writer, here or on another node, gets no device at all.
 */
enum loop_lock {
	LOOP_LOCK_WRITER, /* nobody else */
	LOOP_LOCK_SHARED, /* no single writer */
	LOOP_LOCK_NONE, /* nobody else knows the file: it need not be kept from anyone */
};

/*
 * A writer's lock can be handed over from one descriptor to the next without a moment in which nobody
 * has it: it is on one of two bytes, and all others ask for the whole file. The bytes lie where no file
 * has any, at a place that tells files apart.
 */
uint64_t loop_slots(const char *sub);

struct loop_options {
	const char *root, *sub; /* the file: sub below root, without symbolic links */
	enum loop_lock lock;
	bool read_only;
	uint64_t slots; /* of a writer: the first of the two bytes; 0: its lock is on the whole file */
	bool next; /* the writer is here already: the byte that it does not have */
};

#define LOOP_MAJOR 7
#define LOOP_PATH_MAX 32
struct loop {
	int fd; /* while it is open the device stays; without loop_keep it goes with its last user */
	unsigned number;
	unsigned slot; /* which of the two bytes it has */
	char device[LOOP_PATH_MAX]; /* /dev/loopN */
};
#define LOOP_INIT                                                                                  \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* -EBUSY: the file is locked by another writer. */
int loop_attach(const struct loop_options *o, int timeout_ms, struct loop *ret, struct error *err);
/* Lets it stay without users, until loop_detach. */
int loop_keep(struct loop *l, int timeout_ms, struct error *err);
/* Closes our descriptor only. */
void loop_close(struct loop *l);
/*
 * A descriptor; ret_path (of LOOP_PATH_MAX) is its name. Where nobody makes device files (a container's
 * own /dev) we do.
 */
int loop_open(unsigned number, char *ret_path, int flags);

/* What a device has to do with the file root/sub. */
enum loop_state {
	LOOP_OTHER, /* nothing */
	LOOP_LOST, /* it is on the file in a file system that answers no more: its client died */
	LOOP_SERVES,
};
/* Whether the device is on the file root/sub, in whichever mount, also where that was removed since. */
bool loop_was_on(unsigned number, const char *root, const char *sub);
/* Whether any device is on it, in whichever mount. */
bool loop_is_on(const char *root, const char *sub);
/* Whether any is on a file whose path ends in sub, in a mount below dir, or in one detached. */
bool loop_find_below(const char *dir, const char *sub, unsigned *ret_number);
/* now: the number of the file system that is mounted at root, the file's or another; 0: none is. */
enum loop_state loop_look(unsigned number, const char *root, const char *sub, dev_t now,
			  int timeout_ms);
/* Takes note of the size of the file, root/sub. */
int loop_resize(unsigned number, const char *root, const char *sub, int timeout_ms,
		struct error *err);
/* Ends it, at its last close where it is open. */
int loop_detach(unsigned number, int timeout_ms, struct error *err);
/* Until the device has no file any more; -EBUSY: it is still used. */
int loop_await_end(unsigned number, int timeout_ms, struct error *err);
