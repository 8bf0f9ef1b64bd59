/* SPDX-License-Identifier: Apache-2.0 */
/* Who uses a volume, by hostvol's records and the kernel's, in a mount namespace of its own. */
#include "../skip.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "core/handle.h"
#include "csi/loop.h"
#include "local/users.h"

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
#define NAME "virtblock/aa/bb/pvc-1"

static char dir[] = "/tmp/qm-test-users.XXXXXX";
static bool can_mount;

/* Its consumer is dir/stage, hostvol's mount point one below our state directory. */
static char *point(void)
{
	return state_path("hostvol/mnt/one");
}

static char *record_path(void)
{
	cleanup_free char *stage = xasprintf("%s/stage", dir);
	char id[HASH_TEXT_MAX];

	hash_of(id, "pvc-1", stage);
	return state_path("hostvol/attachments/%s.json", id);
}

static void write_record(void)
{
	cleanup_free char *file = record_path(), *mnt = point(), *text = NULL;
	cleanup_free char *stage = xasprintf("%s/stage", dir);
	cleanup_free char *path = xasprintf("%s/" NAME, mnt);
	cleanup_json json_t *o = json_pack(
		"{s:i, s:s, s:{s:s, s:s}, s:s, s:s, s:s, s:s, s:s, s:{s:s, s:s}}", "version", 1,
		"driverVolumeType", "GLUSTERFS", "data", "export", "h:/pool", "name", NAME,
		"volumeId", "pvc-1", "consumer", stage, "state", "attached", "path", path, "target",
		"GLUSTERFS h:/pool", "detail", "source", "h:/pool", "mountPoint", mnt);

	assert_non_null(o);
	text = json_text(o);
	assert_int_equal(file_write(file, text, strlen(text), 0600, NULL), 0);
}

static int users(char **ret, struct error *err)
{
	cleanup_json json_t *pv = json_pack(
		"{s:{s:s}, s:{s:{s:s, s:{s:s, s:s, s:s}}}}", "metadata", "name", "pvc-1", "spec",
		"csi", "volumeHandle", "v1.pool.f.pvc-1", "volumeAttributes", "volumeId", "pvc-1",
		"export", "h:/pool", "name", NAME);

	assert_non_null(pv);
	return volume_users(pv, ret, err);
}

static void assert_users(const char *text)
{
	cleanup_free char *said = NULL;
	struct error err = ERROR_INIT;

	assert_int_equal(users(&said, &err), text ? 1 : 0);
	if (text && !strstr(said, text))
		fail_msg("%s", said);
}

/* ---- a device on the volume's file ---------------------------------------------------------------- */

static int make_device(struct loop *ret)
{
	cleanup_free char *mnt = point(), *file = xasprintf("%s/" NAME, mnt);
	cleanup_free char *above = xstrndup(file, strlen(file) - strlen("/pvc-1"));
	cleanup_close int fd = -1;

	assert_int_equal(mkdir_parents(mnt, 0700, NULL), 0);
	assert_int_equal(mount("tmpfs", mnt, "tmpfs", 0, NULL), 0);
	assert_int_equal(mkdir_parents(above, 0700, NULL), 0);
	fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	return loop_attach(&(struct loop_options){ .root = mnt, .sub = NAME }, STEP_MS, ret, NULL);
}

static void begin(struct loop *l)
{
	if (!can_mount || access("/dev/loop-control", R_OK | W_OK) < 0)
		skip_without("loop devices and the right to mount");
	if (make_device(l) < 0) {
		cleanup_free char *mnt = point();

		assert_int_equal(umount2(mnt, MNT_DETACH), 0);
		skip_without("a loop device");
	}
}

static void end(struct loop *l)
{
	loop_close(l);
	assert_int_equal(loop_await_end(l->number, STEP_MS, NULL), 0);
}

/* The mount that the device was made through is detached; what is mounted from the device goes on. */
static void test_detached(void **state)
{
	cleanup_free char *mnt = point(), *file = record_path();
	struct loop l = LOOP_INIT;

	begin(&l);
	write_record();
	assert_users("staged at");
	assert_int_equal(umount2(mnt, MNT_DETACH), 0);
	assert_users("staged at");
	assert_int_equal(unlink(file), 0);
	assert_users("lsblk /dev/loop");
	write_record();
	end(&l);
	assert_users(NULL);
	assert_int_equal(unlink(file), 0);
}

/* Made in another mount namespace, whose path the kernel shows, and which is not looked into. */
static void test_elsewhere(void **state)
{
	cleanup_free char *mnt = point(), *file = record_path();
	cleanup_close int here = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), there = -1;
	struct loop l = LOOP_INIT;

	if (can_mount)
		assert_int_equal(unshare(CLONE_NEWNS), 0);
	there = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	begin(&l);
	assert_int_equal(setns(here, CLONE_NEWNS), 0);
	write_record();
	assert_users("staged at");
	assert_int_equal(unlink(file), 0);
	assert_users("lsblk /dev/loop");
	end(&l);
	assert_users(NULL);
	assert_int_equal(setns(there, CLONE_NEWNS), 0);
	assert_int_equal(umount2(mnt, 0), 0);
}

/* Of a device that is seen nowhere any more the mount itself tells. */
static void test_mounted_at_consumer(void **state)
{
	cleanup_free char *stage = xasprintf("%s/stage", dir), *file = record_path();

	if (!can_mount)
		skip_without("the right to mount");
	write_record();
	assert_users(NULL);
	assert_int_equal(mount("tmpfs", stage, "tmpfs", 0, NULL), 0);
	assert_users("staged at");
	assert_int_equal(umount2(stage, 0), 0);
	assert_users(NULL);
	assert_int_equal(unlink(file), 0);
}

/* One that was torn, or that a later version wrote, may be this volume's as well as another's. */
static void test_unreadable(void **state)
{
	static const char *const texts[] = { "{\"version\": 1, \"vol", "{\"version\": 2}", "" };
	cleanup_free char *other = state_path("hostvol/attachments/%032d.json", 0);
	cleanup_free char *stage = xasprintf("%s/stage", dir), *file = record_path();

	assert_users(NULL);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		cleanup_free char *said = NULL;
		struct error err = ERROR_INIT;

		assert_int_equal(file_write(other, texts[i], strlen(texts[i]), 0600, NULL), 0);
		assert_int_equal(users(&said, &err), -EBADMSG);
		assert_non_null(strstr(err.message, other));
		assert_non_null(strstr(err.message, "move it away"));
	}
	/* who is known is said all the same */
	if (can_mount) {
		write_record();
		assert_int_equal(mount("tmpfs", stage, "tmpfs", 0, NULL), 0);
		assert_users("staged at");
		assert_int_equal(umount2(stage, 0), 0);
		assert_int_equal(unlink(file), 0);
	}
	assert_int_equal(unlink(other), 0);
	assert_users(NULL);
}

static int setup(void **state)
{
	cleanup_free char *records = NULL, *stage = NULL;

	can_mount =
		unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	if (!mkdtemp(dir))
		return -1;
	setenv("QM_STATE_DIR", dir, 1);
	setenv("QM_RUN_DIR", dir, 1);
	records = state_path("hostvol/attachments");
	stage = xasprintf("%s/stage", dir);
	return mkdir_parents(records, 0700, NULL) < 0 || mkdir_parents(stage, 0700, NULL) < 0;
}

static int teardown(void **state)
{
	return remove_tree(dir, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_elsewhere),
		cmocka_unit_test(test_mounted_at_consumer),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
