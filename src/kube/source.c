/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "kube/runner.h"

#include <errno.h>
#include <malloc.h>

/* ---- who has what --------------------------------------------------------------------------- */

/* Sources come and go while they are read: a view holds those of one kind as they were. */
struct view {
	struct source **items;
	size_t count;
};

static bool is_whole(const struct source *s)
{
	return !s->cache.selector.labels && !s->cache.selector.fields && (s->synced || !s->follows);
}

static void view_add(struct view *v, struct source *s)
{
	atomic_fetch_add(&s->refs, 1);
	v->items[v->count++] = s;
}

/* All sources of the kind; to read from, the one that has all objects is enough where there is one. */
static struct view view_of(struct runner *r, const struct kind *kind, bool to_read)
{
	struct source *whole = NULL;
	struct view v = { 0 };

	pthread_mutex_lock(&r->lock);
	v.items = xcalloc(r->source_count + 1, sizeof(struct source *));
	for (size_t i = 0; i < r->source_count && to_read; i++) {
		if (r->sources[i]->cache.kind == kind && is_whole(r->sources[i]))
			whole = r->sources[i];
	}
	for (size_t i = 0; i < r->source_count; i++) {
		struct source *s = r->sources[i];

		if (s->cache.kind == kind && (!whole || s == whole))
			view_add(&v, s);
	}
	pthread_mutex_unlock(&r->lock);
	return v;
}

static void source_unref(struct source *s)
{
	if (atomic_fetch_sub(&s->refs, 1) > 1)
		return;
	cache_done(&s->cache);
	free(s->labels);
	free(s->fields);
	free(s);
}

static void view_done(struct view *v)
{
	for (size_t i = 0; i < v->count; i++)
		source_unref(v->items[i]);
	free(v->items);
}

/* ---- reading -------------------------------------------------------------------------------- */

static uint64_t version_of(const json_t *object)
{
	const char *version = object ? object_version(object) : NULL;

	return version ? strtoull(version, NULL, 10) : 0;
}

/* The newest, where several have it. */
static json_t *runner_get(struct reader *reader, const struct kind *kind, const char *ns,
			  const char *name)
{
	cleanup_with(view_done) struct view v = view_of((struct runner *)reader, kind, true);
	json_t *newest = NULL;

	for (size_t i = 0; i < v.count; i++) {
		json_t *object = cache_get(&v.items[i]->cache, ns, name);

		if (object && (!newest || version_of(object) > version_of(newest))) {
			json_decref(newest);
			newest = object;
		} else {
			json_decref(object);
		}
	}
	return newest;
}

struct visit {
	const struct view *view;
	size_t at; /* the source that is being read */
	int (*fn)(const json_t *object, void *userdata);
	void *userdata;
};

static int visit_once(const json_t *object, void *userdata)
{
	const struct visit *v = userdata;
	cleanup_free char *key = v->at > 0 ? object_key(object) : NULL;

	for (size_t i = 0; i < v->at; i++) {
		if (cache_has(&v->view->items[i]->cache, key))
			return 0;
	}
	return v->fn(object, v->userdata);
}

typedef int (*each_fn)(struct cache *c, const char *ns,
		       int (*fn)(const json_t *object, void *userdata), void *userdata);

static int each_source(struct reader *reader, const struct kind *kind, const char *ns, each_fn each,
		       int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	cleanup_with(view_done) struct view view = view_of((struct runner *)reader, kind, true);
	struct visit v = { .view = &view, .fn = fn, .userdata = userdata };
	int rc = 0;

	for (; v.at < view.count && rc == 0; v.at++)
		rc = each(&view.items[v.at]->cache, ns, visit_once, &v);
	return rc;
}

static int runner_each(struct reader *reader, const struct kind *kind, const char *ns,
		       int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return each_source(reader, kind, ns, cache_each, fn, userdata);
}

static int runner_each_marked(struct reader *reader, const struct kind *kind, const char *ns,
			      int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return each_source(reader, kind, ns, cache_each_marked, fn, userdata);
}

