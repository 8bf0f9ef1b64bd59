/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node service by its socket: what csi-sanity asks of arguments, and directories of this machine
 * (driver LOCAL) in a mount namespace of the test's own, by many callers at once.
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/identity.h"
#include "csi/loop.h"
#include "csi/node.h"
#include "csi/registration.h"
#include "mounts/bind.h"
#include "proto/pluginregistration.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

#define TIMEOUT_MS 60000
#define ID "v1.pool.d.pvc-1"

static char dir[] = "/tmp/qm-test-node.XXXXXX";
static struct csi_node *node;
static bool can_mount;

static struct strv paths;

/* Lives as long as the test. */
static char *in_dir(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char *path = xasprintf("%s/%s", dir, name);

	pthread_mutex_lock(&lock);
	strv_add_take(&paths, path);
	pthread_mutex_unlock(&lock);
	return path;
}

static void pause_shortly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2 * 1000 * 1000 }, NULL);
}

static enum grpc_code call(const char *method, const void *request, void **ret)
{
	struct grpc_client *c = NULL;
	enum grpc_code code = GRPC_OK;
	struct error err = ERROR_INIT;
	void *reply = NULL;

	assert_int_equal(grpc_client_new(in_dir("csi.sock"), &c, &err), 0);
	if (grpc_client_call(c, &csi__v1__node__descriptor, method, request, TIMEOUT_MS, &reply,
			     &code, &err) == 0) {
		if (ret)
			*ret = reply;
		else
			protobuf_c_message_free_unpacked(reply, NULL);
		code = GRPC_OK;
	} else if (code != GRPC_ABORTED && getenv("QM_VERBOSE")) {
		fprintf(stderr, "%s: %s: %s\n", method, grpc_code_name(code), err.message);
	}
	grpc_client_free(c);
	return code;
}

/* ---- requests --------------------------------------------------------------------------------- */

static Csi__V1__VolumeCapability__MountVolume mount_volume =
	CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
static Csi__V1__VolumeCapability__AccessMode writer = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
static Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
static Csi__V1__NodeStageVolumeRequest__VolumeContextEntry entries[2] = {
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
};
static Csi__V1__NodeStageVolumeRequest__VolumeContextEntry *context[2] = { &entries[0],
									   &entries[1] };

static Csi__V1__NodeStageVolumeRequest stage_request(const char *id)
{
	Csi__V1__NodeStageVolumeRequest q = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = in_dir("stage");
	q.volume_capability = &capability;
	q.volume_context = context;
	q.n_volume_context = 2;
	return q;
}

static Csi__V1__NodePublishVolumeRequest publish_request(const char *id, const char *target)
{
	Csi__V1__NodePublishVolumeRequest q = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = in_dir("stage");
	q.target_path = in_dir(target);
	q.volume_capability = &capability;
	return q;
}

static enum grpc_code unpublish(const char *id, const char *path)
{
	Csi__V1__NodeUnpublishVolumeRequest q = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.target_path = (char *)path;
	return call("NodeUnpublishVolume", &q, NULL);
}

static enum grpc_code unstage(const char *id, const char *path)
{
	Csi__V1__NodeUnstageVolumeRequest q = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = (char *)path;
	return call("NodeUnstageVolume", &q, NULL);
}

static enum grpc_code stats(const char *id, const char *path,
			    Csi__V1__NodeGetVolumeStatsResponse **ret)
{
	Csi__V1__NodeGetVolumeStatsRequest q = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.volume_path = (char *)path;
	return call("NodeGetVolumeStats", &q, (void **)ret);
}

static enum grpc_code expand(const char *id, const char *path)
{
	Csi__V1__NodeExpandVolumeRequest q = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.volume_path = (char *)path;
	return call("NodeExpandVolume", &q, NULL);
}

