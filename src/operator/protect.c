/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/op.h"

#include <errno.h>

/*
 * A claim that is in use stays, as Kubernetes has it: there pods are the users, and its controller manager does this.
 * On the embedded API the users are those that the platform knows, mounts of this machine. What is deleted waits for
 * them, says for whom, and goes when the last of them is gone.
 */
#define HELD_AGAIN_MS 1000 /* nobody tells when something is unmounted */
#define HELD "Held"

json_t *claim_protected(const json_t *claim, json_t *finalizers)
{
	if (!object_has_finalizer(claim, CLAIM_PROTECTION))
		json_array_append_new(finalizers, json_string(CLAIM_PROTECTION));
	return finalizers;
}

int claim_protect(struct reconcile *r, const json_t *claim)
{
	if (object_has_finalizer(claim, CLAIM_PROTECTION))
		return 0;
	return op_patch(r, &KIND_PVC, claim, NULL,
			json_pack("{s:{s:o}}", "metadata", "finalizers",
				  finalizers_with(claim, CLAIM_PROTECTION)),
			NULL);
}

/* Said once for the same users: on the claim, and as an Event. */
static int say_held(struct reconcile *r, const json_t *claim, const char *message)
{
	static const char *const own[] = { HELD, NULL };

	r->again_ms = HELD_AGAIN_MS;
	if (streq(claim_said(claim, HELD), message))
		return 0;
	event_record(r->kube, &KIND_PVC, claim, "quartermaster", true, "ClaimInUse", "%s", message);
	return op_patch(r, &KIND_PVC, claim, "status",
			json_pack("{s:{s:o}}", "status", "conditions",
				  claim_conditions(claim, own, claim_condition(r, HELD, message))),
			NULL);
}

/* Whether it is in use is not known: it stays, and whoever waits for its end is told. */
static int say_unknown(struct reconcile *r, const json_t *claim, int rc)
{
	struct error why = r->error;

	(void)say_held(r, claim, error_text(&why, rc));
	r->error = why;
	return rc;
}

/* 1: it is in use, and that is said. */
static int ask_users(struct reconcile *r, const json_t *claim)
{
	struct platform *platform = op_of(r)->platform;
	const char *volume = jstr(claim, "spec", "volumeName");
	cleanup_free char *users = NULL, *message = NULL;
	cleanup_json json_t *pv = NULL;
	int rc = volume && platform->ops->users ? op_get_live(r, &KIND_PV, NULL, volume, &pv) : 1;

	if (rc != 0 || !pv_refers_to(pv, claim))
		return rc < 0 ? rc : 0;
	rc = platform->ops->users(platform, pv, &users, &r->error);
	if (rc <= 0)
		return rc < 0 ? say_unknown(r, claim, rc) : 0;
	message = xasprintf("in use: %s; it is deleted when that has ended", users);
	rc = say_held(r, claim, message);
	return rc < 0 ? rc : 1;
}

int claim_unprotect(struct reconcile *r, const json_t *seen)
{
	cleanup_json json_t *claim = NULL;

	if (!object_has_finalizer(seen, CLAIM_PROTECTION) || !op_leads(r, NULL))
		return 0;
	/* what was said of it is in no cache */
	int rc = op_get_live(r, &KIND_PVC, object_namespace(seen), object_name(seen), &claim);
	if (rc != 0 || !object_deleting(claim))
		return rc < 0 ? rc : 0;
	rc = ask_users(r, claim);
	if (rc != 0)
		return rc < 0 ? rc : 0;
	return op_drop_finalizer(r, &KIND_PVC, claim, CLAIM_PROTECTION);
}
