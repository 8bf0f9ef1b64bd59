/* SPDX-License-Identifier: Apache-2.0 */
#include "../skip.h"
#include "fixture.h"

#include "base/str.h"
#include "grpc/wire.h"
#include "h2/h2.h"

#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

/* Callers of other makes: those that do things differently, and those that do them wrong. */

#define CREATE "/csi.v1.Controller/CreateVolume"

struct attempt {
	const char *method, *path, *authority;
	const char *type; /* content-type */
	struct h2_header more[3];
	const void *body;
	size_t len;
};

/* CreateVolume of "v". */
static const uint8_t good[] = { 0, 0, 0, 0, 3, 0x0a, 1, 'v' };

static struct attempt usual(void)
{
	return (struct attempt){ .method = "POST",
				 .path = CREATE,
				 .type = "application/grpc",
				 .body = good,
				 .len = sizeof(good) };
}

static void attempt(const struct fixture *f, const struct attempt *a, struct h2_response *ret)
{
	struct h2_target target = { .unix_path = f->socket, .authority = a->authority };
	struct h2_header headers[6] = { { "te", "trailers" } };
	struct h2_request req = { a->method, a->path, headers, a->body, a->len };
	struct error err = ERROR_INIT;
	struct h2_client *c;
	size_t n = 1;

	if (a->type)
		headers[n++] = (struct h2_header){ "content-type", a->type };
	for (size_t i = 0; a->more[i].name; i++)
		headers[n++] = a->more[i];
	assert_int_equal(h2_client_new(&target, &c, NULL), 0);
	if (h2_client_call(c, &req, 10000, ret, &err) < 0)
		fail_msg("%s", err.message);
	h2_client_free(c);
}

static void assert_served(const struct fixture *f, const struct attempt *a)
{
	struct h2_response res;

	attempt(f, a, &res);
	assert_int_equal(res.status, 200);
	assert_string_equal(h2_response_header(&res, "content-type"), "application/grpc");
	assert_null(h2_response_header(&res, "grpc-status"));
	assert_string_equal(h2_response_trailer(&res, "grpc-status"), "0");
	assert_true(res.body.len > GRPC_FRAME_HEAD);
	h2_response_done(&res);
}

/* An answer that is nothing but trailers; word has to be in its sentence. */
static void assert_refused(const struct fixture *f, const struct attempt *a, int status,
			   enum grpc_code code, const char *word)
{
	struct h2_response res;

	attempt(f, a, &res);
	assert_int_equal(res.status, status);
	assert_string_equal(h2_response_header(&res, "content-type"), "application/grpc");
	assert_int_equal(atoi(h2_response_header(&res, "grpc-status")), code);
	if (!strstr(h2_response_header(&res, "grpc-message"), word))
		fail_msg("%s", h2_response_header(&res, "grpc-message"));
	assert_null(h2_response_header(&res, "content-length"));
	assert_null(res.trailers[0].name);
	assert_int_equal(res.body.len, 0);
	if (code == GRPC_UNIMPLEMENTED)
		assert_string_equal(h2_response_header(&res, "grpc-accept-encoding"), "identity");
	h2_response_done(&res);
}

static void test_authorities(void **state)
{
	struct fixture *f = *state;
	const char *const authorities[] = {
		"localhost", f->socket, "%2Ftmp%2Fplugins%2Fcsi.sock", "unix:///tmp/csi.sock",
		"a%00b",     "[::]",
	};
	struct attempt a = usual();

	for (size_t i = 0; i < ARRAY_SIZE(authorities); i++) {
		a.authority = authorities[i];
		assert_served(f, &a);
	}
}

