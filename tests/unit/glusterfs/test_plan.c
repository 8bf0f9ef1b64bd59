/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_world.h"

/* ---- types ------------------------------------------------------------------------------------ */

static void volume_types(void **state)
{
	struct volume_type t;
	struct error err = ERROR_INIT;
	assert_int_equal(volume_type_parse("replicate:3", &t, NULL), 0);
	assert_int_equal(t.bricks, 3);
	assert_int_equal(t.redundancy, 2);
	assert_int_equal(volume_type_parse("replica:2", &t, NULL), 0);
	assert_int_equal(volume_type_parse("disperse:4:2", &t, NULL), 0);
	assert_int_equal(t.bricks, 6);
	assert_int_equal(t.data, 4);
	assert_int_equal(volume_type_parse("arbiter", &t, NULL), 0);
	assert_int_equal(t.bricks, 3);
	assert_int_equal(volume_type_parse("none", &t, NULL), 0);
	assert_int_equal(t.bricks, 1);
	static const char *const bad[] = { "",
					   "replicate",
					   "replicate:",
					   "replicate:1",
					   "replicate:0",
					   "replicate:3x",
					   "replicate:65",
					   "replicate:-3",
					   "disperse:2",
					   "disperse:2:2",
					   "disperse:4:2:1",
					   "disperse:4:0",
					   "raid" };
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(volume_type_parse(bad[i], &t, &err), -22);
}

static void brick_ids(void **state)
{
	char a[16], b[16], c[16];
	brick_id("uid-1", "/dev/vdb", a);
	brick_id("uid-1", "/dev/vdb", b);
	brick_id("uid-2", "/dev/vdb", c);
	assert_string_equal(a, b);
	assert_string_not_equal(a, c);
	assert_int_equal(strlen(a), 14);
	assert_memory_equal(a, "b-", 2);
}

/* ---- making pools ----------------------------------------------------------------------------- */

static void three_nodes_two_devices(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 2);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);

	assert_int_equal(json_array_size(out.pools), 2);
	assert_string_equal(jstr(pool_at(&out, 0), "name"), "gold-1");
	assert_string_equal(jstr(pool_at(&out, 1), "name"), "gold-2");
	for (size_t i = 0; i < 2; i++) {
		json_t *p = pool_at(&out, i);
		assert_string_equal(jstr(p, "action"), "create");
		assert_int_equal(json_array_size(jget(p, "spec", "bricks")), 3);
		assert_true(uses(p, "n1", NULL) && uses(p, "n2", NULL) && uses(p, "n3", NULL));
	}
	const json_t *orders = jget(out.node_plans, "n2");
	assert_int_equal(json_array_size(jget(orders, "bricks")), 2);
	assert_int_equal(json_array_size(jget(orders, "peers")), 3);
	assert_int_equal(jint(orders, "epoch"), 7);
	assert_string_equal(jstr(orders, "cluster"), "gold");
	plan_output_done(&out);
}

/* ---- names that come again ------------------------------------------------------------------- */

static const char *next_name(long last, const json_t *nodes, const json_t *foreign,
			     struct plan_output *out)
{
	struct plan_input in = { .deployment = "gold",
				 .volume_type = "replicate:3",
				 .nodes = nodes,
				 .foreign_pools = foreign,
				 .last_number = last };
	assert_int_equal(glusterfs_plan(&in, out, NULL), 0);
	return jstr(pool_at(out, 0), "name");
}

static void number_is_not_given_twice(void **state)
{
	static const char *const by[] = { "plan", "agent" };
	struct plan_output out;

	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		cleanup_json json_t *nodes = cluster(3, 1);
		assert_string_equal(next_name(4, nodes, NULL, &out), "gold-5");
		plan_output_done(&out);
		/* what was written down is lost: nodes still speak of pools that were */
		jset(json_array_get(nodes, 1),
		     json_pack("[{s:s, s:s}, {s:s, s:s}]", "id", "b-x", "pool", "gold-7", "id",
			       "b-y", "pool", "gold-x-9"),
		     "status", by[i], "bricks");
		assert_string_equal(next_name(4, nodes, NULL, &out), "gold-8");
		plan_output_done(&out);
		cleanup_json json_t *foreign = json_pack("[s, s]", "gold-11", "silver-20");
		assert_string_equal(next_name(4, nodes, foreign, &out), "gold-12");
		plan_output_done(&out);
	}
}

static void set_uid(json_t *pools, const char *uid)
{
	jset(json_array_get(pools, 0), json_string(uid), "metadata", "uid");
}

