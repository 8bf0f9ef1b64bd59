/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "h2/cert.h"

#include <errno.h>
#include <stdio.h>

static void test_echo(void **state)
{
	struct fixture *f = *state;
	struct h2_response res;

	assert_int_equal(call(f->client, "POST", "/echo", "hello", 5, &res), 200);
	assert_int_equal(res.body.len, 5);
	assert_memory_equal(res.body.data, "hello", 5);
	assert_string_equal(h2_response_header(&res, "x-method"), "POST");
	assert_string_equal(h2_response_header(&res, "content-length"), "5");
	assert_null(h2_response_header(&res, "x-other"));
	h2_response_done(&res);

	assert_int_equal(call(f->client, "GET", "/nowhere?a=b", NULL, 0, &res), 404);
	h2_response_done(&res);
}

static void test_request_headers(void **state)
{
	struct fixture *f = *state;
	const struct h2_header headers[] = { { "authorization", "Bearer xyz" },
					     { "x-test", "some value" },
					     { 0 } };
	struct h2_request req = { .method = "GET", .path = "/header", .headers = headers };
	struct h2_response res;

	assert_int_equal(h2_client_call(f->client, &req, 5000, &res, NULL), 0);
	assert_string_equal(res.body.data, "some value");
	h2_response_done(&res);
}

static void test_head_has_no_body(void **state)
{
	struct fixture *f = *state;
	struct h2_response res;

	assert_int_equal(call(f->client, "HEAD", "/bytes/100", NULL, 0, &res), 200);
	assert_int_equal(res.body.len, 0);
	assert_string_equal(h2_response_header(&res, "content-length"), "100");
	h2_response_done(&res);
}

static void test_peer(void **state)
{
	struct fixture *f = *state;
	struct h2_client *tls = client_tls(f, "127.0.0.1");
	char want[64];

	snprintf(want, sizeof(want), "unix %u %d", getuid(), getpid());
	assert_get(f->client, "/peer", want);
	assert_get(tls, "/peer", "tcp");
	h2_client_free(tls);
}

static void check_big(struct h2_client *c)
{
	size_t len = MAX_BODY;
	cleanup_free char *data = xmalloc(len);
	struct h2_response res;

	fill_pattern(data, len);
	assert_int_equal(call(c, "PUT", "/echo", data, len, &res), 200);
	assert_int_equal(res.body.len, len);
	assert_memory_equal(res.body.data, data, len);
	h2_response_done(&res);

	assert_int_equal(call(c, "GET", "/bytes/10000000", NULL, 0, &res), 200);
	assert_int_equal(res.body.len, 10000000);
	assert_memory_equal(res.body.data, data, len);
	h2_response_done(&res);
}

static void test_big_bodies(void **state)
{
	struct fixture *f = *state;
	struct h2_client *tls = client_tls(f, "localhost");

	check_big(f->client);
	check_big(tls);
	h2_client_free(tls);
}

static void test_body_too_large(void **state)
{
	struct fixture *f = *state;
	size_t len = 2 * MAX_BODY;
	cleanup_free char *data = xcalloc(1, len);
	const struct h2_header no_length[] = { { "x-test", "1" }, { 0 } };
	struct h2_request req = {
		.method = "POST", .path = "/echo", .headers = no_length, .body = data
	};
	struct h2_response res;

	for (int i = 0; i < 5; i++) {
		req.body_len = i % 2 ? len : MAX_BODY + 1;
		assert_int_equal(h2_client_call(f->client, &req, 10000, &res, NULL), 0);
		assert_int_equal(res.status, 413);
		h2_response_done(&res);
	}
	assert_int_equal(fixture_count(f, &f->handled), 0);
	assert_get(f->client, "/header", "none"); /* the connection serves on */
}

