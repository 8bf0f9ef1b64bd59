/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Provisioning as a cluster knows it from the provisioners of others: nodes, secrets, what a
 * volume says of itself.
 */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

#define ZONE "topology.kubernetes.io/zone"

/* ---- nodes ------------------------------------------------------------------------------------- */

/* As a cluster's: somebody else binds, and a scheduler chooses nodes. */
static struct fixture *cluster(void)
{
	struct fixture *f = fixture_online();

	add_storage_class(
		f, "east", json_object(),
		json_pack("{s:s, s:[{s:[{s:s, s:[s, s]}]}, {s:[{s:s, s:[s]}, {s:s, s:[s]}]}]}",
			  "volumeBindingMode", "WaitForFirstConsumer", "allowedTopologies",
			  "matchLabelExpressions", "key", ZONE, "values", "e1", "e2",
			  "matchLabelExpressions", "key", ZONE, "values", "w1", "key", "disk",
			  "values", "fast"));
	f->op.binder = false;
	return f;
}

static void add_machine(struct fixture *f, const char *name, const char *zone, const char *disk)
{
	cleanup_json json_t *node =
		json_pack("{s:s, s:s, s:{s:s, s:{s:s, s:s}}}", "apiVersion", "v1", "kind", "Node",
			  "metadata", "name", name, "labels", ZONE, zone, "disk", disk);

	assert_int_equal(kube_create(f->api, &KIND_NODE, node, NULL, NULL), 0);
}