/* What nodes report for the pool of that uid. */
static void report_for(json_t *nodes, const char *uid)
{
	size_t i;
	json_t *n, *b;

	json_array_foreach (nodes, i, n) {
		b = json_array_get(jget(n, "status", "plan", "bricks"), 0);
		jset(n,
		     json_pack("[{s:O, s:s, s:s*, s:O, s:b}]", "id", jget(b, "id"), "pool",
			       "gold-1", "poolUid", uid, "path", jget(b, "path"), "mounted", 1),
		     "status", "agent", "bricks");
	}
}

static const json_t *ordered(const struct plan_output *out)
{
	return json_array_get(jget(out->node_plans, "n1", "bricks"), 0);
}

/* Orders name the pool's uid; what is reported for one that had the name before is not its own. */
static void orders_and_reports_name_the_pool(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	assert_null(jget(ordered(&out), "poolUid")); /* it has none yet */
	take_plans(nodes, &out);
	plan_output_done(&out);

	set_uid(pools, "uid-b");
	json_object_del(json_array_get(pools, 0), "status");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(ordered(&out), "poolUid"), "uid-b");
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	take_plans(nodes, &out);
	plan_output_done(&out);

	/* the late report of the old one: nothing is prepared by it, and what it has goes first */
	report_for(nodes, "uid-a");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 0);
	const char *id = json_string_value(
		json_array_get(jget(out.node_plans, "n1", "release"), 0));
	assert_non_null(id);
	assert_string_equal(jstr(out.node_plans, "n1", "releasePools", id), "uid-a");
	plan_output_done(&out);

	report_for(nodes, "uid-b");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	assert_true(jbool(json_array_get(jget(pool_at(&out, 0), "spec", "bricks"), 0), "prepared"));
	plan_output_done(&out);
	/* an agent of before does not say for which */
	report_for(nodes, NULL);
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	plan_output_done(&out);
}

/* A pool that was declared anew and uses its bricks keeps them, whatever nodes had them for. */
static void bricks_in_use_stay(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	take_plans(nodes, &out);
	plan_output_done(&out);
	set_uid(pools, "uid-b");
	report_for(nodes, "uid-a");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);
	assert_string_equal(jstr(ordered(&out), "poolUid"), "uid-b");
	plan_output_done(&out);
}

static void too_few_nodes(void **state)
{
	cleanup_json json_t *nodes = cluster(2, 3);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 0);
	assert_non_null(finding_of(&out, "Unused"));
	plan_output_done(&out);
}

static void like_with_like(void **state)
{
	cleanup_json json_t *nodes = cluster(4, 0);
	static const int64_t sizes[] = { 100, 10, 10, 10 };
	for (size_t i = 0; i < 4; i++) {
		jset(json_array_get(nodes, i), json_integer(1), "spec", "glusterfs", "zone");
		node_add_device(json_array_get(nodes, i), "/dev/vdb", sizes[i] * GIB);
	}
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	assert_false(uses(pool_at(&out, 0), "n1", NULL));
	plan_output_done(&out);
}

static void zones_before_capacity(void **state)
{
	cleanup_json json_t *nodes = cluster(4, 1);
	static const int zones[] = { 1, 1, 2, 3 };
	for (size_t i = 0; i < 4; i++)
		jset(json_array_get(nodes, i), json_integer(zones[i]), "spec", "glusterfs", "zone");
	node_add_device(json_array_get(nodes, 1), "/dev/vdz", 50 * GIB);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_true(uses(pool_at(&out, 0), "n3", NULL) && uses(pool_at(&out, 0), "n4", NULL));
	plan_output_done(&out);
}

static void arbiter_is_small(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 0);
	node_add_device(json_array_get(nodes, 0), "/dev/vdb", GIB);
	node_add_device(json_array_get(nodes, 1), "/dev/vdb", 100 * GIB);
	node_add_device(json_array_get(nodes, 2), "/dev/vdb", 100 * GIB);
	struct plan_output out = plan("arbiter", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	json_t *bricks = jget(pool_at(&out, 0), "spec", "bricks");
	assert_false(jbool(json_array_get(bricks, 0), "arbiter"));
	assert_true(jbool(json_array_get(bricks, 2), "arbiter"));
	assert_string_equal(jstr(json_array_get(bricks, 2), "node"), "n1");
	plan_output_done(&out);
}

