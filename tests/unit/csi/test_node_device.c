/* SPDX-License-Identifier: Apache-2.0 */
/* The node service with volumes that are devices: a loop device that hostvol knows as a disk of this machine. */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/loop.h"
#include "mounts/bind.h"
#include "node_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define LUN "lun7"
#define LUN_SIZE (64 << 20)

static Csi__V1__VolumeCapability__BlockVolume block_volume =
	CSI__V1__VOLUME_CAPABILITY__BLOCK_VOLUME__INIT;
static Csi__V1__VolumeCapability__AccessMode alone = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
static Csi__V1__VolumeCapability lun_capability = CSI__V1__VOLUME_CAPABILITY__INIT;
static Csi__V1__NodeStageVolumeRequest__VolumeContextEntry lun_entries[3] = {
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
};
static Csi__V1__NodeStageVolumeRequest__VolumeContextEntry *lun_context[3] = { &lun_entries[0],
									       &lun_entries[1],
									       &lun_entries[2] };

/* A disk of this machine, for hostvol: one that nobody else knows. */
static bool lun_make(struct loop *l)
{
	struct loop_options o = { .root = dir, .sub = "disk" };
	cleanup_close int fd = open(in_dir("disk"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	int reader;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LUN_SIZE), 0);
	if (!can_mount || loop_attach(&o, TIMEOUT_MS, l, NULL) < 0)
		return false;
	/* nobody but the service may be seen to write to it */
	reader = open(l->device, O_RDONLY | O_CLOEXEC);
	assert_true(reader >= 0);
	loop_close(l);
	l->fd = reader;
	lun_entries[0].key = (char *)"driverVolumeType";
	lun_entries[0].value = (char *)"LOCAL";
	lun_entries[1].key = (char *)"devicePath";
	lun_entries[1].value = l->device;
	lun_entries[2].key = (char *)"fencing";
	alone.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_SINGLE_WRITER;
	lun_capability.access_mode = &alone;
	return true;
}

static void lun_as(bool block)
{
	if (block) {
		lun_capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		lun_capability.block = &block_volume;
	} else {
		lun_capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
		lun_capability.mount = &mount_volume;
	}
}

/* fencing: NULL for none said */
static enum grpc_code lun_stage(const char *fencing)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(LUN);

	lun_entries[2].value = (char *)fencing;
	q.staging_target_path = in_dir("stage-lun");
	q.volume_capability = &lun_capability;
	q.volume_context = lun_context;
	q.n_volume_context = fencing ? 3 : 2;
	return call("NodeStageVolume", &q, NULL);
}

static enum grpc_code lun_publish(const char *target)
{
	Csi__V1__NodePublishVolumeRequest p = publish_request(LUN, target);

	p.staging_target_path = in_dir("stage-lun");
	p.volume_capability = &lun_capability;
	return call("NodePublishVolume", &p, NULL);
}

static void lun_end(struct loop *l)
{
	loop_close(l);
	assert_int_equal(loop_await_end(l->number, TIMEOUT_MS, NULL), 0);
	assert_int_equal(unlink(in_dir("disk")), 0);
}

static void test_fencing(void **state)
{
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	for (int block = 0; block < 2; block++) {
		lun_as(block);
		assert_int_equal(lun_stage(NULL), GRPC_INVALID_ARGUMENT);
		assert_int_equal(lun_stage("maybe"), GRPC_INVALID_ARGUMENT);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		assert_int_equal(lun_publish("lun"), GRPC_OK);
		/* what is staged is not refused any more */
		assert_int_equal(lun_stage(NULL), GRPC_OK);
		assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	}
	lun_end(&l);
}

