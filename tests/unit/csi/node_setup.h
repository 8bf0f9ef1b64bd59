/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/node.h"
#include "grpc/grpc.h"
#include "proto/csi.pb-c.h"

/*
 * A node service for tests that call it by its socket, in a mount namespace of the test's own. All of
 * it lies in one directory: data (with a file), which is the volume of stage_request by the driver
 * LOCAL, and whatever a test makes. Where something goes wrong here, the test fails.
 */
#define TIMEOUT_MS 60000
#define ID "v1.pool.d.pvc-1"

extern char dir[];
extern struct csi_node *node;
extern bool can_mount; /* false: not root, or in a place where nobody may mount */

/* Setup and teardown of a group. Staging and target paths may lie anywhere in dir. */
int node_setup(void **state);
int node_teardown(void **state);
/* The first half of node_setup: everything but the service. */
void node_prepare(void);
/* The second: a service of these options; those that are NULL are in dir. */
void node_start(struct csi_node_options o);
/* As node_setup has it. */
void start_node(void);

/* A path below dir; it lives as long as the test. From any thread. */
char *in_dir(const char *name);
void pause_shortly(void);
bool is_mounted(const char *path);
/* Where there can be none the test is skipped. */
void need_loop(void);
/* How many targets the service has noted whose they are. */
int notes(void);

/* ret: the reply, the caller's to free; or NULL. err or NULL: what the service said. */
enum grpc_code call_err(const char *method, const void *request, void **ret, struct error *err);
enum grpc_code call(const char *method, const void *request, void **ret);

/* ---- requests: of a file system with one writer ---- */

extern Csi__V1__VolumeCapability__MountVolume mount_volume;
extern Csi__V1__VolumeCapability capability;
/* At dir/stage. */
Csi__V1__NodeStageVolumeRequest stage_request(const char *id);
Csi__V1__NodePublishVolumeRequest publish_request(const char *id, const char *target);
enum grpc_code unpublish(const char *id, const char *path);
enum grpc_code unstage(const char *id, const char *path);
enum grpc_code stats(const char *id, const char *path, Csi__V1__NodeGetVolumeStatsResponse **ret);
enum grpc_code expand(const char *id, const char *path);
/* How many problems it has; -1: the call failed, with *ret_code. */
int health(const char *id, const char *path, enum grpc_code *ret_code);