/* How many problems it has; -1: the call failed, with *ret_code. */
static int health(const char *id, const char *path, enum grpc_code *ret_code)
{
	Csi__V1__NodeGetVolumeHealthRequest q = CSI__V1__NODE_GET_VOLUME_HEALTH_REQUEST__INIT;
	Csi__V1__NodeGetVolumeHealthResponse *a = NULL;
	int n;

	q.volume_id = (char *)id;
	q.volume_publish_path = (char *)path;
	*ret_code = call("NodeGetVolumeHealth", &q, (void **)&a);
	if (*ret_code != GRPC_OK)
		return -1;
	assert_string_equal(a->volume_health->volume_id, id);
	n = (int)a->volume_health->n_health_statuses;
	protobuf_c_message_free_unpacked(&a->base, NULL);
	return n;
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void test_info(void **state)
{
	Csi__V1__NodeGetInfoRequest q = CSI__V1__NODE_GET_INFO_REQUEST__INIT;
	Csi__V1__NodeGetCapabilitiesRequest c = CSI__V1__NODE_GET_CAPABILITIES_REQUEST__INIT;
	Csi__V1__NodeGetInfoResponse *info = NULL;
	Csi__V1__NodeGetCapabilitiesResponse *caps = NULL;

	assert_int_equal(call("NodeGetInfo", &q, (void **)&info), GRPC_OK);
	assert_string_equal(info->node_id, "tester");
	assert_int_equal(info->max_volumes_per_node, 7);
	assert_int_equal(call("NodeGetCapabilities", &c, (void **)&caps), GRPC_OK);
	assert_int_equal(caps->n_capabilities, 5);
	protobuf_c_message_free_unpacked(&info->base, NULL);
	protobuf_c_message_free_unpacked(&caps->base, NULL);
}

static void test_stage_arguments(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request("");

	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = stage_request("../x");
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = stage_request(ID);
	q.staging_target_path = (char *)"";
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q.staging_target_path = (char *)"/etc/x";
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = stage_request(ID);
	q.volume_capability = NULL;
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = stage_request(ID);
	q.n_volume_context = 0;
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unstage("", in_dir("stage")), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unstage(ID, ""), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unstage("a/b", in_dir("stage")), GRPC_NOT_FOUND);
	assert_int_equal(unstage(ID, in_dir("stage")), GRPC_OK);
}

static void test_publish_arguments(void **state)
{
	Csi__V1__NodePublishVolumeRequest q = publish_request("", "target");

	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = publish_request(ID, "target");
	q.target_path = (char *)"";
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = publish_request(ID, "target");
	q.volume_capability = NULL;
	q.staging_target_path = (char *)"";
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = publish_request(ID, "target");
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_FAILED_PRECONDITION);
	assert_int_equal(unpublish("", in_dir("target")), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unpublish(ID, ""), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unpublish(ID, in_dir("target")), GRPC_OK);
}