static void test_content_types(void **state)
{
	struct fixture *f = *state;
	static const char *const fine[] = { "application/grpc", "application/grpc+proto",
					    "application/grpc;charset=utf-8" };
	static const char *const other[] = { NULL, "application/json", "application/grpc+json",
					     "application/grpc-web" };
	struct attempt a = usual();

	for (size_t i = 0; i < ARRAY_SIZE(fine); i++) {
		a.type = fine[i];
		assert_served(f, &a);
	}
	for (size_t i = 0; i < ARRAY_SIZE(other); i++) {
		a.type = other[i];
		assert_refused(f, &a, 415, GRPC_INVALID_ARGUMENT, "content-type");
	}
	a = usual();
	a.method = "PUT";
	assert_refused(f, &a, 405, GRPC_INTERNAL, "POST");
}

static void test_paths(void **state)
{
	struct fixture *f = *state;
	static const char *const paths[] = {
		"/",
		"/csi.v1.Controller",
		"/csi.v1.Controller/",
		"/csi.v1.Controller/createVolume",
		"/csi.v1.Controller/CreateVolume/",
		"//CreateVolume",
		"/Controller/CreateVolume",
		"/csi.v1.Controller/CreateVolume?x",
		"/csi.v0.Controller/CreateVolume",
		"/csi.v1.Controller//CreateVolume",
		"/csi.v1.ControllerX/CreateVolume",
	};
	struct attempt a = usual();

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		a.path = paths[i];
		assert_refused(f, &a, 200, GRPC_UNIMPLEMENTED, "here");
	}
}

static void test_frames(void **state)
{
	struct fixture *f = *state;
	uint8_t twice[2 * sizeof(good)], body[sizeof(good)];
	struct attempt a = usual();

	memcpy(twice, good, sizeof(good));
	memcpy(twice + sizeof(good), good, sizeof(good));
	for (a.len = 0; a.len < sizeof(good); a.len++)
		assert_refused(f, &a, 200, GRPC_INTERNAL, "The body");
	a.body = twice;
	a.len = sizeof(twice);
	assert_refused(f, &a, 200, GRPC_INTERNAL, "one message");

	memcpy(body, good, sizeof(good));
	a = usual();
	a.body = body;
	body[0] = 1;
	assert_refused(f, &a, 200, GRPC_INTERNAL, "grpc-encoding");
	a.more[0] = (struct h2_header){ "grpc-encoding", "gzip" };
	assert_refused(f, &a, 200, GRPC_UNIMPLEMENTED, "gzip");
	body[0] = 0; /* what is small is often not compressed */
	assert_served(f, &a);
	body[0] = 2;
	assert_refused(f, &a, 200, GRPC_INTERNAL, "flag 2");
	body[0] = 0;
	body[1] = 0xff; /* 4 GiB are announced */
	assert_refused(f, &a, 200, GRPC_RESOURCE_EXHAUSTED, "at most");
}

static void test_messages(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *bytes;
		size_t len;
		const char *word;
	} table[] = {
		{ "\x0a\x01\xff", 3, "UTF-8" }, /* not UTF-8 */
		{ "\x0a\x02\xc0\x80", 4, "UTF-8" }, /* a NUL in two bytes */
		{ "\x0a\x03v\0w", 5, "UTF-8" }, /* a NUL, behind which more comes */
		{ "\x22\x05\x0a\x01k\x12\x01", 7, "no message" }, /* a map entry, cut off */
		{ "\x22\x06\x0a\x01k\x12\x01\xff", 8, "UTF-8" }, /* a parameter's value */
		{ "\x0a\x05v", 3, "no message" }, /* longer than what is there */
		{ "\x08\x01", 2, "no message" }, /* the name as a number */
		{ "\x0b", 1, "no message" }, /* a group */
		{ "\x02\x01v", 3, "no message" }, /* field 0 */
		{ "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 11, "no message" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		uint8_t body[64];
		struct attempt a = usual();

		frame_head(body, table[i].len);
		memcpy(body + GRPC_FRAME_HEAD, table[i].bytes, table[i].len);
		a.body = body;
		a.len = GRPC_FRAME_HEAD + table[i].len;
		assert_refused(f, &a, 200, GRPC_INTERNAL, table[i].word);
	}
}

