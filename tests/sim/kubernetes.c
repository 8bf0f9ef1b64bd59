/* SPDX-License-Identifier: Apache-2.0 */
#include "programs.h"

#include "base/mem.h"
#include "operator/op.h"

#include <errno.h>

/*
 * What Kubernetes' controller manager does for claims and volumes, as far as an operator on a cluster can tell:
 * it asks for a volume (an annotation of the claim), joins both in several writes, keeps their phases, and lets go of a claim that
 * no pod uses. It goes by caches that lag, dies between two of its writes, tries again, and may be slow.
 */
#define BIND_COMPLETED "pv.kubernetes.io/bind-completed"
#define BOUND_BY_IT "pv.kubernetes.io/bound-by-controller"
#define PROVISIONER "volume.kubernetes.io/storage-provisioner"
#define CLASS_AGAIN_MS 5000

/* Between two of its writes: others go on, and it may have to begin anew. */
static int pause_between(struct reconcile *r)
{
	struct proc *p = r->runner;
	const struct sim_options *options = p->userdata;

	if (!p->dead)
		task_sleep(p->sim, sim_below(p->sim, options->binder_slow_ms + 1));
	if (p->dead)
		return error_set(&r->error, ECANCELED, "the process is dead");
	if (sim_fault(p->sim, p->world->rates.call))
		return error_set(&r->error, EAGAIN, "it was interrupted");
	return 0;
}

/* ---- claims ------------------------------------------------------------------------------------- */

static int ask_for_volume(struct reconcile *r, const json_t *claim)
{
	cleanup_json json_t *class = reader_get(r->cache, &KIND_STORAGECLASS, NULL,
						jstr(claim, "spec", "storageClassName"));

	if (!class) {
		r->again_ms = CLASS_AGAIN_MS;
		return 0;
	}
	if (object_annotation(claim, PROVISIONER))
		return 0;
	return op_patch(r, &KIND_PVC, claim, NULL,
			json_pack("{s{s{ss}}}", "metadata", "annotations", PROVISIONER,
				  jstr(class, "provisioner")),
			NULL);
}

static int set_volume_phase(struct reconcile *r, const json_t *pv, const char *phase)
{
	if (streq(jstr(pv, "status", "phase"), phase))
		return 0;
	return op_patch(r, &KIND_PV, pv, "status", json_pack("{s{ss}}", "status", "phase", phase),
			NULL);
}

static int set_volume_name(struct reconcile *r, json_t **claim, const json_t *pv)
{
	json_t *changed = NULL;
	int rc;

	if (jstr(*claim, "spec", "volumeName") && object_annotation(*claim, BIND_COMPLETED))
		return 0;
	rc = op_patch(r, &KIND_PVC, *claim, NULL,
		      json_pack("{s{s{ss ss}} s{ss}}", "metadata", "annotations", BIND_COMPLETED,
				"yes", BOUND_BY_IT, "yes", "spec", "volumeName", object_name(pv)),
		      &changed);
	if (rc < 0)
		return rc;
	json_decref(*claim);
	*claim = changed;
	return pause_between(r);
}

static int set_claim_phase(struct reconcile *r, const json_t *claim, const json_t *pv)
{
	if (streq(jstr(claim, "status", "phase"), "Bound"))
		return 0;
	return op_patch(r, &KIND_PVC, claim, "status",
			json_pack("{s{ss sO sO}}", "status", "phase", "Bound", "accessModes",
				  jget(pv, "spec", "accessModes"), "capacity",
				  jget(pv, "spec", "capacity")),
			NULL);
}

/*
 * In its order. The volume's claimRef, its very first write, is there: a provisioner names the claim. A claim that is being
 * deleted is bound like any other.
 */
static int bind_both(struct reconcile *r, json_t **claim, const json_t *pv)
{
	int rc = pause_between(r);

	if (rc == 0)
		rc = set_volume_phase(r, pv, "Bound");
	if (rc == 0)
		rc = pause_between(r);
	if (rc == 0)
		rc = set_volume_name(r, claim, pv);
	return rc == 0 ? set_claim_phase(r, *claim, pv) : rc;
}

static int sync_claim(struct reconcile *r, const char *key)
{
	char ns[254], name[254];
	cleanup_json json_t *claim = NULL, *pv = NULL;
	cleanup_free char *made = NULL;
	const char *volume;

	key_split(key, ns, name);
	claim = reader_get(r->cache, &KIND_PVC, ns, name);
	if (!claim)
		return 0;
	made = pv_name(claim);
	volume = jstr(claim, "spec", "volumeName");
	pv = reader_get(r->cache, &KIND_PV, NULL, volume ? volume : made);
	if (pv && streq(jstr(pv, "spec", "claimRef", "uid"), object_uid(claim)))
		return streq(jstr(claim, "status", "phase"), "Bound") ? 0 : bind_both(r, &claim, pv);
	if (!volume)
		return ask_for_volume(r, claim);
	if (streq(jstr(claim, "status", "phase"), "Lost"))
		return 0;
	return op_patch(r, &KIND_PVC, claim, "status",
			json_pack("{s{ss}}", "status", "phase", "Lost"), NULL);
}

