/* SPDX-License-Identifier: Apache-2.0 */
/* The node service with volumes that are devices: a loop device that hostvol knows as a disk of this machine. */
#include "base/mem.h"
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
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

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

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, LUN_SIZE), 0);
	if (!can_mount || loop_attach(&o, TIMEOUT_MS, l, NULL) < 0)
		return false;
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
 * A clone's device may be larger than the file system that it was copied from. With xfs: ext4 is
 * grown with CAP_SYS_RESOURCE only.
 */
static void test_larger_device(void **state)
{
	struct loop l = LOOP_INIT;
	int64_t before;

	if (access("/usr/sbin/mkfs.xfs", X_OK) < 0 || !lun_make(&l))
		skip();
	lun_as(false);
	mount_volume.fs_type = (char *)"xfs";
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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fencing),
		cmocka_unit_test(test_single_user),
		cmocka_unit_test(test_larger_device),
	};

	return cmocka_run_group_tests(tests, node_setup, node_teardown);
}
