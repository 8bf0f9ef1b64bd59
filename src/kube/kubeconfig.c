/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/base64.h"
#include "kube/kube.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/yaml.h"

#include <errno.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#define SOCKET_EXTENSION "quartermaster.storage/socket"
#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"

void kube_config_done(struct kube_config *c)
{
	char **const all[] = { &c->unix_path, &c->host,	      &c->ca_pem, &c->cert_pem, &c->key_pem,
			       &c->token,     &c->token_file, &c->ns,	  &c->manager };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		free(*all[i]);
		*all[i] = NULL;
	}
}

/* The value of key in the entry of that name: clusters, users and contexts are all lists of {name, KEY}. */
static const json_t *named(const json_t *list, const char *name, const char *key)
{
	size_t i;
	const json_t *item;

	json_array_foreach (list, i, item) {
		if (streq(jstr(item, "name"), name))
			return json_object_get(item, key);
	}
	return NULL;
}

/* A path in a kubeconfig is relative to where that file is. */
static char *beside(const char *config_path, const char *path)
{
	const char *slash = strrchr(config_path, '/');

	if (*path == '/' || !slash)
		return xstrdup(path);
	return xasprintf("%.*s/%s", (int)(slash - config_path), config_path, path);
}

/* KEY-data (base64) or KEY (a file's path); neither leaves *ret as it is. */
static int load_pem(const char *config_path, const json_t *o, const char *key, char **ret,
		    struct error *err)
{
	cleanup_free char *data_key = xasprintf("%s-data", key);
	const char *data = jstr(o, data_key), *path = jstr(o, key);
	cleanup_free char *full = NULL;
	size_t len;

	if (data) {
		if (base64_decode(data, ret) < 0)
			return error_set(err, EINVAL, "%s: %s is not base64", config_path,
					 data_key);
		return 0;
	}
	if (!path)
		return 0;
	full = beside(config_path, path);
	return file_read(full, 1 << 20, ret, &len, err);
}

static bool is_loopback(const char *host)
{
	return streq(host, "localhost") || streq(host, "::1") || str_has_prefix(host, "127.");
}

/* "https://HOST[:PORT][/]", HOST perhaps in brackets. */
static int parse_server(const char *path, const char *server, struct kube_config *c, bool *ret_tls,
			struct error *err)
{
	bool tls = str_has_prefix(server, "https://");
	const char *host = server + (tls ? 8 : 7), *end, *rest;
	unsigned long port = tls ? 443 : 80;
	char *after;

	if (!tls && !str_has_prefix(server, "http://"))
		return error_set(err, EINVAL, "%s: the server \"%s\" is not an http or https URL",
				 path, server);
	if (*host == '[') {
		end = strchr(++host, ']');
		rest = end ? end + 1 : NULL;
	} else {
		rest = end = host + strcspn(host, ":/");
	}
	if (end && *rest == ':') {
		port = strtoul(rest + 1, &after, 10);
		rest = after;
	}
	if (!end || end == host || port == 0 || port > 65535 || (*rest && !streq(rest, "/")))
		return error_set(err, EINVAL,
				 "%s: the server \"%s\" is not of the form "
				 "https://HOST:PORT",
				 path, server);
	c->host = xstrndup(host, (size_t)(end - host));
	c->port = (int)port;
	if (!tls && !is_loopback(c->host))
		return error_set(err, EINVAL,
				 "%s: a token is not sent to %s without TLS; use an "
				 "https URL",
				 path, c->host);
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

static int load_cluster(const char *path, const json_t *cluster, struct kube_config *c,
			struct error *err)
{
	const char *server = jstr(cluster, "server");
	const char *socket_path =
		jstr(named(json_object_get(cluster, "extensions"), SOCKET_EXTENSION, "extension"),
		     "path");
	size_t len;
	bool tls = false;
	int rc;

