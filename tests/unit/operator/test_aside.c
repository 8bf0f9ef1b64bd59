/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * Objects that make no sense, and writes that the API refuses for one object alone: they are set
 * aside, with a word why, and everything else goes on as if they were not there.
 */
static void put_node(struct fixture *f, const char *name, json_t *spec)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *node = json_pack("{s:s, s:s, s:{s:s, s:s}, s:o}", "apiVersion",
					      "coreos.com/v1", "kind", "StorageNode", "metadata",
					      "name", name, "namespace", "default", "spec", spec);
	if (kube_create(f->api, &KIND_STORAGENODE, node, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

static void put_pool(struct fixture *f, const char *name, const char *label, const char *type,
		     json_t *bricks)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *pool = json_pack(
		"{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s, s:s, s:s, s:s, s:o}}", "apiVersion",
		"coreos.com/v1", "kind", "StoragePool", "metadata", "name", name, "namespace",
		"default", "labels", QM_LABEL_DEPLOYMENT, label, "spec", "type", "glusterfs",
		"deployment", label, "cluster", "gold", "volumeType", type, "bricks", bricks);
	if (kube_create(f->api, &KIND_STORAGEPOOL, pool, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

static json_t *all_of_n1(void)
{
	return json_pack("[{s:s, s:s, s:s, s:s}]", "id", "b-poison", "node", "n1", "address",
			 "10.0.0.1", "device", "/dev/vdb");
}

static bool is_aside(struct fixture *f, const struct kind *kind, const char *name)
{
	cleanup_json json_t *o = get(f, kind, name);
	return condition_is_true(jget(o, "status", "conditions"), "Quarantined");
}

static void all_is_well(struct fixture *f)
{
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold"),
			    *pool = get(f, &KIND_STORAGEPOOL, "gold-1");
	assert_string_equal(jstr(status, "spec", "status"), "ONLINE");
	assert_int_equal(json_array_size(jget(pool, "spec", "bricks")), 3);
	assert_null(jget(pool, "metadata", "deletionTimestamp"));
	for (int i = 1; i <= 3; i++) {
		cleanup_free char *name = xasprintf("n%d", i);
		cleanup_json json_t *node = get(f, &KIND_STORAGENODE, name);
		const json_t *bricks = jget(node, "status", "plan", "bricks");
		assert_string_equal(jstr(node, "status", "phase"), "Ready");
		assert_int_equal(json_array_size(bricks), 1);
		assert_string_equal(jstr(json_array_get(bricks, 0), "pool"), "gold-1");
	}
	add_claim(f, "after", "gold", "1Gi");
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "after", "Bound"));
}

static void absurd_node(void **state)
{
	struct fixture *f = fixture_online();
	put_node(f, "poison",
		 json_pack("{s:s, s:{s:[s]}, s:[s, s]}", "type", "glusterfs", "storageNetwork",
			   "ips", "10.0.0.9", "directories", "/srv", "/usr/bin"));
	settle(f);
	assert_true(is_aside(f, &KIND_STORAGENODE, "poison"));
	assert_null(jget(f->agents, "poison"));
	all_is_well(f);
	/* put right, it is used */
	patch(f, &KIND_STORAGENODE, "poison",
	      json_pack("{s:{s:[s]}}", "spec", "directories", "/srv"));
	settle(f);
	assert_false(is_aside(f, &KIND_STORAGENODE, "poison"));
	assert_non_null(jget(f->agents, "poison"));
	fixture_free(f);
}

/* One that has data is never treated as if it were not there. */
static void absurd_node_with_bricks(void **state)
{
	struct fixture *f = fixture_online();
	patch(f, &KIND_STORAGENODE, "n1", json_pack("{s:{s:[s]}}", "spec", "directories", "/etc"));
	settle(f);
	assert_false(is_aside(f, &KIND_STORAGENODE, "n1"));
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	cleanup_json json_t *node = get(f, &KIND_STORAGENODE, "n1");
	assert_true(json_array_size(jget(node, "status", "plan", "bricks")) > 0);
	fixture_free(f);
}

static void absurd_pools(void **state)
{
	struct fixture *f = fixture_online();
	put_pool(f, "aaa", "gold", "replicate:3", all_of_n1());
	put_pool(f, "gold-0", "gold", "replicate:3", all_of_n1());
	put_pool(f, "gold-99999999999999999999", "gold", "replicate:3", all_of_n1());
	put_pool(f, "gold-7", "gold", "raid:0", all_of_n1());
	put_pool(f, "gold-8", "gold", "replicate:3", json_array());
	f->agents_silent = true; /* theirs to refuse; here nobody prepares anything */
	settle(f);
	f->agents_silent = false;
	assert_true(is_aside(f, &KIND_STORAGEPOOL, "aaa"));
	assert_true(is_aside(f, &KIND_STORAGEPOOL, "gold-0"));
	assert_true(is_aside(f, &KIND_STORAGEPOOL, "gold-99999999999999999999"));
	assert_true(is_aside(f, &KIND_STORAGEPOOL, "gold-7"));
	assert_true(is_aside(f, &KIND_STORAGEPOOL, "gold-8"));
	assert_false(is_aside(f, &KIND_STORAGEPOOL, "gold-1"));
	fixture_free(f);
}

/* A name that somebody else has: the next one is taken. */
static void name_is_taken(void **state)
{
	struct fixture *f = fixture_new();
	put_pool(f, "gold-1", "silver", "replicate:3", all_of_n1());
	add_nodes(f, 3, 1);
	settle(f);
	cleanup_json json_t *pool = get(f, &KIND_STORAGEPOOL, "gold-2"),
			    *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_non_null(pool);
	assert_string_equal(jstr(status, "spec", "status"), "ONLINE");
	fixture_free(f);
}

/* The API refuses every write to one object. */
static void refused_node(void **state)
{
	struct fixture *f = fixture_online();
	f->refused = "n2";
	patch(f, &KIND_STORAGENODE, "n2", json_pack("{s:{s:b}}", "spec", "maintenance", 1));
	add_node(f, "n4", 4, 1);
	settle(f);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n4", "Ready"));
	cleanup_json json_t *status = get(f, &KIND_STORAGESTATUS, "gold");
	assert_non_null(strstr(jstr(status, "status", "message"), "n2"));
	f->refused = "n5";
	add_node(f, "n5", 5, 1); /* cannot even be adopted */
	add_node(f, "n6", 6, 1);
	settle(f);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n6", "Ready"));
	assert_null(jget(f->agents, "n5"));
	fixture_free(f);
}

static void refused_pool(void **state)
{
	struct fixture *f = fixture_online();
	add_node(f, "n4", 4, 1);
	add_node(f, "n5", 5, 1);
	add_node(f, "n6", 6, 1);
	f->refused = "gold-2";
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 1);
	assert_true(phase_is(f, &KIND_STORAGENODE, "n4", "Ready"));
	cleanup_json json_t *n4 = get(f, &KIND_STORAGENODE, "n4");
	assert_int_equal(json_array_size(jget(n4, "status", "plan", "bricks")), 0);
	f->refused = NULL;
	f->now_ms += 61000;
	settle(f);
	assert_int_equal(count(f, &KIND_STORAGEPOOL), 2);
	all_is_well(f);
	fixture_free(f);
}

static void put_volume(struct fixture *f, const char *name, const char *handle, const char *size)
{
	struct error err = ERROR_INIT;
	cleanup_json json_t *pv = json_pack(
		"{s:s, s:s, s:{s:s, s:{s:s, s:s}, s:[s]}, s:{s:{s:s}, s:[s], s:s, s:{s:s, s:s}}}",
		"apiVersion", "v1", "kind", "PersistentVolume", "metadata", "name", name, "labels",
		QM_LABEL_DEPLOYMENT, "gold", QM_LABEL_POOL, "gold-1", "finalizers",
		QM_FINALIZER_VOLUME, "spec", "capacity", "storage", size, "accessModes",
		"ReadWriteMany", "persistentVolumeReclaimPolicy", "Delete", "csi", "driver",
		QM_DRIVER, "volumeHandle", handle);
	if (kube_create(f->api, &KIND_PV, pv, NULL, &err) < 0)
		fail_msg("%s", err.message);
}

static void absurd_volumes(void **state)
{
	struct fixture *f = fixture_online();
	put_volume(f, "poison", "../../etc", "9223372036854775807");
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	all_is_well(f);
	discard(f, &KIND_PV, "poison");
	settle(f);
	cleanup_json json_t *pv = get(f, &KIND_PV, "poison");
	assert_null(pv);
	/* as if ours, and of sizes that no sum holds */
	put_volume(f, "big1", "v1.gold-1.d.big1", "9223372036854775807");
	put_volume(f, "big2", "v1.gold-1.d.big2", "9223372036854775807");
	settle(f);
	assert_true(ledger_promised(f->op.ledger, NULL) == INT64_MAX);
	add_claim(f, "late", "gold", "1Gi");
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "late", "Pending"));
	fixture_free(f);
}