static void test_stats_arguments(void **state)
{
	assert_int_equal(stats("", "some/path", NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(stats(ID, "", NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(stats(ID, "some/path", NULL), GRPC_NOT_FOUND);
	assert_int_equal(stats(ID, in_dir("stage"), NULL), GRPC_NOT_FOUND);
	assert_int_equal(expand("", in_dir("target")), GRPC_INVALID_ARGUMENT);
	assert_int_equal(expand(ID, ""), GRPC_INVALID_ARGUMENT);
	assert_int_equal(expand(ID, "some/path"), GRPC_NOT_FOUND);
}

static bool is_mounted(const char *path)
{
	struct mount_entry e = { 0 };
	int r = bind_find(path, &e, NULL);

	mount_entry_done(&e);
	return r > 0;
}

static void test_directory(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	Csi__V1__NodePublishVolumeRequest p = publish_request(ID, "target");
	Csi__V1__NodeGetVolumeStatsResponse *usage = NULL;
	enum grpc_code code;
	struct stat st;

	if (!can_mount)
		skip();
	for (int i = 0; i < 2; i++)
		assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_OK);
	assert_int_equal(stat(in_dir("target/file"), &st), 0);
	assert_int_equal(stats(ID, in_dir("target"), &usage), GRPC_OK);
	assert_int_equal(usage->n_usage, 2);
	assert_true(usage->usage[0]->total > 0);
	protobuf_c_message_free_unpacked(&usage->base, NULL);
	assert_int_equal(stats(ID, in_dir("stage"), NULL), GRPC_OK);
	assert_int_equal(stats("v1.pool.d.other", in_dir("target"), NULL), GRPC_NOT_FOUND);
	assert_int_equal(expand(ID, in_dir("target")), GRPC_OK);
	assert_int_equal(health("", "", &code), -1);
	assert_int_equal(code, GRPC_INVALID_ARGUMENT);
	assert_int_equal(health("v1.pool.d.other", "", &code), -1);
	assert_int_equal(code, GRPC_NOT_FOUND);
	assert_int_equal(health(ID, in_dir("target"), &code), 0);
	assert_int_equal(rename(in_dir("data"), in_dir("away")), 0);
	assert_int_equal(health(ID, in_dir("target"), &code), 1);
	assert_int_equal(rename(in_dir("away"), in_dir("data")), 0);
	p.readonly = true;
	assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_ALREADY_EXISTS);
	for (int i = 0; i < 2; i++)
		assert_int_equal(unpublish(ID, in_dir("target")), GRPC_OK);
	assert_int_equal(stat(in_dir("target"), &st), -1);
	assert_int_equal(unstage(ID, in_dir("stage")), GRPC_OK);
	assert_int_equal(stats(ID, in_dir("stage"), NULL), GRPC_NOT_FOUND);
}

/* A file system whose server has ended, over what is at path. */
static bool mount_dead(const char *path)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	cleanup_free char *options = xasprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	bool done = fd >= 0 && mount("dead", path, "fuse", 0, options) == 0;

	if (fd >= 0)
		close(fd);
	return done;
}

static size_t lost_now(const char *pod)
{
	cleanup_json json_t *lost = csi_node_lost(node);
	const json_t *one = json_array_get(lost, 0);

	if (one) {
		assert_string_equal(jstr(one, "name"), pod);
		assert_string_equal(jstr(one, "namespace"), "apps");
		assert_string_equal(jstr(one, "uid"), "1-2-3");
		assert_string_equal(jstr(one, "volume"), ID);
		assert_string_equal(jstr(one, "target"), in_dir("target"));
	}
	return json_array_size(lost);
}

/* The pod of a mount whose client died is known by what kubelet said when it was published. */
static void test_lost(void **state)
{
	static const char *const words[][2] = { { "csi.storage.k8s.io/pod.name", "web-0" },
						{ "csi.storage.k8s.io/pod.namespace", "apps" },
						{ "csi.storage.k8s.io/pod.uid", "1-2-3" } };
	Csi__V1__NodePublishVolumeRequest__VolumeContextEntry pod[3], *of_pod[3];
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	Csi__V1__NodePublishVolumeRequest p = publish_request(ID, "target");
	enum grpc_code code;

	if (!can_mount)
		skip();
	for (size_t i = 0; i < 3; i++) {
		pod[i] = (Csi__V1__NodePublishVolumeRequest__VolumeContextEntry)
			CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT;
		pod[i].key = (char *)words[i][0];
		pod[i].value = (char *)words[i][1];
		of_pod[i] = &pod[i];
	}
	p.volume_context = of_pod;
	p.n_volume_context = 3;
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_OK);
	assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_OK);
	assert_int_equal(lost_now("web-0"), 0);
	if (access("/dev/fuse", R_OK | W_OK) == 0) {
		assert_true(mount_dead(in_dir("target")));
		assert_int_equal(lost_now("web-0"), 1);
		assert_int_equal(health(ID, in_dir("target"), &code), 1);
		assert_int_equal(umount2(in_dir("target"), MNT_DETACH), 0);
	}
	assert_int_equal(lost_now("web-0"), 0);
	assert_int_equal(unpublish(ID, in_dir("target")), GRPC_OK);
	assert_int_equal(unstage(ID, in_dir("stage")), GRPC_OK);
}

