/* SPDX-License-Identifier: Apache-2.0 */
/* quartermaster down of an instance of which nothing runs, in a mount namespace of its own. */
#include "help.h"

#include "base/file.h"
#include "base/paths.h"
#include "local/config.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>

static char dir[] = "/tmp/qm-test-down.XXXXXX";

static char *in_dir(const char *name)
{
	return xasprintf("%s/%s", dir, name);
}

static bool exists(const char *name)
{
	cleanup_free char *path = in_dir(name);

	return access(path, F_OK) == 0;
}

static int down(void)
{
	const char *argv[] = { "down", "--delete-data", NULL };

	return verb_run(verb_find("down"), 2, (char **)argv);
}

/* Where it is ended on its way, or meets what it cannot remove, the next one goes on. */
static void test_interrupted(void **state)
{
	cleanup_free char *busy = in_dir("run/busy"), *file = in_dir("state/log/file");
	cleanup_free char *log = in_dir("state/log");
	struct local_config c;
	struct error err = ERROR_INIT;

	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		print_message("no mounts here\n");
		skip();
	}
	local_config_default(&c);
	assert_int_equal(local_config_save(&c, &err), 0);
	local_config_done(&c);
	assert_int_equal(mkdir_parents(busy, 0700, &err), 0);
	assert_int_equal(mkdir_parents(log, 0700, &err), 0);
	assert_int_equal(file_write(file, "x", 1, 0600, &err), 0);
	assert_int_equal(mount("tmpfs", busy, "tmpfs", 0, NULL), 0);
	assert_int_equal(down(), QM_FAILED);
	assert_true(exists("state/config.json"));
	assert_false(exists("state/log"));
	assert_int_equal(umount2(busy, 0), 0);
	assert_int_equal(down(), QM_OK);
	assert_false(exists("state"));
	assert_false(exists("run"));
	assert_int_equal(down(), QM_OK);
}

static int setup(void **state)
{
	cleanup_free char *run = NULL, *at = NULL;

	if (!mkdtemp(dir))
		return -1;
	at = in_dir("state");
	run = in_dir("run");
	setenv("QM_STATE_DIR", at, 1);
	setenv("QM_RUN_DIR", run, 1);
	return 0;
}

static int teardown(void **state)
{
	return remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interrupted),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
