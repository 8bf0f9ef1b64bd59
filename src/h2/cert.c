/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/cert.h"

#include "base/mem.h"
#include "base/rand.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#define SERIAL_BYTES 16

static void cleanup_x509(X509 **x)
{
	X509_free(*x);
}

static void cleanup_key(EVP_PKEY **k)
{
	EVP_PKEY_free(*k);
}

static void cleanup_bio(BIO **b)
{
	BIO_free(*b);
}

static void cleanup_buf(struct buf *b)
{
	buf_done(b);
}

static int fail(struct error *err, const char *what)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	ERR_clear_error();
	return error_set(err, EINVAL, "Cannot make a certificate: %s: %s", what,
			 reason ? reason : "no reason given");
}

static int set_serial(X509 *cert)
{
	unsigned char bytes[SERIAL_BYTES];
	BIGNUM *n;
	int ok;

	rand_bytes(bytes, sizeof(bytes));
	bytes[0] &= 0x7f; /* a positive number … */
	bytes[0] |= 0x40; /* … and never 0 */
	n = BN_bin2bn(bytes, sizeof(bytes), NULL);
	ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
	BN_free(n);
	return ok;
}

static int set_subject(X509 *cert, const char *common_name)
{
	return X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_UTF8,
					  (const unsigned char *)common_name, -1, -1, 0);
}

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *ext;
	int ok;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	ok = ext && X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
	return ok;
}

/* All that certificates of either kind have; not signed yet. */
static X509 *new_cert(const char *common_name, int days, EVP_PKEY *key, X509 *issuer)
{
	X509 *cert cleanup_with(cleanup_x509) = X509_new();

	if (!cert || !X509_set_version(cert, X509_VERSION_3) || !set_serial(cert) ||
	    !X509_gmtime_adj(X509_getm_notBefore(cert), -3600) ||
	    !X509_time_adj_ex(X509_getm_notAfter(cert), days, 0, NULL) ||
	    !X509_set_pubkey(cert, key) || !set_subject(cert, common_name) ||
	    !X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert)) ||
	    !add_extension(cert, issuer ? issuer : cert, NID_subject_key_identifier, "hash"))
		return NULL;
	return TAKE_PTR(cert);
}

static char *bio_text(BIO *bio)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);

	return xstrndup(data, (size_t)len);
}

static int to_pem(X509 *cert, EVP_PKEY *key, char **ret_cert, char **ret_key, struct error *err)
{
	BIO *cert_bio cleanup_with(cleanup_bio) = BIO_new(BIO_s_mem());
	BIO *key_bio cleanup_with(cleanup_bio) = BIO_new(BIO_s_secmem());

	if (!cert_bio || !key_bio || !PEM_write_bio_X509(cert_bio, cert) ||
	    !PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL))
		return fail(err, "writing it as PEM");
	*ret_cert = bio_text(cert_bio);
	*ret_key = bio_text(key_bio);
	return 0;
}

int cert_make_ca(const char *common_name, int days, char **ret_cert_pem, char **ret_key_pem,
		 struct error *err)
{
	EVP_PKEY *key cleanup_with(cleanup_key) = EVP_EC_gen("P-256");
	X509 *cert cleanup_with(cleanup_x509) = NULL;

	if (!key)
		return fail(err, "the private key");
	cert = new_cert(common_name, days, key, NULL);
	if (!cert)
		return fail(err, "the fields");
	if (!add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
	    !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign"))
		return fail(err, "the extensions");
	if (!X509_sign(cert, key, EVP_sha256()))
		return fail(err, "signing");
	return to_pem(cert, key, ret_cert_pem, ret_key_pem, err);
}

static bool is_address(const char *name)
{
	struct in6_addr a;

	return inet_pton(AF_INET, name, &a) == 1 || inet_pton(AF_INET6, name, &a) == 1;
}

/* "DNS:localhost,IP:127.0.0.1" in ret; names that could break out of that text are refused. */
static int alt_text(const char *const *names, struct buf *ret, struct error *err)
{
	static const char *const local[] = { "localhost", "127.0.0.1", "::1", NULL };

	for (names = names ? names : local; *names; names++) {
		if (!is_address(*names) && !name_is_subdomain(*names))
			return error_set(err, EINVAL,
					 "Cannot make a certificate for \"%s\": neither a host "
					 "name nor an IP address",
					 *names);
		buf_printf(ret, "%s%s:%s", ret->len ? "," : "", is_address(*names) ? "IP" : "DNS",
			   *names);
	}
	return 0;
}

static int read_ca(const char *cert_pem, const char *key_pem, X509 **ret_cert, EVP_PKEY **ret_key,
		   struct error *err)
{
	BIO *cert_bio cleanup_with(cleanup_bio) = BIO_new_mem_buf(cert_pem, -1);
	BIO *key_bio cleanup_with(cleanup_bio) = BIO_new_mem_buf(key_pem, -1);
	X509 *cert cleanup_with(cleanup_x509) = NULL;
	EVP_PKEY *key cleanup_with(cleanup_key) = NULL;

