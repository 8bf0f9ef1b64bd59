/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of a CSI service, as an orchestrator makes them.
 *
 *   bench-csi times NAME SOCKET DIR COUNT   the latency of a node service, one call after the other on one connection:
 *                                           Probe, and NodePublishVolume with its NodeUnpublishVolume, of a volume that is
 *                                           staged (driver LOCAL, the directory DIR/data): "NAME CALL MEDIAN P99" in
 *                                           microseconds
 *   bench-csi hold NAME SOCKET DIR COUNT    stages and publishes so many volumes, eight at a time, says "ready", and takes
 *                                           them away again when standard input ends
 *   bench-csi make SOCKET COUNT             makes so many volumes of a controller, eight at a time, and lists them:
 *                                           "made N, listed N"
 */
#include "base/clock.h"
#include "base/mem.h"
#include "grpc/grpc.h"
#include "proto/csi.pb-c.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define TIMEOUT_MS 30000
#define WARM_UP 20
#define SENDERS 8
#define PAGE 500

struct bench {
	const char *name, *dir;
	struct grpc_client *client;
	int count;
	atomic_int next;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void *ask(struct bench *b, const ProtobufCServiceDescriptor *service, const char *method,
		 const void *request)
{
	struct error err = ERROR_INIT;
	void *reply;

	if (grpc_client_call(b->client, service, method, request, TIMEOUT_MS, &reply, NULL, &err) <
	    0) {
		(void)fprintf(stderr, "%s: %s: %s\n", b->name, method, err.message);
		exit(1);
	}
	return reply;
}

static void call(struct bench *b, const ProtobufCServiceDescriptor *service, const char *method,
		 const void *request)
{
	protobuf_c_message_free_unpacked(ask(b, service, method, request), NULL);
}

/* Calls fn with each number, from several threads at once. */
struct crowd {
	struct bench *b;
	void (*fn)(struct bench *b, int i);
};

static void *take_part(void *arg)
{
	struct crowd *c = arg;
	int i;

	while ((i = atomic_fetch_add(&c->b->next, 1)) < c->b->count)
		c->fn(c->b, i);
	return NULL;
}

static void all_at_once(struct bench *b, void (*fn)(struct bench *b, int i))
{
	struct crowd c = { b, fn };
	pthread_t threads[SENDERS];

	atomic_store(&b->next, 0);
	for (int i = 0; i < SENDERS; i++)
		if (pthread_create(&threads[i], NULL, take_part, &c) != 0)
			exit(1);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
}

/* ---- a volume of a node ------------------------------------------------------------------------ */

struct volume {
	char *id, *data, *staging, *target;
	Csi__V1__VolumeCapability capability;
	Csi__V1__VolumeCapability__MountVolume mount;
	Csi__V1__VolumeCapability__AccessMode mode;
};

static void volume_init(struct volume *v, const struct bench *b, int i)
{
	v->id = xasprintf("bench-%d", i);
	v->data = xasprintf("%s/data", b->dir);
	v->staging = xasprintf("%s/%s-staging-%d", b->dir, b->name, i);
	v->target = xasprintf("%s/%s-target-%d", b->dir, b->name, i);
	v->capability = (Csi__V1__VolumeCapability)CSI__V1__VOLUME_CAPABILITY__INIT;
	v->mount = (Csi__V1__VolumeCapability__MountVolume)
		CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	v->mode = (Csi__V1__VolumeCapability__AccessMode)
		CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__INIT;
	v->mode.mode = CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER;
	v->capability.access_mode = &v->mode;
	v->capability.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	v->capability.mount = &v->mount;
}

static void volume_done(struct volume *v)
{
	free(v->id);
	free(v->data);
	free(v->staging);
	free(v->target);
}

static void stage(struct bench *b, struct volume *v)
{
	Csi__V1__NodeStageVolumeRequest q = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry
		type = CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT,
		path = CSI__V1__NODE_STAGE_VOLUME_REQUEST__VOLUME_CONTEXT_ENTRY__INIT;
	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry *context[] = { &type, &path };

	type.key = (char *)"driverVolumeType";
	type.value = (char *)"LOCAL";
	path.key = (char *)"devicePath";
	path.value = v->data;
	q.volume_id = v->id;
	q.staging_target_path = v->staging;
	q.volume_capability = &v->capability;
	q.volume_context = context;
	q.n_volume_context = ARRAY_SIZE(context);
	call(b, &csi__v1__node__descriptor, "NodeStageVolume", &q);
}

static void publish(struct bench *b, struct volume *v)
{
	Csi__V1__NodePublishVolumeRequest q = CSI__V1__NODE_PUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = v->id;
	q.staging_target_path = v->staging;
	q.target_path = v->target;
	q.volume_capability = &v->capability;
	call(b, &csi__v1__node__descriptor, "NodePublishVolume", &q);
}

static void unpublish(struct bench *b, struct volume *v)
{
	Csi__V1__NodeUnpublishVolumeRequest q = CSI__V1__NODE_UNPUBLISH_VOLUME_REQUEST__INIT;

	q.volume_id = v->id;
	q.target_path = v->target;
	call(b, &csi__v1__node__descriptor, "NodeUnpublishVolume", &q);
}

static void unstage(struct bench *b, struct volume *v)
{
	Csi__V1__NodeUnstageVolumeRequest q = CSI__V1__NODE_UNSTAGE_VOLUME_REQUEST__INIT;

	q.volume_id = v->id;
	q.staging_target_path = v->staging;
	call(b, &csi__v1__node__descriptor, "NodeUnstageVolume", &q);
}

/* ---- times ------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(struct bench *b, const char *what, int64_t *times)
{
	qsort(times, (size_t)b->count, sizeof(*times), by_value);
	printf("%s %s %lld %lld\n", b->name, what, (long long)times[b->count / 2],
	       (long long)times[b->count * 99 / 100]);
}

static void probe(struct bench *b, int64_t *times)
{
	Csi__V1__ProbeRequest q = CSI__V1__PROBE_REQUEST__INIT;

	for (int i = -WARM_UP; i < b->count; i++) {
		int64_t begin = now_us();

		call(b, &csi__v1__identity__descriptor, "Probe", &q);
		if (i >= 0)
			times[i] = now_us() - begin;
	}
	report(b, "Probe", times);
}

static void measure(struct bench *b)
{
	cleanup_free int64_t *published = xcalloc((size_t)b->count, sizeof(*published)),
			     *ended = xcalloc((size_t)b->count, sizeof(*ended));
	struct volume v;

	probe(b, published);
	volume_init(&v, b, 0);
	stage(b, &v);
	for (int i = -WARM_UP; i < b->count; i++) {
		int64_t begin = now_us(), middle;

		publish(b, &v);
		middle = now_us();
		unpublish(b, &v);
		if (i >= 0) {
			published[i] = middle - begin;
			ended[i] = now_us() - middle;
		}
	}
	unstage(b, &v);
	volume_done(&v);
	report(b, "NodePublishVolume", published);
	report(b, "NodeUnpublishVolume", ended);
}

/* ---- many -------------------------------------------------------------------------------------- */

static void put_up(struct bench *b, int i)
{
	struct volume v;

	volume_init(&v, b, i);
	stage(b, &v);
	publish(b, &v);
	volume_done(&v);
}

static void take_down(struct bench *b, int i)
{
	struct volume v;

	volume_init(&v, b, i);
	unpublish(b, &v);
	unstage(b, &v);
	volume_done(&v);
}

static void hold(struct bench *b)
{
	all_at_once(b, put_up);
	puts("ready");
	while (getchar() != EOF)
		;
	all_at_once(b, take_down);
}

static void make(struct bench *b, int i)
{
	Csi__V1__CreateVolumeRequest q = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	Csi__V1__CapacityRange range = CSI__V1__CAPACITY_RANGE__INIT;
	struct volume v;
	Csi__V1__VolumeCapability *capabilities[] = { &v.capability };
	cleanup_free char *name = xasprintf("made-%d", i);

	volume_init(&v, b, i);
	range.required_bytes = 1 << 20;
	q.name = name;
	q.capacity_range = &range;
	q.volume_capabilities = capabilities;
	q.n_volume_capabilities = 1;
	call(b, &csi__v1__controller__descriptor, "CreateVolume", &q);
	volume_done(&v);
}

static size_t list(struct bench *b)
{
	cleanup_free char *token = xstrdup("");
	size_t seen = 0;

	do {
		Csi__V1__ListVolumesRequest q = CSI__V1__LIST_VOLUMES_REQUEST__INIT;
		Csi__V1__ListVolumesResponse *page;

		q.max_entries = PAGE;
		q.starting_token = token;
		page = ask(b, &csi__v1__controller__descriptor, "ListVolumes", &q);
		seen += page->n_entries;
		free(token);
		token = xstrdup(page->next_token);
		protobuf_c_message_free_unpacked(&page->base, NULL);
	} while (*token);
	return seen;
}

int main(int argc, char **argv)
{
	bool many = argc == 4 && streq(argv[1], "make");
	struct bench b = { .name = "make", .dir = "" };
	struct error err = ERROR_INIT;

	if (!many && (argc != 6 || (!streq(argv[1], "times") && !streq(argv[1], "hold"))))
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	b.count = atoi(argv[argc - 1]);
	if (!many) {
		b.name = argv[2];
		b.dir = argv[4];
	}
	if (grpc_client_new(argv[many ? 2 : 3], &b.client, &err) < 0) {
		(void)fprintf(stderr, "%s\n", err.message);
		return 1;
	}
	if (many) {
		all_at_once(&b, make);
		printf("made %d, listed %zu\n", b.count, list(&b));
	} else if (streq(argv[1], "hold")) {
		hold(&b);
	} else {
		measure(&b);
	}
	grpc_client_free(b.client);
	return 0;
}