static void class_of_nobody(void **state)
{
	struct fixture *f = fixture_online();
	struct error err = ERROR_INIT;
	cleanup_json json_t *class = json_pack(
		"{s:s, s:s, s:{s:s}, s:s, s:{s:s, s:s}}", "apiVersion", "storage.k8s.io/v1", "kind",
		"StorageClass", "metadata", "name", "lost", "provisioner", QM_DRIVER, "parameters",
		"deployment", "nowhere", "namespace", "default");
	/* one that nobody operates comes first by its name, and does not answer */
	cleanup_json json_t *nobody =
		json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s}}", "apiVersion", "coreos.com/v1",
			  "kind", "StorageStatus", "metadata", "name", "absurd", "namespace",
			  "default", "spec", "type", "glusterfs");
	assert_int_equal(kube_create(f->api, &KIND_STORAGESTATUS, nobody, NULL, &err), 0);
	assert_int_equal(kube_create(f->api, &KIND_STORAGECLASS, class, NULL, &err), 0);
	add_claim(f, "c1", "lost", "1Gi");
	settle(f);
	cleanup_json json_t *claim = get_claim(f, "c1");
	assert_non_null(strstr(object_annotation(claim, QM_ANNOTATION_WAITING), "nowhere"));
	all_is_well(f);
	fixture_free(f);
}

