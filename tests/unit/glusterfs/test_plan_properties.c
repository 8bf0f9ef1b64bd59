/* SPDX-License-Identifier: Apache-2.0 */
#include "plan_world.h"

#include "base/rand.h"

/* ---- properties over random worlds ------------------------------------------------------------ */

static const char *const types[] = { "replicate:2",  "replicate:3",  "arbiter",
				     "disperse:2:1", "disperse:4:2", "none" };

static json_t *random_nodes(struct prng *r)
{
	json_t *nodes = json_array();
	int count = 1 + (int)prng_below(r, 9);
	for (int n = 1; n <= count; n++) {
		char name[16], device[16];
		snprintf(name, sizeof(name), "n%d", n);
		json_t *node = node_new(name, 1 + (int)prng_below(r, 4));
		int devices = (int)prng_below(r, 5);
		for (int d = 0; d < devices; d++) {
			snprintf(device, sizeof(device), "/dev/vd%c", 'b' + d);
			node_add_device(node, device, (1 + (int64_t)prng_below(r, 6)) * 10 * GIB);
		}
		json_array_append_new(nodes, node);
	}
	return nodes;
}

/* No two bricks of a set on one node, no device in two pools, as many bricks as the type says. */
static void check_sets(const struct plan_output *out, int bricks)
{
	size_t i, j, k, l;
	json_t *p, *q, *a, *b;
	json_array_foreach (out->pools, i, p) {
		assert_int_equal(json_array_size(jget(p, "spec", "bricks")), bricks);
		json_array_foreach (jget(p, "spec", "bricks"), k, a) {
			json_array_foreach (out->pools, j, q) {
				json_array_foreach (jget(q, "spec", "bricks"), l, b) {
					if (i == j && k == l)
						continue;
					assert_string_not_equal(jstr(a, "id"), jstr(b, "id"));
					if (i == j)
						assert_string_not_equal(jstr(a, "node"),
									jstr(b, "node"));
				}
			}
		}
	}
}

static int zones_of(const json_t *bricks)
{
	bool seen[8] = { false };
	int count = 0;
	size_t i;
	json_t *b;
	json_array_foreach ((json_t *)bricks, i, b) {
		int zone = (int)jint(b, "zone");
		count += !seen[zone];
		seen[zone] = true;
	}
	return count;
}

/* The first set sees every device: it has as many zones as there are, or as it has bricks. */
static void check_first_zones(const struct plan_output *out, const json_t *nodes, int bricks)
{
	bool seen[8] = { false };
	int zones = 0;
	size_t i;
	json_t *n;
	json_array_foreach ((json_t *)nodes, i, n) {
		int zone = (int)jint(n, "spec", "glusterfs", "zone");
		if (json_array_size(jget(n, "spec", "devices")) && !seen[zone]) {
			seen[zone] = true;
			zones++;
		}
	}
	if (json_array_size(out->pools))
		assert_int_equal(zones_of(jget(pool_at(out, 0), "spec", "bricks")),
				 zones < bricks ? zones : bricks);
}

static json_t *reversed(const json_t *array)
{
	json_t *r = json_array();
	for (size_t i = json_array_size(array); i-- > 0;)
		json_array_append(r, json_array_get(array, i));
	return r;
}

static void assert_same(const json_t *a, const json_t *b)
{
	cleanup_free char *x = json_text(a), *y = json_text(b);
	assert_string_equal(x, y);
}

static void properties_of_new_plans(void **state)
{
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct prng r = { seed };
		cleanup_json json_t *nodes = random_nodes(&r);
		const char *type = types[prng_below(&r, ARRAY_SIZE(types))];
		struct volume_type t;
		volume_type_parse(type, &t, NULL);

		struct plan_output a = plan(type, nodes, NULL, NULL);
		check_sets(&a, t.bricks);
		check_first_zones(&a, nodes, t.bricks);

		cleanup_json json_t *other_order = reversed(nodes);
		struct plan_output b = plan(type, other_order, NULL, NULL);
		assert_same(a.pools, b.pools);
		plan_output_done(&b);

		/* carried out, it is stable */
		cleanup_json json_t *pools = carried_out(&a);
		b = plan(type, nodes, pools, NULL);
		size_t i;
		json_t *p;
		json_array_foreach (b.pools, i, p)
			assert_string_equal(jstr(p, "action"), "keep");
		assert_int_equal(json_array_size(b.pools), json_array_size(a.pools));
		plan_output_done(&b);

		/* growth: what is there stays as it is */
		node_add_device(json_array_get(nodes, prng_below(&r, json_array_size(nodes))),
				"/dev/new", 30 * GIB);
		b = plan(type, nodes, pools, NULL);
		assert_true(json_array_size(b.pools) >= json_array_size(a.pools));
		json_array_foreach (a.pools, i, p)
			assert_same(jget(p, "spec", "bricks"),
				    jget(pool_at(&b, i), "spec", "bricks"));
		check_sets(&b, t.bricks);
		plan_output_done(&b);
		plan_output_done(&a);
	}
}

/* One random edit of a person. */
static void random_edit(struct prng *r, json_t *nodes)
{
	json_t *n = json_array_get(nodes, prng_below(r, json_array_size(nodes)));
	json_t *devices = jget(n, "spec", "devices");
	char device[32];
	switch (prng_below(r, 5)) {
	case 0:
		if (json_array_size(devices))
			json_array_remove(devices, prng_below(r, json_array_size(devices)));
		break;
	case 1:
		snprintf(device, sizeof(device), "/dev/x%u", (unsigned)prng_below(r, 1000));
		node_add_device(n, device, (1 + (int64_t)prng_below(r, 6)) * 10 * GIB);
		break;
	case 2:
		jset(n, json_string("2026-01-01T00:00:00Z"), "metadata", "deletionTimestamp");
		break;
	case 3:
		jset(n, json_boolean(prng_below(r, 2)), "spec", "maintenance");
		break;
	default:
		jset(n, json_integer(1 + (json_int_t)prng_below(r, 4)), "spec", "glusterfs",
		     "zone");
		break;
	}
}

static int common_bricks(const json_t *a, const json_t *b)
{
	int count = 0;
	size_t i, k;
	json_t *x, *y;
	json_array_foreach ((json_t *)a, i, x)
		json_array_foreach ((json_t *)b, k, y)
			count += streq(jstr(x, "id"), jstr(y, "id"));
	return count;
}

/* Over a history of edits: never fewer copies, never two at once, never a device in two pools. */
static void properties_of_edits(void **state)
{
	for (uint64_t seed = 1; seed <= 150; seed++) {
		struct prng r = { seed * 7919 };
		cleanup_json json_t *nodes = random_nodes(&r);
		const char *type = types[prng_below(&r, ARRAY_SIZE(types))];
		struct volume_type t;
		volume_type_parse(type, &t, NULL);
		json_t *pools = json_array();

		for (int round = 0; round < 12; round++) {
			struct plan_output out = plan(type, nodes, pools, NULL);
			size_t i;
			json_t *p;
			check_sets(&out, t.bricks);
			json_array_foreach (pools, i, p)
				assert_true(common_bricks(jget(p, "spec", "bricks"),
							  jget(pool_at(&out, i), "spec",
							       "bricks")) >= t.bricks - 1);
			json_decref(pools);
			pools = carried_out(&out);
			take_plans(nodes, &out);
			plan_output_done(&out);
			random_edit(&r, nodes);
		}
		json_decref(pools);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(properties_of_new_plans),
		cmocka_unit_test(properties_of_edits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
