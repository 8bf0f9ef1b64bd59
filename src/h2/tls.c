/* SPDX-License-Identifier: Apache-2.0 */
#include "h2/tls.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

/* The TLS 1.2 suites that RFC 9113 does not forbid and that everyone has. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

static const unsigned char alpn_h2[] = { 2, 'h', '2' };
#define NO_H2 "The peer does not speak HTTP/2"

/* The text of OpenSSL's oldest error, which names the cause; empties its queue. */
static const char *openssl_reason(void)
{
	const char *reason = ERR_reason_error_string(ERR_peek_error());

	ERR_clear_error();
	return reason ? reason : "no reason given";
}

static int select_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
		       const unsigned char *in, unsigned int in_len, void *userdata)
{
	for (unsigned int i = 0; i < in_len; i += 1U + in[i])
		if (in[i] == 2 && i + 2 < in_len && memcmp(in + i + 1, "h2", 2) == 0) {
			*out = in + i + 1;
			*out_len = 2;
			return SSL_TLSEXT_ERR_OK;
		}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void cleanup_ctx(SSL_CTX **ctx)
{
	SSL_CTX_free(*ctx);
}

static void cleanup_bio(BIO **bio)
{
	BIO_free(*bio);
}

static SSL_CTX *context_new(const SSL_METHOD *method)
{
	SSL_CTX *ctx = SSL_CTX_new(method);

	if (!ctx)
		return NULL;
	SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
	SSL_CTX_set_cipher_list(ctx, CIPHERS);
	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
	/* Connections live long: sessions to resume would only cost memory. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_num_tickets(ctx, 0);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	return ctx;
}

/* A passphrase is never asked for on the terminal. */
static int no_passphrase(char *buf, int size, int writing, void *userdata)
{
	return -1;
}

static int use_chain(SSL_CTX *ctx, const char *cert_pem, struct error *err)
{
	BIO *bio cleanup_with(cleanup_bio) = BIO_new_mem_buf(cert_pem, -1);
	X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, no_passphrase, NULL) : NULL;
	int ok = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

	X509_free(cert);
	if (!ok)
		return error_set(err, EINVAL, "The certificate cannot be used: %s",
				 openssl_reason());
	while ((cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)))
		if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
			X509_free(cert);
			return error_set(err, EINVAL, "The certificate's chain cannot be used: %s",
					 openssl_reason());
		}
	ERR_clear_error(); /* the end of the text is reported as an error */
	return 0;
}

static int use_key(SSL_CTX *ctx, const char *key_pem, struct error *err)
{
	BIO *bio cleanup_with(cleanup_bio) = BIO_new_mem_buf(key_pem, -1);
	EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
	int ok =
		key && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;

	EVP_PKEY_free(key);
	if (!ok)
		return error_set(err, EINVAL,
				 "The private key cannot be used with its certificate: %s",
				 openssl_reason());
	return 0;
}

static int trust(SSL_CTX *ctx, const char *ca_pem, struct error *err)
{
	BIO *bio cleanup_with(cleanup_bio) = BIO_new_mem_buf(ca_pem, -1);
	X509 *cert;
	int count = 0;

	while (bio && (cert = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL))) {
		count += X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), cert) == 1;
		X509_free(cert);
	}
	ERR_clear_error();
	if (count == 0)
		return error_set(err, EINVAL,
				 "The CA text holds no certificate: give it in PEM format");
	return 0;
}

int tls_server_context(const char *cert_pem, const char *key_pem, SSL_CTX **ret, struct error *err)
{
	SSL_CTX *ctx cleanup_with(cleanup_ctx) = context_new(TLS_server_method());
	int r;

	if (!ctx)
		return error_set(err, ENOMEM, "Cannot set up TLS: %s", openssl_reason());
	if (!cert_pem || !key_pem)
		return error_set(err, EINVAL, "TLS needs a certificate and its private key");
	r = use_chain(ctx, cert_pem, err);
	if (r == 0)
		r = use_key(ctx, key_pem, err);
	if (r < 0)
		return r;
	SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
	*ret = TAKE_PTR(ctx);
	return 0;
}

