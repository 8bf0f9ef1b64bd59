/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"
#include "operator/system.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/* ---- the system ---------------------------------------------------------------------------------- */

static void waits_then_goes_online(void **state)
{
	struct fixture *f = fixture_new();
	settle(f);
	cleanup_json json_t *before = get(f, &KIND_STORAGESTATUS, "gold");
	assert_string_equal(jstr(before, "spec", "status"), "OFFLINE");
	assert_false(condition_is_true(jget(before, "status", "conditions"), "Online"));
	assert_int_equal(count(f, &KIND_STORAGECLASS), 0);

	add_nodes(f, 2, 1);
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 0);
	add_node(f, "n3", 3, 1);
	settle(f);
	cleanup_json json_t *after = get(f, &KIND_STORAGESTATUS, "gold"),
			    *class = get(f, &KIND_STORAGECLASS, "gold");
	assert_string_equal(jstr(after, "spec", "status"), "ONLINE");
	assert_true(condition_is_true(jget(after, "status", "conditions"), "Online"));
	assert_false(condition_is_true(jget(after, "status", "conditions"), "Degraded"));
	assert_int_equal(jint(after, "status", "nodesReady"), 3);
	assert_int_equal(jint(after, "status", "capacityBytes"), 10 * GIB);
	assert_string_equal(jstr(class, "provisioner"), "csi.quartermaster.storage");
	assert_string_equal(jstr(class, "parameters", "deployment"), "gold");
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-1");
	assert_true(jbool(json_array_get(jget(pool, "spec", "bricks"), 0), "prepared"));
	fixture_free(f);
}

static void goes_offline_again(void **state)
{
	struct fixture *f = fixture_online();
	patch(f, &KIND_STORAGECLASS, "gold",
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
			"storageclass.kubernetes.io/is-default-class", "true"));
	f->agents_silent = true;
	cleanup_json json_t *down =
		json_pack("{s:{s:s, s:s}}", "status", "phase", "Offline", "message", "no quorum");
	kube_patch(f->api, &KIND_STORAGEPOOL, "default", "gold-1", "status", KUBE_PATCH_MERGE, down,
		   NULL, NULL);
	settle(f);
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_string_equal(jstr(status, "spec", "status"), "OFFLINE");
	assert_non_null(strstr(
		jstr(condition_get(jget(status, "status", "conditions"), "Degraded"), "message"),
		"no quorum"));

	f->agents_silent = false;
	settle(f);
	cleanup_json json_t *again = get(f, &KIND_STORAGESTATUS, "gold"),
			    *class = get(f, &KIND_STORAGECLASS, "gold");
	assert_string_equal(jstr(again, "spec", "status"), "ONLINE");
	/* what a person set stays */
	assert_string_equal(object_annotation(class, "storageclass.kubernetes.io/is-default-class"),
			    "true");
	fixture_free(f);
}

static void silent_node_is_offline(void **state)
{
	struct fixture *f = fixture_online();
	f->agents_silent = true;
	f->now_ms += NODE_OFFLINE_MS + 1000;
	settle(f);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n1", "Offline"));
	/* the pool's last word was that it serves, but nobody is left to say so */
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_string_equal(jstr(status, "spec", "status"), "OFFLINE");
	fixture_restart(f); /* it stays so until it is heard of, whoever looks */
	settle(f);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n1", "Offline"));
	f->agents_silent = false;
	f->now_ms += 1000;
	settle(f);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n1", "Ready"));
	fixture_free(f);
}

static void conditions_say_why(void **state)
{
	struct fixture *f = fixture_online();
	patch(f, &KIND_STORAGENODE, "n1",
	      json_pack("{s:{s:{s:[s]}}}", "spec", "storageNetwork", "ips", "10.9.9.9"));
	settle(f);
	cleanup_json json_t *n1 = get(f, &KIND_STORAGENODE, "n1");
	const json_t *c = condition_get(jget(n1, "status", "conditions"), "AddressAccepted");
	assert_string_equal(jstr(c, "status"), "False");
	assert_non_null(strstr(jstr(c, "message"), "10.0.0.1"));
	assert_string_equal(jstr(n1, "status", "address"), "10.0.0.1");
	fixture_free(f);
}

