/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "base/file.h"

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
		{ "server: 'https://x', insecure-skip-tls-verify: true", "", "insecure" },
		{ "server: 'https://x', certificate-authority-data: '***'", "", "base64" },
		{ "server: 'http://127.0.0.1:1'", "exec: {command: x}", "command" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_free char *path = config(cases[i].cluster, cases[i].user);
		struct kube_config c = { 0 };
		struct error err = ERROR_INIT;

		assert_true(kube_config_load(path, &c, &err) < 0);
		assert_non_null(strstr(err.message, cases[i].says));
	}
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
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
