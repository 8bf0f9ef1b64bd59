/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/host.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * A host whose mount table is a model in memory that child processes share. Every operation that
 * changes or reads the host is counted, and the process can be made to die at one (before or after
 * it took effect), or one can be made to fail.
 */
struct fake_mount {
	char source[200], target[300], type[40];
	bool dead, busy;
};

struct fake_device {
	char path[120];
	bool there, busy;
};

enum fake_fault { FAULT_NONE, FAULT_DIE_BEFORE, FAULT_DIE_AFTER, FAULT_FAIL };

struct fake {
	pthread_mutex_t lock; /* between processes */
	atomic_int calls;
	int fault_at;
	enum fake_fault fault;
	struct fake_mount mounts[16];
	int mount_count;
	atomic_int mounts_made, unmounts_made;
	char last_options[300];
	int nfs_refuses; /* so many times "Protocol not supported" */
	const char *helper_says; /* the helper fails with these words */
	int helper_delay_ms;
	char missing[100]; /* a sub path that is not there */
	char late[300]; /* a client whose caller died, which will mount here */
	bool client_lives; /* a process serves the mount points, whatever it answers */
	int killed; /* how often such processes were ended */
	struct hostvol_host host;
	/* vendors: the devices that there are (NULL-ended paths), and the programs that bring them */
	struct fake_device devices[4];
	int (*vendor_run)(struct fake *f, const struct host_command *command,
			  struct host_result *ret);
	int64_t slept_ms; /* with vendor_run: what was slept, in no time */
	const char *silent; /* an address of which nothing answers */
	bool unreachable, refuses; /* the storage system: does not answer; says no */
	const char *sio_id; /* what volume the gateway has by the name that is asked for */
	char seen[4000]; /* what was on a command line or in an environment */
};

#define FAKE_DIED 99 /* exit status of a process that a fault ended */

struct fake *fake_new(void);
void fake_free(struct fake *f);
/* The device at a path, made known where it is not; starts as not there. */
struct fake_device *fake_device(struct fake *f, const char *path);
/* A mount that a helper made. */
void fake_mount(struct fake *f, const char *source, const char *target, const char *type);
/* From now on: calls are counted from 1. */
void fake_set_fault(struct fake *f, enum fake_fault fault, int at);

/* Around an operation of another fake: true: it is to fail; then its result goes through fake_end. */
bool fake_begin(struct fake *f, int *ret_call);
int fake_end(struct fake *f, int call, int r);

/* A directory for a test, removed by temp_remove. */
char *temp_make(void);
void temp_remove(char *dir);
