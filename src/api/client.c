/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "api/patch.h"

#include <errno.h>
#include <time.h>

/* Events that a reader may leave unread; beyond, the watch ends and the reader starts it again. */
#define UNREAD_MAX 10000

struct store_kube {
	struct kube kube;
	struct store *s;
	char *manager;
};

static struct store_kube *of(struct kube *k)
{
	return (struct store_kube *)k;
}

static struct store_write write_of(struct kube *k, const struct kind *kind, const char *ns,
				   const char *name)
{
	return (struct store_write){
		.kind = kind, .ns = ns, .name = name, .manager = of(k)->manager
	};
}

static int client_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		      json_t **ret, struct error *err)
{
	return store_get(of(k)->s, kind, ns, name, ret, err);
}

static int client_list(struct kube *k, const struct kind *kind, const char *ns,
		       const struct kube_selector *sel, json_t **ret, char **ret_version,
		       struct error *err)
{
	struct store_query q = { .kind = kind, .ns = ns };
	cleanup_json json_t *list = NULL;
	int rc;

	if (sel) {
		q.labels = sel->labels;
		q.fields = sel->fields;
	}
	rc = store_list(of(k)->s, &q, &list, err);
	if (rc < 0)
		return rc;
	if (ret)
		*ret = json_incref(jget(list, "items"));
	if (ret_version)
		*ret_version = xstrdup(jstr(list, "metadata", "resourceVersion"));
	return 0;
}

static int client_create(struct kube *k, const struct kind *kind, const json_t *object,
			 json_t **ret, struct error *err)
{
	struct store_write w = write_of(k, kind, jstr(object, "metadata", "namespace"), NULL);

	return store_create(of(k)->s, &w, object, ret, err);
}

static int client_update(struct kube *k, const struct kind *kind, const char *subresource,
			 const json_t *object, json_t **ret, struct error *err)
{
	struct store_write w = write_of(k, kind, jstr(object, "metadata", "namespace"),
					jstr(object, "metadata", "name"));

	w.subresource = subresource;
	return store_update(of(k)->s, &w, object, ret, err);
}

static int client_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
			const char *subresource, enum kube_patch type, const json_t *patch,
			json_t **ret, struct error *err)
{
	static const char *const types[] = { [KUBE_PATCH_MERGE] = PATCH_MERGE,
					     [KUBE_PATCH_JSON] = PATCH_JSON,
					     [KUBE_PATCH_APPLY] = PATCH_APPLY };
	struct store_write w = write_of(k, kind, ns, name);
	int rc;

	w.subresource = subresource;
	w.patch_type = types[type];
	w.force = type == KUBE_PATCH_APPLY; /* a control loop owns what it applies */
	rc = store_patch(of(k)->s, &w, patch, ret, err);
	return rc < 0 ? rc : 0;
}

static int client_remove(struct kube *k, const struct kind *kind, const char *ns, const char *name,
			 const struct kube_delete_options *options, struct error *err)
{
	struct store_write w = write_of(k, kind, ns, name);
	int rc = store_delete(of(k)->s, &w, options, NULL, err);

	return rc < 0 ? rc : 0;
}

static void client_free(struct kube *k)
{
	free(of(k)->manager);
	free(k);
}

/* ---- watches -------------------------------------------------------------------------------- */

struct item {
	struct kube_event event;
	struct item *next;
};

struct kube_watch {
	struct store_watch *watch;
	pthread_mutex_t lock;
	pthread_cond_t some;
	struct item *first, **last;
	int count;
	bool over;
};

static void take_event(const struct kube_event *event, void *userdata)
{
	struct kube_watch *w = userdata;
	struct item *i = xcalloc(1, sizeof(*i));

	i->event =
		(struct kube_event){ .type = event->type, .object = json_deep_copy(event->object) };
	pthread_mutex_lock(&w->lock);
	w->over |= w->count >= UNREAD_MAX;
	if (w->over) {
		json_decref(i->event.object);
		free(i);
	} else {
		*w->last = i;
		w->last = &i->next;
		w->count++;
	}
	pthread_cond_signal(&w->some);
	pthread_mutex_unlock(&w->lock);
}

static void client_watch_cancel(struct kube_watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->over = true;
	pthread_cond_broadcast(&w->some);
	pthread_mutex_unlock(&w->lock);
}

static void client_watch_close(struct kube_watch *w)
{
	if (!w)
		return;
	store_watch_stop(w->watch);
	while (w->first) {
		struct item *i = w->first;

		w->first = i->next;
		json_decref(i->event.object);
		free(i);
	}
	pthread_cond_destroy(&w->some);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

static int client_watch(struct kube *k, const struct kind *kind, const char *ns,
			const struct kube_selector *sel, const char *version,
			struct kube_watch **ret, struct error *err)
{
	struct store_query q = { .kind = kind, .ns = ns };
	struct kube_watch *w = xcalloc(1, sizeof(*w));
	pthread_condattr_t attr;
	int rc;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->some, &attr);
	pthread_condattr_destroy(&attr);
	pthread_mutex_init(&w->lock, NULL);
	w->last = &w->first;
	if (sel) {
		q.labels = sel->labels;
		q.fields = sel->fields;
	}
	rc = store_watch_start(of(k)->s, &q, version, take_event, w, &w->watch, err);
	if (rc < 0)
		client_watch_close(w);
	else
		*ret = w;
	return rc;
}

static int client_watch_next(struct kube_watch *w, int timeout_ms, struct kube_event *ret,
			     struct error *err)
{
	struct timespec until;
	struct item *i;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += timeout_ms / 1000;
	until.tv_nsec += (timeout_ms % 1000) * 1000000L;
	until.tv_sec += until.tv_nsec / 1000000000L;
	until.tv_nsec %= 1000000000L;
	pthread_mutex_lock(&w->lock);
	while (!w->first && !w->over && rc == 0)
		rc = pthread_cond_timedwait(&w->some, &w->lock, &until);
	i = w->first;
	if (i) {
		w->first = i->next;
		w->last = w->first ? w->last : &w->first;
		w->count--;
	}
	rc = i ? 1 : w->over ? 0 : error_set(err, ETIMEDOUT, "Nothing happened in time");
	pthread_mutex_unlock(&w->lock);
	if (i)
		*ret = i->event;
	free(i);
	return rc;
}

static const struct kube_ops ops = {
	.get = client_get,
	.list = client_list,
	.create = client_create,
	.update = client_update,
	.patch = client_patch,
	.remove = client_remove,
	.watch = client_watch,
	.watch_next = client_watch_next,
	.watch_cancel = client_watch_cancel,
	.watch_close = client_watch_close,
	.free = client_free,
};

struct kube *store_client(struct store *s, const char *manager)
{
	struct store_kube *k = xcalloc(1, sizeof(*k));

	k->kube = (struct kube){ .ops = &ops, .clock = s->clock };
	k->s = s;
	k->manager = manager ? xstrdup(manager) : NULL;
	return &k->kube;
}
