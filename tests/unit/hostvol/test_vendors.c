/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vendors' drivers, interrupted at every call to the host: the process dies before or after
 * the call's effect, or the call fails. Then recovery, or the next call, must end in order, and
 * what was there before must be there again.
 */
#include "rig.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALLS_MAX 200
#define SECRET "s3cret"
#define SIO_LINK "/dev/disk/by-id/emc-vol-1-abc1"

/* ---- the vendors' programs ------------------------------------------------------------------ */

static int fails(struct host_result *ret, int status, const char *words)
{
	ret->status = status;
	snprintf(ret->err, sizeof(ret->err), "%s\n", words);
	return 0;
}

static int run_curl(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	struct fake_device *d = fake_device(f, SIO_LINK);
	const char *body = "{}";
	int status = 200;

	if (f->unreachable)
		return fails(ret, 7, "curl: (7) Failed to connect");
	if (strstr(c->input, "/api/login\"")) {
		body = "\"token\"";
	} else if (f->refuses) {
		status = 500;
		body = "{\"message\":\"no\",\"errorCode\":79}";
	} else if (strstr(c->input, "/addMappedSdc\"") && d->there) {
		status = 500;
		body = "{\"errorCode\":81}";
	} else if (strstr(c->input, "/removeMappedSdc\"") && !d->there) {
		status = 500;
		body = "{\"errorCode\":4039}";
	} else if (strstr(c->input, "MappedSdc\"")) {
		d->there = strstr(c->input, "/addMappedSdc\"") != NULL;
	}
	snprintf(c->out, c->out_size, "%s\n%d", body, status);
	return 0;
}

static int run_sds(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	struct fake_device *d = fake_device(f, "/dev/vdq");
	bool attach = streq(c->argv[2], "attach");
	int code = 0;

	if (f->unreachable)
		return -ENOENT;
	if (streq(c->argv[2], "querydev"))
		code = d->there ? 0 : 1;
	else if (f->refuses)
		code = 50151002;
	else if (d->there == attach)
		code = attach ? 50151401 : 50155007;
	else
		d->there = attach;
	snprintf(ret->out, sizeof(ret->out), "ret_code=%d\ndev_addr=/dev/vdq\n", code);
	return 0;
}

static int run_hgst(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	if (f->unreachable)
		return fails(ret, 1, "no cluster");
	if (streq(c->argv[1], "domain-list")) {
		snprintf(c->out, c->out_size, "192.0.2.7\n192.0.2.1\n");
		return 0;
	}
	if (f->refuses)
		return fails(ret, 3, "locked");
	assert_string_equal(c->argv[5], "192.0.2.1");
	fake_device(f, "/dev/space1")->there = streq(c->argv[7], "ADD");
	return 0;
}

static int run_mount(struct fake *f, const struct host_command *c, struct host_result *ret,
		     const char *source, const char *type)
{
	const char *const *last = c->argv;
	const char *point = c->argv[2];

	if (f->unreachable)
		return -ENOENT;
	if (f->refuses)
		return fails(ret, 32, "mount error(13): Permission denied");
	while (last[1])
		last++;
	fake_mount(f, source, streq(c->argv[0], "pstorage-mount") ? *last : point, type);
	return 0;
}

static void remember_words(struct fake *f, const char *const *words)
{
	for (; words && *words; words++) {
		size_t len = strlen(f->seen);

		snprintf(f->seen + len, sizeof(f->seen) - len, "%s ", *words);
	}
}

static int run_vendor(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	const char *program = c->argv[0];

	remember_words(f, c->argv);
	remember_words(f, c->env);
	if (streq(program, "curl"))
		return run_curl(f, c, ret);
	if (str_has_suffix(program, "/sds_cli"))
		return run_sds(f, c, ret);
	if (streq(program, "vgc-cluster"))
		return run_hgst(f, c, ret);
	if (streq(program, "mount.quobyte"))
		return run_mount(f, c, ret, "quobyte@h/v", "fuse");
	if (streq(program, "mount.sofs"))
		return run_mount(f, c, ret, "/dev/fuse", "fuse");
	if (streq(program, "mount.cifs")) {
		assert_true(!f->seen[0] || strstr(f->seen, "PASSWD_FD=0"));
		assert_int_equal(c->input_len, strlen(SECRET));
		assert_memory_equal(c->input, SECRET, strlen(SECRET));
		return run_mount(f, c, ret, c->argv[1], "cifs");
	}
	if (streq(program, "pstorage")) {
		assert_memory_equal(c->input, SECRET, strlen(SECRET));
		return f->refuses ? fails(ret, 15, "Authentication failed") : 0;
	}
	if (streq(program, "pstorage-mount"))
		return run_mount(f, c, ret, "pstorage://c", "fuse.pstorage");
	return -ENOENT;
}

