/* SPDX-License-Identifier: Apache-2.0 */
/* What gluster is told: a program of its name writes down its words and knows one volume. */
#include "base/file.h"
#include "base/mem.h"
#include "systems/glusterfs/cli.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define VOLUME "v1" /* as recorded */
#define ID "36f9e233-aca1-421f-bc22-b68b0965b9c1"

static char dir[] = "/tmp/qm-cli.XXXXXX";

static int make_gluster(void **state)
{
	cleanup_free char *path = NULL, *search = NULL;
	const char *old = getenv("PATH");
	FILE *f;

	if (!mkdtemp(dir))
		return -1;
	path = xasprintf("%s/gluster", dir);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fprintf(f,
		"#!/bin/sh\n"
		"echo \"$*\" >> %s/said\n"
		"case \"$*\" in\n"
		"*' volume info '*) cat " CORPUS "/volinfo-created.xml ;;\n"
		"*) cat " CORPUS "/create.xml ;;\n"
		"esac\n",
		dir);
	fclose(f);
	chmod(path, 0755);
	search = xasprintf("%s:%s", dir, old ? old : "/bin");
	return setenv("PATH", search, 1);
}

static int end_gluster(void **state)
{
	static const char *const files[] = { "gluster", "said" };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		cleanup_free char *path = xasprintf("%s/%s", dir, files[i]);
		unlink(path);
	}
	return rmdir(dir);
}

/* Whether gluster was told that since the last time. */
static bool told(const char *words)
{
	cleanup_free char *path = xasprintf("%s/said", dir), *text = NULL;
	size_t len = 0;
	bool found;

	if (file_read(path, 0, &text, &len, NULL) < 0)
		return false;
	found = strstr(text, words) != NULL;
	unlink(path);
	return found;
}

static int tell(enum volume_step_kind kind, const char *id, struct error *err)
{
	struct volume_step s = { .kind = kind, .volume = VOLUME, .replica = 2 };
	int rc;

	strv_add(&s.bricks, "10.0.0.1:/b/1");
	volume_step_of(&s, id);
	rc = cli_volume_apply(&s, err);
	volume_step_done(&s);
	return rc;
}

/* The volume of the name was looked at, went, and came again before the step was carried out. */
static void test_another_volume_is_left_alone(void **state)
{
	static const struct {
		enum volume_step_kind kind;
		const char *words;
	} steps[] = {
		{ STEP_STOP, "volume stop v1" },
		{ STEP_DELETE, "volume delete v1" },
		{ STEP_REMOVE_BRICK, "volume remove-brick v1" },
		{ STEP_REPLACE_BRICK, "volume replace-brick v1" },
		{ STEP_ADD_BRICK, "volume add-brick v1" },
		{ STEP_START_FORCE, "volume start v1" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct error err = ERROR_INIT;

		assert_int_equal(tell(steps[i].kind, "00000000-0000-4000-8000-000000000000", &err),
				 -ESTALE);
		assert_non_null(strstr(err.message, ID));
		assert_false(told(steps[i].words));
		assert_int_equal(tell(steps[i].kind, ID, NULL), 0);
		assert_true(told(steps[i].words));
	}
}

/* What is to be made has no id; gluster itself refuses to make it twice. */
static void test_create_asks_for_none(void **state)
{
	assert_int_equal(tell(STEP_CREATE, NULL, NULL), 0);
	assert_true(told("volume create v1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_volume_is_left_alone),
		cmocka_unit_test(test_create_asks_for_none),
	};

	return cmocka_run_group_tests(tests, make_gluster, end_gluster);
}
