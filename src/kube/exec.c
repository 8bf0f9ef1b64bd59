/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "base/mem.h"
#include "base/spawn.h"

#include <errno.h>

#define RUN_MS 30000
#define OUTPUT_MAX (1 << 20)

static bool known_version(const char *version)
{
	return streq(version, "client.authentication.k8s.io/v1") ||
	       streq(version, "client.authentication.k8s.io/v1beta1");
}

int exec_check(const json_t *exec, const char *path, struct error *err)
{
	const char *command = jstr(exec, "command"), *version = jstr(exec, "apiVersion");

	if (!command || !*command)
		return error_set(err, EINVAL, "%s: the user's exec names no command", path);
	if (!known_version(version))
		return error_set(err, EOPNOTSUPP,
				 "%s: the user's exec is of %s; client.authentication.k8s.io/v1 "
				 "and v1beta1 are known",
				 path, version ? version : "no apiVersion");
	if (streq(jstr(exec, "interactiveMode"), "Always"))
		return error_set(err, EOPNOTSUPP,
				 "%s: the command \"%s\" wants to ask a person; there is nobody "
				 "to ask here",
				 path, command);
	return 0;
}

void exec_result_done(struct exec_result *r)
{
	char **const all[] = { &r->token, &r->cert_pem, &r->key_pem };

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (*all[i])
			explicit_bzero(*all[i], strlen(*all[i]));
		free(*all[i]);
		*all[i] = NULL;
	}
}

static char *exec_info(const json_t *exec)
{
	cleanup_json json_t *info =
		json_pack("{ss ss s{sb}}", "kind", "ExecCredential", "apiVersion",
			  jstr(exec, "apiVersion"), "spec", "interactive", false);

	if (json_object_get(exec, "cluster"))
		jset(info, json_incref(json_object_get(exec, "cluster")), "spec", "cluster");
	return json_text(info);
}

static char *dup_or_null(const char *s)
{
	return s && *s ? xstrdup(s) : NULL;
}

static int read_result(const json_t *exec, const json_t *said, struct exec_result *ret)
{
	const json_t *status = json_object_get(said, "status");
	const char *expires = jstr(status, "expirationTimestamp");
	cleanup_with(exec_result_done) struct exec_result r = { .expires_ms = INT64_MAX };

	if (!streq(jstr(said, "kind"), "ExecCredential") ||
	    !streq(jstr(said, "apiVersion"), jstr(exec, "apiVersion")))
		return -EPROTO;
	if (expires && time_parse(expires, &r.expires_ms) < 0)
		return -EPROTO;
	r.token = dup_or_null(jstr(status, "token"));
	r.cert_pem = dup_or_null(jstr(status, "clientCertificateData"));
	r.key_pem = dup_or_null(jstr(status, "clientKeyData"));
	if (!r.cert_pem != !r.key_pem || (!r.token && !r.cert_pem))
		return -EPROTO;
	*ret = r;
	r = (struct exec_result){ 0 };
	return 0;
}

static void wipe(struct spawn_result *r)
{
	if (r->out.data)
		explicit_bzero(r->out.data, r->out.len);
	spawn_result_done(r);
}

static int cannot_run(const json_t *exec, int rc, struct error *err)
{
	const char *command = jstr(exec, "command"), *hint = jstr(exec, "installHint");

	if (rc == -ETIMEDOUT)
		return error_set(err, EACCES,
				 "the credential plugin \"%s\" did not end within %d s", command,
				 RUN_MS / 1000);
	return error_set(err, EACCES, "the credential plugin \"%s\" cannot be run: %s%s%s", command,
			 strerror(-rc), hint ? "; " : "", hint ? hint : "");
}

static int run(const json_t *exec, const struct spawn *s, struct exec_result *ret,
	       struct error *err)
{
	const char *command = jstr(exec, "command");
	cleanup_with(wipe) struct spawn_result said = { 0 };
	cleanup_json json_t *credential = NULL;
	int rc = spawn_run(s, &said, NULL);

	if (rc < 0)
		return cannot_run(exec, rc, err);
	if (said.status != 0)
		return error_set(err, EACCES,
				 "the credential plugin \"%s\" failed with status %d; run it by "
				 "hand to see why",
				 command, said.status);
	if (said.out.len > 0)
		json_parse(said.out.data, said.out.len, &credential, NULL);
	if (read_result(exec, credential, ret) < 0)
		return error_set(err, EACCES,
				 "the credential plugin \"%s\" printed no ExecCredential of %s",
				 command, jstr(exec, "apiVersion"));
	return 0;
}

int exec_run(const json_t *exec, struct exec_result *ret, struct error *err)
{
	cleanup_with(strv_done) struct strv argv = { 0 }, env = { 0 };
	cleanup_free char *info = exec_info(exec);
	const json_t *item;
	size_t i;

	strv_add(&argv, jstr(exec, "command"));
	json_array_foreach (json_object_get(exec, "args"), i, item) {
		if (json_is_string(item))
			strv_add(&argv, json_string_value(item));
	}
	json_array_foreach (json_object_get(exec, "env"), i, item) {
		if (jstr(item, "name") && jstr(item, "value"))
			strv_add_take(&env,
				      xasprintf("%s=%s", jstr(item, "name"), jstr(item, "value")));
	}
	strv_add_take(&env, xasprintf("KUBERNETES_EXEC_INFO=%s", info));
	return run(exec,
		   &(struct spawn){ .argv = (const char *const *)argv.items,
				    .env = (const char *const *)env.items,
				    .timeout_ms = RUN_MS,
				    .output_limit = OUTPUT_MAX },
		   ret, err);
}
