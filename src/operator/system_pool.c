/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/system.h"

#include <errno.h>

#define REFUSED_AGAIN_MS 60000

json_t *pool_named(const struct system *s, const char *name)
{
	size_t i;
	json_t *p;
	json_array_foreach (s->pools, i, p)
		if (streq(object_name(p), name))
			return p;
	return NULL;
}

json_t *pools_volumes(const struct system *s)
{
	json_t *volumes = json_object(), *p;
	size_t i;
	json_array_foreach (s->pools, i, p)
		json_object_set_new(volumes, object_name(p),
				    json_integer(ledger_count(s->op->ledger, object_name(p))));
	return volumes;
}

/* ---- is it empty? ------------------------------------------------------------------------------ */

/* A whole volume goes when its PersistentVolume does, which says so itself; not by being deleted here. */
static int may_destroy_whole(struct system *s, const json_t *pool)
{
	const char *name = object_name(pool);
	bool promised = ledger_knows(s->op->ledger, name);

	if (!promised && streq(object_annotation(pool, QM_ANNOTATION_DISCARD), "true"))
		return 1;
	if (promised)
		system_problem(s,
			       "StoragePool %s is to go, but is the volume of a claim; delete that",
			       name);
	else
		system_problem(
			s,
			"StoragePool %s is to go, but is a volume that was kept; annotate it "
			"with " QM_ANNOTATION_DISCARD "=true to lose it",
			name);
	return 0;
}

/*
 * A pool may be destroyed when nothing is promised of it and nothing lies in it: a volume that was
 * retained or archived has no PersistentVolume, and yet somebody wanted to keep it. 1: it may; 0: not.
 */
static int may_destroy(struct system *s, const json_t *pool)
{
	const char *name = object_name(pool);
	cleanup_json json_t *found = NULL;
	struct workers *workers = s->op->workers;

	if (pool_parent(pool))
		return may_destroy_whole(s, pool);
	if (!ledger_close(s->op->ledger, name)) {
		int count = ledger_count(s->op->ledger, name);
		system_problem(s,
			       "pool %s is to go, but holds %d volume%s; delete the claims and "
			       "snapshots",
			       name, count, count == 1 ? "" : "s");
		return 0;
	}
	if (!jstr(pool, "status", "volumeId") ||
	    streq(object_annotation(pool, QM_ANNOTATION_DISCARD), "true"))
		return 1;
	struct pool_access access;
	pool_access(pool, &access);
	int rc = workers->ops->list(workers, &access.pool, &found, &s->r->error);
	if (rc == 0 && json_array_size(found) == 0) {
		json_decref(TAKE_PTR(found));
		rc = workers->ops->snapshots(workers, &access.pool, &found, &s->r->error);
	}
	if (rc == 0 && json_array_size(found) == 0)
		return 1;
	if (rc == 0)
		system_problem(s,
			       "pool %s is to go, but %zu volumes without a "
			       "PersistentVolume or snapshots lie in it (%s and so "
			       "on, retained, archived or of pods); remove them, or annotate the "
			       "StoragePool "
			       "with " QM_ANNOTATION_DISCARD "=true to lose them",
			       name, json_array_size(found),
			       jstr(json_array_get(found, 0), "name"));
	else
		system_problem(
			s,
			"pool %s is to go, but whether it is empty cannot be seen: %s; bring its "
			"nodes back, or annotate the "
			"StoragePool with " QM_ANNOTATION_DISCARD "=true to lose what is in it",
			name, error_text(&s->r->error, rc));
	ledger_reopen(s->op->ledger, name);
	s->r->error = ERROR_INIT;
	return 0;
}

/* ---- carrying out ------------------------------------------------------------------------------ */

/* The highest number that the plan of this part gives: one write for all of its pools. */
static long highest_planned(const struct system *s)
{
	long highest = 0;
	size_t i;
	json_t *p;

	json_array_foreach (s->plan.pools, i, p) {
		long number = streq(jstr(p, "action"), "create")
				      ? plan_pool_number(s->op->deployment, jstr(p, "name"))
				      : 0;

		highest = number > highest ? number : highest;
	}
	return highest;
}

/* Of what the API has refused nothing was made, and no other has got the name. */
static bool is_refusal(int rc)
{
	return rc == -EINVAL || rc == -EPERM || rc == -E2BIG;
}

