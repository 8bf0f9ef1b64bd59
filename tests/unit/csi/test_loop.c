/* SPDX-License-Identifier: Apache-2.0 */
/* What a loop device has to do with its file when mounts come and go, in a namespace of the test's own; and its locks. */
#include "../skip.h"
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

static void need_loop(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		skip_without("a mount namespace");
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		skip_without("/dev/loop-control");
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

	need_loop();
	assert_int_equal(mount("tmpfs", first, "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir(pool, 0700), 0);
	make_file(file);
	assert_int_equal(mount(first, second, NULL, MS_BIND, NULL), 0);
	assert_int_equal(stat(second, &st), 0);
	assert_int_equal(stat("/", &other), 0);
	if (loop_attach(&o, STEP_MS, &l, &err) < 0) {
		assert_int_equal(umount2(second, 0), 0);
		assert_int_equal(umount2(first, 0), 0);
		skip_without("a loop device: %s", err.message);
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

/* What a node without device mapper asks for, and a reader: the whole file. */
static int ask_whole(int type)
{
	cleanup_free char *file = xasprintf("%s/file", first);
	cleanup_close int fd = open(file, O_RDWR | O_CLOEXEC);
	struct flock lock = { .l_type = (short)type, .l_whence = SEEK_SET };

	assert_true(fd >= 0);
	return fcntl(fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static int attach(bool next, struct loop *ret)
{
	struct loop_options o = { .root = first,
				  .sub = "file",
				  .lock = LOOP_LOCK_WRITER,
				  .slots = loop_slots("file"),
				  .next = next };

	return loop_attach(&o, STEP_MS, ret, NULL);
}

static void assert_nobody_else(void)
{
	struct loop l = LOOP_INIT;

	assert_int_equal(ask_whole(F_WRLCK), -EAGAIN);
	assert_int_equal(ask_whole(F_RDLCK), -EAGAIN);
	assert_int_equal(attach(false, &l), -EBUSY);
}

static void end(struct loop *l)
{
	loop_close(l);
	assert_int_equal(loop_await_end(l->number, STEP_MS, NULL), 0);
}

/* The lock goes from one descriptor to the next, and all others are kept out all the while. */
static void test_handed_over(void **state)
{
	cleanup_free char *file = xasprintf("%s/file", first);
	struct loop a = LOOP_INIT, b = LOOP_INIT, c = LOOP_INIT;

	need_loop();
	make_file(file);
	if (attach(false, &a) < 0) {
		assert_int_equal(unlink(file), 0);
		skip_without("a loop device");
	}
	assert_int_equal(a.slot, 0);
	assert_nobody_else();
	assert_int_equal(attach(true, &b), 0);
	assert_int_equal(b.slot, 1);
	assert_int_equal(attach(true, &c), -EBUSY);
	assert_nobody_else();
	end(&a);
	assert_nobody_else();
	assert_int_equal(attach(true, &a), 0);
	assert_int_equal(a.slot, 0);
	end(&b);
	assert_nobody_else();
	end(&a);
	assert_int_equal(ask_whole(F_WRLCK), 0);
	assert_int_equal(attach(false, &a), 0);
	assert_int_equal(a.slot, 0);
	end(&a);
	assert_int_equal(unlink(file), 0);
}

/* Who has the whole file keeps out who would have a byte. */
static void test_whole_file(void **state)
{
	cleanup_free char *file = xasprintf("%s/file", first);
	struct loop_options o = { .root = first, .sub = "file", .lock = LOOP_LOCK_SHARED };
	struct loop a = LOOP_INIT, b = LOOP_INIT;

	need_loop();
	make_file(file);
	if (loop_attach(&o, STEP_MS, &a, NULL) < 0) {
		assert_int_equal(unlink(file), 0);
		skip_without("a loop device");
	}
	assert_int_equal(attach(false, &b), -EBUSY);
	assert_int_equal(attach(true, &b), -EBUSY);
	end(&a);
	o.lock = LOOP_LOCK_WRITER;
	assert_int_equal(loop_attach(&o, STEP_MS, &a, NULL), 0);
	assert_int_equal(attach(false, &b), -EBUSY);
	end(&a);
	assert_int_equal(unlink(file), 0);
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
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mount_is_gone),
		cmocka_unit_test(test_handed_over),
		cmocka_unit_test(test_whole_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
