/* SPDX-License-Identifier: Apache-2.0 */
/* File systems on loop devices, in a mount namespace of the test's own. */
#include "../skip.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/filesystem.h"
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
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_MS 20000
#define MIB (1 << 20)

static char dir[] = "/tmp/qm-test-fs.XXXXXX";
static char first[64], second[64], disk[64];

static void resize_disk(off_t size)
{
	cleanup_close int fd = open(disk, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
}

static struct loop attach(bool read_only)
{
	struct loop_options o = {
		.root = dir, .sub = "disk", .lock = LOOP_LOCK_SHARED, .read_only = read_only
	};
	struct loop l = LOOP_INIT;
	struct error err = ERROR_INIT;

	if (loop_attach(&o, STEP_MS, &l, &err) < 0)
		skip_without("a loop device: %s", err.message);
	return l;
}

static void end(struct loop *l)
{
	loop_close(l);
	assert_int_equal(loop_await_end(l->number, STEP_MS, NULL), 0);
}

static int mount_it(const struct loop *l, const char *type, const char *target, bool read_only)
{
	return filesystem_mount(&(struct filesystem_mount){ .device = l->device,
							    .type = type,
							    .target = target,
							    .options = "",
							    .read_only = read_only },
				NULL);
}

/* A clone has the identity of its source. */
static void test_xfs_twins(void **state)
{
	struct loop one, two;
	struct error err = ERROR_INIT;

	resize_disk(400 * MIB);
	one = attach(false);
	if (filesystem_make(one.device, "xfs", &err) < 0) {
		end(&one);
		skip_without("xfs: %s", err.message);
	}
	end(&one);
	one = attach(true);
	two = attach(true);
	assert_int_equal(mount_it(&one, "xfs", first, true), 0);
	assert_int_equal(mount_it(&two, "xfs", second, true), 0);
	assert_int_equal(umount2(second, 0), 0);
	assert_int_equal(umount2(first, 0), 0);
	end(&one);
	end(&two);
}

static void poke(off_t at, unsigned char byte)
{
	cleanup_close int fd = open(disk, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0 && pwrite(fd, &byte, 1, at) == 1 && fsync(fd) == 0);
}

/* mkfs.xfs was killed: its superblock, with the mark "in progress", is made anew; not one with files. */
static void test_xfs_interrupted(void **state)
{
	char type[FS_NAME_MAX] = "";
	struct error err = ERROR_INIT;
	struct loop l;

	resize_disk(0);
	resize_disk(400 * MIB);
	l = attach(false);
	if (filesystem_make(l.device, "xfs", &err) < 0) {
		end(&l);
		skip_without("xfs: %s", err.message);
	}
	assert_int_equal(filesystem_probe(l.device, type, NULL), 1);
	end(&l);
	poke(126, 1);
	l = attach(false);
	assert_int_not_equal(mount_it(&l, "xfs", first, false), 0);
	assert_int_equal(filesystem_probe(l.device, type, NULL), 0);
	assert_int_equal(filesystem_make(l.device, "xfs", &err), 0);
	assert_int_equal(filesystem_probe(l.device, type, NULL), 1);
	assert_string_equal(type, "xfs");
	assert_int_equal(mount_it(&l, "xfs", first, false), 0);
	assert_int_equal(umount2(first, 0), 0);
	end(&l);
	/* of 64 inodes 60 are free, not 61: there is a file */
	poke(126, 1);
	poke(143, 60);
	l = attach(false);
	assert_int_equal(filesystem_probe(l.device, type, NULL), 1);
	assert_int_not_equal(filesystem_make(l.device, "xfs", &err), 0);
	end(&l);
}

static void overwrite(off_t at, size_t len)
{
	cleanup_close int fd = open(disk, O_RDWR | O_CLOEXEC);
	char junk[4096];

	assert_true(fd >= 0);
	memset(junk, 0x5a, sizeof(junk));
	for (size_t done = 0; done < len; done += sizeof(junk))
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at + (off_t)done), sizeof(junk));
}

static void test_check(void **state)
{
	struct loop l;
	struct error err = ERROR_INIT;

	assert_int_equal(filesystem_check("/dev/null", "xfs", NULL), 0);
	resize_disk(0);
	resize_disk(32 * MIB);
	l = attach(false);
	assert_int_equal(filesystem_make(l.device, "ext4", &err), 0);
	assert_int_equal(filesystem_check(l.device, "ext4", &err), 0);
	assert_int_equal(mount_it(&l, "ext4", first, false), 0);
	/* in use: nothing is touched */
	assert_int_equal(filesystem_check(l.device, "ext4", &err), -EIO);
	assert_int_equal(umount2(first, 0), 0);
	end(&l);
	/* all but the superblock: too much for a program alone */
	overwrite(4096, 8 * MIB);
	l = attach(false);
	assert_int_equal(filesystem_check(l.device, "ext4", &err), -EIO);
	assert_non_null(strstr(err.message, "by hand"));
	end(&l);
}

static int setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	snprintf(first, sizeof(first), "%s/first", dir);
	snprintf(second, sizeof(second), "%s/second", dir);
	snprintf(disk, sizeof(disk), "%s/disk", dir);
	return mkdir(first, 0700) || mkdir(second, 0700);
}

static int teardown(void **state)
{
	return remove_tree(dir, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(test_xfs_twins),
						   cmocka_unit_test(test_xfs_interrupted),
						   cmocka_unit_test(test_check) };

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return all_without("a mount namespace");
	return cmocka_run_group_tests(tests, setup, teardown);
}
