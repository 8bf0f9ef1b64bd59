/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * HTTP/2 in one place, on nghttp2 and OpenSSL: the API client, the embedded API and gRPC
 * stand on it. One I/O thread per client or server owns the sockets; callers block with a
 * deadline. Bodies are bounded, header blocks are bounded, streams per connection are bounded.
 */
struct h2_header {
	const char *name;  /* lower case */
	const char *value;
};

/* ---- client ---------------------------------------------------------------------------- */

struct h2_target {
	const char *unix_path;      /* either this (prior knowledge, no TLS), */
	const char *host;           /* or host and port, */
	int port;
	bool tls;
	const char *ca_pem;         /* with TLS: the CA to trust (PEM text); required, unless */
	bool insecure;              /* any certificate of the server will do */
	const char *tls_name;       /* the name that the server's certificate has to show; NULL: host */
	const char *cert_pem, *key_pem; /* a client certificate, or NULL */
	const char *authority;      /* ":authority", NULL: host:port or "localhost" */
	const char *proxy_host;     /* an HTTP proxy that is asked (CONNECT) for the way, or NULL; TLS only */
	int proxy_port;
	const char *proxy_auth;     /* its Proxy-Authorization ("Basic …"), or NULL */
	int ping_ms;                /* asks a silent server for a sign of life (on a unix socket only while
				       streams are open); without one for half of that, the connection is
				       broken; 0: 30 s */
};

struct h2_client;
/* Does not connect yet: a connection is made when needed and made again after it broke. */
int h2_client_new(const struct h2_target *target, struct h2_client **ret, struct error *err);
void h2_client_free(struct h2_client *c); /* NULL-safe; ends open streams with -ECONNRESET */
/* Other certificates, as in h2_target, for the connections made from now on. New requests go there;
 * what is under way ends where it began. */
int h2_client_set_tls(struct h2_client *c, const char *ca_pem, const char *cert_pem, const char *key_pem,
		      struct error *err);

struct h2_request {
	const char *method, *path;
	const struct h2_header *headers; /* ended by name NULL, or NULL */
	const void *body;
	size_t body_len;
};

struct h2_response {
	int status;
	struct h2_header *headers, *trailers; /* ended by name NULL */
	struct buf body;
};
void h2_response_done(struct h2_response *r);
const char *h2_response_header(const struct h2_response *r, const char *name);
const char *h2_response_trailer(const struct h2_response *r, const char *name);

/*
 * A whole exchange; any HTTP status is a success here. -ETIMEDOUT and -ECONNRESET: the server may or
 * may not have carried it out. Otherwise it surely has not: -ECONNREFUSED, -ENOENT (no such socket),
 * -EKEYREJECTED (the server's certificate is not trusted), -EPROTO (not HTTP/2), -EACCES and
 * -EHOSTUNREACH (the proxy refused), -E2BIG (more than 64 KiB of request headers), …; but for -EMSGSIZE
 * (the answer has more than 64 MiB).
 * A timeout below 0 is none.
 */
int h2_client_call(struct h2_client *c, const struct h2_request *req, int timeout_ms, struct h2_response *ret,
		   struct error *err);

/* A response that goes on (a watch). */
struct h2_stream;
int h2_stream_open(struct h2_client *c, const struct h2_request *req, int timeout_ms, struct h2_stream **ret,
		   int *ret_status, struct error *err);
/* Some bytes; 0 at the end of the stream; -ETIMEDOUT when nothing came in time (the stream lives on);
 * -ECONNRESET when the connection broke or the server ended the stream in the middle. The server is
 * held back while 1 MiB waits to be read. */
ssize_t h2_stream_read(struct h2_stream *s, void *data, size_t size, int timeout_ms);
/* Header fields of the answer; trailers are there once read has returned 0. */
const char *h2_stream_header(const struct h2_stream *s, const char *name);
const char *h2_stream_trailer(const struct h2_stream *s, const char *name);
/* Makes a blocked read return -ECANCELED, from any thread. */
void h2_stream_cancel(struct h2_stream *s);
void h2_stream_close(struct h2_stream *s); /* resets the stream where it has not ended; NULL-safe */

/* ---- server ---------------------------------------------------------------------------- */

/*
 * One request being answered; reference-counted, so that a watch can outlive its handler: h2_call_ref in
 * the handler, h2_call_unref when done. What h2_call_path and its like give lives as long as the reference.
 * A call whose last reference goes without an end is reset.
 */
struct h2_call;

struct h2_peer {
	bool is_unix;
	uid_t uid;   /* SO_PEERCRED, for unix sockets */
	pid_t pid;
};

/* Runs on a worker thread; answers with h2_call_reply, or h2_call_start … h2_call_end (perhaps later). */
typedef void (*h2_handler)(struct h2_call *call, void *userdata);

struct h2_listen {
	const char *unix_path;
	mode_t unix_mode;      /* of the socket's file; 0: 0666, since tokens decide, not the file */
	int tcp_port;          /* on 127.0.0.1 with TLS; 0: any free port; -1: none */
	const char *cert_pem, *key_pem;
	int workers;           /* handler threads at most: started when they are needed */
	size_t max_body;       /* larger bodies are answered 413 */
	bool any_authority;    /* takes an :authority that is none, such as a socket's path */
	/* Answers (h2_call_reply) what no handler gets to see: 413, 431 (header fields too large), 503 (too
	 * many requests in memory), without a body. On the I/O thread; the call's fields may be incomplete. What
	 * the peer has not sent yet is not waited for. NULL: a line of text. */
	void (*refuse)(struct h2_call *call, int status);
};

struct h2_server;
int h2_server_start(const struct h2_listen *listen, h2_handler handler, void *userdata, struct h2_server **ret,
		    struct error *err);
int h2_server_port(const struct h2_server *s);
/* Ends all calls and threads; handlers that still run are waited for, and their answers sent if they
 * come within 2 s. */
void h2_server_free(struct h2_server *s);

const char *h2_call_method(const struct h2_call *c);
const char *h2_call_path(const struct h2_call *c);  /* with its query, undecoded */
const char *h2_call_header(const struct h2_call *c, const char *name);
const void *h2_call_body(const struct h2_call *c, size_t *ret_len);
const struct h2_peer *h2_call_peer(const struct h2_call *c);

/* When the request began to come in, on the monotonic clock. */
int64_t h2_call_arrived_ms(const struct h2_call *c);

/* The whole answer; headers ended by name NULL, copied. A body that is NULL has no content-length either. */
void h2_call_reply(struct h2_call *c, int status, const struct h2_header *headers, const void *body, size_t len);
/* An answer in parts. Write never blocks: -EPIPE when the peer is gone, -ENOBUFS when it reads too
 * slowly (more than 4 MiB unsent): the stream is reset then, and there is no more to do but unref. */
void h2_call_start(struct h2_call *c, int status, const struct h2_header *headers);
int h2_call_write(struct h2_call *c, const void *data, size_t len);
void h2_call_end(struct h2_call *c, const struct h2_header *trailers);
bool h2_call_gone(const struct h2_call *c);
/*
 * Called once on the I/O thread when the peer goes away before h2_call_end (also when the server is freed,
 * and when it is gone already); must not block. The call lives while fn runs, but fn may run at the same
 * time as an h2_call_end on another thread: userdata has to outlive that, such as the server's own object.
 */
void h2_call_on_gone(struct h2_call *c, void (*fn)(struct h2_call *c, void *userdata), void *userdata);
struct h2_call *h2_call_ref(struct h2_call *c);
void h2_call_unref(struct h2_call *c);