static void several_deployments(void **state)
{
	struct fixture *f = fixture_new();
	struct error err = ERROR_INIT;
	cleanup_json json_t *other =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s}}", "apiVersion", "coreos.com/v1",
			  "kind", "StorageStatus", "metadata", "name", "silver", "namespace",
			  "default", "spec", "type", "glusterfs", "status", "OFFLINE");
	assert_int_equal(kube_create(f->api, &KIND_STORAGESTATUS, other, NULL, &err), 0);
	add_nodes(f, 3, 1);
	settle(f);
	cleanup_json json_t *n1 = get(f, &KIND_STORAGENODE, "n1");
	assert_true(condition_is_true(jget(n1, "status", "conditions"), "Ambiguous"));
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 0);
	for (int i = 1; i <= 3; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		patch(f, &KIND_STORAGENODE, name,
		      json_pack("{s:{s:{s:s}}}", "metadata", "labels", QM_LABEL_DEPLOYMENT,
				"gold"));
	}
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	fixture_free(f);
}

static void nothing_without_the_lease(void **state)
{
	struct fixture *f = fixture_new();
	f->leads = false;
	add_nodes(f, 3, 1);
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	assert_int_equal(f->writes, 0);
	fixture_free(f);
}

/* ---- claims --------------------------------------------------------------------------------------- */

static void claim_becomes_volume(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1"), *pv = get_pv_of(f, "c1");
	cleanup_free char *name = xasprintf("pvc-%s", object_uid(claim));
	cleanup_free char *handle = xasprintf("v1.gold-1.d.%s", name),
			  *path = volume_path("subvol", name);

	assert_string_equal(jstr(claim, "status", "phase"), "Bound");
	assert_string_equal(jstr(claim, "status", "capacity", "storage"), "1Gi");
	assert_false(object_has_finalizer(claim, QM_FINALIZER_PROVISION));
	assert_string_equal(object_annotation(claim, "pv.kubernetes.io/bind-completed"), "yes");
	assert_string_equal(object_name(pv), name);
	assert_string_equal(jstr(pv, "status", "phase"), "Bound");
	assert_string_equal(jstr(pv, "spec", "claimRef", "uid"), object_uid(claim));
	assert_string_equal(jstr(pv, "spec", "csi", "volumeHandle"), handle);
	assert_string_equal(jstr(pv, "spec", "csi", "volumeAttributes", "name"), path);
	assert_string_equal(jstr(pv, "spec", "csi", "volumeAttributes", "export"),
			    "10.0.0.1:/gold-1");
	assert_string_equal(jstr(pv, "spec", "csi", "volumeAttributes", "options"),
			    "backup-volfile-servers=10.0.0.2:10.0.0.3");
	assert_true(has_volume(f, "gold-1", name));
	assert_int_equal(ledger_promised(f->op.ledger, "gold-1"), GIB);
	fixture_free(f);
}

static void too_big_waits_with_a_reason(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "big", "gold", "11Gi");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "big");
	assert_string_equal(jstr(claim, "status", "phase"), "Pending");
	assert_non_null(strstr(object_annotation(claim, QM_ANNOTATION_WAITING), "10"));
	assert_int_equal(count(f, &KIND_PV), 0);
	f->pool_bytes = 20 * GIB;
	settle(f);
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "big", "Bound"));
	cleanup_json json_t *bound = get_claim(f, "big");
	assert_null(object_annotation(bound, QM_ANNOTATION_WAITING));
	fixture_free(f);
}

static void promises_are_kept(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "a", "gold", "6Gi");
	add_claim(f, "b", "gold", "6Gi");
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "a", "Bound") != phase_is(f, &KIND_PVC, "b", "Bound"));
	discard(f, &KIND_PVC, "a");
	settle(f);
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "b", "Bound"));
	assert_int_equal(count(f, &KIND_PV), 1);
	fixture_free(f);
}

