/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "kube/http.h"
#include "kube/url.h"

#include <errno.h>

static const struct kind node = { .group = "coreos.com",
				  .version = "v1",
				  .kind = "StorageNode",
				  .plural = "storagenodes",
				  .namespaced = true };
static const struct kind pv = {
	.group = "", .version = "v1", .kind = "PersistentVolume", .plural = "persistentvolumes"
};

static void paths(void **state)
{
	cleanup_with(buf_done) struct buf a = { 0 };
	cleanup_with(buf_done) struct buf b = { 0 };
	cleanup_with(buf_done) struct buf c = { 0 };

	url_path(&a, &node, "ns", "x y", "status");
	url_query(&a, "fieldManager", "m/1");
	url_query(&a, "force", NULL);
	url_selector(&a, &(struct kube_selector){ "a=b,c in (d,e)", "metadata.name=x" });
	assert_string_equal(a.data, "/apis/coreos.com/v1/namespaces/ns/storagenodes/x%20y/status"
				    "?fieldManager=m%2F1&labelSelector=a%3Db%2Cc%20in%20%28d%2Ce%29"
				    "&fieldSelector=metadata.name%3Dx");
	url_path(&b, &pv, "ignored", "../x", NULL);
	assert_string_equal(b.data, "/api/v1/persistentvolumes/..%2Fx");
	url_path(&c, &node, NULL, NULL, NULL);
	assert_string_equal(c.data, "/apis/coreos.com/v1/storagenodes");
}

static int mapped(int status, const char *body, struct error *err)
{
	cleanup_json json_t *o = body ? quoted(body) : NULL;
	cleanup_free char *text = o ? json_text(o) : NULL;

	return status_error(status, text, text ? strlen(text) : 0, "get X", err);
}

static void errors(void **state)
{
	struct error err = ERROR_INIT;

	assert_int_equal(mapped(404, "{'kind':'Status','message':'x not found'}", &err), -ENOENT);
	assert_string_equal(err.message, "x not found");
	assert_int_equal(mapped(409, "{'reason':'AlreadyExists'}", &err), -EEXIST);
	assert_int_equal(mapped(409, "{'reason':'Conflict'}", &err), -ESTALE);
	assert_int_equal(mapped(409, NULL, &err), -ESTALE);
	assert_int_equal(mapped(410, NULL, &err), -EIDRM);
	assert_int_equal(mapped(422, NULL, &err), -EINVAL);
	assert_int_equal(mapped(413, NULL, &err), -E2BIG);
	assert_int_equal(mapped(401, NULL, &err), -EACCES);
	assert_int_equal(mapped(403, NULL, &err), -EPERM);
	assert_int_equal(mapped(429, NULL, &err), -EAGAIN);
	assert_int_equal(mapped(500, NULL, &err), -EAGAIN);
	assert_string_equal(err.message, "cannot get X: the API answered with HTTP status 500");
}

/* Feeds text in pieces of that size and gives the types seen, as letters, then what ended it. */
static void feed(const char *text, size_t piece, char *seen)
{
	struct watch_lines l = { 0 };
	size_t len = strlen(text);
	int rc = 0;

	for (size_t at = 0; at < len && rc >= 0; at += piece) {
		struct kube_event event;

		assert_int_equal(
			watch_lines_feed(&l, text + at, len - at < piece ? len - at : piece, NULL),
			0);
		while ((rc = watch_lines_next(&l, &event, NULL)) > 0) {
			*seen++ = "AMDB"[event.type];
			json_decref(event.object);
		}
	}
	*seen++ = rc == -EIDRM ? '4' : rc == -EPROTO ? '!' : rc < 0 ? 'x' : '.';
	*seen = 0;
	buf_done(&l.buf);
}

#define EVENT(type)                                                                                \
	"{\"type\":\"" type "\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}\n"

static void lines(void **state)
{
	static const struct {
		const char *text, *seen;
	} cases[] = {
		{ EVENT("ADDED") EVENT("MODIFIED") EVENT("BOOKMARK") EVENT("DELETED"), "AMBD." },
		{ "\n" EVENT("ADDED") "\n\n" EVENT("DELETED"), "AD." },
		{ EVENT("ADDED") "{\"type\":\"MODIFIED\",\"obj", "A." }, /* cut in half */
		{ EVENT("ADDED") "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n", "A4" },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":500}}\n", "x" },
		{ EVENT("NONSENSE"), "!" },
		{ "null\n", "!" },
		{ "{\"type\":\"ADDED\"}\n", "!" },
		{ "garbage\n", "!" },
	};
	char seen[16];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t piece = 1; piece < 200; piece += 7) {
			feed(cases[i].text, piece, seen);
			assert_string_equal(seen, cases[i].seen);
		}
	}
}

static void endless_line(void **state)
{
	struct watch_lines l = { 0 };
	cleanup_free char *chunk = xcalloc(1, 1 << 20);
	int rc = 0;

	memset(chunk, 'x', 1 << 20);
	for (int i = 0; i < 9 && rc == 0; i++)
		rc = watch_lines_feed(&l, chunk, 1 << 20, NULL);
	assert_int_equal(rc, -EPROTO);
	buf_done(&l.buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(errors),
		cmocka_unit_test(lines),
		cmocka_unit_test(endless_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
