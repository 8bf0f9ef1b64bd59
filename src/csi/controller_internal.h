/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "csi/controller.h"
#include "proto/csi.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>

/* What the files of the controller share. */

/* The volumes and snapshots that calls work on: few, as many as handlers run. */
struct csi_controller {
	struct volumes *volumes;
	pthread_mutex_t lock; /* of held */
	char **held;
	size_t held_count;
	atomic_int waiting; /* handlers that wait for a copy */
};

static inline struct csi_controller *controller_of(const struct grpc_call *call)
{
	return grpc_call_userdata(call);
}

/*
 * Begins a call that changes something: whether calls are served here at all, and nobody else works on
 * it; else -EAGAIN or -EINPROGRESS. What is held is given back by controller_end (NULL: nothing).
 */
int controller_begin(struct csi_controller *c, const char *what, struct error *err);
void controller_end(struct csi_controller *c, const char *what);

/* A message of that type, in the call's memory. */
#define MESSAGE(call, type) grpc_call_message(call, &csi__v1__##type##__descriptor)

/* The volume as a message; nothing of it points into the info. */
Csi__V1__Volume *controller_volume(struct grpc_call *call, const struct volume_info *v);

/* How it is; without statuses where all is in order. */
Csi__V1__VolumeHealth *controller_health(struct grpc_call *call, const struct volume_info *v);

/* An entry's place in a list, and back: -EINPROGRESS (ABORTED, begin anew) where it is none. */
int controller_token(const char *token, struct handle *ret, struct error *err);

/* What max_entries asks for, of at most as many as one answer should have. */
int controller_page(int32_t max_entries, size_t *ret, struct error *err);

/* Whether what goes on (a copy, mostly) is to be asked for again, after a pause; else -EINPROGRESS. */
struct copy_wait {
	int64_t begun_ms;
	int pause_ms;
};
int controller_wait(struct grpc_call *call, struct copy_wait *w, const char *what,
		    struct error *err);

int controller_list_volumes(struct grpc_call *call, const void *request, void *reply,
			    struct error *err);
int controller_list_health(struct grpc_call *call, const void *request, void *reply,
			   struct error *err);
int controller_create_snapshot(struct grpc_call *call, const void *request, void *reply,
			       struct error *err);
int controller_delete_snapshot(struct grpc_call *call, const void *request, void *reply,
			       struct error *err);
int controller_list_snapshots(struct grpc_call *call, const void *request, void *reply,
			      struct error *err);
int controller_get_snapshot(struct grpc_call *call, const void *request, void *reply,
			    struct error *err);
int controller_create_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err);
int controller_delete_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err);
int controller_expand_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err);
int controller_modify_volume(struct grpc_call *call, const void *request, void *reply,
			     struct error *err);
