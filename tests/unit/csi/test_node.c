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

/* ---- ephemeral volumes ------------------------------------------------------------------------ */

#define EPH "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define EPH_FILE "pool/ephemeral/tester/" EPH

static Csi__V1__NodePublishVolumeRequest__VolumeContextEntry inline_entries[4];
static Csi__V1__NodePublishVolumeRequest__VolumeContextEntry *inline_context[4];

/* A volume of a pod's, with up to three attributes; ended by NULL. */
static Csi__V1__NodePublishVolumeRequest inline_request(const char *id,
							const char *const *attributes)
{
	Csi__V1__NodePublishVolumeRequest q = publish_request(id, "pod/inline");
	size_t n = 0;

	q.staging_target_path = (char *)"";
	q.volume_context = inline_context;
	for (const char *const *a =
		     (const char *const[]){ "csi.storage.k8s.io/ephemeral", "true", NULL };
	     a && *a; a = n == 1      ? attributes
			  : *(a += 2) ? a
				      : NULL) {
		inline_entries[n] = (typeof(inline_entries[0]))
			CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT;
		inline_entries[n].key = (char *)a[0];
		inline_entries[n].value = (char *)a[1];
		inline_context[n] = &inline_entries[n];
		n++;
	}
	q.n_volume_context = n;
	return q;
}
#define ATTRIBUTES(...) ((const char *const[]){ __VA_ARGS__, NULL })

static enum grpc_code publish_inline(const char *const *attributes)
{
	Csi__V1__NodePublishVolumeRequest q = inline_request(EPH, attributes);

	return call("NodePublishVolume", &q, NULL);
}

static bool nothing_is_left(void)
{
	return access(in_dir(EPH_FILE), F_OK) < 0 && access(in_dir("pod/inline"), F_OK) < 0 &&
	       !is_mounted(in_dir("pod/inline"));
}

/* Whoever can make a pod can ask for one: nothing but its size and its pool is to be said. */
static void test_inline_arguments(void **state)
{
	static const char *const refused[][4] = {
		{ "size", "64Mi", "driverVolumeType", "LOCAL" },
		{ "size", "64Mi", "devicePath", "/etc" },
		{ "size", "64Mi", "export", "evil:/x" },
		{ "size", "64Mi", "name", "../x" },
		{ "size", "64Mi", "volumeId", "x" },
		{ "size", "64Mi", "options", "log-file=/etc/passwd" },
		{ "size", "64Mi", "fencing", "none" },
		{ "size", "lots" },
		{ "size", "-1" },
		{ "size", "1" },
		{ "pool", "mine" },
	};
	Csi__V1__NodePublishVolumeRequest q;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(publish_inline(ATTRIBUTES(refused[i][0], refused[i][1],
							   refused[i][2], refused[i][3])),
				 GRPC_INVALID_ARGUMENT);
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi", "pool", "../pools/mine")),
			 GRPC_NOT_FOUND);
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi", "pool", "closed")),
			 GRPC_NOT_FOUND);
	q = inline_request(EPH, ATTRIBUTES("size", "64Mi"));
	q.readonly = true;
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = inline_request(EPH, ATTRIBUTES("size", "64Mi"));
	q.staging_target_path = in_dir("stage");
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	q = inline_request("csi-0123", ATTRIBUTES("size", "64Mi"));
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_INVALID_ARGUMENT);
	/* "false" is what kubelet says of all others */
	q = inline_request(EPH, ATTRIBUTES("size", "64Mi"));
	inline_entries[0].value = (char *)"false";
	assert_int_equal(call("NodePublishVolume", &q, NULL), GRPC_FAILED_PRECONDITION);
	assert_true(nothing_is_left());
}

/* Until it is full: the bytes that went in. */
static int64_t fill(const char *path)
{
	static char block[1 << 20];
	int64_t bytes = 0;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ssize_t n;

	assert_true(fd >= 0);
	while ((n = write(fd, block, sizeof(block))) > 0 && bytes < (1 << 30))
		bytes += n;
	assert_int_equal(n < 0 ? errno : 0, ENOSPC);
	close(fd);
	return bytes;
}

static bool can_loop(void)
{
	return can_mount && access("/dev/loop-control", R_OK | W_OK) == 0;
}

static void test_inline(void **state)
{
	Csi__V1__NodeGetVolumeStatsResponse *a = NULL;
	int64_t bytes;

	if (!can_loop())
		skip();
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_OK);
	assert_true(is_mounted(in_dir("pod/inline")));
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_OK);
	bytes = fill(in_dir("pod/inline/file"));
	assert_in_range(bytes, 32 << 20, 64 << 20);
	assert_int_equal(stats(EPH, in_dir("pod/inline"), &a), GRPC_OK);
	assert_in_range(a->usage[0]->total, 32 << 20, 64 << 20);
	protobuf_c_message_free_unpacked(&a->base, NULL);
	assert_int_equal(unpublish(EPH, in_dir("pod/inline")), GRPC_OK);
	assert_true(nothing_is_left());
	assert_int_equal(unpublish(EPH, in_dir("pod/inline")), GRPC_OK);
}

