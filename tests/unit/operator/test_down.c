/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that is down: no worker is sent there, which would hold a thread that others wait for until its deadline.
 * Everything waits, says so once, and goes on when the pool is back.
 */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

/* Some node is left to say so; or none is, and the pool's last word is that it serves. */
static void goes_down(struct fixture *f, bool says_so)
{
	cleanup_json json_t *down = json_pack("{s:{s:s}}", "status", "phase", "Offline");

	f->agents_silent = true;
	if (says_so)
		assert_int_equal(kube_patch(f->api, &KIND_STORAGEPOOL, "default", "gold-1",
					    "status", KUBE_PATCH_MERGE, down, NULL, NULL),
				 0);
	else
		f->now_ms += NODE_OFFLINE_MS + 1000;
	settle(f);
	f->worker_calls = 0;
}

static void comes_back(struct fixture *f)
{
	assert_int_equal(f->worker_calls, 0);
	f->agents_silent = false;
	f->now_ms += 1000;
	settle(f);
	assert_true(f->worker_calls > 0);
}

static int times_said(struct fixture *f, const char *reason)
{
	int n = 0;

	for (size_t i = 0; i < f->events.count; i++)
		n += str_has_prefix(f->events.items[i], reason) &&
		     strstr(f->events.items[i], "does not serve now") != NULL;
	return n;
}

static void volume_to_be_reclaimed(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct fixture *f = fixture_online();

		add_claim(f, "c1", "gold", "1Gi");
		settle(f);
		cleanup_json json_t *pv = get_pv_of(f, "c1");
		goes_down(f, way);
		discard(f, &KIND_PVC, "c1");
		settle(f);
		settle(f);
		assert_true(phase_is(f, &KIND_PV, object_name(pv), "Released"));
		assert_int_equal(times_said(f, "VolumeFailedDelete"), 1);
		f->r.again_ms = 0;
		assert_int_equal(VOLUME_CONTROLLER.reconcile(&f->r, object_name(pv)), 0);
		assert_true(f->r.again_ms > 0);
		comes_back(f);
		assert_int_equal(count(f, &KIND_PV), 0);
		assert_false(has_volume(f, "gold-1", object_name(pv)));
		fixture_free(f);
	}
}

/* One of three nodes is silent: the pool serves, and so does the operator. */
static void pool_that_has_lost_a_node(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	json_object_del(f->agents, "n1");
	f->now_ms += NODE_OFFLINE_MS + 1000;
	agents_act(f);
	discard(f, &KIND_PVC, "c1");
	look(f);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n1", "Offline"));
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-1");
	assert_true(pool_answers(&f->r, pool));
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	fixture_free(f);
}

static struct fixture *with_begun_claim(void)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	f->make_rc = -EIO;
	settle(f);
	f->make_rc = 0;
	return f;
}

static void claim_that_has_begun(void **state)
{
	for (int way = 0; way < 2; way++) {
		struct fixture *f = with_begun_claim();

		goes_down(f, way);
		assert_true(waits(f, "c1", "pool gold-1 does not serve now"));
		settle(f);
		assert_int_equal(times_said(f, "ProvisioningFailed"), 1);
		CLAIM_CONTROLLER.reconcile(&f->r, "default/c1");
		assert_true(f->r.again_ms > 0);
		comes_back(f);
		assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
		assert_false(waits(f, "c1", ""));
		fixture_free(f);
	}
}

/* A new claim takes another pool; where there is none it waits, without having chosen. */
static void new_claim(void **state)
{
	struct fixture *f = fixture_online();

	goes_down(f, false);
	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	assert_true(waits(f, "c1", "no pool of gold serves now"));
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_null(object_annotation(claim, QM_ANNOTATION_POOL));
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	comes_back(f);
	assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
	fixture_free(f);
}

static void new_claim_with_two_pools(void **state)
{
	struct fixture *f = fixture_new();

	add_nodes(f, 6, 1);
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 2);
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-1");
	size_t i;
	json_t *b;
	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		json_object_del(f->agents, jstr(b, "node"));
	f->now_ms += NODE_OFFLINE_MS + 1000;
	agents_act(f);
	look(f); /* gold-1 says that it serves, and its nodes say nothing */
	for (i = 0; i < 4; i++) {
		cleanup_free char *name = xasprintf("c%zu", i), *key = xasprintf("default/%s", name);

		add_claim(f, name, "gold", "1Gi");
		assert_int_equal(CLAIM_CONTROLLER.reconcile(&f->r, key), 0);
		cleanup_json json_t *claim = get_claim(f, name);
		assert_string_equal(object_annotation(claim, QM_ANNOTATION_POOL), "gold-2");
	}
	assert_int_equal(ledger_promised(f->op.ledger, "gold-2"), 4 * GIB);
	assert_int_equal(ledger_promised(f->op.ledger, "gold-1"), 0);
	fixture_free(f);
}