static void other_layouts(void **state)
{
	cleanup_json json_t *nodes = cluster(6, 1);
	struct plan_output out = plan("disperse:4:2", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	assert_int_equal(json_array_size(jget(pool_at(&out, 0), "spec", "bricks")), 6);
	plan_output_done(&out);
	out = plan("none", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 6);
	plan_output_done(&out);
}

static void directories_are_bricks(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 0);
	size_t i;
	json_t *n;
	json_array_foreach (nodes, i, n) {
		json_array_append_new(jget(n, "spec", "directories"), json_string("/srv/a"));
		json_array_append_new(jget(n, "status", "agent", "devices"),
				      json_pack("{s:s, s:s, s:I}", "directory", "/srv/a", "state",
						"Ready", "sizeBytes", GIB));
	}
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	const json_t *b = json_array_get(jget(pool_at(&out, 0), "spec", "bricks"), 0);
	cleanup_free char *path = xasprintf("/srv/a/.quartermaster-%s/brick", jstr(b, "id"));
	assert_string_equal(jstr(b, "path"), path);
	plan_output_done(&out);
}

/* What gluster, told to by force, would make is below a directory of the brick's own file system. */
static void device_bricks_have_a_level_of_their_own(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	const json_t *b = json_array_get(jget(pool_at(&out, 0), "spec", "bricks"), 0);
	const char *id = jstr(b, "id");
	cleanup_free char *path =
		xasprintf("/var/lib/quartermaster/bricks/%s/.quartermaster-%s/brick", id, id);

	assert_string_equal(jstr(b, "path"), path);
	plan_output_done(&out);
}

/* A store made before has its bricks at the root of their file systems: they stay where they are. */
static void old_paths_stay(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	json_t *b = json_array_get(jget(json_array_get(pools, 0), "spec", "bricks"), 0);
	cleanup_free char *path =
		xasprintf("/var/lib/quartermaster/bricks/%s/brick", jstr(b, "id"));
	const json_t *o;

	plan_output_done(&out);
	json_object_set_new(b, "path", json_string(path));
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	o = json_array_get(jget(out.node_plans, jstr(b, "node"), "bricks"), 0);
	assert_string_equal(jstr(o, "path"), path);
	plan_output_done(&out);
}

static void clusters_do_not_mix(void **state)
{
	cleanup_json json_t *nodes = cluster(4, 1);
	jset(json_array_get(nodes, 0), json_string("other"), "spec", "glusterfs", "cluster");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	assert_false(uses(pool_at(&out, 0), "n1", NULL));
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "peers")), 1);
	assert_int_equal(json_array_size(jget(out.node_plans, "n2", "peers")), 3);
	plan_output_done(&out);
}

static void unfit_is_explained(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	json_t *d = json_array_get(jget(json_array_get(nodes, 0), "status", "agent", "devices"), 0);
	jset(d, json_string("Refused"), "state");
	jset(d, json_string("/dev/vdb holds an ext4 file system"), "message");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 0);
	assert_non_null(strstr(jstr(finding_of(&out, "Refused"), "message"), "ext4"));
	plan_output_done(&out);
}

static void set_machine(json_t *node, const char *machine, const char *boot, const char *number)
{
	jset(node, json_string(machine), "status", "agent", "machineId");
	jset(node, json_string(boot), "status", "agent", "bootId");
	jset(json_array_get(jget(node, "status", "agent", "devices"), 0), json_string(number),
	     "majorMinor");
}

/* Nodes of one machine cannot share a device; machines from one image are still two machines. */
static void device_of_two_nodes(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	set_machine(json_array_get(nodes, 0), "m", "b1", "7:1");
	set_machine(json_array_get(nodes, 1), "m", "b1", "7:1");
	set_machine(json_array_get(nodes, 2), "m", "b1", "7:2");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 0);
	const json_t *f = finding_of(&out, "Refused");
	assert_string_equal(jstr(f, "node"), "n2");
	assert_non_null(strstr(jstr(f, "message"), "of node n1"));
	plan_output_done(&out);

	set_machine(json_array_get(nodes, 1), "m", "b2", "7:1");
	out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	plan_output_done(&out);
}

/* ---- editing ---------------------------------------------------------------------------------- */

