/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/certs.h"

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "h2/cert.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#define DAY_S 86400
#define CA_DAYS 3650
#define CERT_DAYS 365

char *certs_common_name(const char *ns, const char *deployment, const char *role)
{
	return xasprintf("%s.%s.%s", role, deployment, ns);
}

static void cleanup_secret(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
}
#define cleanup_key cleanup_with(cleanup_secret)

/* ---- Secrets ------------------------------------------------------------------------------- */
static int get_secret(const struct certs_options *o, const char *part, json_t **ret,
		      struct error *err)
{
	cleanup_free char *name = xasprintf("%s-%s", o->deployment, part);
	int rc = kube_get(o->kube, &KIND_SECRET, o->ns, name, ret, err);

	if (rc == -ENOENT)
		return error_set(err, ENOENT,
				 "Secret %s/%s is missing: the manifests of this deployment bring "
				 "it, empty; apply them again",
				 o->ns, name);
	return rc;
}

/* texts (stolen): key to plain text. The version that was read is the precondition. */
static int put_secret(const struct certs_options *o, const json_t *secret, json_t *texts,
		      struct error *err)
{
	cleanup_json json_t *patch = json_pack("{s:{s:s}, s:o}", "metadata", "resourceVersion",
					       object_version(secret), "stringData", texts);

	return kube_patch(o->kube, &KIND_SECRET, o->ns, object_name(secret), NULL, KUBE_PATCH_MERGE,
			  patch, NULL, err);
}

/* ---- the authority ------------------------------------------------------------------------- */
/*
 * The first certificate of ca.crt is in use. An older one stays behind it until it is over, since
 * certificates that it has signed are still in use meanwhile.
 */
static int renew_ca(const struct certs_options *o, const json_t *secret, const char *old,
		    char **ret_ca, char **ret_key, struct error *err)
{
	cleanup_free char *name = certs_common_name(o->ns, o->deployment, "ca"), *cert = NULL;
	char *key cleanup_key = NULL;
	int rc = cert_make_ca(name, CA_DAYS, &cert, &key, err);

	if (rc < 0)
		return rc;
	cleanup_free char *both = xasprintf("%s%s", cert, old ? old : "");
	rc = put_secret(o, secret, json_pack("{s:s, s:s}", "ca.crt", both, "ca.key", key), err);
	if (rc < 0)
		return rc;
	log_info("a certificate authority was made for %s/%s", o->ns, o->deployment);
	*ret_ca = TAKE_PTR(both);
	*ret_key = TAKE_PTR(key);
	return 0;
}

static int ensure_ca(const struct certs_options *o, char **ret_ca, char **ret_key,
		     struct error *err)
{
	cleanup_json json_t *secret = NULL;
	cleanup_free char *ca = NULL;
	char *key cleanup_key = NULL;
	int rc = get_secret(o, "ca", &secret, err);

	if (rc < 0)
		return rc;
	ca = secret_text(secret, "ca.crt");
	key = secret_text(secret, "ca.key");
	if (!ca || !key || cert_seconds_left(ca, ca) < (int64_t)CA_DAYS * DAY_S / 3) {
		cleanup_free char *last = ca ? xstrdup(ca) : NULL;
		const char *second = last ? strstr(last + 1, "-----BEGIN") : NULL;

		if (second)
			last[second - last] = '\0';
		return renew_ca(o, secret, last, ret_ca, ret_key, err);
	}
	*ret_ca = TAKE_PTR(ca);
	*ret_key = TAKE_PTR(key);
	return 0;
}

/* ---- certificates -------------------------------------------------------------------------- */
static int renew(const struct certs_options *o, const json_t *secret, const char *role,
		 const char *ca, const char *ca_key, char **ret_cert, char **ret_key,
		 struct error *err)
{
	cleanup_free char *name = certs_common_name(o->ns, o->deployment, role), *cert = NULL;
	char *key cleanup_key = NULL;
	int rc = cert_make_peer(ca, ca_key, name, CERT_DAYS, &cert, &key, err);

	if (rc == 0)
		rc = put_secret(
			o, secret,
			json_pack("{s:s, s:s, s:s}", "ca.crt", ca, "tls.crt", cert, "tls.key", key),
			err);
	if (rc < 0)
		return rc;
	log_info("the certificate %s was made, for %d days", name, CERT_DAYS);
	*ret_cert = TAKE_PTR(cert);
	*ret_key = TAKE_PTR(key);
	return 0;
}

/* In the Secret DEPLOYMENT-part, for a role. */
static int ensure_cert(const struct certs_options *o, const char *part, const char *role,
		       const char *ca, const char *ca_key, char **ret_cert, char **ret_key,
		       struct error *err)
{
	cleanup_json json_t *secret = NULL;
	cleanup_free char *cert = NULL, *known_ca = NULL;
	char *key cleanup_key = NULL;
	int rc = get_secret(o, part, &secret, err);

	if (rc < 0)
		return rc;
	cert = secret_text(secret, "tls.crt");
	known_ca = secret_text(secret, "ca.crt");
	key = secret_text(secret, "tls.key");
	if (!cert || !key || !streq(known_ca, ca) ||
	    cert_seconds_left(cert, ca) < (int64_t)CERT_DAYS * DAY_S / 3)
		return renew(o, secret, role, ca, ca_key, ret_cert, ret_key, err);
	*ret_cert = TAKE_PTR(cert);
	*ret_key = TAKE_PTR(key);
	return 0;
}

static int write_own(const struct certs_options *o, const char *name, const char *text,
		     struct error *err)
{
	cleanup_free char *path = xasprintf("%s/%s", o->dir, name);

	return file_write(path, text, strlen(text), 0600, err);
}

/* By the certificate alone: a key without it is of no use, and its hash need not be known to anybody. */
static char *cert_id(const char *cert)
{
	return xasprintf("%016llx", (unsigned long long)XXH64(cert, strlen(cert), 0));
}

static int write_all_own(const struct certs_options *o, const char *ca, const char *cert,
			 const char *key, struct error *err)
{
	int rc = mkdir_parents(o->dir, 0700, err);

	if (rc < 0 || (rc = write_own(o, "ca.crt", ca, err)) < 0 ||
	    (rc = write_own(o, "tls.crt", cert, err)) < 0 ||
	    (rc = write_own(o, "tls.key", key, err)) < 0)
		return rc;
	return o->secure_file ? file_write(o->secure_file, "", 0, 0600, err) : 0;
}

int certs_ensure(const struct certs_options *o, char **ret_id, struct error *err)
{
	cleanup_free char *ca = NULL, *cert = NULL;
	char *ca_key cleanup_key = NULL, *key cleanup_key = NULL;
	int rc = ensure_ca(o, &ca, &ca_key, err);

	if (rc == 0)
		rc = ensure_cert(o, "tls", "storage", ca, ca_key, &cert, &key, err);
	if (rc == 0 && o->dir)
		rc = write_all_own(o, ca, cert, key, err);
	if (rc == 0 && ret_id)
		*ret_id = cert_id(cert);
	return rc;
}

int certs_ensure_client(const struct certs_options *o, struct error *err)
{
	cleanup_free char *ca = NULL, *cert = NULL;
	char *ca_key cleanup_key = NULL, *key cleanup_key = NULL;
	int rc = ensure_ca(o, &ca, &ca_key, err);

	return rc < 0 ? rc : ensure_cert(o, "client", "client", ca, ca_key, &cert, &key, err);
}
