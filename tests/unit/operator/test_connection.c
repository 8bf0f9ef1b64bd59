/* SPDX-License-Identifier: Apache-2.0 */
/* Classes whose parameters are a ConnectionInfo (connection_class.c). */
#include "operator/connection_class.h"

#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

#define SECRET "csi.storage.k8s.io/node-stage-secret-"

/* parameters: stolen */
static void add_class(struct fixture *f, const char *name, json_t *parameters)
{
	cleanup_json json_t *class =
		json_pack("{s:s, s:s, s:{s:s}, s:s, s:o}", "apiVersion", "storage.k8s.io/v1",
			  "kind", "StorageClass", "metadata", "name", name, "provisioner",
			  QM_DRIVER, "parameters", parameters);

	assert_int_equal(kube_create(f->api, &KIND_STORAGECLASS, class, NULL, NULL), 0);
}

static json_t *lun(const char *number)
{
	return json_pack("{s:s, s:s, s:s, s:s}", "driverVolumeType", "ISCSI", "targetPortal",
			 "192.0.2.1:3260", "targetIqn", "iqn.2026-01.net.example:t1", "targetLun",
			 number);
}

/* As Kubernetes does; status: stolen. */
static void tell(struct fixture *f, const struct kind *kind, const char *name, json_t *status)
{
	cleanup_json json_t *p = json_pack("{s:o}", "status", status);

	assert_int_equal(kube_patch(f->api, kind, kind->namespaced ? f->op.ns : NULL, name,
				    "status", KUBE_PATCH_MERGE, p, NULL, NULL),
			 0);
}

static void add_claim_for(struct fixture *f, const char *name, const char *class, const char *mode)
{
	cleanup_json json_t *claim =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion",
			  "v1", "kind", "PersistentVolumeClaim", "metadata", "name", name,
			  "namespace", f->op.ns, "spec", "storageClassName", class, "accessModes",
			  mode, "resources", "requests", "storage", "1Gi");

	assert_int_equal(kube_create(f->api, &KIND_PVC, claim, NULL, NULL), 0);
	settle(f);
}

static void assert_waits(struct fixture *f, const char *name, const char *word)
{
	cleanup_json json_t *claim = get_claim(f, name);
	const char *why = object_annotation(claim, QM_ANNOTATION_WAITING);

	assert_null(jstr(claim, "spec", "volumeName"));
	assert_non_null(why);
	if (!strstr(why, word))
		fail_msg("\"%s\" does not say \"%s\"", why, word);
}

/* Every claim has the export; nothing is made in a pool. */
static void files_are_shared(void **state)
{
	struct fixture *f = fixture_online();

	add_class(f, "nfs",
		  json_pack("{s:s, s:s, s:s, s:s, s:s}", "driverVolumeType", "NFS", "export",
			    "192.0.2.1:/export", "csi.storage.k8s.io/fstype", "ext4", SECRET "name",
			    "${pvc.name}-of-${pv.name}", SECRET "namespace", "${pvc.namespace}"));
	add_claim_for(f, "c1", "nfs", "ReadWriteMany");
	add_claim_for(f, "c2", "nfs", "ReadWriteMany");
	cleanup_json json_t *one = get_pv_of(f, "c1"), *two = get_pv_of(f, "c2"),
			    *claim = get_claim(f, "c1");
	assert_non_null(one);
	assert_non_null(two);
	assert_string_equal(jstr(one, "spec", "csi", "volumeAttributes", "export"),
			    "192.0.2.1:/export");
	assert_string_equal(jstr(one, "spec", "csi", "volumeAttributes", "driverVolumeType"),
			    "NFS");
	assert_int_equal(json_object_size(jget(one, "spec", "csi", "volumeAttributes")), 2);
	assert_null(jget(one, "spec", "csi", "fsType"));
	assert_true(!streq(jstr(one, "spec", "csi", "volumeHandle"),
			   jstr(two, "spec", "csi", "volumeHandle")));
	cleanup_free char *secret = xasprintf("c1-of-%s", object_name(one));
	assert_string_equal(jstr(one, "spec", "csi", "nodeStageSecretRef", "name"), secret);
	assert_string_equal(jstr(one, "spec", "csi", "nodeStageSecretRef", "namespace"), f->op.ns);
	assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	assert_false(object_has_finalizer(claim, QM_FINALIZER_PROVISION));
	fixture_free(f);
}

