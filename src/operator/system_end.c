/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/system.h"

/*
 * Deleting a StorageStatus means that the deployment is to go. It destroys nothing by itself: it
 * waits, and says so, while volumes are promised of it or StorageNodes belong to it. Then the class
 * goes, and the object.
 */
static char *what_is_left(const struct system *s)
{
	int volumes = 0;
	size_t nodes = json_array_size(s->nodes), pools = json_array_size(s->pools), i;
	json_t *p;

	json_array_foreach (s->pools, i, p)
		volumes += ledger_count(s->op->ledger, object_name(p));
	if (volumes)
		return xasprintf("%d volume%s live%s on it; delete the claims first, then the "
				 "StorageNodes",
				 volumes, volumes == 1 ? "" : "s", volumes == 1 ? "s" : "");
	if (nodes || pools)
		return xasprintf("%zu StorageNodes and %zu pools belong to it; delete the "
				 "StorageNodes with label " QM_LABEL_DEPLOYMENT "=%s",
				 nodes, pools, s->op->deployment);
	return NULL;
}

static int say_waiting(struct system *s, const char *why)
{
	cleanup_json json_t *list = conditions_of(s->status);

	if (!condition_set(list, "Removable", false, "InUse", why,
			   jint(s->status, "metadata", "generation"), clock_wall_ms(s->r->clock)))
		return 0;
	event_record(s->r->kube, &KIND_STORAGESTATUS, s->status, "quartermaster", true,
		     "DeletionWaits", "the deployment cannot go yet: %s", why);
	return status_patch(s, "status", json_pack("{s:{s:O}}", "status", "conditions", list));
}

int deployment_end(struct system *s)
{
	if (!object_deleting(s->status)) {
		/* without a node there is nothing to hold: it must not keep its namespace from going */
		if (object_has_finalizer(s->status, QM_FINALIZER_DEPLOYMENT) ||
		    (!json_array_size(s->nodes) && !json_array_size(s->pools)))
			return 0;
		return status_patch(s, NULL,
				    json_pack("{s:{s:o}}", "metadata", "finalizers",
					      finalizers_with(s->status, QM_FINALIZER_DEPLOYMENT)));
	}
	cleanup_free char *why = what_is_left(s);
	if (why)
		return say_waiting(s, why);
	int rc = class_remove(s);
	return rc < 0 ? rc
		      : op_drop_finalizer(s->r, &KIND_STORAGESTATUS, s->status,
					  QM_FINALIZER_DEPLOYMENT);
}
