/* SPDX-License-Identifier: Apache-2.0 */
/*
 * iSCSI on a recorded tree: what must be refused, and every connect and disconnect interrupted at
 * every call to the host (it dies before or after the call's effect, or the call fails).
 */
#include "fake_san.h"

#include "base/json.h"
#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALLS_MAX 200

#define VOLUME(id, lun, more)                                                                      \
	"{\"driverVolumeType\":\"ISCSI\",\"data\":{\"volumeId\":\"" id                             \
	"\",\"targetIqn\":\"" SAN_IQN "\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":" lun more  \
	"}}"
#define VOLUME_A VOLUME("a", "0", ",\"wwn\":\"serial-a\"")
#define VOLUME_B VOLUME("b", "1", "")

struct scene {
	struct rig *rig;
	struct san san;
};

static struct scene *scene_new(void)
{
	struct scene *s = xcalloc(1, sizeof(*s));
	void *state;

	rig_setup(&state);
	s->rig = state;
	san_setup(s->rig, &s->san);
	san_export(&s->san, 0, "serial-a");
	san_export(&s->san, 1, "serial-b");
	return s;
}

static void scene_free(struct scene *s)
{
	void *state = s->rig;

	rig_teardown(&state);
	free(s);
}

static int setup(void **state)
{
	*state = scene_new();
	return 0;
}

static int teardown(void **state)
{
	scene_free(*state);
	return 0;
}

static int connects(struct scene *s, const char *json)
{
	cleanup_free char *path = NULL;
	int r;

	path = rig_connect(s->rig, json, &r);
	return r;
}

static void assert_state(struct scene *s, int records, int sessions, int disks)
{
	assert_int_equal(rig_records(s->rig), records);
	assert_int_equal(san_sessions(&s->san), sessions);
	assert_int_equal(san_disks(&s->san), disks);
	assert_int_equal(san_node_records(&s->san), sessions);
}

/* Trap 9: the session stays for the other unit. */
static void test_trap_9_shared_session(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME_A), 0);
	assert_int_equal(connects(s, VOLUME_B), 0);
	assert_state(s, 2, 1, 2);
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), 0);
	assert_state(s, 1, 1, 1);
	assert_int_equal(rig_disconnect(s->rig, "b", "", 0), 0);
	assert_state(s, 0, 0, 0);
}

/* Traps 12, 18: the scan of a unit that is not there succeeds; nothing is left. */
static void test_trap_12_missing_unit(void **state)
{
	struct scene *s = *state;

	san_export(&s->san, 0, "");
	assert_int_equal(connects(s, VOLUME_A), -ENOENT);
	assert_state(s, 0, 0, 0);
}

/* Trap 1 */
static void test_trap_1_another_volume(void **state)
{
	struct scene *s = *state;
	cleanup_free char *path = NULL;

	san_export(&s->san, 0, "serial-x");
	assert_int_equal(connects(s, VOLUME_A), -ESTALE);
	assert_state(s, 0, 0, 0);
	san_export(&s->san, 0, "serial-a");
	assert_int_equal(connects(s, VOLUME_A), 0);
	san_export(&s->san, 0, "serial-x");
	assert_int_equal(hostvol_get_device_path(s->rig->h, "a", &path, NULL), -ESTALE);
	assert_int_equal(connects(s, VOLUME_B), 0);
	san_export(&s->san, 1, "serial-y");
	/* without an expectation, what was there at connect is what is expected */
	assert_int_equal(hostvol_get_device_path(s->rig->h, "b", &path, NULL), -ESTALE);
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), 0);
	assert_int_equal(rig_disconnect(s->rig, "b", "", 0), 0);
	assert_state(s, 0, 0, 0);
}

/* Trap 7 */
static void test_trap_7_in_use(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME_A), 0);
	san_set_busy(&s->san, 0, true);
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), -EBUSY);
	assert_state(s, 1, 1, 1);
	assert_int_equal(rig_disconnect(s->rig, "a", "", HOSTVOL_FORCE), 0);
	assert_state(s, 0, 0, 0);
}

/* Trap 11: writing out does not use up the time in which the disk goes. */
static void test_trap_11_slow_flush(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME_A), 0);
	s->san.removal_ms = 3000;
	s->san.flush_ms = 19000; /* of 20 s in all */
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), -ETIMEDOUT);
	assert_int_equal(s->san.removals, 0);
	assert_state(s, 1, 1, 1);
	s->san.flush_ms = 14000;
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), 0);
	assert_state(s, 0, 0, 0);
}

/* Trap 21: the secret is in open-iscsi's record alone, which only root reads, and goes with it. */
static void test_trap_21_secrets(void **state)
{
	struct scene *s = *state;
	cleanup_free char *record = NULL, *text = NULL, *path = NULL, *list = NULL;
	struct stat st;

	assert_int_equal(connects(s, VOLUME("a", "0",
					    ",\"authUsername\":\"u\",\"authPassword\":"
					    "\"hush-hush\"")),
			 0);
	path = xasprintf("%s/etc/iscsi/nodes/" SAN_IQN "/192.0.2.1,3260,1/hostvol", s->san.root);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	text = xasprintf("grep -q '^node.session.auth.password = hush-hush$' '%s'", path);
	assert_int_equal(system(text), 0);
	record = xasprintf("! grep -rq hush '%s'", s->rig->state_dir);
	assert_int_equal(system(record), 0);
	assert_int_equal(hostvol_list_json(s->rig->h, NULL, &list, NULL), 0);
	assert_null(strstr(list, "hush"));
	assert_null(strstr(s->rig->log, "hush"));
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), 0);
	assert_state(s, 0, 0, 0);
}

