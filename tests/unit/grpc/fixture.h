/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "grpc/grpc.h"
#include "proto/csi.pb-c.h"

#include <pthread.h>

/*
 * A server with a part of CSI, in a directory of its own; what its volumes are called says what
 * happens:
 *   CreateVolume    answers with a volume whose id is the name, and whose context the parameters;
 *                   "fail-N": fails with errno N and `sentence`, "mute-N" without a sentence,
 *                   "big-N": a context value of N bytes, "latin": one that is not UTF-8
 *   DeleteVolume    waits until the caller has gone, or the fixture lets it go
 *   ListVolumes     answers with the number of ms that the caller waits, as next_token
 */
struct fixture {
	char dir[64];
	char socket[96];
	const char *sentence;
	struct grpc_server *server;
	struct grpc_client *client;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	int waiting; /* DeleteVolume: began, */
	int cancelled; /* … of these, saw that the caller had gone */
	bool released;
};

int fixture_setup(void **state);
int fixture_setup_anyone(void **state);
int fixture_teardown(void **state);
/* Again, with other limits (0: those that are usual). */
void fixture_restart(struct fixture *f, int workers, size_t max_request);

struct grpc_client *new_client(const struct fixture *f);
/* Waits (at most 10 s) until *counter, under the fixture's lock, is at least value. */
void fixture_await(struct fixture *f, const int *counter, int value);
void fixture_release(struct fixture *f);

/* CreateVolume of that name: what grpc_client_call gives, its code and its sentence. */
int create(struct grpc_client *c, const char *name, enum grpc_code *ret_code, struct error *err);
/* The same, which has to succeed. */
void assert_create(struct grpc_client *c, const char *name);
int64_t now_ms(void);
