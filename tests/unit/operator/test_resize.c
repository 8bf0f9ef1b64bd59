/* SPDX-License-Identifier: Apache-2.0 */
/* Claims that grow (resize.c): what the claim, its volume and the ledger say, and that nothing else changes. */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* after what it needs */
#include <cmocka.h>

static void ask_for(struct fixture *f, const char *claim, const char *size)
{
	patch(f, &KIND_PVC, claim,
	      json_pack("{s:{s:{s:{s:s}}}}", "spec", "resources", "requests", "storage", size));
}

static void assert_sizes(struct fixture *f, const char *name, const char *volume, const char *told)
{
	cleanup_json json_t *claim = get_claim(f, name), *pv = get_pv_of(f, name);

	assert_string_equal(jstr(pv, "spec", "capacity", "storage"), volume);
	assert_string_equal(jstr(claim, "status", "capacity", "storage"), told);
}

/* What is promised to the claim, and how far growing is; NULL: nothing is under way. */
static void assert_state(struct fixture *f, const char *name, const char *promised,
			 const char *state)
{
	cleanup_json json_t *claim = get_claim(f, name);

	assert_string_equal(jstr(claim, "status", "allocatedResources", "storage"), promised);
	assert_true(streq(jstr(claim, "status", "allocatedResourceStatuses", "storage"), state));
}

static void grows(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	ask_for(f, "c1", "3Gi");
	settle(f);
	assert_sizes(f, "c1", "3Gi", "3Gi");
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_int_equal(json_array_size(jget(claim, "status", "conditions")), 0);
	assert_null(jget(claim, "status", "allocatedResourceStatuses"));
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 3 * GIB);
	fixture_restart(f);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 3 * GIB);
	fixture_free(f);
}

static void no_room(void **state)
{
	struct fixture *f = fixture_online(); /* 10 GiB */

	add_claim(f, "c1", "gold", "1Gi");
	add_claim(f, "c2", "gold", "8Gi");
	settle(f);
	ask_for(f, "c1", "3Gi");
	settle(f);
	assert_sizes(f, "c1", "1Gi", "1Gi");
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 9 * GIB);
	assert_state(f, "c1", "3Gi", "ControllerResizeInfeasible");
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_non_null(strstr(claim_said(claim, "ControllerResizeError"), "at most"));
	discard(f, &KIND_PVC, "c2");
	settle(f);
	settle(f);
	assert_sizes(f, "c1", "3Gi", "3Gi");
	fixture_free(f);
}

/* Too much was asked for: then less. */
static void asks_for_less(void **state)
{
	struct fixture *f = fixture_online(); /* 10 GiB */

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	ask_for(f, "c1", "20Gi");
	settle(f);
	ask_for(f, "c1", "11Gi"); /* still too much */
	settle(f);
	assert_state(f, "c1", "11Gi", "ControllerResizeInfeasible");
	ask_for(f, "c1", "2Gi");
	settle(f);
	assert_sizes(f, "c1", "2Gi", "2Gi");
	assert_state(f, "c1", "2Gi", NULL);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_int_equal(json_array_size(jget(claim, "status", "conditions")), 0);
	fixture_free(f);
}

/* What was begun may have taken effect, so that is what it gets. */
static void less_comes_too_late(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	f->worker_rc = -ETIMEDOUT;
	ask_for(f, "c1", "5Gi");
	settle(f);
	assert_state(f, "c1", "5Gi", "ControllerResizeInProgress");
	ask_for(f, "c1", "2Gi");
	fixture_restart(f);
	settle(f);
	f->worker_rc = 0;
	settle(f);
	assert_sizes(f, "c1", "5Gi", "5Gi");
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 5 * GIB);
	fixture_free(f);
}

static void pool_does_not_answer(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	f->worker_rc = -ETIMEDOUT;
	ask_for(f, "c1", "2Gi");
	settle(f);
	assert_sizes(f, "c1", "1Gi", "1Gi");
	f->worker_rc = 0;
	settle(f);
	assert_sizes(f, "c1", "2Gi", "2Gi");
	fixture_free(f);
}

/* CVE-2019-11255: a claim that merely names another's volume gets nothing of it. */
static void volume_of_another(void **state)
{
	struct fixture *f = fixture_online();
	json_t *mine;

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	mine = get_pv_of(f, "c1");
	add_claim(f, "thief", "gold", "1Gi");
	patch(f, &KIND_PVC, "thief",
	      json_pack("{s:{s:s}, s:{s:{s:s}}}", "spec", "volumeName", object_name(mine), "status",
			"capacity", "storage", "1Gi"));
	ask_for(f, "thief", "5Gi");
	settle(f);
	assert_sizes(f, "c1", "1Gi", "1Gi");
	assert_int_equal(ledger_promised(f->op.ledger, "gold-1"), GIB);
	json_decref(mine);
	fixture_free(f);
}

