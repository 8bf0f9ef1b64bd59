/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include "base/log.h"
#include "base/mem.h"

#include <getopt.h>
#include <time.h>

#define TRACE_LINES 300

struct totals {
	uint64_t calls, reconciles, crashes, faults[FAULT_COUNT];
	int64_t slowest_ms;
	uint64_t slowest_seed;
};

static void usage(void)
{
	puts("usage: sim [--seeds N] [--seed BASE] [--step N] [--trace] [--mutant N]\n"
	     "Runs N seeded schedules from BASE on; without --seeds, the one of that seed.\n"
	     "Even seeds are of clusters: --seed 2 --step 2 runs those alone. Of each 36, the first twelve\n"
	     "are of machines and disks; the layout follows from the seed, too.\n"
	     "A schedule that fails is run again with its trace. QM_LONG=1 runs 16 times as many.");
}

/* The end of a long text. */
static void print_tail(const char *text, size_t len, int lines)
{
	const char *at = text + len;

	while (at > text && lines > 0) {
		at--;
		if (at > text && at[-1] == '\n')
			lines--;
	}
	fputs(at, stdout);
}

static void explain(uint64_t seed, enum mutant mutant)
{
	struct scenario *s = xcalloc(1, sizeof(*s));
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	scenario_run(s, seed, mutant, f);
	fclose(f);
	print_tail(text, len, TRACE_LINES);
	printf("seed %llu failed: %s\nreplay it with: sim --seed %llu --trace\n",
	       (unsigned long long)seed, s->world.sim.failure, (unsigned long long)seed);
	free(text);
	free(s);
}

static void add(struct totals *t, const struct scenario *s)
{
	t->calls += s->world.calls;
	t->reconciles += s->world.reconciles;
	t->crashes += s->world.crashes;
	for (int f = 0; f < FAULT_COUNT; f++)
		t->faults[f] += s->world.faults[f];
	if (s->settled_ms > t->slowest_ms) {
		t->slowest_ms = s->settled_ms;
		t->slowest_seed = s->seed;
	}
}

static int run_many(uint64_t base, uint64_t count, uint64_t step, enum mutant mutant)
{
	struct scenario *s = xcalloc(1, sizeof(*s));
	struct totals t = { 0 };
	int failed = 0;

	for (uint64_t i = 0; i < count && failed < 5; i++) {
		scenario_run(s, base + i * step, mutant, NULL);
		add(&t, s);
		if (!*s->world.sim.failure)
			continue;
		failed++;
		explain(base + i * step, mutant);
	}
	printf("%llu schedules from seed %llu: %d failed; %llu calls, %llu reconciles, %llu "
	       "deaths\n",
	       (unsigned long long)count, (unsigned long long)base, failed,
	       (unsigned long long)t.calls, (unsigned long long)t.reconciles,
	       (unsigned long long)t.crashes);
	for (int f = 1; f < FAULT_COUNT; f++)
		printf("%s%s %llu", f > 1 ? ", " : "faults: ", fault_names[f],
		       (unsigned long long)t.faults[f]);
	printf("\nslowest to settle: seed %llu, %lld s\n", (unsigned long long)t.slowest_seed,
	       (long long)t.slowest_ms / 1000);
	free(s);
	return failed > 0;
}

static int run_one(uint64_t seed, enum mutant mutant, bool trace)
{
	struct scenario *s = xcalloc(1, sizeof(*s));
	int failed;

	scenario_run(s, seed, mutant, trace ? stdout : NULL);
	failed = *s->world.sim.failure != 0;
	printf("seed %llu: %s\n", (unsigned long long)seed,
	       failed ? s->world.sim.failure : "settled");
	free(s);
	return failed;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "seeds", required_argument, NULL, 'n' },
						 { "seed", required_argument, NULL, 's' },
						 { "step", required_argument, NULL, 'e' },
						 { "trace", no_argument, NULL, 't' },
						 { "mutant", required_argument, NULL, 'm' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	uint64_t base = 1, count = 0, step = 1;
	enum mutant mutant = MUTANT_NONE;
	bool trace = false, one = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'n')
			count = strtoull(optarg, NULL, 10);
		else if (c == 's')
			base = strtoull(optarg, NULL, 10), one = true;
		else if (c == 'e')
			step = strtoull(optarg, NULL, 10);
		else if (c == 't')
			trace = true;
		else if (c == 'm')
			mutant = (enum mutant)atoi(optarg);
		else
			return usage(), c == 'h' ? 0 : 2;
	}
	log_init("sim", LOG_LEVEL_ERROR);
	if (one && count == 0)
		return run_one(base, mutant, trace);
	if (count == 0)
		count = 1000;
	return run_many(base, getenv("QM_LONG") ? count * 16 : count, step, mutant);
}
