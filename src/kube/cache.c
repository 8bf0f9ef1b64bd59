/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache.h"

#include "base/mem.h"

#include <errno.h>

void cache_init(struct cache *c)
{
	pthread_mutex_init(&c->lock, NULL);
	compact_init(&c->compact);
}

static struct cache_entry *entry_ref(struct cache_entry *e)
{
	atomic_fetch_add(&e->refs, 1);
	return e;
}

static void entry_unref(struct cache_entry *e)
{
	if (!e || atomic_fetch_sub(&e->refs, 1) > 1)
		return;
	free(e);
}

static void cleanup_entry_p(struct cache_entry **e)
{
	entry_unref(*e);
}
#define cleanup_entry cleanup_with(cleanup_entry_p)

void cache_done(struct cache *c)
{
	for (size_t i = 0; i < c->entries.count; i++)
		entry_unref(c->entries.items[i]);
	keyed_done(&c->entries);
	compact_done(&c->compact);
	free(c->version);
	pthread_mutex_destroy(&c->lock);
}

/* Versions are opaque by the letter and counters in every API server there is; 0 where one is not. */
static uint64_t version_number(const char *text)
{
	return strtoull(text, NULL, 10);
}

static struct cache_entry *entry_new(struct cache *c, json_t *object)
{
	cleanup_with(buf_done) struct buf value = { 0 };
	cleanup_free char *key = NULL;
	struct cache_entry *e;

	json_object_del(json_object_get(object, "metadata"), "managedFields");
	if (c->project)
		c->project(c->kind, object);
	compact_write(&c->compact, object, &value);
	key = object_key(object);
	e = xcalloc(1, offsetof(struct cache_entry, value) + value.len + strlen(key) + 1);
	e->version = version_number(object_version(object));
	e->len = (uint32_t)value.len;
	e->marked = c->mark && c->mark(c->kind, object);
	e->refs = 1;
	memcpy(e->value, value.data, value.len);
	e->key = strcpy(e->value + value.len, key);
	return e;
}

static json_t *entry_object(const struct cache *c, const struct cache_entry *e)
{
	return e ? compact_read(&c->compact, e->value, e->len) : NULL;
}

/* Puts an entry in (stolen) unless a newer one is there; gives the one whose place it took. */
static bool put(struct cache *c, struct cache_entry *e, struct cache_entry **ret_old)
{
	bool found;
	size_t at = keyed_find(&c->entries, e->key, &found);
	struct cache_entry *there = found ? c->entries.items[at] : NULL;

	if (!there) {
		keyed_insert(&c->entries, at, e);
		return true;
	}
	if (there->version > e->version) {
		if (there->round < e->round)
			there->round = e->round;
		entry_unref(e);
		return false;
	}
	c->entries.items[at] = e;
	*ret_old = there;
	return true;
}

static void notify(struct cache *c, const struct cache_entry *old, const json_t *object)
{
	cleanup_json json_t *before = NULL;

	if (!c->changed)
		return;
	if (!object || c->wants_old)
		before = entry_object(c, old);
	c->changed(before, object, c->userdata);
}

void cache_list_begin(struct cache *c)
{
	pthread_mutex_lock(&c->lock);
	c->round++;
	pthread_mutex_unlock(&c->lock);
}

void cache_list_item(struct cache *c, json_t *object)
{
	struct cache_entry *e = entry_new(c, object);
	cleanup_entry struct cache_entry *old = NULL;
	uint64_t version = e->version;
	bool changed;

	pthread_mutex_lock(&c->lock);
	e->round = c->round;
	changed = put(c, e, &old);
	pthread_mutex_unlock(&c->lock);
	if (changed && !(old && old->version == version && version > 0 && !old->learned))
		notify(c, old, object);
}

static void set_version(struct cache *c, const char *version)
{
	free(c->version);
	c->version = xstrdup(version);
	c->seen = version_number(version);
}

void cache_list_end(struct cache *c, const char *version)
{
	cleanup_free struct cache_entry **gone = NULL;
	size_t count = 0, kept = 0;

	pthread_mutex_lock(&c->lock);
	set_version(c, version);
	gone = xmalloc((c->entries.count + 1) * sizeof(struct cache_entry *));
	for (size_t i = 0; i < c->entries.count; i++) {
		struct cache_entry *e = c->entries.items[i];

		/* what was learned of a write after the list is newer than the list */
		if (e->round != c->round && e->version <= c->seen)
			gone[count++] = e;
		else
			c->entries.items[kept++] = e;
	}
	c->entries.count = kept;
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < count; i++) {
		notify(c, gone[i], NULL);
		entry_unref(gone[i]);
	}
}