static void test_audit(void **state)
{
	struct scene *s = *state;
	cleanup_free char *found = NULL, *done = NULL, *record = NULL;

	assert_int_equal(connects(s, VOLUME_A), 0);
	assert_int_equal(hostvol_audit_json(s->rig->h, 0, &found, NULL), 0);
	assert_string_equal(found, "[]");
	record = xasprintf("rm '%s'/attachments/*.json", s->rig->state_dir);
	assert_int_equal(system(record), 0);
	free(found);
	assert_int_equal(hostvol_audit_json(s->rig->h, 0, &found, NULL), 1);
	assert_non_null(strstr(found, "\"disk\""));
	assert_non_null(strstr(found, "\"session\""));
	assert_state(s, 0, 1, 1);
	assert_int_equal(hostvol_audit_json(s->rig->h, HOSTVOL_REPAIR, &done, NULL), 0);
	assert_state(s, 0, 0, 0);
}

static void cancel_soon(enum hostvol_log_level level, const char *message, void *userdata)
{
	hostvol_cancel(*(struct hostvol **)userdata);
}

/* Cancelled in the middle, a call ends, and undoes what it did. */
static void test_cancel(void **state)
{
	struct scene *s = *state;
	struct hostvol *h = NULL;
	char *record = NULL;

	assert_int_equal(
		hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
							.state_dir = s->rig->state_dir,
							.run_dir = s->rig->run_dir,
							.log = cancel_soon,
							.log_userdata = &h,
							.host = &s->rig->fake->host },
			     &h, NULL),
		0);
	/* the first thing it logs is that the unit is missing, after it has logged in */
	san_export(&s->san, 0, "");
	assert_true(hostvol_connect_volume_json(h, VOLUME_A, &record, NULL) < 0);
	assert_state(s, 0, 0, 0);
	san_export(&s->san, 0, "serial-a");
	assert_int_equal(hostvol_connect_volume_json(h, VOLUME_A, &record, NULL), 0);
	hostvol_free(record);
	hostvol_close(h);
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), 0);
}

/* ---- interruptions -------------------------------------------------------------------------- */

struct interruption {
	bool disconnect, neighbour, recover;
	enum fake_fault fault;
};

static int act_in_child(struct scene *s, const struct interruption *i)
{
	int status, r;
	pid_t pid = fork();

	if (pid == 0) {
		r = i->disconnect ? rig_disconnect(s->rig, "a", "", 0) : connects(s, VOLUME_A);
		_exit(r < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* False once the action has no such call any more. */
static bool interrupt_at(const struct interruption *i, int at)
{
	struct scene *s = scene_new();
	cleanup_free char *done = NULL;
	int calls, neighbour = i->neighbour;

	if (neighbour)
		assert_int_equal(connects(s, VOLUME_B), 0);
	if (i->disconnect)
		assert_int_equal(connects(s, VOLUME_A), 0);
	fake_set_fault(s->rig->fake, i->fault, at);
	act_in_child(s, i);
	calls = atomic_load(&s->rig->fake->calls);
	fake_set_fault(s->rig->fake, FAULT_NONE, 0);
	if (i->recover) {
		assert_int_equal(hostvol_audit_json(s->rig->h, HOSTVOL_REPAIR, &done, NULL), 0);
		/* as many disks as records: nothing attached that is not recorded */
		assert_int_equal(san_disks(&s->san), rig_records(s->rig));
		assert_int_equal(san_sessions(&s->san), rig_records(s->rig) > 0);
	}
	assert_int_equal(connects(s, VOLUME_A), 0);
	assert_state(s, 1 + neighbour, 1, 1 + neighbour);
	assert_int_equal(rig_disconnect(s->rig, "a", "", 0), 0);
	assert_state(s, neighbour, neighbour, neighbour);
	scene_free(s);
	return calls >= at;
}

static void test_interruptions(void **state)
{
	static const enum fake_fault faults[] = { FAULT_DIE_BEFORE, FAULT_DIE_AFTER, FAULT_FAIL };

	for (int n = 0; n < 24; n++) {
		struct interruption i = { .disconnect = n & 1,
					  .neighbour = n & 2,
					  .recover = n & 4,
					  .fault = faults[n >> 3] };
		int at = rig_first_fault();

		while (interrupt_at(&i, at)) {
			at += rig_fault_step();
			assert_true(at < CALLS_MAX);
		}
		assert_true(at > 5);
	}
}

#define SAN_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SAN_TEST(test_trap_9_shared_session),
		SAN_TEST(test_trap_12_missing_unit),
		SAN_TEST(test_trap_1_another_volume),
		SAN_TEST(test_trap_7_in_use),
		SAN_TEST(test_trap_11_slow_flush),
		SAN_TEST(test_trap_21_secrets),
		SAN_TEST(test_audit),
		SAN_TEST(test_cancel),
		cmocka_unit_test(test_interruptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