	/* The empty passphrase keeps OpenSSL from asking on the terminal. */
	if (cert_bio)
		cert = PEM_read_bio_X509(cert_bio, NULL, NULL, (void *)"");
	if (key_bio)
		key = PEM_read_bio_PrivateKey(key_bio, NULL, NULL, (void *)"");
	if (!cert || !key || X509_check_private_key(cert, key) != 1)
		return fail(err, "reading the CA and its key");
	*ret_cert = TAKE_PTR(cert);
	*ret_key = TAKE_PTR(key);
	return 0;
}

/* usage: of the key, as OpenSSL spells it. */
static int make_signed(const char *ca_cert, const char *ca_key, const char *common_name,
		       const char *const *alt_names, const char *usage, int days, char **ret_cert,
		       char **ret_key, struct error *err)
{
	EVP_PKEY *key cleanup_with(cleanup_key) = NULL;
	EVP_PKEY *issuer_key cleanup_with(cleanup_key) = NULL;
	X509 *cert cleanup_with(cleanup_x509) = NULL;
	X509 *issuer cleanup_with(cleanup_x509) = NULL;
	struct buf alt cleanup_with(cleanup_buf) = { 0 };
	int r = alt_text(alt_names, &alt, err);

	if (r == 0)
		r = read_ca(ca_cert, ca_key, &issuer, &issuer_key, err);
	if (r < 0)
		return r;
	key = EVP_EC_gen("P-256");
	if (!key)
		return fail(err, "the private key");
	cert = new_cert(common_name, days, key, issuer);
	if (!cert)
		return fail(err, "the fields");
	if (!add_extension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") ||
	    !add_extension(cert, issuer, NID_key_usage, "critical,digitalSignature") ||
	    !add_extension(cert, issuer, NID_ext_key_usage, usage) ||
	    !add_extension(cert, issuer, NID_authority_key_identifier, "keyid") ||
	    (alt.len && !add_extension(cert, issuer, NID_subject_alt_name, alt.data)))
		return fail(err, "the extensions");
	if (!X509_sign(cert, issuer_key, EVP_sha256()))
		return fail(err, "signing");
	return to_pem(cert, key, ret_cert, ret_key, err);
}

int cert_make_server(const char *ca_cert, const char *ca_key, const char *common_name,
		     const char *const *alt_names, int days, char **ret_cert, char **ret_key,
		     struct error *err)
{
	return make_signed(ca_cert, ca_key, common_name, alt_names, "serverAuth", days, ret_cert,
			   ret_key, err);
}

int cert_make_peer(const char *ca_cert, const char *ca_key, const char *common_name, int days,
		   char **ret_cert, char **ret_key, struct error *err)
{
	static const char *const none[] = { NULL };

	return make_signed(ca_cert, ca_key, common_name, none, "serverAuth,clientAuth", days,
			   ret_cert, ret_key, err);
}

static X509 *read_cert(const char *pem)
{
	BIO *bio cleanup_with(cleanup_bio) = BIO_new_mem_buf(pem, -1);

	return bio ? PEM_read_bio_X509(bio, NULL, NULL, (void *)"") : NULL;
}

int64_t cert_seconds_left(const char *cert_pem, const char *ca_pem)
{
	X509 *cert cleanup_with(cleanup_x509) = read_cert(cert_pem);
	X509 *ca cleanup_with(cleanup_x509) = read_cert(ca_pem);
	int days = 0, seconds = -1;

	if (!cert || !ca || X509_verify(cert, X509_get0_pubkey(ca)) != 1 ||
	    !ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert))) {
		ERR_clear_error();
		return -1;
	}
	return (int64_t)days * 86400 + seconds;
}
