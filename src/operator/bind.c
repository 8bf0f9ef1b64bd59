/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/ledger.h"
#include "operator/op.h"

#include <errno.h>

/*
 * The binder: on the embedded API, what Kubernetes' controller manager does on a cluster. It joins
 * claims and volumes (those that provisioners made for a claim, and those that a person made) and
 * keeps the phases of both; one that is in use it does not let go (protect.c). Its keys are those of claims ("namespace/name") and volumes ("name").
 */
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define BOUND_BY_US "pv.kubernetes.io/bound-by-controller"

/* ---- which volume ------------------------------------------------------------------------------ */

bool pv_refers_to(const json_t *pv, const json_t *claim)
{
	const char *uid = jstr(pv, "spec", "claimRef", "uid");
	if (uid && *uid)
		return streq(uid, object_uid(claim));
	return streq(jstr(pv, "spec", "claimRef", "namespace"), object_namespace(claim)) &&
	       streq(jstr(pv, "spec", "claimRef", "name"), object_name(claim));
}

static bool has_modes(const json_t *pv, const json_t *claim)
{
	size_t i, k;
	json_t *want, *have;
	json_array_foreach (jget(claim, "spec", "accessModes"), i, want) {
		bool found = false;
		json_array_foreach (jget(pv, "spec", "accessModes"), k, have)
			found = found || json_equal(want, have);
		if (!found)
			return false;
	}
	return true;
}

static bool labels_match(const json_t *pv, const json_t *selector)
{
	const char *key;
	json_t *value;
	json_object_foreach (jget(selector, "matchLabels"), key, value)
		if (!streq(object_label(pv, key), json_string_value(value)))
			return false;
	return json_array_size(jget(selector, "matchExpressions")) == 0;
}

static const char *or_empty(const char *s)
{
	return s ? s : "";
}

static bool same_mode(const json_t *pv, const json_t *claim)
{
	const char *a = jstr(pv, "spec", "volumeMode"), *b = jstr(claim, "spec", "volumeMode");
	return streq(a ? a : "Filesystem", b ? b : "Filesystem");
}

struct search {
	const json_t *claim;
	json_t *best;
};

/* A volume that is meant for this claim wins; else the smallest that is free and big enough. */
static int consider(const json_t *pv, void *userdata)
{
	struct search *s = userdata;

	if (pv_is_taken(pv) || object_deleting(pv))
		return 0;
	if (jget(pv, "spec", "claimRef") && !pv_refers_to(pv, s->claim))
		return 0;
	if (!streq(or_empty(jstr(pv, "spec", "storageClassName")),
		   or_empty(jstr(s->claim, "spec", "storageClassName"))) ||
	    !streq(or_empty(jstr(pv, "spec", "volumeAttributesClassName")),
		   or_empty(jstr(s->claim, "spec", "volumeAttributesClassName"))) ||
	    !same_mode(pv, s->claim) || !has_modes(pv, s->claim) ||
	    pv_bytes(pv) < claim_bytes(s->claim) ||
	    !labels_match(pv, jget(s->claim, "spec", "selector")))
		return 0;
	bool meant = jget(pv, "spec", "claimRef") != NULL;
	if (!s->best || meant ||
	    (pv_bytes(pv) < pv_bytes(s->best) && !jget(s->best, "spec", "claimRef"))) {
		json_decref(s->best);
		s->best = json_incref((json_t *)pv);
	}
	return meant;
}

json_t *bind_candidate(struct reconcile *r, const json_t *claim)
{
	struct search s = { .claim = claim };
	const char *wanted = jstr(claim, "spec", "volumeName");
	if (wanted)
		return reader_get(r->cache, &KIND_PV, NULL, wanted);
	reader_each_marked(r->cache, &KIND_PV, NULL, consider, &s);
	return s.best;
}

/* ---- binding ----------------------------------------------------------------------------------- */

static int set_claim_ref(struct reconcile *r, const json_t *pv, const json_t *claim, json_t **ret)
{
	json_t *ref = json_pack("{s:s, s:s, s:s, s:s, s:s}", "apiVersion", "v1", "kind",
				"PersistentVolumeClaim", "namespace", object_namespace(claim),
				"name", object_name(claim), "uid", object_uid(claim));
	return op_patch(r, &KIND_PV, pv, NULL, json_pack("{s:{s:o}}", "spec", "claimRef", ref),
			ret);
}