/* Anybody may write what a claim in work has: it is no way to more than there is. */
static void a_choice_needs_room(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "a", "gold", "1Gi");
	settle(f);
	add_claim(f, "big", "gold", "11Gi");
	patch(f, &KIND_PVC, "big",
	      json_pack("{s:{s:{s:s}, s:[s]}}", "metadata", "annotations", QM_ANNOTATION_POOL,
			"gold-1", "finalizers", QM_FINALIZER_PROVISION));
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "big");
	assert_string_equal(jstr(claim, "status", "phase"), "Pending");
	assert_non_null(strstr(object_annotation(claim, QM_ANNOTATION_WAITING), "9"));
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
	f->pool_bytes = 20 * GIB;
	settle(f);
	settle(f);
	cleanup_json json_t *bound = get_claim(f, "big");
	assert_string_equal(jstr(bound, "status", "phase"), "Bound");
	assert_null(object_annotation(bound, QM_ANNOTATION_WAITING));
	fixture_free(f);
}

static void refused_claims(void **state)
{
	struct fixture *f = fixture_online();
	struct error err = ERROR_INIT;
	cleanup_json json_t *claim = json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:s, s:[s], s:{s:{s:s}}}}", "apiVersion", "v1",
		"kind", "PersistentVolumeClaim", "metadata", "name", "block", "namespace",
		"default", "spec", "storageClassName", "gold", "volumeMode", "Block", "accessModes",
		"ReadWriteMany", "resources", "requests", "storage", "1Gi");
	assert_int_equal(kube_create(f->api, &KIND_PVC, claim, NULL, &err), 0);
	settle(f);
	cleanup_json json_t *now = get_claim(f, "block");
	assert_string_equal(jstr(now, "status", "phase"), "Pending");
	assert_non_null(strstr(object_annotation(now, QM_ANNOTATION_WAITING), "block device"));
	fixture_free(f);
}

static void deleted_while_in_the_making(void **state)
{
	struct fixture *f = fixture_online();
	f->worker_rc = -ETIMEDOUT;
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_true(object_has_finalizer(claim, QM_FINALIZER_PROVISION));
	assert_string_equal(object_annotation(claim, QM_ANNOTATION_POOL), "gold-1");
	/* it was made after all, though nobody heard of it */
	cleanup_free char *name = xasprintf("pvc-%s", object_uid(claim));
	jset(f->volumes, json_integer(1), "gold-1", name);
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 1);
	f->worker_rc = 0;
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	assert_false(has_volume(f, "gold-1", name));
	assert_int_equal(count(f, &KIND_PV), 0);
	fixture_free(f);
}

/* ---- reclaim ------------------------------------------------------------------------------------- */

static void reclaim(const char *policy, bool pv_stays, const char *prefix)
{
	struct fixture *f = fixture_new();
	f->op.reclaim = policy;
	add_nodes(f, 3, 1);
	settle(f);
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	cleanup_free char *name = prefix ? xasprintf("%s-%s", prefix, object_uid(claim)) : NULL;
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	assert_int_equal(count(f, &KIND_PV), pv_stays);
	assert_int_equal(json_object_size(jget(f->volumes, "gold-1")), name ? 1 : 0);
	if (name)
		assert_true(has_volume(f, "gold-1", name));
	fixture_free(f);
}

static void reclaim_policies(void **state)
{
	reclaim("Delete", false, NULL);
	reclaim("Retain", true, "pvc");
	reclaim("archive", false, "archived-pvc");
}

