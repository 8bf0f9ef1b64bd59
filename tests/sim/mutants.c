/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include "base/log.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TRIES 300 /* schedules until a mistake must have shown */

/*
 * Each mistake must be caught by the first TRIES schedules; the one that catches it goes well
 * without it. They are run from the one on with which the events begin that bring it to light.
 */
static void caught_from(enum mutant m, uint64_t first)
{
	struct scenario *s = xcalloc(1, sizeof(*s));
	uint64_t seed = first;

	for (int i = 0; i < TRIES; i++) {
		seed = 1 + (first - 1 + (uint64_t)i) % TRIES;
		scenario_run(s, seed, m, NULL);
		if (*s->world.sim.failure)
			break;
	}
	if (!*s->world.sim.failure)
		fail_msg("\"%s\" was not caught by %d schedules", mutant_names[m], TRIES);
	print_message("\"%s\" was caught by seed %d: %s\n", mutant_names[m], (int)seed,
		      s->world.sim.failure);
	scenario_run(s, seed, MUTANT_NONE, NULL);
	assert_string_equal(s->world.sim.failure, "");
	free(s);
}

static void caught(enum mutant m)
{
	caught_from(m, 12); /* of the ordinary ones */
}

static void no_pool_annotation(void **state)
{
	caught(MUTANT_NO_POOL_ANNOTATION);
}

static void inexact_heal(void **state)
{
	caught_from(MUTANT_INEXACT_HEAL, 19);
}

static void no_lease(void **state)
{
	caught_from(MUTANT_NO_LEASE, 97);
}

static void early_end(void **state)
{
	caught(MUTANT_EARLY_END);
}

static void forgotten_half(void **state)
{
	caught(MUTANT_FORGOTTEN_HALF);
}

static void deleted_half(void **state)
{
	caught(MUTANT_DELETED_HALF);
}

static void forced_brick(void **state)
{
	caught_from(MUTANT_FORCED_BRICK, 74);
}

static void cold_cache(void **state)
{
	caught_from(MUTANT_COLD_CACHE, 37);
}

static void all_whole(void **state)
{
	caught_from(MUTANT_ALL_WHOLE, 2);
}

static void names_alone(void **state)
{
	caught_from(MUTANT_NAMES_ALONE, 144);
}

static void blind_wipe(void **state)
{
	caught_from(MUTANT_BLIND_WIPE, 72);
}

static void same_place(void **state)
{
	caught_from(MUTANT_SAME_PLACE, 112);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pool_annotation),
		cmocka_unit_test(inexact_heal),
		cmocka_unit_test(no_lease),
		cmocka_unit_test(early_end),
		cmocka_unit_test(forgotten_half),
		cmocka_unit_test(deleted_half),
		cmocka_unit_test(forced_brick),
		cmocka_unit_test(cold_cache),
		cmocka_unit_test(all_whole),
		cmocka_unit_test(names_alone),
		cmocka_unit_test(blind_wipe),
		cmocka_unit_test(same_place),
	};

	log_init("mutants", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
