/* SPDX-License-Identifier: Apache-2.0 */
#include "../skip.h"
#include "fixture.h"

#include "base/file.h"
#include "base/spawn.h"

#include <errno.h>
#include <stdio.h>

/* Other people's clients against our server; each test is skipped where its program is missing. */

/* What the program printed; the test is skipped where there is no such program. */
static char *run(const char *const *argv)
{
	struct spawn spawn = { .argv = argv, .timeout_ms = 30000 };
	struct spawn_result res = { 0 };
	int r = spawn_run(&spawn, &res, NULL);
	char *out;

	if (r == -ENOENT)
		skip_without("%s", argv[0]);
	assert_int_equal(r, 0);
	if (res.status != 0)
		print_error("%s: %s\n", argv[0], res.err.data ? res.err.data : "");
	assert_int_equal(res.status, 0);
	out = buf_take(&res.out);
	spawn_result_done(&res);
	return out;
}
#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static char *url(const struct fixture *f, const char *path)
{
	return xasprintf("https://127.0.0.1:%d%s", h2_server_port(f->server), path);
}

static void test_curl_unix(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *out =
		RUN("curl", "-sS", "--http2-prior-knowledge", "--unix-socket", f->socket, "-d",
		    "hello", "-w", " %{http_version} %{http_code}", "http://localhost/echo");

	assert_string_equal(out, "hello 2 200");
}

static void test_curl_tls(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *ca = xasprintf("%s/ca.pem", f->dir);
	cleanup_free char *where = url(f, "/bytes/3000000");
	cleanup_free char *out = NULL;

	assert_int_equal(file_write(ca, f->ca, strlen(f->ca), 0600, NULL), 0);
	out = RUN("curl", "-sS", "--http2", "--cacert", ca, "-o", "/dev/null", "-w",
		  "%{http_version} %{http_code} %{size_download}", where);
	unlink(ca);
	assert_string_equal(out, "2 200 3000000");
}

static void test_curl_too_large(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *file = xasprintf("%s/large", f->dir);
	cleanup_free char *data = xcalloc(1, 2 * MAX_BODY);
	cleanup_free char *argument = xasprintf("@%s", file);
	cleanup_free char *out = NULL;

	assert_int_equal(file_write(file, data, 2 * MAX_BODY, 0600, NULL), 0);
	out = RUN("curl", "-sS", "--http2-prior-knowledge", "--unix-socket", f->socket,
		  "--data-binary", argument, "-o", "/dev/null", "-w", "%{http_code}",
		  "http://localhost/echo");
	unlink(file);
	assert_string_equal(out, "413");
}

static void test_nghttp(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *where = url(f, "/lines/3");
	cleanup_free char *out = RUN("nghttp", "-v", "--no-verify-peer", where);

	assert_non_null(strstr(out, "line 2\n"));
	assert_non_null(strstr(out, "lines: 3"));
	assert_null(strstr(out, "RST_STREAM"));
}

static void test_h2load(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *where = url(f, "/bytes/20000");
	cleanup_free char *out = RUN("h2load", "-n", "2000", "-c", "8", "-m", "32", where);

	assert_non_null(strstr(out, "2000 succeeded, 0 failed, 0 errored"));
}

/* Go's client. */
static void test_kubectl(void **state)
{
	struct fixture *f = *state;
	cleanup_free char *ca = xasprintf("%s/ca.pem", f->dir);
	cleanup_free char *server = url(f, "");
	cleanup_free char *out = NULL;

	assert_int_equal(file_write(ca, f->ca, strlen(f->ca), 0600, NULL), 0);
	out = RUN("kubectl", "--kubeconfig", "/dev/null", "--server", server,
		  "--certificate-authority", ca, "--token", "none", "get", "--raw", "/lines/2");
	unlink(ca);
	assert_string_equal(out, "line 0\nline 1\n");
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FIXTURE(test_curl_unix),	   WITH_FIXTURE(test_curl_tls),
		WITH_FIXTURE(test_curl_too_large), WITH_FIXTURE(test_nghttp),
		WITH_FIXTURE(test_h2load),	   WITH_FIXTURE(test_kubectl),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
