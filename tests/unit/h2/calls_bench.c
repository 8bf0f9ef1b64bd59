/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdio.h>

/* How many small calls a second go through a unix socket and through TLS. */
#define RUN_MS 2000

struct bench {
	struct h2_client *client;
	int64_t until;
	long calls;
};

static void *run(void *arg)
{
	struct bench *b = arg;
	struct h2_request req = { .method = "POST", .path = "/echo", .body = "{}", .body_len = 2 };
	struct h2_response res;

	while (now_ms() < b->until) {
		if (h2_client_call(b->client, &req, 10000, &res, NULL) < 0)
			return b;
		h2_response_done(&res);
		b->calls++;
	}
	return NULL;
}

static void measure(const char *name, struct h2_client *client, int callers)
{
	pthread_t threads[16];
	struct bench bench[16];
	long calls = 0;

	for (int i = 0; i < callers; i++) {
		bench[i] = (struct bench){ client, now_ms() + RUN_MS, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, run, &bench[i]), 0);
	}
	for (int i = 0; i < callers; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
		calls += bench[i].calls;
	}
	printf("%-5s %2d caller(s): %6ld calls/s\n", name, callers, calls * 1000 / RUN_MS);
}

static void measure_streams(const char *name, struct h2_client *client)
{
	struct h2_response res;
	int64_t begin = now_ms();

	for (int i = 0; i < 20; i++) {
		call(client, "GET", "/bytes/10000000", NULL, 0, &res);
		h2_response_done(&res);
	}
	printf("%-5s 10 MB answers: %6.0f MB/s\n", name, 200e3 / (double)(now_ms() - begin + 1));
}

int main(void)
{
	void *state;
	struct fixture *f;
	struct h2_client *tls;

	fixture_setup(&state);
	f = state;
	tls = client_tls(f, "127.0.0.1");
	measure("unix", f->client, 1);
	measure("unix", f->client, 16);
	measure("tls", tls, 1);
	measure("tls", tls, 16);
	measure_streams("unix", f->client);
	measure_streams("tls", tls);
	h2_client_free(tls);
	fixture_teardown(&state);
	return 0;
}