/* Nodes are told for which pool a brick is; when that was planned it had no uid yet. */
static void name_in_plans(struct system *s, const json_t *pool)
{
	const char *node;
	json_t *plan, *b;
	size_t i;

	json_object_foreach (s->plan.node_plans, node, plan)
		json_array_foreach (jget(plan, "bricks"), i, b)
			if (streq(jstr(b, "pool"), object_name(pool)) && !jstr(b, "poolUid"))
				json_object_set(b, "poolUid", jget(pool, "metadata", "uid"));
}

static int create_pool(struct system *s, const json_t *p)
{
	cleanup_json json_t *made = NULL;
	cleanup_json json_t *pool =
		json_pack("{s:s, s:s, s:{s:s, s:s, s:{s:s, s:s}, s:[s]}, s:O}", "apiVersion",
			  "coreos.com/v1", "kind", "StoragePool", "metadata", "name",
			  jstr(p, "name"), "namespace", s->op->ns, "labels", QM_LABEL_DEPLOYMENT,
			  s->op->deployment, QM_LABEL_CLUSTER, jstr(p, "spec", "cluster"),
			  "finalizers", QM_FINALIZER_POOL, "spec", jget(p, "spec"));
	int rc = status_fence(s);
	if (rc == 0)
		rc = status_keep_number(s, highest_planned(s));
	if (rc < 0)
		return rc;
	rc = kube_create(s->r->kube, &KIND_STORAGEPOOL, pool, &made, &s->r->error);
	memory_note_number(s->op->memory, plan_pool_number(s->op->deployment, jstr(p, "name")),
			   is_refusal(rc));
	if (rc < 0)
		return rc;
	reader_learned(s->r->cache, &KIND_STORAGEPOOL, made);
	json_array_append(s->pools, made);
	name_in_plans(s, made);
	ledger_reopen(s->op->ledger, jstr(p, "name")); /* one of this name may have gone before */
	event_record(s->r->kube, &KIND_STORAGESTATUS, s->status, "quartermaster", false,
		     "PoolPlanned", "pool %s is made of %zu bricks", jstr(p, "name"),
		     json_array_size(jget(p, "spec", "bricks")));
	return 0;
}

static int change_pool(struct system *s, const json_t *p)
{
	json_t *pool = pool_named(s, jstr(p, "name")), *changed = NULL;
	json_t *diff = merge_diff(jget(pool, "spec"), jget(p, "spec"));
	if (!diff)
		return 0;
	int rc = status_fence(s);
	if (rc < 0) {
		json_decref(diff);
		return rc;
	}
	rc = op_patch(s->r, &KIND_STORAGEPOOL, pool, NULL, json_pack("{s:o}", "spec", diff),
		      &changed);
	if (rc < 0)
		return rc;
	json_object_update(pool, changed);
	json_decref(changed);
	return 0;
}

static int delete_pool(struct system *s, const json_t *p)
{
	json_t *pool = pool_named(s, jstr(p, "name"));
	if (object_deleting(pool))
		return 0;
	int rc = may_destroy(s, pool);
	if (rc > 0)
		rc = status_fence(s) < 0 ? -s->r->error.code : 1;
	if (rc <= 0)
		return rc;
	struct kube_delete_options options = { .uid = object_uid(pool),
					       .resource_version = object_version(pool) };
	rc = kube_delete(s->r->kube, &KIND_STORAGEPOOL, s->op->ns, object_name(pool), &options,
			 &s->r->error);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	event_record(s->r->kube, &KIND_STORAGESTATUS, s->status, "quartermaster", false,
		     "PoolGivenUp", "pool %s: %s", object_name(pool), jstr(p, "why"));
	return 0;
}

static bool volume_is_gone(const json_t *pool)
{
	if (streq(jstr(pool, "status", "phase"), "Deleted"))
		return true;
	if (jstr(pool, "status", "volumeId"))
		return false; /* it was made, and nobody has said that it was deleted */
	return json_is_array(jget(pool, "status", "bricks")) &&
	       !json_array_size(jget(pool, "status", "bricks")) &&
	       jint(pool, "status", "observedGeneration") >= jint(pool, "metadata", "generation");
}

/*
 * A pool that is being deleted, by us or by a person. Agents destroy its volume only after we have
 * put down that it is empty; until then it goes on serving.
 */