static void claim_to_be_undone(void **state)
{
	struct fixture *f = with_begun_claim();

	goes_down(f, true);
	discard(f, &KIND_PVC, "c1");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_true(object_has_finalizer(claim, QM_FINALIZER_PROVISION));
	CLAIM_CONTROLLER.reconcile(&f->r, "default/c1");
	assert_true(f->r.again_ms > 0);
	comes_back(f);
	assert_int_equal(count(f, &KIND_PVC), 0);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	fixture_free(f);
}

/* On a cluster the second half of a volume is made when its claim is bound. */
static void claim_to_be_finished(void **state)
{
	struct fixture *f = fixture_online();

	f->op.binder = false;
	add_claim(f, "c1", "gold", "1Gi");
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations",
			"volume.kubernetes.io/storage-provisioner", QM_DRIVER));
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1"),
			    *bound = json_pack("{s:{s:s}}", "status", "phase", "Bound");
	cleanup_free char *volume = pv_name(claim);
	goes_down(f, true);
	patch(f, &KIND_PVC, "c1", json_pack("{s:{s:s}}", "spec", "volumeName", volume));
	kube_patch(f->api, &KIND_PVC, "default", "c1", "status", KUBE_PATCH_MERGE, bound, NULL,
		   NULL);
	settle(f);
	cleanup_json json_t *held = get_claim(f, "c1");
	assert_true(object_has_finalizer(held, QM_FINALIZER_PROVISION));
	assert_int_equal(json_object_size(f->halves), 1);
	comes_back(f);
	cleanup_json json_t *done = get_claim(f, "c1");
	assert_false(object_has_finalizer(done, QM_FINALIZER_PROVISION));
	assert_int_equal(json_object_size(f->halves), 0);
	fixture_free(f);
}

static void claim_to_grow(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	goes_down(f, true);
	patch(f, &KIND_PVC, "c1",
	      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests", "storage", "2Gi"));
	settle(f);
	settle(f);
	assert_int_equal(times_said(f, "VolumeResizeFailed"), 1);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
	RESIZE_CONTROLLER.reconcile(&f->r, "default/c1");
	assert_true(f->r.again_ms > 0);
	comes_back(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_string_equal(jstr(claim, "status", "capacity", "storage"), "2Gi");
	fixture_free(f);
}

/* Pauses grow with what was waited so far; who waits long says it again at times. */
static void patience_grows(void **state)
{
	struct fixture *f = fixture_new();
	int64_t began = f->now_ms;

	assert_true(op_waits(&f->r, "copy", "v", 15000));
	assert_int_equal(f->r.again_ms, 1000);
	for (int i = 0; i < 3; i++) {
		f->now_ms += 1000;
		assert_false(op_waits(&f->r, "copy", "v", 15000));
		assert_int_equal(f->r.again_ms, 1000);
	}
	while (f->now_ms - began < 120000) {
		f->now_ms += f->r.again_ms;
		assert_false(op_waits(&f->r, "copy", "v", 15000));
	}
	assert_int_equal(f->r.again_ms, 15000);
	assert_true(op_waits(&f->r, "copy", "w", 15000)); /* another's is its own */
	assert_int_equal(f->r.again_ms, 1000);
	while (f->now_ms - began < 600000) {
		f->now_ms += 15000;
		op_waits(&f->r, "copy", "v", 15000);
	}
	f->now_ms += 10 * 60 * 1000; /* it was over long ago */
	assert_true(op_waits(&f->r, "copy", "v", 15000));
	assert_int_equal(f->r.again_ms, 1000);
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_to_be_reclaimed),
		cmocka_unit_test(pool_that_has_lost_a_node),
		cmocka_unit_test(claim_that_has_begun),
		cmocka_unit_test(claim_to_be_undone),
		cmocka_unit_test(new_claim),
		cmocka_unit_test(new_claim_with_two_pools),
		cmocka_unit_test(claim_to_be_finished),
		cmocka_unit_test(claim_to_grow),
		cmocka_unit_test(patience_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