/* kubelet shows a device to the pod from a bind of its own. */
static void test_single_user(void **state)
{
	struct bind kubelets = {
		.root = in_dir("lun"), .sub = "", .target = in_dir("kubelets"), .kind = PLACE_DEVICE
	};
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(true);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(lun_publish("lun"), GRPC_OK);
	assert_int_equal(place_make(kubelets.target, PLACE_DEVICE, 0600, TIMEOUT_MS, NULL), 0);
	assert_int_equal(bind_mount(&kubelets, TIMEOUT_MS, NULL), 0);
	assert_int_equal(lun_publish("lun"), GRPC_OK);
	assert_int_equal(lun_publish("second"), GRPC_FAILED_PRECONDITION);
	assert_int_equal(bind_unmount(kubelets.target, false, TIMEOUT_MS, NULL), 0);
	assert_int_equal(place_remove(kubelets.target, TIMEOUT_MS, NULL), 0);
	assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_end(&l);
}

static int64_t lun_bytes(void)
{
	Csi__V1__NodeGetVolumeStatsResponse *usage = NULL;
	int64_t total;

	assert_int_equal(stats(LUN, in_dir("stage-lun"), &usage), GRPC_OK);
	total = usage->usage[0]->total;
	protobuf_c_message_free_unpacked(&usage->base, NULL);
	return total;
}

static void lun_resize(const struct loop *l, off_t size)
{
	assert_int_equal(truncate(in_dir("disk"), size), 0);
	assert_int_equal(loop_resize(l->number, dir, "disk", TIMEOUT_MS, NULL), 0);
}

/*
 * A clone's device may be larger than the file system that it was copied from. Growing ext3 and ext4 while they are
 * mounted takes CAP_SYS_RESOURCE, which the test need not have: then that is done while they are not.
 */
static void test_larger_device(void **state)
{
	static const char *const types[] = { "xfs", "ext4", "ext3" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct loop l = LOOP_INIT;
		int64_t before;

		if ((i == 0 && access("/usr/sbin/mkfs.xfs", X_OK) < 0))
			continue;
		if (!lun_make(&l))
			skip();
		lun_as(false);
		mount_volume.fs_type = (char *)types[i];
		lun_resize(&l, 400 << 20);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		before = lun_bytes();
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		lun_resize(&l, 800 << 20);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		assert_true(lun_bytes() > before + (300 << 20));
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		mount_volume.fs_type = (char *)"";
		lun_end(&l);
	}
}

/* Whether `quartermaster down` leaves something mounted there. */
static bool left_by_down(const char *path, bool force)
{
	struct error err = ERROR_INIT;

	csi_node_free(TAKE_PTR(node));
	if (csi_node_release_all(in_dir("state"), in_dir("run"), force, &err) < 0)
		fail_msg("%s", err.message);
	start_node();
	return is_mounted(path);
}

/* All of it goes, as device and as file system; but not what a person has mounted there instead. */
static void test_down(void **state)
{
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	for (int block = 0; block < 2; block++) {
		lun_as(block);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		assert_int_equal(lun_publish("lun"), GRPC_OK);
		assert_false(left_by_down(in_dir("lun"), false));
		assert_false(is_mounted(in_dir(block ? "stage-lun/device" : "stage-lun")));
		assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
		if (!block) {
			assert_int_equal(mount("own", in_dir("stage-lun"), "tmpfs", 0, NULL), 0);
			assert_true(left_by_down(in_dir("stage-lun"), true));
			assert_int_equal(umount2(in_dir("stage-lun"), 0), 0);
		}
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	}
	lun_end(&l);
}

/* ---- one that cannot be grown -------------------------------------------------------------------- */

static json_t *told; /* what the service last had to tell */

static void hear(const json_t *what, void *userdata)
{
	json_decref(told);
	told = json_incref((json_t *)what);
}

/* A program that always fails comes before the real one, or does not. */
static void break_program(const char *name, bool broken)
{
	static char *path;
	cleanup_free char *file = xasprintf("%s/bin/%s", dir, name), *longer = NULL;

	if (!path)
		path = xstrdup(getenv("PATH"));
	longer = xasprintf("%s/bin:%s", dir, path);
	(void)mkdir(in_dir("bin"), 0700);
	assert_int_equal(setenv("PATH", broken ? longer : path, 1), 0);
	if (broken)
		assert_int_equal(file_write(file, "#!/bin/sh\necho no >&2\nexit 1\n", 30, 0700,
					    NULL),
				 0);
	else
		assert_int_equal(unlink(file), 0);
}