/* ---- scenarios ------------------------------------------------------------------------------ */

struct vendor {
	const char *json;
	const char *device; /* NULL: it mounts */
};

static const struct vendor vendors[] = {
	{ "{\"driverVolumeType\":\"DISCO\",\"data\":{\"discoId\":7,\"serverIp\":\"192.0.2.3\","
	  "\"serverPort\":9,\"volumeId\":\"a\"}}",
	  "/dev/dms7" },
	{ "{\"driverVolumeType\":\"HGST\",\"data\":{\"name\":\"space1\",\"volumeId\":\"a\"}}",
	  "/dev/space1" },
	{ "{\"driverVolumeType\":\"HUAWEISDSHYPERVISOR\",\"data\":{\"volumeId\":\"a\"}}",
	  "/dev/vdq" },
	{ "{\"driverVolumeType\":\"SCALEIO\",\"data\":{\"scaleIoVolumeId\":\"abc1\",\"serverIp\":"
	  "\"h\",\"serverUsername\":\"u\",\"serverPassword\":\"" SECRET
	  "\",\"iopsLimit\":10,\"volumeId\":\"a\"}}",
	  SIO_LINK },
	{ "{\"driverVolumeType\":\"QUOBYTE\",\"data\":{\"export\":\"h/v\",\"volumeId\":\"a\"}}",
	  NULL },
	{ "{\"driverVolumeType\":\"SCALITY\",\"data\":{\"export\":\"e\",\"name\":\"n\","
	  "\"mountPointBase\":\"@/sofs\",\"volumeId\":\"a\"}}",
	  NULL },
	{ "{\"driverVolumeType\":\"VZSTORAGE\",\"data\":{\"export\":\"h1,h2:/c:" SECRET
	  "\",\"volumeId\":\"a\"}}",
	  NULL },
	{ "{\"driverVolumeType\":\"SMB\",\"data\":{\"export\":\"//h/s\",\"options\":\"username=u,"
	  "password=" SECRET "\",\"volumeId\":\"a\"}}",
	  NULL },
};

/* With "@" as the rig's directory. */
static char *json_of(const struct rig *rig, const struct vendor *v)
{
	const char *at = strchr(v->json, '@');

	if (!at)
		return xstrdup(v->json);
	return xasprintf("%.*s%s%s", (int)(at - v->json), v->json, rig->dir, at + 1);
}

static struct rig *vendor_rig(void)
{
	void *state;
	struct rig *rig;

	rig_setup(&state);
	rig = state;
	rig->fake->vendor_run = run_vendor;
	rig->fake->host.root = rig->dir;
	return rig;
}

static bool is_here(const struct rig *rig, const struct vendor *v)
{
	return v->device ? fake_device(rig->fake, v->device)->there : rig->fake->mount_count > 0;
}

static int disconnect_with(struct rig *rig, const struct vendor *v, unsigned flags)
{
	cleanup_free char *json = json_of(rig, v), *out = NULL;

	return hostvol_disconnect_volume_json(rig->h, json, flags, &out, NULL);
}

static int connect_with(struct rig *rig, const struct vendor *v, struct hostvol_error *err)
{
	cleanup_free char *json = json_of(rig, v), *out = NULL;

	return hostvol_connect_volume_json(rig->h, json, &out, err);
}

static bool has_file(const struct rig *rig, const char *name)
{
	cleanup_free char *path = xasprintf("%s/%s", rig->dir, name);

	return access(path, F_OK) == 0;
}

/* Nothing is connected, and nothing else is left of it. */
static void assert_clean(struct rig *rig, const struct vendor *v)
{
	assert_false(is_here(rig, v));
	assert_int_equal(rig->fake->mount_count, 0);
	assert_int_equal(rig_records(rig), 0);
	assert_false(has_file(rig, "etc/pstorage/clusters/c"));
	assert_false(has_file(rig, "state/vzstorage-c"));
}

static void assert_usable(struct rig *rig, const struct vendor *v)
{
	cleanup_free char *found = NULL;
	struct hostvol_error err = { 0 };

	if (connect_with(rig, v, &err) != 0)
		fail_msg("%s: %s", v->json, err.message);
	assert_true(is_here(rig, v));
	assert_int_equal(hostvol_get_device_path(rig->h, "a", &found, NULL), 0);
	if (v->device)
		assert_string_equal(found, v->device);
	assert_int_equal(disconnect_with(rig, v, 0), 0);
	assert_clean(rig, v);
}

