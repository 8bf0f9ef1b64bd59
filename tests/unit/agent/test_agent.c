/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent decides without a machine: what it follows, what it keeps, and what is worth a report. */
#include "agent/state.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
	json_t *value = json_loads(text, 0, NULL);

	assert_non_null(value);
	return value;
}

/* The pools of the plan and of what is still here of a former one, each once. */
static void follows_pools_of_its_bricks(void **state)
{
	cleanup_json json_t *node = parse("{\"status\": {\"plan\": {\"bricks\": [{\"pool\": "
					  "\"a\"}, {\"pool\": \"b\"}, {\"pool\": \"a\"}]},"
					  " \"agent\": {\"bricks\": [{\"pool\": \"b\"}, {\"pool\": "
					  "\"old\"}, {\"pool\": \"\"}, {}]}}}");
	cleanup_json json_t *bare = parse("{}");
	struct strv pools = { 0 }, none = { 0 };

	follow_pools(node, &pools);
	assert_int_equal(pools.count, 3);
	assert_string_equal(pools.items[0], "a");
	assert_string_equal(pools.items[1], "b");
	assert_string_equal(pools.items[2], "old");
	follow_pools(bare, &none);
	assert_int_equal(none.count, 0);
	strv_done(&pools);
	strv_done(&none);
}

static void plan_names_the_deployment(void **state)
{
	cleanup_json json_t *planned =
		parse("{\"metadata\": {\"labels\": {\"" LABEL_DEPLOYMENT "\": \"label\"}},"
		      " \"status\": {\"plan\": {\"deployment\": \"plan\"}}}");
	cleanup_json json_t *labelled =
		parse("{\"metadata\": {\"labels\": {\"" LABEL_DEPLOYMENT "\": \"label\"}}}");
	cleanup_json json_t *bare = parse("{\"metadata\": {}}");

	assert_string_equal(agent_deployment(planned), "plan");
	assert_string_equal(agent_deployment(labelled), "label");
	assert_string_equal(agent_deployment(bare), "default");
}

/* Of a volume only what its limit is made from is kept; of a pool the annotations, which are orders. */
static void keeps_what_it_reads(void **state)
{
	cleanup_json json_t *pv = parse(
		"{\"metadata\": {\"name\": \"v\", \"uid\": \"u\", \"resourceVersion\": \"7\", "
		"\"labels\": {\"l\": \"1\"},"
		" \"annotations\": {\"a\": \"1\"}, \"finalizers\": [\"f\"]},"
		" \"spec\": {\"capacity\": {\"storage\": \"1Gi\"}, \"claimRef\": {\"name\": \"c\"},"
		" \"csi\": {\"driver\": \"d\", \"volumeAttributes\": {\"name\": \"subvol/v\", "
		"\"export\": \"e\"}}},"
		" \"status\": {\"phase\": \"Bound\"}}");
	cleanup_json json_t *kept =
		parse("{\"metadata\": {\"name\": \"v\", \"uid\": \"u\", \"resourceVersion\": "
		      "\"7\", \"labels\": {\"l\": \"1\"}},"
		      " \"spec\": {\"capacity\": {\"storage\": \"1Gi\"},"
		      " \"csi\": {\"volumeAttributes\": {\"name\": \"subvol/v\"}}}}");
	cleanup_json json_t *pool =
		parse("{\"metadata\": {\"annotations\": {\"a\": \"1\"}, \"managedFields\": []}, "
		      "\"status\": {\"conditions\": []}}");
	cleanup_json json_t *node = parse("{\"metadata\": {\"annotations\": {\"a\": \"1\"}}}");

	agent_project(&KIND_PV, pv);
	assert_true(json_equal(pv, kept));
	agent_project(&KIND_STORAGEPOOL, pool);
	assert_non_null(jget(pool, "metadata", "annotations"));
	assert_null(jget(pool, "metadata", "managedFields"));
	assert_null(jget(pool, "status", "conditions"));
	agent_project(&KIND_STORAGENODE, node);
	assert_null(jget(node, "metadata", "annotations"));
}

static bool same(const char *a, const char *b, bool *ret_numbers)
{
	cleanup_json json_t *x = parse(a), *y = parse(b);

	return report_same(x, y, ret_numbers);
}

/* Numbers that always move are no news by themselves; all else is. */
static void numbers_are_no_news(void **state)
{
	bool numbers;

	assert_true(same("{\"bricks\": [{\"id\": \"1\", \"usedBytes\": 5}]}",
			 "{\"bricks\": [{\"id\": \"1\", \"usedBytes\": 5}]}", &numbers));
	assert_false(numbers);
	assert_true(same("{\"bricks\": [{\"id\": \"1\", \"usedBytes\": 5}]}",
			 "{\"bricks\": [{\"id\": \"1\", \"usedBytes\": 6}]}", &numbers));
	assert_true(numbers);
	assert_false(same("{\"bricks\": [{\"id\": \"1\", \"online\": true}]}",
			  "{\"bricks\": [{\"id\": \"1\", \"online\": false}]}", &numbers));
	assert_false(same("{\"bricks\": [{\"id\": \"1\"}]}", "{\"bricks\": []}", &numbers));
	assert_false(same("{\"bricks\": [{\"id\": \"1\"}]}",
			  "{\"bricks\": [{\"id\": \"1\", \"pool\": \"p\"}]}", &numbers));
	assert_false(same("{\"glusterd\": {\"pid\": 1}}", "{}", &numbers));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(follows_pools_of_its_bricks),
		cmocka_unit_test(plan_names_the_deployment),
		cmocka_unit_test(keeps_what_it_reads),
		cmocka_unit_test(numbers_are_no_news),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