static void test_what_is_in_the_way(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	Csi__V1__NodePublishVolumeRequest p = publish_request(ID, "link");

	if (!can_mount)
		skip();
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_OK);
	assert_int_equal(symlink("/etc", in_dir("link")), 0);
	assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unpublish(ID, in_dir("link")), GRPC_INVALID_ARGUMENT);
	assert_int_equal(unlink(in_dir("link")), 0);
	/* a file with content is never removed */
	assert_int_equal(file_write(in_dir("link"), "x", 1, 0600, NULL), 0);
	assert_int_not_equal(call("NodePublishVolume", &p, NULL), GRPC_OK);
	assert_int_not_equal(unpublish(ID, in_dir("link")), GRPC_OK);
	assert_int_equal(unlink(in_dir("link")), 0);
	assert_false(is_mounted("/etc"));
	assert_int_equal(unstage(ID, in_dir("stage")), GRPC_OK);
}

/* ---- a device of its own ---------------------------------------------------------------------- */

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

/* ---- many at once ----------------------------------------------------------------------------- */

#define THREADS 12
#define ROUNDS 3

static void *one_caller(void *arg)
{
	unsigned n = (unsigned)(uintptr_t)arg;
	char id[32], target[32], stage[32];
	Csi__V1__NodeStageVolumeRequest q;
	Csi__V1__NodePublishVolumeRequest p;

	snprintf(id, sizeof(id), "volume-%u", n % 3); /* four callers each */
	snprintf(target, sizeof(target), "target-%u", n);
	snprintf(stage, sizeof(stage), "stage-%u", n % 3);
	for (int i = 0; i < ROUNDS; i++) {
		enum grpc_code code;

		q = stage_request(id);
		q.staging_target_path = in_dir(stage);
		p = publish_request(id, target);
		p.staging_target_path = in_dir(stage);
		while ((code = call("NodeStageVolume", &q, NULL)) == GRPC_ABORTED)
			pause_shortly();
		if (code != GRPC_OK)
			return (void *)"stage";
		while ((code = call("NodePublishVolume", &p, NULL)) == GRPC_ABORTED)
			pause_shortly();
		if (code != GRPC_OK || !is_mounted(p.target_path))
			return (void *)"publish";
		while ((code = unpublish(id, in_dir(target))) == GRPC_ABORTED)
			pause_shortly();
		if (code != GRPC_OK || is_mounted(in_dir(target)))
			return (void *)"unpublish";
	}
	return NULL;
}

/* Refused, but only after the volume was taken: so this goes through all that callers share. */
static void *one_refused(void *arg)
{
	char id[32];

	snprintf(id, sizeof(id), "volume-%u", (unsigned)(uintptr_t)arg % 3);
	for (int i = 0; i < ROUNDS * 10; i++) {
		Csi__V1__NodeStageVolumeRequest q = stage_request(id);
		enum grpc_code code;

		q.n_volume_context = 0;
		code = call("NodeStageVolume", &q, NULL);
		if (code != GRPC_ABORTED && code != GRPC_INVALID_ARGUMENT)
			return (void *)"be refused";
	}
	return NULL;
}

static void run_callers(void *(*caller)(void *arg))
{
	pthread_t threads[THREADS];
	void *results[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, caller, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], &results[i]), 0);
	for (int i = 0; i < THREADS; i++)
		if (results[i])
			fail_msg("caller %d could not %s", i, (char *)results[i]);
}

static void test_many_refused(void **state)
{
	run_callers(one_refused);
}

/* Not with ThreadSanitizer: children that a process of many threads forks hang in its runtime. */
__attribute__((unused)) static void test_many_at_once(void **state)
{
	if (!can_mount)
		skip();
	run_callers(one_caller);
	for (int i = 0; i < 3; i++) {
		char id[32], stage[32];

		snprintf(id, sizeof(id), "volume-%d", i);
		snprintf(stage, sizeof(stage), "stage-%d", i);
		assert_int_equal(unstage(id, in_dir(stage)), GRPC_OK);
	}
}

/* ---- registration ----------------------------------------------------------------------------- */

