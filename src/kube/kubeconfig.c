/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <errno.h>
#include <sys/stat.h>

#define SOCKET_EXTENSION "quartermaster.storage/socket"
#define EXEC_EXTENSION "client.authentication.k8s.io/exec"
#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

/* ---- files into one document ------------------------------------------------------------------ */

/* clusters, users and contexts are all lists of {name, KEY}. */
static const struct section {
	const char *list, *key;
} sections[] = { { "clusters", "cluster" }, { "users", "user" }, { "contexts", "context" } };

static json_t *entry(const json_t *list, const char *name)
{
	size_t i;
	json_t *item;

	json_array_foreach (list, i, item) {
		if (streq(jstr(item, "name"), name))
			return item;
	}
	return NULL;
}

static const json_t *named(const json_t *list, const char *name, const char *key)
{
	return json_object_get(entry(list, name), key);
}

/* A path in a kubeconfig is relative to where that file is. */
static void make_absolute(const char *config_path, json_t *o, const char *key)
{
	const char *slash = strrchr(config_path, '/'), *path = jstr(o, key);

	if (path && *path && *path != '/' && slash)
		json_object_set_new(
			o, key,
			json_sprintf("%.*s/%s", (int)(slash - config_path), config_path, path));
}

static void make_paths_absolute(const char *config_path, json_t *o)
{
	static const char *const keys[] = { "certificate-authority", "client-certificate",
					    "client-key", "tokenFile" };
	json_t *exec = json_object_get(o, "exec");
	const char *command = jstr(exec, "command");

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		make_absolute(config_path, o, keys[i]);
	if (command && strchr(command, '/')) /* else it is looked up in PATH */
		make_absolute(config_path, exec, "command");
}

/* What an earlier file said counts. */
static void merge(json_t *all, const json_t *doc, const char *path)
{
	const char *current = jstr(doc, "current-context");

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		json_t *into = json_object_get(all, sections[i].list), *item;
		size_t n;

		json_array_foreach (json_object_get(doc, sections[i].list), n, item) {
			if (!jstr(item, "name") || entry(into, jstr(item, "name")))
				continue;
			make_paths_absolute(path, json_object_get(item, sections[i].key));
			json_array_append(into, item);
		}
	}
	if (current && *current && !jstr(all, "current-context"))
		json_object_set_new(all, "current-context", json_string(current));
}

static int merge_file(const char *path, json_t *all, struct error *err)
{
	cleanup_with(yaml_docs_done) struct yaml_docs docs = { 0 };
	cleanup_free char *text = NULL;
	size_t len;
	int rc = file_read(path, 4 << 20, &text, &len, err);

	if (rc < 0)
		return rc;
	rc = yaml_parse(text, len, path, &docs, err);
	if (rc < 0)
		return rc;
	if (docs.count == 0)
		return 0; /* an empty file says nothing */
	if (docs.count != 1 || !json_is_object(docs.items[0].value))
		return error_set(err, EINVAL, "%s: this is not a kubeconfig", path);
	merge(all, docs.items[0].value, path);
	return 0;
}

/* ---- the document into a configuration --------------------------------------------------------- */

/* KEY-data (base64) or KEY (a file's path, which *ret_file remembers); neither leaves both as they are. */
static int load_pem(const char *where, const json_t *o, const char *key, char **ret,
		    char **ret_file, struct error *err)
{
	cleanup_free char *data_key = xasprintf("%s-data", key);
	const char *data = jstr(o, data_key), *path = jstr(o, key);
	int rc;

	if (data && *data) {
		if (config_base64(data, ret) < 0)
			return error_set(err, EINVAL, "%s: %s is not base64", where, data_key);
		return 0;
	}
	if (!path || !*path)
		return 0;
	rc = file_read(path, 1 << 20, ret, NULL, err);
	if (rc == 0)
		*ret_file = xstrdup(path);
	return rc;
}

static bool is_loopback(const char *host)
{
	return streq(host, "localhost") || streq(host, "::1") || str_has_prefix(host, "127.");
}

/* "https://HOST[:PORT][/]", HOST perhaps in brackets. */
static int parse_server(const char *where, const char *server, struct kube_config *c, bool *ret_tls,
			struct error *err)
{
	bool tls = str_has_prefix(server, "https://");

	if (!tls && !str_has_prefix(server, "http://"))
		return error_set(err, EINVAL, "%s: the server \"%s\" is not an http or https URL",
				 where, server);
	if (config_authority(server + (tls ? 8 : 7), tls ? 443 : 80, &c->host, &c->port) < 0)
		return error_set(err, EINVAL,
				 "%s: the server \"%s\" is not of the form https://HOST:PORT",
				 where, server);
	if (!tls && !is_loopback(c->host))
		return error_set(err, EINVAL,
				 "%s: a token is not sent to %s without TLS; use an https URL",
				 where, c->host);
	*ret_tls = tls;
	return 0;
}

/* Whether this machine is the one with that socket, even while its API is being started again. */
static bool is_local(const char *socket_path)
{
	cleanup_free char *dir = xstrdup(socket_path);
	char *slash = strrchr(dir, '/');
	struct stat st;

	if (slash)
		*slash = '\0';
	return slash && stat(dir, &st) == 0 && S_ISDIR(st.st_mode);
}

static int load_tls(const char *where, const json_t *cluster, struct kube_config *c,
		    struct error *err)
{
	const char *name = jstr(cluster, "tls-server-name"), *proxy = jstr(cluster, "proxy-url");
	int rc = load_pem(where, cluster, "certificate-authority", &c->ca_pem, &c->ca_file, err);

