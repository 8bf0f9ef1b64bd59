/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/file.h"
#include "h2/h2.h"

#include <errno.h>
#include <stdatomic.h>

/* The client against a server that says what the test wants: busy, moody, cut off. */
static char dir[64], sock[100], token_path[100];
static struct h2_server *server;
static atomic_int asked; /* requests since the test began */
static char last_query[300]; /* of the latest request */
static char last_type[100], last_body[2000];

static void reply(struct h2_call *c, int status, const char *body)
{
	h2_call_reply(c, status, NULL, body, strlen(body));
}

static void answer_page(struct h2_call *c)
{
	const char *path = h2_call_path(c);

	if (strstr(path, "continue=two"))
		reply(c, 200,
		      "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[{\"metadata\":{"
		      "\"name\":\"c\"}}]}");
	else
		reply(c, 200,
		      "{\"metadata\":{\"resourceVersion\":\"9\",\"continue\":\"two\"},"
		      "\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":"
		      "\"b\"}}]}");
}

static void answer_expired(struct h2_call *c)
{
	const char *path = h2_call_path(c);

	if (strstr(path, "continue="))
		reply(c, 410, "{\"reason\":\"Expired\"}");
	else if (strstr(path, "limit="))
		answer_page(c);
	else
		reply(c, 200,
		      "{\"metadata\":{\"resourceVersion\":\"11\"},\"items\":[{\"metadata\":"
		      "{\"name\":\"x\"}}]}");
}

#define EVENT(type, version)                                                                       \
	"{\"type\":\"" type                                                                        \
	"\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"" version "\"}}}\n"

static void answer_watch(struct h2_call *c)
{
	static const char whole[] = EVENT("ADDED", "5");
	const char *path = h2_call_path(c);

	if (strstr(path, "resourceVersion=1&") || str_has_suffix(path, "resourceVersion=1")) {
		reply(c, 410, "{\"message\":\"too old\",\"code\":410}");
		return;
	}
	h2_call_start(c, 200, NULL);
	h2_call_write(c, whole, 20);
	h2_call_write(c, whole + 20, sizeof(whole) - 1 - 20);
	if (strstr(path, "resourceVersion=2"))
		h2_call_write(c, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n", 40);
	else
		h2_call_write(c, whole, 30); /* cut in half */
	h2_call_end(c, NULL);
}

static void answer(struct h2_call *c, void *userdata)
{
	const char *path = h2_call_path(c), *query = strchr(path, '?');
	int n = atomic_fetch_add(&asked, 1) + 1;
	size_t len;
	const void *body = h2_call_body(c, &len);
	const char *type = h2_call_header(c, "content-type");

	snprintf(last_query, sizeof(last_query), "%s", query ? query : "");
	snprintf(last_type, sizeof(last_type), "%s", type ? type : "");
	snprintf(last_body, sizeof(last_body), "%.*s", (int)len, (const char *)body);
	if (!streq(h2_call_header(c, "authorization"), "Bearer good"))
		reply(c, 401, "{\"message\":\"who are you?\"}");
	else if (strstr(path, "watch=1"))
		answer_watch(c);
	else if (strstr(path, "/busy"))
		h2_call_reply(c, n < 3 ? 503 : 200,
			      (const struct h2_header[]){ { "retry-after", "0" }, { 0 } }, "{}", 2);
	else if (strstr(path, "/flood"))
		reply(c, n < 3 ? 429 : 200, "{}");
	else if (strstr(path, "/ill"))
		reply(c, n < 3 ? 500 : 200, "{}");
	else if (streq(h2_call_method(c), "POST") || strstr(path, "/always-busy"))
		reply(c, 503, "{\"message\":\"come back later\"}");
	else if (strstr(path, "/namespaces/expired/"))
		answer_expired(c);
	else if (strstr(path, "limit="))
		answer_page(c);
	else if (strstr(path, "/nonsense"))
		reply(c, 200, "<html>");
	else
		reply(c, 200, "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"}}");
}

static struct kube *connect_to(const char *path, const char *token_file)
{
	struct kube_config config = { .unix_path = (char *)path,
				      .token = token_file ? NULL : (char *)"good",
				      .token_file = (char *)token_file,
				      .manager = (char *)"tester",
				      .timeout_ms = 5000 };
	struct kube *k;

