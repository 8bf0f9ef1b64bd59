/* SPDX-License-Identifier: Apache-2.0 */
/* What the scheduler is told of the room that is left (capacity.c). */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

#define CAPACITY (&KIND_CSISTORAGECAPACITY)

static int tell(struct fixture *f)
{
	cleanup_free char *key = system_key(&f->op);
	int writes = f->writes;

	f->op.binder = false;
	f->r.error = ERROR_INIT;
	assert_int_equal(CAPACITY_CONTROLLER.reconcile(&f->r, key), 0);
	f->op.binder = true;
	return f->writes - writes;
}

static json_t *of_class(struct fixture *f, const char *class)
{
	cleanup_json json_t *all = NULL;
	size_t i;
	json_t *o, *found = NULL;

	assert_int_equal(kube_list(f->api, CAPACITY, "default", NULL, &all, NULL, NULL), 0);
	json_array_foreach (all, i, o)
		if (streq(jstr(o, "storageClassName"), class)) {
			assert_null(found);
			found = json_incref(o);
		}
	return found;
}

static void assert_room(struct fixture *f, const char *class, const char *left, const char *biggest)
{
	cleanup_json json_t *o = of_class(f, class);

	assert_non_null(o);
	assert_string_equal(jstr(o, "capacity"), left);
	assert_string_equal(jstr(o, "maximumVolumeSize"), biggest);
}

static void says_what_is_left(void **state)
{
	struct fixture *f = fixture_new();

	add_nodes(f, 3, 2); /* two pools of 10 GiB */
	settle(f);
	assert_int_equal(tell(f), 1);
	assert_room(f, "gold", "20Gi", "10Gi");
	cleanup_json json_t *o = of_class(f, "gold"), *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_true(json_is_object(jget(o, "nodeTopology")));
	assert_int_equal(json_object_size(jget(o, "nodeTopology")), 0);
	json_t *owner = json_array_get(jget(o, "metadata", "ownerReferences"), 0);
	assert_string_equal(jstr(owner, "uid"), object_uid(status));
	assert_string_equal(object_label(o, "csi.storage.k8s.io/drivername"), QM_DRIVER);
	assert_int_equal(tell(f), 0);

	add_claim(f, "c1", "gold", "4Gi");
	settle(f);
	assert_int_equal(tell(f), 1);
	assert_room(f, "gold", "16Gi", "10Gi");
	add_claim(f, "c2", "gold", "1Mi"); /* no news */
	settle(f);
	assert_int_equal(tell(f), 0);
	add_claim(f, "c3", "gold", "9Gi"); /* beside c2, which went where most was left */
	settle(f);
	assert_int_equal(tell(f), 1);
	assert_room(f, "gold", "7167Mi", "6Gi");
	fixture_free(f);
}

/* A pool that does not serve takes nothing; the last bytes are news, be they ever so few. */
static void pool_goes(void **state)
{
	struct fixture *f = fixture_online();

	tell(f);
	assert_room(f, "gold", "10Gi", "10Gi");
	cleanup_json json_t *off = json_pack("{s:{s:s}}", "status", "phase", "Offline");
	assert_int_equal(kube_patch(f->api, &KIND_STORAGEPOOL, "default", "gold-1", "status",
				    KUBE_PATCH_MERGE, off, NULL, NULL),
			 0);
	assert_int_equal(tell(f), 1);
	assert_room(f, "gold", "0", "0");
	fixture_free(f);
}

static void class_by_class(void **state)
{
	struct fixture *f = fixture_online();

	add_storage_class(f, "alone", json_pack("{s:s}", "kind", "whole"), NULL);
	add_storage_class(f, "odd", json_pack("{s:s}", "kind", "cube"), NULL);
	add_storage_class(f, "silver", json_pack("{s:s}", "deployment", "silver"), NULL);
	add_storage_class(f, "other", json_pack("{s:s}", "namespace", "elsewhere"), NULL);
	add_storage_class(f, "iscsi", json_pack("{s:s}", "driverVolumeType", "ISCSI"), NULL);
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	tell(f);
	assert_int_equal(count(f, CAPACITY), 3);
	assert_room(f, "gold", "9Gi", "9Gi");
	assert_room(f, "alone", "9Gi", "9Gi"); /* whole volumes share the pools */
	assert_room(f, "iscsi", "9223372036854775807", "9223372036854775807");
	discard(f, &KIND_STORAGECLASS, "alone");
	tell(f);
	assert_int_equal(count(f, CAPACITY), 2);
	assert_null(of_class(f, "alone"));
	fixture_free(f);
}

static void not_ours_to_say(void **state)
{
	struct fixture *f = fixture_online();
	cleanup_free char *key = system_key(&f->op);

	assert_int_equal(CAPACITY_CONTROLLER.reconcile(&f->r, key), 0); /* no scheduler */
	assert_int_equal(count(f, CAPACITY), 0);
	f->leads = false;
	assert_int_equal(tell(f), 0);
	assert_int_equal(count(f, CAPACITY), 0);
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_is_left),
		cmocka_unit_test(pool_goes),
		cmocka_unit_test(class_by_class),
		cmocka_unit_test(not_ours_to_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
