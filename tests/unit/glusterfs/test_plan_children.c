/* SPDX-License-Identifier: Apache-2.0 */
/* Whole volumes: bricks beside those of their pool. */
#include "plan_world.h"

static json_t *child_new(const char *name, const char *parent)
{
	return json_pack("{s:{s:s, s:i}, s:{s:s, s:s, s:s, s:s, s:I, s:[], s:{}}}", "metadata",
			 "name", name, "generation", 1, "spec", "type", "glusterfs", "deployment",
			 "gold", "volumeType", "replicate:3", "parent", parent, "sizeBytes",
			 (json_int_t)GIB, "bricks", "options");
}

static json_t *named(const struct plan_output *out, const char *name)
{
	size_t i;
	json_t *p;

	json_array_foreach (out->pools, i, p)
		if (streq(jstr(p, "name"), name))
			return p;
	fail_msg("no pool %s", name);
	return NULL;
}

static const json_t *brick_on(const json_t *bricks, const char *node)
{
	size_t i;
	json_t *b;

	json_array_foreach ((json_t *)bricks, i, b)
		if (streq(jstr(b, "node"), node))
			return b;
	return NULL;
}

static bool ordered(const struct plan_output *out, const char *node, const char *list,
		    const char *id)
{
	size_t i;
	json_t *b;

	json_array_foreach (jget(out->node_plans, node, list), i, b)
		if (streq(json_is_string(b) ? json_string_value(b) : jstr(b, "id"), id))
			return true;
	return false;
}

/* What agents report when they have done as they were told. */
static void do_as_told(json_t *nodes, const struct plan_output *out)
{
	size_t i, k;
	json_t *n, *b;

	take_plans(nodes, out);
	json_array_foreach (nodes, i, n) {
		json_t *bricks = json_array();

		json_array_foreach (jget(n, "status", "plan", "bricks"), k, b)
			json_array_append_new(bricks,
					      json_pack("{s:s, s:s, s:s, s:b}", "id", jstr(b, "id"),
							"pool", jstr(b, "pool"), "path",
							jstr(b, "path"), "mounted", 1));
		jset(n, bricks, "status", "agent", "bricks");
	}
}

/* A cluster with pool gold-1 and the whole volume pvc-1 in it, both made. */
static json_t *made(json_t *nodes)
{
	struct plan_output out = plan("replicate:3", nodes, NULL, NULL);
	json_t *pools = carried_out(&out);

	do_as_told(nodes, &out);
	plan_output_done(&out);
	json_array_append_new(pools, child_new("pvc-1", "gold-1"));
	for (int i = 0; i < 2; i++) {
		out = plan("replicate:3", nodes, pools, NULL);
		do_as_told(nodes, &out);
		json_decref(pools);
		pools = carried_out(&out);
		plan_output_done(&out);
	}
	return pools;
}

/* The parent's brick at the root of its file system: as stores made before have it. */
static void old_layout(json_t *pools)
{
	json_t *b;
	size_t i;

	json_array_foreach (jget(json_array_get(pools, 0), "spec", "bricks"), i, b)
		json_object_set_new(b, "path",
				    json_sprintf("/var/lib/quartermaster/bricks/%s/brick",
						 jstr(b, "id")));
	jset(json_array_get(pools, 1), json_array(), "spec", "bricks");
}

static void lies_beside(void **state)
{
	bool old = *state;
	cleanup_json json_t *nodes = cluster(3, 1);
	cleanup_json json_t *pools = made(nodes);
	if (old)
		old_layout(pools);
	struct plan_output out = plan("replicate:3", nodes, pools, NULL);
	const json_t *parent = jget(named(&out, "gold-1"), "spec", "bricks"),
		     *child = jget(named(&out, "pvc-1"), "spec", "bricks");

	assert_int_equal(json_array_size(out.pools), 2); /* no pool is made of it, and none twice */
	assert_string_equal(jstr(named(&out, "pvc-1"), "action"), old ? "change" : "keep");
	assert_int_equal(json_array_size(child), 3);
	for (int i = 1; i <= 3; i++) {
		char node[8];
		snprintf(node, sizeof(node), "n%d", i);
		const json_t *p = brick_on(parent, node), *c = brick_on(child, node);
		cleanup_free char *root =
			xasprintf("/var/lib/quartermaster/bricks/%s%s%s", jstr(p, "id"),
				  old ? "" : "/.quartermaster-", old ? "" : jstr(p, "id"));
		cleanup_free char *path =
			xasprintf("%s/.quartermaster-%s/brick", root, jstr(c, "id"));

		assert_string_equal(jstr(c, "directory"), root);
		assert_string_equal(jstr(c, "path"), path);
		assert_string_equal(jstr(c, "parent"), jstr(p, "id"));
		assert_string_equal(jstr(c, "address"), jstr(p, "address"));
		assert_true(jbool(c, "prepared"));
		assert_true(ordered(&out, node, "bricks", jstr(c, "id")));
	}
	plan_output_done(&out);
}