static void removed_device_is_replaced(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	take_plans(nodes, &out);
	plan_output_done(&out);

	json_t *n1 = json_array_get(nodes, 0);
	node_add_device(n1, "/dev/vdx", 10 * GIB);
	node_drop_device(n1, "/dev/vdb");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	assert_true(uses(pool_at(&out, 0), "n1", "/dev/vdx"));
	assert_false(uses(pool_at(&out, 0), "n1", "/dev/vdb"));
	/* the old brick is still in the volume: both stay with the node */
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 2);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);

	cleanup_json json_t *moved = carried_out(&out);
	take_plans(nodes, &out);
	plan_output_done(&out);
	jset(json_array_get(moved, 0), json_integer(5), "status", "healPending");
	out = plan("replicate:3", nodes, moved, NULL);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);
	plan_output_done(&out);

	jset(json_array_get(moved, 0), json_integer(0), "status", "healPending");
	/* a status without bricks says nothing about this one */
	json_t *bricks = json_incref(jget(json_array_get(moved, 0), "status", "bricks"));
	jset(json_array_get(moved, 0), json_string("6a9f"), "status", "volumeId");
	jset(json_array_get(moved, 0), json_array(), "status", "bricks");
	out = plan("replicate:3", nodes, moved, NULL);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);
	plan_output_done(&out);

	jset(json_array_get(moved, 0), bricks, "status", "bricks");
	out = plan("replicate:3", nodes, moved, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 1);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 1);
	plan_output_done(&out);
}

/* A person deleted it, but no claim's volume lies in it, only what is kept: that needs its copies. */
static void deleted_pool_is_kept_whole(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *none = json_object();
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	json_t *n1 = json_array_get(nodes, 0), *pool = json_array_get(pools, 0);
	plan_output_done(&out);

	jset(pool, json_string("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp");
	node_drop_device(n1, "/dev/vdb");
	out = plan("replicate:3", nodes, pools, none);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep"); /* it is on its way already */
	assert_int_equal(json_array_size(out.steps), 0);
	plan_output_done(&out);
	node_add_device(n1, "/dev/vdx", 10 * GIB);
	out = plan("replicate:3", nodes, pools, none);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	assert_true(uses(pool_at(&out, 0), "n1", "/dev/vdx"));
	plan_output_done(&out);
	jset(pool, json_string("true"), "metadata", "annotations", POOL_ANNOTATION_EMPTY);
	out = plan("replicate:3", nodes, pools, none);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	plan_output_done(&out);
}

/* The disk of n1's brick is gone, and another one has its name: what its agent reports then. */
static void report_replaced(json_t *node, const char *brick, int64_t size)
{
	json_t *d = json_array_get(jget(node, "status", "agent", "devices"), 0);

	json_object_set_new(d, "state", json_string("Missing"));
	json_object_set_new(d, "reason", json_string("Replaced"));
	json_object_set_new(d, "brick", json_string(brick));
	json_object_set_new(d, "sizeBytes", json_integer(size));
	json_object_set_new(d, "lost", json_pack("[s]", brick));
}

static const json_t *brick_on(const json_t *pool, const char *node)
{
	size_t i;
	json_t *b;
	json_array_foreach (jget(pool, "spec", "bricks"), i, b)
		if (streq(jstr(b, "node"), node))
			return b;
	return NULL;
}

/*
 * The disk in its place becomes a brick of its own; the old one is held until its volume has let go
 * of it.
 */
static void replaced_disk_is_used(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *volumes = json_pack("{s:i}", "gold-1", 2);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	cleanup_free char *old = xstrdup(jstr(brick_on(pool_at(&out, 0), "n1"), "id"));
	json_t *n1 = json_array_get(nodes, 0);
	take_plans(nodes, &out);
	plan_output_done(&out);

	report_replaced(n1, old, 12 * GIB);
	out = plan("replicate:3", nodes, pools, volumes);
	const json_t *b = brick_on(pool_at(&out, 0), "n1");
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	assert_string_equal(jstr(b, "device"), "/dev/vdb");
	assert_string_not_equal(jstr(b, "id"), old);
	assert_non_null(strstr(jstr(b, "path"), jstr(b, "id")));
	assert_false(jbool(b, "prepared"));
	const json_t *orders = jget(out.node_plans, "n1", "bricks");
	assert_int_equal(json_array_size(orders), 2);
	assert_string_equal(jstr(json_array_get(orders, 0), "id"), jstr(b, "id"));
	assert_string_equal(jstr(json_array_get(orders, 1), "id"), old);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);

	/* the same again, now that the spec says so; and no third one while the volume follows */
	cleanup_free char *id = xstrdup(jstr(b, "id"));
	cleanup_json json_t *changed = json_deep_copy(pools);
	jset(json_array_get(changed, 0), json_deep_copy(jget(pool_at(&out, 0), "spec")), "spec");
	take_plans(nodes, &out);
	plan_output_done(&out);
	out = plan("replicate:3", nodes, changed, volumes);
	assert_string_equal(jstr(brick_on(pool_at(&out, 0), "n1"), "id"), id);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 2);

	/* the volume has followed: the old one is to go */
	cleanup_json json_t *done = carried_out(&out);
	take_plans(nodes, &out);
	plan_output_done(&out);
	json_t *d = json_array_get(jget(n1, "status", "agent", "devices"), 0);
	json_object_set_new(d, "state", json_string("Ready"));
	json_object_set_new(d, "reason", json_string(""));
	json_object_set_new(d, "brick", json_string(id));
	out = plan("replicate:3", nodes, done, volumes);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 1);
	assert_string_equal(json_string_value(json_array_get(
				    jget(out.node_plans, "n1", "release"), 0)),
			    old);
	plan_output_done(&out);
}

