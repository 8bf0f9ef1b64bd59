/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "h2/h2.h"

#include <pthread.h>

/*
 * A server with handlers for tests, on a unix socket and on TLS, in a directory of its own.
 *   /echo        the body, with the header x-method
 *   /bytes/N     N bytes, a pattern
 *   /lines/N     N numbered lines in parts, and the trailer "lines: N"
 *   /sleep/MS    answers after that time
 *   /wait        starts a stream that goes on, and keeps the call in fixture.waiting
 *   /forget      returns without an answer
 *   /peer        "unix UID PID" or "tcp"
 *   /header      the value of the request's x-test
 */
#define MAX_BODY (3 * 1024 * 1024)

struct fixture {
	char dir[64];
	char socket[96];
	char *ca, *cert, *key;
	struct h2_server *server;
	struct h2_client *client; /* on the unix socket */

	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct h2_call *waiting[512]; /* of /wait */
	int watches; /* how many these are */
	int gone; /* how often on_gone was called */
	int handled; /* requests that reached a handler */
};

int fixture_setup(void **state);
int fixture_teardown(void **state);

void fixture_start(struct fixture *f);
void fixture_stop(struct fixture *f);

struct h2_client *client_unix(const struct fixture *f);
struct h2_client *client_tls(const struct fixture *f, const char *host);

/* Waits (at most 10 s) until *counter, under the fixture's lock, is at least value. */
void fixture_await(struct fixture *f, const int *counter, int value);
int fixture_count(struct fixture *f, const int *counter);
/* The latest of /wait, which the caller then owns. */
struct h2_call *fixture_take_watch(struct fixture *f);

/* A call that has to succeed; gives its status. */
int call(struct h2_client *c, const char *method, const char *path, const void *body, size_t len,
	 struct h2_response *ret);
/* The same for a GET whose answer is compared. */
void assert_get(struct h2_client *c, const char *path, const char *want);
void fill_pattern(char *data, size_t len);
int64_t now_ms(void);