	atomic_store(&asked, 0);
	assert_int_equal(kube_connect(&config, &k, NULL), 0);
	return k;
}

static void cleanup_kube_p(struct kube **k)
{
	kube_free(*k);
}
#define cleanup_kube cleanup_with(cleanup_kube_p)

static void reads_are_tried_again(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	struct error err = ERROR_INIT;

	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "default", "busy", NULL, &err), 0);
	assert_int_equal(atomic_load(&asked), 3);
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "default", "always-busy", NULL, &err),
			 -EAGAIN);
	assert_int_equal(atomic_load(&asked), 3 + 5);
	assert_string_equal(err.message, "come back later");
}

static void writes_are_not(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	cleanup_json json_t *o = quoted("{'metadata':{'name':'x','namespace':'n'}}");

	assert_int_equal(kube_create(k, &KIND_CONFIGMAP, o, NULL, NULL), -EAGAIN);
	assert_int_equal(atomic_load(&asked), 1);
	assert_string_equal(last_query, "?fieldManager=tester");
}

/* … but for one that the server surely has not carried out. */
static void refused_writes_are(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	cleanup_json json_t *patch = quoted("{'a':1}");

	assert_int_equal(kube_patch(k, &KIND_CONFIGMAP, "n", "flood", NULL, KUBE_PATCH_MERGE, patch,
				    NULL, NULL),
			 0);
	assert_int_equal(atomic_load(&asked), 3);
	atomic_store(&asked, 0);
	assert_int_equal(kube_patch(k, &KIND_CONFIGMAP, "n", "ill", NULL, KUBE_PATCH_MERGE, patch,
				    NULL, NULL),
			 -EAGAIN);
	assert_int_equal(atomic_load(&asked), 1);
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "n", "ill", NULL, NULL), 0);
}

/* Two tokens, as a plugin gives them one after the other. */
static void plugin_runs_again(void **state)
{
	cleanup_free char *path = xasprintf("%s/plugin", dir), *ran = xasprintf("%s/ran", dir);
	cleanup_free char *script = xasprintf(
		"#!/bin/sh\ntoken=bad\n[ ! -e %s ] || token=good\necho x >> %s\n"
		"echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"
		"v1beta1\",\"status\":{\"token\":\"'$token'\"}}'\n",
		ran, ran);
	cleanup_json json_t *exec = json_pack(
		"{ss ss}", "apiVersion", "client.authentication.k8s.io/v1beta1", "command", path);
	struct kube_config config = { .unix_path = sock, .exec = exec, .timeout_ms = 5000 };
	cleanup_free char *runs = NULL;
	cleanup_kube struct kube *k = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(file_write(path, script, strlen(script), 0700, NULL), 0);
	assert_int_equal(kube_connect(&config, &k, NULL), 0);
	for (int i = 0; i < 3; i++) {
		if (kube_get(k, &KIND_CONFIGMAP, "n", "x", NULL, &err) < 0)
			fail_msg("%s", err.message);
	}
	assert_int_equal(file_read(ran, 0, &runs, NULL, NULL), 0);
	assert_string_equal(runs, "x\nx\n");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "n", "x", NULL, &err), 0);
}

static void writes_say_what_they_are(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	cleanup_json json_t *patch = quoted("{'a':1}");

	assert_int_equal(kube_patch(k, &KIND_CONFIGMAP, "n", "x", "status", KUBE_PATCH_MERGE, patch,
				    NULL, NULL),
			 0);
	assert_string_equal(last_type, "application/merge-patch+json");
	assert_int_equal(
		kube_patch(k, &KIND_CONFIGMAP, "n", "x", NULL, KUBE_PATCH_APPLY, patch, NULL, NULL),
		0);
	assert_string_equal(last_type, "application/apply-patch+yaml");
	assert_non_null(strstr(last_query, "force=true"));
	assert_int_equal(kube_delete(k, &KIND_CONFIGMAP, "n", "x",
				     &(struct kube_delete_options){ .uid = "u" }, NULL),
			 0);
	assert_non_null(strstr(last_body, "\"preconditions\":{\"uid\":\"u\"}"));
}

