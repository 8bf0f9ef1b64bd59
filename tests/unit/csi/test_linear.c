/* SPDX-License-Identifier: Apache-2.0 */
/* Devices above loop devices, where the kernel has device mapper (tests/guest/56-switch.sh runs this in one that has). */
#include "../skip.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/linear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS 10000
#define SIZE (4 << 20)

static char dir[] = "/tmp/qm-test-linear.XXXXXX";

static void attach(bool next, struct loop *ret)
{
	struct loop_options o = { .root = dir,
				  .sub = "file",
				  .lock = LOOP_LOCK_WRITER,
				  .slots = loop_slots("file"),
				  .next = next };
	int r;

	/* the kernel lets go of the file of a device that has ended, and so of its lock, a moment later */
	for (int i = 0; (r = loop_attach(&o, STEP_MS, ret, NULL)) == -EBUSY && i < 100; i++)
		usleep(20000);
	assert_int_equal(r, 0);
}

/* The device, and what is to be seen of it. The loop device is below it alone. */
static struct linear make(struct linear_state *ret)
{
	struct loop l = LOOP_INIT;
	struct linear made = LINEAR_INIT;
	struct error err = ERROR_INIT;

	attach(false, &l);
	if (linear_make(&l, dir, "file", STEP_MS, &made, &err) < 0)
		fail_msg("%s", err.message);
	loop_close(&l);
	assert_true(linear_look(made.major, made.minor, ret));
	assert_string_equal(ret->uuid, made.uuid);
	assert_int_equal(ret->count, 1);
	assert_int_equal(ret->loops[0], l.number);
	assert_false(ret->suspended);
	return made;
}

static uint64_t bytes(const struct linear *l)
{
	uint64_t n = 0;

	assert_int_equal(ioctl(l->fd, BLKGETSIZE64, &n), 0);
	return n;
}

static void assert_gone(const struct linear_state *s)
{
	assert_int_equal(linear_await_end(s, STEP_MS, NULL), 0);
	assert_int_equal(loop_await_end(s->loops[0], STEP_MS, NULL), 0);
}

static int count(const struct linear_state *s, void *userdata)
{
	*(int *)userdata += linear_is_of(s, dir, "file");
	return 0;
}

static int all(void)
{
	int n = 0;

	assert_int_equal(linear_each(count, &n), 0);
	return n;
}

static void order(const char *verb, const struct linear_state *s)
{
	cleanup_free char *command = xasprintf("dmsetup %s %s", verb, s->uuid);

	assert_int_equal(system(command), 0);
}

static void test_none(void **state)
{
	struct linear_state s;

	assert_false(linear_look(1, 0, &s));
	assert_int_equal(linear_sweep(dir, "file", STEP_MS, NULL), 0);
	assert_int_equal(all(), 0);
}

static void test_goes_with_its_user(void **state)
{
	struct linear_state s;
	struct linear l;

	l = make(&s);
	assert_int_equal(bytes(&l), SIZE);
	assert_true(linear_is_of(&s, dir, "file"));
	assert_false(linear_is_of(&s, dir, "another"));
	assert_int_equal(all(), 1);
	linear_close(&l);
	assert_gone(&s);
	assert_int_equal(all(), 0);
}

static void test_kept(void **state)
{
	struct linear_state s, now;
	struct linear l;

	l = make(&s);
	assert_int_equal(linear_keep(&l, STEP_MS, NULL), 0);
	linear_close(&l);
	assert_int_equal(linear_await_end(&s, 500, NULL), -EBUSY);
	assert_true(linear_look(s.major, s.minor, &now));
	assert_int_equal(linear_detach(&s, STEP_MS, NULL), 0);
	assert_gone(&s);
	assert_int_equal(linear_detach(&s, STEP_MS, NULL), 0);
}

/* What is open stays; what nobody has is taken away, also if it is suspended. */
static void test_swept(void **state)
{
	struct linear_state s;
	struct linear l;

	l = make(&s);
	assert_int_equal(linear_keep(&l, STEP_MS, NULL), 0);
	assert_int_equal(linear_sweep(dir, "file", STEP_MS, NULL), 0);
	assert_int_equal(linear_sweep(dir, "another", STEP_MS, NULL), 0);
	assert_int_equal(all(), 1);
	linear_close(&l);
	order("suspend", &s);
	assert_int_equal(linear_sweep(dir, "file", STEP_MS, NULL), 0);
	assert_int_equal(all(), 0);
	assert_gone(&s);
}