static enum grpc_code publish_for_pod(void)
{
	static const char *const pod[][2] = { { "csi.storage.k8s.io/pod.name", "p" },
					      { "csi.storage.k8s.io/pod.namespace", "ns" },
					      { "csi.storage.k8s.io/pod.uid", "u" } };
	Csi__V1__NodePublishVolumeRequest q = publish_request(LUN, "lun");
	Csi__V1__NodePublishVolumeRequest__VolumeContextEntry entries[ARRAY_SIZE(pod)],
		*all[ARRAY_SIZE(pod)];

	for (size_t i = 0; i < ARRAY_SIZE(pod); i++) {
		csi__v1__node_publish_volume_request__volume_context_entry__init(&entries[i]);
		entries[i].key = (char *)pod[i][0];
		entries[i].value = (char *)pod[i][1];
		all[i] = &entries[i];
	}
	q.staging_target_path = in_dir("stage-lun");
	q.volume_capability = &lun_capability;
	q.volume_context = all;
	q.n_volume_context = ARRAY_SIZE(pod);
	return call("NodePublishVolume", &q, NULL);
}

/* It is used with its old size, its pod is told, and the next staging grows it. */
static void test_not_grown(void **state)
{
	static const char *const types[][2] = { { "ext4", "resize2fs" }, { "xfs", "xfs_growfs" } };
	enum grpc_code code;

	csi_node_free(node);
	node_start((struct csi_node_options){ .any_target = true, .tell = hear });
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct loop l = LOOP_INIT;
		int64_t before;

		if (!lun_make(&l))
			skip();
		lun_as(false);
		mount_volume.fs_type = (char *)types[i][0];
		lun_resize(&l, 400 << 20);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		before = lun_bytes();
		assert_int_equal(health(LUN, "", &code), 0);
		assert_int_equal(publish_for_pod(), GRPC_OK);
		assert_null(told);
		assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		lun_resize(&l, 800 << 20);
		break_program(types[i][1], true);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		assert_int_equal(lun_bytes(), before);
		assert_int_equal(health(LUN, "", &code), 1);
		/* by the service's next life, too */
		csi_node_free(node);
		node_start((struct csi_node_options){ .any_target = true, .tell = hear });
		assert_int_equal(publish_for_pod(), GRPC_OK);
		assert_string_equal(jstr(json_array_get(jget(told, "ungrown"), 0), "name"), "p");
		assert_non_null(strstr(jstr(json_array_get(jget(told, "ungrown"), 0), "message"),
				       "end this pod"));
		json_decref(TAKE_PTR(told));
		break_program(types[i][1], false);
		assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		assert_true(lun_bytes() > before + (300 << 20));
		assert_int_equal(publish_for_pod(), GRPC_OK);
		assert_null(told);
		assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		lun_end(&l);
	}
	mount_volume.fs_type = (char *)"";
}

/* Fails, and of what is not mounted it leaves half of something, as one that is killed may. */
static const char tears[] =
	"#!/bin/sh\n"
	"grep -q \"^$1 \" /proc/self/mounts && exit 1\n"
	"debugfs -w -R 'sif lost+found block[0] 1' $1; debugfs -w -R 'ssv state 2' $1; exit 1\n";

/* What growing has broken is not mounted: whoever writes to it makes that worse. */
static void test_broken_by_growing(void **state)
{
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(false);
	mount_volume.fs_type = (char *)"ext4";
	lun_resize(&l, 400 << 20);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_resize(&l, 800 << 20);
	break_program("resize2fs", true);
	assert_int_equal(file_write(in_dir("bin/resize2fs"), tears, strlen(tears), 0700, NULL), 0);
	assert_int_equal(lun_stage("none"), GRPC_INTERNAL);
	assert_false(is_mounted(in_dir("stage-lun")));
	break_program("resize2fs", false);
	assert_int_equal(lun_stage("none"), GRPC_INTERNAL);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	mount_volume.fs_type = (char *)"";
	lun_end(&l);
}