/* As the pool's status says: which of its bricks are known to be whole, and serve. */
static void set_whole(json_t *pool, const char *node, bool whole, bool online)
{
	size_t i;
	json_t *b;

	json_array_foreach (jget(pool, "status", "bricks"), i, b) {
		const json_t *s = brick_on(pool, node);

		if (!streq(jstr(b, "id"), jstr(s, "id")))
			continue;
		json_object_set_new(b, "whole", json_boolean(whole));
		json_object_set_new(b, "online", json_boolean(online));
	}
}

/*
 * A disk without a name of its own whose first sector is gone looks like a new one: it is not
 * formatted before the other copies are known to be whole, or a person gives up what is on it.
 */
static void unsure_disk_waits_for_whole_copies(void **state)
{
	static const struct {
		const char *type;
		bool whole[3], offline, lost, left, used;
	} cases[] = {
		{ "replicate:3", { false, false, false }, .used = false },
		{ "replicate:3", { true, false, false }, .used = false }, /* its own is no other */
		{ "replicate:3", { false, true, false }, .used = true },
		{ "replicate:3", { false, true, false }, .offline = true, .used = false },
		{ "replicate:3", { false, false, false }, .lost = true, .used = true },
		{ "replicate:3", { false, false, false }, .left = true, .used = true },
		{ "disperse:2:1", { true, true, false }, .used = false },
		{ "disperse:2:1", { true, true, true }, .used = true },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_json json_t *nodes = cluster(3, 1);
		cleanup_json json_t *volumes = json_pack("{s:i}", "gold-1", 2);
		struct plan_output out = plan(cases[i].type, nodes, NULL, NULL);
		cleanup_json json_t *pools = carried_out(&out);
		cleanup_free char *old = xstrdup(jstr(brick_on(pool_at(&out, 0), "n1"), "id"));
		json_t *n1 = json_array_get(nodes, 0), *pool = json_array_get(pools, 0);

		plan_output_done(&out);
		report_replaced(n1, old, 12 * GIB);
		json_object_set_new(json_array_get(jget(n1, "status", "agent", "devices"), 0),
				    "unsure", json_true());
		set_whole(pool, "n1", cases[i].whole[0], false);
		set_whole(pool, "n2", cases[i].whole[1], !cases[i].offline);
		set_whole(pool, "n3", cases[i].whole[2], true);
		if (cases[i].lost)
			jset(pool, json_pack("{s:s}", POOL_ANNOTATION_LOST, old), "metadata",
			     "annotations");
		if (cases[i].left)
			json_array_remove(jget(pool, "status", "bricks"), 0);
		out = plan(cases[i].type, nodes, pools, volumes);
		assert_int_equal(!streq(jstr(brick_on(pool_at(&out, 0), "n1"), "id"), old),
				 cases[i].used);
		if (!cases[i].used)
			assert_non_null(strstr(jstr(finding_of(&out, "Held"), "message"), old));
		plan_output_done(&out);
		/* nor is a pool given up for that because it seems to be empty */
		json_object_set_new(volumes, "gold-1", json_integer(0));
		out = plan(cases[i].type, nodes, pools, volumes);
		assert_string_equal(jstr(pool_at(&out, 0), "action"),
				    cases[i].used ? "change" : "keep");
		plan_output_done(&out);
	}
}

static void replaced_disk_is_not_used(void **state)
{
	static const struct {
		const char *type;
		int64_t size;
		bool maintenance, other;
	} cases[] = {
		{ "replicate:3", 5 * GIB, false, false }, /* too small */
		{ "replicate:3", 10 * GIB, true, false }, /* somebody works on it */
		{ "replicate:3", 10 * GIB, false, true }, /* said of another brick */
		{ "none", 10 * GIB, false, false }, /* the data was there, and nowhere else */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		cleanup_json json_t *nodes = cluster(3, 1);
		cleanup_json json_t *volumes =
			json_pack("{s:i, s:i, s:i}", "gold-1", 2, "gold-2", 2, "gold-3", 2);
		struct plan_output out = plan(cases[i].type, nodes, NULL, NULL);
		cleanup_json json_t *pools = carried_out(&out);
		cleanup_free char *old = xstrdup(jstr(brick_on(pool_at(&out, 0), "n1"), "id"));
		json_t *n1 = json_array_get(nodes, 0);

		plan_output_done(&out);
		report_replaced(n1, cases[i].other ? "b-000000000000" : old, cases[i].size);
		if (cases[i].maintenance)
			jset(n1, json_true(), "spec", "maintenance");
		out = plan(cases[i].type, nodes, pools, volumes);
		assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
		assert_string_equal(jstr(brick_on(pool_at(&out, 0), "n1"), "id"), old);
		plan_output_done(&out);
	}
}

