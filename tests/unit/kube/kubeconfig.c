/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/file.h"
#include "kube/config.h"

#include <errno.h>
#include <sys/stat.h>

static char dir[64];

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static char *written(const char *name, const char *text)
{
	char *path = in_dir(name);

	assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
	return path;
}

static char *config(const char *cluster, const char *user)
{
	cleanup_free char *text = xasprintf(
		"apiVersion: v1\nkind: Config\ncurrent-context: c\n"
		"contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: ours}\n"
		"clusters:\n- name: other\n  cluster: {server: 'https://no'}\n"
		"- name: k\n  cluster: {%s}\n"
		"users:\n- name: u\n  user: {%s}\n",
		cluster, user);

	return written("kubeconfig", text);
}

static void data(void **state)
{
	cleanup_free char *path =
		config("server: 'https://10.0.0.1:6443', certificate-authority-data: Q0FfUEVN",
		       "token: secret, client-certificate-data: Y2VydA==, client-key-data: a2V5");
	cleanup_with(kube_config_done) struct kube_config c = { 0 };

	assert_int_equal(kube_config_load(path, &c, NULL), 0);
	assert_string_equal(c.host, "10.0.0.1");
	assert_int_equal(c.port, 6443);
	assert_string_equal(c.ca_pem, "CA_PEM");
	assert_string_equal(c.cert_pem, "cert");
	assert_string_equal(c.key_pem, "key");
	assert_string_equal(c.token, "secret");
	assert_string_equal(c.ns, "ours");
	assert_null(c.unix_path);
}

static void files_beside_it(void **state)
{
	free(written("ca.pem", "PEM\n"));
	cleanup_free char *path = config("server: 'https://[::1]', certificate-authority: ca.pem",
					 "tokenFile: token");
	cleanup_free char *token = in_dir("token");
	cleanup_with(kube_config_done) struct kube_config c = { 0 };

	assert_int_equal(kube_config_load(path, &c, NULL), 0);
	assert_string_equal(c.host, "::1");
	assert_int_equal(c.port, 443);
	assert_string_equal(c.ca_pem, "PEM\n");
	assert_string_equal(c.token_file, token);
	assert_null(c.token);
}

/* Where its directory is, even while nobody has made the socket: the API may be starting again. */
static void socket_preferred(void **state)
{
	cleanup_free char *run = in_dir("run");
	cleanup_free char *sock = in_dir("run/api.sock");
	cleanup_free char *cluster =
		xasprintf("server: 'http://127.0.0.1:1', extensions: [{name: "
			  "quartermaster.storage/socket, extension: {path: %s}}]",
			  sock);
	cleanup_free char *path = config(cluster, "token: t");
	cleanup_with(kube_config_done) struct kube_config elsewhere = { 0 };
	cleanup_with(kube_config_done) struct kube_config here = { 0 };

	assert_int_equal(kube_config_load(path, &elsewhere, NULL), 0);
	assert_null(elsewhere.unix_path);
	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(kube_config_load(path, &here, NULL), 0);
	assert_string_equal(here.unix_path, sock);
}

