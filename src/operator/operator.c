/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/operator.h"

#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/op.h"
#include "operator/snapshot.h"
#include "operator/source.h"
#include "operator/system.h"

const struct controller *const operator_controllers[] = {
	&SYSTEM_CONTROLLER,  &CLAIM_CONTROLLER,	 &VOLUME_CONTROLLER,
	&RESIZE_CONTROLLER,  &MODIFY_CONTROLLER, &SNAPSHOT_CONTROLLER,
	&CONTENT_CONTROLLER, &BINDER_CONTROLLER, NULL,
};

const struct controller *const operator_controllers_bound[] = {
	&SYSTEM_CONTROLLER,  &CLAIM_CONTROLLER,	   &VOLUME_CONTROLLER,
	&RESIZE_CONTROLLER,  &MODIFY_CONTROLLER,   &SNAPSHOT_CONTROLLER,
	&CONTENT_CONTROLLER, &CAPACITY_CONTROLLER, NULL,
};

void operator_init(struct operator* op)
{
	op->ledger = ledger_new();
	op->memory = memory_new();
	op->names = names_new();
	op->patience = patience_new();
}

void operator_done(struct operator* op)
{
	ledger_free(op->ledger);
	memory_free(op->memory);
	names_free(op->names);
	patience_free(op->patience);
	op->ledger = NULL;
	op->memory = NULL;
	op->names = NULL;
	op->patience = NULL;
}

bool operator_mark(const struct kind *kind, const json_t *object)
{
	if (kind == &KIND_PV)
		return !pv_is_taken(object);
	if (kind == &KIND_PVC)
		return source_ref(object) && source_needed(object);
	return kind == &KIND_VOLUMESNAPSHOT &&
	       (!snapshot_is_ready(object) || object_deleting(object));
}

/* Keys of an object that no loop reads from a cache. */
static void cut_metadata(const struct kind *kind, json_t *meta)
{
	static const char *const unread[] = { "managedFields", "ownerReferences",
					      "creationTimestamp", "generateName", "selfLink" };
	if (kind != &KIND_STORAGENODE)
		json_object_del(meta, "generation");
	for (size_t i = 0; i < ARRAY_SIZE(unread); i++)
		json_object_del(meta, unread[i]);
	json_object_del(jget(meta, "annotations"),
			"kubectl.kubernetes.io/last-applied-configuration");
}

void operator_project(const struct kind *kind, json_t *object)
{
	cut_metadata(kind, jget(object, "metadata"));
	json_object_del(object, "kind");
	json_object_del(object, "apiVersion");
	if (kind == &KIND_STORAGESTATUS) { /* read live: the cache only tells that it changed */
		json_object_del(object, "spec");
		json_object_del(object, "status");
	} else if (kind == &KIND_PV) {
		json_object_del(jget(object, "spec", "csi"), "volumeAttributes");
	} else if (kind == &KIND_PVC || kind == &KIND_STORAGEPOOL) {
		json_object_del(jget(object, "status"), "conditions");
	}
}
