/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every connect and disconnect, interrupted at every call to the host: the process dies before or
 * after the call's effect, or the call fails. Then recovery, or the next call, must end in order.
 */
#include "rig.h"

#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALLS_MAX 200

enum what { CONNECT, DISCONNECT, REPLACE_DEAD };

struct scenario {
	const char *json;
	enum what what;
	bool neighbour; /* another volume of the same export is connected meanwhile */
};

static const struct scenario scenarios[] = {
	{ NFS_A, CONNECT, false },	    { NFS_A, CONNECT, true },
	{ NFS_A, DISCONNECT, false },	    { NFS_A, DISCONNECT, true },
	{ GLUSTER_A, CONNECT, false },	    { GLUSTER_A, DISCONNECT, false },
	{ GLUSTER_A, REPLACE_DEAD, false },
};

static void prepare(struct rig *rig, const struct scenario *s)
{
	cleanup_free char *a = NULL, *b = NULL;
	int r;

	if (s->neighbour) {
		b = rig_connect(rig, NFS_B, &r);
		assert_int_equal(r, 0);
	}
	if (s->what != CONNECT) {
		a = rig_connect(rig, s->json, &r);
		assert_int_equal(r, 0);
	}
	if (s->what == REPLACE_DEAD)
		rig->fake->mounts[0].dead = true;
}

static int act(struct rig *rig, const struct scenario *s)
{
	cleanup_free char *path = NULL;
	int r;

	if (s->what == DISCONNECT)
		return rig_disconnect(rig, "a", "", 0);
	path = rig_connect(rig, s->json, &r);
	return r;
}

/* The status of the child that acted: 0 done, 1 failed, FAKE_DIED. */
static int act_in_child(struct rig *rig, const struct scenario *s)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(act(rig, s) < 0 ? 1 : 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* No record in the middle of anything, and as many mounts as the records account for. */
static void assert_in_order(struct rig *rig, const struct scenario *s)
{
	cleanup_free char *text = NULL;
	cleanup_json json_t *list = NULL;
	json_t *record;
	size_t i;

	assert_int_equal(hostvol_list_json(rig->h, NULL, &text, NULL), 0);
	assert_int_equal(json_parse(text, strlen(text), &list, NULL), 0);
	json_array_foreach (list, i, record)
		assert_string_equal(jstr(record, "state"), "attached");
	if (s->neighbour) {
		assert_int_equal(rig->fake->mount_count, 1);
	} else if (json_array_size(list) == 0) {
		assert_int_equal(rig->fake->mount_count, 0);
	} else if (s->what != REPLACE_DEAD) {
		/* a replacement that died leaves the consumer's record, to be connected again */
		assert_int_equal(rig->fake->mount_count, 1);
	}
}

/* A consumer that had it before is not forgotten, also where the next attempt fails. */
static void assert_remembered(struct rig *rig, const struct scenario *s)
{
	rig->fake->helper_says = "not now";
	act(rig, s);
	rig->fake->helper_says = NULL;
	assert_int_equal(rig_records(rig), 1);
}

/* All can be used and taken away afterwards. */
static void assert_usable(struct rig *rig, const struct scenario *s)
{
	cleanup_free char *path = NULL, *found = NULL;
	int r;

	path = rig_connect(rig, s->json, &r);
	assert_int_equal(r, 0);
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &found, NULL), 0);
	assert_string_equal(path, found);
	assert_int_equal(rig->fake->mount_count, 1);
	assert_int_equal(rig_disconnect(rig, "a", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, s->neighbour ? 1 : 0);
	if (s->neighbour)
		assert_int_equal(rig_disconnect(rig, "b", "", 0), 0);
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
}

/* False once the action has no such call any more. */
static bool interrupt_at(const struct scenario *s, enum fake_fault fault, int at, bool recover)
{
	void *state;
	struct rig *rig;
	cleanup_free char *done = NULL;
	int status, calls;

	rig_setup(&state);
	rig = state;
	prepare(rig, s);
	fake_set_fault(rig->fake, fault, at);
	status = act_in_child(rig, s);
	calls = atomic_load(&rig->fake->calls);
	fake_set_fault(rig->fake, FAULT_NONE, 0);
	if (fault != FAULT_FAIL)
		assert_int_equal(status, calls >= at ? FAKE_DIED : 0);
	if (recover) {
		assert_int_equal(hostvol_recover_json(rig->h, &done, NULL), 0);
		assert_in_order(rig, s);
	}
	if (s->what == REPLACE_DEAD)
		assert_remembered(rig, s);
	assert_usable(rig, s);
	rig_teardown(&state);
	return calls >= at;
}

static void run_all(enum fake_fault fault, bool recover)
{
	for (size_t i = 0; i < ARRAY_SIZE(scenarios); i++) {
		int at = rig_first_fault();

		while (interrupt_at(&scenarios[i], fault, at, recover)) {
			at += rig_fault_step();
			assert_true(at < CALLS_MAX);
		}
		/* each has several steps: a count near 0 would mean that nothing was tested */
		assert_true(at > 5);
	}
}

static void test_die_before_then_recover(void **state)
{
	run_all(FAULT_DIE_BEFORE, true);
}

static void test_die_after_then_recover(void **state)
{
	run_all(FAULT_DIE_AFTER, true);
}

static void test_die_before_then_go_on(void **state)
{
	run_all(FAULT_DIE_BEFORE, false);
}

static void test_die_after_then_go_on(void **state)
{
	run_all(FAULT_DIE_AFTER, false);
}

static void test_fail_then_recover(void **state)
{
	run_all(FAULT_FAIL, true);
}

static void test_fail_then_go_on(void **state)
{
	run_all(FAULT_FAIL, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_die_before_then_recover),
		cmocka_unit_test(test_die_after_then_recover),
		cmocka_unit_test(test_die_before_then_go_on),
		cmocka_unit_test(test_die_after_then_go_on),
		cmocka_unit_test(test_fail_then_recover),
		cmocka_unit_test(test_fail_then_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
