/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an object is: what we began is brought to an end, whatever becomes of the class or the pool that said so, and
 * nothing of another deployment is touched, also of one with the same name in another namespace.
 */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

/* A claim of class extra that has begun, with data in the pool that nothing but the claim knows. Caller frees. */
static char *begin_claim(struct fixture *f)
{
	add_storage_class(f, "extra", json_object(), NULL);
	add_claim(f, "c1", "extra", "1Gi");
	f->make_rc = -EIO;
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_true(object_has_finalizer(claim, QM_FINALIZER_PROVISION));
	assert_string_equal(object_annotation(claim, QM_ANNOTATION_POOL), "gold-1");
	char *volume = pv_name(claim);
	jset(f->volumes, json_integer(GIB), "gold-1", volume);
	return volume;
}

static bool is_held(struct fixture *f)
{
	cleanup_json json_t *claim = get_claim(f, "c1");

	return object_has_finalizer(claim, QM_FINALIZER_PROVISION);
}

static void annotate(struct fixture *f, const char *name, const char *value)
{
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", name, value));
}

static void class_is_made_again_for_another(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct fixture *f = fixture_online();
		cleanup_free char *volume = begin_claim(f);

		discard(f, &KIND_STORAGECLASS, "extra");
		settle(f);
		assert_true(is_held(f)); /* it may come again as it was */
		if (way)
			add_storage_class(f, "extra", json_pack("{s:s}", "deployment", "silver"),
					  NULL);
		else
			add_storage_class(f, "extra", json_object(),
					  json_pack("{s:s}", "provisioner", "example.com/other"));
		settle(f);
		assert_false(is_held(f));
		assert_false(has_volume(f, "gold-1", volume));
		assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
		fixture_free(f);
	}
}

/* Its volume was there already: it is not taken from the claim. */
static void class_is_made_again_after_the_volume(void **state)
{
	struct fixture *f = fixture_online();

	f->op.binder = false;
	add_storage_class(f, "extra", json_object(), NULL);
	add_claim(f, "c1", "extra", "1Gi");
	annotate(f, "volume.kubernetes.io/storage-provisioner", QM_DRIVER);
	settle(f);
	assert_true(is_held(f));
	discard(f, &KIND_STORAGECLASS, "extra");
	add_storage_class(f, "extra", json_pack("{s:s}", "deployment", "silver"), NULL);
	settle(f);
	assert_false(is_held(f));
	assert_int_equal(count(f, &KIND_PV), 1);
	assert_int_equal(json_object_size(f->halves), 0);
	assert_int_equal(json_object_size(jget(f->volumes, "gold-1")), 1);
	fixture_free(f);
}

/* Its owner takes our finalizer away and deletes it: what it has in the pool goes with it. */
static void strip_and_discard(struct fixture *f)
{
	patch(f, &KIND_PVC, "c1", json_pack("{s:{s:[]}}", "metadata", "finalizers"));
	discard(f, &KIND_PVC, "c1");
}

static void claim_without_finalizers(void **state)
{
	for (int way = 0; way < 3; way++) {
		struct fixture *f = fixture_online();
		cleanup_free char *volume = begin_claim(f), *device = xasprintf("b.%s", volume);

		jset(f->volumes, json_integer(GIB), "gold-1", device); /* of whatever kind it was */
		strip_and_discard(f);
		if (way == 1) /* an operator that cannot yet */
			f->worker_rc = -ETIMEDOUT;
		CLAIM_CONTROLLER.reconcile(&f->r, "default/c1");
		f->worker_rc = 0;
		if (way == 2) { /* another one of that name */
			f->make_rc = 0;
			add_claim(f, "c1", "gold", "2Gi");
		} else {
			settle(f);
		}
		assert_false(has_volume(f, "gold-1", volume));
		assert_false(has_volume(f, "gold-1", device));
		assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
		settle(f);
		assert_int_equal(count(f, &KIND_PV), way == 2);
		fixture_free(f);
	}
}

static struct fixture *racing;

