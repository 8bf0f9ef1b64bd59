/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "local/config.h"
#include "local/instance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>

static void test_round_trip(void **state)
{
	struct local_config c, back;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(local_config_load(&back, &err), -ENOENT);
	local_config_default(&c);
	assert_string_equal(c.volume_type, "replicate:3");
	free(c.volume_type);
	c.volume_type = xstrdup("disperse:4:2");
	c.demo = true;
	assert_int_equal(local_config_save(&c, &err), 0);
	assert_int_equal(local_config_load(&back, &err), 0);
	assert_string_equal(back.volume_type, "disperse:4:2");
	assert_string_equal(back.deployment, "glusterfs");
	assert_true(back.demo);
	local_config_done(&c);
	local_config_done(&back);
}

static void test_damaged(void **state)
{
	cleanup_free char *path = state_path("config.json");
	struct local_config c;
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(file_write(path, "{\"demo\"", 7, 0644, &err), 0);
	assert_true(local_config_load(&c, &err) < 0);
	assert_non_null(strstr(err.message, "config.json"));
}

static void test_instances(void **state)
{
	cleanup_free char *path = run_path("boxes/%s.net", "a");

	(void)state;
	assert_true(path[0] == '/');
	assert_int_not_equal(instance_number(), 0);
	assert_int_equal(strlen(instance_name()), 6);
	unsetenv("QM_RUN_DIR");
	assert_int_equal(instance_number(), 0);
	assert_string_equal(instance_name(), "qm");
	assert_string_equal(run_dir(), "/run/quartermaster");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_instances),
	};
	char dir[] = "/tmp/qm-config.XXXXXX";
	int failed;

	if (!mkdtemp(dir))
		return EXIT_FAILURE;
	setenv("QM_RUN_DIR", dir, 1);
	setenv("QM_STATE_DIR", dir, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	remove_tree(dir, NULL);
	return failed;
}