static void test_headers_too_large(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *value = xcalloc(1, 40 * 1024 + 1);
	const struct h2_header one[] = { { "x-test", value }, { 0 } };
	const struct h2_header two[] = { { "x-test", value }, { "x-more", value }, { 0 } };
	struct h2_request req = { .method = "GET", .path = "/header", .headers = one };
	struct h2_response res;

	memset(value, 'v', 40 * 1024);
	assert_int_equal(h2_client_call(f->client, &req, 5000, &res, NULL), 0);
	assert_int_equal(res.status, 200);
	assert_int_equal(res.body.len, 40 * 1024);
	h2_response_done(&res);
	req.headers = two;
	assert_int_equal(h2_client_call(f->client, &req, 5000, &res, NULL), -E2BIG);
}

static void test_trailers(void **state)
{
	struct fixture *f = *state;
	struct h2_response res;

	assert_int_equal(call(f->client, "GET", "/lines/3", NULL, 0, &res), 200);
	assert_string_equal(res.body.data, "line 0\nline 1\nline 2\n");
	assert_string_equal(h2_response_trailer(&res, "lines"), "3");
	assert_null(h2_response_header(&res, "lines"));
	h2_response_done(&res);
	assert_int_equal(call(f->client, "GET", "/lines/0", NULL, 0, &res), 200);
	assert_int_equal(res.body.len, 0);
	assert_string_equal(h2_response_trailer(&res, "lines"), "0");
	h2_response_done(&res);
}

static void test_forgotten_call_is_reset(void **state)
{
	struct fixture *f = *state;
	struct h2_request req = { .method = "GET", .path = "/forget" };
	struct h2_response res;
	int64_t begin = now_ms();

	assert_int_equal(h2_client_call(f->client, &req, 20000, &res, NULL), -ECONNRESET);
	assert_true(now_ms() - begin < 5000);
}

static void test_timeout(void **state)
{
	struct fixture *f = *state;
	struct h2_request req = { .method = "GET", .path = "/sleep/3000" };
	struct error err = ERROR_INIT;
	struct h2_response res;
	int64_t begin = now_ms();

	assert_int_equal(h2_client_call(f->client, &req, 100, &res, &err), -ETIMEDOUT);
	assert_in_range(now_ms() - begin, 100, 2900);
	assert_non_null(strstr(err.message, "/sleep/3000"));
	assert_get(f->client, "/sleep/10", "slept"); /* others are not disturbed */
}

static void test_no_server(void **state)
{
	struct fixture *f = *state;
	struct h2_client *tls = client_tls(f, "127.0.0.1");
	struct h2_request req = { .method = "GET", .path = "/echo" };
	struct error err = ERROR_INIT;
	struct h2_response res;

	fixture_stop(f);
	assert_int_equal(h2_client_call(f->client, &req, 5000, &res, &err), -ENOENT);
	assert_non_null(strstr(err.message, f->socket));
	assert_int_equal(h2_client_call(tls, &req, 5000, &res, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.message, "127.0.0.1"));
	h2_client_free(tls);
}

static void test_names_of_certificate(void **state)
{
	struct fixture *f = *state;
	struct h2_client *name = client_tls(f, "localhost");

	assert_get(name, "/header", "none");
	h2_client_free(name);
}

static void expect_rejected(struct fixture *f, const char *ca, const char *host)
{
	struct h2_target target = {
		.host = host, .port = h2_server_port(f->server), .tls = true, .ca_pem = ca
	};
	struct h2_request req = { .method = "GET", .path = "/echo" };
	struct error err = ERROR_INIT;
	struct h2_response res;
	struct h2_client *c;

	assert_int_equal(h2_client_new(&target, &c, NULL), 0);
	assert_int_equal(h2_client_call(c, &req, 5000, &res, &err), -EKEYREJECTED);
	assert_non_null(strstr(err.message, "not trusted"));
	h2_client_free(c);
	assert_int_equal(fixture_count(f, &f->handled), 0);
}

static void test_wrong_ca_is_refused(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *ca = NULL, *key = NULL;

	assert_int_equal(cert_make_ca("another CA", 30, &ca, &key, NULL), 0);
	expect_rejected(f, ca, "127.0.0.1");
	/* Leads to the same server, but is not what its certificate says. */
	expect_rejected(f, f->ca, "127.1");
}

