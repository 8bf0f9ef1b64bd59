/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "h2/h2.h"
#include "kube/kube.h"

/*
 * Who we are, for as long as a client lives: a token, a certificate, or a program that gives them.
 * Files are read again when they change; a program is run again when what it gave has expired or
 * was refused. New certificates go to the HTTP/2 client by themselves. Thread-safe.
 */
struct auth;
struct auth *auth_new(const struct kube_config *config, struct h2_client *h2, const struct clock *clock);
void auth_free(struct auth *a); /* NULL-safe */

struct auth_use {
	char *header;        /* "Bearer …" (the caller frees it), or NULL where there is none */
	unsigned generation; /* of the credentials */
};
/* -EACCES where a program gave nothing. */
int auth_take(struct auth *a, struct auth_use *ret, struct error *err);
void auth_use_done(struct auth_use *u);
/* After a 401: true if there are other credentials now than those, so that a second try makes sense. */
bool auth_refused(struct auth *a, unsigned generation);
