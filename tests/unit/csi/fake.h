/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/controller.h"
#include "proto/csi.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * Volumes that are all memory, in one pool of FAKE_BYTES, and the controller before them on a socket
 * with a client. It counts what took effect, and any call that it gets while another works on the same.
 */
#define FAKE_POOL "gold-1"
#define FAKE_BYTES (100LL << 30)

struct fake_volume {
	char name[CSI_NAME_MAX];
	char *asked;
	enum volume_kind kind;
	int64_t bytes;
	char *source;
	bool busy;
	bool archive; /* what reclaim says */
};

struct fake {
	struct volumes volumes;
	pthread_mutex_t lock;
	struct fake_volume *items, *snapshots;
	size_t count, snapshot_count;
	int created, removed, grown, taken; /* effects */
	int overlaps; /* calls that met another one at work on the same volume */
	int slow_us; /* that each change takes */
	atomic_int copying; /* how often a create says that it is still copying */
	atomic_int removing; /* how often a remove says that it is under way */
	bool elsewhere; /* another one leads */

	struct csi_controller *controller;
	struct grpc_server *server;
	struct grpc_client *client;
	char dir[32], path[64];
};

struct fake *fake_new(int handlers);
void fake_free(struct fake *f);

/* A call; the code, and where it is OK the reply (fake_done). */
enum grpc_code fake_call(struct fake *f, const char *method, const void *request, void *ret_reply,
			 struct error *err);
void fake_done(void *reply);
enum grpc_code fake_delete(struct fake *f, const char *id);