int tls_client_context(const char *ca_pem, bool insecure, const char *cert_pem, const char *key_pem,
		       SSL_CTX **ret, struct error *err)
{
	SSL_CTX *ctx cleanup_with(cleanup_ctx) = context_new(TLS_client_method());
	int r = 0;

	if (!ctx)
		return error_set(err, ENOMEM, "Cannot set up TLS: %s", openssl_reason());
	if (!ca_pem && !insecure)
		return error_set(err, EINVAL,
				 "TLS needs the CA that the server is checked against");
	if (!cert_pem != !key_pem)
		return error_set(err, EINVAL,
				 "A client certificate and its private key must be given together");
	if (!insecure)
		r = trust(ctx, ca_pem, err);
	if (r == 0 && cert_pem)
		r = use_chain(ctx, cert_pem, err);
	if (r == 0 && key_pem)
		r = use_key(ctx, key_pem, err);
	if (r < 0)
		return r;
	SSL_CTX_set_verify(ctx, insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_alpn_protos(ctx, alpn_h2, sizeof(alpn_h2));
	*ret = TAKE_PTR(ctx);
	return 0;
}

SSL *tls_accept(SSL_CTX *ctx, int fd)
{
	SSL *ssl = SSL_new(ctx);

	if (!ssl || SSL_set_fd(ssl, fd) != 1) {
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_accept_state(ssl);
	return ssl;
}

static bool is_address(const char *host)
{
	struct in6_addr a;

	return inet_pton(AF_INET, host, &a) == 1 || inet_pton(AF_INET6, host, &a) == 1;
}

SSL *tls_connect(SSL_CTX *ctx, int fd, const char *host)
{
	SSL *ssl = SSL_new(ctx);
	int ok = ssl && SSL_set_fd(ssl, fd) == 1;

	if (ok && is_address(host))
		ok = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host);
	else if (ok)
		ok = SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
	if (!ok) {
		SSL_free(ssl);
		ERR_clear_error();
		return NULL;
	}
	SSL_set_connect_state(ssl);
	return ssl;
}

static int check_alpn(SSL *ssl, struct error *err)
{
	const unsigned char *name;
	unsigned int len;

	SSL_get0_alpn_selected(ssl, &name, &len);
	if (len != 2 || memcmp(name, "h2", 2) != 0)
		return error_set(err, EPROTO, NO_H2);
	return 0;
}

/* A server that wants another protocol says so with an alert, or goes on without one. */
static bool refused_h2(void)
{
	return ERR_GET_REASON(ERR_peek_error()) ==
	       SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL;
}

int tls_handshake(SSL *ssl, struct error *err)
{
	int saved, r;
	long verdict;

	ERR_clear_error();
	errno = 0;
	r = SSL_do_handshake(ssl);
	saved = errno;
	if (r == 1)
		return check_alpn(ssl, err);
	switch (SSL_get_error(ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_SYSCALL:
		return error_errno(err, saved ? saved : ECONNRESET, "The TLS handshake broke off");
	default:
		break;
	}
	if (refused_h2()) {
		ERR_clear_error();
		return error_set(err, EPROTO, NO_H2);
	}
	verdict = SSL_get_verify_result(ssl);
	if (verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE) {
		ERR_clear_error();
		return error_set(err, EKEYREJECTED, "The server's certificate is not trusted: %s",
				 X509_verify_cert_error_string(verdict));
	}
	return error_set(err, EPROTO, "The TLS handshake failed: %s", openssl_reason());
}

static ssize_t io_result(SSL *ssl, int r, int saved_errno)
{
	switch (SSL_get_error(ssl, r)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return saved_errno ? -saved_errno : -ECONNRESET;
	default:
		ERR_clear_error();
		return -EPROTO;
	}
}

ssize_t tls_read(SSL *ssl, void *data, size_t size)
{
	int r;

	ERR_clear_error();
	errno = 0;
	r = SSL_read(ssl, data, size > INT_MAX ? INT_MAX : (int)size);
	return r > 0 ? r : io_result(ssl, r, errno);
}

ssize_t tls_write(SSL *ssl, const void *data, size_t len)
{
	int r;

	ERR_clear_error();
	errno = 0;
	r = SSL_write(ssl, data, len > INT_MAX ? INT_MAX : (int)len);
	if (r > 0)
		return r;
	r = (int)io_result(ssl, r, errno);
	return r == 0 ? -ECONNRESET : r;
}