/*
 * The name of a disk that was lost and given up: what is made on the next one has another id, again
 * and again.
 */
static void ids_of_lost_bricks_are_not_used_again(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *lost = json_array();
	json_t *d = json_array_get(jget(json_array_get(nodes, 0), "status", "agent", "devices"), 0);

	json_object_set(d, "lost", lost);
	for (int i = 0; i < 4; i++) {
		struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
		const char *id = jstr(brick_on(pool_at(&out, 0), "n1"), "id");
		size_t k;
		json_t *v;

		json_array_foreach (lost, k, v)
			assert_string_not_equal(json_string_value(v), id);
		json_array_append_new(lost, json_string(id));
		plan_output_done(&out);
	}
}

/* A pool that lost its label is no longer this deployment's; its bricks are data all the same. */
static void bricks_of_a_foreign_pool_stay(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *foreign = json_pack("[s]", jstr(pool_at(&out, 0), "name"));
	struct plan_input in = { .deployment = "gold",
				 .volume_type = "replicate:3",
				 .overcommit = 1,
				 .nodes = nodes,
				 .foreign_pools = foreign,
				 .epoch = 7 };
	take_plans(nodes, &out);
	plan_output_done(&out);

	assert_int_equal(glusterfs_plan(&in, &out, NULL), 0);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 1);
	plan_output_done(&out);
}

