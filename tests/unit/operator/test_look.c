/* SPDX-License-Identifier: Apache-2.0 */
/* How a look goes about many nodes: what it reads from where, what comes first, and when it ends. */
#include "fixture.h"
#include "operator/system.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

#define NODES 12

static void set_devices(struct fixture *f, const char *node, json_t *devices /* stolen */)
{
	patch(f, &KIND_STORAGENODE, node, json_pack("{s:{s:o}}", "spec", "devices", devices));
}

/* Nodes are listed only by a look that writes to a pool. */
static void reads_live_where_pools_are_written(void **state)
{
	struct fixture *f = fixture_online();

	f->node_lists = 0;
	look(f);
	patch(f, &KIND_STORAGENODE, "n1", json_pack("{s:{s:b}}", "spec", "maintenance", true));
	look(f);
	assert_int_equal(f->node_lists, 0);
	patch(f, &KIND_STORAGENODE, "n1", json_pack("{s:{s:b}}", "spec", "maintenance", false));
	for (int i = 1; i <= 3; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		set_devices(f, name, json_pack("[ss]", "/dev/vdb", "/dev/vdc"));
	}
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 2);
	assert_true(f->node_lists > 0);
	fixture_free(f);
}

/* What the cache still has, and the API has no more, is not given to a pool. */
static void stale_nodes_make_no_pool(void **state)
{
	struct fixture *f = fixture_online();

	for (int i = 1; i <= 3; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		set_devices(f, name, json_pack("[ss]", "/dev/vdb", "/dev/vdc"));
	}
	look(f);
	agents_act(f); /* all report the new device: a pool could be made */
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	kube_list(f->api, &KIND_STORAGENODE, "default", NULL, &f->stale_nodes, NULL, NULL);
	set_devices(f, "n3", json_pack("[s]", "/dev/vdb"));
	look(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	set_devices(f, "n3", json_pack("[ss]", "/dev/vdb", "/dev/vdc"));
	json_decref(TAKE_PTR(f->stale_nodes));
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 2);
	fixture_free(f);
}

static bool is_answered(struct fixture *f, const char *name)
{
	cleanup_json json_t *node = get(f, &KIND_STORAGENODE, name);

	return jint(node, "status", "observedGeneration") == jint(node, "metadata", "generation");
}

static int answered(struct fixture *f)
{
	int count = 0;

	for (int i = 1; i <= NODES; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		count += is_answered(f, name);
	}
	return count;
}

static void report_down(struct fixture *f, const char *name)
{
	cleanup_json json_t *p =
		json_pack("{s:{s:{s:{s:b}}}}", "status", "agent", "glusterd", "running", false);

	assert_int_equal(kube_patch(f->api, &KIND_STORAGENODE, "default", name, "status",
				    KUBE_PATCH_MERGE, p, NULL, NULL),
			 0);
}

static int degraded(struct fixture *f)
{
	int count = 0;

	for (int i = 1; i <= NODES; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		count += !phase_is(f, &KIND_STORAGENODE, name, "Ready");
	}
	return count;
}

/*
 * Writing takes long: what a person has written comes first, then what has changed, and the others have
 * their turn in the looks that follow.
 */
static void changes_come_first(void **state)
{
	struct fixture *f = fixture_new();
	int looks = 0, again;

	add_nodes(f, NODES, 1);
	settle(f);
	for (int i = 1; i <= NODES; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		report_down(f, name);
	}
	patch(f, &KIND_STORAGENODE, "n5", json_pack("{s:{s:b}}", "spec", "maintenance", true));
	f->write_ms = 200;
	memory_note_changed(f->op.memory, "n9");
	again = look(f);
	assert_true(is_answered(f, "n5"));
	assert_true(phase_is(f, &KIND_STORAGENODE, "n9", "Degraded"));
	assert_in_range(degraded(f), 2, NODES - 1);
	while (degraded(f) < NODES) {
		assert_in_range(again, 1, 1000);
		assert_true(++looks < 2 * NODES);
		f->now_ms += again;
		again = look(f);
	}
	fixture_free(f);
}

/* Each look writes something, however long that takes. */
static void slow_writes_still_end(void **state)
{
	struct fixture *f = fixture_new();

	add_nodes(f, NODES, 1);
	f->write_ms = 5000;
	for (int i = 0; i < 12 * NODES && answered(f) < NODES; i++) {
		int again = look(f);

		agents_act(f);
		f->now_ms += again;
	}
	assert_int_equal(answered(f), NODES);
	fixture_free(f);
}

/* A long look is followed by a rest, a change meanwhile by none that is longer. */
static void rests_between_looks(void **state)
{
	struct fixture *f = fixture_online();
	int again;

	patch(f, &KIND_STORAGENODE, "n1", json_pack("{s:{s:b}}", "spec", "maintenance", true));
	f->write_ms = 300;
	look(f);
	assert_true(is_answered(f, "n1"));
	patch(f, &KIND_STORAGENODE, "n2", json_pack("{s:{s:b}}", "spec", "maintenance", true));
	again = look(f);
	assert_false(is_answered(f, "n2"));
	assert_in_range(again, 1, 1000);
	f->now_ms += again;
	look(f);
	assert_true(is_answered(f, "n2"));
	fixture_free(f);
}

/* Machines are told how pools are reached, and which of them take volumes of pods. */
static void pools_are_told(void **state)
{
	struct fixture *f = fixture_online();
	const json_t *pool;

	look(f);
	pool = jget(f->told, "gold-1");
	assert_string_equal(jstr(pool, "driverVolumeType"), "GLUSTERFS");
	assert_true(str_has_suffix(jstr(pool, "export"), ":/gold-1"));
	assert_true(str_has_prefix(jstr(pool, "options"), "backup-volfile-servers="));
	assert_true(jbool(pool, "ephemeral"));
	/* all of it is promised */
	add_claim(f, "big", "gold", "10Gi");
	settle(f);
	look(f);
	assert_false(jbool(f->told, "gold-1", "ephemeral"));
	discard(f, &KIND_PVC, "big");
	settle(f);
	look(f);
	assert_true(jbool(f->told, "gold-1", "ephemeral"));
	/* it is to go */
	f->worker_rc = -ENOTCONN;
	discard(f, &KIND_STORAGEPOOL, "gold-1");
	look(f);
	assert_non_null(jget(f->told, "gold-1"));
	assert_false(jbool(f->told, "gold-1", "ephemeral"));
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_live_where_pools_are_written),
		cmocka_unit_test(stale_nodes_make_no_pool),
		cmocka_unit_test(changes_come_first),
		cmocka_unit_test(slow_writes_still_end),
		cmocka_unit_test(rests_between_looks),
		cmocka_unit_test(pools_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