static int finish_deletion(struct system *s, const json_t *pool)
{
	if (!object_has_finalizer(pool, QM_FINALIZER_POOL))
		return 0;
	if (!object_annotation(pool, QM_ANNOTATION_EMPTY) && !volume_is_gone(pool)) {
		int rc = may_destroy(s, pool);
		if (rc <= 0)
			return rc;
		return op_patch(s->r, &KIND_STORAGEPOOL, pool, NULL,
				json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
					  QM_ANNOTATION_EMPTY, "true"),
				NULL);
	}
	if (!volume_is_gone(pool))
		return 0;
	return op_drop_finalizer(s->r, &KIND_STORAGEPOOL, pool, QM_FINALIZER_POOL);
}

/* ---- one pool's failure stays with it ---------------------------------------------------------- */

static bool names_pool(const json_t *plan, const char *pool)
{
	size_t i;
	json_t *b;
	json_array_foreach (jget(plan, "bricks"), i, b)
		if (streq(jstr(b, "pool"), pool))
			return true;
	return false;
}

/* Nodes are not told of what could not be written: they keep their plan, or get one without it. */
static void take_out_of_plans(struct system *s, const char *pool)
{
	size_t i, k;
	json_t *node, *b;

	json_array_foreach (s->nodes, i, node) {
		json_t *plan = jget(s->plan.node_plans, object_name(node)),
		       *old = jget(node, "status", "plan");
		if (!names_pool(plan, pool) && !names_pool(old, pool))
			continue;
		if (old) {
			json_object_set(s->plan.node_plans, object_name(node), old);
			continue;
		}
		json_t *rest = json_array();
		json_array_foreach (jget(plan, "bricks"), k, b)
			if (!streq(jstr(b, "pool"), pool))
				json_array_append(rest, b);
		json_object_set_new(plan, "bricks", rest);
	}
}

static int stays_with_it(struct system *s, const char *pool, int rc)
{
	if (rc >= 0 || !op_is_of_object(rc))
		return rc;
	system_problem(s, "pool %s: %s", pool, error_text(&s->r->error, rc));
	take_out_of_plans(s, pool);
	return 0;
}

/* What was refused is tried again only now and then: the fence of each attempt would bring us here at once. */
static bool refused_lately(struct system *s, const json_t *p)
{
	const json_t *was = jget(memory_refused(s->op->memory), jstr(p, "name"));
	int64_t age = clock_mono_ms(s->r->clock) - jint(was, "at");

	if (!was || age >= REFUSED_AGAIN_MS || !json_equal(jget(was, "spec"), jget(p, "spec")))
		return false;
	system_problem(s, "pool %s: %s", jstr(p, "name"), jstr(was, "why"));
	take_out_of_plans(s, jstr(p, "name"));
	return true;
}

static int carry_out(struct system *s, const json_t *p,
		     int (*action)(struct system *s, const json_t *p))
{
	json_t *refused = memory_refused(s->op->memory);

	if (refused_lately(s, p))
		return 0;
	int rc = action(s, p);
	json_object_del(refused, jstr(p, "name"));
	if (op_is_of_object(rc))
		json_object_set_new(refused, jstr(p, "name"),
				    json_pack("{s:O, s:I, s:s}", "spec", jget(p, "spec"), "at",
					      (json_int_t)clock_mono_ms(s->r->clock), "why",
					      error_text(&s->r->error, rc)));
	rc = stays_with_it(s, jstr(p, "name"), rc);
	if (rc == 0)
		s->r->error = ERROR_INIT;
	return rc;
}

int pools_apply(struct system *s)
{
	static const struct {
		const char *action;
		int (*carry_out)(struct system *s, const json_t *p);
	} actions[] = { { "create", create_pool },
			{ "change", change_pool },
			{ "delete", delete_pool } };
	size_t i;
	json_t *p;

	pools_say_aside(s);
	/* closed by an attempt to delete it that came to nothing, or as one of the same name that is gone */
	json_array_foreach (s->pools, i, p)
		if (!object_deleting(p))
			ledger_reopen(s->op->ledger, object_name(p));
	json_array_foreach (s->plan.pools, i, p) {
		for (size_t k = 0; k < ARRAY_SIZE(actions); k++) {
			int rc = streq(jstr(p, "action"), actions[k].action)
					 ? carry_out(s, p, actions[k].carry_out)
					 : 0;
			if (rc < 0)
				return rc;
		}
	}
	json_array_foreach (s->pools, i, p) {
		int rc = object_deleting(p) ? finish_deletion(s, p) : 0;
		if (stays_with_it(s, object_name(p), rc) < 0)
			return rc;
	}
	return 0;
}
