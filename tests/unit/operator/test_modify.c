/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VolumeAttributesClasses: of claims (modify.c, claim.c), and what CSI's ModifyVolume does
 * (volumes_modify.c).
 */
#include "fixture.h"

#include "operator/volumes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

static void add_attributes(struct fixture *f, const char *name, const char *driver, const char *key,
			   const char *value)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *class =
		json_pack("{s:s, s:s, s:{s:s}, s:s, s:{s:s}}", "apiVersion", "storage.k8s.io/v1",
			  "kind", "VolumeAttributesClass", "metadata", "name", name, "driverName",
			  driver, "parameters", key, value);

	if (kube_create(f->api, &KIND_VOLUMEATTRIBUTESCLASS, class, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

static struct fixture *with_classes(void)
{
	struct fixture *f = fixture_online();

	add_attributes(f, "keep", QM_DRIVER, "reclaim", "archive");
	add_attributes(f, "drop", QM_DRIVER, "reclaim", "delete");
	add_attributes(f, "odd", QM_DRIVER, "iops", "3000");
	add_attributes(f, "foreign", "ebs.example.com", "reclaim", "archive");
	return f;
}

static void name_class(struct fixture *f, const char *claim, const char *class)
{
	patch(f, &KIND_PVC, claim,
	      json_pack("{s:{s:s?}}", "spec", "volumeAttributesClassName", class));
	settle(f);
}

/* What is in force by the claim and by its volume, and that nothing is under way. */
static void assert_has(struct fixture *f, const char *name, const char *class, bool archive)
{
	cleanup_json json_t *claim = get_claim(f, name), *pv = get_pv_of(f, name);

	assert_true(streq(jstr(claim, "status", "currentVolumeAttributesClassName"), class));
	assert_true(streq(jstr(pv, "spec", "volumeAttributesClassName"), class));
	assert_int_equal(pv_archives(pv), archive);
	assert_null(jget(claim, "status", "modifyVolumeStatus"));
	assert_int_equal(json_array_size(jget(claim, "status", "conditions")), 0);
}

static void assert_waits(struct fixture *f, const char *name, const char *class, const char *state)
{
	cleanup_json json_t *claim = get_claim(f, name);
	const json_t *said = jget(claim, "status", "modifyVolumeStatus");

	assert_string_equal(jstr(said, "status"), state);
	assert_string_equal(jstr(said, "targetVolumeAttributesClassName"), class);
}

static bool reclaimed_as(struct fixture *f, const char *claim, bool archived)
{
	cleanup_json json_t *pv = get_pv_of(f, claim);
	cleanup_free char *kept = xasprintf("archived-%s", object_name(pv));

	discard(f, &KIND_PVC, claim);
	settle(f);
	return !has_volume(f, "gold-1", object_name(pv)) &&
	       has_volume(f, "gold-1", kept) == archived;
}

static void changes_what_becomes_of_data(void **state)
{
	struct fixture *f = with_classes();

	add_claim(f, "a", "gold", "1Gi");
	add_claim(f, "b", "gold", "1Gi");
	settle(f);
	assert_has(f, "a", NULL, false);
	name_class(f, "a", "keep");
	assert_has(f, "a", "keep", true);
	assert_true(said(f, "VolumeModify", "keep"));
	assert_true(said(f, "VolumeModifySuccessful", "keep"));
	name_class(f, "b", "keep");
	name_class(f, "b", "drop");
	assert_has(f, "b", "drop", false);
	assert_true(reclaimed_as(f, "a", true));
	assert_true(reclaimed_as(f, "b", false));
	fixture_free(f);
}

static void cannot_be_had(void **state)
{
	struct fixture *f = with_classes();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	name_class(f, "c1", "keep");
	name_class(f, "c1", "odd");
	assert_waits(f, "c1", "odd", "Infeasible");
	assert_true(said(f, "VolumeModifyFailed", "no parameter \"iops\""));
	cleanup_json json_t *claim = get_claim(f, "c1"), *pv = get_pv_of(f, "c1");
	assert_non_null(strstr(claim_said(claim, "ModifyVolumeError"), "iops"));
	assert_string_equal(jstr(claim, "status", "currentVolumeAttributesClassName"), "keep");
	assert_string_equal(jstr(pv, "spec", "volumeAttributesClassName"), "keep");
	assert_true(pv_archives(pv));
	name_class(f, "c1", "foreign");
	assert_waits(f, "c1", "foreign", "Infeasible");
	assert_true(said(f, "VolumeModifyFailed", "ebs.example.com"));
	name_class(f, "c1", "keep"); /* taken back */
	assert_has(f, "c1", "keep", true);
	fixture_free(f);
}

static void class_comes_later(void **state)
{
	struct fixture *f = with_classes();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	name_class(f, "c1", "later");
	assert_waits(f, "c1", "later", "Pending");
	assert_true(said(f, "VolumeModifyFailed", "no VolumeAttributesClass later"));
	add_attributes(f, "later", QM_DRIVER, "reclaim", "archive");
	settle(f);
	assert_has(f, "c1", "later", true);
	fixture_free(f);
}

/* A new volume has at once what its claim's class says, or is not made. */
static void from_the_beginning(void **state)
{
	struct fixture *f = with_classes();

	add_claim(f, "c1", "gold", "1Gi");
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:s}}", "spec", "volumeAttributesClassName", "keep"));
	add_claim(f, "c2", "gold", "1Gi");
	name_class(f, "c2", "odd");
	assert_has(f, "c1", "keep", true);
	assert_false(said(f, "VolumeModify", ""));
	assert_true(waits(f, "c2", "iops"));
	assert_int_equal(count(f, &KIND_PV), 1);
	name_class(f, "c2", "drop");
	assert_has(f, "c2", "drop", false);
	fixture_free(f);
}