/* A device is one volume, whatever the class is called and whichever portal leads to it. */
static void device_is_one_volume(void **state)
{
	struct fixture *f = fixture_online();
	json_t *again = lun("7");

	json_object_set_new(again, "targetPortal", json_string("192.0.2.2:3260"));
	json_object_set_new(again, "fencing", json_string("none"));
	add_class(f, "lun7", lun("7"));
	add_class(f, "lun7-again", again);
	add_class(f, "lun8", lun("8"));
	add_claim_for(f, "c1", "lun7", "ReadWriteOnce");
	add_claim_for(f, "c2", "lun7", "ReadWriteOnce");
	add_claim_for(f, "c3", "lun7-again", "ReadWriteOnce");
	add_claim_for(f, "c4", "lun7", "ReadOnlyMany");
	add_claim_for(f, "c5", "lun8", "ReadWriteOnce");
	assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
	assert_waits(f, "c2", "one volume, and has a claim already");
	assert_waits(f, "c3", "one volume, and has a claim already");
	assert_waits(f, "c4", "one volume, and has a claim already");
	assert_true(phase_is(f, &KIND_PVC, "c5", "Bound"));
	/* the next one gets it when the first is gone, with the data as it is */
	discard(f, &KIND_PVC, "c4");
	discard(f, &KIND_PVC, "c2");
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "c3", "Bound"));
	cleanup_json json_t *pv = get_pv_of(f, "c3"), *claim = get_claim(f, "c3");
	assert_string_equal(jstr(pv, "spec", "csi", "volumeAttributes", "fencing"), "none");
	assert_null(object_annotation(claim, QM_ANNOTATION_WAITING));
	fixture_free(f);
}

/* Another operator makes the volume of another claim, for the same device, after we have looked for one. */
static void race(struct fixture *f, const struct kind *kind, const json_t *object)
{
	cleanup_json json_t *other = json_deep_copy(object);
	const char *device = object_annotation(object, QM_ANNOTATION_CONNECTION);
	bool reads = !streq(object_name(object), device);

	if (kind != &KIND_PV)
		return;
	f->on_create = NULL;
	jset(other, json_string(reads ? device : "pvc-other"), "metadata", "name");
	jset(other, json_string("other"), "spec", "claimRef", "name");
	assert_int_equal(kube_create(f->api, &KIND_PV, other, NULL, NULL), 0);
}

static void reader_and_writer_at_once(void **state)
{
	for (int reads = 0; reads < 2; reads++) {
		struct fixture *f = fixture_online();

		add_class(f, "lun7", lun("7"));
		f->on_create = race;
		add_claim_for(f, "c1", "lun7", reads ? "ReadOnlyMany" : "ReadWriteOnce");
		assert_waits(f, "c1", "one volume, and has a claim already");
		assert_int_equal(count(f, &KIND_PV), 1);
		cleanup_json json_t *all = NULL;
		kube_list(f->api, &KIND_PV, NULL, NULL, &all, NULL, NULL);
		assert_string_equal(jstr(json_array_get(all, 0), "spec", "claimRef", "name"),
				    "other");
		discard(f, &KIND_PV, object_name(json_array_get(all, 0)));
		settle(f);
		assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
		fixture_free(f);
	}
}

static void readers_share_a_device(void **state)
{
	struct fixture *f = fixture_online();

	add_class(f, "lun7", lun("7"));
	add_claim_for(f, "c1", "lun7", "ReadOnlyMany");
	add_claim_for(f, "c2", "lun7", "ReadOnlyMany");
	add_claim_for(f, "c3", "lun7", "ReadWriteOnce");
	assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
	assert_true(phase_is(f, &KIND_PVC, "c2", "Bound"));
	assert_waits(f, "c3", "has a claim already");
	fixture_free(f);
}

static void with(struct fixture *f, const char *class, const char *key, const char *value,
		 const char *mode, const char *word)
{
	json_t *parameters = lun("1");

	json_object_set_new(parameters, key, json_string(value));
	add_class(f, class, parameters);
	add_claim_for(f, class, class, mode);
	assert_waits(f, class, word);
}