static void event_deleted(struct cache *c, const json_t *object)
{
	cleanup_free char *key = object_key(object);
	cleanup_entry struct cache_entry *old = NULL;
	struct cache_entry *e;
	bool found;
	size_t at;

	pthread_mutex_lock(&c->lock);
	set_version(c, object_version(object));
	at = keyed_find(&c->entries, key, &found);
	e = found ? c->entries.items[at] : NULL;
	if (e && e->version <= c->seen) /* a newer one is the next object of that name */
		old = keyed_remove(&c->entries, at);
	pthread_mutex_unlock(&c->lock);
	if (old)
		notify(c, old, NULL);
}

/* Tells of an object as it is in the cache: it was learned or seen before, but not by all loops. */
static void notify_again(struct cache *c, const json_t *object)
{
	cleanup_json json_t *now = cache_get(c, object_namespace(object), object_name(object));

	if (now)
		notify(c, NULL, now);
}

static void event_stored(struct cache *c, json_t *object)
{
	cleanup_free char *version = xstrdup(object_version(object));
	struct cache_entry *e = entry_new(c, object);
	cleanup_entry struct cache_entry *old = NULL;
	bool stored;

	pthread_mutex_lock(&c->lock);
	set_version(c, version);
	e->round = c->round;
	stored = put(c, e, &old);
	pthread_mutex_unlock(&c->lock);
	if (stored)
		notify(c, old, object);
	else
		notify_again(c, object);
}

void cache_event(struct cache *c, const struct kube_event *event)
{
	uint64_t version = version_number(object_version(event->object));
	bool repeated;

	pthread_mutex_lock(&c->lock);
	repeated = version > 0 && version <= c->seen;
	if (event->type == KUBE_BOOKMARK && !repeated)
		set_version(c, object_version(event->object));
	pthread_mutex_unlock(&c->lock);
	if (event->type == KUBE_BOOKMARK)
		return;
	if (repeated)
		notify_again(c, event->object);
	else if (event->type == KUBE_DELETED)
		event_deleted(c, event->object);
	else
		event_stored(c, event->object);
}

void cache_learned(struct cache *c, const json_t *object)
{
	cleanup_json json_t *copy = json_deep_copy(object);
	struct cache_entry *e = entry_new(c, copy);
	cleanup_entry struct cache_entry *old = NULL;
	const struct cache_entry *known;

	e->learned = true;
	pthread_mutex_lock(&c->lock);
	known = keyed_get(&c->entries, e->key);
	/* a list that is under way may not have it: it is gone then, unless it is newer than the list */
	e->round = known ? known->round : c->round - 1;
	/*
	 * Not known and older than what the watch has shown: deleted meanwhile. With a selector
	 * only the server knows whether the object belongs here.
	 */
	if (known || (e->version > c->seen && !c->selector.labels && !c->selector.fields))
		put(c, e, &old);
	else
		entry_unref(e);
	pthread_mutex_unlock(&c->lock);
}

bool cache_has(struct cache *c, const char *key)
{
	bool has;

	pthread_mutex_lock(&c->lock);
	has = keyed_get(&c->entries, key) != NULL;
	pthread_mutex_unlock(&c->lock);
	return has;
}

json_t *cache_get(struct cache *c, const char *ns, const char *name)
{
	cleanup_free char *key = ns && *ns ? xasprintf("%s/%s", ns, name) : xstrdup(name);
	cleanup_entry struct cache_entry *e = NULL;

	pthread_mutex_lock(&c->lock);
	e = keyed_get(&c->entries, key);
	if (e)
		entry_ref(e);
	pthread_mutex_unlock(&c->lock);
	return entry_object(c, e);
}

static bool in_namespace(const struct cache_entry *e, const char *ns)
{
	size_t len = ns ? strlen(ns) : 0;

	return len == 0 || (strncmp(e->key, ns, len) == 0 && e->key[len] == '/');
}

static int each(struct cache *c, const char *ns, bool marked,
		int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	cleanup_free struct cache_entry **entries = NULL;
	size_t count = 0;
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	entries = xmalloc((c->entries.count + 1) * sizeof(*entries));
	for (size_t i = 0; i < c->entries.count; i++) {
		struct cache_entry *e = c->entries.items[i];

		if ((e->marked || !marked) && in_namespace(e, ns))
			entries[count++] = entry_ref(e);
	}
	pthread_mutex_unlock(&c->lock);
	for (size_t i = 0; i < count; i++) {
		cleanup_entry struct cache_entry *e = entries[i];
		cleanup_json json_t *object = rc == 0 ? entry_object(c, e) : NULL;

		if (object)
			rc = fn(object, userdata);
	}
	return rc;
}

int cache_each(struct cache *c, const char *ns, int (*fn)(const json_t *object, void *userdata),
	       void *userdata)
{
	return each(c, ns, false, fn, userdata);
}

int cache_each_marked(struct cache *c, const char *ns,
		      int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return each(c, ns, true, fn, userdata);
}

size_t cache_count(struct cache *c)
{
	size_t count;

	pthread_mutex_lock(&c->lock);
	count = c->entries.count;
	pthread_mutex_unlock(&c->lock);
	return count;
}
