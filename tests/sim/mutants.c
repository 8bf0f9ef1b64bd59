/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include "base/log.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define TRIES 300 /* schedules until a mistake must have shown */

/* Each mistake must be caught; the schedule that catches it goes well without it. */
static void caught(enum mutant m)
{
	struct scenario *s = xcalloc(1, sizeof(*s));
	uint64_t seed = 0;

	do {
		scenario_run(s, ++seed, m, NULL);
	} while (!*s->world.sim.failure && seed < TRIES);
	if (!*s->world.sim.failure)
		fail_msg("\"%s\" was not caught by %d schedules", mutant_names[m], TRIES);
	print_message("\"%s\" was caught by seed %d: %s\n", mutant_names[m], (int)seed,
		      s->world.sim.failure);
	scenario_run(s, seed, MUTANT_NONE, NULL);
	assert_string_equal(s->world.sim.failure, "");
	free(s);
}

static void no_pool_annotation(void **state)
{
	caught(MUTANT_NO_POOL_ANNOTATION);
}

static void inexact_heal(void **state)
{
	caught(MUTANT_INEXACT_HEAL);
}

static void no_lease(void **state)
{
	caught(MUTANT_NO_LEASE);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pool_annotation),
		cmocka_unit_test(inexact_heal),
		cmocka_unit_test(no_lease),
		cmocka_unit_test(early_end),
		cmocka_unit_test(forgotten_half),
		cmocka_unit_test(deleted_half),
	};

	log_init("mutants", LOG_LEVEL_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
