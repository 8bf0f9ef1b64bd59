/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/crd.h"

#include "base/log.h"
#include "base/mem.h"
#include "schema/crd.h"

#include <errno.h>

#define ESTABLISH_MS 60000
#define CONFLICTS_MAX 10

/* The label's number; -1 where there is none, so that the definition is not known to be ours. */
static long long version_of(const json_t *crd)
{
	const char *text = object_label(crd, CRD_SCHEMA_LABEL);
	char *end;
	long long version = text ? strtoll(text, &end, 10) : -1;

	return text && end != text && !*end ? version : -1;
}

static int not_ours(const json_t *there, const char *why, struct error *err)
{
	return error_set(err, EEXIST,
			 "CustomResourceDefinition %s is there, but %s; if nothing else uses it, "
			 "delete it, or label it " CRD_SCHEMA_LABEL "=0 to have it replaced",
			 object_name(there), why);
}

/* With our spec, and labels and annotations that others put there kept. */
static int replace(struct kube *k, const json_t *there, const json_t *ours, json_t **ret,
		   struct error *err)
{
	cleanup_json json_t *next = json_deep_copy(there);

	if (!streq(jstr(there, "spec", "scope"), jstr(ours, "spec", "scope")))
		return not_ours(there, "with another scope", err);
	jset(next, json_incref(jget(ours, "spec")), "spec");
	jset(next, json_incref(jget(ours, "metadata", "labels", CRD_SCHEMA_LABEL)), "metadata",
	     "labels", CRD_SCHEMA_LABEL);
	return kube_update(k, &KIND_CRD, next, ret, err);
}

/* One attempt. -ESTALE, -EEXIST by kube_create: somebody else was faster, look again. */
static int register_once(struct kube *k, const struct kind *kind, const json_t *ours, json_t **ret,
			 struct error *err)
{
	cleanup_json json_t *there = NULL;
	int rc = kube_get(k, &KIND_CRD, NULL, object_name(ours), &there, err);
	long long version;

	if (rc == -ENOENT) {
		rc = kube_create(k, &KIND_CRD, ours, ret, err);
		if (rc == 0)
			log_info("registered %s", object_name(ours));
		return rc == -EEXIST ? -ESTALE : rc;
	}
	if (rc < 0)
		return rc;
	version = version_of(there);
	if (version < 0 && kind->shared) { /* whoever brought it sees to it */
		*ret = TAKE_PTR(there);
		return 0;
	}
	if (version < 0)
		return not_ours(there, "without our label " CRD_SCHEMA_LABEL, err);
	if (version >= CRD_SCHEMA_VERSION) {
		if (version > CRD_SCHEMA_VERSION)
			log_info("%s is of schema version %lld, newer than our %d: left as it is",
				 object_name(there), version, CRD_SCHEMA_VERSION);
		*ret = TAKE_PTR(there);
		return 0;
	}
	rc = replace(k, there, ours, ret, err);
	if (rc == 0)
		log_info("updated %s from schema version %lld to %d", object_name(ours), version,
			 CRD_SCHEMA_VERSION);
	return rc;
}

/* 1: served; 0: not yet; -EEXIST: never, since its names are taken. */
static int established(const json_t *crd, struct error *err)
{
	const json_t *conditions = jget(crd, "status", "conditions");
	const json_t *names = condition_get(conditions, "NamesAccepted");

	if (condition_is_true(conditions, "Established"))
		return 1;
	if (!streq(jstr(names, "status"), "False"))
		return 0;
	return error_set(err, EEXIST, "the names of CustomResourceDefinition %s are taken: %s",
			 object_name(crd), jstr(names, "message"));
}

/* Reads the watch until the definition is served; 0: the watch ended before. */
static int watch_established(struct kube *k, const json_t *crd, int64_t until, struct error *err)
{
	cleanup_free char *field = xasprintf("metadata.name=%s", object_name(crd));
	const struct kube_selector selector = { .fields = field };
	struct kube_watch *w;
	int rc = k->ops->watch(k, &KIND_CRD, NULL, &selector, object_version(crd), &w, err);
	int64_t left;

	if (rc < 0)
		return rc;
	do {
		struct kube_event event;

		left = until - clock_mono_ms(k->clock);
		rc = k->ops->watch_next(w, left > 0 ? (int)left : 0, &event, err);
		if (rc > 0) {
			rc = event.type == KUBE_BOOKMARK ? 0 : established(event.object, err);
			json_decref(event.object);
		} else if (rc == 0) {
			break;
		}
	} while (rc == 0 && left > 0);
	k->ops->watch_close(w);
	return rc;
}

static int wait_established(struct kube *k, const json_t *crd, struct error *err)
{
	int64_t until = clock_mono_ms(k->clock) + ESTABLISH_MS;
	cleanup_json json_t *now = json_incref((json_t *)crd);

	for (;;) {
		json_t *newer = NULL;
		int rc = established(now, err);

		if (rc == 0)
			rc = watch_established(k, now, until, err);
		if (rc > 0)
			return 0;
		if (clock_mono_ms(k->clock) >= until)
			return error_set(err, ETIMEDOUT,
					 "CustomResourceDefinition %s is not served after %d s; "
					 "see its conditions",
					 object_name(crd), ESTABLISH_MS / 1000);
		/* an end of the watch, or what a watch can meet: look, and watch from there */
		if (rc < 0 && rc != -EIDRM && rc != -EAGAIN && rc != -ETIMEDOUT)
			return rc;
		rc = kube_get(k, &KIND_CRD, NULL, object_name(crd), &newer, err);
		if (rc < 0)
			return rc;
		json_decref(now);
		now = newer;
	}
}

static int ensure(struct kube *k, const struct kind *kind, struct error *err)
{
	cleanup_json json_t *ours = schema_crd(kind), *there = NULL;
	int rc = -ESTALE;

	for (int i = 0; i < CONFLICTS_MAX && rc == -ESTALE; i++)
		rc = register_once(k, kind, ours, &there, err);
	if (rc == -EPERM)
		return error_set(err, EPERM,
				 "CustomResourceDefinition %s cannot be registered, since our "
				 "account may not; allow it, or apply what `quartermaster crds` "
				 "prints",
				 object_name(ours));
	return rc < 0 ? rc : wait_established(k, there, err);
}

int crds_ensure(struct kube *k, struct error *err)
{
	int rc = 0;

	for (size_t i = 0; kinds[i] && rc == 0; i++) {
		if (!kinds[i]->custom)
			continue;
		rc = ensure(k, kinds[i], err);
		/* all but snapshots works without them */
		if (kinds[i]->shared && (rc == -EPERM || rc == -ETIMEDOUT)) {
			log_warn("no snapshots until that is so: %s", error_text(err, rc));
			rc = 0;
		}
	}
	return rc;
}