static void test_registration(void **state)
{
	Pluginregistration__InfoRequest q = PLUGINREGISTRATION__INFO_REQUEST__INIT;
	Pluginregistration__RegistrationStatus s = PLUGINREGISTRATION__REGISTRATION_STATUS__INIT;
	char *path = in_dir("plugins_registry/" CSI_DRIVER_NAME "-reg.sock");
	Pluginregistration__PluginInfo *info = NULL;
	struct registration *r = NULL;
	struct grpc_client *c = NULL;
	void *reply = NULL;
	sigset_t set;
	int sig;

	assert_int_equal(registration_start(dir, "/x/csi.sock", &r, NULL), 0);
	assert_int_equal(grpc_client_new(path, &c, NULL), 0);
	assert_int_equal(grpc_client_call(c, &pluginregistration__registration__descriptor,
					  "GetInfo", &q, TIMEOUT_MS, (void **)&info, NULL, NULL),
			 0);
	assert_string_equal(info->type, "CSIPlugin");
	assert_string_equal(info->name, CSI_DRIVER_NAME);
	assert_string_equal(info->endpoint, "/x/csi.sock");
	assert_int_equal(info->n_supported_versions, 1);
	assert_string_equal(info->supported_versions[0], "1.0.0");
	protobuf_c_message_free_unpacked(&info->base, NULL);
	s.plugin_registered = true;
	assert_int_equal(grpc_client_call(c, &pluginregistration__registration__descriptor,
					  "NotifyRegistrationStatus", &s, TIMEOUT_MS, &reply, NULL,
					  NULL),
			 0);
	protobuf_c_message_free_unpacked(reply, NULL);
	assert_false(registration_refused(r));
	s.plugin_registered = false;
	s.error = (char *)"no";
	assert_int_equal(grpc_client_call(c, &pluginregistration__registration__descriptor,
					  "NotifyRegistrationStatus", &s, TIMEOUT_MS, &reply, NULL,
					  NULL),
			 0);
	protobuf_c_message_free_unpacked(reply, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	assert_int_equal(sigwait(&set, &sig), 0);
	assert_true(registration_refused(r));
	grpc_client_free(c);
	registration_free(r);
	assert_int_equal(access(path, F_OK), -1);
}

/* ---- the service ------------------------------------------------------------------------------ */

static int setup(void **state)
{
	struct csi_node_options o = { .node_id = "tester", .kubelet_dir = dir, .max_volumes = 7 };
	sigset_t set;
	struct error err = ERROR_INIT;

	/* before the first thread, so that all have it blocked */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	can_mount =
		unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mkdir(in_dir("data"), 0755), 0);
	assert_int_equal(file_write(in_dir("data/file"), "x", 1, 0600, NULL), 0);
	writer.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	capability.mount = &mount_volume;
	capability.access_mode = &writer;
	entries[0].key = (char *)"driverVolumeType";
	entries[0].value = (char *)"LOCAL";
	entries[1].key = (char *)"devicePath";
	entries[1].value = xstrdup(in_dir("data"));
	o.endpoint = in_dir("csi.sock");
	o.state_dir = in_dir("state");
	o.run_dir = in_dir("run");
	if (csi_node_start(&o, &node, &err) < 0)
		fail_msg("%s", err.message);
	return 0;
}

static int teardown(void **state)
{
	csi_node_free(node);
	assert_int_equal(access(in_dir("csi.sock"), F_OK), -1);
	free(entries[1].value);
	strv_done(&paths);
	return remove_tree(dir, NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_stage_arguments),
		cmocka_unit_test(test_publish_arguments),
		cmocka_unit_test(test_stats_arguments),
		cmocka_unit_test(test_directory),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_what_is_in_the_way),
		cmocka_unit_test(test_fencing),
		cmocka_unit_test(test_single_user),
		cmocka_unit_test(test_larger_device),
		cmocka_unit_test(test_many_refused),
#ifndef __SANITIZE_THREAD__
		cmocka_unit_test(test_many_at_once),
#endif
		cmocka_unit_test(test_registration),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