static void refused(void **state)
{
	static const struct {
		const char *cluster, *user, *says;
	} cases[] = {
		{ "server: 'ftp://x'", "", "http or https" },
		{ "server: 'https://'", "", "form" },
		{ "server: 'https://x:0'", "", "form" },
		{ "server: 'https://x:66000'", "", "form" },
		{ "server: 'https://x:1/prefix'", "", "form" },
		{ "server: 'https://[::1'", "", "form" },
		{ "server: 'http://10.1.2.3:80'", "", "without TLS" },
		{ "certificate-authority-data: Q0E=", "", "no server" },
		{ "server: 'https://x', insecure-skip-tls-verify: true, "
		  "certificate-authority-data: Q0E=",
		  "", "insecure" },
		{ "server: 'https://x', insecure-skip-tls-verify: true, proxy-url: "
		  "'socks5://secret@x'",
		  "", "not supported" },
		{ "server: 'https://x', insecure-skip-tls-verify: true, proxy-url: "
		  "'http://u:secret@:1'",
		  "", "USER:PASSWORD" },
		{ "server: 'https://x', certificate-authority-data: '***'", "", "base64" },
		{ "server: 'http://127.0.0.1:1'", "exec: {command: x}", "apiVersion" },
		{ "server: 'http://127.0.0.1:1'",
		  "exec: {apiVersion: client.authentication.k8s.io/v1}", "no command" },
		{ "server: 'http://127.0.0.1:1'",
		  "exec: {apiVersion: client.authentication.k8s.io/v1, command: x, "
		  "interactiveMode: Always}",
		  "ask" },
		{ "server: 'http://127.0.0.1:1'", "username: x, password: secret", "password" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *path = config(cases[i].cluster, cases[i].user);
		struct kube_config c = { 0 };
		struct error err = ERROR_INIT;

		assert_true(kube_config_load(path, &c, &err) < 0);
		assert_non_null(strstr(err.message, cases[i].says));
		assert_null(strstr(err.message, "secret"));
	}
}

static void tls_and_proxy(void **state)
{
	cleanup_free char *path =
		config("server: 'https://x', insecure-skip-tls-verify: true, tls-server-name: "
		       "inner, proxy-url: 'http://user:p%40ss@proxy:3128'",
		       "");
	cleanup_with(kube_config_done) struct kube_config c = { 0 };

	setenv("HTTPS_PROXY", "http://unused:1", 1); /* the kubeconfig's own goes before it */
	assert_int_equal(kube_config_load(path, &c, NULL), 0);
	unsetenv("HTTPS_PROXY");
	assert_true(c.insecure);
	assert_null(c.ca_pem);
	assert_string_equal(c.tls_name, "inner");
	assert_string_equal(c.proxy_host, "proxy");
	assert_int_equal(c.proxy_port, 3128);
	assert_string_equal(c.proxy_auth, "Basic dXNlcjpwQHNz"); /* user:p@ss */
}

static void proxy_by_environment(void **state)
{
	cleanup_free char *path = config("server: 'https://api.example.org:6443', "
					 "certificate-authority-data: Q0E=",
					 "");
	struct {
		const char *except;
		bool proxied;
	} cases[] = { { "", true },
		      { "other.org,api.example.org:443", true },
		      { "example.org", false },
		      { "le.org", true },
		      { ".example.org", false },
		      { "x *", false },
		      { "api.example.org:6443", false } };

	setenv("HTTPS_PROXY", "proxy:8080", 1);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_with(kube_config_done) struct kube_config c = { 0 };

		setenv("NO_PROXY", cases[i].except, 1);
		assert_int_equal(kube_config_load(path, &c, NULL), 0);
		assert_int_equal(c.proxy_host != NULL, cases[i].proxied);
	}
	unsetenv("HTTPS_PROXY");
	unsetenv("NO_PROXY");
	assert_true(proxy_excepts("10.0.0.0/8", "10.2.3.4", 443));
	assert_false(proxy_excepts("10.0.0.0/8", "11.2.3.4", 443));
	assert_true(proxy_excepts("fd00::/8", "fd01::1", 443));
	assert_true(proxy_excepts("[fd01::1]:443", "fd01::1", 443));
	assert_true(proxy_excepts("fd01:0::1", "fd01::1", 443));
}

