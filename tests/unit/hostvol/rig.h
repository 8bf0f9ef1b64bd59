/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "fake_host.h"
#include "hostvol/hostvol.h"

/* A handle on a fake host with directories of its own: the fixture of most tests here. */
struct rig {
	struct fake *fake;
	char *dir, *state_dir, *run_dir;
	struct hostvol *h;
	char log[4000]; /* what the callback was told */
};

int rig_setup(void **state);
int rig_teardown(void **state);

/* What is left on disk and in the mount table. */
int rig_records(const struct rig *rig);
/* Connects JSON; the path (caller frees) or NULL and *ret_code. */
char *rig_connect(struct rig *rig, const char *json, int *ret_code);
int rig_disconnect(struct rig *rig, const char *volume_id, const char *consumer, unsigned flags);

/*
 * Which calls or allocations are made to fail, one a time: all of them, or for machines that are
 * emulated one in QM_FAULT_STEP, where QM_SEED and how often this was asked say which is the first.
 */
int rig_fault_step(void);
int rig_first_fault(void);

#define NFS_A                                                                                      \
	"{\"driverVolumeType\":\"NFS\",\"data\":{\"export\":\"192.0.2.9:/"                         \
	"e\",\"name\":\"a\",\"volumeId\":\"a\"}}"
#define NFS_B                                                                                      \
	"{\"driverVolumeType\":\"nfs\",\"data\":{\"export\":\"192.0.2.9:/"                         \
	"e\",\"name\":\"b\",\"volume_id\":\"b\"}}"
#define GLUSTER_A                                                                                  \
	"{\"driverVolumeType\":\"GLUSTERFS\",\"export\":\"192.0.2.9:/v\",\"name\":\"s/"            \
	"a\",\"volumeId\":\"a\"}"