/* A person takes the claimRef away before the phase has followed, to have the data bound again. */
static void rescued_volume_stays(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1");
	const char *name = object_name(pv);
	patch(f, &KIND_PV, name,
	      json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Retain"));
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_true(phase_is(f, &KIND_PV, name, "Released"));
	patch(f, &KIND_PV, name,
	      json_pack("{s:{s:s, s:n}}", "spec", "persistentVolumeReclaimPolicy", "Delete",
			"claimRef"));
	VOLUME_CONTROLLER.reconcile(&f->r, name);
	settle(f);
	assert_true(has_volume(f, "gold-1", name));
	assert_true(phase_is(f, &KIND_PV, name, "Available"));
	fixture_free(f);
}

static void bound_volume_is_held(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1");
	discard(f, &KIND_PV, object_name(pv));
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_true(has_volume(f, "gold-1", object_name(pv)));
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_false(has_volume(f, "gold-1", object_name(pv)));
	fixture_free(f);
}

/* ---- binding ------------------------------------------------------------------------------------- */

static void add_static_pv(struct fixture *f, const char *name, const char *size, const char *claim)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *pv = json_pack(
		"{s:s, s:s, s:{s:s}, s:{s:{s:s}, s:[s], s:s, s:s, s:{s:s}}}", "apiVersion", "v1",
		"kind", "PersistentVolume", "metadata", "name", name, "spec", "capacity", "storage",
		size, "accessModes", "ReadWriteMany", "storageClassName", "manual",
		"persistentVolumeReclaimPolicy", "Retain", "hostPath", "path", "/srv");
	if (claim)
		jset(pv, json_pack("{s:s, s:s}", "namespace", "default", "name", claim), "spec",
		     "claimRef");
	if (kube_create(f->api, &KIND_PV, pv, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

static void made_by_a_person(void **state)
{
	struct fixture *f = fixture_online();
	add_static_pv(f, "big", "50Gi", NULL);
	add_static_pv(f, "small", "5Gi", NULL);
	add_static_pv(f, "mine", "9Gi", "c2");
	settle(f);
	assert_true(phase_is(f, &KIND_PV, "small", "Available"));
	add_claim(f, "c1", "manual", "4Gi");
	add_claim(f, "c2", "manual", "4Gi");
	settle(f);
	cleanup_json json_t *c1 = get_claim(f, "c1"), *c2 = get_claim(f, "c2");
	assert_string_equal(jstr(c1, "spec", "volumeName"), "small");
	assert_string_equal(jstr(c2, "spec", "volumeName"), "mine");
	assert_true(phase_is(f, &KIND_PVC, "c2", "Bound"));
	assert_true(phase_is(f, &KIND_PV, "big", "Available"));
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_true(phase_is(f, &KIND_PV, "small", "Released"));
	fixture_free(f);
}

/* ---- nodes that go -------------------------------------------------------------------------------- */

static void node_is_held_while_needed(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	discard(f, &KIND_STORAGENODE, "n3");
	settle(f);
	cleanup_json json_t *n3 = get(f, &KIND_STORAGENODE, "n3");
	const json_t *c = condition_get(jget(n3, "status", "conditions"), "Emptied");
	assert_string_equal(jstr(c, "status"), "False");
	assert_non_null(strstr(jstr(c, "message"), "gold-1"));
	assert_non_null(strstr(jstr(c, "message"), "default/c1"));

	/* its machine starts again meanwhile: its copies are still needed */
	json_object_clear(f->agents);
	fixture_restart(f);
	settle(f);
	assert_non_null(jget(f->agents, "n3"));

	/* another node takes its place */
	add_node(f, "n4", 4, 1);
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGENODE), 3);
	assert_null(jget(f->agents, "n3"));
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-1");
	assert_int_equal(json_array_size(jget(pool, "spec", "bricks")), 3);
	assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
	fixture_free(f);
}

static void check_emptied(struct fixture *f, const char *status, const char *reason)
{
	cleanup_json json_t *n1 = get(f, &KIND_STORAGENODE, "n1");
	const json_t *c = condition_get(jget(n1, "status", "conditions"), "Emptied");
	assert_string_equal(jstr(c, "status"), status);
	assert_string_equal(jstr(c, "reason"), reason);
	if (streq(reason, "Held")) {
		assert_non_null(strstr(jstr(c, "message"), "default/c1"));
		assert_non_null(strstr(jstr(c, "message"), "to node n1 or a node without"));
	}
}

static void removed_device_says_what_holds_it(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *before = get(f, &KIND_STORAGENODE, "n1");
	assert_null(condition_get(jget(before, "status", "conditions"), "Emptied"));
	patch(f, &KIND_STORAGENODE, "n1", json_pack("{s:{s:[]}}", "spec", "devices"));
	settle(f);
	check_emptied(f, "False", "Held");
	patch(f, &KIND_STORAGENODE, "n1", json_pack("{s:{s:[s]}}", "spec", "devices", "/dev/vdc"));
	settle(f);
	check_emptied(f, "True", "Empty");
	assert_true(phase_is(f, &KIND_STORAGENODE, "n1", "Ready"));
	fixture_free(f);
}

static void last_nodes_can_go(void **state)
{
	struct fixture *f = fixture_online();
	for (int i = 1; i <= 3; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		discard(f, &KIND_STORAGENODE, name);
	}
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGENODE), 0);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 0);
	assert_int_equal(json_object_size(f->agents), 0);
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_string_equal(jstr(status, "spec", "status"), "OFFLINE");
	fixture_free(f);
}