static void annotate(struct fixture *f, const char *claim, const char *key, const char *value)
{
	patch(f, &KIND_PVC, claim,
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations", key, value));
}

static void add_waiting(struct fixture *f, const char *name)
{
	add_claim(f, name, "east", "1Gi");
	annotate(f, name, "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
}

static json_t *pv_made(struct fixture *f, const char *name)
{
	cleanup_json json_t *claim = get_claim(f, name);
	cleanup_free char *volume = pv_name(claim);

	return get(f, &KIND_PV, volume);
}

/* Whether the claim was given back to the scheduler, without a volume. */
static bool chooses_again(struct fixture *f, const char *name)
{
	cleanup_json json_t *claim = get_claim(f, name), *pv = pv_made(f, name);

	return !pv && !object_annotation(claim, ANNOTATION_SELECTED_NODE) &&
	       !object_has_finalizer(claim, QM_FINALIZER_PROVISION);
}

static void volume_stays_where_it_may(void **state)
{
	struct fixture *f = cluster();

	add_machine(f, "n1", "e2", "slow");
	add_waiting(f, "c1");
	settle(f);
	cleanup_json json_t *early = pv_made(f, "c1");
	assert_null(early); /* no node is chosen yet */
	annotate(f, "c1", ANNOTATION_SELECTED_NODE, "n1");
	settle(f);
	cleanup_json json_t *pv = pv_made(f, "c1");
	cleanup_json json_t *wanted = json_pack(
		"{s:{s:[{s:[{s:s, s:s, s:[s, s]}]}, {s:[{s:s, s:s, s:[s]}, {s:s, s:s, s:[s]}]}]}}",
		"required", "nodeSelectorTerms", "matchExpressions", "key", ZONE, "operator", "In",
		"values", "e1", "e2", "matchExpressions", "key", ZONE, "operator", "In", "values",
		"w1", "key", "disk", "operator", "In", "values", "fast");
	assert_true(json_equal(jget(pv, "spec", "nodeAffinity"), wanted));
	fixture_free(f);
}

static void node_does_not_fit(void **state)
{
	struct fixture *f = cluster();

	add_machine(f, "n1", "w1", "slow");
	add_machine(f, "n2", "w1", "fast");
	add_waiting(f, "c1");
	annotate(f, "c1", ANNOTATION_SELECTED_NODE, "n0");
	settle(f);
	assert_true(chooses_again(f, "c1"));
	assert_true(said(f, "ProvisioningFailed", "n0, which the scheduler chose, is gone"));
	annotate(f, "c1", ANNOTATION_SELECTED_NODE, "n1");
	settle(f);
	assert_true(chooses_again(f, "c1"));
	assert_true(said(f, "ProvisioningFailed", "none of those that StorageClass east allows"));
	annotate(f, "c1", ANNOTATION_SELECTED_NODE, "n2");
	settle(f);
	cleanup_json json_t *pv = pv_made(f, "c1");
	assert_non_null(pv);
	fixture_free(f);
}

/* What has begun is brought to its end, whatever becomes of the node: the volume is not on it. */
static void node_goes_meanwhile(void **state)
{
	struct fixture *f = cluster();

	add_machine(f, "n1", "e1", "slow");
	add_waiting(f, "c1");
	annotate(f, "c1", ANNOTATION_SELECTED_NODE, "n1");
	f->worker_rc = -ETIMEDOUT;
	settle(f);
	discard(f, &KIND_NODE, "n1");
	settle(f);
	f->worker_rc = 0;
	settle(f);
	cleanup_json json_t *pv = pv_made(f, "c1"), *claim = get_claim(f, "c1");
	assert_non_null(pv);
	assert_string_equal(object_annotation(claim, ANNOTATION_SELECTED_NODE), "n1");
	fixture_free(f);
}

/* Without a scheduler there is nothing to wait for; where volumes may be is said all the same. */
static void one_machine(void **state)
{
	struct fixture *f = cluster();

	f->op.binder = true;
	add_claim(f, "c1", "east", "1Gi");
	add_claim(f, "c2", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1"), *plain = get_pv_of(f, "c2");
	assert_non_null(jget(pv, "spec", "nodeAffinity"));
	assert_null(jget(plain, "spec", "nodeAffinity"));
	fixture_free(f);
}

/* ---- secrets ----------------------------------------------------------------------------------- */

#define CSI "csi.storage.k8s.io/"

static void assert_ref(const json_t *pv, const char *reference, const char *ns, const char *name)
{
	assert_string_equal(jstr(pv, "spec", "csi", reference, "namespace"), ns);
	assert_string_equal(jstr(pv, "spec", "csi", reference, "name"), name);
}

static void secrets_of_a_class(void **state)
{
	struct fixture *f = fixture_online();

	add_storage_class(
		f, "s",
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}",
			  CSI "provisioner-secret-name", "admin",
			  CSI "provisioner-secret-namespace", "kube-system",
			  CSI "node-stage-secret-name", "${pvc.name}-${pvc.namespace}.key",
			  CSI "node-stage-secret-namespace", "${pvc.namespace}",
			  CSI "node-publish-secret-name", "${pvc.annotations['team/a.b']}",
			  CSI "node-publish-secret-namespace", "x-${pvc.namespace}",
			  CSI "controller-expand-secret-name", "${pv.name}",
			  CSI "controller-expand-secret-namespace", "ns",
			  CSI "node-expand-secret-name", "plain",
			  CSI "node-expand-secret-namespace", "${pv.name}"),
		NULL);
	add_claim(f, "c1", "s", "1Gi");
	settle(f);
	assert_true(waits(f, "c1", "team/a.b")); /* it has no such annotation yet */
	assert_true(said(f, "ProvisioningFailed", "node-publish-secret-name"));
	assert_int_equal(json_object_size(jget(f->volumes, "gold-1")), 0);
	annotate(f, "c1", "team/a.b", "ours");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1");
	assert_ref(pv, "nodeStageSecretRef", "default", "c1-default.key");
	assert_ref(pv, "nodePublishSecretRef", "x-default", "ours");
	assert_ref(pv, "controllerExpandSecretRef", "ns", object_name(pv));
	assert_ref(pv, "nodeExpandSecretRef", object_name(pv), "plain");
	assert_null(jget(pv, "spec", "csi", "controllerPublishSecretRef"));
	static const char deletion[] = "volume.kubernetes.io/provisioner-deletion-secret-";
	cleanup_free char *name = xasprintf("%sname", deletion),
			  *ns = xasprintf("%snamespace", deletion);
	assert_string_equal(object_annotation(pv, name), "admin");
	assert_string_equal(object_annotation(pv, ns), "kube-system");
	assert_string_equal(jstr(pv, "spec", "csi", "volumeAttributes", "export"),
			    "10.0.0.1:/gold-1");
	assert_string_equal(object_annotation(pv, "pv.kubernetes.io/provisioned-by"), QM_DRIVER);
	fixture_free(f);
}

/*
 * Nothing that the claim's author writes chooses a namespace, or becomes something else than a
 * name.
 */
static void secrets_refused(void **state)
{
	static const struct {
		const char *name, *ns, *why;
	} bad[] = {
		{ "a", NULL, "but not " CSI "node-stage-secret-namespace" },
		{ NULL, "a", "but not " CSI "node-stage-secret-name" },
		{ "a", "${pvc.name}", "pvc.name" },
		{ "a", "${pvc.annotations['evil']}", "evil" },
		{ "${pvc.annotations['evil']}", "a", "../x" },
		{ "${pvc.annotations['']}", "a", "has no value" },
		{ "${pvc.annotations['", "a", "has no value" },
		{ "${pvc.uid}", "a", "pvc.uid" },
		{ "Upper", "a", "no name of a secret" },
		{ "a", "a.b", "no name of a namespace" },
		{ "", "a", "no name of a secret" },
	};
	struct fixture *f = fixture_online();

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_free char *name = xasprintf("c%zu", i);

		add_storage_class(f, name,
				  json_pack("{s:s*, s:s*}", CSI "node-stage-secret-name",
					    bad[i].name, CSI "node-stage-secret-namespace",
					    bad[i].ns),
				  NULL);
		add_claim(f, name, name, "1Mi");
		annotate(f, name, "evil", "../x");
	}
	add_storage_class(f, "odd", json_pack("{s:s}", CSI "node-secret-name", "a"), NULL);
	add_claim(f, "odd", "odd", "1Mi");
	settle(f);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		cleanup_free char *name = xasprintf("c%zu", i);

		assert_true(waits(f, name, bad[i].why));
	}
	assert_true(waits(f, "odd", "which nobody knows"));
	assert_int_equal(count(f, &KIND_PV), 0);
	fixture_free(f);
}