static void strip_racing(struct fixture *f, const struct kind *kind)
{
	if (kind != &KIND_PVC || !racing)
		return;
	racing = NULL;
	strip_and_discard(f);
}

/* The same while the ledger is read; then nobody else knows of it. */
static void claim_without_finalizers_at_start(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_free char *volume = begin_claim(f);

	fixture_restart(f);
	racing = f;
	f->on_list = strip_racing;
	settle(f);
	assert_null(racing);
	assert_false(has_volume(f, "gold-1", volume));
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	fixture_free(f);
}

/* It has its volume: that is Released, and reclaimed as any other. */
static void bound_claim_without_finalizers(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1");
	strip_and_discard(f);
	f->worker_calls = 0;
	CLAIM_CONTROLLER.reconcile(&f->r, "default/c1");
	assert_int_equal(f->worker_calls, 0);
	assert_true(has_volume(f, "gold-1", object_name(pv)));
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_false(has_volume(f, "gold-1", object_name(pv)));
	fixture_free(f);
}

static void class_and_pool_are_gone(void **state)
{
	struct fixture *f = fixture_online();

	free(begin_claim(f));
	discard(f, &KIND_STORAGECLASS, "extra");
	annotate(f, QM_ANNOTATION_POOL, "gold-7");
	discard(f, &KIND_PVC, "c1");
	settle(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	fixture_free(f);
}

/* Begun by a deployment of our name in another namespace, or perhaps so: of an older version nobody knows. */
static void claim_of_our_namesake(void **state)
{
	for (int way = 0; way < 4; way++) {
		struct fixture *f = fixture_online();
		cleanup_free char *volume = begin_claim(f);

		discard(f, &KIND_STORAGECLASS, "extra");
		if (way & 1)
			add_storage_class(f, "extra", json_pack("{s:s}", "namespace", "elsewhere"),
					  NULL);
		annotate(f, QM_ANNOTATION_NAMESPACE, way & 2 ? NULL : "elsewhere");
		if (way == 2) /* no class, no namespace, no pool */
			annotate(f, QM_ANNOTATION_POOL, "gold-7");
		discard(f, &KIND_PVC, "c1");
		settle(f);
		assert_true(is_held(f));
		assert_true(has_volume(f, "gold-1", volume));
		fixture_free(f);
	}
}

/* The volume of a deployment of our name: neither counted, nor ended, nor grown, nor copied. */
static void volume_of_our_namesake(void **state)
{
	for (int ours = 0; ours < 3; ours++) {
		struct fixture *f = fixture_online();
		const char *ns[] = { "elsewhere", NULL, "default" }; /* NULL: made by a version before */

		add_claim(f, "c1", "gold", "1Gi");
		settle(f);
		cleanup_json json_t *pv = get_pv_of(f, "c1");
		assert_string_equal(object_label(pv, QM_LABEL_NAMESPACE), "default");
		patch(f, &KIND_PV, object_name(pv),
		      json_pack("{s:{s:{s:s?}}}", "metadata", "labels", QM_LABEL_NAMESPACE,
				ns[ours]));
		fixture_restart(f);
		patch(f, &KIND_PVC, "c1",
		      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests", "storage",
				"2Gi"));
		settle(f);
		cleanup_json json_t *now = get_pv_of(f, "c1");
		assert_string_equal(jstr(now, "spec", "capacity", "storage"), ours ? "2Gi" : "1Gi");
		add_claim(f, "c2", "gold", "1Gi"); /* which has the ledger loaded */
		settle(f);
		assert_int_equal(ledger_promised(f->op.ledger, NULL), ours ? 3 * GIB : GIB);
		discard(f, &KIND_PVC, "c1");
		settle(f);
		cleanup_json json_t *rest = get(f, &KIND_PV, object_name(pv));
		assert_true(ours ? !rest : object_has_finalizer(rest, QM_FINALIZER_VOLUME));
		assert_int_equal(has_volume(f, "gold-1", object_name(pv)), !ours);
		fixture_free(f);
	}
}

