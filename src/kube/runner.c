/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/controller.h"

#include "base/log.h"
#include "base/mem.h"
#include "kube/cache.h"
#include "kube/queue.h"
#include "kube/thread.h"

#include <errno.h>
#include <malloc.h>

/* A failure is worth a line when it is new, and then ever more rarely. */
#define LOG_FAILURES(n) ((n) == 3 || (n) == 8 || (n) % 20 == 0)

struct loop { /* a controller at work */
	const struct controller *controller;
	struct runner *runner;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct queue queue;
	pthread_t *workers;
	int running;
};

struct source { /* a cache and those who are told of its changes */
	struct cache cache;
	struct reflector *reflector;
	struct runner *runner;
	struct reconcile reconcile; /* what watches' keys functions see */
	bool synced;
};

struct runner {
	struct reader reader;
	struct kube *kube;
	void *app;
	struct loop *loops;
	size_t loop_count;
	struct source *sources;
	size_t source_count;
	pthread_mutex_t lock;
	size_t synced;
	atomic_bool ready; /* all sources have listed once */
	atomic_bool stop;
};

/* ---- reading -------------------------------------------------------------------------------- */

static bool selects(const struct cache *c)
{
	return c->selector.labels || c->selector.fields;
}

/* The one cache that has all objects of the kind, where there is one. */
static struct cache *whole_cache(struct runner *r, const struct kind *kind)
{
	for (size_t i = 0; i < r->source_count; i++) {
		struct cache *c = &r->sources[i].cache;

		if (c->kind == kind && !selects(c))
			return c;
	}
	return NULL;
}

static json_t *runner_get(struct reader *reader, const struct kind *kind, const char *ns,
			  const char *name)
{
	struct runner *r = (struct runner *)reader;
	struct cache *whole = whole_cache(r, kind);
	json_t *object = whole ? cache_get(whole, ns, name) : NULL;

	for (size_t i = 0; i < r->source_count && !whole && !object; i++) {
		if (r->sources[i].cache.kind == kind)
			object = cache_get(&r->sources[i].cache, ns, name);
	}
	return object;
}

typedef int (*each_fn)(struct cache *c, const char *ns,
		       int (*fn)(const json_t *object, void *userdata), void *userdata);

static int each_cache(struct reader *reader, const struct kind *kind, const char *ns, each_fn each,
		      int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	struct runner *r = (struct runner *)reader;
	struct cache *whole = whole_cache(r, kind);
	int rc = whole ? each(whole, ns, fn, userdata) : 0;

	for (size_t i = 0; i < r->source_count && !whole && rc == 0; i++) {
		if (r->sources[i].cache.kind == kind)
			rc = each(&r->sources[i].cache, ns, fn, userdata);
	}
	return rc;
}

static int runner_each(struct reader *reader, const struct kind *kind, const char *ns,
		       int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return each_cache(reader, kind, ns, cache_each, fn, userdata);
}

static int runner_each_marked(struct reader *reader, const struct kind *kind, const char *ns,
			      int (*fn)(const json_t *object, void *userdata), void *userdata)
{
	return each_cache(reader, kind, ns, cache_each_marked, fn, userdata);
}

static void runner_learned(struct reader *reader, const struct kind *kind, const json_t *object)
{
	struct runner *r = (struct runner *)reader;

	for (size_t i = 0; i < r->source_count; i++) {
		if (r->sources[i].cache.kind == kind)
			cache_learned(&r->sources[i].cache, object);
	}
}

static const struct reader_ops runner_reader = {
	.get = runner_get,
	.each = runner_each,
	.each_marked = runner_each_marked,
	.learned = runner_learned,
};

struct reader *runner_cache(struct runner *r)
{
	return &r->reader;
}

/* ---- queues --------------------------------------------------------------------------------- */

static void loop_add(struct loop *l, const char *key, int delay_ms)
{
	int64_t due = clock_mono_ms(&clock_real) + (delay_ms > 0 ? delay_ms : 0);

	pthread_mutex_lock(&l->lock);
	if (queue_add(&l->queue, key, due) || delay_ms <= 0)
		pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
}