/* Kubernetes binds in two steps: first it names the volume in the claim's spec, then it says Bound in its status. */
static void bind_first(struct fixture *f, const char *name)
{
	cleanup_json json_t *claim = get_claim(f, name);
	cleanup_free char *volume = pv_name(claim);

	patch(f, &KIND_PVC, name, json_pack("{s:{s:s}}", "spec", "volumeName", volume));
	settle(f);
}

static bool is_held(struct fixture *f, const char *name)
{
	cleanup_json json_t *claim = get_claim(f, name);

	return object_has_finalizer(claim, QM_FINALIZER_PROVISION);
}

static void claim_is_left_alone_until_bound(void **state)
{
	struct fixture *f = fixture_online();

	f->op.binder = false;
	add_storage_class(f, "plain", json_object(), NULL);
	add_claim(f, "c1", "plain", "1Gi");
	annotate(f, "c1", "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
	settle(f);
	assert_true(is_held(f, "c1"));
	assert_int_equal(json_object_size(f->halves), 1);
	assert_false(said(f, "ProvisioningSucceeded", ""));

	bind_first(f, "c1");
	assert_true(is_held(
		f, "c1")); /* or the second step would find another claim than the first left */
	assert_false(said(f, "ProvisioningSucceeded", ""));

	cleanup_json json_t *bound = json_pack("{s:{s:s}}", "status", "phase", "Bound");
	assert_int_equal(kube_patch(f->api, &KIND_PVC, "default", "c1", "status", KUBE_PATCH_MERGE,
				    bound, NULL, NULL),
			 0);
	settle(f);
	assert_false(is_held(f, "c1"));
	assert_int_equal(json_object_size(f->halves), 0);
	assert_true(said(f, "ProvisioningSucceeded", "is made in pool"));
	fixture_free(f);
}

/* One that is deleted between the two steps is not held: its volume is there, and is reclaimed as any other. */
static void deleted_before_it_is_bound(void **state)
{
	struct fixture *f = fixture_online();

	f->op.binder = false;
	add_storage_class(f, "plain", json_object(), NULL);
	add_claim(f, "c1", "plain", "1Gi");
	annotate(f, "c1", "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
	settle(f);
	bind_first(f, "c1");
	assert_int_equal(kube_delete(f->api, &KIND_PVC, "default", "c1", NULL, NULL), 0);
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(json_object_size(f->halves), 0);
	fixture_free(f);
}

/* Kubernetes' second step. */
static void bind_second(struct fixture *f, const char *name)
{
	cleanup_json json_t *bound = json_pack("{s:{s:s}}", "status", "phase", "Bound");

	assert_int_equal(kube_patch(f->api, &KIND_PVC, "default", name, "status", KUBE_PATCH_MERGE,
				    bound, NULL, NULL),
			 0);
}

/* Who has just come may not have heard of a new pool: then it is asked for, and not taken for gone. */
static void pool_is_not_seen_yet(void **state)
{
	struct fixture *f = fixture_online();

	f->op.binder = false;
	add_storage_class(f, "plain", json_object(), NULL);
	add_claim(f, "c1", "plain", "1Gi");
	annotate(f, "c1", "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
	settle(f);
	assert_int_equal(json_object_size(f->halves), 1);
	fixture_restart(f);
	f->unseen = "gold-1";
	bind_first(f, "c1");
	bind_second(f, "c1");
	settle(f);
	assert_false(is_held(f, "c1"));
	assert_int_equal(json_object_size(f->halves), 0);
	fixture_free(f);
}

/* An operator that knows nothing of halves has bound it and let go of it; then its claim goes, and it is to be kept. */
static void keep_a_half(const char *policy, const char *reclaim)
{
	struct fixture *f = fixture_online();
	cleanup_json json_t *pv = NULL;

	add_storage_class(f, "plain", json_object(),
			  json_pack("{s:s}", "reclaimPolicy", policy));
	if (reclaim)
		patch(f, &KIND_STORAGECLASS, "plain",
		      json_pack("{s:{s:{s:s}}}", "metadata", "annotations", QM_ANNOTATION_RECLAIM,
				reclaim));
	add_claim(f, "c1", "plain", "1Gi");
	settle(f);
	pv = get_pv_of(f, "c1");
	json_object_set_new(f->halves, object_name(pv), json_true());
	discard(f, &KIND_PVC, "c1");
	settle(f);
	if (!reclaim)
		discard(f, &KIND_PV, object_name(pv));
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(json_object_size(jget(f->volumes, "gold-1")), 1);
	assert_int_equal(json_object_size(f->halves), 0);
	fixture_free(f);
}

static void kept_by_half(void **state)
{
	keep_a_half("Retain", NULL);
	keep_a_half("Delete", "archive");
}

/* A cache that is behind lets us promise room to a claim that is gone; its successor of the same name ends that. */
static void promise_to_a_claim_that_is_gone(void **state)
{
	const struct ledger_offer offer = { "p", 10 * GIB };
	struct ledger *l = ledger_new();

	for (int i = 1; i <= 3; i++) {
		cleanup_free char *pool = NULL, *volume = xasprintf("pvc-%d", i);
		int64_t biggest;

		assert_int_equal(ledger_reserve(l, volume, "default/c1", i * GIB, &offer, 1, &pool,
						&biggest),
				 0);
		if (i == 2)
			ledger_made(l, volume); /* is there, and stays */
	}
	assert_int_equal(ledger_promised(l, "p"), 5 * GIB);
	assert_false(ledger_knows(l, "pvc-1"));
	ledger_free(l);
}

/* What Kubernetes does next for the claim; false: nothing more. */
static bool bind_next(struct fixture *f, const char *name)
{
	cleanup_json json_t *claim = get_claim(f, name), *pv = pv_made(f, name),
			    *bound = json_pack("{s:{s:s}}", "status", "phase", "Bound");

	if (!claim || !pv || streq(jstr(claim, "status", "phase"), "Bound"))
		return false;
	if (!jstr(claim, "spec", "volumeName"))
		patch(f, &KIND_PVC, name,
		      json_pack("{s:{s:s}}", "spec", "volumeName", object_name(pv)));
	else
		assert_int_equal(kube_patch(f->api, &KIND_PVC, "default", name, "status",
					    KUBE_PATCH_MERGE, bound, NULL, NULL),
				 0);
	return true;
}

/* Whoever died is started again, and goes on. */
static void settle_all(struct fixture *f)
{
	settle(f);
	if (!f->failed)
		return;
	f->fail_at = 0;
	fixture_restart(f);
	settle(f);
}

/* The operator dies before or after each of its writes, in a pool or to the API: in the end nothing is left by half. */
static void any_write_may_fail(void **state)
{
	for (int way = 0; way < 4; way++) {
		bool failed = true;

		for (int n = 1; failed; n++) {
			struct fixture *f = fixture_online();

			f->op.binder = false;
			add_storage_class(f, "plain", json_object(), NULL);
			settle(f);
			f->fail_at = f->writes + n;
			f->fail_after = way & 1;
			f->dies = true;
			f->failed = false;
			add_claim(f, "c1", "plain", "1Gi");
			annotate(f, "c1", "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
			settle_all(f);
			/* deleted when its volume is there, or when it is bound */
			if (way & 2)
				assert_int_equal(
					kube_delete(f->api, &KIND_PVC, "default", "c1", NULL, NULL),
					0);
			settle_all(f);
			while (bind_next(f, "c1"))
				settle_all(f);
			failed = f->failed;
			assert_int_equal(json_object_size(f->halves), 0);
			assert_int_equal(count(f, &KIND_PV), 1);
			assert_int_equal(count(f, &KIND_PVC), way & 2 ? 0 : 1);
			assert_true(way & 2 || !is_held(f, "c1"));
			fixture_free(f);
			assert_true(failed || n > 4);
		}
	}
}

static bool is_protected(struct fixture *f, const char *claim)
{
	cleanup_json json_t *c = get_claim(f, claim);

	return object_has_finalizer(c, CLAIM_PROTECTION);
}

/* A claim that is in use stays as it is, with its volume, until it is not; over a restart, too. */
static void deleted_in_use(void **state)
{
	struct fixture *f = fixture_online();
	size_t events;

	add_claim(f, "a", "gold", "1Gi");
	settle(f);
	assert_true(is_protected(f, "a"));
	f->users = "it is mounted on /mnt";
	discard(f, &KIND_PVC, "a");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "a"), *pv = get_pv_of(f, "a");
	assert_true(object_deleting(claim));
	assert_non_null(strstr(claim_said(claim, "Held"), "mounted on /mnt"));
	assert_true(said(f, "ClaimInUse", "mounted on /mnt"));
	assert_true(phase_is(f, &KIND_PV, object_name(pv), "Bound"));
	assert_true(has_volume(f, "gold-1", object_name(pv)));
	events = f->events.count;
	fixture_restart(f);
	settle(f);
	assert_int_equal(f->events.count, events); /* said once */
	assert_true(has_volume(f, "gold-1", object_name(pv)));
	/* who cannot tell does not say that nobody does */
	f->users = NULL;
	f->users_rc = -EBADMSG;
	settle(f);
	json_decref(claim);
	claim = get_claim(f, "a");
	assert_string_equal(claim_said(claim, "Held"), "a record is damaged");
	assert_true(has_volume(f, "gold-1", object_name(pv)));
	f->users_rc = 0;
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_false(has_volume(f, "gold-1", object_name(pv)));
	fixture_free(f);
}

/* A claim of a version before is held from the first look on; one that was never bound, and of a cluster, never. */
static void held_from_now_on(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "a", "gold", "1Gi");
	add_claim(f, "huge", "gold", "1000Gi");
	settle(f);
	patch(f, &KIND_PVC, "a", json_pack("{s:{s:n}}", "metadata", "finalizers"));
	fixture_restart(f);
	settle(f);
	assert_true(is_protected(f, "a"));
	assert_false(is_protected(f, "huge"));
	f->users = "somebody has it";
	discard(f, &KIND_PVC, "huge");
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 1);
	f->op.binder = false;
	patch(f, &KIND_PVC, "a", json_pack("{s:{s:n}}", "metadata", "finalizers"));
	settle(f);
	assert_false(is_protected(f, "a"));
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deleted_in_use),
		cmocka_unit_test(held_from_now_on),
		cmocka_unit_test(claim_is_left_alone_until_bound),
		cmocka_unit_test(deleted_before_it_is_bound),
		cmocka_unit_test(pool_is_not_seen_yet),
		cmocka_unit_test(kept_by_half),
		cmocka_unit_test(promise_to_a_claim_that_is_gone),
		cmocka_unit_test(any_write_may_fail),
		cmocka_unit_test(volume_stays_where_it_may),
		cmocka_unit_test(node_does_not_fit),
		cmocka_unit_test(node_goes_meanwhile),
		cmocka_unit_test(one_machine),
		cmocka_unit_test(secrets_of_a_class),
		cmocka_unit_test(secrets_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