/* The parent's brick moves, the child's follows; the old one goes only after what lies beside it. */
static void follows_its_pool(void **state)
{
	cleanup_json json_t *nodes = cluster(4, 1), *pools = made(nodes);
	struct plan_output out = plan("replicate:3", nodes, pools, NULL);
	const char *leaving =
		brick_on(jget(named(&out, "gold-1"), "spec", "bricks"), "n1") ? "n1" : "n2";
	cleanup_free char *parent_id = xstrdup(
		jstr(brick_on(jget(named(&out, "gold-1"), "spec", "bricks"), leaving), "id"));
	cleanup_free char *child_id = xstrdup(
		jstr(brick_on(jget(named(&out, "pvc-1"), "spec", "bricks"), leaving), "id"));
	json_t *node = json_array_get(nodes, (size_t)(leaving[1] - '1'));
	plan_output_done(&out);

	jset(node, json_string("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp");
	out = plan("replicate:3", nodes, pools, NULL);
	assert_null(brick_on(jget(named(&out, "gold-1"), "spec", "bricks"), leaving));
	assert_null(brick_on(jget(named(&out, "pvc-1"), "spec", "bricks"), leaving));
	assert_string_equal(jstr(named(&out, "pvc-1"), "action"), "change");
	assert_true(ordered(&out, leaving, "bricks", parent_id)); /* until the volumes have left */
	assert_true(ordered(&out, leaving, "bricks", child_id));
	do_as_told(nodes, &out);

	/* the new ones are prepared; the parent's volume has left the old one, the child's not */
	cleanup_json json_t *between = carried_out(&out);
	plan_output_done(&out);
	out = plan("replicate:3", nodes, between, NULL);
	cleanup_json json_t *next = carried_out(&out);
	plan_output_done(&out);
	json_t *child = json_array_get(next, 1);
	assert_string_equal(jstr(child, "metadata", "name"), "pvc-1");
	json_array_append_new(jget(child, "status", "bricks"), json_pack("{s:s}", "id", child_id));
	out = plan("replicate:3", nodes, next, NULL);
	assert_true(ordered(&out, leaving, "bricks", child_id));
	assert_true(ordered(&out, leaving, "bricks", parent_id));
	assert_int_equal(json_array_size(jget(out.node_plans, leaving, "release")), 0);
	plan_output_done(&out);

	/* now it has, but the node has not removed it yet */
	json_array_remove(jget(child, "status", "bricks"),
			  json_array_size(jget(child, "status", "bricks")) - 1);
	out = plan("replicate:3", nodes, next, NULL);
	assert_true(ordered(&out, leaving, "release", child_id));
	assert_true(ordered(&out, leaving, "bricks", parent_id));
	do_as_told(nodes, &out);
	plan_output_done(&out);
	out = plan("replicate:3", nodes, next, NULL);
	assert_true(ordered(&out, leaving, "release", parent_id));
	plan_output_done(&out);
}

/* While a child is still following, its pool does not move another brick. */
static void one_at_a_time(void **state)
{
	cleanup_json json_t *nodes = cluster(5, 1), *pools = made(nodes);
	json_t *child = json_array_get(pools, 1);

	json_array_append_new(jget(child, "status", "bricks"), json_pack("{s:s}", "id", "b-old"));
	jset(json_array_get(nodes, 0), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	jset(json_array_get(nodes, 1), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	struct plan_output out = plan("replicate:3", nodes, pools, NULL);
	assert_string_equal(jstr(named(&out, "gold-1"), "action"), "keep");
	plan_output_done(&out);
}

/* A volume's name may come again, and its bricks have the same ids then: the old ones go first. */
static void name_that_comes_again(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	cleanup_json json_t *pools = made(nodes);
	json_t *n1 = json_array_get(nodes, 0), *b;
	cleanup_free char *id = xstrdup(
		jstr(brick_on(jget(json_array_get(pools, 1), "spec", "bricks"), "n1"), "id"));
	size_t i;

	json_array_foreach (jget(n1, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			json_object_set_new(b, "poolUid", json_string("uid-a"));
	json_array_set_new(pools, 1, child_new("pvc-1", "gold-1"));
	jset(json_array_get(pools, 1), json_string("uid-b"), "metadata", "uid");
	struct plan_output out = plan("replicate:3", nodes, pools, NULL);
	assert_non_null(brick_on(jget(named(&out, "pvc-1"), "spec", "bricks"), "n1"));
	b = (json_t *)brick_on(jget(named(&out, "pvc-1"), "spec", "bricks"), "n1");
	assert_false(jbool(b, "prepared"));
	assert_false(ordered(&out, "n1", "bricks", id));
	assert_true(ordered(&out, "n1", "release", id));
	assert_string_equal(jstr(out.node_plans, "n1", "releasePools", id), "uid-a");
	/* the node has let go of it */
	json_array_foreach (jget(n1, "status", "agent", "bricks"), i, b)
		if (streq(jstr(b, "id"), id))
			break;
	json_array_remove(jget(n1, "status", "agent", "bricks"), i);
	take_plans(nodes, &out);
	plan_output_done(&out);
	out = plan("replicate:3", nodes, pools, NULL);
	assert_true(ordered(&out, "n1", "bricks", id));
	assert_false(ordered(&out, "n1", "release", id));
	plan_output_done(&out);
}

static void odd_ones_stay(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *none = json_object(), *pools = made(nodes);
	json_t *child = json_array_get(pools, 1);

	/* its pool is not empty, whatever the count of volumes says */
	jset(json_array_get(nodes, 2), json_string("2026-01-01T00:00:00Z"), "metadata",
	     "deletionTimestamp");
	struct plan_output out = plan("replicate:3", nodes, pools, none);
	assert_string_equal(jstr(named(&out, "gold-1"), "action"), "keep");
	plan_output_done(&out);

	jset(child, json_string("gold-9"), "spec", "parent");
	out = plan("replicate:3", nodes, pools, none);
	assert_non_null(finding_of(&out, "Odd"));
	assert_string_equal(jstr(named(&out, "pvc-1"), "action"), "keep");
	assert_int_equal(json_array_size(jget(named(&out, "pvc-1"), "spec", "bricks")), 3);
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "bricks")), 2);
	plan_output_done(&out);
}

/* The disk below both is replaced under its name: both get new bricks, and the old ones wait. */
static void follows_onto_another_disk(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1);
	cleanup_json json_t *pools = made(nodes);
	cleanup_free char *old = xstrdup(
		jstr(brick_on(jget(json_array_get(pools, 0), "spec", "bricks"), "n1"), "id"));
	cleanup_free char *beside = xstrdup(
		jstr(brick_on(jget(json_array_get(pools, 1), "spec", "bricks"), "n1"), "id"));
	json_t *report = json_array_get(
		jget(json_array_get(nodes, 0), "status", "agent", "devices"), 0);

	json_object_update_new(report, json_pack("{s:s, s:s, s:s, s:[s]}", "state", "Missing",
						 "reason", "Replaced", "brick", old, "lost", old));
	struct plan_output out = plan("replicate:3", nodes, pools, NULL);
	const json_t *parent = brick_on(jget(named(&out, "gold-1"), "spec", "bricks"), "n1"),
		     *child = brick_on(jget(named(&out, "pvc-1"), "spec", "bricks"), "n1");
	assert_string_not_equal(jstr(parent, "id"), old);
	assert_string_not_equal(jstr(child, "id"), beside);
	assert_string_equal(jstr(child, "parent"), jstr(parent, "id"));
	assert_true(ordered(&out, "n1", "bricks", jstr(parent, "id")));
	assert_true(ordered(&out, "n1", "bricks", jstr(child, "id")));
	assert_true(ordered(&out, "n1", "bricks", old));
	assert_true(ordered(&out, "n1", "bricks", beside));
	assert_int_equal(json_array_size(jget(out.node_plans, "n1", "release")), 0);
	plan_output_done(&out);
}

/* A disk that may be the brick's own, damaged, is used only when its volumes can spare it, too. */
static void unsure_disk_waits_for_the_volumes_on_it(void **state)
{
	cleanup_json json_t *nodes = cluster(3, 1), *pools = made(nodes);
	json_t *pool = json_array_get(pools, 0), *child = json_array_get(pools, 1), *b;
	const json_t *old = brick_on(jget(pool, "spec", "bricks"), "n1"),
		     *beside = brick_on(jget(child, "spec", "bricks"), "n1");
	struct plan_output out;
	size_t i;

	jset(json_array_get(nodes, 0),
	     json_pack("[{s:s, s:s, s:s, s:s, s:I, s:b}]", "device", jstr(old, "device"), "state",
		       "Missing", "reason", "Replaced", "brick", jstr(old, "id"), "sizeBytes",
		       (json_int_t)(10 * GIB), "unsure", 1),
	     "status", "agent", "devices");
	json_array_foreach (jget(pool, "status", "bricks"), i, b)
		json_object_set_new(b, "whole", json_true());
	out = plan("replicate:3", nodes, pools, NULL);
	assert_non_null(strstr(jstr(finding_of(&out, "Held"), "message"), jstr(beside, "id")));
	assert_non_null(strstr(jstr(finding_of(&out, "Held"), "message"), "pvc-1"));
	assert_string_equal(jstr(brick_on(jget(named(&out, "gold-1"), "spec", "bricks"), "n1"),
				 "id"),
			    jstr(old, "id"));
	plan_output_done(&out);
	json_array_foreach (jget(child, "status", "bricks"), i, b)
		json_object_set_new(b, "whole", json_true());
	out = plan("replicate:3", nodes, pools, NULL);
	assert_string_not_equal(jstr(brick_on(jget(named(&out, "gold-1"), "spec", "bricks"), "n1"),
				     "id"),
				jstr(old, "id"));
	plan_output_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unsure_disk_waits_for_the_volumes_on_it),
		cmocka_unit_test(lies_beside),
		cmocka_unit_test_prestate(lies_beside, (void *)1),
		cmocka_unit_test(follows_its_pool),
		cmocka_unit_test(follows_onto_another_disk),
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(name_that_comes_again),
		cmocka_unit_test(odd_ones_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
