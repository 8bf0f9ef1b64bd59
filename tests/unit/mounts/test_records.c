/* SPDX-License-Identifier: Apache-2.0 */
/* Which mounts are a record's: those are unmounted when it ends. */
#include "base/json.h"
#include "base/mem.h"
#include "mounts/records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

/* identity NULL: none is known yet */
static bool is_mount(const char *path, const char *identity, const char *device, const char *root)
{
	cleanup_json json_t *record = json_pack("{s:s, s:{s:s*}, s:{s:s}}", "path", path, "detail",
						"identity", identity, "data", "name", "volume");
	struct mount_entry e = { .device = (char *)device,
				 .root = (char *)root,
				 .fs_type = (char *)"ext4",
				 .source = (char *)"/dev/of-a-person",
				 .mount_point = (char *)"/stage",
				 .options = (char *)"rw" };

	assert_non_null(record);
	return record_is_mount(record, &e);
}

/* A block device of this machine; false: it shows none. */
static bool some_device(char *ret_path, size_t size, struct stat *ret)
{
	DIR *d = opendir("/sys/block");
	bool found = false;

	for (struct dirent *e; d && !found && (e = readdir(d));) {
		snprintf(ret_path, size, "/dev/%s", e->d_name);
		found = stat(ret_path, ret) == 0 && S_ISBLK(ret->st_mode);
	}
	if (d)
		closedir(d);
	return found;
}

/* What a person has mounted where a block volume was staged is another's, whatever is in its root. */
static void test_device(void **state)
{
	cleanup_free char *own = NULL, *other = NULL;
	char path[300];
	struct stat st;

	assert_false(is_mount("/dev/no-such-disk", "naa.1", "8:1", "/"));
	assert_false(is_mount("/tmp/of-a-person", "file", "8:1", "/"));
	if (!some_device(path, sizeof(path), &st)) {
		print_message("no block device here\n");
		skip();
	}
	own = xasprintf("%u:%u", major(st.st_rdev), minor(st.st_rdev));
	other = xasprintf("%u:%u", major(st.st_rdev), minor(st.st_rdev) + 1);
	assert_true(is_mount(path, "block serial", own, "/"));
	assert_true(is_mount(path, NULL, own, "/"));
	assert_false(is_mount(path, "block serial", other, "/"));
}

/* A connect that was interrupted has shown nothing yet. */
static void test_never_connected(void **state)
{
	assert_false(is_mount("", NULL, "8:1", "/"));
	assert_false(is_mount("", NULL, "8:1", "/srv/data"));
}

static void test_local_directory(void **state)
{
	assert_true(is_mount("/srv/data", "directory", "8:1", "/srv/data"));
	assert_true(is_mount("/srv/data", "directory", "8:1", "/data"));
	assert_true(is_mount("/srv/data", "directory on gpfs fs", "0:50", "/"));
	assert_false(is_mount("/srv/data", "directory", "8:1", "/another"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_never_connected),
		cmocka_unit_test(test_local_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