static void runner_learned(struct reader *reader, const struct kind *kind, const json_t *object)
{
	cleanup_with(view_done) struct view v = view_of((struct runner *)reader, kind, false);

	for (size_t i = 0; i < v.count; i++)
		cache_learned(&v.items[i]->cache, object);
}

const struct reader_ops runner_reader = {
	.get = runner_get,
	.each = runner_each,
	.each_marked = runner_each_marked,
	.learned = runner_learned,
};

struct reader *runner_cache(struct runner *r)
{
	return &r->reader;
}

/* ---- changes -------------------------------------------------------------------------------- */

static bool feeds(const struct source *s, const struct controller_watch *w)
{
	if (w->kind != s->cache.kind || w->follows != s->follows)
		return false;
	return s->follows || (streq(w->labels, s->cache.selector.labels) &&
			      streq(w->fields, s->cache.selector.fields));
}

static void source_changed(const json_t *old, const json_t *object, void *userdata)
{
	struct source *s = userdata;
	struct runner *r = s->runner;

	for (size_t i = 0; i < r->loop_count; i++) {
		const struct controller_watch *w = r->loops[i].controller->watches;

		for (; w->kind; w++) {
			cleanup_with(strv_done) struct strv keys = { 0 };

			if (!feeds(s, w))
				continue;
			if (object)
				controller_watch_keys(w, object, &s->reconcile, &keys);
			if (old)
				controller_watch_keys(w, old, &s->reconcile, &keys);
			for (size_t k = 0; k < keys.count; k++)
				loop_add(&r->loops[i], keys.items[k], 0);
		}
	}
}

/* Those who wait for this source: the loops that it feeds, or all of them. */
static void count_unsynced(struct source *s, int change)
{
	struct runner *r = s->runner;

	if (!s->follows)
		atomic_fetch_add(&r->unsynced, change);
	for (size_t i = 0; i < r->loop_count && s->follows; i++) {
		const struct controller_watch *w = r->loops[i].controller->watches;

		while (w->kind && !feeds(s, w))
			w++;
		if (w->kind)
			atomic_fetch_add(&r->loops[i].unsynced, change);
	}
}

static void source_synced(void *userdata)
{
	struct source *s = userdata;
	struct runner *r = s->runner;
	bool first;

	pthread_mutex_lock(&r->lock);
	first = !s->synced;
	s->synced = true;
	if (first)
		count_unsynced(s, -1);
	pthread_mutex_unlock(&r->lock);
	if (!first)
		return;
	if (runner_synced(r))
		malloc_trim(0); /* what the lists took while they were parsed is not needed again */
	runner_wake(r);
}

bool runner_synced(struct runner *r)
{
	bool synced = atomic_load(&r->unsynced) == 0;

	for (size_t i = 0; i < r->loop_count; i++)
		synced = synced && atomic_load(&r->loops[i].unsynced) == 0;
	return synced;
}

/* ---- making --------------------------------------------------------------------------------- */

static struct source *source_new(struct runner *r, const struct kind *kind,
				 const struct kube_selector *selector, bool follows)
{
	struct source *s = xcalloc(1, sizeof(*s));

	s->labels = selector->labels ? xstrdup(selector->labels) : NULL;
	s->fields = selector->fields ? xstrdup(selector->fields) : NULL;
	s->cache.kind = kind;
	s->cache.selector = (struct kube_selector){ s->labels, s->fields };
	s->cache.project = r->project;
	s->cache.mark = r->mark;
	s->cache.changed = source_changed;
	s->cache.userdata = s;
	s->runner = r;
	s->reconcile = reconcile_new(r);
	s->follows = follows;
	s->refs = 1;
	cache_init(&s->cache);
	return s;
}

/* Puts it where it is read from; who watches it waits for its list. */
static void source_add(struct source *s)
{
	struct runner *r = s->runner;

	for (size_t i = 0; i < r->loop_count; i++) {
		for (const struct controller_watch *w = r->loops[i].controller->watches; w->kind;
		     w++)
			s->cache.wants_old |= feeds(s, w) && w->keys;
	}
	pthread_mutex_lock(&r->lock);
	r->sources = xrealloc(r->sources, (r->source_count + 1) * sizeof(*r->sources));
	r->sources[r->source_count++] = s;
	count_unsynced(s, 1);
	pthread_mutex_unlock(&r->lock);
}

