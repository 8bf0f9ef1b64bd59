/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node service by its socket: what csi-sanity asks of arguments, directories of this machine
 * (driver LOCAL), clients that died, and kubelet's registration.
 */
#include "../skip.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/identity.h"
#include "csi/registration.h"
#include "node_setup.h"
#include "proto/pluginregistration.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>

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
	assert_int_equal(caps->n_capabilities, 6);
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

static void test_directory(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	Csi__V1__NodePublishVolumeRequest p = publish_request(ID, "target");
	Csi__V1__NodeGetVolumeStatsResponse *usage = NULL;
	enum grpc_code code;
	struct stat st;

	if (!can_mount)
		skip_without("the right to mount");
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

/* As kubelet says whose the target is. */
static void for_a_pod(Csi__V1__NodePublishVolumeRequest *p)
{
	static const char *const words[][2] = { { "csi.storage.k8s.io/pod.name", "web-0" },
						{ "csi.storage.k8s.io/pod.namespace", "apps" },
						{ "csi.storage.k8s.io/pod.uid", "1-2-3" } };
	static Csi__V1__NodePublishVolumeRequest__VolumeContextEntry pod[3], *of_pod[3];

	for (size_t i = 0; i < 3; i++) {
		pod[i] = (Csi__V1__NodePublishVolumeRequest__VolumeContextEntry)
			CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT;
		pod[i].key = (char *)words[i][0];
		pod[i].value = (char *)words[i][1];
		of_pod[i] = &pod[i];
	}
	p->volume_context = of_pod;
	p->n_volume_context = 3;
}

/* The pod of a mount whose client died is known by what kubelet said when it was published. */
static void test_lost(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	Csi__V1__NodePublishVolumeRequest p = publish_request(ID, "target");
	enum grpc_code code;

	if (!can_mount)
		skip_without("the right to mount");
	for_a_pod(&p);
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_OK);
	assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_OK);
	assert_int_equal(lost_now("web-0"), 0);
	assert_int_equal(notes(), 1);
	if (access("/dev/fuse", R_OK | W_OK) == 0) {
		assert_true(mount_dead(in_dir("target")));
		assert_int_equal(lost_now("web-0"), 1);
		assert_int_equal(health(ID, in_dir("target"), &code), 1);
		assert_int_equal(umount2(in_dir("target"), MNT_DETACH), 0);
	}
	assert_int_equal(lost_now("web-0"), 0);
	assert_int_equal(unpublish(ID, in_dir("target")), GRPC_OK);
	assert_int_equal(notes(), 0);
	assert_int_equal(unstage(ID, in_dir("stage")), GRPC_OK);
}

static void test_what_is_in_the_way(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	Csi__V1__NodePublishVolumeRequest p = publish_request(ID, "link");

	if (!can_mount)
		skip_without("the right to mount");
	for_a_pod(&p);
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_OK);
	assert_int_equal(symlink("/etc", in_dir("link")), 0);
	assert_int_equal(call("NodePublishVolume", &p, NULL), GRPC_INVALID_ARGUMENT);
	assert_int_equal(notes(), 0);
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

/*
 * The end of an instance takes away what is its own: somebody may have mounted another file system where a volume is
 * staged, and have that at another place, too.
 */
static void test_release_leaves_others(void **state)
{
	Csi__V1__NodeStageVolumeRequest q = stage_request(ID);
	struct error err = ERROR_INIT;

	if (!can_mount)
		skip_without("the right to mount");
	assert_int_equal(call("NodeStageVolume", &q, NULL), GRPC_OK);
	(void)mkdir(in_dir("stage"), 0755);
	(void)mkdir(in_dir("elsewhere"), 0755);
	assert_int_equal(mount("other", in_dir("elsewhere"), "tmpfs", 0, NULL), 0);
	assert_int_equal(mount(in_dir("elsewhere"), in_dir("stage"), NULL, MS_BIND, NULL), 0);
	for (int force = 0; force < 2; force++) {
		assert_int_equal(csi_node_release_all(in_dir("state"), in_dir("run"), force, &err),
				 0);
		assert_true(is_mounted(in_dir("elsewhere")));
		assert_true(is_mounted(in_dir("stage")));
	}
	assert_int_equal(umount(in_dir("stage")), 0);
	assert_int_equal(umount(in_dir("elsewhere")), 0);
	assert_int_equal(rmdir(in_dir("elsewhere")), 0);
	assert_int_equal(unstage(ID, in_dir("stage")), GRPC_OK);
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

static int setup(void **state)
{
	sigset_t set;

	/* before the first thread, so that all have it blocked */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return node_setup(state);
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
		cmocka_unit_test(test_release_leaves_others),
		cmocka_unit_test(test_registration),
	};

	return cmocka_run_group_tests(tests, setup, node_teardown);
}