/* What is wrong is said on the claim, and nothing is made. */
static void refused(void **state)
{
	struct fixture *f = fixture_online();

	with(f, "a", "targetLum", "1", "ReadWriteOnce", "targetLum");
	with(f, "b", "driverVolumeType", "ISCSY", "ReadWriteOnce", "ISCSY");
	with(f, "c", "authPassword", "geheim", "ReadWriteOnce", "Secret");
	with(f, "d", "fencing", "maybe", "ReadWriteOnce", "fencing");
	with(f, "e", SECRET "name", "x", "ReadWriteOnce", "needs both");
	with(f, "g", "targetPortal", "192.0.2.9:3260", "ReadWriteMany", "one writer");
	cleanup_json json_t *claim = get_claim(f, "c");
	assert_null(strstr(object_annotation(claim, QM_ANNOTATION_WAITING), "geheim"));
	add_class(f, "h", json_pack("{s:s}", "driverVolumeType", "NFS"));
	add_claim_for(f, "h", "h", "ReadWriteMany");
	assert_waits(f, "h", "export");
	assert_int_equal(count(f, &KIND_PV), 0);
	fixture_free(f);
}

/* Of another deployment: not ours to answer. */
static void of_another_deployment(void **state)
{
	struct fixture *f = fixture_online();
	json_t *parameters = lun("1");

	json_object_set_new(parameters, "deployment", json_string("silver"));
	json_object_set_new(parameters, "namespace", json_string("elsewhere"));
	add_class(f, "lun1", parameters);
	add_claim_for(f, "c1", "lun1", "ReadWriteOnce");
	assert_int_equal(count(f, &KIND_PV), 0);
	fixture_free(f);
}

/* On a cluster Kubernetes binds, by uid; with Retain the volume stays. */
static void on_a_cluster(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_json json_t *claim = NULL, *pv = NULL, *all = NULL;

	f->op.binder = false;
	add_class(f, "lun7", lun("7"));
	add_claim_for(f, "c1", "lun7", "ReadWriteOnce");
	assert_int_equal(count(f, &KIND_PV), 0);
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
			"volume.kubernetes.io/storage-provisioner", QM_DRIVER));
	settle(f);
	claim = get_claim(f, "c1");
	assert_int_equal(kube_list(f->api, &KIND_PV, NULL, NULL, &all, NULL, NULL), 0);
	assert_int_equal(json_array_size(all), 1);
	pv = json_incref(json_array_get(all, 0));
	assert_string_equal(jstr(pv, "spec", "claimRef", "uid"), object_uid(claim));
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:s, s:{s:{s:s}}}}", "spec", "volumeName", object_name(pv),
			"resources", "requests", "storage", "2Gi"));
	tell(f, &KIND_PVC, "c1",
	     json_pack("{s:s, s:{s:s}}", "phase", "Bound", "capacity", "storage", "1Gi"));
	settle(f);
	cleanup_json json_t *grown = get(f, &KIND_PV, object_name(pv)), *told = get_claim(f, "c1");
	assert_string_equal(jstr(grown, "spec", "capacity", "storage"), "2Gi");
	assert_string_equal(jstr(json_array_get(jget(told, "status", "conditions"), 0), "type"),
			    "FileSystemResizePending");
	/* kubelet makes that the claim's capacity */
	assert_string_equal(jstr(told, "status", "allocatedResources", "storage"), "2Gi");
	patch(f, &KIND_PV, object_name(pv),
	      json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Retain"));
	tell(f, &KIND_PV, object_name(pv), json_pack("{s:s}", "phase", "Released"));
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 1);
	patch(f, &KIND_PV, object_name(pv),
	      json_pack("{s:{s:s}}", "spec", "persistentVolumeReclaimPolicy", "Delete"));
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_shared),	  cmocka_unit_test(device_is_one_volume),
		cmocka_unit_test(readers_share_a_device),
		cmocka_unit_test(reader_and_writer_at_once), cmocka_unit_test(refused),
		cmocka_unit_test(of_another_deployment),  cmocka_unit_test(on_a_cluster),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
