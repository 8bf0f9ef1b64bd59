/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "api/server.h"
#include "base/file.h"
#include "base/log.h"
#include "kube/controller.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>

/* The client, caches and runner against the embedded API over HTTP/2, which comes and goes. */
static char dir[64], sock[100], config_path[100];
static struct api_server *server;
static atomic_int seen_value, calls;

static void start_server(void)
{
	struct api_options options = { .state_dir = dir, .unix_path = sock };
	cleanup_free char *token = NULL;
	struct error err = ERROR_INIT;

	if (api_server_start(&options, &server, &err) < 0)
		fail_msg("%s", err.message);
	assert_int_equal(api_token(dir, "admin", "admin", NULL, &token, &err), 0);
	assert_int_equal(
		api_write_kubeconfig(dir, sock, api_server_port(server), token, config_path, &err),
		0);
}

static void stop_server(void)
{
	api_server_stop(server);
	server = NULL;
}

static struct kube *connect_to(bool tls)
{
	cleanup_with(kube_config_done) struct kube_config config = { 0 };
	struct error err = ERROR_INIT;
	struct kube *k;

	if (kube_config_load(config_path, &config, &err) < 0)
		fail_msg("%s", err.message);
	assert_string_equal(config.unix_path, sock);
	if (tls) {
		free(config.unix_path);
		config.unix_path = NULL;
	}
	assert_int_equal(kube_connect(&config, &k, &err), 0);
	return k;
}

static void cleanup_kube_p(struct kube **k)
{
	kube_free(*k);
}
#define cleanup_kube cleanup_with(cleanup_kube_p)

static json_t *config_map(const char *name, const char *value)
{
	return json_pack("{ss ss s{ss ss} s{ss}}", "apiVersion", "v1", "kind", "ConfigMap",
			 "metadata", "name", name, "namespace", "default", "data", "value", value);
}

static void round_trip(struct kube *k)
{
	cleanup_json json_t *o = config_map("trip", "1");
	cleanup_json json_t *made = NULL;
	cleanup_json json_t *stale = NULL;
	cleanup_json json_t *patch = quoted("{'data':{'value':'2'}}");
	struct error err = ERROR_INIT;

	assert_int_equal(kube_create(k, &KIND_CONFIGMAP, o, &made, &err), 0);
	assert_int_equal(kube_create(k, &KIND_CONFIGMAP, o, NULL, &err), -EEXIST);
	stale = json_deep_copy(made);
	assert_int_equal(kube_patch(k, &KIND_CONFIGMAP, "default", "trip", NULL, KUBE_PATCH_MERGE,
				    patch, NULL, &err),
			 0);
	jset(stale, json_string("3"), "data", "value");
	assert_int_equal(kube_update(k, &KIND_CONFIGMAP, stale, NULL, &err), -ESTALE);
	assert_int_equal(kube_delete(k, &KIND_CONFIGMAP, "default", "trip",
				     &(struct kube_delete_options){ .uid = "wrong" }, &err),
			 -ESTALE);
	assert_int_equal(kube_delete(k, &KIND_CONFIGMAP, "default", "trip", NULL, &err), 0);
	assert_int_equal(kube_get(k, &KIND_CONFIGMAP, "default", "trip", NULL, &err), -ENOENT);
	assert_string_equal(err.message, "configmaps \"trip\" not found");
}

static void over_unix_and_tls(void **state)
{
	cleanup_kube struct kube *a = connect_to(false);
	cleanup_kube struct kube *b = connect_to(true);

	round_trip(a);
	round_trip(b);
}

static void many_pages(void **state)
{
	cleanup_kube struct kube *k = connect_to(false);
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;

	for (int i = 0; i < 620; i++) {
		cleanup_free char *name = xasprintf("page-%03d", i);
		cleanup_json json_t *o = config_map(name, "x");

		assert_int_equal(kube_create(k, &KIND_CONFIGMAP, o, NULL, NULL), 0);
	}
	assert_int_equal(
		kube_list(k, &KIND_CONFIGMAP, "default",
			  &(struct kube_selector){ .fields = "metadata.namespace=default" }, &items,
			  &version, NULL),
		0);
	assert_true(json_array_size(items) >= 620);
}

/* ---- a server that goes and comes back ------------------------------------------------------------ */

static int reconcile(struct reconcile *r, const char *key)
{
	cleanup_json json_t *o = reader_get(r->cache, &KIND_CONFIGMAP, "default", "watched");

	atomic_fetch_add(&calls, 1);
	atomic_store(&seen_value, o ? atoi(jstr(o, "data", "value")) : -1);
	return 0;
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_CONFIGMAP, .fields = "metadata.name=watched" },
	{ 0 },
};
static const struct controller loop = { "loop", watches, 1, reconcile };
static const struct controller *const loops[] = { &loop, NULL };

static bool wait_for_value(int value)
{
	for (int i = 0; i < 2000; i++) {
		if (atomic_load(&seen_value) == value)
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return false;
}

static void put(struct kube *k, const char *value)
{
	cleanup_json json_t *o = config_map("watched", value);
	cleanup_json json_t *patch = json_pack("{s{ss}}", "data", "value", value);

	if (kube_create(k, &KIND_CONFIGMAP, o, NULL, NULL) == -EEXIST)
		assert_int_equal(kube_patch(k, &KIND_CONFIGMAP, "default", "watched", NULL,
					    KUBE_PATCH_MERGE, patch, NULL, NULL),
				 0);
}

static void server_restarts(void **state)
{
	cleanup_kube struct kube *k = connect_to(false);
	struct runner_options options = { .kube = k, .ns = "default", .controllers = loops };
	struct runner *r;

	put(k, "1");
	assert_int_equal(runner_start(&options, &r, NULL), 0);
	assert_true(wait_for_value(1));
	put(k, "2");
	assert_true(wait_for_value(2));
	for (int i = 3; i < 6; i++) {
		cleanup_free char *text = xasprintf("%d", i);

		stop_server();
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		start_server();
		put(k, text);
		assert_true(wait_for_value(i));
	}
	assert_int_equal(kube_delete(k, &KIND_CONFIGMAP, "default", "watched", NULL, NULL), 0);
	assert_true(wait_for_value(-1));
	runner_stop(r);
}

static void stops_while_the_server_is_gone(void **state)
{
	cleanup_kube struct kube *k = connect_to(false);
	struct runner_options options = { .kube = k, .ns = "default", .controllers = loops };
	int64_t began;
	struct runner *r;

	stop_server();
	assert_int_equal(runner_start(&options, &r, NULL), 0);
	nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
	assert_false(runner_synced(r));
	began = clock_mono_ms(&clock_real);
	runner_stop(r);
	assert_true(clock_mono_ms(&clock_real) - began < 3000);
	start_server();
}

static int start(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-kube-server-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(sock, sizeof(sock), "%s/api.sock", dir);
	snprintf(config_path, sizeof(config_path), "%s/admin.kubeconfig", dir);
	start_server();
	return 0;
}

static int stop(void **state)
{
	stop_server();
	return remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_unix_and_tls),
		cmocka_unit_test(many_pages),
		cmocka_unit_test(server_restarts),
		cmocka_unit_test(stops_while_the_server_is_gone),
	};

	log_init("test", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, start, stop);
}
