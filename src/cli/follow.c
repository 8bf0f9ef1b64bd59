/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"

#include "base/mem.h"

#include <errno.h>
#include <time.h>

#define RETRY_MS 200

struct following {
	const struct session *s;
	const struct kind *k;
	const char *ns;
	struct kube_selector sel;
	int64_t deadline_ms;
	int tick_ms;
	follow_fn fn;
	void *userdata;
	json_t *object; /* last known, or NULL */
};

static int64_t left(const struct following *f)
{
	int64_t ms = f->deadline_ms - clock_mono_ms(&clock_real);

	return ms > 0 ? ms : 0;
}

/* 0: go on; -ECANCELED: the watch has ended; else what fn returned, or an error. */
static int follow_next(struct following *f, struct kube_watch *w, struct error *err)
{
	struct kube_event event = { 0 };
	int64_t wait = left(f) < f->tick_ms ? left(f) : f->tick_ms;
	int rc;

	if (wait == 0)
		return -ETIMEDOUT;
	rc = f->s->kube->ops->watch_next(w, (int)wait, &event, err);
	if (rc == 0 || rc == -EIDRM || rc == -EAGAIN)
		return -ECANCELED;
	if (rc < 0 && rc != -ETIMEDOUT)
		return rc;
	if (rc == 1 && event.type != KUBE_BOOKMARK) {
		json_decref(f->object);
		f->object = event.type == KUBE_DELETED ? NULL : json_incref(event.object);
	}
	json_decref(event.object);
	return f->fn(f->object, f->userdata);
}

static int follow_watch(struct following *f, const char *version, struct error *err)
{
	const struct kube_ops *ops = f->s->kube->ops;
	struct kube_watch *w;
	int rc = ops->watch(f->s->kube, f->k, f->ns, &f->sel, version, &w, err);

	if (rc < 0)
		return rc;
	do {
		rc = follow_next(f, w, err);
	} while (rc == 0);
	ops->watch_close(w);
	return rc;
}

static int follow_list(struct following *f, char **ret_version, struct error *err)
{
	cleanup_json json_t *items = NULL;
	int rc = kube_list(f->s->kube, f->k, f->ns, &f->sel, &items, ret_version, err);

	if (rc < 0)
		return rc;
	json_decref(f->object);
	f->object = json_incref(json_array_get(items, 0));
	return f->fn(f->object, f->userdata);
}

/* An API that restarts meanwhile is waited for. */
static bool is_passing(int rc)
{
	return rc == -ECANCELED || rc == -EAGAIN || rc == -EIDRM;
}

int follow(const struct session *s, const struct kind *k, const char *ns, const char *name,
	   int64_t timeout_ms, int tick_ms, follow_fn fn, void *userdata, struct error *err)
{
	cleanup_free char *fields = xasprintf("metadata.name=%s", name);
	struct following f = {
		.s = s,
		.k = k,
		.ns = ns,
		.sel = { .fields = fields },
		.deadline_ms = clock_mono_ms(&clock_real) + timeout_ms,
		.tick_ms = tick_ms,
		.fn = fn,
		.userdata = userdata,
	};
	bool began = false;
	int rc;

	for (;;) {
		cleanup_free char *version = NULL;

		rc = follow_list(&f, &version, err);
		began = began || rc >= 0;
		if (rc == 0)
			rc = follow_watch(&f, version, err);
		if (!began || !is_passing(rc))
			break;
		if (left(&f) == 0) {
			rc = -ETIMEDOUT;
			break;
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = RETRY_MS * 1000000L }, NULL);
	}
	json_decref(f.object);
	return rc;
}