static int set_phase(struct reconcile *r, const json_t *pv, const char *phase)
{
	char now[TIME_TEXT_MAX];
	if (streq(jstr(pv, "status", "phase"), phase))
		return 0;
	time_text(clock_wall_ms(r->clock), now);
	return op_patch(r, &KIND_PV, pv, "status",
			json_pack("{s:{s:s, s:s}}", "status", "phase", phase,
				  "lastPhaseTransitionTime", now),
			NULL);
}

/*
 * The claim's side: its volume's name, and with the same write our provisioning finalizer, which has done its duty; from
 * now on it may be in use.
 */
static int set_volume_name(struct reconcile *r, const json_t *claim, const json_t *pv, json_t **ret)
{
	json_t *annotations = json_pack("{s:s}", BIND_COMPLETED, "yes");
	if (!jstr(claim, "spec", "volumeName"))
		json_object_set_new(annotations, BOUND_BY_US, json_string("yes"));
	json_t *finalizers =
		claim_protected(claim, finalizers_without(claim, QM_FINALIZER_PROVISION));
	json_t *patch = json_pack("{s:{s:o, s:o}, s:{s:s}}", "metadata", "annotations", annotations,
				  "finalizers", finalizers, "spec", "volumeName", object_name(pv));
	return op_patch(r, &KIND_PVC, claim, NULL, patch, ret);
}

static int set_bound(struct reconcile *r, const json_t *claim, const json_t *pv)
{
	if (streq(jstr(claim, "status", "phase"), "Bound"))
		return 0;
	json_t *status = json_pack("{s:s, s:O, s:O, s:O*}", "phase", "Bound", "accessModes",
				   jget(pv, "spec", "accessModes"), "capacity",
				   jget(pv, "spec", "capacity"), "currentVolumeAttributesClassName",
				   jget(pv, "spec", "volumeAttributesClassName"));
	return op_patch(r, &KIND_PVC, claim, "status", json_pack("{s:o}", "status", status), NULL);
}

/* First the volume is taken, then the claim told: a crash in between leaves a volume that waits for this claim. */
static int bind_both(struct reconcile *r, const json_t *claim, const json_t *pv)
{
	cleanup_json json_t *taken = json_incref((json_t *)pv),
			    *told = json_incref((json_t *)claim);
	int rc = 0;

	if (!pv_is_taken(pv)) {
		json_decref(TAKE_PTR(taken));
		rc = set_claim_ref(r, pv, claim, &taken);
	}
	if (rc == 0 &&
	    !(jstr(claim, "spec", "volumeName") && object_annotation(claim, BIND_COMPLETED))) {
		json_decref(TAKE_PTR(told));
		rc = set_volume_name(r, claim, pv, &told);
	}
	if (rc == 0)
		rc = set_bound(r, told, taken);
	return rc == 0 ? set_phase(r, taken, "Bound") : rc;
}

/* ---- claims ------------------------------------------------------------------------------------ */

static int volume_lost(struct reconcile *r, const json_t *claim, const char *volume)
{
	cleanup_json json_t *pv = NULL;
	int rc = op_get_live(r, &KIND_PV, NULL, volume, &pv);
	if (rc <= 0)
		return rc; /* there after all: the cache will say so */
	if (!object_annotation(claim, BIND_COMPLETED) ||
	    streq(jstr(claim, "status", "phase"), "Lost"))
		return 0;
	event_record(r->kube, &KIND_PVC, claim, "quartermaster", true, "ClaimLost",
		     "PersistentVolume %s is gone, and with it the way to its data", volume);
	return op_patch(r, &KIND_PVC, claim, "status",
			json_pack("{s:{s:s}}", "status", "phase", "Lost"), NULL);
}