/* Two bytes each, a hundred in memory. */
static void test_memory(void **state)
{
	struct fixture *f = *state;
	size_t len = 3 * 1024 * 1024;
	cleanup_free uint8_t *body = xcalloc(1, GRPC_FRAME_HEAD + len);
	struct attempt a = usual();

	frame_head(body, len);
	for (size_t i = 0; i < len; i += 2)
		body[GRPC_FRAME_HEAD + i] = 0x1a; /* an empty capability */
	a.body = body;
	a.len = GRPC_FRAME_HEAD + len;
	assert_refused(f, &a, 200, GRPC_RESOURCE_EXHAUSTED, "memory");
}

static void test_timeouts(void **state)
{
	struct fixture *f = *state;
	static const char *const bad[] = { "", "m", "5", "5x", "123456789m", "-1S", "1 S", "1SS" };
	struct attempt a = usual();

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		a.more[0] = (struct h2_header){ "grpc-timeout", bad[i] };
		assert_refused(f, &a, 200, GRPC_INTERNAL, "grpc-timeout");
	}
	a.more[0].value = "0S";
	assert_refused(f, &a, 200, GRPC_DEADLINE_EXCEEDED, "time");
	a.more[0].value = "99999999H";
	assert_served(f, &a);
}

static void test_metadata(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *value = xcalloc(1, 60 * 1024 + 1);
	struct attempt a = usual();

	memset(value, 'm', 60 * 1024);
	a.more[0] = (struct h2_header){ "x-large", value };
	a.more[1] = (struct h2_header){ "x-bytes-bin", "AAEC/w" };
	assert_served(f, &a);
}

/* The server checks fields itself, so that any :authority will do. */
static void test_fields(void **state)
{
	struct fixture *f = *state;
	struct h2_target target = { .unix_path = f->socket };
	const struct h2_header headers[] = { { "content-type", "application/grpc" }, { 0 } };
	struct h2_request req = { "POST", CREATE "\x01", headers, good, sizeof(good) };
	struct attempt a = usual();
	struct h2_response res;
	struct h2_client *c;

	a.more[0] = (struct h2_header){ "grpc-timeout", " 0S" }; /* left out for its blank */
	a.more[1] = (struct h2_header){ "x-control", "\x01" };
	assert_served(f, &a);
	assert_int_equal(h2_client_new(&target, &c, NULL), 0);
	assert_int_equal(h2_client_call(c, &req, 10000, &res, NULL), -ECONNRESET);
	req.path = CREATE;
	assert_int_equal(h2_client_call(c, &req, 10000, &res, NULL), 0);
	h2_response_done(&res);
	h2_client_free(c);
}

static void test_too_much(void **state)
{
	struct fixture *f = *state;
	size_t len = 6 * 1024 * 1024;
	cleanup_free char *name = xcalloc(1, len + 1);
	struct attempt a = usual();

	memset(name, 'n', len);
	a.body = name;
	a.len = len;
	assert_refused(f, &a, 200, GRPC_RESOURCE_EXHAUSTED, "too large");
	for (int i = 0; i < 3; i++) { /* the connection serves on */
		name[i == 1 ? 100 : len] = 0;
		assert_int_equal(create(f->client, name, NULL, NULL), i == 1 ? 0 : -ENOSPC);
		name[100] = 'n';
	}
}

/* POST http://a/ and the beginning of a body; the rest never comes. */
static const char half_request[] = NGHTTP2_CLIENT_MAGIC "\0\0\0\4\0\0\0\0\0"
							"\0\0\6\1\4\0\0\0\1\x83\x86\x84\x41\1a"
							"\0\0\x80\0\0\0\0\0\1";