static int act_in_child(struct rig *rig, const struct vendor *v, bool disconnect)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit((disconnect ? disconnect_with(rig, v, 0) : connect_with(rig, v, NULL)) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool interrupt_at(const struct vendor *v, bool disconnect, enum fake_fault fault, int at,
			 bool recover)
{
	struct rig *rig = vendor_rig();
	cleanup_free char *done = NULL;
	void *state = rig;
	int calls;

	if (disconnect)
		assert_int_equal(connect_with(rig, v, NULL), 0);
	fake_set_fault(rig->fake, fault, at);
	act_in_child(rig, v, disconnect);
	calls = atomic_load(&rig->fake->calls);
	fake_set_fault(rig->fake, FAULT_NONE, 0);
	/* without the password nobody can ask the gateway again: only the next call has it */
	if (recover && !strstr(v->json, "SCALEIO")) {
		assert_int_equal(hostvol_recover_json(rig->h, &done, NULL), 0);
		if (rig_records(rig) == 0)
			assert_clean(rig, v);
		else
			assert_true(is_here(rig, v));
	}
	assert_usable(rig, v);
	rig_teardown(&state);
	return calls >= at;
}

static void run_all(enum fake_fault fault, bool recover)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors) * 2; i++) {
		int at = 1;

		while (interrupt_at(&vendors[i / 2], i % 2, fault, at, recover)) {
			at++;
			assert_true(at < CALLS_MAX);
		}
		assert_true(at > 4);
	}
}

static void test_die_before(void **state)
{
	run_all(FAULT_DIE_BEFORE, true);
	run_all(FAULT_DIE_BEFORE, false);
}

static void test_die_after(void **state)
{
	run_all(FAULT_DIE_AFTER, true);
	run_all(FAULT_DIE_AFTER, false);
}

static void test_fail(void **state)
{
	run_all(FAULT_FAIL, true);
	run_all(FAULT_FAIL, false);
}

/* A storage system that says no, or nothing, leaves all as it was. */
static void test_refusals(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors) * 2; i++) {
		const struct vendor *v = &vendors[i / 2];
		struct rig *rig = vendor_rig();
		struct hostvol_error err = { 0 };
		void *to_free = rig;

		rig->fake->refuses = i % 2;
		rig->fake->unreachable = !(i % 2);
		assert_true(connect_with(rig, v, &err) < 0);
		assert_string_not_equal(err.message, "");
		assert_null(strstr(err.message, SECRET));
		assert_clean(rig, v);
		rig_teardown(&to_free);
	}
}

/* What was there before a connect that fails is there afterwards. */
static void test_found_stays(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
		struct rig *rig = vendor_rig();
		void *to_free = rig;

		if (vendors[i].device) {
			fake_device(rig->fake, vendors[i].device)->there = true;
			rig->fake->refuses = true;
			/* DISCO asks nobody for a device that is here */
			if (connect_with(rig, &vendors[i], NULL) < 0)
				assert_int_equal(rig_records(rig), 0);
			assert_true(is_here(rig, &vendors[i]));
		}
		rig_teardown(&to_free);
	}
}

static void test_in_use(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
		const struct vendor *v = &vendors[i];
		struct rig *rig = vendor_rig();
		cleanup_free char *path = NULL;
		void *to_free = rig;

		assert_int_equal(connect_with(rig, v, NULL), 0);
		if (v->device)
			fake_device(rig->fake, v->device)->busy = true;
		else
			rig->fake->mounts[0].busy = true;
		assert_int_equal(disconnect_with(rig, v, 0), -EBUSY);
		assert_int_equal(hostvol_get_device_path(rig->h, "a", &path, NULL), 0);
		assert_int_equal(disconnect_with(rig, v, HOSTVOL_FORCE), 0);
		assert_clean(rig, v);
		rig_teardown(&to_free);
	}
}

/* In no record, no argument, no variable, no line of the log. */
static void test_secrets(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
		struct rig *rig = vendor_rig();
		cleanup_free char *list = NULL;
		void *to_free = rig;

		assert_int_equal(connect_with(rig, &vendors[i], NULL), 0);
		assert_int_equal(hostvol_list_json(rig->h, NULL, &list, NULL), 0);
		assert_null(strstr(list, SECRET));
		assert_non_null(strstr(list, "\"health\":\"ok\""));
		assert_null(strstr(rig->fake->seen, SECRET));
		assert_int_equal(disconnect_with(rig, &vendors[i], 0), 0);
		assert_null(strstr(rig->fake->seen, SECRET));
		assert_null(strstr(rig->log, SECRET));
		rig_teardown(&to_free);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_die_before),  cmocka_unit_test(test_die_after),
		cmocka_unit_test(test_fail),	    cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_found_stays), cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_secrets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
