/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <openssl/ssl.h>

/* OpenSSL as HTTP/2 wants it: TLS 1.2 or newer, forward secrecy, ALPN "h2" and nothing else. */
int tls_server_context(const char *cert_pem, const char *key_pem, SSL_CTX **ret, struct error *err);
/* Trusts ca_pem and nothing else, or insecure everybody; cert_pem and key_pem may be NULL. */
int tls_client_context(const char *ca_pem, bool insecure, const char *cert_pem, const char *key_pem,
		       SSL_CTX **ret, struct error *err);

/* For a connected socket, which stays the caller's. NULL when out of memory. */
SSL *tls_accept(SSL_CTX *ctx, int fd);
/* The peer has to show a certificate for host, a name or an IP address. */
SSL *tls_connect(SSL_CTX *ctx, int fd, const char *host);

/* One step of the handshake: 0 when done, -EAGAIN (SSL_want_write says for what), else failed:
 * -EKEYREJECTED when the peer's certificate is not to be trusted, -EPROTO, -ECONNRESET. */
int tls_handshake(SSL *ssl, struct error *err);
/* Bytes; 0 at the end (read only); -EAGAIN; -ECONNRESET or -EPROTO. */
ssize_t tls_read(SSL *ssl, void *data, size_t size);
ssize_t tls_write(SSL *ssl, const void *data, size_t len);