/* The class of storage says archive, the claim's own class says delete. */
static void says_more_than_the_class(void **state)
{
	struct fixture *f = with_classes();

	add_storage_class(f, "safe", json_object(),
			  json_pack("{s:{s:s, s:{s:s}}}", "metadata", "name", "safe", "annotations",
				    QM_ANNOTATION_RECLAIM, "archive"));
	add_claim(f, "c1", "safe", "1Gi");
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:s}}", "spec", "volumeAttributesClassName", "drop"));
	add_claim(f, "c2", "safe", "1Gi");
	settle(f);
	assert_has(f, "c1", "drop", false);
	assert_has(f, "c2", NULL, true);
	fixture_free(f);
}

/* A claim that merely names another's volume changes nothing of it. */
static void volume_of_another(void **state)
{
	struct fixture *f = with_classes();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "c1");
	add_claim(f, "thief", "gold", "1Gi");
	patch(f, &KIND_PVC, "thief",
	      json_pack("{s:{s:s}, s:{s:s}}", "spec", "volumeName", object_name(pv), "status",
			"phase", "Bound"));
	name_class(f, "thief", "keep");
	assert_has(f, "c1", NULL, false);
	fixture_free(f);
}

/* Before or after each write the operator dies; the next one comes to the same end. */
static void any_write_may_fail(void **state)
{
	for (int after = 0; after < 2; after++) {
		bool failed = true;

		for (int n = 1; failed; n++) {
			struct fixture *f = with_classes();

			add_claim(f, "c1", "gold", "1Gi");
			settle(f);
			f->fail_at = f->writes + n;
			f->fail_after = after;
			f->failed = false;
			name_class(f, "c1", "keep");
			failed = f->failed;
			f->fail_at = 0;
			fixture_restart(f);
			settle(f);
			assert_has(f, "c1", "keep", true);
			fixture_free(f);
			assert_true(failed || n > 3);
		}
	}
}

/* ---- CSI --------------------------------------------------------------------------------------- */

static void by_csi(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = operator_volumes_new(&f->r);
	struct volume_request q = { .name = "one", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct volume_attributes archive = { "archive" }, drop = { "delete" }, none = { 0 };
	struct volume_info one = { 0 }, two = { 0 };
	struct handle id;

	assert_int_equal(v->ops->create(v, &q, &one, NULL), 0);
	q.name = "two";
	q.attributes = archive;
	assert_int_equal(v->ops->create(v, &q, &two, NULL), 0);
	handle_parse(one.id, &id, NULL);
	assert_int_equal(v->ops->modify(v, &id, &archive, NULL), 0);
	assert_int_equal(v->ops->modify(v, &id, &none, NULL), 0);
	assert_int_equal(v->ops->remove(v, &id, NULL), 0);
	assert_int_equal(v->ops->modify(v, &id, &archive, NULL), -ENOENT);
	cleanup_free char *kept = xasprintf("archived-%s", id.name);
	assert_true(has_volume(f, "gold-1", kept));
	handle_parse(two.id, &id, NULL);
	cleanup_json json_t *pv = get(f, &KIND_PV, id.name);
	assert_true(pv_archives(pv));
	assert_int_equal(v->ops->modify(v, &id, &drop, NULL), 0);
	assert_int_equal(v->ops->remove(v, &id, NULL), 0);
	cleanup_free char *gone = xasprintf("archived-%s", id.name);
	assert_false(has_volume(f, "gold-1", gone));

	add_claim(f, "c1", "gold", "1Gi"); /* a claim's volume is changed by its claim */
	settle(f);
	cleanup_json json_t *claimed = get_pv_of(f, "c1");
	handle_parse(jstr(claimed, "spec", "csi", "volumeHandle"), &id, NULL);
	assert_int_equal(v->ops->modify(v, &id, &archive, NULL), -EBUSY);
	volume_info_done(&one);
	volume_info_done(&two);
	operator_volumes_free(v);
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_what_becomes_of_data),
		cmocka_unit_test(cannot_be_had),
		cmocka_unit_test(class_comes_later),
		cmocka_unit_test(from_the_beginning),
		cmocka_unit_test(says_more_than_the_class),
		cmocka_unit_test(volume_of_another),
		cmocka_unit_test(any_write_may_fail),
		cmocka_unit_test(by_csi),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