	if (rc < 0)
		return rc;
	c->insecure = jbool(cluster, "insecure-skip-tls-verify");
	if (c->insecure && c->ca_pem)
		return error_set(err, EINVAL,
				 "%s: the cluster has both a certificate authority and "
				 "insecure-skip-tls-verify; one of them has to go",
				 where);
	c->tls_name = name && *name ? xstrdup(name) : NULL;
	if (!c->ca_pem && !c->insecure)
		rc = file_read(SYSTEM_CA, 0, &c->ca_pem, NULL, err);
	if (rc == 0 && proxy && *proxy)
		rc = proxy_set(c, proxy, where, err);
	return rc;
}

static int load_cluster(const char *where, const json_t *cluster, struct kube_config *c,
			struct error *err)
{
	const char *server = jstr(cluster, "server");
	const char *socket_path =
		jstr(named(json_object_get(cluster, "extensions"), SOCKET_EXTENSION, "extension"),
		     "path");
	bool tls = false;
	int rc;

	if (socket_path && is_local(socket_path))
		c->unix_path = xstrdup(socket_path);
	if (!server)
		return c->unix_path
			       ? 0
			       : error_set(err, EINVAL, "%s: the cluster has no server", where);
	rc = parse_server(where, server, c, &tls, err);
	return rc < 0 || !tls ? rc : load_tls(where, cluster, c, err);
}

/* What a plugin is told of the cluster, where it wants to know. */
static json_t *exec_cluster(const json_t *cluster, const struct kube_config *c)
{
	static const char *const keys[] = { "server", "tls-server-name", "insecure-skip-tls-verify",
					    "certificate-authority-data", "proxy-url" };
	const json_t *config =
		named(json_object_get(cluster, "extensions"), EXEC_EXTENSION, "extension");
	json_t *told = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (json_object_get(cluster, keys[i]))
			json_object_set(told, keys[i], json_object_get(cluster, keys[i]));
	}
	if (c->ca_file && c->ca_pem) { /* plugins get the text, not the path */
		cleanup_free char *text = config_base64_text(c->ca_pem);

		json_object_set_new(told, "certificate-authority-data", json_string(text));
	}
	if (config)
		json_object_set(told, "config", (json_t *)config);
	return told;
}

static int load_exec(const char *where, const json_t *exec, const json_t *cluster,
		     struct kube_config *c, struct error *err)
{
	int rc = exec_check(exec, where, err);

	if (rc < 0)
		return rc;
	c->exec = json_deep_copy(exec);
	json_object_del(c->exec, "cluster");
	if (jbool(exec, "provideClusterInfo"))
		json_object_set_new(c->exec, "cluster", exec_cluster(cluster, c));
	return 0;
}

static int load_user(const char *where, const json_t *user, const json_t *cluster,
		     struct kube_config *c, struct error *err)
{
	const char *token = jstr(user, "token"), *token_file = jstr(user, "tokenFile");
	const json_t *exec = json_object_get(user, "exec");
	int rc;

	if (json_object_get(user, "auth-provider") || jstr(user, "username"))
		return error_set(err, EOPNOTSUPP,
				 "%s: users with an auth-provider or a password are not supported; "
				 "use a certificate, a token or exec",
				 where);
	if (token_file && *token_file)
		c->token_file = xstrdup(token_file);
	else if (token && *token)
		c->token = xstrdup(token);
	rc = load_pem(where, user, "client-certificate", &c->cert_pem, &c->cert_file, err);
	if (rc == 0)
		rc = load_pem(where, user, "client-key", &c->key_pem, &c->key_file, err);
	if (rc < 0 || !json_is_object(exec))
		return rc;
	return load_exec(where, exec, cluster, c, err);
}

static int load(const char *where, const json_t *doc, const char *wanted, struct kube_config *c,
		struct error *err)
{
	const char *name = wanted ? wanted : jstr(doc, "current-context");
	const json_t *context, *cluster, *user;
	const char *ns;
	int rc;

	if (!name || !*name)
		return error_set(err, EINVAL, "%s: no current-context is set", where);
	context = named(json_object_get(doc, "contexts"), name, "context");
	if (!context)
		return error_set(err, EINVAL, "%s: there is no context \"%s\"", where, name);
	cluster = named(json_object_get(doc, "clusters"), jstr(context, "cluster"), "cluster");
	if (!cluster)
		return error_set(err, EINVAL, "%s: the context \"%s\" names no known cluster",
				 where, name);
	user = named(json_object_get(doc, "users"), jstr(context, "user"), "user");
	rc = load_cluster(where, cluster, c, err);
	if (rc == 0 && user)
		rc = load_user(where, user, cluster, c, err);
	if (rc < 0)
		return rc;
	ns = jstr(context, "namespace");
	c->ns = xstrdup(ns && *ns ? ns : "default");
	return 0;
}

int config_from_files(const struct strv *paths, const char *context, struct kube_config *ret,
		      struct error *err)
{
	cleanup_json json_t *all = json_pack("{s[] s[] s[]}", "clusters", "users", "contexts");
	const char *where = NULL;

	for (size_t i = 0; i < paths->count; i++) {
		int rc = merge_file(paths->items[i], all, err);

		if (rc == -ENOENT && paths->count > 1)
			continue;
		if (rc < 0)
			return rc;
		where = where ? where : paths->items[i];
	}
	if (!where)
		return error_set(err, ENOENT,
				 "there is no %s, nor any other file that KUBECONFIG names",
				 paths->items[0]);
	return load(where, all, context, ret, err);
}
