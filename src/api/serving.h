/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/internal.h"
#include "api/request.h"
#include "api/server.h"

/* Inside the server. */
struct http_watch;

struct api_server {
	struct store *store;
	struct tokens *tokens;
	struct h2_server *h2;
	pthread_t keeper; /* collects, sends bookmarks, ends watches */
	bool keeper_runs;
	/* Taken with the store's lock held or not, never the other way round. */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool work, stopping;
	struct http_watch *watches;
};
void server_wake(struct api_server *s);

/* ---- rest.c: create, read, update, delete ---- */
void rest_handle(struct api_server *s, struct request *r);

/* ---- output.c: objects as the client wants to see them ---- */
/* {"kind": "Table", …} or PartialObjectMetadata of one object; for FORM_OBJECT NULL. */
json_t *output_form(const struct request *r, json_t *object, bool with_columns, int64_t now_ms);
void output_list(struct api_server *s, const struct request *r, const struct store_query *q);
void output_get(struct api_server *s, const struct request *r);

/* ---- watches.c ---- */
void watches_start(struct api_server *s, const struct request *r, const struct store_query *q);
/* Ends what is over, sends bookmarks that are due; ms until the next of these, or -1. */
int watches_tend(struct api_server *s);
void watches_end_all(struct api_server *s);

/* ---- docs.c: everything that is not a resource ---- */
/* True where the path was one of them and has been answered. open_only: those without a token. */
bool docs_handle(struct request *r, bool open_only);