static void test_inline_too_large(void **state)
{
	assert_int_equal(publish_inline(ATTRIBUTES("size", "8000Ti", "pool", "mine")),
			 GRPC_RESOURCE_EXHAUSTED);
	assert_true(nothing_is_left());
	if (!can_loop())
		skip();
	/* of a file system that cannot be made nothing is left either */
	mount_volume.fs_type = (char *)"vfat";
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_INVALID_ARGUMENT);
	mount_volume.fs_type = (char *)"";
	assert_true(nothing_is_left());
}

/* Whatever was being formatted when the service died is made anew; what was finished is kept. */
static void test_inline_interrupted(void **state)
{
	char *file = in_dir(EPH_FILE), *inside = in_dir("pod/inline/kept");

	if (!can_loop())
		skip();
	assert_int_equal(mkdir(in_dir("pool/ephemeral"), 0700) < 0 && errno != EEXIST, 0);
	assert_int_equal(mkdir(in_dir("pool/ephemeral/tester"), 0700) < 0 && errno != EEXIST, 0);
	assert_int_equal(file_write(file, "half a file system", 18, 0600, NULL), 0);
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_OK);
	assert_int_equal(file_write(inside, "x", 1, 0600, NULL), 0);
	/* a reboot: the mount is gone, record and file are not */
	assert_int_equal(umount2(in_dir("pod/inline"), 0), 0);
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_OK);
	assert_int_equal(access(inside, F_OK), 0);
	assert_int_equal(unpublish(EPH, in_dir("pod/inline")), GRPC_OK);
	assert_true(nothing_is_left());
}

static void start_node(void);

/* kubelet has removed the pod's directory while the service was away: nobody will ever call again. */
static void test_inline_forgotten(void **state)
{
	char *file = in_dir(EPH_FILE);

	if (!can_loop())
		skip();
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_OK);
	csi_node_free(node);
	assert_int_equal(umount2(in_dir("pod/inline"), 0), 0);
	assert_int_equal(remove_tree(in_dir("pod"), NULL), 0);
	start_node();
	for (int i = 0; i < 5000 && access(file, F_OK) == 0; i++)
		pause_shortly();
	assert_int_equal(access(file, F_OK), -1);
	assert_int_equal(mkdir(in_dir("pod"), 0755), 0);
}

/* ---- many at once ----------------------------------------------------------------------------- */

/*
 * Two hundred callers at a time, ten for each volume, two of them for the same target: what they ask for is
 * there once. ThreadSanitizer's processes are slow to make: there who is told ABORTED leaves it at that, so
 * that nearly all calls come to nothing, but still at the same time.
 */
#define CALLERS 200
#ifdef __SANITIZE_THREAD__
#define VOLUMES 2
#define TARGETS VOLUMES
#define PATIENT false
#else
#define VOLUMES 20
#define TARGETS (CALLERS / 2)
#define PATIENT true
#endif
#define ROUNDS 3

static pthread_barrier_t together;
static bool patient;

static enum grpc_code call_until_done(const char *method, const void *request)
{
	enum grpc_code code;

	while ((code = call(method, request, NULL)) == GRPC_ABORTED && patient)
		pause_shortly();
	return code == GRPC_ABORTED ? GRPC_OK : code;
}

struct place_of {
	char id[32], stage[32], target[32];
};

static struct place_of place_of(unsigned caller)
{
	struct place_of p;

	snprintf(p.id, sizeof(p.id), "volume-%u", caller % VOLUMES);
	snprintf(p.stage, sizeof(p.stage), "stage-%u", caller % VOLUMES);
	snprintf(p.target, sizeof(p.target), "target-%u", caller % TARGETS);
	return p;
}

static void *bring(void *arg)
{
	struct place_of at = place_of((unsigned)(uintptr_t)arg);
	Csi__V1__NodeStageVolumeRequest q = stage_request(at.id);
	Csi__V1__NodePublishVolumeRequest p = publish_request(at.id, at.target);

	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry own = entries[1],
							    *with[] = { context[0], &own };

	q.staging_target_path = p.staging_target_path = in_dir(at.stage);
	own.value = in_dir(at.id);
	q.volume_context = with;
	(void)mkdir(own.value, 0755);
	pthread_barrier_wait(&together);
	if (call_until_done("NodeStageVolume", &q) != GRPC_OK)
		return (void *)"stage";
	/* who did not wait may come before it is staged */
	if (call_until_done("NodePublishVolume", &p) != GRPC_OK && patient)
		return (void *)"publish";
	return !patient || is_mounted(p.target_path) ? NULL : (void *)"see what was published";
}

