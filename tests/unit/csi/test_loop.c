/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop device has to do with its file when mounts come and go, in a namespace of the test's own. */
#include "base/mem.h"
#include "base/str.h"
#include "csi/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS 10000

static char dir[] = "/tmp/qm-test-loop.XXXXXX";
static char first[64], second[64];

static bool can_loop(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       access("/dev/loop-control", R_OK | W_OK) == 0;
}

static void make_file(const char *path)
{
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
}

/* The mount through which the device was made goes; the file system stays, mounted elsewhere. */
static void test_mount_is_gone(void **state)
{
	struct loop_options o = { .root = first, .sub = "pool/file" };
	struct loop l = LOOP_INIT;
	cleanup_free char *pool = xasprintf("%s/pool", first), *file = xasprintf("%s/file", pool);
	struct error err = ERROR_INIT;
	struct stat st, other;

	if (!can_loop())
		skip();
	assert_int_equal(mount("tmpfs", first, "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir(pool, 0700), 0);
	make_file(file);
	assert_int_equal(mount(first, second, NULL, MS_BIND, NULL), 0);
	assert_int_equal(stat(second, &st), 0);
	assert_int_equal(stat("/", &other), 0);
	if (loop_attach(&o, STEP_MS, &l, &err) < 0) {
		print_message("no loop device here: %s\n", err.message);
		assert_int_equal(umount2(second, 0), 0);
		assert_int_equal(umount2(first, 0), 0);
		skip();
	}
	assert_int_equal(loop_look(l.number, first, o.sub, st.st_dev, STEP_MS), LOOP_SERVES);
	assert_int_equal(loop_look(l.number, first, "another", st.st_dev, STEP_MS), LOOP_OTHER);
	assert_int_equal(umount2(first, MNT_DETACH), 0);
	assert_int_equal(loop_look(l.number, second, o.sub, st.st_dev, STEP_MS), LOOP_SERVES);
	/* another is mounted there, or none: it answers, so a second device would be a second writer */
	assert_int_equal(loop_look(l.number, second, o.sub, other.st_dev, STEP_MS), LOOP_SERVES);
	assert_int_equal(loop_look(l.number, second, o.sub, 0, STEP_MS), LOOP_SERVES);
	assert_int_equal(loop_look(l.number, second, "another", st.st_dev, STEP_MS), LOOP_OTHER);
	loop_close(&l);
	assert_int_equal(loop_await_end(l.number, STEP_MS, NULL), 0);
	assert_int_equal(loop_look(l.number, second, o.sub, st.st_dev, STEP_MS), LOOP_OTHER);
	assert_int_equal(umount2(second, 0), 0);
}

static int setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	snprintf(first, sizeof(first), "%s/first", dir);
	snprintf(second, sizeof(second), "%s/second", dir);
	return mkdir(first, 0700) || mkdir(second, 0700);
}

static int teardown(void **state)
{
	return rmdir(first) || rmdir(second) || rmdir(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_mount_is_gone) };

	return cmocka_run_group_tests(tests, setup, teardown);
}
