/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* What peers do that mean harm, or are broken: frames are made by hand. */
enum {
	DATA = 0,
	HEADERS = 1,
	RST_STREAM = 3,
	SETTINGS = 4,
	PING = 6,
	GOAWAY = 7,
	CONTINUATION = 9
};
enum { END_STREAM = 1, END_HEADERS = 4 };

/* GET http://a/ */
static const char get_request[] = "\x82\x86\x84\x41\x01"
				  "a";
#define GET_LEN 6

static void add_frame(struct buf *b, int type, int flags, uint32_t id, const void *data, size_t len)
{
	const unsigned char head[9] = {
		(unsigned char)(len >> 16), (unsigned char)(len >> 8), (unsigned char)len,
		(unsigned char)type,	    (unsigned char)flags,      (unsigned char)(id >> 24),
		(unsigned char)(id >> 16),  (unsigned char)(id >> 8),  (unsigned char)id,
	};

	buf_add(b, head, sizeof(head));
	if (len > 0)
		buf_add(b, data, len);
}

static void add_greeting(struct buf *b)
{
	buf_add(b, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
	add_frame(b, SETTINGS, 0, 0, NULL, 0);
}

static int dial_raw(const struct fixture *f)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, f->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* Sends as much as the server takes; false when it hangs up, or takes no more for 5 s. */
static bool send_raw(int fd, const struct buf *b, size_t *ret_sent)
{
	size_t done = 0;

	while (done < b->len) {
		struct pollfd p = { .fd = fd, .events = POLLOUT };
		ssize_t n;

		if (poll(&p, 1, 5000) != 1)
			break;
		n = send(fd, b->data + done, b->len - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	if (ret_sent)
		*ret_sent = done;
	return done == b->len;
}

/* Reads until the server hangs up, at most 10 s long; false when it does not. */
static bool read_to_end(int fd, struct buf *ret)
{
	int64_t until = now_ms() + 10000;
	char data[16384];

	while (now_ms() < until) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t n;

		if (poll(&p, 1, 1000) != 1)
			continue;
		n = recv(fd, data, sizeof(data), 0);
		if (n <= 0)
			return true;
		buf_add(ret, data, (size_t)n);
	}
	return false;
}

/* The payload of the first frame of that type, or NULL. */
static const char *find_frame(const struct buf *b, int type, size_t *ret_len)
{
	const unsigned char *p = (const unsigned char *)b->data;

	for (size_t at = 0; at + 9 <= b->len;) {
		size_t len = (size_t)p[at] << 16 | (size_t)p[at + 1] << 8 | p[at + 2];

		if (p[at + 3] == type && at + 9 + len <= b->len) {
			*ret_len = len;
			return b->data + at + 9;
		}
		at += 9 + len;
	}
	return NULL;
}

static void assert_serves(struct fixture *f)
{
	assert_get(f->client, "/header", "none");
}

static void test_not_http2(void **state)
{
	struct fixture *f = *state;
	struct buf in = { 0 }, out = { 0 };
	int fd = dial_raw(f);

	buf_puts(&out, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
	send_raw(fd, &out, NULL);
	assert_true(read_to_end(fd, &in));
	close(fd);
	assert_serves(f);
	buf_done(&in);
	buf_done(&out);
}

static void test_rapid_reset(void **state)
{
	struct fixture *f = *state;
	struct buf in = { 0 }, out = { 0 };
	const char *goaway;
	int fd = dial_raw(f);
	size_t len;

	add_greeting(&out);
	for (uint32_t i = 0; i < 2000; i++) {
		add_frame(&out, HEADERS, END_STREAM | END_HEADERS, 2 * i + 1, get_request, GET_LEN);
		add_frame(&out, RST_STREAM, 0, 2 * i + 1, "\0\0\0\x8", 4);
	}
	send_raw(fd, &out, NULL);
	assert_true(read_to_end(fd, &in));
	goaway = find_frame(&in, GOAWAY, &len);
	assert_non_null(goaway);
	assert_true(fixture_count(f, &f->handled) < 300);
	close(fd);
	assert_serves(f);
	buf_done(&in);
	buf_done(&out);
}

static void test_endless_headers(void **state)
{
	struct fixture *f = *state;
	struct buf in = { 0 }, out = { 0 };
	int fd = dial_raw(f);

	add_greeting(&out);
	add_frame(&out, HEADERS, END_STREAM, 1, get_request, GET_LEN);
	for (int i = 0; i < 5000; i++)
		add_frame(&out, CONTINUATION, 0, 1, "\x82", 1);
	send_raw(fd, &out, NULL);
	assert_true(read_to_end(fd, &in));
	close(fd);
	assert_int_equal(fixture_count(f, &f->handled), 0);
	assert_serves(f);
	buf_done(&in);
	buf_done(&out);
}

/* A few bytes that unfold to 4 MB of header fields. */
static void add_bomb(struct buf *out)
{
	struct buf block = { 0 };

	buf_add(&block, get_request, GET_LEN);
	buf_add(&block, "\x40\x01x\x7f\xa1\x1e", 6); /* x: 4000 bytes, remembered */
	for (int i = 0; i < 4000; i++)
		buf_add(&block, "v", 1);
	for (int i = 0; i < 1000; i++)
		buf_add(&block, "\xbe", 1); /* the same again */
	add_frame(out, HEADERS, END_STREAM | END_HEADERS, 1, block.data, block.len);
	buf_done(&block);
}

static int first_status(const char *block, size_t len)
{
	nghttp2_hd_inflater *inflater;
	nghttp2_nv nv;
	int flags, status = 0;

	assert_int_equal(nghttp2_hd_inflate_new(&inflater), 0);
	if (nghttp2_hd_inflate_hd2(inflater, &nv, &flags, (const uint8_t *)block, len, 1) > 0 &&
	    flags & NGHTTP2_HD_INFLATE_EMIT)
		status = atoi((const char *)nv.value);
	nghttp2_hd_inflate_del(inflater);
	return status;
}

static void test_header_bomb(void **state)
{
	struct fixture *f = *state;
	struct buf in = { 0 }, out = { 0 };
	const char *head;
	int fd = dial_raw(f);
	size_t len = 0;

	add_greeting(&out);
	add_bomb(&out);
	add_frame(&out, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8); /* then it hangs up by itself */
	send_raw(fd, &out, NULL);
	assert_true(read_to_end(fd, &in));
	head = find_frame(&in, HEADERS, &len);
	assert_non_null(head);
	assert_int_equal(first_status(head, len), 431);
	close(fd);
	assert_int_equal(fixture_count(f, &f->handled), 0);
	assert_serves(f);
	buf_done(&in);
	buf_done(&out);
}

/* Questions without end, and no answer read. */
static void test_ping_flood(void **state)
{
	struct fixture *f = *state;
	struct buf out = { 0 };
	int fd = dial_raw(f);
	size_t sent;

	add_greeting(&out);
	for (int i = 0; i < 300000; i++)
		add_frame(&out, PING, 0, 0, "12345678", 8);
	assert_false(send_raw(fd, &out, &sent));
	close(fd);
	assert_serves(f);
	buf_done(&out);
}

static void test_half_a_request(void **state)
{
	struct fixture *f = *state;
	struct buf out = { 0 };

	add_greeting(&out);
	add_frame(&out, HEADERS, END_HEADERS, 1, get_request, GET_LEN);
	add_frame(&out, DATA, 0, 1, "half", 4);
	for (int i = 0; i < 20; i++) {
		int fd = dial_raw(f);

		assert_true(send_raw(fd, &out, NULL));
		close(fd);
	}
	assert_serves(f);
	assert_int_equal(fixture_count(f, &f->handled), 1);
	buf_done(&out);
}

/* Those that say nothing make room for those that do. */
static void test_many_connections(void **state)
{
	struct fixture *f = *state;
	struct h2_client *other = client_unix(f);
	struct h2_request req = { .method = "GET", .path = "/wait" };
	struct h2_stream *s;
	int fds[300], status;
	char byte;

	assert_int_equal(h2_stream_open(f->client, &req, 5000, &s, &status, NULL), 0);
	for (int i = 0; i < 300; i++)
		fds[i] = dial_raw(f);
	assert_get(other, "/header", "none");
	assert_int_equal(h2_stream_read(s, &byte, 1, 100), -ETIMEDOUT); /* still there */
	h2_stream_close(s);
	h2_client_free(other);
	for (int i = 0; i < 300; i++)
		close(fds[i]);
}

struct heavy {
	struct h2_client *client;
	const char *path, *body;
	int status;
};

static void *call_heavy(void *arg)
{
	struct heavy *h = arg;
	struct h2_request req = {
		.method = "POST", .path = h->path, .body = h->body, .body_len = MAX_BODY
	};
	struct h2_response res;

	if (h2_client_call(h->client, &req, 30000, &res, NULL) == 0) {
		h->status = res.status;
		h2_response_done(&res);
	}
	return NULL;
}

/* Requests that together are more than the server wants to keep: some are told to come later. */
static void test_too_much_at_a_time(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *body = xcalloc(1, MAX_BODY);
	struct heavy heavy[40];
	pthread_t threads[40];
	int busy = 0;

	for (int i = 0; i < 40; i++) {
		heavy[i] = (struct heavy){ f->client, "/sleep/200", body, 0 };
		assert_int_equal(pthread_create(&threads[i], NULL, call_heavy, &heavy[i]), 0);
	}
	for (int i = 0; i < 40; i++) {
		pthread_join(threads[i], NULL);
		assert_true(heavy[i].status == 200 || heavy[i].status == 503);
		busy += heavy[i].status == 503;
	}
	assert_in_range(busy, 1, 39);
	for (int i = 0; i < 30; i++) {
		heavy[0].status = 0;
		heavy[0].path = "/sleep/0";
		call_heavy(&heavy[0]);
		assert_int_equal(heavy[0].status, 200); /* nothing stays counted */
		if (i == 0)
			assert_serves(f);
	}
}

/* ---- a server that is late itself --------------------------------------------------------- */

#define LATE_PEERS 64 /* more than it looks at in one round */
#define LATE_MS 10500 /* longer than a peer may take for its first frame */

/* A server in a process of its own; *ret says where. */
static pid_t start_apart(struct fixture *ret)
{
	int way[2];
	pid_t pid;

	assert_int_equal(pipe(way), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		void *state = NULL;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fixture_setup(&state);
		_exit(write(way[1], state, sizeof(*ret)) == sizeof(*ret) && pause());
	}
	assert_int_equal(read(way[0], ret, sizeof(*ret)), sizeof(*ret));
	close(way[0]);
	close(way[1]);
	return pid;
}

static void end_apart(pid_t pid, const struct fixture *f)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	unlink(f->socket);
	rmdir(f->dir);
}

/* It has not run for a while, as on a machine that is busy: those who spoke in time are served. */
static void test_late_server(void **state)
{
	struct fixture f;
	pid_t pid = start_apart(&f);
	struct buf ask = { 0 };
	int fds[LATE_PEERS];
	char data[4096];

	add_greeting(&ask);
	add_frame(&ask, HEADERS, END_STREAM | END_HEADERS, 1, get_request, GET_LEN);
	for (size_t i = 0; i < LATE_PEERS; i++) {
		fds[i] = dial_raw(&f);
		assert_true(recv(fds[i], data, sizeof(data), 0) > 0); /* it was accepted */
	}
	kill(pid, SIGSTOP);
	for (size_t i = 0; i < LATE_PEERS; i++)
		assert_true(send_raw(fds[i], &ask, NULL));
	usleep(LATE_MS * 1000);
	kill(pid, SIGCONT);
	for (size_t i = 0; i < LATE_PEERS; i++) {
		struct buf got = { 0 };
		size_t len;

		while (!find_frame(&got, HEADERS, &len)) {
			ssize_t n = recv(fds[i], data, sizeof(data), 0);

			if (n <= 0)
				fail_msg("peer %zu got no answer", i);
			buf_add(&got, data, (size_t)n);
		}
		buf_done(&got);
		close(fds[i]);
	}
	buf_done(&ask);
	end_apart(pid, &f);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_not_http2),	     WITH_FIXTURE(test_rapid_reset),
		WITH_FIXTURE(test_endless_headers),  WITH_FIXTURE(test_header_bomb),
		WITH_FIXTURE(test_ping_flood),	     WITH_FIXTURE(test_half_a_request),
		WITH_FIXTURE(test_many_connections), WITH_FIXTURE(test_too_much_at_a_time),
		cmocka_unit_test(test_late_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
