/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "schema/schema.h"

/*
 * The one thing that control loops know: a client of the Kubernetes API. Behind it is a cluster's
 * API server or the embedded API over HTTP/2 (kube_connect), or in tests the same store in memory
 * with faults (tests/sim). Errors are errno:
 *   ENOENT 404 · EEXIST 409 AlreadyExists · ESTALE 409 Conflict (read again, try again) ·
 *   EIDRM 410 Gone · EINVAL 400, 422 · E2BIG 413 · EACCES 401 · EPERM 403 ·
 *   EAGAIN 429, 5xx, connection lost (outcome unknown) · ETIMEDOUT deadline passed (outcome unknown)
 */
struct kube;

struct kube_selector {
	const char *labels; /* "a=b,c in (d,e),!f", or NULL */
	const char *fields; /* "metadata.name=x", or NULL */
	/* Of a list: what the server has at hand will do. Else one of a kind that seldom changes takes it up to
	 * 0.1 s, since it waits for a sign from etcd that nothing newer is there. */
	bool recent;
};

enum kube_patch { KUBE_PATCH_MERGE, KUBE_PATCH_JSON, KUBE_PATCH_APPLY };

struct kube_delete_options {
	const char *uid;              /* precondition, or NULL */
	const char *resource_version; /* precondition, or NULL */
	const char *propagation;      /* "Background" (default), "Foreground", "Orphan" */
};

enum kube_event_type { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED, KUBE_BOOKMARK };
struct kube_event {
	enum kube_event_type type;
	json_t *object;               /* owned by the reader */
};

struct kube_watch;

/* An implementation. Objects given are borrowed, results are new references. ns is NULL for all
 * namespaces (list, watch) and for cluster-scoped kinds. */
struct kube_ops {
	int (*get)(struct kube *k, const struct kind *kind, const char *ns, const char *name, json_t **ret,
		   struct error *err);
	/* The items as an array (pages are followed) and the list's resourceVersion (caller frees). */
	int (*list)(struct kube *k, const struct kind *kind, const char *ns, const struct kube_selector *sel,
		    json_t **ret, char **ret_version, struct error *err);
	int (*create)(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret, struct error *err);
	/* PUT; subresource NULL or "status"; the object's resourceVersion is the precondition. */
	int (*update)(struct kube *k, const struct kind *kind, const char *subresource, const json_t *object,
		      json_t **ret, struct error *err);
	int (*patch)(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		     const char *subresource, enum kube_patch type, const json_t *patch, json_t **ret,
		     struct error *err);
	int (*remove)(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		      const struct kube_delete_options *options, struct error *err);
	int (*watch)(struct kube *k, const struct kind *kind, const char *ns, const struct kube_selector *sel,
		     const char *version, struct kube_watch **ret, struct error *err);
	/* 1 and an event; 0 at the end of the watch; -ETIMEDOUT; -EIDRM: list again. */
	int (*watch_next)(struct kube_watch *w, int timeout_ms, struct kube_event *ret, struct error *err);
	void (*watch_cancel)(struct kube_watch *w); /* from any thread */
	void (*watch_close)(struct kube_watch *w);
	void (*free)(struct kube *k);
	/* Optional (NULL: made of list): the items one by one (borrowed), so that a long list is never held
	 * whole; stops when fn returns non-zero, and returns that. -EIDRM: changed too much meanwhile, begin anew. */
	int (*list_each)(struct kube *k, const struct kind *kind, const char *ns, const struct kube_selector *sel,
			 int (*fn)(json_t *object, void *userdata), void *userdata, char **ret_version,
			 struct error *err);
};

struct kube {
	const struct kube_ops *ops;
	const struct clock *clock;
	_Atomic int64_t quiet_until_ms; /* the server asked to be left alone until then (Retry-After); monotonic, 0: no */
};

/* ret may be NULL in all of these; a name like their operation's. */
int kube_get(struct kube *k, const struct kind *kind, const char *ns, const char *name, json_t **ret, struct error *err);
int kube_list(struct kube *k, const struct kind *kind, const char *ns, const struct kube_selector *sel, json_t **ret,
	      char **ret_version, struct error *err);
