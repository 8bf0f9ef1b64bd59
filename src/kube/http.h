/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rand.h"
#include "h2/h2.h"
#include "kube/auth.h"
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
	struct auth *auth;
};

/* ---- status.c: how answers become errno ---------------------------------------------------- */
/* status is the body as a Kubernetes Status, or NULL. */
int status_errno(int http_status, const json_t *status);
/* Sets err from an answer that is not a success; what: "get StorageNode a/b". Returns -errno. */
int status_error(int http_status, const char *body, size_t len, const char *what,
		 struct error *err);
/* Sets err from a transport failure, which why may explain: EAGAIN or ETIMEDOUT, the outcome being unknown. */
int transport_error(const struct kube_http *h, int rc, const struct error *why, const char *what,
		    struct error *err);

/* ---- client.c ------------------------------------------------------------------------------ */
/* How an exchange went, for whoever may try again. */
struct http_try {
	unsigned generation; /* of the credentials used */
	int retry_ms;        /* what Retry-After asks for, 0 for a back-off of our own, -1: trying again is no use */
	bool refused;        /* 429: surely not carried out */
};
/* Sends a GET and waits for the head of its answer; what: "watch StorageNode". An answer other than 200 is an error. */
int http_open(struct kube_http *h, const char *path, const char *what, int timeout_ms,
	      struct h2_stream **ret, struct http_try *ret_try, struct error *err);

/* ---- list.c -------------------------------------------------------------------------------- */
int http_list(struct kube *k, const struct kind *kind, const char *ns,
	      const struct kube_selector *sel, json_t **ret, char **ret_version, struct error *err);
int http_list_each(struct kube *k, const struct kind *kind, const char *ns,
		   const struct kube_selector *sel, int (*fn)(json_t *object, void *userdata),
		   void *userdata, char **ret_version, struct error *err);

/* Trying again: how often and until when. */
struct http_tries {
	int64_t deadline_ms;
	int count;
	bool refreshed;
};
struct http_tries http_tries_new(const struct kube_http *h);
int http_tries_left_ms(const struct http_tries *t);
/* After a failure: waits as long as is fit, and true if it is to be tried again. read: it changes nothing. */
bool http_try_again(struct kube_http *h, struct http_tries *t, const struct http_try *last, int rc,
		    bool read);

/*
 * items.c: the items of a list, one by one as its bytes arrive, so that neither the text nor the tree of a
 * whole page is ever held. Zero-initialise.
 */
struct list_items {
	struct buf rest;  /* the list without its items */
	struct buf item;  /* the one that is arriving */
	int depth;
	bool in_string, escaped;
	bool in_items;
	size_t key_at, key_len; /* in rest: the latest string on the list's own level */
	bool key_is_items;
};
#define LIST_REST_MAX (1u << 20)
#define LIST_ITEM_MAX (8u << 20)
/* fn is called for each item (borrowed); what it returns other than 0 ends the feeding and is returned. -EPROTO. */
int list_items_feed(struct list_items *l, const char *data, size_t len,
		    int (*fn)(json_t *object, void *userdata), void *userdata, struct error *err);
/* After the last byte: the list without its items (new reference), or -EPROTO. */
int list_items_end(struct list_items *l, json_t **ret, struct error *err);
void list_items_done(struct list_items *l);

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
