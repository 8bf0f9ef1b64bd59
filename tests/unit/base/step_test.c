/* SPDX-License-Identifier: Apache-2.0 */
#include "base/step.h"

#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

static int returns(void *arg)
{
	return *(int *)arg;
}

static int hangs(void *arg)
{
	for (;;)
		pause();
	return 0;
}

static int dies(void *arg)
{
	syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	return 0;
}

/* Takes the room that it is promised, and the kernel writes there. */
static int looks(void *arg)
{
	char much[40 << 10];
	struct stat st;

	for (size_t i = 0; i < sizeof(much); i += 512)
		((volatile char *)much)[i] = 1;
	return stat(arg, &st) < 0 ? -errno : 0;
}

/* Whether anything but 0, 1, 2 is open; its directory is moved. */
static int moves(void *arg)
{
	if (chdir("/") < 0)
		return -errno;
	return fcntl(*(int *)arg, F_GETFD) < 0 ? 0 : -EMFILE;
}

static int run(int (*fn)(void *), void *arg, int timeout_ms, struct error *err)
{
	return step_run(&(struct step){ fn, arg, "there", timeout_ms }, err);
}

static void what_comes_back(void **state)
{
	struct error err = ERROR_INIT;

	assert_int_equal(run(returns, &(int){ 0 }, 5000, &err), 0);
	assert_int_equal(run(returns, &(int){ -ESTALE }, 5000, &err), -ESTALE);
	assert_int_equal(run(returns, &(int){ -4000 }, 5000, &err), -4000);
	assert_string_equal(err.message, "");
	assert_int_equal(run(looks, (void *)"/", 5000, &err), 0);
	assert_int_equal(run(looks, (void *)"/nowhere", 5000, &err), -ENOENT);
	assert_int_equal(run(dies, NULL, 5000, &err), -EIO);
	assert_non_null(strstr(err.message, "killed"));
}

static void is_a_process_of_its_own(void **state)
{
	cleanup_close int fd = open("/dev/null", O_RDONLY);
	char before[4096], after[4096];

	assert_true(fd > 2);
	assert_non_null(getcwd(before, sizeof(before)));
	assert_int_equal(run(moves, &fd, 5000, NULL), 0);
	assert_non_null(getcwd(after, sizeof(after)));
	assert_string_equal(before, after);
	assert_true(fcntl(fd, F_GETFD) >= 0);
}

static void ends_in_time(void **state)
{
	int64_t before = clock_mono_ms(&clock_real);
	struct error err = ERROR_INIT;

	assert_int_equal(run(hangs, NULL, 200, &err), -ETIMEDOUT);
	assert_in_range(clock_mono_ms(&clock_real) - before, 200, 15000);
	assert_non_null(strstr(err.message, "within 200 ms"));
	/* it is gone: another one may try */
	assert_int_equal(run(hangs, NULL, 200, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.message, "within 200 ms"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1); /* all are reaped */
	assert_int_equal(errno, ECHILD);
}

static void on_signal(int sig)
{
}

/* A signal that breaks off the wait costs neither the answer nor its error. */
static void signals_do_not_matter(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal }, old;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec often = { .it_interval.tv_nsec = 200000, .it_value.tv_nsec = 200000 };
	timer_t timer;

	sigaction(SIGUSR1, &sa, &old);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(run(returns, &(int){ -ESTALE }, 20000, NULL), -ESTALE);
	timer_delete(timer);
	sigaction(SIGUSR1, &old, NULL);
}

static void *run_many(void *arg)
{
	intptr_t failed = 0;

	for (int i = 0; i < 50; i++) {
		if (run(returns, &(int){ -i }, 20000, NULL) != -i)
			failed++;
		if (run(looks, (void *)(i % 2 ? "/nowhere" : "/"), 20000, NULL) !=
		    (i % 2 ? -ENOENT : 0))
			failed++;
	}
	return (void *)failed;
}

static void threads(void **state)
{
	pthread_t t[4];
	void *failed;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, run_many, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		pthread_join(t[i], &failed);
		assert_null(failed);
	}
}

/* What hangs is refused by what it does and where; and not more than so many hang in all. */
static void bounded(void **state)
{
	struct error err = ERROR_INIT;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		pause();
		_exit(0);
	}
	hung_leave(pid, hangs, "there", NULL, 0);
	assert_int_equal(run(hangs, NULL, 200, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.message, "still hangs in the kernel, since 2"));
	assert_int_equal(run(returns, &(int){ -ESTALE }, 20000, NULL), -ESTALE);
	for (int i = 1; i < HUNG_MAX; i++)
		hung_leave(pid, hangs, "elsewhere", NULL, 0);
	assert_int_equal(run(returns, &(int){ -ESTALE }, 20000, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.message, "256 processes hang"));
	kill(pid, SIGKILL);
	while (hung_check(NULL, NULL, NULL) < 0)
		sched_yield();
	assert_int_equal(run(returns, &(int){ -ESTALE }, 20000, NULL), -ESTALE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_comes_back), cmocka_unit_test(is_a_process_of_its_own),
		cmocka_unit_test(ends_in_time),	   cmocka_unit_test(signals_do_not_matter),
		cmocka_unit_test(threads),	   cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
