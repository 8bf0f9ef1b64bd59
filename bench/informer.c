/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operator's watches, without its loops, against a cluster that is full: how much memory the caches take,
 * how long the first lists, how late changes are seen. bench/informer runs it beside a program on client-go.
 *
 *   bench-informer fill NODES VOLUMES   makes StorageNodes, and PersistentVolumes with a claim each
 *   bench-informer watch                "synced MS", "settled KIB", then "lag KIND US" for what poke changes
 *   bench-informer poke N               changes a StorageNode, a volume and a claim N times, one after the other
 */
#include "base/mem.h"
#include "base/rand.h"
#include "base/trim.h"
#include "kube/controller.h"
#include "kube/thread.h"
#include "operator/operator.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define SENDERS 8
#define MARK "bench/sent" /* an annotation: when the change was sent, in µs */
#define NS "default"

static int64_t now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void wait_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* ---- a full cluster ------------------------------------------------------------------------------- */

static json_t *node(int i)
{
	cleanup_free char *name = xasprintf("node-%04d", i),
			  *ip = xasprintf("10.0.%d.%d", i / 250, i % 250 + 1);
	json_t *o = json_pack("{ss ss s{ss ss} s{ss s{ss} s{s[s]} s[ss] s{ss}}}", "apiVersion",
			      "coreos.com/v1", "kind", "StorageNode", "metadata", "name", name,
			      "namespace", NS, "spec", "type", "glusterfs", "nodeSelector",
			      "kubernetes.io/hostname", name, "storageNetwork", "ips", ip,
			      "devices", "/dev/sdb", "/dev/sdc", "glusterfs", "cluster", "default");
	json_t *bricks = json_array();

	for (int b = 0; b < 2; b++)
		json_array_append_new(
			bricks, json_pack("{ss ss sI sI sb}", "id", "0123456789abcdef", "pool",
					  "gluster-1", "sizeBytes", (json_int_t)1 << 40,
					  "usedBytes", (json_int_t)1 << 39, "online", true));
	jset(o, bricks, "status", "agent", "bricks");
	return o;
}

static json_t *volume(int i, const char *uid)
{
	cleanup_free char *name = xasprintf("pvc-%s", uid), *claim = xasprintf("claim-%05d", i);
	cleanup_free char *handle = xasprintf("v1.gluster-1.d.%s", name);
	json_t *o = json_pack(
		"{ss ss s{ss s{ss ss} s{ss} s[s]} s{s{ss} s[s] ss ss s{ss ss ss ss} s{ss ss s{ss "
		"ss ss ss}}}}",
		"apiVersion", "v1", "kind", "PersistentVolume", "metadata", "name", name, "labels",
		"quartermaster.storage/deployment", "gluster", "quartermaster.storage/pool",
		"gluster-1", "annotations", "pv.kubernetes.io/provisioned-by",
		"csi.quartermaster.storage", "finalizers", "quartermaster.storage/volume", "spec",
		"capacity", "storage", "1Gi", "accessModes", "ReadWriteMany",
		"persistentVolumeReclaimPolicy", "Delete", "storageClassName", "gluster",
		"claimRef", "kind", "PersistentVolumeClaim", "namespace", NS, "name", claim, "uid",
		uid, "csi", "driver", "csi.quartermaster.storage", "volumeHandle", handle,
		"volumeAttributes", "driverVolumeType", "GLUSTERFS", "export",
		"10.0.0.1:/gluster-1", "name", handle, "options",
		"backup-volfile-servers=10.0.0.2:10.0.0.3");

	return o;
}

static json_t *claim(int i, const char *uid)
{
	cleanup_free char *name = xasprintf("claim-%05d", i), *pv = xasprintf("pvc-%s", uid);

	return json_pack("{ss ss s{ss ss s{ss}} s{s[s] s{s{ss}} ss ss}}", "apiVersion", "v1",
			 "kind", "PersistentVolumeClaim", "metadata", "name", name, "namespace", NS,
			 "annotations", "volume.kubernetes.io/storage-provisioner",
			 "csi.quartermaster.storage", "spec", "accessModes", "ReadWriteMany",
			 "resources", "requests", "storage", "1Gi", "storageClassName", "gluster",
			 "volumeName", pv);
}

struct filling {
	struct kube *kube;
	int nodes, volumes;
	atomic_int next;
	atomic_int failed;
};

static void make(struct filling *f, const struct kind *kind, json_t *object /* stolen */)
{
	struct error err = ERROR_INIT;
	int rc;

	do
		rc = kube_create(f->kube, kind, object, NULL, &err);
	while (rc == -EAGAIN || rc == -ETIMEDOUT);
	if (rc < 0 && rc != -EEXIST && atomic_fetch_add(&f->failed, 1) == 0)
		(void)fprintf(stderr, "bench-informer: %s\n", error_text(&err, rc));
	json_decref(object);
}

static void *send_some(void *arg)
{
	struct filling *f = arg;
	char uid[UUID_TEXT_MAX];
	int i;

	while ((i = atomic_fetch_add(&f->next, 1)) < f->nodes + f->volumes) {
		if (i < f->nodes) {
			make(f, &KIND_STORAGENODE, node(i));
		} else {
			uuid_text(uid);
			make(f, &KIND_PV, volume(i - f->nodes, uid));
			make(f, &KIND_PVC, claim(i - f->nodes, uid));
		}
	}
	return NULL;
}

