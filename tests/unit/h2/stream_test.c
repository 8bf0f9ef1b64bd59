/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct h2_stream *open_stream(struct h2_client *c, const char *path)
{
	struct h2_request req = { .method = "GET", .path = path };
	struct error err = ERROR_INIT;
	struct h2_stream *s;
	int status;

	if (h2_stream_open(c, &req, 10000, &s, &status, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(status, 200);
	return s;
}

static void check_watch(struct fixture *f, struct h2_client *client)
{
	struct h2_stream *s = open_stream(client, "/wait");
	struct h2_call *call;
	int gone = fixture_count(f, &f->gone);
	char data[64];

	call = fixture_take_watch(f);
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 20), -ETIMEDOUT);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(h2_call_write(call, &(char){ (char)i }, 1), 0);
		assert_int_equal(h2_stream_read(s, data, sizeof(data), 5000), 1);
		assert_int_equal(data[0], i);
	}
	assert_false(h2_call_gone(call));
	h2_call_end(call, (struct h2_header[]){ { "status", "done" }, { 0 } });
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 5000), 0);
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 5000), 0);
	assert_string_equal(h2_stream_trailer(s, "status"), "done");
	assert_int_equal(h2_call_write(call, "x", 1), -EPIPE);
	h2_call_unref(call);
	h2_stream_close(s);
	assert_int_equal(fixture_count(f, &f->gone), gone); /* it ended as it should */
}

static void test_watch(void **state)
{
	struct fixture *f = *state;
	struct h2_client *tls = client_tls(f, "127.0.0.1");

	check_watch(f, f->client);
	check_watch(f, tls);
	h2_client_free(tls);
}

static void test_headers_of_stream(void **state)
{
	struct fixture *f = *state;
	struct h2_stream *s = open_stream(f->client, "/lines/2");
	char data[64];
	size_t got = 0;
	ssize_t n;

	assert_string_equal(h2_stream_header(s, "content-type"), "text/plain");
	while ((n = h2_stream_read(s, data + got, 3, 5000)) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	assert_int_equal(got, 14);
	assert_memory_equal(data, "line 0\nline 1\n", 14);
	assert_string_equal(h2_stream_trailer(s, "lines"), "2");
	h2_stream_close(s);
}

static size_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long size, resident;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
	fclose(file);
	return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A reader that does not read holds the server back, and its neighbours not at all. */
static void test_slow_reader(void **state)
{
	struct fixture *f = *state;
	size_t chunk = 256 * 1024, total = 16, before = resident_bytes();
	cleanup_free char *data = xmalloc(chunk), *back = xmalloc(chunk);
	struct h2_stream *slow[6];
	struct h2_call *calls[6];

	fill_pattern(data, chunk);
	for (int i = 0; i < 6; i++) {
		slow[i] = open_stream(f->client, "/wait");
		calls[i] = fixture_take_watch(f);
		for (size_t n = 0; n < total; n++)
			assert_int_equal(h2_call_write(calls[i], data, chunk), 0);
	}
	/* 6 MiB of the client's windows are used up, more than the connection's own. */
	assert_get(f->client, "/header", "none");
	assert_true(resident_bytes() - before < 128 * 1024 * 1024);

	for (int i = 0; i < 6; i++) {
		h2_call_end(calls[i], NULL);
		for (size_t n = 0; n < total; n++) {
			for (size_t got = 0; got < chunk;) {
				ssize_t r = h2_stream_read(slow[i], back + got, chunk - got, 5000);

				assert_true(r > 0);
				got += (size_t)r;
			}
			assert_memory_equal(back, data, chunk);
		}
		assert_int_equal(h2_stream_read(slow[i], back, chunk, 5000), 0);
		h2_call_unref(calls[i]);
		h2_stream_close(slow[i]);
	}
}

/* What is not read is not sent without bound either: the writer is told. */
static void test_too_slow_reader_is_cut(void **state)
{
	struct fixture *f = *state;
	size_t chunk = 512 * 1024, written = 0;
	cleanup_free char *data = xcalloc(1, chunk);
	struct h2_stream *s = open_stream(f->client, "/wait");
	struct h2_call *call = fixture_take_watch(f);
	ssize_t n;
	int r;

	while ((r = h2_call_write(call, data, chunk)) == 0) {
		written += chunk;
		assert_true(written < 16 * 1024 * 1024);
	}
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(h2_call_write(call, data, 1), -EPIPE);
	h2_call_end(call, NULL);
	h2_call_unref(call);
	while ((n = h2_stream_read(s, data, chunk, 5000)) > 0)
		;
	assert_int_equal(n, -ECONNRESET);
	h2_stream_close(s);
}

static void *cancel_later(void *arg)
{
	usleep(50000);
	h2_stream_cancel(arg);
	return NULL;
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	struct h2_stream *s = open_stream(f->client, "/wait");
	struct h2_call *call = fixture_take_watch(f);
	pthread_t thread;
	char data[8];

	assert_int_equal(pthread_create(&thread, NULL, cancel_later, s), 0);
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 10000), -ECANCELED);
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 10000), -ECANCELED);
	pthread_join(thread, NULL);
	h2_stream_close(s);
	fixture_await(f, &f->gone, 1); /* the server learns of it */
	assert_true(h2_call_gone(call));
	assert_int_equal(h2_call_write(call, "x", 1), -EPIPE);
	h2_call_unref(call);
}