static void leaving_node_says_what_its_pool_waits_for(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_json json_t *stuck =
		json_pack("{s:{s:s}}", "status", "message", "gluster: a peer is down");

	f->agents_silent = true; /* the pool is to be deleted, and nobody does it */
	for (int i = 1; i <= 3; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		discard(f, &KIND_STORAGENODE, name);
	}
	look(f);
	kube_patch(f->api, &KIND_STORAGEPOOL, "default", "gold-1", "status", KUBE_PATCH_MERGE,
		   stuck, NULL, NULL);
	look(f);
	look(f);
	cleanup_json json_t *n1 = get(f, &KIND_STORAGENODE, "n1");
	const json_t *c = condition_get(jget(n1, "status", "conditions"), "Emptied");
	assert_string_equal(jstr(c, "message"),
			    "it waits for the end of pool gold-1: gluster: a peer is down");
	fixture_free(f);
}

static void kept_data_holds_its_pool(void **state)
{
	struct fixture *f = fixture_online();
	jset(f->volumes, json_integer(1), "gold-1", "archived-pvc-1");
	discard(f, &KIND_STORAGENODE, "n1");
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_non_null(strstr(jstr(status, "status", "message"), "archived-pvc-1"));
	patch(f, &KIND_STORAGEPOOL, "gold-1",
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations", QM_ANNOTATION_DISCARD, "true"));
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 0);
	fixture_free(f);
}

static void pool_deleted_by_a_person(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	discard(f, &KIND_STORAGEPOOL, "gold-1");
	settle(f);
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-1");
	assert_null(object_annotation(pool, QM_ANNOTATION_EMPTY)); /* so no agent destroys it */
	discard(f, &KIND_PVC, "c1");
	settle(f);
	settle(f); /* the end of a volume is told to the system's loop later */
	/* empty: it goes, and its devices make the next one */
	cleanup_json json_t *next = get(f, &KIND_STORAGEPOOL, "gold-2");
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	assert_non_null(next);
	fixture_free(f);
}

static void end_pools(struct fixture *f)
{
	cleanup_json json_t *pools = NULL;
	size_t i;
	json_t *p;

	kube_list(f->api, &KIND_STORAGEPOOL, "default", NULL, &pools, NULL, NULL);
	json_array_foreach (pools, i, p)
		discard(f, &KIND_STORAGEPOOL, object_name(p));
	settle(f);
	settle(f);
}

/* Also not by an operator that starts anew; and what else is written to the status keeps it. */
static void number_of_a_pool_never_comes_again(void **state)
{
	struct fixture *f = fixture_online();
	for (int i = 2; i < 5; i++) {
		cleanup_free char *name = xasprintf("gold-%d", i);
		if (i == 3)
			fixture_restart(f);
		end_pools(f);
		cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, name),
				    *status = get(f, &KIND_STORAGESTATUS, "gold");
		assert_non_null(pool);
		assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
		assert_int_equal(jint(status, "status", "lastPoolNumber"), i);
	}
	fixture_free(f);
}

static int pools_seen;

static void number_is_kept_before(struct fixture *f, const struct kind *kind, const json_t *object)
{
	if (kind != &KIND_STORAGEPOOL)
		return;
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_true(jint(status, "status", "lastPoolNumber") >=
		    strtol(strrchr(object_name(object), '-') + 1, NULL, 10));
	pools_seen++;
}

/* It is written down before the pool is there: after a crash in between comes the next one. */
static void number_is_written_down_first(void **state)
{
	struct fixture *f = fixture_new();
	f->on_create = number_is_kept_before;
	pools_seen = 0;
	add_nodes(f, 3, 2);
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 2);
	assert_int_equal(pools_seen, 2);
	fixture_free(f);
}

