/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/quantity.h"
#include "csi/handle.h"
#include "operator/connection_class.h"
#include "operator/ledger.h"
#include "operator/op.h"
#include "operator/whole.h"

#include <errno.h>

/*
 * A claim that asks for more than its volume has. The room is promised first, then the volume grows in
 * its pool, then the PersistentVolume says so (on which the agents raise the quota), then the claim.
 * Each step is found done or not by looking, so a crash in between costs nothing. A volume never shrinks.
 * Conditions, reasons and allocatedResources are those that people know from external-resizer.
 */
#define ROOM_AGAIN_MS 30000
#define UNDER_WAY "ControllerResizeInProgress"
#define INFEASIBLE "ControllerResizeInfeasible"
#define NODE_PENDING "NodeResizePending"
#define NODE_INFEASIBLE "NodeResizeInfeasible"

struct work {
	struct reconcile *r;
	struct operator* op;
	json_t *claim, *pv; /* as the API has them */
	struct handle handle; /* of the volume */
	int64_t wanted;
};

static int64_t bytes_of(const char *text)
{
	int64_t bytes = 0;

	return text && quantity_parse(text, &bytes, NULL) == 0 ? bytes : 0;
}

static int64_t claim_has(const json_t *claim)
{
	return bytes_of(jstr(claim, "status", "capacity", "storage"));
}

static int64_t claim_promised(const json_t *claim)
{
	return bytes_of(jstr(claim, "status", "allocatedResources", "storage"));
}

/*
 * What it is to have. Who asked for more first, and for less when that took too long, gets what
 * was begun: it may have taken effect, and nothing shrinks.
 */
static int64_t size_wanted(const json_t *claim)
{
	int64_t asked = claim_bytes(claim), begun = claim_promised(claim);
	const char *state = jstr(claim, "status", "allocatedResourceStatuses", "storage");

	return streq(state, UNDER_WAY) && begun > asked ? begun : asked;
}

static bool wants_more(const json_t *claim)
{
	return jstr(claim, "spec", "volumeName") && claim_has(claim) > 0 &&
	       claim_bytes(claim) > claim_has(claim) && !object_deleting(claim);
}

/* ---- what the claim says ------------------------------------------------------------------------ */

#define FAILED "ControllerResizeError"
static const char *const own_conditions[] = { "Resizing", "FileSystemResizePending", FAILED, NULL };

static json_t *conditions_with(struct work *w, const char *type, const char *message)
{
	return claim_conditions(w->claim, own_conditions,
				type ? claim_condition(w->r, type, message) : NULL);
}

/* What is promised to the claim, and how far that is; it may be said already. */
static bool says(const struct work *w, const char *state)
{
	return streq(jstr(w->claim, "status", "allocatedResourceStatuses", "storage"), state) &&
	       claim_promised(w->claim) == w->wanted;
}

static int tell(struct work *w, const char *state, json_t *conditions)
{
	char size[QUANTITY_TEXT_MAX];

	return claim_tell(w->r, &w->claim,
			  json_pack("{s:o, s:{s:s}, s:{s:s}}", "conditions", conditions,
				    "allocatedResources", "storage", quantity_text(w->wanted, size),
				    "allocatedResourceStatuses", "storage", state));
}

static void say_failed(struct work *w, const char *message)
{
	event_record(w->r->kube, &KIND_PVC, w->claim, "quartermaster", true, "VolumeResizeFailed",
		     "%s", message);
}

/* Nothing was begun: who asks for less now gets that. The key comes again. */
static int put_off(struct work *w, const char *message)
{
	w->r->again_ms = ROOM_AGAIN_MS;
	say_failed(w, message);
	if (says(w, INFEASIBLE) && streq(claim_said(w->claim, FAILED), message))
		return 0;
	return tell(w, INFEASIBLE, conditions_with(w, FAILED, message));
}