static void *take_away_again(void *arg)
{
	struct place_of at = place_of((unsigned)(uintptr_t)arg);
	Csi__V1__NodeUnpublishVolumeRequest q = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = at.id;
	q.target_path = in_dir(at.target);
	pthread_barrier_wait(&together);
	return call_until_done("NodeUnpublishVolume", &q) == GRPC_OK ? NULL : (void *)"unpublish";
}

/* Refused, but only after the volume was taken: so this goes through all that callers share. */
static void *one_refused(void *arg)
{
	struct place_of at = place_of((unsigned)(uintptr_t)arg);

	pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS; i++) {
		Csi__V1__NodeStageVolumeRequest q = stage_request(at.id);
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
	static pthread_t threads[CALLERS];
	static void *results[CALLERS];

	patient = PATIENT;
	pthread_barrier_init(&together, NULL, CALLERS);
	for (uintptr_t i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, caller, (void *)i), 0);
	for (int i = 0; i < CALLERS; i++)
		assert_int_equal(pthread_join(threads[i], &results[i]), 0);
	pthread_barrier_destroy(&together);
	pthread_barrier_init(&together, NULL, 1);
	patient = true;
	for (uintptr_t i = 0; !PATIENT && i < VOLUMES; i++)
		assert_null(caller((void *)i));
	pthread_barrier_destroy(&together);
	for (int i = 0; i < CALLERS; i++)
		if (results[i])
			fail_msg("caller %d could not %s", i, (char *)results[i]);
}

static void test_many_refused(void **state)
{
	run_callers(one_refused);
}

static int count_mount(const struct mount_entry *e, void *userdata)
{
	*(int *)userdata += str_has_prefix(e->mount_point, dir);
	return 0;
}

/* Mounts below the test's directory. */
static int mounts_here(void)
{
	cleanup_free char *text = NULL;
	int count = 0;

	assert_int_equal(file_read("/proc/self/mountinfo", 0, &text, NULL, NULL), 0);
	assert_int_equal(mountinfo_each(text, count_mount, &count), 0);
	return count;
}

static void test_many_at_once(void **state)
{
	struct stat st;
	int before;

	if (!can_mount)
		skip();
	before = mounts_here();
	run_callers(bring);
	assert_int_equal(mounts_here(), before + TARGETS);
	run_callers(take_away_again);
	assert_int_equal(mounts_here(), before);
	for (unsigned i = 0; i < TARGETS; i++)
		assert_int_equal(stat(in_dir(place_of(i).target), &st), -1);
	for (unsigned i = 0; i < VOLUMES; i++)
		assert_int_equal(unstage(place_of(i).id, in_dir(place_of(i).stage)), GRPC_OK);
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

static void start_node(void)
{
	struct csi_node_options o = { .node_id = "tester", .kubelet_dir = dir, .max_volumes = 7 };
	struct error err = ERROR_INIT;

	o.endpoint = in_dir("csi.sock");
	o.state_dir = in_dir("state");
	o.run_dir = in_dir("run");
	o.pools_dir = in_dir("pools");
	if (csi_node_start(&o, &node, &err) < 0)
		fail_msg("%s", err.message);
}

/* Directories of this machine: one that takes ephemeral volumes, one that does not. */
static void make_pools(void)
{
	static const char *const dirs[] = { "pool", "pools", "pod" };
	cleanup_free char *text = xasprintf(
		"{\"driverVolumeType\": \"LOCAL\", \"devicePath\": \"%s/pool\", \"ephemeral\": "
		"true}",
		dir);

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		assert_int_equal(mkdir(in_dir(dirs[i]), 0755), 0);
	assert_int_equal(file_write(in_dir("pools/mine"), text, strlen(text), 0600, NULL), 0);
	strcpy(strstr(text, ", \"ephemeral"), "}");
	assert_int_equal(file_write(in_dir("pools/closed"), text, strlen(text), 0600, NULL), 0);
}

static int setup(void **state)
{
	sigset_t set;

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
	make_pools();
	start_node();
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
		cmocka_unit_test(test_inline_arguments),
		cmocka_unit_test(test_inline),
		cmocka_unit_test(test_inline_too_large),
		cmocka_unit_test(test_inline_interrupted),
		cmocka_unit_test(test_inline_forgotten),
		cmocka_unit_test(test_many_refused),
		cmocka_unit_test(test_many_at_once),
		cmocka_unit_test(test_registration),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
