/* SPDX-License-Identifier: Apache-2.0 */
#include "api/server.h"
#include "base/file.h"
#include "unit.h"

#include <inttypes.h>
#include <sys/stat.h>

static char *dir, *socket_path;
static struct api_server *server;
static struct h2_client *client;
static char *admin;

/* The last answer. */
static int code;
static json_t *answer;
static struct h2_response response;

static void start(void)
{
	const struct api_options options = { .state_dir = dir, .unix_path = socket_path };

	if (api_server_start(&options, &server, &err) < 0)
		fail_msg("%s", err.message);
}

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");
	struct h2_target target = { 0 };

	(void)state;
	dir = xasprintf("%s/qm-server.XXXXXX", base && *base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	socket_path = xasprintf("%s/sock", dir);
	start();
	assert_int_equal(api_token(dir, "admin", "admin", NULL, &admin, &err), 0);
	target.unix_path = socket_path;
	assert_int_equal(h2_client_new(&target, &client, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	h2_response_done(&response);
	json_decref(answer);
	answer = NULL;
	h2_client_free(client);
	api_server_stop(server);
	remove_tree(dir, NULL);
	free(dir);
	free(socket_path);
	free(admin);
	return 0;
}

static int call_as(const char *token, const char *method, const char *path, const char *type,
		   const char *accept, const char *body)
{
	cleanup_free char *bearer = xasprintf("Bearer %s", token ? token : "");
	struct h2_header headers[5] = { { "content-type", type ? type : "application/json" },
					{ "accept", accept ? accept : "application/json" },
					{ "user-agent", "unit/1.0" } };
	struct h2_request request = { method, path, headers, body, body ? strlen(body) : 0 };

	if (token)
		headers[3] = (struct h2_header){ "authorization", bearer };
	h2_response_done(&response);
	response = (struct h2_response){ 0 };
	json_decref(answer);
	answer = NULL;
	if (h2_client_call(client, &request, 10000, &response, &err) < 0)
		fail_msg("%s %s: %s", method, path, err.message);
	if (response.body.len)
		json_parse(response.body.data, response.body.len, &answer, NULL);
	return code = response.status;
}

static int call(const char *method, const char *path, const char *body)
{
	cleanup_free char *text = body ? xstrdup(body) : NULL;

	for (char *p = text; p && *p; p++)
		if (*p == '\'')
			*p = '"';
	return call_as(admin, method, path, NULL, NULL, text);
}

#define NODES "/apis/coreos.com/v1/namespaces/default/storagenodes"
#define MAPS "/api/v1/namespaces/default/configmaps"
#define NODE(name)                                                                                 \
	"{'apiVersion':'coreos.com/v1','kind':'StorageNode','metadata':{'name':'" name             \
	"'},'spec':{'type':'glusterfs','devices':['/dev/"                                          \
	"vdb'],'storageNetwork':{'ips':['10.0.0.1']}}}"
#define MAP(name) "{'metadata':{'name':'" name "','labels':{'l':'1'}}}"

static void test_tokens(void **state)
{
	cleanup_free char *again = NULL, *other = NULL, *file = xasprintf("%s/tokens.json", dir);
	struct stat st;

	(void)state;
	assert_int_equal(call_as(NULL, "GET", NODES, NULL, NULL, NULL), 401);
	assert_json(json_incref(answer),
		    quoted("{'kind':'Status','apiVersion':'v1','metadata':{},'status':'Failure',"
			   "'message':'Unauthorized','reason':'Unauthorized','code':401}"));
	assert_int_equal(call_as("wrong", "GET", NODES, NULL, NULL, NULL), 401);
	assert_int_equal(call_as(NULL, "GET", "/healthz", NULL, NULL, NULL), 200);
	assert_int_equal(call_as(NULL, "GET", "/version", NULL, NULL, NULL), 200);
	assert_string_equal(jstr(answer, "minor"), "34");
	assert_int_equal(call_as(NULL, "GET", "/api", NULL, NULL, NULL), 401);
	assert_int_equal(api_token(dir, "admin", "admin", NULL, &again, &err), 0);
	assert_string_equal(again, admin);
	assert_int_equal(api_token(dir, "x", "god", NULL, &other, &err), -EINVAL);
	assert_int_equal(api_token(dir, "x", "agent", NULL, &other, &err), -EINVAL);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_agent(void **state)
{
	cleanup_free char *agent = NULL;

	(void)state;
	assert_int_equal(api_token(dir, "agent-m1", "agent", "m1", &agent, &err), 0);
	assert_int_equal(call("POST", NODES, NODE("n1")), 201);
	assert_int_equal(call("POST", NODES, NODE("n2")), 201);
	assert_int_equal(call_as(admin, "PATCH", NODES "/n1/status", "application/merge-patch+json",
				 NULL,
				 "{\"status\":{\"nodeName\":\"m1\",\"address\":\"10.0.0.1\"}}"),
			 200);
	assert_int_equal(call_as(admin, "PATCH", NODES "/n2/status", "application/merge-patch+json",
				 NULL, "{\"status\":{\"nodeName\":\"m2\"}}"),
			 200);
#define PATCH_AS(path, body)                                                                       \
	call_as(agent, "PATCH", path, "application/merge-patch+json", NULL, body)
	assert_int_equal(PATCH_AS(NODES "/n1/status", "{\"status\":{\"agent\":{\"planEpoch\":1}}}"),
			 200);
	assert_int_equal(PATCH_AS(NODES "/n2/status", "{\"status\":{\"agent\":{\"planEpoch\":1}}}"),
			 403);
	assert_non_null(strstr(
		jstr(answer, "message"),
		"storagenodes.coreos.com \"n2\" is forbidden: User \"agent-m1\" cannot patch "
		"resource \"storagenodes/status\" in API group \"coreos.com\" in the namespace "
		"\"default\": it is another node's"));
	assert_int_equal(PATCH_AS(NODES "/n1/status", "{\"status\":{\"nodeName\":\"m2\"}}"), 403);
	assert_int_equal(PATCH_AS(NODES "/n1/status", "{\"status\":{\"address\":\"10.0.0.9\"}}"),
			 403);
	assert_int_equal(PATCH_AS(NODES "/n1/status", "{\"status\":{\"address\":null}}"), 403);
	assert_int_equal(PATCH_AS(NODES "/n1/status", "{\"status\":{\"plan\":{\"epoch\":9}}}"),
			 403);
	assert_int_equal(PATCH_AS(NODES "/n1", "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}"), 403);
	assert_int_equal(call_as(agent, "DELETE", NODES "/n1", NULL, NULL, NULL), 403);
	assert_int_equal(call_as(agent, "GET", NODES "/n2", NULL, NULL, NULL), 200);
	assert_int_equal(call_as(agent, "GET", "/api/v1/persistentvolumes", NULL, NULL, NULL), 200);
	assert_int_equal(call_as(agent, "GET", "/api/v1/secrets", NULL, NULL, NULL), 403);
	assert_int_equal(call_as(agent, "GET", MAPS, NULL, NULL, NULL), 403);
	assert_int_equal(call_as(agent, "POST", NODES, NULL, NULL, "{}"), 403);
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	assert_int_equal(call_as(agent, "POST", LEASES, NULL, NULL,
				 "{\"metadata\":{\"name\":\"operator\"}}"),
			 403);
	assert_int_equal(call_as(agent, "POST", LEASES, NULL, NULL,
				 "{\"metadata\":{\"name\":\"cluster-a\"}}"),
			 201);
	assert_int_equal(PATCH_AS(LEASES "/operator", "{}"), 403);
	assert_int_equal(call_as(agent, "POST", "/api/v1/namespaces/default/events", NULL, NULL,
				 "{\"metadata\":{\"name\":\"e\"},\"involvedObject\":{\"namespace\":"
				 "\"default\"},"
				 "\"reason\":\"R\",\"message\":\"m\",\"type\":\"Normal\"}"),
			 201);
}

static void test_reader_and_operator(void **state)
{
	cleanup_free char *reader = NULL, *operator= NULL;

	(void)state;
	assert_int_equal(api_token(dir, "r", "reader", NULL, &reader, &err), 0);
	assert_int_equal(api_token(dir, "o", "operator", NULL, &operator, & err), 0);
	assert_int_equal(call_as(reader, "GET", MAPS, NULL, NULL, NULL), 200);
	assert_int_equal(call_as(reader, "POST", MAPS, NULL, NULL, "{}"), 403);
	assert_int_equal(
		call_as(reader, "GET", "/api/v1/namespaces/default/secrets/x", NULL, NULL, NULL),
		403);
	assert_int_equal(
		call_as(operator, "GET", "/api/v1/namespaces/default/secrets/x", NULL, NULL, NULL),
		404);
	assert_int_equal(call_as(operator, "GET", "/api/v1/secrets", NULL, NULL, NULL), 403);
	assert_string_equal(jstr(answer, "message"),
			    "secrets is forbidden: User \"o\" cannot list resource "
			    "\"secrets\" in API group \"\" at the cluster scope");
	assert_int_equal(
		call_as(operator, "POST", MAPS, NULL, NULL, "{\"metadata\":{\"name\":\"x\"}}"),
		201);
}

static void test_paths(void **state)
{
	static const struct {
		const char *method, *path;
		int code;
	} cases[] = {
		{ "GET", "/", 404 },
		{ "GET", "/apis/none/v1/x", 404 },
		{ "GET", "/apis/coreos.com/v1/none", 404 },
		{ "GET", "/apis/coreos.com/v2/storagenodes", 404 },
		{ "GET", "/apis/coreos.com/v1/storagenodes", 200 },
		{ "GET", "/apis/coreos.com/v1/storagenodes/x", 404 },
		{ "POST", "/apis/coreos.com/v1/storagenodes", 405 },
		{ "GET", NODES "/x/scale", 404 },
		{ "GET", NODES "/x/status/y", 404 },
		{ "PUT", NODES, 405 },
		{ "DELETE", NODES "/x/status", 405 },
		{ "GET", NODES "/%7", 400 },
		{ "GET", NODES "/%00", 400 },
		{ "GET", NODES "/..%2f..%2fx", 404 },
		{ "GET", NODES "?labelSelector=%3D%3D", 400 },
		{ "GET", NODES "?fieldSelector=spec.x%3D1", 400 },
		{ "GET", NODES "?limit=x", 400 },
		{ "GET", NODES "?continue=x", 400 },
		{ "GET", "/api/v1/namespaces/default/persistentvolumes", 404 },
		{ "GET", "/api/v1/namespaces/default", 200 },
		{ "GET", "/api/v1/namespaces/default/status", 200 },
		{ "GET", "/api/v1", 200 },
		{ "GET", "/apis/coreos.com", 200 },
		{ "GET", "/apis/coreos.com/v1", 200 },
		{ "GET", "/openapi/v3", 200 },
		{ "GET", "/openapi/v3/apis/coreos.com/v1", 200 },
		{ "GET", "/openapi/v2", 200 },
		{ "GET", "/openapi/v1", 404 },
		{ "TRACE", NODES, 405 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		if (call(cases[i].method, cases[i].path, NULL) != cases[i].code)
			fail_msg("%s %s answers %d", cases[i].method, cases[i].path, code);
	assert_int_equal(call("POST", MAPS, "{'metadata':"), 400);
	assert_int_equal(call("POST", MAPS "?dryRun=Some", MAP("a")), 400);
	assert_int_equal(call("POST", MAPS "?fieldValidation=Maybe", MAP("a")), 400);
	assert_int_equal(
		call_as(admin, "POST", MAPS, "application/yaml", NULL, "metadata: {name: y}\n"),
		201);
	assert_int_equal(
		call_as(admin, "POST", MAPS, "application/vnd.kubernetes.protobuf", NULL, "x"),
		400);
}

static void test_crud(void **state)
{
	(void)state;
	assert_int_equal(call("POST", NODES "?fieldValidation=Strict", NODE("n1")), 201);
	assert_int_equal(call("POST", NODES, NODE("n1")), 409);
	assert_string_equal(jstr(answer, "reason"), "AlreadyExists");
	assert_string_equal(jstr(answer, "details", "name"), "n1");
	assert_string_equal(jstr(answer, "details", "group"), "coreos.com");
	assert_int_equal(
		call("POST", NODES,
		     "{'metadata':{'name':'x'},'spec':{'type':'glusterfs','devicess':[]}}"),
		201);
	assert_non_null(strstr(h2_response_header(&response, "warning"), "299 - "));
	assert_int_equal(call("DELETE", NODES "/x", "{'preconditions':{'uid':'y'}}"), 409);
	assert_int_equal(call("DELETE", NODES "/x", "{'propagationPolicy':'Sideways'}"), 400);
	assert_int_equal(call("DELETE", NODES "/x?dryRun=All", NULL), 200);
	assert_int_equal(call("DELETE", NODES "/x", NULL), 200);
	assert_string_equal(jstr(answer, "status"), "Success");
	assert_int_equal(call("GET", NODES "/x", NULL), 404);
	for (int i = 0; i < 5; i++) {
		cleanup_free char *body =
			xasprintf("{'metadata':{'name':'m%d','labels':{'l':'%d'}}}", i, i % 2);

		assert_int_equal(call("POST", MAPS, body), 201);
	}
	assert_int_equal(call("GET", MAPS "?limit=2", NULL), 200);
	assert_int_equal(json_array_size(jget(answer, "items")), 2);
	assert_non_null(jstr(answer, "metadata", "continue"));
	assert_int_equal(call("DELETE", MAPS "?labelSelector=l%3D1", NULL), 200);
	assert_int_equal(call("GET", MAPS, NULL), 200);
	assert_int_equal(json_array_size(jget(answer, "items")), 3);
}

static void test_forms(void **state)
{
	static const char table[] = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
	static const char partial[] =
		"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";

	(void)state;
	assert_int_equal(call("POST", NODES, NODE("n1")), 201);
	assert_int_equal(call_as(admin, "GET", NODES, NULL, table, NULL), 200);
	assert_string_equal(jstr(answer, "kind"), "Table");
	assert_int_equal(json_array_size(jget(answer, "rows")), 1);
	assert_string_equal(json_string_value(json_array_get(
				    jget(json_array_get(jget(answer, "rows"), 0), "cells"), 0)),
			    "n1");
	assert_true(json_array_size(jget(answer, "columnDefinitions")) > 2);
	assert_int_equal(call_as(admin, "GET", NODES "/n1?includeObject=Object", NULL, table, NULL),
			 200);
	assert_non_null(jget(json_array_get(jget(answer, "rows"), 0), "object", "spec"));
	assert_int_equal(call_as(admin, "GET", NODES, NULL, partial, NULL), 200);
	assert_string_equal(jstr(answer, "kind"), "PartialObjectMetadataList");
	assert_null(jget(json_array_get(jget(answer, "items"), 0), "spec"));
	assert_int_equal(
		call_as(admin, "GET", "/apis", NULL,
			"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
			NULL),
		200);
	assert_string_equal(jstr(answer, "kind"), "APIGroupDiscoveryList");
}

static void test_too_large(void **state)
{
	const size_t size = 2 * 1024 * 1024;
	cleanup_free char *filling = xcalloc(1, size + 1), *body = NULL;

	(void)state;
	memset(filling, 'x', size);
	body = xasprintf("{\"metadata\":{\"name\":\"big\"},\"data\":{\"a\":\"%s\"}}", filling);
	assert_int_equal(call_as(admin, "POST", MAPS, NULL, NULL, body), 413);
	assert_int_equal(call("GET", MAPS "/big", NULL), 404);
}

/* ---- watches ---- */

static struct h2_stream *watch(const char *query)
{
	cleanup_free char *bearer = xasprintf("Bearer %s", admin),
			  *path = xasprintf(MAPS "?watch=true&%s", query);
	const struct h2_header headers[] = { { "authorization", bearer }, { NULL, NULL } };
	const struct h2_request request = { "GET", path, headers, NULL, 0 };
	struct h2_stream *stream;

	assert_int_equal(h2_stream_open(client, &request, 5000, &stream, &code, &err), 0);
	assert_int_equal(code, 200);
	return stream;
}

/* The next line; "" at the end. */
static char *line(struct h2_stream *s)
{
	struct buf text = { 0 };
	char c;

	for (;;) {
		ssize_t n = h2_stream_read(s, &c, 1, 5000);

		if (n < 0)
			fail_msg("the watch is silent");
		if (n == 0 || c == '\n')
			return buf_take(&text);
		buf_add(&text, &c, 1);
	}
}

static void assert_event(struct h2_stream *s, const char *type, const char *name)
{
	cleanup_free char *text = line(s);
	cleanup_json json_t *e = NULL;

	assert_int_equal(json_parse(text, strlen(text), &e, &err), 0);
	assert_string_equal(jstr(e, "type"), type);
	if (name)
		assert_string_equal(jstr(e, "object", "metadata", "name"), name);
}

static void test_watch(void **state)
{
	struct h2_stream *s;
	cleanup_free char *end = NULL, *query = NULL;

	(void)state;
	assert_int_equal(call("POST", MAPS, MAP("a")), 201);
	query = xasprintf("resourceVersion=%s&allowWatchBookmarks=true&timeoutSeconds=2",
			  jstr(answer, "metadata", "resourceVersion"));
	s = watch(query);
	assert_int_equal(call("POST", MAPS, MAP("b")), 201);
	assert_event(s, "ADDED", "b");
	assert_int_equal(call("DELETE", MAPS "/a", NULL), 200);
	assert_event(s, "DELETED", "a");
	assert_event(s, "BOOKMARK", NULL); /* before the end */
	end = line(s);
	assert_string_equal(end, "");
	h2_stream_close(s);
	/* initial events, and a bookmark that ends them */
	s = watch("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks="
		  "true");
	assert_event(s, "ADDED", "b");
	free(end);
	end = line(s);
	assert_non_null(strstr(end, "k8s.io/initial-events-end"));
	h2_stream_close(s);
	s = watch("resourceVersion=999999");
	free(end);
	end = line(s);
	assert_non_null(strstr(end, "\"code\":410"));
	h2_stream_close(s);
}

static void test_restart(void **state)
{
	cleanup_free char *query = NULL;
	int port = api_server_port(server);
	struct h2_stream *s;

	(void)state;
	assert_int_equal(call("POST", MAPS, MAP("a")), 201);
	query = xasprintf("resourceVersion=%s", jstr(answer, "metadata", "resourceVersion"));
	s = watch(query);
	assert_int_equal(call("POST", MAPS, MAP("b")), 201);
	api_server_stop(server);
	h2_stream_close(s);
	start();
	assert_int_equal(api_server_port(server), port);
	s = watch(query);
	assert_event(s, "ADDED", "b");
	assert_int_equal(call("POST", MAPS, MAP("c")), 201);
	assert_event(s, "ADDED", "c");
	h2_stream_close(s);
}

/* The project's own client, by socket and by TLS, from the kubeconfig. */
static void test_kubeconfig(void **state)
{
	cleanup_free char *path = xasprintf("%s/config", dir);

	(void)state;
	for (int tls = 0; tls < 2; tls++) {
		struct kube_config config = { 0 };
		struct kube *k = NULL;
		cleanup_json json_t *o =
			quoted("{'metadata':{'name':'k%d','namespace':'default'}}", tls);

		assert_int_equal(api_write_kubeconfig(dir, tls ? NULL : socket_path,
						      api_server_port(server), admin, path, &err),
				 0);
		assert_int_equal(kube_config_load(path, &config, &err), 0);
		assert_true(tls || config.unix_path);
		assert_int_equal(kube_connect(&config, &k, &err), 0);
		if (kube_create(k, &KIND_CONFIGMAP, o, NULL, &err) < 0)
			fail_msg("%s", err.message);
		assert_int_equal(kube_create(k, &KIND_CONFIGMAP, o, NULL, &err), -EEXIST);
		assert_int_equal(
			kube_delete(k, &KIND_CONFIGMAP, "default", tls ? "k1" : "k0", NULL, &err),
			0);
		kube_free(k);
		kube_config_done(&config);
	}
}

#define server_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		server_test(test_tokens),
		server_test(test_agent),
		server_test(test_reader_and_operator),
		server_test(test_paths),
		server_test(test_crud),
		server_test(test_forms),
		server_test(test_too_large),
		server_test(test_watch),
		server_test(test_restart),
		server_test(test_kubeconfig),
	};

	return cmocka_run_group_tests_name("api server", tests, NULL, NULL);
}