int kube_list_each(struct kube *k, const struct kind *kind, const char *ns, const struct kube_selector *sel,
		   int (*fn)(json_t *object, void *userdata), void *userdata, char **ret_version, struct error *err);
int kube_create(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret, struct error *err);
int kube_update(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret, struct error *err);
int kube_update_status(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret, struct error *err);
int kube_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name, const char *subresource,
	       enum kube_patch type, const json_t *patch, json_t **ret, struct error *err);
int kube_delete(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		const struct kube_delete_options *options, struct error *err);
void kube_free(struct kube *k);

/* Where the API is and who we are. */
struct kube_config {
	char *unix_path, *host, *ca_pem, *cert_pem, *key_pem;
	int port;
	char *ca_file, *cert_file, *key_file; /* where these texts stand, or NULL: read again when they change */
	char *tls_name;    /* the name in the server's certificate, or NULL: host */
	bool insecure;     /* any certificate of the server will do */
	char *proxy_host;  /* an HTTP proxy that is asked by CONNECT, or NULL */
	int proxy_port;
	char *proxy_auth;  /* "Basic …", or NULL */
	char *token;       /* or */
	char *token_file;  /* read again when it changes and after a 401; or */
	json_t *exec;      /* a program that gives a token or a certificate: a kubeconfig's exec, "cluster" filled in */
	char *ns;          /* default namespace */
	char *manager;     /* fieldManager: "quartermaster-operator" */
	int timeout_ms;    /* for each call, retries included; 0: 30 s */
	int ping_ms;       /* a silent connection is asked for a sign of life after that; 0: 30 s */
};
struct kube_config_source {
	const char *path;    /* a kubeconfig; NULL: $KUBECONFIG's files, merged as kubectl does; else what a pod is
				given; else the local embedded API's admin.kubeconfig */
	const char *context; /* one of the kubeconfig's; NULL: its current-context */
	const char *root;    /* the directory that stands for / where a pod's files are looked for; NULL: / */
};
int kube_config_find(const struct kube_config_source *source, struct kube_config *ret, struct error *err);
/* The same with a path alone. */
int kube_config_load(const char *path, struct kube_config *ret, struct error *err);
void kube_config_done(struct kube_config *c);
int kube_connect(const struct kube_config *config, struct kube **ret, struct error *err);

/* ---- small things about objects ----------------------------------------------------------- */
const char *object_name(const json_t *o);
const char *object_namespace(const json_t *o); /* "" for none */
const char *object_uid(const json_t *o);
const char *object_version(const json_t *o);
const char *object_label(const json_t *o, const char *key);
const char *object_annotation(const json_t *o, const char *key);
bool object_deleting(const json_t *o);
bool object_has_finalizer(const json_t *o, const char *finalizer);
/* true if it changed */
bool object_add_finalizer(json_t *o, const char *finalizer);
bool object_remove_finalizer(json_t *o, const char *finalizer);
/* "namespace/name" or "name"; caller frees */
char *object_key(const json_t *o);
/* Splits a key; ns "" where none. The buffers hold 254 bytes. */
void key_split(const char *key, char ns[static 254], char name[static 254]);
/* Sets a condition in the array conditions; lastTransitionTime moves only when status changes. True if anything changed. */
bool condition_set(json_t *conditions, const char *type, bool status, const char *reason, const char *message,
		   int64_t generation, int64_t now_wall_ms);
const json_t *condition_get(const json_t *conditions, const char *type);
bool condition_is_true(const json_t *conditions, const char *type);
/* A value of a Secret as text; NULL where it has none, or none that is text. Caller frees. */
char *secret_text(const json_t *secret, const char *key);
/* A metav1.OwnerReference to owner (controller, blockOwnerDeletion). New reference. */
json_t *owner_reference(const struct kind *kind, const json_t *owner);