/* ---- volumes ------------------------------------------------------------------------------------- */

/* The volume's claim; NULL: it is gone, as the API itself says. */
static int claim_of(struct reconcile *r, const json_t *pv, json_t **ret)
{
	const char *ns = jstr(pv, "spec", "claimRef", "namespace"),
		   *name = jstr(pv, "spec", "claimRef", "name"),
		   *uid = jstr(pv, "spec", "claimRef", "uid");
	cleanup_json json_t *claim = reader_get(r->cache, &KIND_PVC, ns, name);
	int rc = 0;

	if (!claim || !streq(object_uid(claim), uid)) {
		json_decref(TAKE_PTR(claim));
		rc = op_get_live(r, &KIND_PVC, ns, name, &claim);
	}
	if (claim && streq(object_uid(claim), uid))
		*ret = TAKE_PTR(claim);
	return rc < 0 ? rc : 0;
}

static int sync_volume(struct reconcile *r, const char *name)
{
	cleanup_json json_t *pv = reader_get(r->cache, &KIND_PV, NULL, name), *claim = NULL;
	const char *phase = jstr(pv, "status", "phase"), *volume;
	int rc;

	if (!pv || streq(phase, "Released") || streq(phase, "Failed"))
		return 0;
	rc = claim_of(r, pv, &claim);
	if (rc < 0)
		return rc;
	if (!claim)
		return set_volume_phase(r, pv, "Released");
	volume = jstr(claim, "spec", "volumeName");
	if (!volume) {
		cleanup_free char *key = object_key(claim);

		r->enqueue(r, "pv", key, 0);
		return 0;
	}
	return set_volume_phase(r, pv, streq(volume, name) ? "Bound" : "Released");
}

/* ---- the loops ------------------------------------------------------------------------------------- */

static int sync_any(struct reconcile *r, const char *key)
{
	return strchr(key, '/') ? sync_claim(r, key) : sync_volume(r, key);
}

static void claim_keys(const json_t *claim, struct reconcile *r, struct strv *keys)
{
	strv_add_take(keys, object_key(claim));
	strv_add_take(keys, pv_name(claim));
}

static void volume_keys(const json_t *pv, struct reconcile *r, struct strv *keys)
{
	strv_add(keys, object_name(pv));
	strv_add_take(keys, pv_claim_key(pv));
}

/* No pod uses a claim here. */
static int protect(struct reconcile *r, const char *key)
{
	char ns[254], name[254];
	cleanup_json json_t *claim = NULL;

	key_split(key, ns, name);
	claim = reader_get(r->cache, &KIND_PVC, ns, name);
	if (!claim || !object_deleting(claim))
		return 0;
	return op_drop_finalizer(r, &KIND_PVC, claim, SIM_PROTECTION);
}

static void class_keys(const json_t *class, struct reconcile *r, struct strv *keys)
{
}

static const struct controller_watch pv_watches[] = {
	{ .kind = &KIND_PVC, .keys = claim_keys },
	{ .kind = &KIND_PV, .keys = volume_keys },
	{ .kind = &KIND_STORAGECLASS, .keys = class_keys },
	{ 0 },
};
static const struct controller PV_CONTROLLER = {
	.name = "pv", .watches = pv_watches, .workers = 4, .reconcile = sync_any
};
static const struct controller_watch protection_watches[] = { { .kind = &KIND_PVC }, { 0 } };
static const struct controller PROTECTION_CONTROLLER = {
	.name = "protection", .watches = protection_watches, .workers = 1, .reconcile = protect
};

static void *manager_start(struct proc *p)
{
	return p; /* it has nothing of its own */
}

static void manager_stopped(struct proc *p, void *app)
{
}

void manager_proc_setup(struct proc *p, const struct sim_options *options)
{
	static const struct controller *const controllers[] = { &PV_CONTROLLER,
								&PROTECTION_CONTROLLER, NULL };
	struct world *w = options->model->world;

	*p = (struct proc){ .world = w,
			    .sim = &w->sim,
			    .controllers = controllers,
			    .project = operator_project,
			    .start = manager_start,
			    .stopped = manager_stopped,
			    .userdata = (void *)options,
			    .can_crash = true };
	snprintf(p->name, sizeof(p->name), "manager");
}