static bool is_there(const struct runner *r, const struct controller_watch *w)
{
	for (size_t i = 0; i < r->source_count; i++) {
		if (feeds(r->sources[i], w))
			return true;
	}
	return false;
}

void sources_make(struct runner *r)
{
	for (size_t i = 0; i < r->loop_count; i++) {
		const struct controller_watch *w = r->loops[i].controller->watches;

		for (; w->kind; w++) {
			struct kube_selector selector = { w->labels, w->fields };

			if (!w->follows && !is_there(r, w))
				source_add(source_new(r, w->kind, &selector, false));
		}
	}
}

int source_start(struct source *s, struct error *err)
{
	struct runner *r = s->runner;
	const struct kind *kind = s->cache.kind;
	bool own = r->own_ns && kind->custom && !kind->shared;
	struct reflector_options o = { .kube = r->kube,
				       .cache = &s->cache,
				       .ns = own ? r->own_ns : r->ns,
				       .synced = source_synced,
				       .userdata = s };

	return reflector_start(&o, &s->reflector, err);
}

void source_free(struct source *s)
{
	reflector_stop(s->reflector);
	source_unref(s);
}

/* ---- following ------------------------------------------------------------------------------ */

static bool is_named(const struct source *s, const struct kube_selector *selectors, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (streq(s->labels, selectors[i].labels) && streq(s->fields, selectors[i].fields))
			return true;
	}
	return false;
}

/* Takes one out that is not named any more; NULL: there is none. */
static struct source *take_unnamed(struct runner *r, const struct kind *kind,
				   const struct kube_selector *selectors, size_t count)
{
	struct source *found = NULL;

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->source_count && !found; i++) {
		struct source *s = r->sources[i];

		if (s->cache.kind == kind && s->follows && !is_named(s, selectors, count)) {
			found = s;
			memmove(&r->sources[i], &r->sources[i + 1],
				(--r->source_count - i) * sizeof(struct source *));
		}
	}
	pthread_mutex_unlock(&r->lock);
	return found;
}

static void forget(struct source *s)
{
	struct runner *r = s->runner;

	reflector_stop(TAKE_PTR(s->reflector));
	if (!s->synced)
		count_unsynced(s, -1);
	source_unref(s);
	runner_wake(r);
}

/* 1: it is followed and has been listed; 0: not yet; -ENOENT: it is not followed. */
static int follow_state(struct runner *r, const struct kind *kind,
			const struct kube_selector *selector)
{
	int state = -ENOENT;

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->source_count; i++) {
		const struct source *s = r->sources[i];

		if (s->cache.kind == kind && s->follows && is_named(s, selector, 1))
			state = s->synced;
	}
	pthread_mutex_unlock(&r->lock);
	return state;
}

static int follow_new(struct runner *r, const struct kind *kind,
		      const struct kube_selector *selector, struct error *err)
{
	struct source *s = source_new(r, kind, selector, true);
	int rc;

	source_add(s);
	rc = source_start(s, err);
	if (rc < 0) {
		pthread_mutex_lock(&r->lock);
		r->source_count--; /* the last one: nobody else adds */
		pthread_mutex_unlock(&r->lock);
		forget(s);
	}
	return rc;
}

int runner_follow(struct runner *r, const struct kind *kind, const struct kube_selector *selectors,
		  size_t count, struct error *err)
{
	struct source *gone;
	int all = 1;

	while ((gone = take_unnamed(r, kind, selectors, count)))
		forget(gone);
	for (size_t i = 0; i < count; i++) {
		int rc = follow_state(r, kind, &selectors[i]);

		if (rc == -ENOENT)
			rc = follow_new(r, kind, &selectors[i], err);
		if (rc < 0)
			return rc;
		all = all && rc;
	}
	return all;
}
