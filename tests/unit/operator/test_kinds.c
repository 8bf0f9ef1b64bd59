/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include "operator/volumes.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* What a class can say of its volumes. */
#define POOL "gold-1"

/* ---- a pool for itself ------------------------------------------------------------------------- */

static void whole_pool(void **state)
{
	struct fixture *f = fixture_online();

	f->op.overcommit = 3;
	add_storage_class(f, "whole", json_pack("{s:s}", "kind", "whole"), NULL);
	add_claim(f, "big", "whole", "11Gi");
	add_claim(f, "w", "whole", "1Gi");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "w");
	assert_int_equal(pv_bytes(pv), 10 * GIB); /* what there is, whatever may be promised */
	assert_int_equal(pv_kind(pv), VOLUME_WHOLE);
	assert_true(str_has_prefix(jstr(pv, "spec", "csi", "volumeAttributes", "name"), "whole/"));
	assert_true(waits(f, "big", "at least 11"));

	/* nothing beside it, in this life and in the next */
	fixture_restart(f);
	add_claim(f, "other", "gold", "1Gi");
	add_claim(f, "second", "whole", "1Gi");
	settle(f);
	assert_true(waits(f, "other", "full"));
	assert_true(waits(f, "second", "without other volumes"));
	assert_int_equal(count(f, &KIND_PV), 1);

	/* it does not become larger than its pool */
	patch(f, &KIND_PVC, "w",
	      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests", "storage", "12Gi"));
	settle(f);
	json_decref(pv);
	pv = get_pv_of(f, "w");
	assert_int_equal(pv_bytes(pv), 10 * GIB);

	discard(f, &KIND_PVC, "second");
	discard(f, &KIND_PVC, "w");
	settle(f);
	settle(f); /* those that wait are told when the volume is gone */
	assert_true(json_object_size(jget(f->volumes, POOL)) == 1);
	cleanup_json json_t *other = get_pv_of(f, "other");
	assert_non_null(other);
	fixture_free(f);
}

/* What has no PersistentVolume lies in a pool all the same. */
static void whole_pool_of_kept_data(void **state)
{
	struct fixture *f = fixture_online();

	add_storage_class(f, "whole", json_pack("{s:s}", "kind", "whole"), NULL);
	jset(f->volumes, json_integer(1), POOL, "archived-pvc-1");
	add_claim(f, "w", "whole", "1Gi");
	settle(f);
	assert_true(waits(f, "w", "archived-pvc-1 lies in pool"));
	assert_int_equal(ledger_count(f->op.ledger, POOL), 0);
	assert_int_equal(count(f, &KIND_PV), 0);
	json_object_del(jget(f->volumes, POOL), "archived-pvc-1");
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "w");
	assert_non_null(pv);
	fixture_free(f);
}

static void whole_pool_by_csi(void **state)
{
	struct fixture *f = fixture_online();
	struct volumes *v = operator_volumes_new(&f->r);
	struct volume_info info = { 0 }, again = { 0 };
	struct volume_request q = { .name = "w", .bytes = GIB, .kind = VOLUME_WHOLE };
	struct volume_request d = { .name = "d", .bytes = GIB, .kind = VOLUME_DIRECTORY };
	struct handle id;
	int64_t left, biggest;

	q.limit = 2 * GIB;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), -ERANGE);
	assert_int_equal(ledger_count(f->op.ledger, POOL), 0);
	q.limit = 0;
	assert_int_equal(v->ops->create(v, &q, &info, NULL), 0);
	assert_int_equal(info.bytes, 10 * GIB);
	assert_int_equal(v->ops->create(v, &q, &again, NULL), 0);
	assert_string_equal(info.id, again.id);
	assert_int_equal(v->ops->create(v, &d, NULL, NULL), -ENOSPC);
	assert_int_equal(v->ops->capacity(v, NULL, VOLUME_DIRECTORY, &left, &biggest, NULL), 0);
	assert_int_equal(left, 0);
	assert_int_equal(handle_parse(info.id, &id, NULL), 0);
	assert_int_equal(v->ops->remove(v, &id, NULL), 0);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	volume_info_done(&info);
	assert_int_equal(v->ops->create(v, &d, &info, NULL), 0);
	assert_int_equal(v->ops->create(v, &q, NULL, NULL), -ENOSPC);
	volume_info_done(&info);
	volume_info_done(&again);
	operator_volumes_free(v);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_pool),
		cmocka_unit_test(whole_pool_of_kept_data),
		cmocka_unit_test(whole_pool_by_csi),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