/* An annotation as if a pool had been chosen for it, of a name that no pool can have. */
static void absurd_choice(void **state)
{
	struct fixture *f = fixture_online();
	for (int deleted = 0; deleted < 2; deleted++) {
		const char *name = deleted ? "c2" : "c1";
		add_claim(f, name, "gold", "1Gi");
		patch(f, &KIND_PVC, name,
		      json_pack("{s:{s:{s:s}, s:[s]}}", "metadata", "annotations",
				QM_ANNOTATION_POOL, "../../x", "finalizers",
				QM_FINALIZER_PROVISION));
		if (deleted)
			discard(f, &KIND_PVC, name);
		settle(f);
	}
	cleanup_json json_t *c2 = get_claim(f, "c2");
	assert_true(phase_is(f, &KIND_PVC, "c1", "Bound"));
	assert_null(c2);
	all_is_well(f);
	fixture_free(f);
}

static void forge_choice(struct fixture *f, const char *name)
{
	patch(f, &KIND_PVC, name,
	      json_pack("{s:{s:{s:s}, s:[s]}}", "metadata", "annotations", QM_ANNOTATION_POOL,
			"gold-1", "finalizers", QM_FINALIZER_PROVISION));
}

/* As if a pool had been chosen for it that has no room, or that its class does not lead to: also not after a restart. */
static void forged_choice(void **state)
{
	struct fixture *f = fixture_online(); /* 10 GiB */
	add_storage_class(f, "others", json_object(),
			  json_pack("{s:s}", "provisioner", "example.com/other"));
	add_claim(f, "huge", "gold", "7Ei");
	add_claim(f, "foreign", "others", "8Gi");
	forge_choice(f, "huge");
	forge_choice(f, "foreign");
	settle(f);
	fixture_restart(f);
	settle(f);
	assert_true(waits(f, "huge", "has left is 10"));
	assert_int_equal(ledger_promised(f->op.ledger, NULL), 0);
	all_is_well(f);
	fixture_free(f);
}

/* What was promised stays promised over a restart, also while the volume is not made yet. */
static void true_choice(void **state)
{
	struct fixture *f = fixture_online(); /* 10 GiB */
	add_claim(f, "b", "gold", "6Gi");
	f->make_rc = -EIO;
	settle(f);
	add_claim(f, "a", "gold", "6Gi");
	fixture_restart(f);
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, "gold-1"), 6 * GIB);
	assert_true(waits(f, "a", "has left is 4"));
	f->make_rc = 0;
	settle(f);
	assert_true(phase_is(f, &KIND_PVC, "b", "Bound"));
	assert_true(phase_is(f, &KIND_PVC, "a", "Pending"));
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(absurd_node),	  cmocka_unit_test(absurd_node_with_bricks),
		cmocka_unit_test(absurd_pools),	  cmocka_unit_test(name_is_taken),
		cmocka_unit_test(refused_node),	  cmocka_unit_test(refused_pool),
		cmocka_unit_test(absurd_volumes), cmocka_unit_test(class_of_nobody),
		cmocka_unit_test(absurd_choice),  cmocka_unit_test(forged_choice),
		cmocka_unit_test(true_choice),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
