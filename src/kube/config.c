/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "base/mem.h"
#include "base/paths.h"

#include <errno.h>
#include <openssl/evp.h>

void kube_config_done(struct kube_config *c)
{
	char **const secret[] = { &c->key_pem, &c->token, &c->proxy_auth };
	char **const all[] = { &c->unix_path, &c->host,	      &c->ca_pem,    &c->cert_pem,
			       &c->key_pem,   &c->ca_file,    &c->cert_file, &c->key_file,
			       &c->token,     &c->token_file, &c->ns,	     &c->manager,
			       &c->tls_name,  &c->proxy_host, &c->proxy_auth };

	for (size_t i = 0; i < ARRAY_SIZE(secret); i++) {
		if (*secret[i])
			explicit_bzero(*secret[i], strlen(*secret[i]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		free(*all[i]);
		*all[i] = NULL;
	}
	json_decref(c->exec);
	c->exec = NULL;
}

int config_authority(const char *text, int default_port, char **ret_host, int *ret_port)
{
	const char *host = text, *end, *rest;
	unsigned long port = (unsigned long)default_port;
	char *after;

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
		return -EINVAL;
	*ret_host = xstrndup(host, (size_t)(end - host));
	*ret_port = (int)port;
	return 0;
}

int config_base64(const char *text, char **ret)
{
	size_t len = strlen(text);
	cleanup_free unsigned char *out = xmalloc(len / 4 * 3 + 4);
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	int n = 0, tail = 0, rc;

	EVP_DecodeInit(ctx);
	rc = EVP_DecodeUpdate(ctx, out, &n, (const unsigned char *)text, (int)len);
	if (rc >= 0)
		rc = EVP_DecodeFinal(ctx, out + n, &tail);
	EVP_ENCODE_CTX_free(ctx);
	if (rc < 0)
		return -EINVAL;
	out[n + tail] = 0;
	*ret = (char *)TAKE_PTR(out);
	return 0;
}

char *config_base64_text(const char *text)
{
	size_t len = strlen(text);
	char *out = xmalloc(len / 3 * 4 + 5);

	EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)text, (int)len);
	return out;
}

/* A list as in PATH. */
static void split_paths(const char *text, struct strv *ret)
{
	while (text && *text) {
		size_t len = strcspn(text, ":");

		if (len > 0)
			strv_add_take(ret, xstrndup(text, len));
		text += len + (text[len] != 0);
	}
}

static int load_local(struct kube_config *c, const char *context, struct error *err)
{
	cleanup_with(strv_done) struct strv paths = { 0 };
	int rc;

	strv_add_take(&paths, state_path("admin.kubeconfig"));
	rc = config_from_files(&paths, context, c, err);
	if (rc == -ENOENT)
		return error_set(err, ENOENT,
				 "there is no %s: start the store with \"quartermaster up\", or "
				 "set KUBECONFIG",
				 paths.items[0]);
	return rc;
}

static int load(const struct kube_config_source *s, struct kube_config *c, struct error *err)
{
	cleanup_with(strv_done) struct strv paths = { 0 };
	int rc;

	if (s->path)
		strv_add(&paths, s->path);
	else
		split_paths(getenv("KUBECONFIG"), &paths);
	if (paths.count > 0)
		return config_from_files(&paths, s->context, c, err);
	rc = s->context ? -ENOENT : config_in_cluster(s->root ? s->root : "", c, err);
	return rc == -ENOENT ? load_local(c, s->context, err) : rc;
}

int kube_config_find(const struct kube_config_source *source, struct kube_config *ret,
		     struct error *err)
{
	cleanup_with(kube_config_done) struct kube_config c = { 0 };
	int rc = load(source, &c, err);

	if (rc == 0 && !c.proxy_host)
		rc = proxy_from_environment(&c, err);
	if (rc < 0)
		return rc;
	*ret = c;
	c = (struct kube_config){ 0 };
	return 0;
}

int kube_config_load(const char *path, struct kube_config *ret, struct error *err)
{
	return kube_config_find(&(struct kube_config_source){ .path = path }, ret, err);
}
