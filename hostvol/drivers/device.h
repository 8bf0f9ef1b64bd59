/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/driver.h"

/*
 * Volumes that a storage system's own software brings here as a block device. What is asked of
 * that software differs; when it is asked, what is waited for and what is verified does not.
 */
struct device_type {
	/* Where the device is: 1 and the path, 0 while it is not there. Touches nothing. */
	int (*find)(const struct call *c, struct attachment *a, char **ret, struct error *err);
	/* Asks for the device, though it may be here already; it may come later. */
	int (*attach)(const struct call *c, struct attachment *a, struct error *err);
	/* Asks for it to go, though it may have gone. 1: it stays until others take it away. */
	int (*detach)(const struct call *c, struct attachment *a, struct error *err);
};

/* Where a record has which device it is (driver.identity). */
extern const char *const device_keys[];

int device_connect(const struct call *c, struct attachment *a, struct error *err);
int device_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err);
int device_verify(const struct call *c, struct attachment *a, struct error *err);

/* Called by attach() where the volume was certainly not given: nothing has to be undone. */
void device_refused(struct attachment *a);

/* A find() for a path that is known: as it stands, if a file is there. */
int device_find_at(const struct call *c, const char *path, char **ret, struct error *err);
/*
 * Against what the record says the device is; the first time it is put there. -ESTALE: another
 * one than was connected.
 */
int device_check(struct attachment *a, const char *where, const char *identity, struct error *err);
/* -EBUSY while somebody uses the device; one that is gone has no user. */
int device_check_free(const struct call *c, const char *path, struct error *err);
/* What tells a block device from another that gets its number and name. */
void block_identity(const struct call *c, const struct host_stat *st, char *buf, size_t size);

/* Runs a vendor's program; a failure other than its exit status is an error, naming it. */
int device_run(const struct call *c, const struct host_command *command, struct host_result *ret,
	       struct error *err);
/* A name that is one word to every program and one part of a path. */
int check_plain_name(const char *value, struct error *err);