static void test_bad_targets(void **state)
{
	struct fixture *f = *state;
	struct error err = ERROR_INIT;
	struct h2_client *c;

	assert_int_equal(h2_client_new(&(struct h2_target){ 0 }, &c, &err), -EINVAL);
	assert_int_equal(h2_client_new(&(struct h2_target){ .host = "x", .port = 70000 }, &c, &err),
			 -EINVAL);
	assert_int_equal(
		h2_client_new(&(struct h2_target){ .host = "x", .port = 1, .tls = true }, &c, &err),
		-EINVAL);
	assert_int_equal(h2_client_new(
				 &(struct h2_target){
					 .host = "x", .port = 1, .tls = true, .ca_pem = "not PEM" },
				 &c, &err),
			 -EINVAL);
	assert_int_equal(h2_client_new(&(struct h2_target){ .host = "x",
							    .port = 1,
							    .tls = true,
							    .ca_pem = f->ca,
							    .cert_pem = f->cert },
				       &c, &err),
			 -EINVAL);
}

static void test_bad_listen(void **state)
{
	struct fixture *f = *state;
	struct h2_listen listen = { .tcp_port = h2_server_port(f->server),
				    .cert_pem = f->cert,
				    .key_pem = f->key,
				    .workers = 1 };
	struct h2_server *s;

	assert_int_equal(h2_server_start(&listen, NULL, NULL, &s, NULL), -EADDRINUSE);
	listen.key_pem = f->cert;
	assert_int_equal(h2_server_start(&listen, NULL, NULL, &s, NULL), -EINVAL);
	listen = (struct h2_listen){ .tcp_port = -1, .unix_path = "/nowhere/at/all" };
	assert_int_equal(h2_server_start(&listen, NULL, NULL, &s, NULL), -ENOENT);
}

/* Many callers share one connection and each gets its own answer. */
struct caller {
	struct h2_client *client;
	int number;
};

static void *run_caller(void *arg)
{
	struct caller *caller = arg;
	char text[64];

	for (int i = 0; i < 100; i++) {
		struct h2_request req = { .method = "POST", .path = "/echo", .body = text };
		struct h2_response res;

		req.body_len = (size_t)snprintf(text, sizeof(text), "%d-%d", caller->number, i);
		if (h2_client_call(caller->client, &req, 20000, &res, NULL) < 0 ||
		    res.body.len != req.body_len || memcmp(res.body.data, text, res.body.len) != 0)
			return caller;
		h2_response_done(&res);
	}
	return NULL;
}

static void check_callers(struct h2_client *c)
{
	pthread_t threads[12];
	struct caller callers[12];
	void *failed;

	for (int i = 0; i < 12; i++) {
		callers[i] = (struct caller){ c, i };
		assert_int_equal(pthread_create(&threads[i], NULL, run_caller, &callers[i]), 0);
	}
	for (int i = 0; i < 12; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
}

static void test_many_callers(void **state)
{
	struct fixture *f = *state;
	struct h2_client *tls = client_tls(f, "127.0.0.1");

	check_callers(f->client);
	check_callers(tls);
	h2_client_free(tls);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_echo),
		WITH_FIXTURE(test_request_headers),
		WITH_FIXTURE(test_head_has_no_body),
		WITH_FIXTURE(test_peer),
		WITH_FIXTURE(test_big_bodies),
		WITH_FIXTURE(test_body_too_large),
		WITH_FIXTURE(test_headers_too_large),
		WITH_FIXTURE(test_trailers),
		WITH_FIXTURE(test_forgotten_call_is_reset),
		WITH_FIXTURE(test_timeout),
		WITH_FIXTURE(test_no_server),
		WITH_FIXTURE(test_names_of_certificate),
		WITH_FIXTURE(test_wrong_ca_is_refused),
		WITH_FIXTURE(test_bad_targets),
		WITH_FIXTURE(test_bad_listen),
		WITH_FIXTURE(test_many_callers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