/* Of pools that the API refuses the numbers are theirs again, or each attempt would cost some. */
static void number_of_a_refused_pool(void **state)
{
	struct memory *m = memory_new();
	memory_note_number(m, 2, true);
	memory_note_number(m, 3, true);
	assert_int_equal(memory_last_number(m, 3), 1);
	assert_int_equal(memory_last_number(m, 4), 4); /* another has written since */
	memory_note_number(m, 2, true);
	assert_int_equal(memory_last_number(m, 3), 1);
	memory_note_number(m, 2, false);
	memory_note_number(m, 3, true);
	assert_int_equal(memory_last_number(m, 3), 2);
	memory_note_number(m, 3, false);
	assert_int_equal(memory_last_number(m, 3), 3);
	assert_int_equal(memory_last_number(m, 0), 0);
	memory_free(m);
}

/* A store of before has no number in its status; nor has one whose status was taken away. */
static void number_of_an_older_store(void **state)
{
	struct fixture *f = fixture_new();
	add_nodes(f, 3, 2);
	settle(f);
	cleanup_json json_t *status = NULL;
	kube_patch(f->api, &KIND_STORAGESTATUS, "default", "gold", "status", KUBE_PATCH_MERGE,
		   status = json_pack("{s:{s:n}}", "status", "lastPoolNumber"), NULL, NULL);
	fixture_restart(f);
	settle(f);
	json_decref(status);
	status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_int_equal(jint(status, "status", "lastPoolNumber"), 2);
	fixture_free(f);
}

/* Nodes are told the uid of the very pool, also of one that was only just made. */
static void orders_name_the_pool(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-1"), *next = NULL;
	cleanup_json json_t *n1 = get(f, &KIND_STORAGENODE, "n1");
	const json_t *b = json_array_get(jget(n1, "status", "plan", "bricks"), 0);
	assert_string_equal(jstr(b, "poolUid"), object_uid(pool));
	fixture_free(f);

	f = fixture_new();
	add_nodes(f, 3, 1);
	for (int i = 0; i < 10 && !next; i++) {
		look(f);
		next = get(f, &KIND_STORAGEPOOL, "gold-1");
		if (!next)
			agents_act(f);
	}
	/* the very look that made it */
	cleanup_json json_t *told = get(f, &KIND_STORAGENODE, "n1");
	b = json_array_get(jget(told, "status", "plan", "bricks"), 0);
	assert_string_equal(jstr(b, "pool"), "gold-1");
	assert_string_equal(jstr(b, "poolUid"), object_uid(next));
	fixture_free(f);
}

/* ---- a failure at every write --------------------------------------------------------------------- */

/* From nothing to a bound claim, another undone, a third deleted, a node replaced. */
static void life(struct fixture *f)
{
	add_nodes(f, 3, 1);
	settle(f);
	add_claim(f, "stays", "gold", "1Gi");
	add_claim(f, "goes", "gold", "1Gi");
	settle(f);
	discard(f, &KIND_PVC, "goes");
	add_node(f, "n4", 4, 1);
	discard(f, &KIND_STORAGENODE, "n2");
	settle(f);
}

static void check_life(struct fixture *f)
{
	cleanup_json json_t *claim = get_claim(f, "stays"), *pools = NULL;
	kube_list(f->api, &KIND_STORAGEPOOL, "default", NULL, &pools, NULL, NULL);
	/* a number is lost with the write that was to use it */
	const json_t *pool = json_array_get(pools, 0);
	cleanup_free char *name = xasprintf("pvc-%s", object_uid(claim));
	assert_string_equal(jstr(claim, "status", "phase"), "Bound");
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(count(f, &KIND_PVC), 1);
	assert_int_equal(count(f, &KIND_STORAGENODE), 3);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	assert_int_equal(count(f, &KIND_STORAGECLASS), 1);
	assert_int_equal(json_object_size(jget(f->volumes, object_name(pool))), 1);
	assert_true(has_volume(f, object_name(pool), name));
	assert_int_equal(json_array_size(jget(pool, "spec", "bricks")), 3);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
}

static void any_write_may_fail(void **state)
{
	for (int after = 0; after < 2; after++) {
		for (int n = 1 + after;; n += write_step()) {
			struct fixture *f = fixture_new();
			f->fail_at = n;
			f->fail_after = after;
			life(f);
			bool failed = f->failed;
			settle(f);
			check_life(f);
			fixture_free(f);
			if (!failed) {
				assert_true(n > 30);
				break;
			}
		}
	}
}

