/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/controller.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kube/thread.h"

#include <errno.h>

/* ---- the rules, without time or threads ------------------------------------------------------ */

static json_t *lease_write(const json_t *lease, const char *ns, const char *name,
			   const char *identity, int duration_s, int64_t now_wall_ms, bool takes)
{
	json_t *next = lease ? json_deep_copy(lease)
			     : json_pack("{ss ss s{ss ss} s{}}", "apiVersion",
					 "coordination.k8s.io/v1", "kind", "Lease", "metadata",
					 "name", name, "namespace", ns, "spec");
	char now[TIME_TEXT_MAX];

	time_text_micro(now_wall_ms, now);
	jset(next, json_string(now), "spec", "renewTime");
	jset(next, json_integer(duration_s), "spec", "leaseDurationSeconds");
	if (takes) {
		jset(next, json_string(identity), "spec", "holderIdentity");
		jset(next, json_string(now), "spec", "acquireTime");
		jset(next, json_integer(jint(lease, "spec", "leaseTransitions") + 1), "spec",
		     "leaseTransitions");
	}
	return next;
}

/* age_ms: for how long the lease has not been renewed. */
static json_t *lease_next(const json_t *lease, const char *ns, const char *name,
			  const char *identity, int duration_s, int64_t now_wall_ms, int64_t age_ms,
			  bool *ret_held)
{
	const char *holder = jstr(lease, "spec", "holderIdentity");
	int64_t duration_ms = jint(lease, "spec", "leaseDurationSeconds") * 1000;
	bool mine = streq(holder, identity);
	bool free_to_take = !holder || !*holder || age_ms > duration_ms;

	*ret_held = mine && age_ms < (int64_t)duration_s * 1000 * 2 / 3;
	if (mine && age_ms < (int64_t)duration_s * 1000 / 3)
		return NULL;
	if (!mine && !free_to_take)
		return NULL;
	return lease_write(lease, ns, name, identity, duration_s, now_wall_ms, !mine);
}

json_t *lease_step(const json_t *lease, const char *ns, const char *name, const char *identity,
		   int duration_s, int64_t now_wall_ms, bool *ret_held)
{
	const char *text = jstr(lease, "spec", "renewTime");
	int64_t renewed = INT64_MIN / 2;

	if (text)
		time_parse(text, &renewed);
	return lease_next(lease, ns, name, identity, duration_s, now_wall_ms, now_wall_ms - renewed,
			  ret_held);
}

/* ---- the thread ------------------------------------------------------------------------------ */

struct lease {
	struct lease_options options;
	char *ns, *name, *identity;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop;
	int64_t renewed_ms; /* monotonic, when the renewal that went through was begun; 0: not held */
	int64_t epoch;
	bool told; /* what the callback heard last */
	/*
	 * Clocks of machines differ, so another's lease is taken only after it has not changed for
	 * its duration on our own monotonic clock.
	 */
	char *seen; /* "identity renewTime" */
	int64_t seen_ms;
};

static int64_t hold_ms(const struct lease *l)
{
	return (int64_t)l->options.duration_s * 1000 * 2 / 3;
}

bool lease_held(struct lease *l, int64_t *ret_epoch)
{
	bool held;

	pthread_mutex_lock(&l->lock);
	held = l->renewed_ms && clock_mono_ms(&clock_real) - l->renewed_ms < hold_ms(l);
	if (held && ret_epoch)
		*ret_epoch = l->epoch;
	pthread_mutex_unlock(&l->lock);
	return held;
}

static int64_t observed_age(struct lease *l, const json_t *lease, int64_t now_ms)
{
	const char *holder = jstr(lease, "spec", "holderIdentity");
	const char *renewed = jstr(lease, "spec", "renewTime");
	cleanup_free char *seen = xasprintf("%s %s", holder ? holder : "", renewed ? renewed : "");

	if (!streq(seen, l->seen)) {
		free(l->seen);
		l->seen = TAKE_PTR(seen);
		l->seen_ms = now_ms;
	}
	return now_ms - l->seen_ms;
}

