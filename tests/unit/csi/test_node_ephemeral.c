/* SPDX-License-Identifier: Apache-2.0 */
/* Ephemeral volumes of the node service: files of a pool, which is a directory of this machine. */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
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

#define EPH "csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define EPH_FILE "pool/ephemeral/tester/" EPH

static Csi__V1__NodePublishVolumeRequest__VolumeContextEntry inline_entries[6];
static Csi__V1__NodePublishVolumeRequest__VolumeContextEntry *inline_context[6];

/* A volume of a pod's, with up to five attributes; ended by NULL. */
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

static void test_inline(void **state)
{
	Csi__V1__NodeGetVolumeStatsResponse *a = NULL;
	int64_t bytes;

	need_loop();
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
	need_loop();
	/* of a file system that cannot be made nothing is left either */
	mount_volume.fs_type = (char *)"vfat";
	assert_int_equal(publish_inline(ATTRIBUTES("size", "64Mi")), GRPC_INVALID_ARGUMENT);
	mount_volume.fs_type = (char *)"";
	assert_true(nothing_is_left());
}

/* As kubelet says whose it is: so that a pod whose volume is lost is told. */
static void test_inline_of_pod(void **state)
{
	const char *const attributes[] = { "size",
					   "64Mi",
					   "csi.storage.k8s.io/pod.name",
					   "web-0",
					   "csi.storage.k8s.io/pod.namespace",
					   "apps",
					   "csi.storage.k8s.io/pod.uid",
					   "1-2-3",
					   NULL };

	need_loop();
	assert_int_equal(publish_inline(attributes), GRPC_OK);
	assert_int_equal(notes(), 1);
	assert_int_equal(unpublish(EPH, in_dir("pod/inline")), GRPC_OK);
	assert_int_equal(notes(), 0);
	/* one that cannot be made has none */
	mount_volume.fs_type = (char *)"vfat";
	assert_int_equal(publish_inline(attributes), GRPC_INVALID_ARGUMENT);
	mount_volume.fs_type = (char *)"";
	assert_int_equal(notes(), 0);
	assert_true(nothing_is_left());
}

/* Whatever was being formatted when the service died is made anew; what was finished is kept. */
static void test_inline_interrupted(void **state)
{
	char *file = in_dir(EPH_FILE), *inside = in_dir("pod/inline/kept");

	need_loop();
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

/* kubelet has removed the pod's directory while the service was away: nobody will ever call again. */
static void test_inline_forgotten(void **state)
{
	char *file = in_dir(EPH_FILE);

	need_loop();
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
	node_prepare();
	make_pools();
	start_node();
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_inline_arguments), cmocka_unit_test(test_inline),
		cmocka_unit_test(test_inline_too_large), cmocka_unit_test(test_inline_interrupted),
		cmocka_unit_test(test_inline_of_pod),	 cmocka_unit_test(test_inline_forgotten),
	};

	return cmocka_run_group_tests(tests, setup, node_teardown);
}