static void test_close_tells_server(void **state)
{
	struct fixture *f = *state;
	struct h2_client *other = client_unix(f);

	h2_stream_close(open_stream(f->client, "/wait"));
	fixture_await(f, &f->gone, 1);
	h2_stream_close(NULL);

	/* As does the end of the whole client. */
	struct h2_stream *s = open_stream(other, "/wait");
	char data[8];

	h2_client_free(other);
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 5000), -ECONNRESET);
	h2_stream_close(s);
	fixture_await(f, &f->gone, 2);
}

static void note_gone(struct h2_call *c, void *userdata)
{
	pthread_mutex_lock(userdata);
	pthread_mutex_unlock(userdata);
}

/* A callback that is set too late is called all the same, and only once. */
static void test_gone_already(void **state)
{
	struct fixture *f = *state;
	struct h2_call *call;

	h2_stream_close(open_stream(f->client, "/wait"));
	fixture_await(f, &f->gone, 1);
	call = fixture_take_watch(f);
	h2_call_on_gone(call, note_gone, &f->lock);
	fixture_stop(f); /* the I/O thread has run it before it ends */
	h2_call_on_gone(call, note_gone, &f->lock);
	assert_int_equal(h2_call_write(call, "x", 1), -EPIPE);
	h2_call_unref(call);
	assert_int_equal(fixture_count(f, &f->gone), 1);
}

static void test_server_restart(void **state)
{
	struct fixture *f = *state;
	struct h2_stream *s = open_stream(f->client, "/wait");
	struct h2_call *call = fixture_take_watch(f);
	char data[8];

	fixture_stop(f);
	assert_int_equal(fixture_count(f, &f->gone), 1);
	assert_int_equal(h2_stream_read(s, data, sizeof(data), 5000), -ECONNRESET);
	h2_stream_close(s);
	assert_true(h2_call_gone(call)); /* outlives its server */
	h2_call_end(call, NULL);
	h2_call_unref(call);

	fixture_start(f);
	for (int i = 0; i < 3; i++) {
		assert_get(f->client, "/header", "none");
		fixture_stop(f);
		fixture_start(f);
	}
	check_watch(f, f->client);
}

static void *get_slept(void *arg)
{
	assert_get(arg, "/sleep/300", "slept");
	return NULL;
}

/* What a handler is working on is still answered when the server ends. */
static void test_stop_finishes_running_calls(void **state)
{
	struct fixture *f = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, get_slept, f->client), 0);
	fixture_await(f, &f->handled, 1);
	fixture_stop(f);
	pthread_join(thread, NULL);
}

static void *get_echo(void *arg)
{
	struct h2_response res;

	assert_int_equal(call(arg, "POST", "/echo", "late", 4, &res), 200);
	h2_response_done(&res);
	return NULL;
}

/* A server hands over to its successor: what it has not begun is done by that one. */
static void test_successor_takes_over(void **state)
{
	struct fixture *f = *state;
	struct h2_server *old = f->server;
	pthread_t busy[4], late;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&busy[i], NULL, get_slept, f->client), 0);
	fixture_await(f, &f->handled, 4);
	assert_int_equal(pthread_create(&late, NULL, get_echo, f->client), 0);
	usleep(50000); /* it waits for a worker now */
	fixture_start(f);
	h2_server_free(old);
	pthread_join(late, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(busy[i], NULL);
	assert_int_equal(fixture_count(f, &f->handled), 5);
}

/* Someone who accepts and then says nothing. */
static int silent_listener(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static void test_half_open_peer(void **state)
{
	struct fixture *f = *state;
	struct h2_target target = { .unix_path = f->socket, .ping_ms = 200 };
	struct h2_request req = { .method = "GET", .path = "/wait" };
	struct error err = ERROR_INIT;
	struct h2_client *c;
	struct h2_stream *s;
	int64_t begin = now_ms();
	int status, fd;

	fixture_stop(f);
	fd = silent_listener(f->socket);
	assert_int_equal(h2_client_new(&target, &c, NULL), 0);
	assert_int_equal(h2_stream_open(c, &req, 10000, &s, &status, &err), -ECONNRESET);
	assert_in_range(now_ms() - begin, 200, 5000);
	assert_non_null(strstr(err.message, "does not answer"));
	close(fd);
	unlink(f->socket);

	/* A server that is alive, if silent, keeps its streams. */
	fixture_start(f);
	s = open_stream(c, "/wait");
	assert_int_equal(h2_stream_read(s, &(char){ 0 }, 1, 1000), -ETIMEDOUT);
	h2_stream_close(s);
	h2_client_free(c);
}

/* More streams than a connection carries: another one is made. */
static void test_more_streams_than_a_connection_has(void **state)
{
	struct fixture *f = *state;
	struct h2_stream *streams[300];

	for (int i = 0; i < 300; i++)
		streams[i] = open_stream(f->client, "/wait");
	assert_get(f->client, "/header", "none");
	for (int i = 0; i < 300; i++)
		h2_stream_close(streams[i]);
	fixture_await(f, &f->watches, 300);
	assert_get(f->client, "/header", "none");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_watch),
		WITH_FIXTURE(test_headers_of_stream),
		WITH_FIXTURE(test_slow_reader),
		WITH_FIXTURE(test_too_slow_reader_is_cut),
		WITH_FIXTURE(test_cancel),
		WITH_FIXTURE(test_close_tells_server),
		WITH_FIXTURE(test_gone_already),
		WITH_FIXTURE(test_server_restart),
		WITH_FIXTURE(test_stop_finishes_running_calls),
		WITH_FIXTURE(test_successor_takes_over),
		WITH_FIXTURE(test_half_open_peer),
		WITH_FIXTURE(test_more_streams_than_a_connection_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