static int tell_begun(struct work *w)
{
	if (says(w, UNDER_WAY))
		return 0;
	event_record(w->r->kube, &KIND_PVC, w->claim, "quartermaster", false, "Resizing",
		     "volume %s is being made larger", object_name(w->pv));
	return tell(w, UNDER_WAY, conditions_with(w, "Resizing", NULL));
}

/* kubelet does not try again then: who resizes is to begin anew, as external-resizer does. */
static bool failed_on_node(const json_t *claim)
{
	return streq(jstr(claim, "status", "allocatedResourceStatuses", "storage"),
		     NODE_INFEASIBLE);
}

/* A directory is larger at once; in a file or a device the node that uses it has to follow. */
static int tell_done(struct work *w)
{
	static const char pending[] = "the node on which the volume is used makes its file system "
				      "larger";
	char size[QUANTITY_TEXT_MAX];
	bool by_node = (pv_is_device(w->pv) || pv_is_connection(w->pv)) && !w->op->binder;

	if (by_node && claim_said(w->claim, "FileSystemResizePending") && !failed_on_node(w->claim))
		return 0;
	event_record(w->r->kube, &KIND_PVC, w->claim, "quartermaster", false,
		     by_node ? "FileSystemResizeRequired" : "VolumeResizeSuccessful", "%s",
		     by_node ? pending : "the volume is larger now");
	quantity_text(pv_bytes(w->pv), size);
	if (by_node) /* what is allocated is the claim's capacity when kubelet is done */
		return claim_tell(w->r, &w->claim,
				  json_pack("{s:o, s:{s:s}, s:{s:s}}", "conditions",
					    conditions_with(w, "FileSystemResizePending", pending),
					    "allocatedResources", "storage", size,
					    "allocatedResourceStatuses", "storage",
					    NODE_PENDING));
	return claim_tell(w->r, &w->claim,
			  json_pack("{s:o, s:{s:s}, s:{s:s}, s:n}", "conditions",
				    conditions_with(w, NULL, NULL), "capacity", "storage", size,
				    "allocatedResources", "storage", size,
				    "allocatedResourceStatuses"));
}

/* ---- growing ------------------------------------------------------------------------------------ */

/* 1: there is no room. */
static int promise(struct work *w, const json_t *pool)
{
	char asked[QUANTITY_TEXT_MAX], most[QUANTITY_TEXT_MAX];
	int64_t biggest = 0;
	int rc = ledger_grow(w->op->ledger, object_name(w->pv), w->wanted, pool_limit(w->op, pool),
			     &biggest);

	if (rc == -EAGAIN)
		return error_set(&w->r->error, EAGAIN, "volume %s is not in the ledger yet",
				 object_name(w->pv));
	if (rc != -ENOSPC)
		return rc;
	quantity_human(w->wanted, asked);
	quantity_human(biggest, most);
	cleanup_free char *message = xasprintf(
		"%s was asked for, but pool %s has room for %s at most; ask for less, or delete "
		"volumes (a volume stays in its pool)",
		asked, object_name(pool), most);
	rc = put_off(w, message);
	return rc < 0 ? rc : 1;
}

static int tell_volume(struct work *w)
{
	char size[QUANTITY_TEXT_MAX];
	json_t *pv = NULL;
	int rc = op_patch(w->r, &KIND_PV, w->pv, NULL,
			  json_pack("{s:{s:{s:s}}}", "spec", "capacity", "storage",
				    quantity_text(w->wanted, size)),
			  &pv);

	if (rc < 0)
		return rc;
	json_decref(w->pv);
	w->pv = pv;
	return 0;
}

/* Nothing is promised and no worker asked, which would only hold its thread; who asks for less meanwhile gets that. */
static int wait_for_pool(struct work *w, const json_t *pool)
{
	cleanup_free char *why = pool_silence(pool);

	if (op_waits(w->r, "pool of resize", object_name(w->pv), POOL_AGAIN_MS))
		say_failed(w, why);
	return 1;
}

