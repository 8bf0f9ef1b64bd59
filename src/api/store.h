/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "kube/kube.h"
#include "schema/schema.h"

/*
 * The embedded API's store: Kubernetes' object semantics on one SQLite file, owned by one process.
 * resourceVersion is one counter for all kinds. Validation, defaulting, generation, uid and
 * resourceVersion preconditions, finalizers and deletionTimestamp, owner-reference collection,
 * status subresource, patches (merge, JSON, strategic merge, server-side apply with
 * managedFields), the 1.5 MB limit: all here, so that the simulation has the very same rules.
 * Thread-safe. Errors as in kube/kube.h, the message as Kubernetes words it.
 */
struct store;

struct store_options {
	const char *path; /* ":memory:" for tests */
	const struct clock *clock;
	int history; /* events kept for watches; older ones answer 410; 0: 10000 */
	int64_t event_ttl_s; /* Events are dropped after this; 0: 3600 */
	struct prng *ids; /* uids from a seed (tests), NULL: random */
};
struct prng;

int store_open(const struct store_options *options, struct store **ret, struct error *err);
void store_close(struct store *s);

struct store_query {
	const struct kind *kind;
	const char *ns; /* NULL: all */
	const char *labels, *fields;
	int64_t limit; /* 0: all */
	const char *continue_token;
};
int store_get(struct store *s, const struct kind *kind, const char *ns, const char *name,
	      json_t **ret, struct error *err);
/* A whole List object. */
int store_list(struct store *s, const struct store_query *q, json_t **ret, struct error *err);

struct store_write {
	const struct kind *kind;
	const char *ns, *name;
	const char *subresource; /* NULL, "status" */
	const char *manager; /* fieldManager */
	bool dry_run, strict, force;
	const char *
		patch_type; /* content type of a patch; NULL: by JSON type (array: JSON patch), else merge */
	/* All below may be NULL. */
	char **ret_warning; /* where not strict: what strict would have refused (caller frees) */
	json_t **ret_status; /* after a failure: the metav1.Status that tells it (new reference) */
	/* A last word before anything is written, inside the transaction: old is NULL on create, new is
	 * NULL on delete. A negative result with a message forbids the write (403). */
	int (*guard)(const json_t *old, const json_t *new, void *userdata, struct error *err);
	void *guard_data;
};
int store_create(struct store *s, const struct store_write *w, const json_t *object, json_t **ret,
		 struct error *err);
int store_update(struct store *s, const struct store_write *w, const json_t *object, json_t **ret,
		 struct error *err);
/* > 0: the object was created (apply). */
int store_patch(struct store *s, const struct store_write *w, const json_t *patch, json_t **ret,
		struct error *err);
/* > 0: marked, waits for its finalizers. ret: the object (or a Status). */
int store_delete(struct store *s, const struct store_write *w,
		 const struct kube_delete_options *options, json_t **ret, struct error *err);

/* Watch: events are delivered in order to fn, from whatever thread wrote; fn must not block nor call the store. */
struct store_watch;
typedef void (*store_watch_fn)(const struct kube_event *event, void *userdata);
/* version "" or "0": first ADDED events for what is there. -EIDRM where version is too old. */
int store_watch_start(struct store *s, const struct store_query *q, const char *version,
		      store_watch_fn fn, void *userdata, struct store_watch **ret,
		      struct error *err);
void store_watch_stop(struct store_watch *w); /* after it returns fn is not called again */
int64_t store_version(struct store *s);

/* Owner-reference collection, Event expiry: called now and then by the owner; returns objects removed. */
int store_collect(struct store *s);
/* What kubernetes clients expect to find: namespaces default, kube-system. */
int store_bootstrap(struct store *s, struct error *err);

/* A client of the store in this very process (struct kube without HTTP). manager NULL: who set which
 * field is not recorded. */
struct kube *store_client(struct store *s, const char *manager);
