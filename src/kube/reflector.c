/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cache.h"

#include "base/log.h"
#include "base/mem.h"
#include "kube/queue.h"
#include "kube/thread.h"

#include <errno.h>

/* Servers send a bookmark each minute: silence for so long means that the watch is dead, though what is
 * between them and us may still answer pings. */
#define WATCH_IDLE_MS (150 * 1000)
/* A watch that lasted so long was a good one, whatever ended it. */
#define WATCH_GOOD_MS 10000
/* An API that comes back should be noticed soon. */
#define RETRY_MAX_MS 5000

struct reflector {
	struct kube *kube;
	struct cache *cache;
	char *ns;
	void (*synced)(void *userdata);
	void *userdata;
	struct prng jitter;

	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct kube_watch *watch; /* being read */
	bool stop;
};

static bool stopped(struct reflector *r)
{
	bool stop;

	pthread_mutex_lock(&r->lock);
	stop = r->stop;
	pthread_mutex_unlock(&r->lock);
	return stop;
}

static void pause_ms(struct reflector *r, int64_t ms)
{
	int64_t until = clock_mono_ms(&clock_real) + ms;

	pthread_mutex_lock(&r->lock);
	while (!r->stop && clock_mono_ms(&clock_real) < until)
		cond_wait_until(&r->wake, &r->lock, until);
	pthread_mutex_unlock(&r->lock);
}

static int listed(json_t *object, void *userdata)
{
	struct reflector *r = userdata;

	cache_list_item(r->cache, object);
	return stopped(r) ? -ECANCELED : 0;
}

static int list(struct reflector *r, struct error *err)
{
	cleanup_free char *version = NULL;
	int rc;

	cache_list_begin(r->cache);
	rc = kube_list_each(r->kube, r->cache->kind, r->ns, &r->cache->selector, listed, r,
			    &version, err);
	if (rc < 0)
		return rc;
	cache_list_end(r->cache, version);
	r->synced(r->userdata);
	return 0;
}

/* Opens the watch where reflector_stop finds it; -ECANCELED after that. */
static int watch_open(struct reflector *r, struct error *err)
{
	struct kube_watch *w;
	bool stop;
	int rc = r->kube->ops->watch(r->kube, r->cache->kind, r->ns, &r->cache->selector,
				     r->cache->version, &w, err);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&r->lock);
	stop = r->stop;
	if (!stop)
		r->watch = w;
	pthread_mutex_unlock(&r->lock);
	if (stop)
		r->kube->ops->watch_close(w);
	return stop ? -ECANCELED : 0;
}

static void watch_close(struct reflector *r)
{
	struct kube_watch *w;

	pthread_mutex_lock(&r->lock);
	w = TAKE_PTR(r->watch);
	pthread_mutex_unlock(&r->lock);
	r->kube->ops->watch_close(w);
}

/* Follows a watch to its end; *ret_events counts what came. 0: ended as watches do. */
static int follow(struct reflector *r, int *ret_events, struct error *err)
{
	int rc = watch_open(r, err);

	if (rc < 0)
		return rc;
	for (;;) {
		struct kube_event event = { 0 };

		rc = r->kube->ops->watch_next(r->watch, WATCH_IDLE_MS, &event, err);
		if (rc <= 0)
			break;
		cache_event(r->cache, &event);
		json_decref(event.object);
		++*ret_events;
	}
	watch_close(r);
	return rc;
}

/* How long the server still wants to be left alone. */
static int64_t quiet_ms(const struct reflector *r)
{
	int64_t ms = r->kube->quiet_until_ms - clock_mono_ms(&clock_real);

	return ms > 0 ? ms : 0;
}

static void *reflect(void *arg)
{
	struct reflector *r = arg;
	int failures = 0;

	while (!stopped(r)) {
		struct error err = ERROR_INIT;
		int64_t began = clock_mono_ms(&clock_real), delay;
		bool lists = !r->cache->version;
		int events = 0, rc;

		rc = lists ? list(r, &err) : follow(r, &events, &err);
		if (lists && rc == 0)
			continue;
		if (rc == -EIDRM) {
			free(r->cache->version);
			r->cache->version = NULL;
		} else if (rc < 0 && rc != -ECANCELED) {
			log_debug("%s: %s", r->cache->kind->plural, error_text(&err, rc));
		}
		/* a watch that ends at once each time is a failure too: never spin */
		if (events > 0 || clock_mono_ms(&clock_real) - began > WATCH_GOOD_MS)
			failures = 0;
		failures++;
		delay = queue_backoff_ms(&r->jitter, failures);
		pause_ms(r, quiet_ms(r) + (delay < RETRY_MAX_MS ? delay : RETRY_MAX_MS));
	}
	return NULL;
}

int reflector_start(const struct reflector_options *options, struct reflector **ret,
		    struct error *err)
{
	struct reflector *r = xcalloc(1, sizeof(*r));
	int rc;

	r->kube = options->kube;
	r->cache = options->cache;
	r->ns = options->ns && r->cache->kind->namespaced ? xstrdup(options->ns) : NULL;
	r->synced = options->synced;
	r->userdata = options->userdata;
	rand_bytes(&r->jitter.state, sizeof(r->jitter.state));
	pthread_mutex_init(&r->lock, NULL);
	cond_init(&r->wake);
	rc = thread_start(&r->thread, reflect, r, err);
	if (rc < 0) {
		free(r->ns);
		free(r);
		return rc;
	}
	*ret = r;
	return 0;
}

void reflector_stop(struct reflector *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	if (r->watch)
		r->kube->ops->watch_cancel(r->watch);
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->lock);
	free(r->ns);
	free(r);
}