/* 1: it cannot be now, and that was said. */
static int grow(struct work *w)
{
	cleanup_json json_t *pool = NULL;
	const struct worker_volume volume = { .kind = w->handle.kind, .name = w->handle.name };
	struct pool_access access;
	int rc = op_get_live(w->r, &KIND_STORAGEPOOL, w->op->ns, w->handle.pool, &pool);

	if (rc != 0 || !pool_takes_volumes(w->op, pool)) {
		if (rc < 0)
			return rc;
		say_failed(w, "the volume's pool is gone");
		w->r->again_ms = ROOM_AGAIN_MS;
		return 1;
	}
	if (!pool_answers(w->r, pool))
		return wait_for_pool(w, pool);
	rc = promise(w, pool);
	if (rc != 0)
		return rc;
	rc = tell_begun(w);
	if (rc < 0)
		return rc;
	pool_access(pool, &access);
	rc = w->op->workers->ops->resize(w->op->workers, &access.pool, &volume, w->wanted,
					 &w->r->error);
	if (rc == 0 && w->handle.kind == VOLUME_WHOLE)
		rc = whole_grow(w->r, w->handle.pool, w->handle.name, w->wanted);
	if (rc < 0) {
		cleanup_free char *message =
			xasprintf("pool %s: %s; trying again", object_name(pool),
				  error_text(&w->r->error, rc));
		say_failed(w, message);
		return rc;
	}
	rc = tell_volume(w);
	if (rc == 0)
		system_soon(w->r);
	return rc;
}

/* Storage of others grows where it is kept; the node takes note of it. */
static int grow_connection(struct work *w)
{
	int rc;

	if (!op_leads(w->r, NULL))
		return 0;
	w->wanted = claim_bytes(w->claim);
	rc = pv_bytes(w->pv) < w->wanted ? tell_volume(w) : 0;
	return rc < 0 ? rc : tell_done(w);
}

static int work_on(struct work *w, const char *ns, const char *name)
{
	int64_t epoch;
	int rc = op_get_live(w->r, &KIND_PVC, ns, name, &w->claim);

	if (rc != 0 || !wants_more(w->claim))
		return rc < 0 ? rc : 0;
	rc = op_get_live(w->r, &KIND_PV, NULL, jstr(w->claim, "spec", "volumeName"), &w->pv);
	if (rc == 0 && pv_is_connection(w->pv) &&
	    streq(jstr(w->pv, "spec", "claimRef", "uid"), object_uid(w->claim)))
		return grow_connection(w);
	if (rc != 0 || !pv_belongs_to(w->op, w->pv, w->claim) || !op_leads(w->r, &epoch))
		return rc < 0 ? rc : 0;
	rc = ledger_load(w->op->ledger, w->r, epoch);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	handle_parse(jstr(w->pv, "spec", "csi", "volumeHandle"), &w->handle, NULL);
	w->wanted = size_wanted(w->claim);
	if (pv_bytes(w->pv) < w->wanted || failed_on_node(w->claim)) {
		if (w->wanted < pv_bytes(w->pv)) /* less is asked for since: nothing shrinks */
			w->wanted = pv_bytes(w->pv);
		rc = grow(w);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	return tell_done(w);
}

static int resize_reconcile(struct reconcile *r, const char *key)
{
	struct work w = { .r = r, .op = op_of(r) };
	char ns[254], name[254];

	key_split(key, ns, name);
	cleanup_json json_t *cached = reader_get(r->cache, &KIND_PVC, ns, name);
	if (!cached || !wants_more(cached))
		return 0;
	int rc = work_on(&w, ns, name);
	json_decref(w.claim);
	json_decref(w.pv);
	return rc;
}

static void resize_keys(const json_t *claim, struct reconcile *r, struct strv *keys)
{
	if (wants_more(claim))
		strv_add_take(keys, object_key(claim));
}

static const struct controller_watch watches[] = { { .kind = &KIND_PVC, .keys = resize_keys },
						   { 0 } };

const struct controller RESIZE_CONTROLLER = {
	.name = "resize",
	.watches = watches,
	.workers = 4,
	.reconcile = resize_reconcile,
};