	if (socket_path && is_local(socket_path))
		c->unix_path = xstrdup(socket_path);
	if (!server)
		return c->unix_path ? 0
				    : error_set(err, EINVAL, "%s: the cluster has no server", path);
	if (jbool(cluster, "insecure-skip-tls-verify"))
		return error_set(err, EINVAL,
				 "%s: insecure-skip-tls-verify is not supported; give "
				 "certificate-authority-data instead",
				 path);
	rc = parse_server(path, server, c, &tls, err);
	if (rc < 0 || !tls)
		return rc;
	rc = load_pem(path, cluster, "certificate-authority", &c->ca_pem, err);
	if (rc < 0 || c->ca_pem)
		return rc;
	return file_read(SYSTEM_CA, 0, &c->ca_pem, &len, err);
}

static int load_user(const char *path, const json_t *user, struct kube_config *c, struct error *err)
{
	const char *token = jstr(user, "token"), *token_file = jstr(user, "tokenFile");
	int rc;

	if (jget(user, "exec") || jget(user, "auth-provider"))
		return error_set(err, EOPNOTSUPP,
				 "%s: users that run a command for their "
				 "credentials are not supported; use a token",
				 path);
	if (token_file)
		c->token_file = beside(path, token_file);
	else if (token)
		c->token = xstrdup(token);
	rc = load_pem(path, user, "client-certificate", &c->cert_pem, err);
	if (rc < 0)
		return rc;
	return load_pem(path, user, "client-key", &c->key_pem, err);
}

static int load(const char *path, const json_t *doc, struct kube_config *c, struct error *err)
{
	const char *current = jstr(doc, "current-context");
	const json_t *context, *cluster, *user;
	const char *ns;
	int rc;

	if (!current || !*current)
		return error_set(err, EINVAL, "%s: no current-context is set", path);
	context = named(json_object_get(doc, "contexts"), current, "context");
	if (!context)
		return error_set(err, EINVAL, "%s: there is no context \"%s\"", path, current);
	cluster = named(json_object_get(doc, "clusters"), jstr(context, "cluster"), "cluster");
	if (!cluster)
		return error_set(err, EINVAL, "%s: the context \"%s\" names no known cluster", path,
				 current);
	user = named(json_object_get(doc, "users"), jstr(context, "user"), "user");
	rc = load_cluster(path, cluster, c, err);
	if (rc == 0 && user)
		rc = load_user(path, user, c, err);
	if (rc < 0)
		return rc;
	ns = jstr(context, "namespace");
	c->ns = xstrdup(ns && *ns ? ns : "default");
	return 0;
}

/* $KUBECONFIG may be a list as in PATH; like kubectl's first match, the first that exists counts. */
static char *default_path(void)
{
	const char *env = getenv("KUBECONFIG");

	while (env && *env) {
		size_t len = strcspn(env, ":");
		cleanup_free char *path = xstrndup(env, len);

		if (!env[len] || (len > 0 && access(path, F_OK) == 0))
			return TAKE_PTR(path);
		env += len + 1;
	}
	return state_path("admin.kubeconfig");
}

int kube_config_load(const char *path, struct kube_config *ret, struct error *err)
{
	cleanup_free char *chosen = path ? xstrdup(path) : default_path();
	cleanup_with(kube_config_done) struct kube_config c = { 0 };
	cleanup_with(yaml_docs_done) struct yaml_docs docs = { 0 };
	cleanup_free char *text = NULL;
	size_t len;
	int rc = file_read(chosen, 4 << 20, &text, &len, err);

	if (rc == -ENOENT && !path)
		return error_set(err, ENOENT,
				 "there is no %s: start the store with \"quartermaster "
				 "up\", or set KUBECONFIG",
				 chosen);
	if (rc < 0)
		return rc;
	rc = yaml_parse(text, len, chosen, &docs, err);
	if (rc < 0)
		return rc;
	if (docs.count != 1)
		return error_set(err, EINVAL, "%s: this is not a kubeconfig", chosen);
	rc = load(chosen, docs.items[0].value, &c, err);
	if (rc < 0)
		return rc;
	*ret = c;
	c = (struct kube_config){ 0 };
	return 0;
}
