/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/controller.h"

#include "base/log.h"
#include "base/mem.h"
#include "kube/runner.h"
#include "kube/thread.h"

#include <errno.h>

/* A failure is worth a line when it is new, and then ever more rarely. */
#define LOG_FAILURES(n) ((n) == 3 || (n) == 8 || (n) % 20 == 0)

/* ---- queues --------------------------------------------------------------------------------- */

void loop_add(struct loop *l, const char *key, int delay_ms)
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

struct reconcile reconcile_new(struct runner *r)
{
	return (struct reconcile){ .kube = r->kube,
				   .cache = &r->reader,
				   .clock = r->kube->clock,
				   .app = r->app,
				   .enqueue = reconcile_enqueue,
				   .runner = r };
}

void runner_wake(struct runner *r)
{
	for (size_t i = 0; i < r->loop_count; i++) {
		pthread_mutex_lock(&r->loops[i].lock);
		pthread_cond_broadcast(&r->loops[i].wake);
		pthread_mutex_unlock(&r->loops[i].lock);
	}
}

/* ---- work ----------------------------------------------------------------------------------- */

/* The next key, once the caches have listed; NULL when the runner stops. */
static struct queue_item *next_item(struct loop *l)
{
	struct queue_item *item = NULL;
	int64_t due = -1;

	pthread_mutex_lock(&l->lock);
	while (!atomic_load(&l->runner->stop)) {
		if (atomic_load(&l->runner->unsynced) == 0 && atomic_load(&l->unsynced) == 0)
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

static int start_threads(struct runner *r, struct error *err)
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
		int rc = source_start(r->sources[i], err);

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
	r->ns = options->ns ? xstrdup(options->ns) : NULL;
	r->own_ns = options->own_ns ? xstrdup(options->own_ns) : NULL;
	r->project = options->project;
	r->mark = options->mark;
	pthread_mutex_init(&r->lock, NULL);
	make_loops(r, options);
	sources_make(r);
	rc = start_threads(r, err);
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
	runner_wake(r);
	/* all have ended before the first queue goes: one loop's work adds to another's queue, and changes
	 * what is followed */
	for (size_t i = 0; i < r->loop_count; i++) {
		struct loop *l = &r->loops[i];

		while (l->running > 0)
			pthread_join(l->workers[--l->running], NULL);
	}
	for (size_t i = 0; i < r->source_count; i++)
		source_free(r->sources[i]);
	for (size_t i = 0; i < r->loop_count; i++)
		loop_done(&r->loops[i]);
	pthread_mutex_destroy(&r->lock);
	free(r->ns);
	free(r->own_ns);
	free(r->sources);
	free(r->loops);
	free(r);
}