static void held_where_nothing_can_take_its_place(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *volumes = json_pack("{s:i}", "gold-1", 2);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	plan_output_done(&out);

	jset(json_array_get(nodes, 2), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	out = plan("replicate:3", nodes, pools, volumes);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_true(uses(pool_at(&out, 0), "n3", NULL));
	assert_non_null(strstr(jstr(finding_of(&out, "Held"), "message"), "add a device ("));
	plan_output_done(&out);

	/* a smaller device would make the pool smaller than what it promised */
	json_t *n4 = node_new("n4", 4);
	node_add_device(n4, "/dev/vdb", 5 * GIB);
	json_array_append_new(nodes, n4);
	out = plan("replicate:3", nodes, pools, volumes);
	assert_non_null(finding_of(&out, "Held"));
	plan_output_done(&out);

	node_add_device(n4, "/dev/vdc", 20 * GIB);
	out = plan("replicate:3", nodes, pools, volumes);
	assert_true(uses(pool_at(&out, 0), "n4", "/dev/vdc"));
	assert_false(uses(pool_at(&out, 0), "n3", NULL));
	plan_output_done(&out);

	/* also in a pool that a person deleted: its volumes live on */
	jset(json_array_get(pools, 0), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	out = plan("replicate:3", nodes, pools, volumes);
	assert_true(uses(pool_at(&out, 0), "n4", "/dev/vdc"));
	plan_output_done(&out);
}

static void empty_pool_is_given_up(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *none = json_object();
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	plan_output_done(&out);

	jset(json_array_get(nodes, 2), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	out = plan("replicate:3", nodes, pools, none);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "delete");
	plan_output_done(&out);
	out = plan("replicate:3", nodes, pools, NULL); /* not known to be empty */
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	plan_output_done(&out);
}

static void one_change_at_a_time(void **state)
{
	cleanup_json json_t *nodes = cluster(6, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *all = carried_out(&out), *pools = json_array();
	plan_output_done(&out);
	json_array_append(pools, json_array_get(all, 0));

	size_t i;
	json_t *b;
	cleanup_json json_t *before = json_deep_copy(pools);
	json_array_foreach (jget(json_array_get(before, 0), "spec", "bricks"), i, b) {
		if (i == 2)
			break;
		size_t k;
		json_t *n;
		json_array_foreach (nodes, k, n)
			if (streq(jstr(n, "metadata", "name"), jstr(b, "node")))
				jset(n, json_string("2026-01-01T00:00:00Z"), "metadata",
				     "deletionTimestamp");
	}
	out = plan("replicate:3", nodes, pools, NULL);
	int kept = 0;
	json_array_foreach (jget(json_array_get(before, 0), "spec", "bricks"), i, b)
		kept += uses(pool_at(&out, 0), jstr(b, "node"), NULL);
	assert_int_equal(kept, 2);

	/* the volume has not followed yet: the other stays for now */
	jset(json_array_get(pools, 0), json_incref(jget(pool_at(&out, 0), "spec")), "spec");
	plan_output_done(&out);
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_non_null(finding_of(&out, "Moving"));
	plan_output_done(&out);

	/* but for one that is offline the volume would wait for ever */
	json_array_foreach (jget(json_array_get(pools, 0), "status", "bricks"), i, b)
		json_object_set_new(b, "online", json_boolean(i == 2));
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	kept = 0;
	json_array_foreach (jget(json_array_get(before, 0), "spec", "bricks"), i, b)
		kept += uses(pool_at(&out, 0), jstr(b, "node"), NULL);
	assert_int_equal(kept, 1);
	plan_output_done(&out);
}

static void changed_address_is_refused(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	plan_output_done(&out);

	jset(json_array_get(nodes, 0), json_pack("[s]", "10.9.9.9"), "spec", "storageNetwork",
	     "ips");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(finding_of(&out, "AddressChanged"), "node"), "n1");
	assert_string_equal(jstr(out.node_plans, "n1", "address"), "10.0.1.1");
	plan_output_done(&out);

	/* without bricks it is accepted, and the old one leaves the trusted pool */
	jset(json_array_get(nodes, 0), json_string("gold"), "status", "plan", "cluster");
	out = plan("replicate:3", nodes, NULL, NULL);
	assert_null(finding_of(&out, "AddressChanged"));
	assert_string_equal(jstr(out.node_plans, "n1", "address"), "10.9.9.9");
	assert_string_equal(
		json_string_value(json_array_get(jget(out.node_plans, "n2", "detach"), 0)),
		"10.0.1.1");
	plan_output_done(&out);
}

static void equal_addresses(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	jset(json_array_get(nodes, 2), json_pack("[s]", "10.0.1.1"), "spec", "storageNetwork",
	     "ips");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 0);
	assert_string_equal(jstr(finding_of(&out, "AddressConflict"), "node"), "n3");
	plan_output_done(&out);
}

static void maintenance_stops_placement(void **state)
{
	cleanup_json json_t *nodes = cluster(4, 1);
	jset(json_array_get(nodes, 0), json_true(), "spec", "maintenance");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(out.pools), 1);
	assert_false(uses(pool_at(&out, 0), "n1", NULL));
	assert_true(jbool(out.node_plans, "n1", "maintenance"));
	plan_output_done(&out);
}

static void deleted_empty_node_is_detached(void **state)
{
	cleanup_json json_t *nodes = cluster(4, 1);
	size_t i;
	json_t *n;
	json_array_foreach (nodes, i, n)
		jset(n, json_string("gold"), "status", "plan", "cluster");
	jset(json_array_get(nodes, 3), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "peers")), 3);
	assert_string_equal(
		json_string_value(json_array_get(jget(out.node_plans, "n1", "detach"), 0)),
		"10.0.4.1");

	/* the object goes before the peer does */
	take_plans(nodes, &out);
	plan_output_done(&out);
	json_array_remove(nodes, 3);
	out = plan("replicate:3", nodes, NULL, NULL);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "detach")), 1);
	plan_output_done(&out);
}

static void wipe_only_before_it_is_prepared(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	json_t *n1 = json_array_get(nodes, 0);
	jset(n1, json_pack("[s]", "/dev/vdb"), "spec", "glusterfs", "wipe");
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	const json_t *b = json_array_get(jget(out.node_plans, "n1", "bricks"), 0);
	assert_true(jbool(b, "wipe"));

	cleanup_json json_t *pools = carried_out(&out);
	json_array_append_new(jget(n1, "status", "agent", "bricks"),
			      json_pack("{s:s, s:b}", "id", jstr(b, "id"), "mounted", 1));
	plan_output_done(&out);
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	assert_false(jbool(json_array_get(jget(out.node_plans, "n1", "bricks"), 0), "wipe"));
	plan_output_done(&out);
}

static void device_of_two_pools(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	cleanup_json json_t *pools = carried_out(&out);
	plan_output_done(&out);
	json_t *twin = json_deep_copy(json_array_get(pools, 0));
	jset(twin, json_string("gold-2"), "metadata", "name");
	json_object_del(twin, "status");
	json_array_append_new(pools, twin);
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_string_equal(jstr(pool_at(&out, 1), "action"), "delete");
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 1);
	plan_output_done(&out);
}