/* Reads the lease and writes it where there is something to write. */
static int elect(struct lease *l, struct error *err)
{
	struct kube *k = l->options.kube;
	int64_t began = clock_mono_ms(&clock_real);
	cleanup_json json_t *lease = NULL;
	cleanup_json json_t *next = NULL;
	cleanup_json json_t *written = NULL;
	bool held;
	int rc = kube_get(k, &KIND_LEASE, l->ns, l->name, &lease, err);

	if (rc < 0 && rc != -ENOENT)
		return rc;
	next = lease_next(lease, l->ns, l->name, l->identity, l->options.duration_s,
			  clock_wall_ms(k->clock), observed_age(l, lease, began), &held);
	/* our own lease is always renewed here: this runs at a third of its duration */
	if (!next && streq(jstr(lease, "spec", "holderIdentity"), l->identity))
		next = lease_write(lease, l->ns, l->name, l->identity, l->options.duration_s,
				   clock_wall_ms(k->clock), false);
	if (!next) {
		pthread_mutex_lock(&l->lock);
		l->renewed_ms = 0;
		pthread_mutex_unlock(&l->lock);
		return 0;
	}
	rc = lease ? kube_update(k, &KIND_LEASE, next, &written, err)
		   : kube_create(k, &KIND_LEASE, next, &written, err);
	if (rc < 0)
		return rc;
	pthread_mutex_lock(&l->lock);
	l->renewed_ms = began;
	l->epoch = jint(written, "spec", "leaseTransitions");
	pthread_mutex_unlock(&l->lock);
	return 0;
}

static void tell(struct lease *l)
{
	int64_t epoch = 0;
	bool held = lease_held(l, &epoch);

	if (held == l->told)
		return;
	l->told = held;
	log_info("lease %s/%s %s", l->ns, l->name, held ? "is held" : "is lost");
	if (l->options.changed)
		l->options.changed(held, epoch, l->options.userdata);
}

/* When to look again: at a third of the duration; sooner after a failure; never past the moment of loss. */
static int64_t next_look(struct lease *l, int rc)
{
	int64_t now = clock_mono_ms(&clock_real), wait = l->options.duration_s * 1000 / 3;
	int64_t lost;
	unsigned char jitter;

	rand_bytes(&jitter, 1);
	if (rc < 0)
		wait /= 5;
	wait -= wait * jitter / 2048;
	pthread_mutex_lock(&l->lock);
	lost = l->renewed_ms ? l->renewed_ms + hold_ms(l) - now : INT64_MAX;
	pthread_mutex_unlock(&l->lock);
	if (lost > 0 && lost < wait)
		wait = lost;
	return now + wait;
}

static void *hold(void *arg)
{
	struct lease *l = arg;
	int64_t until;

	pthread_mutex_lock(&l->lock);
	while (!l->stop) {
		struct error err = ERROR_INIT;
		int rc;

		pthread_mutex_unlock(&l->lock);
		rc = elect(l, &err);
		if (rc < 0 && rc != -ESTALE && rc != -EEXIST)
			log_warn("lease %s/%s: %s", l->ns, l->name, error_text(&err, rc));
		tell(l);
		until = next_look(l, rc);
		pthread_mutex_lock(&l->lock);
		if (!l->stop)
			cond_wait_until(&l->wake, &l->lock, until);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void lease_free(struct lease *l)
{
	pthread_cond_destroy(&l->wake);
	pthread_mutex_destroy(&l->lock);
	free(l->ns);
	free(l->name);
	free(l->identity);
	free(l->seen);
	free(l);
}

int lease_start(const struct lease_options *options, struct lease **ret, struct error *err)
{
	struct lease *l = xcalloc(1, sizeof(*l));
	int rc;

	l->options = *options;
	if (l->options.duration_s <= 0)
		l->options.duration_s = 15;
	l->ns = xstrdup(options->ns);
	l->name = xstrdup(options->name);
	l->identity = xstrdup(options->identity);
	pthread_mutex_init(&l->lock, NULL);
	cond_init(&l->wake);
	rc = thread_start(&l->thread, hold, l, err);
	if (rc < 0) {
		lease_free(l);
		return rc;
	}
	*ret = l;
	return 0;
}

/* Nobody's: whoever waits need not wait for the duration. */
static void give_up(struct lease *l)
{
	cleanup_json json_t *lease = NULL;

	if (kube_get(l->options.kube, &KIND_LEASE, l->ns, l->name, &lease, NULL) < 0 ||
	    !streq(jstr(lease, "spec", "holderIdentity"), l->identity))
		return;
	jset(lease, json_string(""), "spec", "holderIdentity");
	kube_update(l->options.kube, &KIND_LEASE, lease, NULL, NULL);
}

void lease_stop(struct lease *l, bool release)
{
	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->wake);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	if (release)
		give_up(l);
	lease_free(l);
}
