/* SPDX-License-Identifier: Apache-2.0 */
/* What qm-client makes of a request, whatever it is sent. */
#include "base/mem.h"
#include "base/str.h"
#include "clients/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

static void whole(void **state)
{
	static const char text[] =
		"{\"op\": \"run\", \"argv\": [\"mount.nfs\", \"-o\", \"ro\"], \"env\": [\"A=b\"],"
		" \"inputLength\": 7, \"outSize\": 1024, \"timeoutMs\": 30000, \"later\": {}}";
	struct client_request r;

	assert_int_equal(client_request_decode(text, strlen(text), &r, NULL), 0);
	assert_int_equal(r.op, CLIENT_RUN);
	assert_string_equal(r.argv[0], "mount.nfs");
	assert_string_equal(r.argv[2], "ro");
	assert_null(r.argv[3]);
	assert_string_equal(r.env[0], "A=b");
	assert_null(r.env[1]);
	assert_int_equal(r.input_len, 7);
	assert_int_equal(r.out_size, 1024);
	assert_int_equal(r.timeout_ms, 30000);
	client_request_done(&r);
}

static void await_end(void **state)
{
	static const char text[] = "{\"op\": \"awaitEnd\", \"program\": \"glusterfs\","
				   " \"lastArgument\": \"/mnt/a\", \"kill\": true}";
	struct client_request r;

	assert_int_equal(client_request_decode(text, strlen(text), &r, NULL), 0);
	assert_int_equal(r.op, CLIENT_AWAIT_END);
	assert_string_equal(r.program, "glusterfs");
	assert_string_equal(r.last_arg, "/mnt/a");
	assert_true(r.kill);
	assert_int_equal(r.timeout_ms, 0);
	client_request_done(&r);
}

static void fuse(void **state)
{
	static const char serve[] = "{\"op\": \"serveFuse\", \"mountPoint\": \"/mnt/a\","
				    " \"argv\": [\"server\", \"/dev/fd/3\"]}",
			  take[] = "{\"op\": \"takeFuse\", \"mountPoint\": \"/mnt/a\"}",
			  watch[] = "{\"op\": \"watch\"}";
	struct client_request r;

	assert_int_equal(client_request_decode(serve, strlen(serve), &r, NULL), 0);
	assert_int_equal(r.op, CLIENT_SERVE_FUSE);
	assert_string_equal(r.mount_point, "/mnt/a");
	assert_string_equal(r.argv[1], "/dev/fd/3");
	assert_null(r.argv[2]);
	client_request_done(&r);
	assert_int_equal(client_request_decode(take, strlen(take), &r, NULL), 0);
	assert_int_equal(r.op, CLIENT_TAKE_FUSE);
	assert_string_equal(r.mount_point, "/mnt/a");
	client_request_done(&r);
	assert_int_equal(client_request_decode(watch, strlen(watch), &r, NULL), 0);
	assert_int_equal(r.op, CLIENT_WATCH);
	client_request_done(&r);
}

static void refused(void **state)
{
	static const char *const texts[] = {
		"",
		"run",
		"[]",
		"{}",
		"{\"op\": \"stop\"}",
		"{\"op\": 1}",
		"{\"op\": \"run\"}",
		"{\"op\": \"run\", \"argv\": []}",
		"{\"op\": \"run\", \"argv\": [\"\"]}",
		"{\"op\": \"run\", \"argv\": [\"a\", 1]}",
		"{\"op\": \"run\", \"argv\": \"mount -t nfs\"}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"env\": {}}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"inputLength\": -1}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"inputLength\": 65537}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"inputLength\": \"7\"}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"outSize\": 1048577}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"timeoutMs\": 3600001}",
		"{\"op\": \"run\", \"argv\": [\"a\"], \"timeoutMs\": 1.5}",
		"{\"op\": \"awaitEnd\", \"program\": \"a\"}",
		"{\"op\": \"awaitEnd\", \"program\": \"\", \"lastArgument\": \"/\"}",
		"{\"op\": \"serveFuse\", \"argv\": [\"a\"]}",
		"{\"op\": \"serveFuse\", \"mountPoint\": \"/a\"}",
		"{\"op\": \"serveFuse\", \"mountPoint\": \"/a\", \"argv\": [\"\"]}",
		"{\"op\": \"serveFuse\", \"mountPoint\": \"a\", \"argv\": [\"a\"]}",
		"{\"op\": \"takeFuse\", \"mountPoint\": 3}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct client_request r;
		struct error err = ERROR_INIT;

		assert_int_equal(client_request_decode(texts[i], strlen(texts[i]), &r, &err),
				 -EINVAL);
		assert_string_not_equal(err.message, "");
	}
}

static void bounds(void **state)
{
	struct buf text = { 0 };
	struct client_request r;

	for (int extra = 0; extra <= 1; extra++) {
		buf_puts(&text, "{\"op\": \"run\", \"argv\": [\"a\"");
		for (int i = 1; i < CLIENT_WORDS_MAX + extra; i++)
			buf_puts(&text, ", \"a\"");
		buf_puts(&text, "]}");
		assert_int_equal(client_request_decode(text.data, text.len, &r, NULL),
				 extra ? -EINVAL : 0);
		if (!extra)
			client_request_done(&r);
		buf_done(&text);
		text = (struct buf){ 0 };
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole),   cmocka_unit_test(await_end), cmocka_unit_test(fuse),
		cmocka_unit_test(refused), cmocka_unit_test(bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
