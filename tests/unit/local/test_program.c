/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that run once, and the keeper: with this very test as the program that is kept. */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "local/keeper.h"
#include "local/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

enum { WAIT_MS = 20000 };

static struct program *child(const char *name)
{
	const char *argv[] = { "/proc/self/exe", "--child", name, NULL };

	return program_new(name, argv, NULL);
}

static int run_child(const char *name)
{
	struct error err = ERROR_INIT;

	if (program_lock(name, &err) < 0) {
		fprintf(stderr, "%s\n", err.message);
		return EXIT_FAILURE;
	}
	pause();
	return EXIT_SUCCESS;
}

/* The pid that holds the lock, once it is another than `not`; 0 when the time is over. */
static pid_t wait_pid(const char *name, pid_t not )
{
	int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;

	while (clock_mono_ms(&clock_real) < end) {
		pid_t pid = program_pid(name);

		if (pid != 0 && pid != not )
			return pid;
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	return 0;
}

static void test_runs_once(void **state)
{
	struct program *p = child("once");
	struct error err = ERROR_INIT;
	pid_t first, second, locked;

	(void)state;
	assert_int_equal(program_pid("once"), 0);
	assert_int_equal(program_start(p, &first, &err), 0);
	locked = wait_pid("once", 0);
	assert_int_equal(locked, first);
	assert_int_equal(program_start(p, &second, &err), 0);
	assert_int_equal(second, first);
	assert_int_equal(program_lock("once", &err), -EEXIST);
	assert_non_null(strstr(err.message, "runs already"));
	assert_int_equal(program_stop("once", WAIT_MS, &err), 0);
	assert_int_equal(program_pid("once"), 0);
	assert_int_equal(program_stop("once", WAIT_MS, &err), 0);
	program_free(p);
}

static void test_kept(void **state)
{
	struct keeper *k, *next;
	struct error err = ERROR_INIT;
	pid_t first, again;

	(void)state;
	assert_int_equal(keeper_start(&k, &err), 0);
	keeper_add(k, child("kept"));
	first = wait_pid("kept", 0);
	assert_int_not_equal(first, 0);
	kill(first, SIGKILL);
	again = wait_pid("kept", first);
	assert_int_not_equal(again, 0);
	/* the program outlives its keeper, and the next keeper takes it over instead of starting another */
	keeper_free(k);
	assert_int_equal(program_pid("kept"), again);
	assert_int_equal(keeper_start(&next, &err), 0);
	keeper_add(next, child("kept"));
	kill(again, SIGKILL);
	first = wait_pid("kept", again);
	assert_int_not_equal(first, 0);
	keeper_forget(next, "kept");
	assert_int_equal(program_stop("kept", WAIT_MS, &err), 0);
	keeper_free(next);
	assert_int_equal(program_pid("kept"), 0);
}

static void test_forbidden(void **state)
{
	struct program *p = child("forbidden");
	struct error err = ERROR_INIT;
	pid_t pid;

	(void)state;
	assert_int_equal(programs_forbid(&err), 0);
	assert_int_equal(program_start(p, &pid, &err), -ECANCELED);
	assert_non_null(strstr(err.message, "quartermaster up"));
	assert_int_equal(programs_allow(&err), 0);
	assert_int_equal(program_start(p, &pid, &err), 0);
	assert_int_equal(wait_pid("forbidden", 0), pid);
	assert_int_equal(program_stop("forbidden", WAIT_MS, &err), 0);
	program_free(p);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_once),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_forbidden),
	};
	char dir[] = "/tmp/qm-program.XXXXXX";
	int failed;

	if (argc == 3)
		return run_child(argv[2]);
	if (!mkdtemp(dir))
		return EXIT_FAILURE;
	setenv("QM_RUN_DIR", dir, 1);
	setenv("QM_STATE_DIR", dir, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_tree(dir, NULL);
	return failed;
}