/* Reads frames, for 10 s at most, until one of that type is there; false where none came. */
static bool await_frame(int fd, uint8_t type, uint8_t *payload, size_t size)
{
	struct timeval limit = { .tv_sec = 10 };
	uint8_t head[9], data[16384];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	while (recv(fd, head, sizeof(head), MSG_WAITALL) == sizeof(head)) {
		size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];

		assert_true(len <= sizeof(data));
		if (len > 0 && recv(fd, data, len, MSG_WAITALL) != (ssize_t)len)
			break;
		if (head[3] != type)
			continue;
		memcpy(payload, data, len < size ? len : size);
		return true;
	}
	return false;
}

/* What is refused in the middle counts as a stream no longer: the peer may think it has ended. */
static void test_half_is_refused(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint8_t reason[4] = { 0xff }, body[128] = { 0 };

	fixture_restart(f, 0, 100);
	strcpy(addr.sun_path, f->socket);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, half_request, sizeof(half_request) - 1, 0),
			 sizeof(half_request) - 1);
	assert_int_equal(send(fd, body, sizeof(body), 0), sizeof(body));
	assert_true(await_frame(fd, NGHTTP2_HEADERS, body, sizeof(body)));
	assert_true(await_frame(fd, NGHTTP2_RST_STREAM, reason, sizeof(reason)));
	assert_memory_equal(reason, "\0\0\0\0", 4);
}

