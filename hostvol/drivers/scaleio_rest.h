/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/driver.h"

/*
 * The REST interface of a ScaleIO gateway. Requests are made by the program curl, which is told
 * everything on its standard input: nothing of TLS is loaded into the caller's process, and no
 * secret stands on a command line.
 */
struct scaleio_request {
	const char *server, *port;
	const char *user, *secret; /* a password (to log in) or a token */
	const char *path; /* below https://SERVER:PORT */
	const char *body; /* JSON to be posted; NULL: GET */
	const char *ca_file; /* PEM; NULL: the system's */
	bool verify; /* that the certificate is the server's */
};

struct scaleio_reply {
	int status; /* of HTTP */
	long code; /* errorCode, 0 where there is none */
	char message[200]; /* what it says of that, or "" */
	char text[2048]; /* where the whole reply is one string: an id, a token; else "" */
};

#define SCALEIO_OK 200

/*
 * -ECONNREFUSED: the request was certainly not sent (no connection, no TLS). Others: it may have
 * been carried out.
 */
int scaleio_send(const struct call *c, const struct scaleio_request *q, struct scaleio_reply *ret,
		 struct error *err);

/* Reads what curl prints: the body, a line break, the status. Does not trust it. */
int scaleio_reply_read(const char *text, struct scaleio_reply *ret, struct error *err);
/* curl's configuration for a request; -E2BIG. The caller wipes it. */
int scaleio_config_write(const struct scaleio_request *q, int timeout_ms, char *buf, size_t size,
			 struct error *err);
