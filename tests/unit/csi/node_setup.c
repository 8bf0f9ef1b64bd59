/* SPDX-License-Identifier: Apache-2.0 */
#include "node_setup.h"

#include "../skip.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "mounts/bind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>

char dir[] = "/tmp/qm-test-node.XXXXXX";
struct csi_node *node;
bool can_mount;

static struct strv paths;

char *in_dir(const char *name)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	char *path = xasprintf("%s/%s", dir, name);

	pthread_mutex_lock(&lock);
	strv_add_take(&paths, path);
	pthread_mutex_unlock(&lock);
	return path;
}

void pause_shortly(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 2 * 1000 * 1000 }, NULL);
}

bool is_mounted(const char *path)
{
	struct mount_entry e = { 0 };
	int r = bind_find(path, &e, NULL);

	mount_entry_done(&e);
	return r > 0;
}

void need_loop(void)
{
	if (!can_mount)
		skip_without("the right to mount");
	if (access("/dev/loop-control", R_OK | W_OK) < 0)
		skip_without("/dev/loop-control");
}

int notes(void)
{
	DIR *d = opendir(in_dir("run/published"));
	int count = 0;

	for (const struct dirent *e; d && (e = readdir(d));)
		count += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return count;
}

enum grpc_code call_err(const char *method, const void *request, void **ret, struct error *err)
{
	cleanup_free char *socket = xasprintf("%s/csi.sock", dir);
	struct grpc_client *c = NULL;
	enum grpc_code code = GRPC_OK;
	void *reply = NULL;

	assert_int_equal(grpc_client_new(socket, &c, err), 0);
	if (grpc_client_call(c, &csi__v1__node__descriptor, method, request, TIMEOUT_MS, &reply,
			     &code, err) == 0) {
		if (ret)
			*ret = reply;
		else
			protobuf_c_message_free_unpacked(reply, NULL);
		code = GRPC_OK;
	}
	grpc_client_free(c);
	return code;
}

enum grpc_code call(const char *method, const void *request, void **ret)
{
	struct error err = ERROR_INIT;
	enum grpc_code code = call_err(method, request, ret, &err);

	if (code != GRPC_OK && code != GRPC_ABORTED && getenv("QM_VERBOSE"))
		fprintf(stderr, "%s: %s: %s\n", method, grpc_code_name(code), err.message);
	return code;
}

/* ---- requests --------------------------------------------------------------------------------- */

Csi__V1__VolumeCapability__MountVolume mount_volume =
	CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
static Csi__V1__VolumeCapability__AccessMode writer = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
static Csi__V1__NodeStageVolumeRequest__VolumeContextEntry entries[2] = {
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
	CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
};
static Csi__V1__NodeStageVolumeRequest__VolumeContextEntry *context[2] = { &entries[0],
									   &entries[1] };

Csi__V1__NodeStageVolumeRequest stage_request(const char *id)
{
	Csi__V1__NodeStageVolumeRequest q = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = in_dir("stage");
	q.volume_capability = &capability;
	q.volume_context = context;
	q.n_volume_context = 2;
	return q;
}

Csi__V1__NodePublishVolumeRequest publish_request(const char *id, const char *target)
{
	Csi__V1__NodePublishVolumeRequest q = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = in_dir("stage");
	q.target_path = in_dir(target);
	q.volume_capability = &capability;
	return q;
}

enum grpc_code unpublish(const char *id, const char *path)
{
	Csi__V1__NodeUnpublishVolumeRequest q = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.target_path = (char *)path;
	return call("NodeUnpublishVolume", &q, NULL);
}

enum grpc_code unstage(const char *id, const char *path)
{
	Csi__V1__NodeUnstageVolumeRequest q = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.staging_target_path = (char *)path;
	return call("NodeUnstageVolume", &q, NULL);
}

enum grpc_code stats(const char *id, const char *path, Csi__V1__NodeGetVolumeStatsResponse **ret)
{
	Csi__V1__NodeGetVolumeStatsRequest q = CSI__V1__NODE_GET_VOLUME_STATS_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.volume_path = (char *)path;
	return call("NodeGetVolumeStats", &q, (void **)ret);
}

enum grpc_code expand(const char *id, const char *path)
{
	Csi__V1__NodeExpandVolumeRequest q = CSI__V1__NODE_EXPAND_VOLUME_REQUEST__INIT;

	q.volume_id = (char *)id;
	q.volume_path = (char *)path;
	return call("NodeExpandVolume", &q, NULL);
}

int health(const char *id, const char *path, enum grpc_code *ret_code)
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

/* ---- the service ------------------------------------------------------------------------------ */

void node_prepare(void)
{
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
	entries[1].value = in_dir("data");
}

void node_start(struct csi_node_options o)
{
	struct error err = ERROR_INIT;

	o.node_id = "tester";
	o.endpoint = in_dir("csi.sock");
	o.state_dir = in_dir("state");
	o.run_dir = in_dir("run");
	o.kubelet_dir = o.kubelet_dir ? o.kubelet_dir : dir;
	if (csi_node_start(&o, &node, &err) < 0)
		fail_msg("%s", err.message);
}

void start_node(void)
{
	node_start((struct csi_node_options){ .max_volumes = 7, .pools_dir = in_dir("pools") });
}

int node_setup(void **state)
{
	node_prepare();
	start_node();
	return 0;
}

int node_teardown(void **state)
{
	csi_node_free(node);
	assert_int_equal(access(in_dir("csi.sock"), F_OK), -1);
	strv_done(&paths);
	return remove_tree(dir, NULL);
}
