/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rand.h"
#include "h2/h2.h"
#include "kube/kube.h"

#include <pthread.h>

/* What client.c and watch.c share: the client that kube_connect makes. */
struct kube_http {
	struct kube kube;
	struct h2_client *h2;
	char *where;      /* for error messages: a socket's path or HOST:PORT */
	char *manager;
	char *ns;         /* for objects that name none */
	int timeout_ms;
	struct token *token;
};

/* ---- token.c: the bearer token, read again each minute and when it was refused ------------- */
struct token;
struct token *token_new(const char *text, const char *file, const struct clock *clock);
void token_free(struct token *t); /* NULL-safe */
/* "Bearer …", or NULL where there is none; caller frees. */
char *token_header(struct token *t);
/* After a 401: true if the file now holds another token, so that a second try makes sense. */
bool token_refused(struct token *t);

/* ---- status.c: how answers become errno ---------------------------------------------------- */
/* status is the body as a Kubernetes Status, or NULL. */
int status_errno(int http_status, const json_t *status);
/* Sets err from an answer that is not a success; what: "get StorageNode a/b". Returns -errno. */
int status_error(int http_status, const char *body, size_t len, const char *what,
		 struct error *err);
/* Sets err from a transport failure: EAGAIN or ETIMEDOUT, the outcome being unknown. */
int transport_error(const struct kube_http *h, int rc, const char *what, struct error *err);

/* ---- client.c ------------------------------------------------------------------------------ */
#define KUBE_HEADERS_MAX 5
/* Fills in the headers of a request; authorization (caller frees) must outlive them. */
void http_headers(struct h2_header headers[static KUBE_HEADERS_MAX], const char *authorization,
		  const char *content_type);

/* ---- watch.c ------------------------------------------------------------------------------- */
int http_watch(struct kube *k, const struct kind *kind, const char *ns,
	       const struct kube_selector *sel, const char *version, struct kube_watch **ret,
	       struct error *err);
int http_watch_next(struct kube_watch *w, int timeout_ms, struct kube_event *ret,
		    struct error *err);
void http_watch_cancel(struct kube_watch *w);
void http_watch_close(struct kube_watch *w);

/*
 * lines.c: the lines of a watch, apart from where they come from. Bytes are fed as they arrive; 1: an event;
 * 0: more bytes are needed; -EIDRM or another error that the server reported, -EPROTO for what is no event.
 */
struct watch_lines {
	struct buf buf;
	size_t taken;     /* bytes at the front that were given out already */
	size_t searched;  /* bytes that hold no newline */
};
#define WATCH_LINE_MAX (8u << 20)
int watch_lines_feed(struct watch_lines *l, const void *data, size_t len, struct error *err);
int watch_lines_next(struct watch_lines *l, struct kube_event *ret, struct error *err);