static void lun_write_file(void)
{
	cleanup_close int fd = open(in_dir("stage-lun/file"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && write(fd, "x", 1) == 1 && fsync(fd) == 0);
}

/* Says of each call whether the device was mounted, and does it. */
static const char tells[] = "#!/bin/sh\n"
			    "grep -q \"^$1 \" /proc/self/mounts && echo mounted >> ${0%/*}/log || "
			    "echo apart >> ${0%/*}/log\n"
			    "PATH=${PATH#*:} exec resize2fs \"$1\"\n";

/* The kernel is asked first, since its journal covers the growth; a machine may die at any time. */
static void test_kernel_grows(void **state)
{
	cleanup_free char *log = NULL;
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(false);
	mount_volume.fs_type = (char *)"ext4";
	lun_resize(&l, 400 << 20);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_resize(&l, 800 << 20);
	break_program("resize2fs", true);
	assert_int_equal(file_write(in_dir("bin/resize2fs"), tells, strlen(tells), 0700, NULL), 0);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_true(lun_bytes() > 600 << 20);
	assert_int_equal(file_read(in_dir("bin/log"), 0, &log, NULL, NULL), 0);
	assert_true(str_has_prefix(log, "mounted\n"));
	assert_int_equal(unlink(in_dir("bin/log")), 0);
	break_program("resize2fs", false);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	mount_volume.fs_type = (char *)"";
	lun_end(&l);
}

/* Of this thread and of what it runs: root's programs get back what is bounding, or inherited. */
static bool drop_resource(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_CAPBSET_DROP, CAP_SYS_RESOURCE) < 0 || syscall(SYS_capget, &header, caps) < 0)
		return false;
	caps[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
	caps[CAP_TO_INDEX(CAP_SYS_RESOURCE)].permitted &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
	caps[CAP_TO_INDEX(CAP_SYS_RESOURCE)].inheritable &= ~CAP_TO_MASK(CAP_SYS_RESOURCE);
	return syscall(SYS_capset, &header, caps) == 0;
}

/* What the service's threads and their programs have, they have of the one that started it. */
static void *start_unprivileged(void *arg)
{
	if (drop_resource())
		start_node();
	return NULL;
}

