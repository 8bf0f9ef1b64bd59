/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "schema/schema.h"
#include "systems/glusterfs/cluster.h"
#include "systems/glusterfs/plan.h"

struct totals {
	int online;
	int64_t pending; /* -1: not known */
	int64_t size, free; /* of the smallest brick that holds data */
	bool sized;
};

static struct totals count(const struct gluster_volume *v)
{
	struct totals t = { .sized = true };
	bool unknown = false;

	for (size_t i = 0; i < v->brick_count; i++) {
		const struct gluster_brick *b = &v->bricks[i];

		t.online += b->online;
		unknown |= b->online && b->pending < 0;
		if (b->pending > t.pending)
			t.pending = b->pending; /* each copy lists the same entries */
		if (b->arbiter || b->size == 0)
			continue;
		if (t.size == 0 || b->size < t.size)
			t.size = b->size;
		if (t.free == 0 || b->free < t.free)
			t.free = b->free;
	}
	t.sized = t.size > 0;
	if (unknown && t.pending == 0)
		t.pending = -1;
	return t;
}

/* How many bricks have to be there for writes. */
static int needed(const struct gluster_volume *v, const struct volume_type *type)
{
	if (type->layout == LAYOUT_DISPERSE)
		return (int)v->brick_count - type->redundancy;
	return (int)v->brick_count / 2 + 1;
}

static const char *phase_of(const struct gluster_volume *v, const struct volume_type *type,
			    const struct totals *t)
{
	if (!v || v->state == VOLUME_CREATED)
		return "Creating";
	if (v->state == VOLUME_STOPPED || t->online < needed(v, type))
		return "Offline";
	if (t->online < (int)v->brick_count)
		return "Degraded";
	return t->pending > 0 ? "Healing" : "Online";
}

/*
 * A volume that was made, and that this node's glusterd does not know: the node leads, but is no member of the trusted
 * pool yet, or has lost its memory. It knows nothing of the bricks then. That there are none would free those that
 * hold the data. Nor does it say anything of the pool that a volume of another one has its name.
 */
static bool knows_nothing(const struct volume_view *view, const struct volume_step *step)
{
	const char *id = jstr(view->pool, "status", "volumeId");

	return !volume_view_own(view) && step->kind != STEP_GONE &&
	       ((id && *id) || view->volume || volume_view_of_half(view));
}

/* No more than half of the cluster is connected: the others may have changed the volume since. Nothing is freed by that. */
static bool cut_off(const struct volume_view *view)
{
	size_t here = 1;

	for (size_t i = 0; i < view->peers->count; i++)
		here += view->peers->items[i].connected;
	return 2 * here <= view->members;
}

json_t *volume_pool_status(const struct volume_view *view, const struct volume_step *step)
{
	struct volume_type type = { .data = 1 };
	const struct gluster_volume *v = volume_view_own(view);
	struct totals t = v ? count(v) : (struct totals){ 0 };
	const char *text = jstr(view->pool, "spec", "volumeType");
	json_t *s = json_object();

	if (knows_nothing(view, step)) {
		json_object_set_new(s, "message", json_string(step->why));
		return s;
	}
	volume_type_parse(text ? text : "", &type, NULL);
	json_object_set_new(
		s, "phase",
		json_string(step->kind == STEP_GONE ? "Deleted" : phase_of(v, &type, &t)));
	if (!cut_off(view))
		json_object_set_new(s, "observedGeneration",
				    json_integer(jint(view->pool, "metadata", "generation")));
	json_object_set_new(s, "epoch", json_integer(jint(view->pool, "spec", "epoch")));
	json_object_set_new(s, "message", json_string(step->why));
	json_object_set_new(s, "bricks", volume_bricks_status(v));
	json_object_set_new(s, "healPending", json_integer(t.pending));
	if (v && v->id)
		json_object_set_new(s, "volumeId", json_string(v->id));
	if (t.sized) {
		json_object_set_new(s, "capacityBytes", json_integer(t.size * type.data));
		json_object_set_new(s, "freeBytes", json_integer(t.free * type.data));
		json_object_set_new(s, "usedBytes", json_integer((t.size - t.free) * type.data));
	}
	cleanup_json json_t *shown =
		json_pack("{s:O*, s:O}", "spec", jget(view->pool, "spec"), "status", s);
	json_object_set_new(s, "display", schema_display(&KIND_STORAGEPOOL, shown));
	return s;
}
