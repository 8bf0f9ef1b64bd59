/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes connect and disconnect volumes of one export: one mount, never under a user. */
#include "rig.h"

#include "base/mem.h"
#include "base/rand.h"
#include "core/lock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PROCESSES 6
#define ROUNDS 40

/* While a process has a path, the mount must be there. */
static int hammer(struct rig *rig, unsigned self)
{
	struct prng random = { .state = self };
	char id[20], json[200];
	int r;

	for (int i = 0; i < ROUNDS; i++) {
		/* some ids are shared by two processes, as different consumers */
		snprintf(id, sizeof(id), "v%llu", (unsigned long long)prng_below(&random, 3));
		snprintf(json, sizeof(json),
			 "{\"driverVolumeType\":\"NFS\",\"consumer\":\"p%u\",\"data\":{\"export\":"
			 "\"h:/e\","
			 "\"name\":\"%s\",\"volumeId\":\"%s\"}}",
			 self, id, id);
		cleanup_free char *path = rig_connect(rig, json, &r), *found = NULL;
		char consumer[20];

		if (r < 0 || rig->fake->mount_count != 1)
			return 1;
		if (hostvol_get_device_path(rig->h, id, &found, NULL) < 0 || !streq(path, found))
			return 2;
		snprintf(consumer, sizeof(consumer), "p%u", self);
		if (rig_disconnect(rig, id, consumer, 0) != 0)
			return 3;
	}
	return 0;
}

static void test_processes(void **state)
{
	struct rig *rig = *state;
	pid_t pids[PROCESSES];
	int status;

	for (unsigned i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(hammer(rig, i + 1));
	}
	for (unsigned i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
	assert_int_equal(rig->fake->mounts_made, rig->fake->unmounts_made);
	assert_true(rig->fake->mounts_made >= 1);
	assert_true(rig->fake->mounts_made < PROCESSES * ROUNDS); /* some did share */
}

static void *hammer_thread(void *arg)
{
	static atomic_uint next = 100;

	return (void *)(intptr_t)hammer(arg, atomic_fetch_add(&next, 1));
}

/* Threads share one handle. */
static void test_threads(void **state)
{
	struct rig *rig = *state;
	pthread_t threads[4];
	void *result;

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer_thread, rig), 0);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		pthread_join(threads[i], &result);
		assert_null(result);
	}
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
}

#define CALLERS (LOCK_WAITERS_MAX + 4)

struct caller {
	struct rig *rig;
	pthread_t thread;
	atomic_int *ended;
	int result;
};

static void *take_lock(void *arg)
{
	struct caller *caller = arg;
	struct call c = call_begin(caller->rig->h);
	cleanup_lock struct lock l = LOCK_INIT;

	caller->result = lock_take(&c, "target", "slow", &l, NULL);
	atomic_fetch_add(caller->ended, 1);
	return NULL;
}

/* Storage that does not answer holds its lock: not every thread of a service waits for that. */
static void test_few_wait_for_long(void **state)
{
	struct rig *rig = *state;
	struct call c = call_begin(rig->h);
	struct lock held = LOCK_INIT;
	struct caller callers[CALLERS];
	atomic_int ended = 0;
	int refused = 0;

	assert_int_equal(lock_take(&c, "target", "slow", &held, NULL), 0);
	for (size_t i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){ .rig = rig, .ended = &ended, .result = 1 };
		assert_int_equal(pthread_create(&callers[i].thread, NULL, take_lock, &callers[i]),
				 0);
	}
	/* for a while all of them do */
	usleep(200000);
	assert_int_equal(atomic_load(&ended), 0);
	for (int i = 0; i < 3 * LOCK_PATIENCE_MS && atomic_load(&ended) < 4; i++)
		usleep(1000);
	usleep(200000);
	assert_int_equal(atomic_load(&ended), CALLERS - LOCK_WAITERS_MAX);
	lock_release(&held);
	for (size_t i = 0; i < CALLERS; i++) {
		pthread_join(callers[i].thread, NULL);
		refused += callers[i].result == -EAGAIN;
		assert_true(callers[i].result == 0 || callers[i].result == -EAGAIN);
	}
	assert_int_equal(refused, CALLERS - LOCK_WAITERS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_processes, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_threads, rig_setup, rig_teardown),
		cmocka_unit_test_setup_teardown(test_few_wait_for_long, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