static void start_without_resource(void)
{
	pthread_t thread;

	csi_node_free(TAKE_PTR(node));
	assert_int_equal(pthread_create(&thread, NULL, start_unprivileged, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_non_null(node);
}

/* Without CAP_SYS_RESOURCE, as in some containers, the kernel refuses: then nobody has it mounted. */
static void test_grown_unmounted(void **state)
{
	static const char *const types[] = { "ext4", "ext3" };

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		cleanup_free char *log = NULL;
		struct loop l = LOOP_INIT;

		if (!lun_make(&l)) {
			print_message("no loop device here\n");
			skip();
		}
		lun_as(false);
		mount_volume.fs_type = (char *)types[i];
		lun_resize(&l, 400 << 20);
		assert_int_equal(lun_stage("none"), GRPC_OK);
		lun_write_file();
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		lun_resize(&l, 800 << 20);
		break_program("resize2fs", true);
		assert_int_equal(
			file_write(in_dir("bin/resize2fs"), tells, strlen(tells), 0700, NULL), 0);
		start_without_resource();
		assert_int_equal(lun_stage("none"), GRPC_OK);
		assert_true(lun_bytes() > 600 << 20);
		assert_int_equal(access(in_dir("stage-lun/file"), F_OK), 0);
		assert_int_equal(file_read(in_dir("bin/log"), 0, &log, NULL, NULL), 0);
		assert_true(str_has_prefix(log, "mounted\napart\n"));
		assert_int_equal(unlink(in_dir("bin/log")), 0);
		break_program("resize2fs", false);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		csi_node_free(TAKE_PTR(node));
		start_node();
		mount_volume.fs_type = (char *)"";
		lun_end(&l);
	}
}

static enum grpc_code lun_expand(int64_t bytes)
{
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	Csi__V1__NodeExpandVolumeRequest q = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;

	range.required_bytes = bytes;
	q.volume_id = (char *)LUN;
	q.volume_path = in_dir("lun");
	q.capacity_range = &range;
	return call("NodeExpandVolume", &q, NULL);
}

/*
 * What is not large enough yet may be in a moment. OUT_OF_RANGE would be the end: kubelet calls that infeasible, and
 * does not ask again.
 */
static void test_not_large_enough_yet(void **state)
{
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(true);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(lun_publish("lun"), GRPC_OK);
	assert_int_equal(lun_expand(2 * LUN_SIZE), GRPC_UNAVAILABLE);
	lun_resize(&l, 2 * LUN_SIZE);
	assert_int_equal(lun_expand(2 * LUN_SIZE), GRPC_OK);
	assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_end(&l);
}

static bool lun_is_read_only(const struct loop *l)
{
	int is = 0;

	assert_int_equal(ioctl(l->fd, BLKROGET, &is), 0);
	return is;
}

static void lun_mode(Csi__V1__VolumeCapability__AccessMode__Mode mode)
{
	alone.mode = mode;
}
#define READERS CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY
#define WRITER CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_SINGLE_WRITER

/* kubelet names the first access mode alone: a pod of a volume that may be written, too, gets this. */
static void test_reader_of_device(void **state)
{
	struct loop l = LOOP_INIT;
	int set = 1, fd;

	if (!lun_make(&l))
		skip();
	lun_as(true);
	lun_mode(READERS);
	assert_int_equal(lun_stage(NULL), GRPC_OK);
	assert_int_equal(lun_publish("lun"), GRPC_OK);
	fd = open(in_dir("lun"), O_RDWR | O_CLOEXEC);
	assert_true(fd < 0 || pwrite(fd, "x", 1, 0) < 0);
	if (fd >= 0)
		close(fd);
	assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	assert_false(lun_is_read_only(&l));
	/* what an administrator made read-only stays so */
	assert_int_equal(ioctl(l.fd, BLKROSET, &set), 0);
	assert_int_equal(lun_stage(NULL), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	assert_true(lun_is_read_only(&l));
	set = 0;
	assert_int_equal(ioctl(l.fd, BLKROSET, &set), 0);
	lun_end(&l);
}

/* Copies one to the other, all of it. */
static void copy(const char *from, const char *to)
{
	cleanup_close int in = open(from, O_RDONLY | O_CLOEXEC),
			  out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static char block[1 << 20];

	assert_true(in >= 0 && out >= 0);
	for (ssize_t n; (n = read(in, block, sizeof(block))) != 0;)
		assert_true(n > 0 && write(out, block, (size_t)n) == n);
	assert_int_equal(fsync(out), 0);
}

/* A writer on another node may have the journal: no reader replays it. */
static void test_reader_of_journal(void **state)
{
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(false);
	lun_mode(WRITER);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	lun_write_file();
	copy(in_dir("disk"), in_dir("copy"));
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	copy(in_dir("copy"), l.device);
	lun_mode(READERS);
	assert_int_not_equal(lun_stage(NULL), GRPC_OK);
	assert_false(lun_is_read_only(&l));
	lun_mode(WRITER);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_mode(READERS);
	assert_int_equal(lun_stage(NULL), GRPC_OK);
	assert_true(lun_is_read_only(&l));
	assert_int_equal(access(in_dir("stage-lun/file"), F_OK), 0);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_mode(WRITER);
	assert_int_equal(unlink(in_dir("copy")), 0);
	lun_end(&l);
}

/* A PersistentVolume's mountOptions come with each call; "readonly" is said of one target. */
static void test_read_only_flag(void **state)
{
	char *flags[] = { (char *)"ro" };
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(false);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	lun_write_file();
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	mount_volume.mount_flags = flags;
	mount_volume.n_mount_flags = 1;
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	assert_int_equal(lun_publish("lun"), GRPC_OK);
	assert_int_equal(access(in_dir("lun/file"), R_OK), 0);
	assert_int_equal(open(in_dir("lun/file"), O_WRONLY | O_CLOEXEC), -1);
	assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
	/* what is staged otherwise is not taken for it */
	mount_volume.n_mount_flags = 0;
	assert_int_equal(lun_stage("none"), GRPC_ALREADY_EXISTS);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_end(&l);
}

static void test_read_only_target(void **state)
{
	Csi__V1__NodePublishVolumeRequest p = publish_request(LUN, "reads");
	struct loop l = LOOP_INIT;

	if (!lun_make(&l))
		skip();
	lun_as(false);
	p.staging_target_path = in_dir("stage-lun");
	p.volume_capability = &lun_capability;
	p.readonly = true;
	lun_mode(CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER);
	assert_int_equal(lun_stage("none"), GRPC_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_OK);
	assert_int_equal(lun_publish("lun"), GRPC_OK);
	assert_int_equal(mkdir(in_dir("lun/written"), 0700), 0);
	assert_int_equal(mkdir(in_dir("reads/refused"), 0700), -1);
	assert_int_equal(unpublish(LUN, in_dir("reads")), GRPC_OK);
	assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
	assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	lun_mode(WRITER);
	lun_end(&l);
}

/* The service's memory of what it connected. */
static void forget_records(void)
{
	assert_int_equal(remove_tree(in_dir("state/attachments"), NULL), 0);
	assert_int_equal(mkdir(in_dir("state/attachments"), 0700), 0);
}

/* Without a record what is staged goes all the same, with its loop device and the lock of the file. */
static void test_lost_record(void **state)
{
	cleanup_close int fd = -1;
	unsigned number;
	struct stat st;

	if (!can_loop())
		skip();
	fd = open(in_dir(LUN), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && ftruncate(fd, LUN_SIZE) == 0);
	lun_entries[0].key = (char *)"driverVolumeType";
	lun_entries[0].value = (char *)"LOCAL";
	lun_entries[1].key = (char *)"devicePath";
	lun_entries[1].value = in_dir(LUN);
	lun_mode(WRITER);
	lun_capability.access_mode = &alone;
	for (int block = 0; block < 2; block++) {
		lun_as(block);
		assert_int_equal(lun_stage(NULL), GRPC_OK);
		assert_int_equal(stat(in_dir(block ? "stage-lun/device" : "stage-lun"), &st), 0);
		number = minor(block ? st.st_rdev : st.st_dev);
		assert_int_equal(lun_publish("lun"), GRPC_OK);
		/* not by another volume's name */
		assert_int_equal(unstage("v1.pool.f.other", in_dir("stage-lun")), GRPC_OK);
		assert_true(is_mounted(in_dir(block ? "stage-lun/device" : "stage-lun")));
		forget_records();
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_FAILED_PRECONDITION);
		assert_int_equal(unpublish(LUN, in_dir("lun")), GRPC_OK);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
		assert_false(is_mounted(in_dir(block ? "stage-lun/device" : "stage-lun")));
		assert_int_equal(loop_await_end(number, TIMEOUT_MS, NULL), 0);
		assert_int_equal(unstage(LUN, in_dir("stage-lun")), GRPC_OK);
	}
	assert_int_equal(unlink(in_dir(LUN)), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fencing),
		cmocka_unit_test(test_single_user),
		cmocka_unit_test(test_larger_device),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_not_large_enough_yet),
		cmocka_unit_test(test_not_grown),
		cmocka_unit_test(test_broken_by_growing),
		cmocka_unit_test(test_kernel_grows),
		cmocka_unit_test(test_grown_unmounted),
		cmocka_unit_test(test_reader_of_device),
		cmocka_unit_test(test_reader_of_journal),
		cmocka_unit_test(test_read_only_flag),
		cmocka_unit_test(test_read_only_target),
		cmocka_unit_test(test_lost_record),
	};

	return cmocka_run_group_tests(tests, node_setup, node_teardown);
}
