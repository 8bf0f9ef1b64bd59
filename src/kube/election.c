/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/election.h"

#include "base/mem.h"
#include "kube/controller.h"

#include <errno.h>

/* ---- the rules ----------------------------------------------------------------------------------- */

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

/* A lease that another holds is looked at this long after it would run out: not a whole round later. */
#define EXPIRED_MS 50

/* ---- taking part ----------------------------------------------------------------------------------- */

static int64_t hold_ms(const struct election *e)
{
	return (int64_t)e->duration_s * 1000 * 2 / 3;
}

bool election_held(const struct election *e, int64_t mono_ms)
{
	return e->renewed_ms && mono_ms - e->renewed_ms < hold_ms(e);
}

static int64_t observed_age(struct election *e, const json_t *lease, int64_t now_ms)
{
	const char *holder = jstr(lease, "spec", "holderIdentity");
	const char *renewed = jstr(lease, "spec", "renewTime");
	cleanup_free char *seen = xasprintf("%s %s", holder ? holder : "", renewed ? renewed : "");

	if (!streq(seen, e->seen)) {
		free(e->seen);
		e->seen = TAKE_PTR(seen);
		e->seen_ms = now_ms;
	}
	return now_ms - e->seen_ms;
}

/* What to write now, or NULL. Our own lease is always renewed: steps come at a third of its duration. */
static json_t *next_write(struct election *e, const json_t *lease, int64_t began)
{
	int64_t now = clock_wall_ms(e->kube->clock);
	bool held;

	if (streq(jstr(lease, "spec", "holderIdentity"), e->identity))
		return lease_write(lease, e->ns, e->name, e->identity, e->duration_s, now, false);
	return lease_next(lease, e->ns, e->name, e->identity, e->duration_s, now,
			  observed_age(e, lease, began), &held);
}

/*
 * Whoever deletes a lease starts its count anew, and orders of a lower epoch than those in force are
 * ignored for good: so the epochs of one begin at the time, in milliseconds, at which it was made.
 */
static int64_t epoch_of(const json_t *lease)
{
	const char *made = jstr(lease, "metadata", "creationTimestamp");
	int64_t made_ms = 0;

	if (made)
		time_parse(made, &made_ms);
	return made_ms + jint(lease, "spec", "leaseTransitions");
}

static int write_lease(struct election *e, const json_t *next, bool there, int64_t began,
		       struct error *err)
{
	json_t *written = NULL;
	int rc = there ? kube_update(e->kube, &KIND_LEASE, next, &written, err)
		       : kube_create(e->kube, &KIND_LEASE, next, &written, err);

	json_decref(e->last);
	e->last = written; /* NULL where it failed: how it is then has to be read */
	if (rc < 0)
		return rc;
	e->renewed_ms = began;
	e->epoch = epoch_of(written);
	return 0;
}

/* The write carries the version that our last one gave: it fails if anybody else wrote since. */
static int renew(struct election *e, int64_t began, struct error *err)
{
	cleanup_json json_t *next = lease_write(e->last, e->ns, e->name, e->identity, e->duration_s,
						clock_wall_ms(e->kube->clock), false);

	return write_lease(e, next, true, began, err);
}

int election_step(struct election *e, struct error *err)
{
	int64_t began = clock_mono_ms(e->kube->clock);
	cleanup_json json_t *lease = NULL;
	cleanup_json json_t *next = NULL;
	int rc;

	if (e->last) {
		rc = renew(e, began, err);
		if (rc != -ESTALE && rc != -ENOENT)
			return rc;
	}
	rc = kube_get(e->kube, &KIND_LEASE, e->ns, e->name, &lease, err);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	next = next_write(e, lease, began);
	if (!next) {
		e->renewed_ms = 0;
		return 0;
	}
	return write_lease(e, next, lease != NULL, began, err);
}

int64_t election_wait_ms(const struct election *e, int rc, int64_t mono_ms)
{
	int64_t wait = e->duration_s * 1000 / 3;
	int64_t lost = e->renewed_ms ? e->renewed_ms + hold_ms(e) - mono_ms : 0;

	if (rc < 0)
		wait /= 5;
	else if (!e->renewed_ms && e->seen)
		lost = e->seen_ms + (int64_t)e->duration_s * 1000 + EXPIRED_MS - mono_ms;
	return lost > 0 && lost < wait ? lost
				       : wait; /* never past the moment of loss, ours or theirs */
}

void election_give_up(struct election *e)
{
	cleanup_json json_t *lease = NULL;

	e->renewed_ms = 0;
	json_decref(TAKE_PTR(e->last));
	if (kube_get(e->kube, &KIND_LEASE, e->ns, e->name, &lease, NULL) < 0 ||
	    !streq(jstr(lease, "spec", "holderIdentity"), e->identity))
		return;
	jset(lease, json_string(""), "spec", "holderIdentity");
	kube_update(e->kube, &KIND_LEASE, lease, NULL, NULL);
}

void election_done(struct election *e)
{
	free(e->seen);
	e->seen = NULL;
	json_decref(TAKE_PTR(e->last));
}