static json_t *only_content(struct fixture *f)
{
	cleanup_json json_t *all = NULL;

	kube_list(f->api, &KIND_VOLUMESNAPSHOTCONTENT, NULL, NULL, &all, NULL, NULL);
	assert_int_equal(json_array_size(all), 1);
	return json_incref(json_array_get(all, 0));
}

static void add_snapshot(struct fixture *f, const char *policy)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *class = json_pack("{s:s, s:s, s:{s:s}, s:s, s:s}", "apiVersion",
					       "snapshot.storage.k8s.io/v1", "kind",
					       "VolumeSnapshotClass", "metadata", "name", "snap",
					       "driver", QM_DRIVER, "deletionPolicy", policy),
			    *snapshot = json_pack(
				    "{s:s, s:s, s:{s:s, s:s}, s:{s:{s:s}, s:s}}", "apiVersion",
				    "snapshot.storage.k8s.io/v1", "kind", "VolumeSnapshot",
				    "metadata", "name", "s", "namespace", "default", "spec",
				    "source", "persistentVolumeClaimName", "c1",
				    "volumeSnapshotClassName", "snap");

	if (kube_create(f->api, &KIND_VOLUMESNAPSHOTCLASS, class, NULL, &err) < 0 ||
	    kube_create(f->api, &KIND_VOLUMESNAPSHOT, snapshot, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

/* Likewise a snapshot's content, which says it itself or by its volume. */
static void content_of_our_namesake(void **state)
{
	for (int way = 0; way < 4; way++) {
		bool ours = way >= 2;
		const char *of_content[] = { "elsewhere", NULL, "default", NULL },
			   *of_volume[] = { "default", "elsewhere", "elsewhere", NULL };
		struct fixture *f = fixture_online();

		add_claim(f, "c1", "gold", "1Gi");
		settle(f);
		add_snapshot(f, "Delete");
		settle(f);
		cleanup_json json_t *pv = get_pv_of(f, "c1"), *content = only_content(f);
		assert_string_equal(object_annotation(content, QM_ANNOTATION_NAMESPACE), "default");
		assert_int_equal(json_object_size(jget(f->snapshots, "gold-1")), 1);
		patch(f, &KIND_VOLUMESNAPSHOTCONTENT, object_name(content),
		      json_pack("{s:{s:{s:s?}}}", "metadata", "annotations",
				QM_ANNOTATION_NAMESPACE, of_content[way]));
		patch(f, &KIND_PV, object_name(pv),
		      json_pack("{s:{s:{s:s?}}}", "metadata", "labels", QM_LABEL_NAMESPACE,
				of_volume[way]));
		discard(f, &KIND_VOLUMESNAPSHOT, "s");
		settle(f);
		assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), !ours);
		assert_int_equal(json_object_size(jget(f->snapshots, "gold-1")), !ours);
		fixture_free(f);
	}
}

/* A content that another's common controller made says whose it is from the moment at which it is held. */
static void content_of_a_common_controller(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	add_snapshot(f, "Delete");
	SNAPSHOT_CONTROLLER.reconcile(&f->r, "default/s");
	cleanup_json json_t *made = only_content(f);
	patch(f, &KIND_VOLUMESNAPSHOTCONTENT, object_name(made),
	      json_pack("{s:{s:n}}", "metadata", "annotations"));
	settle(f);
	cleanup_json json_t *content = only_content(f);
	assert_true(jbool(content, "status", "readyToUse"));
	assert_string_equal(object_annotation(content, QM_ANNOTATION_NAMESPACE), "default");
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class_is_made_again_for_another),
		cmocka_unit_test(class_is_made_again_after_the_volume),
		cmocka_unit_test(class_and_pool_are_gone),
		cmocka_unit_test(claim_of_our_namesake),
		cmocka_unit_test(claim_without_finalizers),
		cmocka_unit_test(claim_without_finalizers_at_start),
		cmocka_unit_test(bound_claim_without_finalizers),
		cmocka_unit_test(volume_of_our_namesake),
		cmocka_unit_test(content_of_our_namesake),
		cmocka_unit_test(content_of_a_common_controller),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
