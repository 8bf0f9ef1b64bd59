/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/attributes.h"
#include "operator/op.h"

#include <errno.h>

/*
 * A claim that names another VolumeAttributesClass than the one in force. First the claim says
 * what is under way, then the PersistentVolume gets the class and what it means in one write,
 * then the claim says that it is in force. What has been done is seen by looking, so a crash in
 * between costs nothing. A class that is missing is waited for; one that cannot be had changes
 * nothing. Conditions, reasons and states are those of external-resizer.
 */
#define MISSING_AGAIN_MS 10000
#define INFEASIBLE_AGAIN_MS 60000 /* its class may be made anew */
#define MODIFYING "ModifyingVolume"
#define FAILED "ModifyVolumeError"

static const char *const own_conditions[] = { MODIFYING, FAILED, NULL };

struct work {
	struct reconcile *r;
	struct operator* op;
	json_t *claim, *pv; /* as the API has them */
	char *wanted; /* the class that the claim names; NULL: none */
};

static const char *class_wanted(const json_t *claim)
{
	const char *name = jstr(claim, "spec", "volumeAttributesClassName");

	return name && *name ? name : NULL;
}

static bool in_force(const json_t *claim)
{
	const char *wanted = class_wanted(claim);

	return !wanted || streq(wanted, jstr(claim, "status", "currentVolumeAttributesClassName"));
}

static bool wants_change(const json_t *claim)
{
	return jstr(claim, "spec", "volumeName") &&
	       streq(jstr(claim, "status", "phase"), "Bound") && !object_deleting(claim) &&
	       (!in_force(claim) || jget(claim, "status", "modifyVolumeStatus"));
}

/* ---- what the claim says ----------------------------------------------------------------------- */

static void say(struct work *w, bool warning, const char *reason, const char *message)
{
	event_record(w->r->kube, &KIND_PVC, w->claim, "quartermaster", warning, reason, "%s",
		     message);
}

static bool says(const struct work *w, const char *state)
{
	const json_t *said = jget(w->claim, "status", "modifyVolumeStatus");

	return streq(jstr(said, "status"), state) &&
	       streq(jstr(said, "targetVolumeAttributesClassName"), w->wanted);
}

/* How far it is; 0 too where that is said already. condition is stolen. */
static int tell(struct work *w, const char *state, json_t *condition)
{
	return claim_tell(w->r, &w->claim,
			  json_pack("{s:{s:s, s:s}, s:o}", "modifyVolumeStatus", "status", state,
				    "targetVolumeAttributesClassName", w->wanted, "conditions",
				    claim_conditions(w->claim, own_conditions, condition)));
}

static int put_off(struct work *w, enum attributes_found found, const char *why)
{
	const char *state = found == ATTRIBUTES_MISSING ? "Pending" : "Infeasible";
	bool is_new = !says(w, state) ||
		      (found == ATTRIBUTES_REFUSED && !streq(claim_said(w->claim, FAILED), why));

	w->r->again_ms = found == ATTRIBUTES_MISSING ? MISSING_AGAIN_MS : INFEASIBLE_AGAIN_MS;
	if (!is_new)
		return 0;
	say(w, true, "VolumeModifyFailed", why);
	return tell(w, state,
		    found == ATTRIBUTES_MISSING ? NULL : claim_condition(w->r, FAILED, why));
}

static int tell_begun(struct work *w)
{
	if (says(w, "InProgress"))
		return 0;
	cleanup_free char *message = xasprintf("volume %s gets what VolumeAttributesClass %s says",
					       object_name(w->pv), w->wanted);
	say(w, false, "VolumeModify", message);
	return tell(w, "InProgress",
		    claim_condition(w->r, MODIFYING, "ModifyVolume operation in progress."));
}

/* What was wanted is in force, or nothing is wanted any more. */
static int tell_done(struct work *w)
{
	json_t *status = json_pack("{s:n, s:o}", "modifyVolumeStatus", "conditions",
				   claim_conditions(w->claim, own_conditions, NULL));

	if (w->wanted && !in_force(w->claim)) {
		cleanup_free char *message =
			xasprintf("volume %s has what VolumeAttributesClass %s says",
				  object_name(w->pv), w->wanted);
		say(w, false, "VolumeModifySuccessful", message);
		jset(status, json_string(w->wanted), "currentVolumeAttributesClassName");
	}
	return claim_tell(w->r, &w->claim, status);
}

/* ---- changing ---------------------------------------------------------------------------------- */

static int change(struct work *w, const struct attributes *attributes)
{
	json_t *pv = json_object();

	attributes_apply(attributes, pv, true);
	int rc = tell_begun(w);
	if (rc < 0) {
		json_decref(pv);
		return rc;
	}
	rc = op_patch(w->r, &KIND_PV, w->pv, NULL, pv, NULL);
	if (rc < 0) {
		cleanup_free char *message =
			xasprintf("volume %s: %s; trying again", object_name(w->pv),
				  error_text(&w->r->error, rc));
		say(w, true, "VolumeModifyFailed", message);
		return rc;
	}
	return tell_done(w);
}

static int work_on(struct work *w, const char *ns, const char *name)
{
	struct attributes attributes cleanup_with(attributes_done) = { 0 };
	int rc = op_get_live(w->r, &KIND_PVC, ns, name, &w->claim);

	if (rc != 0 || !wants_change(w->claim))
		return rc < 0 ? rc : 0;
	rc = op_get_live(w->r, &KIND_PV, NULL, jstr(w->claim, "spec", "volumeName"), &w->pv);
	if (rc != 0 || !pv_belongs_to(w->op, w->pv, w->claim) || !op_leads(w->r, NULL))
		return rc < 0 ? rc : 0;
	if (class_wanted(w->claim))
		w->wanted = xstrdup(class_wanted(w->claim));
	if (in_force(w->claim))
		return tell_done(w); /* a person took back what could not be */
	rc = attributes_find(w->r, w->wanted, &attributes);
	if (rc == ATTRIBUTES_MISSING || rc == ATTRIBUTES_REFUSED)
		return put_off(w, (enum attributes_found)rc, attributes.why);
	return rc < 0 ? rc : change(w, &attributes);
}

static int modify_reconcile(struct reconcile *r, const char *key)
{
	struct work w = { .r = r, .op = op_of(r) };
	char ns[254], name[254];

	key_split(key, ns, name);
	cleanup_json json_t *cached = reader_get(r->cache, &KIND_PVC, ns, name);
	if (!cached || !wants_change(cached))
		return 0;
	int rc = work_on(&w, ns, name);
	json_decref(w.claim);
	json_decref(w.pv);
	free(w.wanted);
	return rc;
}

static void modify_keys(const json_t *claim, struct reconcile *r, struct strv *keys)
{
	if (wants_change(claim))
		strv_add_take(keys, object_key(claim));
}

static const struct controller_watch watches[] = { { .kind = &KIND_PVC, .keys = modify_keys },
						   { 0 } };

const struct controller MODIFY_CONTROLLER = {
	.name = "modify",
	.watches = watches,
	.workers = 2,
	.reconcile = modify_reconcile,
};