static int fill(struct kube *k, int nodes, int volumes)
{
	struct filling f = { .kube = k, .nodes = nodes, .volumes = volumes };
	pthread_t threads[SENDERS];

	for (int i = 0; i < SENDERS; i++) {
		if (thread_start(&threads[i], send_some, &f, NULL) < 0)
			return -EAGAIN;
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	return f.failed ? -EIO : 0;
}

static int poke_one(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		    int count, struct error *err)
{
	for (int i = 0; i < count; i++) {
		cleanup_free char *text = xasprintf("%" PRId64, now_us(CLOCK_REALTIME));
		cleanup_json json_t *patch =
			json_pack("{s{s{ss}}}", "metadata", "annotations", MARK, text);
		int rc = kube_patch(k, kind, ns, name, NULL, KUBE_PATCH_MERGE, patch, NULL, err);

		if (rc < 0)
			return rc;
		wait_ms(50);
	}
	return 0;
}

static int poke(struct kube *k, int count, struct error *err)
{
	cleanup_json json_t *claimed = NULL;
	int rc = kube_get(k, &KIND_PVC, NS, "claim-00000", &claimed, err);

	if (rc == 0)
		rc = poke_one(k, &KIND_STORAGENODE, NS, "node-0000", count, err);
	if (rc == 0)
		rc = poke_one(k, &KIND_PVC, NS, "claim-00000", count, err);
	if (rc == 0)
		rc = poke_one(k, &KIND_PV, NULL, jstr(claimed, "spec", "volumeName"), count, err);
	return rc;
}

/* ---- the watches ------------------------------------------------------------------------------------ */

static atomic_int reconciled;

static int seen(struct reconcile *r, const struct kind *kind, const char *key)
{
	char ns[254], name[254];
	cleanup_json json_t *o = NULL;
	const char *sent;

	key_split(key, ns, name);
	o = reader_get(r->cache, kind, ns, name);
	sent = object_annotation(o, MARK);
	if (sent)
		printf("lag %s %" PRId64 "\n", kind->kind,
		       now_us(CLOCK_REALTIME) - (int64_t)strtoll(sent, NULL, 10));
	atomic_fetch_add(&reconciled, 1);
	return 0;
}

static int seen_claim(struct reconcile *r, const char *key)
{
	return seen(r, &KIND_PVC, key);
}

static int seen_volume(struct reconcile *r, const char *key)
{
	return seen(r, &KIND_PV, key);
}

static int seen_node(struct reconcile *r, const char *key)
{
	return seen(r, &KIND_STORAGENODE, key);
}

static int seen_other(struct reconcile *r, const char *key)
{
	atomic_fetch_add(&reconciled, 1);
	return 0;
}

static const struct controller_watch claim_watches[] = { { .kind = &KIND_PVC }, { 0 } };
static const struct controller_watch volume_watches[] = { { .kind = &KIND_PV }, { 0 } };
static const struct controller_watch node_watches[] = { { .kind = &KIND_STORAGENODE }, { 0 } };
static const struct controller_watch other_watches[] = { { .kind = &KIND_STORAGECLASS },
							 { .kind = &KIND_STORAGEPOOL },
							 { .kind = &KIND_STORAGESTATUS },
							 { 0 } };
static const struct controller claims = { "claim", claim_watches, 4, seen_claim };
static const struct controller volumes = { "volume", volume_watches, 2, seen_volume };
static const struct controller nodes = { "node", node_watches, 1, seen_node };
static const struct controller others = { "other", other_watches, 1, seen_other };
static const struct controller *const loops[] = { &claims, &volumes, &nodes, &others, NULL };

static int watch(struct kube *k, struct error *err)
{
	struct runner_options options = {
		.kube = k, .controllers = loops, .project = operator_project, .mark = operator_mark
	};
	int64_t began = now_us(CLOCK_MONOTONIC);
	struct runner *r;
	int rc = runner_start(&options, &r, err), before;

	if (rc < 0)
		return rc;
	while (!runner_synced(r))
		wait_ms(5);
	printf("synced %" PRId64 "\n", (now_us(CLOCK_MONOTONIC) - began) / 1000);
	do { /* the loops look at each object once */
		before = atomic_load(&reconciled);
		wait_ms(500);
	} while (atomic_load(&reconciled) != before);
	memory_trim(0);
	printf("settled %ld\n", memory_resident_kib());
	while (getchar() != EOF)
		;
	runner_stop(r);
	return 0;
}

int main(int argc, char **argv)
{
	cleanup_with(kube_config_done) struct kube_config config = { 0 };
	struct error err = ERROR_INIT;
	struct kube *k = NULL;
	int rc;

	mallopt(M_ARENA_MAX, 2); /* as the operator has it */
	rc = kube_config_load(NULL, &config, &err);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rc == 0)
		rc = kube_connect(&config, &k, &err);
	if (rc < 0)
		;
	else if (argc == 4 && streq(argv[1], "fill"))
		rc = fill(k, atoi(argv[2]), atoi(argv[3]));
	else if (argc == 3 && streq(argv[1], "poke"))
		rc = poke(k, atoi(argv[2]), &err);
	else if (argc == 2 && streq(argv[1], "watch"))
		rc = watch(k, &err);
	else
		rc = error_set(&err, EINVAL,
			       "usage: bench-informer fill NODES VOLUMES | poke N | watch");
	kube_free(k);
	if (rc < 0)
		(void)fprintf(stderr, "bench-informer: %s\n", error_text(&err, rc));
	return rc < 0;
}