/* A pool that is no longer ours: nothing grew, and nobody is told that it did. */
static void pool_is_anothers(void **state)
{
	struct fixture *f = fixture_online();

	add_claim(f, "c1", "gold", "1Gi");
	settle(f);
	patch(f, &KIND_STORAGEPOOL, "gold-1",
	      json_pack("{s:{s:{s:s}}}", "metadata", "labels", QM_LABEL_DEPLOYMENT, "silver"));
	ask_for(f, "c1", "2Gi");
	settle(f);
	assert_sizes(f, "c1", "1Gi", "1Gi");
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_null(jget(claim, "status", "allocatedResources"));
	fixture_free(f);
}

/* Before or after each write the operator dies; the next one comes to the same end. */
static void any_write_may_fail(void **state)
{
	for (int after = 0; after < 2; after++) {
		bool failed = true;

		for (int n = 1; failed; n++) {
			struct fixture *f = fixture_online();

			add_claim(f, "c1", "gold", "1Gi");
			settle(f);
			f->fail_at = f->writes + n;
			f->fail_after = after;
			f->failed = false;
			ask_for(f, "c1", "4Gi");
			settle(f);
			failed = f->failed;
			f->fail_at = 0;
			fixture_restart(f);
			settle(f);
			assert_sizes(f, "c1", "4Gi", "4Gi");
			add_claim(f, "c2", "gold", "1Gi"); /* for which the ledger is read */
			settle(f);
			assert_int_equal(ledger_promised(f->op.ledger, NULL), 5 * GIB);
			fixture_free(f);
			assert_true(failed || n > 3);
		}
	}
}

/* A claim on a file, bound; then kubelet has the last word. */
static struct fixture *grown_on_node(void)
{
	struct fixture *f = fixture_online();

	cleanup_json json_t *claim =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion",
			  "v1", "kind", "PersistentVolumeClaim", "metadata", "name", "c1",
			  "namespace", f->op.ns, "spec", "storageClassName", "files", "accessModes",
			  "ReadWriteOnce", "resources", "requests", "storage", "1Gi");

	add_storage_class(f, "files", json_pack("{s:s}", "kind", "file"), NULL);
	assert_int_equal(kube_create(f->api, &KIND_PVC, claim, NULL, NULL), 0);
	settle(f);
	f->op.binder = false;
	ask_for(f, "c1", "3Gi");
	settle(f);
	assert_sizes(f, "c1", "3Gi", "1Gi");
	assert_state(f, "c1", "3Gi", "NodeResizePending");
	return f;
}

/* As kubelet does it: all else that the operator said of the claim stays. */
static void say_of_node(struct fixture *f, const char *state)
{
	cleanup_json json_t *p = json_pack("{s:{s:{s:s}}}", "status", "allocatedResourceStatuses",
					   "storage", state);

	assert_int_equal(kube_patch(f->api, &KIND_PVC, f->op.ns, "c1", "status", KUBE_PATCH_MERGE,
				    p, NULL, NULL),
			 0);
}

/* kubelet does not try again what a node called infeasible, until who resizes begins anew. */
static void infeasible_on_node(void **state)
{
	struct fixture *f = grown_on_node();

	for (int i = 0; i < 2; i++) {
		int grown = f->resized;

		say_of_node(f, "NodeResizeInfeasible");
		settle(f);
		assert_state(f, "c1", "3Gi", "NodeResizePending");
		cleanup_json json_t *claim = get_claim(f, "c1");
		assert_non_null(claim_said(claim, "FileSystemResizePending"));
		/* from the beginning: the volume in its pool, too */
		assert_int_equal(f->resized, grown + 1);
	}
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 3 * GIB);
	/* what is pending, or in progress, is not touched */
	int grown = f->resized;
	say_of_node(f, "NodeResizeInProgress");
	settle(f);
	assert_state(f, "c1", "3Gi", "NodeResizeInProgress");
	assert_int_equal(f->resized, grown);
	fixture_free(f);
}

/* Asked for less after that: nothing shrinks, and the node is asked for what the volume has. */
static void infeasible_then_less(void **state)
{
	struct fixture *f = grown_on_node();

	say_of_node(f, "NodeResizeInfeasible");
	ask_for(f, "c1", "2Gi");
	settle(f);
	assert_sizes(f, "c1", "3Gi", "1Gi");
	assert_state(f, "c1", "3Gi", "NodeResizePending");
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows),
		cmocka_unit_test(no_room),
		cmocka_unit_test(asks_for_less),
		cmocka_unit_test(less_comes_too_late),
		cmocka_unit_test(pool_does_not_answer),
		cmocka_unit_test(volume_of_another),
		cmocka_unit_test(pool_is_anothers),
		cmocka_unit_test(any_write_may_fail),
		cmocka_unit_test(infeasible_on_node),
		cmocka_unit_test(infeasible_then_less),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