/* ---- the ledger, while it is loaded ------------------------------------------------------------- */

static void volumes_go(struct fixture *f, const struct kind *kind)
{
	cleanup_json json_t *pv = kind == &KIND_PV ? get_pv_of(f, "c1") : NULL;

	if (!pv)
		return;
	ledger_drop(f->op.ledger, "pvc-of-another-driver");
	ledger_drop(f->op.ledger, object_name(pv));
}

static void claim_goes(struct fixture *f, const struct kind *kind)
{
	if (kind == &KIND_PVC)
		ledger_drop_claim(f->op.ledger, "default/c3");
}

/* What goes while it is read is not in what was read, and does not make it begin anew. */
static void ledger_loads_while_volumes_go(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	add_claim(f, "c2", "gold", "2Gi");
	settle(f);
	f->make_rc = -EIO;
	add_claim(f, "c3", "gold", "4Gi"); /* which is only begun */
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 7 * GIB);

	fixture_restart(f);
	f->on_list = volumes_go;
	assert_int_equal(ledger_load(f->op.ledger, &f->r, f->epoch), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 6 * GIB);
	f->epoch++; /* the same with a ledger that was loaded before */
	ledger_set(f->op.ledger, "pvc-x", "gold-1", GIB, NULL); /* and of which nobody has heard since */
	assert_int_equal(ledger_load(f->op.ledger, &f->r, f->epoch), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 6 * GIB);

	fixture_restart(f);
	f->on_list = claim_goes;
	assert_int_equal(ledger_load(f->op.ledger, &f->r, f->epoch), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 3 * GIB);
	f->on_list = NULL;
	fixture_free(f);
}

static void volume_grows(struct fixture *f, const struct kind *kind)
{
	cleanup_json json_t *pv = kind == &KIND_PV ? get_pv_of(f, "c1") : NULL;

	if (pv)
		ledger_set(f->op.ledger, object_name(pv), "gold-1", 5 * GIB, "default/c1");
}

/* What is heard of a volume while it is read is newer than what was read. */
static void ledger_loads_while_a_volume_changes(void **state)
{
	struct fixture *f = fixture_online();
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	f->epoch++;
	f->on_list = volume_grows;
	assert_int_equal(ledger_load(f->op.ledger, &f->r, f->epoch), 0);
	assert_int_equal(ledger_promised(f->op.ledger, "gold-1"), 5 * GIB);
	assert_int_equal(ledger_count(f->op.ledger, "gold-1"), 1);
	f->on_list = NULL;
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_then_goes_online),
		cmocka_unit_test(goes_offline_again),
		cmocka_unit_test(silent_node_is_offline),
		cmocka_unit_test(conditions_say_why),
		cmocka_unit_test(several_deployments),
		cmocka_unit_test(nothing_without_the_lease),
		cmocka_unit_test(claim_becomes_volume),
		cmocka_unit_test(too_big_waits_with_a_reason),
		cmocka_unit_test(promises_are_kept),
		cmocka_unit_test(a_choice_needs_room),
		cmocka_unit_test(refused_claims),
		cmocka_unit_test(deleted_while_in_the_making),
		cmocka_unit_test(reclaim_policies),
		cmocka_unit_test(rescued_volume_stays),
		cmocka_unit_test(bound_volume_is_held),
		cmocka_unit_test(made_by_a_person),
		cmocka_unit_test(node_is_held_while_needed),
		cmocka_unit_test(removed_device_says_what_holds_it),
		cmocka_unit_test(last_nodes_can_go),
		cmocka_unit_test(leaving_node_says_what_its_pool_waits_for),
		cmocka_unit_test(kept_data_holds_its_pool),
		cmocka_unit_test(number_of_a_pool_never_comes_again),
		cmocka_unit_test(number_is_written_down_first),
		cmocka_unit_test(number_of_a_refused_pool),
		cmocka_unit_test(number_of_an_older_store),
		cmocka_unit_test(orders_name_the_pool),
		cmocka_unit_test(pool_deleted_by_a_person),
		cmocka_unit_test(ledger_loads_while_volumes_go),
		cmocka_unit_test(ledger_loads_while_a_volume_changes),
		cmocka_unit_test(any_write_may_fail),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