static void test_mode(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	if (geteuid() != 0)
		skip_without("root");
	assert_int_equal(stat(f->socket, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

/* Somebody who is not root: a process, made before there are threads, that waits for a path. */
struct nobody {
	pid_t pid;
	int fd;
};

static void nobody_main(int fd)
{
	struct fixture f = { 0 };
	enum grpc_code code = GRPC_UNKNOWN;

	if (read(fd, f.socket, sizeof(f.socket)) != sizeof(f.socket) || setgid(65534) < 0 ||
	    setuid(65534) < 0)
		_exit(100);
	create(new_client(&f), "v", &code, NULL);
	_exit((int)code);
}

static struct nobody nobody_new(void)
{
	struct nobody n;
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	n.pid = fork();
	assert_true(n.pid >= 0);
	if (n.pid == 0)
		nobody_main(fds[0]);
	close(fds[0]);
	n.fd = fds[1];
	return n;
}

/* The code that it gets from the fixture's server. */
static int nobody_calls(struct nobody *n, const struct fixture *f)
{
	int status;

	assert_int_equal(write(n->fd, f->socket, sizeof(f->socket)), sizeof(f->socket));
	close(n->fd);
	assert_int_equal(waitpid(n->pid, &status, 0), n->pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_nobody(void **state)
{
	struct nobody first, second;
	struct fixture *f;

	if (geteuid() != 0)
		skip_without("root");
	first = nobody_new();
	second = nobody_new();
	fixture_setup((void **)&f);
	chmod(f->dir, 0755);
	assert_int_equal(nobody_calls(&first, f), GRPC_UNAVAILABLE); /* by the file's mode */
	chmod(f->socket, 0666);
	assert_int_equal(nobody_calls(&second, f), GRPC_PERMISSION_DENIED);
	assert_create(f->client, "root");
	fixture_teardown((void **)&f);
}

static void test_anyone(void **state)
{
	struct nobody nobody;
	struct fixture *f;

	if (geteuid() != 0)
		skip_without("root");
	nobody = nobody_new();
	fixture_setup_anyone((void **)&f);
	chmod(f->dir, 0755);
	assert_int_equal(nobody_calls(&nobody, f), GRPC_OK);
	fixture_teardown((void **)&f);
}

/* ---- servers of other makes ------------------------------------------------------------ */

struct answer {
	int status;
	struct h2_header headers[4];
	const char *body;
	size_t len;
	struct h2_header trailers[3];
	enum grpc_code want;
	const char *word;
};

static void give_answer(struct h2_call *c, void *userdata)
{
	const struct answer *const *a = userdata;

	h2_call_start(c, (*a)->status, (*a)->headers);
	h2_call_write(c, (*a)->body, (*a)->len);
	h2_call_end(c, (*a)->trailers);
}

#define GRPC_TYPE                                                                                  \
	{                                                                                          \
		"content-type", "application/grpc"                                                 \
	}
#define STATUS_0                                                                                   \
	{                                                                                          \
		"grpc-status", "0"                                                                 \
	}

static const struct answer answers[] = {
	{ 200,
	  { GRPC_TYPE },
	  "\0\0\0\0\0",
	  5,
	  { { "grpc-status", "5" }, { "grpc-message", "%C3%bC%zz%" } },
	  GRPC_NOT_FOUND,
	  "\xc3\xbc%zz%" },
	{ 200, { GRPC_TYPE }, "", 0, { { "grpc-status", "17" } }, GRPC_UNKNOWN, "UNKNOWN" },
	{ 200, { GRPC_TYPE }, "", 0, { { "grpc-status", "zero" } }, GRPC_UNKNOWN, "UNKNOWN" },
	{ 200, { GRPC_TYPE }, "\0\0\0\0\0", 5, { { "x", "y" } }, GRPC_UNKNOWN, "no gRPC status" },
	{ 200, { GRPC_TYPE }, "", 0, { STATUS_0 }, GRPC_INTERNAL, "no message" },
	{ 200, { GRPC_TYPE }, "\0\0\0\0\2\x0a\0", 6, { STATUS_0 }, GRPC_INTERNAL, "one message" },
	{ 200, { GRPC_TYPE }, "\1\0\0\0\0", 5, { STATUS_0 }, GRPC_INTERNAL, "compressed" },
	{ 200,
	  { GRPC_TYPE },
	  "\0\0\0\0\5\x0a\3\x12\1\xff",
	  10,
	  { STATUS_0 },
	  GRPC_INTERNAL,
	  "UTF-8" },
	{ 200,
	  { { "content-type", "text/html" } },
	  "hello",
	  5,
	  { STATUS_0 },
	  GRPC_UNKNOWN,
	  "HTTP" },
	{ 503,
	  { { "content-type", "text/html" } },
	  "hello",
	  5,
	  { { 0 } },
	  GRPC_UNAVAILABLE,
	  "503" },
	{ 404, { { 0 } }, "", 0, { { 0 } }, GRPC_UNIMPLEMENTED, "404" },
	{ 403, { { 0 } }, "", 0, { { 0 } }, GRPC_PERMISSION_DENIED, "403" },
};

static void test_answers(void **state)
{
	struct fixture *f = *state;
	const struct answer *a = answers;
	struct h2_listen listen = { .unix_path = f->socket, .tcp_port = -1, .max_body = 1000 };
	struct h2_server *s;

	grpc_server_free(f->server);
	f->server = NULL;
	assert_int_equal(h2_server_start(&listen, give_answer, &a, &s, NULL), 0);
	for (; a < answers + ARRAY_SIZE(answers); a++) {
		struct error err = ERROR_INIT;
		enum grpc_code code = GRPC_OK;

		assert_true(create(f->client, "v", &code, &err) < 0);
		if (code != a->want || !strstr(err.message, a->word))
			fail_msg("answer %zd: %s: %s", a - answers, grpc_code_name(code),
				 err.message);
	}
	h2_server_free(s);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_fixture(test_authorities), with_fixture(test_content_types),
		with_fixture(test_paths),	with_fixture(test_frames),
		with_fixture(test_messages),	with_fixture(test_memory),
		with_fixture(test_timeouts),	with_fixture(test_metadata),
		with_fixture(test_fields),	with_fixture(test_too_much),
		with_fixture(test_mode),	with_fixture(test_half_is_refused),
		cmocka_unit_test(test_nobody),	cmocka_unit_test(test_anyone),
		with_fixture(test_answers),
	};

	return cmocka_run_group_tests_name("grpc-peer", tests, NULL, NULL);
}
