/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/compact.h"
#include "kube/controller.h"
#include "kube/keyed.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * What is known of the objects of one kind and selector. Objects are kept in the form of compact.h (a
 * fiftieth of what a parsed tree takes) and parsed when read. All functions are thread-safe.
 */
struct cache_entry {
	const char *key; /* first: struct keyed; it stands behind the value */
	uint64_t version;
	unsigned round; /* of the list that last had it */
	atomic_int refs;
	uint32_t len;
	bool marked;    /* by cache.mark */
	bool learned;   /* from a write of our own: the loops have not been told of it */
	char value[];
};

/* old and object: what was and what is; old NULL: new to the cache, object NULL: gone. Called without locks. */
typedef void (*cache_changed)(const json_t *old, const json_t *object, void *userdata);

struct cache {
	const struct kind *kind;
	struct kube_selector selector;
	kube_project project;
	kube_mark mark;
	cache_changed changed;
	void *userdata;
	bool wants_old; /* else old is not parsed: NULL, unless the object is gone */

	pthread_mutex_t lock;
	struct keyed entries;
	struct compact compact;
	unsigned round;
	uint64_t seen;  /* everything up to this version has been seen */
	char *version;  /* to watch from; NULL: list first */
};

void cache_init(struct cache *c);
void cache_done(struct cache *c);

/* A list: cache_list_item for each item (changed in place) between begin and end. */
void cache_list_begin(struct cache *c);
void cache_list_item(struct cache *c, json_t *object);
void cache_list_end(struct cache *c, const char *version);
/* An event of the watch; the object is changed in place. */
void cache_event(struct cache *c, const struct kube_event *event);
/* What a write returned: kept if it is newer than what is here, and not older than a deletion seen. */
void cache_learned(struct cache *c, const json_t *object);
bool cache_has(struct cache *c, const char *key);
json_t *cache_get(struct cache *c, const char *ns, const char *name);
int cache_each(struct cache *c, const char *ns, int (*fn)(const json_t *object, void *userdata),
	       void *userdata);
int cache_each_marked(struct cache *c, const char *ns, int (*fn)(const json_t *object, void *userdata),
		      void *userdata);
size_t cache_count(struct cache *c);

/* ---- reflector.c: a thread that keeps a cache up to date by list and watch -------------------- */
struct reflector;
struct reflector_options {
	struct kube *kube;
	struct cache *cache;
	const char *ns;
	void (*synced)(void *userdata); /* after each list that went through */
	void *userdata;
};
int reflector_start(const struct reflector_options *options, struct reflector **ret,
		    struct error *err);
void reflector_stop(struct reflector *r); /* NULL-safe; waits for the thread */
