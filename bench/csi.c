/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-csi NAME SOCKET DIR COUNT: the latency of a CSI node service as kubelet sees it, one call after
 * the other on one connection: Probe, and NodePublishVolume with its NodeUnpublishVolume, of a volume
 * that is staged (driver LOCAL, the directory DIR/data). Prints "NAME CALL MEDIAN P99" in microseconds.
 */
#include "base/clock.h"
#include "base/mem.h"
#include "grpc/grpc.h"
#include "proto/csi.pb-c.h"

#include <stdio.h>
#include <time.h>

#define TIMEOUT_MS 30000
#define WARM_UP 20

static const char volume[] = "bench";

struct bench {
	const char *name;
	struct grpc_client *client;
	char *data, *staging, *target;
	int count;
	int64_t *times;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void call(struct bench *b, const ProtobufCServiceDescriptor *service, const char *method,
		 const void *request)
{
	struct error err = ERROR_INIT;
	void *reply;

	if (grpc_client_call(b->client, service, method, request, TIMEOUT_MS, &reply, NULL, &err) <
	    0) {
		(void)fprintf(stderr, "%s: %s: %s\n", b->name, method, err.message);
		exit(1);
	}
	protobuf_c_message_free_unpacked(reply, NULL);
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(struct bench *b, const char *what)
{
	qsort(b->times, (size_t)b->count, sizeof(*b->times), by_value);
	printf("%s %s %lld %lld\n", b->name, what, (long long)b->times[b->count / 2],
	       (long long)b->times[b->count * 99 / 100]);
}

static void probe(struct bench *b)
{
	Csi__V1__ProbeRequest q = CSI__V1__PROBE_REQUEST__INIT;

	for (int i = -WARM_UP; i < b->count; i++) {
		int64_t begin = now_us();

		call(b, &csi__v1__identity__descriptor, "Probe", &q);
		if (i >= 0)
			b->times[i] = now_us() - begin;
	}
	report(b, "Probe");
}

static void stage(struct bench *b, Csi__V1__VolumeCapability *capability)
{
	Csi__V1__NodeStageVolumeRequest q = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry
		type = CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
		path = CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT;
	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry *context[] = { &type, &path };

	type.key = (char *)"driverVolumeType";
	type.value = (char *)"LOCAL";
	path.key = (char *)"devicePath";
	path.value = b->data;
	q.volume_id = (char *)volume;
	q.staging_target_path = b->staging;
	q.volume_capability = capability;
	q.volume_context = context;
	q.n_volume_context = ARRAY_SIZE(context);
	call(b, &csi__v1__node__descriptor, "NodeStageVolume", &q);
}

static void publish(struct bench *b)
{
	Csi__V1__VolumeCapability capability = CSI__V1__VOLUME_CAPABILITY__INIT;
	Csi__V1__VolumeCapability__MountVolume mount =
		CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	Csi__V1__VolumeCapability__AccessMode mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
	Csi__V1__NodePublishVolumeRequest q = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;
	Csi__V1__NodeUnpublishVolumeRequest end = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;
	Csi__V1__NodeUnstageVolumeRequest unstage = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;
	int64_t *published = b->times, *ended = xcalloc((size_t)b->count, sizeof(*ended));

	mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	capability.access_mode = &mode;
	capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	capability.mount = &mount;
	q.volume_id = end.volume_id = unstage.volume_id = (char *)volume;
	q.staging_target_path = unstage.staging_target_path = b->staging;
	q.target_path = end.target_path = b->target;
	q.volume_capability = &capability;
	stage(b, &capability);
	for (int i = -WARM_UP; i < b->count; i++) {
		int64_t begin = now_us(), middle;

		call(b, &csi__v1__node__descriptor, "NodePublishVolume", &q);
		middle = now_us();
		call(b, &csi__v1__node__descriptor, "NodeUnpublishVolume", &end);
		if (i >= 0) {
			published[i] = middle - begin;
			ended[i] = now_us() - middle;
		}
	}
	call(b, &csi__v1__node__descriptor, "NodeUnstageVolume", &unstage);
	report(b, "NodePublishVolume");
	b->times = ended;
	report(b, "NodeUnpublishVolume");
	free(published);
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct bench b = { 0 };

	if (argc != 5)
		return 2;
	b.name = argv[1];
	b.data = xasprintf("%s/data", argv[3]);
	b.staging = xasprintf("%s/%s-staging", argv[3], b.name);
	b.target = xasprintf("%s/%s-target", argv[3], b.name);
	b.count = atoi(argv[4]);
	b.times = xcalloc((size_t)b.count, sizeof(*b.times));
	if (grpc_client_new(argv[2], &b.client, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	probe(&b);
	publish(&b);
	grpc_client_free(b.client);
	return 0;
}