/* As kubectl: what an earlier file says counts, paths are relative to the file they stand in. */
static void several_files(void **state)
{
	cleanup_free char *sub = in_dir("sub"), *token = in_dir("sub/token");
	int made = mkdir(sub, 0700);
	cleanup_free char *one = written("one", "contexts:\n"
						"- {name: a, context: {cluster: k, user: u}}\n"
						"users:\n- {name: u, user: {token: first}}\n");
	cleanup_free char *two = written(
		"sub/two",
		"current-context: b\n"
		"contexts:\n"
		"- {name: a, context: {cluster: other, user: other}}\n"
		"- {name: b, context: {cluster: k, user: v, namespace: second}}\n"
		"clusters:\n"
		"- {name: k, cluster: {server: 'https://x', insecure-skip-tls-verify: true}}\n"
		"users:\n- {name: u, user: {token: second}}\n"
		"- {name: v, user: {tokenFile: token}}\n");
	cleanup_free char *both = xasprintf("%s:/nonexistent/x:%s:", one, two);
	cleanup_with(kube_config_done) struct kube_config c = { 0 }, a = { 0 }, none = { 0 };
	struct error err = ERROR_INIT;

	assert_int_equal(made, 0);
	setenv("KUBECONFIG", both, 1);
	assert_int_equal(kube_config_load(NULL, &c, NULL), 0);
	assert_string_equal(c.ns, "second");
	assert_string_equal(c.token_file, token);
	assert_int_equal(kube_config_find(&(struct kube_config_source){ .context = "a" }, &a, NULL),
			 0);
	assert_string_equal(a.token, "first");
	assert_int_equal(
		kube_config_find(&(struct kube_config_source){ .context = "z" }, &none, &err),
		-EINVAL);
	assert_non_null(strstr(err.message, "\"z\""));
	setenv("KUBECONFIG", "/nonexistent/x:/nonexistent/y", 1);
	assert_int_equal(kube_config_load(NULL, &none, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/x"));
	unsetenv("KUBECONFIG");
}

static void in_a_pod(void **state)
{
	cleanup_free char *account = in_dir("var/run/secrets/kubernetes.io/serviceaccount");
	cleanup_with(kube_config_done) struct kube_config c = { 0 }, none = { 0 };
	struct kube_config_source source = { .root = dir };
	struct error err = ERROR_INIT;

	setenv("QM_STATE_DIR", "/nonexistent/state", 1);
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "6443", 1);
	assert_int_equal(kube_config_find(&source, &none, &err), -ENOENT); /* no token: no pod */
	assert_int_equal(mkdir_parents(account, 0700, NULL), 0);
	free(written("var/run/secrets/kubernetes.io/serviceaccount/token", "t"));
	assert_int_equal(kube_config_find(&source, &none, &err), -EINVAL);
	assert_non_null(strstr(err.message, "ca.crt"));
	free(written("var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "PEM"));
	free(written("var/run/secrets/kubernetes.io/serviceaccount/namespace", "ours\n"));
	assert_int_equal(kube_config_find(&source, &c, &err), 0);
	assert_string_equal(c.host, "fd00::1");
	assert_int_equal(c.port, 6443);
	assert_string_equal(c.ca_pem, "PEM");
	assert_true(str_has_prefix(c.token_file, account));
	assert_string_equal(c.ca_file + strlen(account), "/ca.crt");
	assert_string_equal(c.ns, "ours");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBERNETES_SERVICE_PORT");
}

/* ---- programs that give credentials ---------------------------------------------------------- */

/* A plugin that prints what the shell text makes it, and the exec entry that runs it. */
static json_t *plugin(const char *script)
{
	cleanup_free char *text = xasprintf("#!/bin/sh\n%s\n", script);
	cleanup_free char *path = written("plugin", text);

	assert_int_equal(chmod(path, 0700), 0);
	return json_pack("{ss ss s[s] s[{ss ss}] s{ss}}", "apiVersion",
			 "client.authentication.k8s.io/v1", "command", path, "args", "word", "env",
			 "name", "MARK", "value", "m", "cluster", "server", "https://x");
}

#define CREDENTIAL(status)                                                                         \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/"              \
	"v1\",\"status\":{" status "}}"

static void plugins(void **state)
{
	cleanup_json json_t *exec =
		plugin("echo '" CREDENTIAL("\"token\":\"'\"$MARK-$1\"'\",\"expirationTimestamp\":"
					   "\"2026-11-15T20:52:06Z\"") "'");
	cleanup_with(exec_result_done) struct exec_result r = { 0 };

	assert_int_equal(exec_run(exec, &r, NULL), 0);
	assert_string_equal(r.token, "m-word");
	assert_int_equal(r.expires_ms, 1794775926000);
	assert_null(r.cert_pem);
}

static void plugins_are_told(void **state)
{
	cleanup_free char *path = in_dir("told"), *text = NULL;
	cleanup_free char *script = xasprintf("echo \"$KUBERNETES_EXEC_INFO\" > %s; exit 1", path);
	cleanup_json json_t *exec = plugin(script), *told = NULL;
	struct exec_result r = { 0 };

	assert_int_equal(exec_run(exec, &r, NULL), -EACCES);
	assert_int_equal(file_read(path, 0, &text, NULL, NULL), 0);
	assert_int_equal(json_parse(text, strlen(text), &told, NULL), 0);
	assert_string_equal(jstr(told, "kind"), "ExecCredential");
	assert_string_equal(jstr(told, "apiVersion"), "client.authentication.k8s.io/v1");
	assert_string_equal(jstr(told, "spec", "cluster", "server"), "https://x");
	assert_true(json_is_false(jget(told, "spec", "interactive")));
}

static void plugins_that_fail(void **state)
{
	static const struct {
		const char *script, *says;
	} cases[] = {
		{ "echo secret; echo secret >&2; exit 3", "status 3" },
		{ "echo secret", "no ExecCredential" },
		{ "echo '" CREDENTIAL("") "'", "no ExecCredential" },
		{ "echo '" CREDENTIAL("\"clientCertificateData\":\"secret\"") "'",
		  "no ExecCredential" },
		{ "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\",\"status\":{\"token\":"
		  "\"secret\"}}'",
		  "no ExecCredential" },
	};
	cleanup_json json_t *missing = plugin("");
	struct exec_result r = { 0 };
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_json json_t *exec = plugin(cases[i].script);

		assert_int_equal(exec_run(exec, &r, &err), -EACCES);
		assert_non_null(strstr(err.message, cases[i].says));
		assert_null(strstr(err.message, "secret"));
	}
	json_object_set_new(missing, "command", json_string("no-such-plugin"));
	json_object_set_new(missing, "installHint", json_string("get it there"));
	assert_int_equal(exec_run(missing, &r, &err), -EACCES);
	assert_non_null(strstr(err.message, "get it there"));
}

static void missing(void **state)
{
	struct kube_config c = { 0 };
	struct error err = ERROR_INIT;

	unsetenv("KUBECONFIG");
	setenv("QM_STATE_DIR", "/nonexistent/state", 1);
	assert_int_equal(kube_config_load(NULL, &c, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/nonexistent/state/admin.kubeconfig"));
	assert_non_null(strstr(err.message, "quartermaster up"));
}

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-kubeconfig-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	return remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(data),
		cmocka_unit_test(files_beside_it),
		cmocka_unit_test(socket_preferred),
		cmocka_unit_test(refused),
		cmocka_unit_test(missing),
		cmocka_unit_test(tls_and_proxy),
		cmocka_unit_test(proxy_by_environment),
		cmocka_unit_test(several_files),
		cmocka_unit_test(in_a_pod),
		cmocka_unit_test(plugins),
		cmocka_unit_test(plugins_are_told),
		cmocka_unit_test(plugins_that_fail),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
