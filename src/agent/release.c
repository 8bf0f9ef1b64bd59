/* SPDX-License-Identifier: Apache-2.0 */
/* Bricks that have left their pool. */
#include "agent/state.h"
#include "base/log.h"
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

/* It is here, and for the pool that the order is about, as far as both are known. */
static bool on_record(struct node_host *h, const char *id, const json_t *plan)
{
	cleanup_json json_t *records = brick_records(h);
	const char *ordered = id ? jstr(plan, "releasePools", id) : NULL;
	const json_t *r;
	size_t i;

	json_array_foreach (records, i, r) {
		const char *uid = jstr(r, "poolUid");

		if (streq(jstr(r, "id"), id))
			return !ordered || !uid || streq(ordered, uid);
	}
	return false;
}

/*
 * The bricks that are here and are to go, by the plan as the API has it now: the cache's may have been taken back.
 * False: that cannot be asked.
 */
static bool ordered_to_go(struct looking *l, struct strv *ids)
{
	cleanup_json json_t *node = NULL;
	struct error err = ERROR_INIT;
	const json_t *v, *plan;
	bool any = false;
	size_t i;
	int rc;

	json_array_foreach (jget(l->plan, "release"), i, v)
		any |= on_record(l->agent->host, json_string_value(v), l->plan);
	if (!any)
		return true;
	rc = kube_get(l->r->kube, &KIND_STORAGENODE, l->agent->ns, l->agent->node, &node, &err);
	if (rc < 0) {
		log_warn("no brick is released now: %s", error_text(&err, rc));
		return false;
	}
	plan = jget(node, "status", "plan");
	if (!streq(object_uid(node), object_uid(l->node)) ||
	    jint(plan, "epoch") < jint(node, "status", "agent", "planEpoch"))
		return false;
	json_array_foreach (jget(plan, "release"), i, v)
		if (on_record(l->agent->host, json_string_value(v), plan))
			strv_add(ids, json_string_value(v));
	return true;
}

bool release_bricks(struct looking *l)
{
	struct node_host *h = l->agent->host;
	struct strv ids cleanup_with(strv_done) = { 0 };
	bool done = ordered_to_go(l, &ids);
	size_t i;

	peers_forget_unreported(l, &ids);
	/* begun in an earlier life, whatever the plan says now */
	brick_list_released(h, &ids);
	for (i = 0; i < ids.count; i++) {
		struct error err = ERROR_INIT;
		int rc = brick_release(h, ids.items[i], &err);

		l->away |= rc > 0;
		if (rc < 0) {
			log_warn("brick %s cannot be released yet: %s", ids.items[i],
				 error_text(&err, rc));
			done = false;
		}
	}
	return done;
}