static int bind_claim(struct reconcile *r, const char *key)
{
	char ns[254], name[254];
	key_split(key, ns, name);
	cleanup_json json_t *claim = reader_get(r->cache, &KIND_PVC, ns, name), *pv = NULL;
	if (!claim || !op_leads(r, NULL))
		return 0;
	if (object_deleting(claim))
		return claim_unprotect(r, claim);

	const char *wanted = jstr(claim, "spec", "volumeName");
	cleanup_free char *made = pv_name(claim);
	pv = reader_get(r->cache, &KIND_PV, NULL, wanted ? wanted : made);
	if (!pv && wanted)
		return volume_lost(r, claim, wanted);
	/* while a volume is in the making for it, a claim is not given another one */
	if (!pv && !object_has_finalizer(claim, QM_FINALIZER_PROVISION))
		pv = bind_candidate(r, claim);
	if (!pv || object_deleting(pv))
		return 0;
	if (jget(pv, "spec", "claimRef") && !pv_refers_to(pv, claim)) {
		event_record(r->kube, &KIND_PVC, claim, "quartermaster", true, "FailedBinding",
			     "volume %s is bound to another claim", object_name(pv));
		return 0;
	}
	if (streq(jstr(claim, "status", "phase"), "Bound") &&
	    streq(jstr(pv, "status", "phase"), "Bound"))
		return claim_protect(r, claim); /* of a version before */
	return bind_both(r, claim, pv);
}

/* ---- volumes ----------------------------------------------------------------------------------- */

/* Whether the claim of the volume's claimRef no longer has it; asks the API itself before saying so. */
static int is_released(struct reconcile *r, const json_t *pv)
{
	const char *ns = jstr(pv, "spec", "claimRef", "namespace"),
		   *name = jstr(pv, "spec", "claimRef", "name");
	const char *uid = jstr(pv, "spec", "claimRef", "uid");

	for (int live = 0; live < 2; live++) {
		cleanup_json json_t *claim = NULL;
		if (!live)
			claim = reader_get(r->cache, &KIND_PVC, ns, name);
		else if (op_get_live(r, &KIND_PVC, ns, name, &claim) < 0)
			return -r->error.code;
		const char *volume = jstr(claim, "spec", "volumeName");
		if (claim && streq(object_uid(claim), uid) &&
		    (!volume || streq(volume, object_name(pv))))
			return 0;
	}
	return 1;
}

/* A volume is free: claims that wait look again. */
static void wake_claims(struct reconcile *r)
{
	struct strv waiting = { 0 };
	ledger_waiting(op_of(r)->ledger, &waiting);
	for (size_t i = 0; i < waiting.count; i++)
		r->enqueue(r, "binder", waiting.items[i], 0);
	strv_done(&waiting);
}

static int bind_volume(struct reconcile *r, const char *name)
{
	cleanup_json json_t *pv = reader_get(r->cache, &KIND_PV, NULL, name);
	if (!pv)
		return 0;
	const char *phase = jstr(pv, "status", "phase");
	if (streq(phase, "Released") || streq(phase, "Failed")) {
		/* a person has taken the claimRef out: it may be used again */
		if (jget(pv, "spec", "claimRef") || object_deleting(pv) || !op_leads(r, NULL))
			return 0;
		return set_phase(r, pv, "Available");
	}
	if (!pv_is_taken(pv)) {
		if (object_deleting(pv) || !op_leads(r, NULL))
			return 0;
		wake_claims(r);
		return set_phase(r, pv, "Available");
	}
	if (!op_leads(r, NULL))
		return 0;
	int rc = is_released(r, pv);
	return rc > 0 ? set_phase(r, pv, "Released") : rc;
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static int binder_reconcile(struct reconcile *r, const char *key)
{
	if (!op_of(r)->binder)
		return 0;
	return strchr(key, '/') ? bind_claim(r, key) : bind_volume(r, key);
}

static void claim_keys(const json_t *claim, struct reconcile *r, struct strv *keys)
{
	strv_add_take(keys, object_key(claim));
	if (jstr(claim, "spec", "volumeName"))
		strv_add(keys, jstr(claim, "spec", "volumeName"));
	else
		strv_add_take(keys, pv_name(claim));
}

static void volume_keys(const json_t *pv, struct reconcile *r, struct strv *keys)
{
	char *claim = pv_claim_key(pv);
	strv_add_take(keys, object_key(pv));
	if (claim)
		strv_add_take(keys, claim);
}

static const struct controller_watch watches[] = {
	{ .kind = &KIND_PVC, .keys = claim_keys },
	{ .kind = &KIND_PV, .keys = volume_keys },
	{ 0 },
};

const struct controller BINDER_CONTROLLER = {
	.name = "binder",
	.watches = watches,
	.workers = 8,
	.reconcile = binder_reconcile,
};