/* Three pools of one brick each, gold-1 on n1 and so on, of which the first is told to move to n2's device, too late. */
static json_t *late_move(json_t *nodes)
{
	struct plan_output out = plan("none", nodes, NULL, NULL);
	json_t *pools = carried_out(&out), *first = json_array_get(pools, 0),
	       *theirs = json_array_get(jget(json_array_get(pools, 1), "spec", "bricks"), 0);

	take_plans(nodes, &out);
	json_array_append_new(jget(json_array_get(nodes, 1), "status", "agent", "bricks"),
			      json_pack("{s:s, s:s, s:b}", "id", jstr(theirs, "id"), "pool",
					"gold-2", "mounted", 1));
	jset(first, json_pack("[o]", json_deep_copy(theirs)), "spec", "bricks");
	json_object_set_new(theirs, "prepared", json_true());
	plan_output_done(&out);
	return pools;
}

/*
 * The API can carry out a change of a pool after it was given up and the device went to another one: that
 * keeps what it has, whatever their numbers, and the first is not told that it may use it.
 */
static void device_stays_where_it_is(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1),
			    *volumes = json_pack("{s:i, s:i}", "gold-1", 1, "gold-2", 1);
	cleanup_json json_t *pools = late_move(nodes);
	struct plan_output out = plan("none", nodes, pools, volumes);
	const json_t *b = json_array_get(jget(out.node_plans, "n2", "bricks"), 0);

	assert_string_equal(jstr(b, "pool"), "gold-2");
	assert_string_equal(jstr(pool_at(&out, 1), "action"), "keep");
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "keep");
	assert_non_null(
		strstr(jstr(finding_of(&out, "Held"), "message"), "belongs to pool gold-2"));
	plan_output_done(&out);

	/* it goes elsewhere as soon as it can */
	node_add_device(json_array_get(nodes, 2), "/dev/vdx", 10 * GIB);
	out = plan("none", nodes, pools, volumes);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "change");
	assert_true(uses(pool_at(&out, 0), "n3", "/dev/vdx"));
	plan_output_done(&out);

	/* there are no volumes yet, but that of the second may be in the making */
	for (size_t i = 0; i < json_array_size(pools); i++)
		json_object_del(json_array_get(pools, i), "status");
	out = plan("none", nodes, pools, volumes);
	assert_string_equal(jstr(pool_at(&out, 0), "action"), "delete");
	assert_string_equal(jstr(pool_at(&out, 1), "action"), "keep");
	plan_output_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(volume_types),
		cmocka_unit_test(brick_ids),
		cmocka_unit_test(three_nodes_two_devices),
		cmocka_unit_test(number_is_not_given_twice),
		cmocka_unit_test(orders_and_reports_name_the_pool),
		cmocka_unit_test(bricks_in_use_stay),
		cmocka_unit_test(too_few_nodes),
		cmocka_unit_test(like_with_like),
		cmocka_unit_test(zones_before_capacity),
		cmocka_unit_test(arbiter_is_small),
		cmocka_unit_test(other_layouts),
		cmocka_unit_test(directories_are_bricks),
		cmocka_unit_test(clusters_do_not_mix),
		cmocka_unit_test(unfit_is_explained),
		cmocka_unit_test(device_of_two_nodes),
		cmocka_unit_test(removed_device_is_replaced),
		cmocka_unit_test(deleted_pool_is_kept_whole),
		cmocka_unit_test(replaced_disk_is_used),
		cmocka_unit_test(unsure_disk_waits_for_whole_copies),
		cmocka_unit_test(replaced_disk_is_not_used),
		cmocka_unit_test(ids_of_lost_bricks_are_not_used_again),
		cmocka_unit_test(bricks_of_a_foreign_pool_stay),
		cmocka_unit_test(held_where_nothing_can_take_its_place),
		cmocka_unit_test(empty_pool_is_given_up),
		cmocka_unit_test(one_change_at_a_time),
		cmocka_unit_test(changed_address_is_refused),
		cmocka_unit_test(equal_addresses),
		cmocka_unit_test(maintenance_stops_placement),
		cmocka_unit_test(deleted_empty_node_is_detached),
		cmocka_unit_test(wipe_only_before_it_is_prepared),
		cmocka_unit_test(device_bricks_have_a_level_of_their_own),
		cmocka_unit_test(old_paths_stay),
		cmocka_unit_test(device_of_two_pools),
		cmocka_unit_test(device_stays_where_it_is),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