static void pages(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;

	assert_int_equal(kube_list(k, &KIND_CONFIGMAP, "default", NULL, &items, &version, NULL), 0);
	assert_int_equal(json_array_size(items), 3);
	assert_string_equal(version, "9");
	assert_string_equal(jstr(json_array_get(items, 2), "kind"), "ConfigMap");
	assert_string_equal(jstr(json_array_get(items, 2), "apiVersion"), "v1");
}

static void pages_that_expire(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;

	assert_int_equal(kube_list(k, &KIND_CONFIGMAP, "expired", NULL, &items, &version, NULL), 0);
	assert_int_equal(json_array_size(items), 1);
	assert_string_equal(object_name(json_array_get(items, 0)), "x");
	assert_string_equal(version, "11");
}

static void token_is_read_again(void **state)
{
	struct error err = ERROR_INIT;

	assert_int_equal(file_write(token_path, "old\n", 4, 0600, NULL), 0);
	cleanup_kube struct kube *k = connect_to(sock, token_path);
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "n", "x", NULL, &err), -EACCES);
	assert_string_equal(err.message, "who are you?");
	assert_int_equal(file_write(token_path, "good\n", 5, 0600, NULL), 0);
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "n", "x", NULL, &err), 0);
}

/* The letters of the events that come, then how it ended. */
static void watch(struct kube *k, const char *version, char *seen)
{
	struct kube_watch *w;
	struct kube_event event;
	int rc = k->ops->watch(k, &KIND_CONFIGMAP, NULL, NULL, version, &w, NULL);

	if (rc == 0) {
		while ((rc = k->ops->watch_next(w, 3000, &event, NULL)) > 0) {
			*seen++ = "AMDB"[event.type];
			json_decref(event.object);
		}
		k->ops->watch_close(w);
	}
	*seen++ = rc == 0 ? '.' : rc == -EIDRM ? '4' : 'x';
	*seen = 0;
}

static void watches(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);
	char seen[10];

	watch(k, "1", seen);
	assert_string_equal(seen, "4"); /* 410 as a status */
	watch(k, "2", seen);
	assert_string_equal(seen, "A4"); /* 410 as an event */
	watch(k, "3", seen);
	assert_string_equal(seen, "A."); /* the half line counts for nothing */
	assert_non_null(strstr(last_query, "allowWatchBookmarks=true"));
	assert_non_null(strstr(last_query, "timeoutSeconds="));
}

static void unreachable(void **state)
{
	cleanup_free char *nowhere = xasprintf("%s/nowhere.sock", dir);
	cleanup_kube struct kube *k = connect_to(nowhere, NULL);
	struct error err = ERROR_INIT;

	/* no socket is not "no such object" */
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "n", "x", NULL, &err), -EAGAIN);
	assert_non_null(strstr(err.message, nowhere));
}

static void not_json(void **state)
{
	cleanup_kube struct kube *k = connect_to(sock, NULL);

	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "n", "nonsense", NULL, NULL), -EAGAIN);
}

static int start(void **state)
{
	struct h2_listen listen = {
		.unix_path = sock, .tcp_port = -1, .workers = 2, .max_body = 1 << 20
	};

	snprintf(dir, sizeof(dir), "/tmp/test-kube-client-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(sock, sizeof(sock), "%s/api.sock", dir);
	snprintf(token_path, sizeof(token_path), "%s/token", dir);
	return h2_server_start(&listen, answer, NULL, &server, NULL);
}

static int stop(void **state)
{
	h2_server_free(server);
	return remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_are_tried_again),
		cmocka_unit_test(writes_are_not),
		cmocka_unit_test(refused_writes_are),
		cmocka_unit_test(plugin_runs_again),
		cmocka_unit_test(writes_say_what_they_are),
		cmocka_unit_test(pages),
		cmocka_unit_test(pages_that_expire),
		cmocka_unit_test(token_is_read_again),
		cmocka_unit_test(watches),
		cmocka_unit_test(unreachable),
		cmocka_unit_test(not_json),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