void runner_enqueue(struct runner *r, const char *controller, const char *key, int delay_ms)
{
	for (size_t i = 0; i < r->loop_count; i++) {
		if (streq(r->loops[i].controller->name, controller))
			loop_add(&r->loops[i], key, delay_ms);
	}
}

static void reconcile_enqueue(struct reconcile *r, const char *controller, const char *key,
			      int delay_ms)
{
	runner_enqueue(r->runner, controller, key, delay_ms);
}

static struct reconcile reconcile_new(struct runner *r)
{
	return (struct reconcile){ .kube = r->kube,
				   .cache = &r->reader,
				   .clock = r->kube->clock,
				   .app = r->app,
				   .enqueue = reconcile_enqueue,
				   .runner = r };
}

static bool watch_is(const struct controller_watch *w, const struct cache *c)
{
	return w->kind == c->kind && streq(w->labels, c->selector.labels) &&
	       streq(w->fields, c->selector.fields);
}

static void source_changed(const json_t *old, const json_t *object, void *userdata)
{
	struct source *s = userdata;
	struct runner *r = s->runner;

	for (size_t i = 0; i < r->loop_count; i++) {
		const struct controller_watch *w = r->loops[i].controller->watches;

		for (; w->kind; w++) {
			cleanup_with(strv_done) struct strv keys = { 0 };

			if (!watch_is(w, &s->cache))
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

static void wake_all(struct runner *r)
{
	for (size_t i = 0; i < r->loop_count; i++) {
		pthread_mutex_lock(&r->loops[i].lock);
		pthread_cond_broadcast(&r->loops[i].wake);
		pthread_mutex_unlock(&r->loops[i].lock);
	}
}

static void source_synced(void *userdata)
{
	struct source *s = userdata;
	struct runner *r = s->runner;
	bool ready = false;

	pthread_mutex_lock(&r->lock);
	if (!s->synced) {
		s->synced = true;
		ready = ++r->synced == r->source_count;
	}
	pthread_mutex_unlock(&r->lock);
	if (!ready)
		return;
	malloc_trim(0); /* what the lists took while they were parsed is not needed again */
	atomic_store(&r->ready, true);
	wake_all(r);
}

bool runner_synced(struct runner *r)
{
	return atomic_load(&r->ready);
}

/* ---- work ----------------------------------------------------------------------------------- */

/* The next key, once the caches have listed; NULL when the runner stops. */
static struct queue_item *next_item(struct loop *l)
{
	struct queue_item *item = NULL;
	int64_t due = -1;

	pthread_mutex_lock(&l->lock);
	while (!atomic_load(&l->runner->stop)) {
		if (atomic_load(&l->runner->ready))
			item = queue_take(&l->queue, clock_mono_ms(&clock_real), &due);
		if (item)
			break;
		cond_wait_until(&l->wake, &l->lock, due);
	}
	pthread_mutex_unlock(&l->lock);
	return item;
}

static void log_failure(const struct loop *l, const struct queue_item *item,
			const struct error *err, int rc)
{
	int failures = item->failures + 1;

	if (rc == -ESTALE && failures < 8)
		return; /* somebody else wrote: that is how it should be */
	if (LOG_FAILURES(failures))
		log_warn("%s %s: %s (attempt %d)", l->controller->name, item->key,
			 error_text(err, rc), failures);
	else
		log_debug("%s %s: %s", l->controller->name, item->key, error_text(err, rc));
}

static void *work(void *arg)
{
	struct loop *l = arg;
	struct reconcile r = reconcile_new(l->runner);
	struct queue_item *item;

	while ((item = next_item(l))) {
		int rc;

		r.error = ERROR_INIT;
		r.again_ms = 0;
		rc = l->controller->reconcile(&r, item->key);
		if (rc < 0)
			log_failure(l, item, &r.error, rc);
		pthread_mutex_lock(&l->lock);
		queue_finish(&l->queue, item, rc < 0, r.again_ms, clock_mono_ms(&clock_real));
		pthread_cond_signal(&l->wake);
		pthread_mutex_unlock(&l->lock);
	}
	return NULL;
}

/* ---- start and stop ------------------------------------------------------------------------- */

static struct source *source_for(struct runner *r, const struct controller_watch *w)
{
	for (size_t i = 0; i < r->source_count; i++) {
		if (watch_is(w, &r->sources[i].cache))
			return &r->sources[i];
	}
	return NULL;
}

static size_t count_watches(const struct controller *const *controllers)
{
	size_t count = 0;

	for (; *controllers; controllers++) {
		for (const struct controller_watch *w = (*controllers)->watches; w->kind; w++)
			count++;
	}
	return count;
}

static void make_sources(struct runner *r, const struct runner_options *o)
{
	r->sources = xcalloc(count_watches(o->controllers) + 1, sizeof(*r->sources));
	for (size_t i = 0; i < r->loop_count; i++) {
		const struct controller_watch *w = r->loops[i].controller->watches;

		for (; w->kind; w++) {
			struct source *s = source_for(r, w);

			if (!s) {
				s = &r->sources[r->source_count++];
				s->cache.kind = w->kind;
				s->cache.selector = (struct kube_selector){ w->labels, w->fields };
				s->cache.project = o->project;
				s->cache.mark = o->mark;
				s->cache.changed = source_changed;
				s->cache.userdata = s;
				s->runner = r;
				s->reconcile = reconcile_new(r);
				cache_init(&s->cache);
			}
			s->cache.wants_old |= w->keys != NULL;
		}
	}
}

static void make_loops(struct runner *r, const struct runner_options *o)
{
	while (o->controllers[r->loop_count])
		r->loop_count++;
	r->loops = xcalloc(r->loop_count + 1, sizeof(*r->loops));
	for (size_t i = 0; i < r->loop_count; i++) {
		struct loop *l = &r->loops[i];
		uint64_t seed;

		rand_bytes(&seed, sizeof(seed));
		l->controller = o->controllers[i];
		l->runner = r;
		l->workers = xcalloc((size_t)l->controller->workers + 1, sizeof(*l->workers));
		pthread_mutex_init(&l->lock, NULL);
		cond_init(&l->wake);
		queue_init(&l->queue, seed);
	}
}

static int start_threads(struct runner *r, const struct runner_options *o, struct error *err)
{
	for (size_t i = 0; i < r->loop_count; i++) {
		struct loop *l = &r->loops[i];

		for (; l->running < l->controller->workers || l->running < 1; l->running++) {
			int rc = thread_start(&l->workers[l->running], work, l, err);

			if (rc < 0)
				return rc;
		}
	}
	for (size_t i = 0; i < r->source_count; i++) {
		struct source *s = &r->sources[i];
		const char *ns = o->own_ns && s->cache.kind->custom ? o->own_ns : o->ns;
		int rc = reflector_start(&(struct reflector_options){ .kube = o->kube,
								      .cache = &s->cache,
								      .ns = ns,
								      .synced = source_synced,
								      .userdata = s },
					 &s->reflector, err);

		if (rc < 0)
			return rc;
	}
	return 0;
}

int runner_start(const struct runner_options *options, struct runner **ret, struct error *err)
{
	struct runner *r = xcalloc(1, sizeof(*r));
	int rc;

	r->reader.ops = &runner_reader;
	r->kube = options->kube;
	r->app = options->app;
	pthread_mutex_init(&r->lock, NULL);
	make_loops(r, options);
	make_sources(r, options);
	r->ready = r->source_count == 0;
	rc = start_threads(r, options, err);
	if (rc < 0) {
		runner_stop(r);
		return rc;
	}
	*ret = r;
	return 0;
}

static void loop_done(struct loop *l)
{
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	queue_done(&l->queue);
	free(l->workers);
}

void runner_stop(struct runner *r)
{
	if (!r)
		return;
	atomic_store(&r->stop, true);
	wake_all(r);
	for (size_t i = 0; i < r->source_count; i++)
		reflector_stop(r->sources[i].reflector);
	/* all have ended before the first queue goes: one loop's work adds to another's queue */
	for (size_t i = 0; i < r->loop_count; i++) {
		struct loop *l = &r->loops[i];

		while (l->running > 0)
			pthread_join(l->workers[--l->running], NULL);
	}
	for (size_t i = 0; i < r->loop_count; i++)
		loop_done(&r->loops[i]);
	for (size_t i = 0; i < r->source_count; i++)
		cache_done(&r->sources[i].cache);
	pthread_mutex_destroy(&r->lock);
	free(r->sources);
	free(r->loops);
	free(r);
}