static void test_grows(void **state)
{
	cleanup_free char *file = xasprintf("%s/file", dir);
	struct linear_state s;
	struct linear l;

	l = make(&s);
	assert_int_equal(truncate(file, 2 * SIZE), 0);
	assert_int_equal(loop_resize(s.loops[0], dir, "file", STEP_MS, NULL), 0);
	assert_int_equal(bytes(&l), SIZE);
	assert_int_equal(linear_resize(&s, STEP_MS, NULL), 0);
	assert_int_equal(bytes(&l), 2 * SIZE);
	linear_close(&l);
	assert_gone(&s);
	assert_int_equal(truncate(file, SIZE), 0);
}

/* Somebody was killed, or is still writing below it. */
static void test_suspended(void **state)
{
	char path[LOOP_PATH_MAX];
	struct linear_state s;
	struct linear l;
	int fd;

	l = make(&s);
	order("suspend", &s);
	assert_true(linear_look(s.major, s.minor, &s));
	assert_true(s.suspended);
	fd = loop_open(s.loops[0], path, O_RDONLY);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(linear_settle(&s, STEP_MS, NULL), -EBUSY);
	close(fd);
	assert_int_equal(linear_settle(&s, STEP_MS, NULL), 0);
	assert_true(linear_look(s.major, s.minor, &s));
	assert_false(s.suspended);
	linear_close(&l);
	assert_gone(&s);
}

static void test_switched(void **state)
{
	struct loop next = LOOP_INIT;
	struct linear_state s, now;
	struct linear l;
	char text[8] = "";

	l = make(&s);
	attach(true, &next);
	assert_int_equal(linear_switch(&s, s.loops[0], &next, STEP_MS, NULL), 0);
	loop_close(&next);
	assert_int_equal(loop_await_end(s.loops[0], STEP_MS, NULL), 0);
	assert_true(linear_look(s.major, s.minor, &now));
	assert_string_equal(now.uuid, s.uuid);
	assert_int_equal(now.count, 1);
	assert_int_equal(now.loops[0], next.number);
	assert_false(now.suspended);
	assert_int_equal(pread(l.fd, text, 5, 0), 5);
	assert_string_equal(text, "hello");
	linear_close(&l);
	assert_gone(&now);
}

/* What is below takes no writes any more. */
static void test_not_proven(void **state)
{
	cleanup_free char *file = xasprintf("%s/file", dir), *fill = xasprintf("%s/fill", dir),
			  *command = xasprintf("cat /dev/zero > %s 2> /dev/null", fill);
	struct loop next = LOOP_INIT;
	struct linear_state s, now;
	struct linear l;

	assert_int_equal(truncate(file, 0), 0);
	assert_int_equal(truncate(file, SIZE), 0);
	l = make(&s);
	attach(true, &next);
	assert_int_not_equal(system(command), 0);
	assert_int_equal(linear_switch(&s, s.loops[0], &next, STEP_MS, NULL), -ESTALE);
	loop_close(&next);
	assert_int_equal(loop_await_end(next.number, STEP_MS, NULL), 0);
	assert_true(linear_look(s.major, s.minor, &now));
	assert_int_equal(now.loops[0], s.loops[0]);
	assert_false(now.suspended);
	linear_close(&l);
	assert_gone(&s);
	assert_int_equal(unlink(fill), 0);
}

/* What the tests need and this machine has not, or NULL. */
static const char *missing;

static const char *find_missing(void)
{
	if (access("/usr/sbin/dmsetup", X_OK) < 0)
		return "dmsetup";
	if (!linear_available())
		return "device mapper";
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return "a mount namespace";
	return NULL;
}

static void test_with_device_mapper(void **state)
{
	skip_without("%s (tests/guest/56-switch.sh runs all of them)", missing);
}

static int setup(void **state)
{
	cleanup_free char *file = xasprintf("%s/file", dir);
	cleanup_close int fd = -1;

	if (mount("tmpfs", dir, "tmpfs", 0, "size=9M") < 0)
		return -1;
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	return fd >= 0 && ftruncate(fd, SIZE) == 0 && write(fd, "hello", 5) == 5 ? 0 : -1;
}

static int teardown(void **state)
{
	return umount2(dir, MNT_DETACH);
}

int main(void)
{
	static const struct CMUnitTest without[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_with_device_mapper),
	};
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_none),	 cmocka_unit_test(test_goes_with_its_user),
		cmocka_unit_test(test_kept),	 cmocka_unit_test(test_swept),
		cmocka_unit_test(test_grows),	 cmocka_unit_test(test_suspended),
		cmocka_unit_test(test_switched), cmocka_unit_test(test_not_proven),
	};
	int failed;

	if (!mkdtemp(dir))
		return 1;
	missing = find_missing();
	failed = missing ? cmocka_run_group_tests(without, NULL, NULL)
			 : cmocka_run_group_tests(tests, setup, teardown);
	return rmdir(dir) < 0 ? 1 : failed;
}
