/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What bench/operator needs beside bench-informer, which makes the volumes and claims: StorageNodes with the
 * reports of agents that are not there, and the time until the operator has acted on a change.
 *
 *   bench-operator nodes N          N StorageNodes, in clusters of 20, each with a report of two devices
 *   bench-operator report I N UP    the agents of nodes I to N - 1 report that glusterd runs (1) or not (0)
 *   bench-operator react N FIRST    N times each: "node MS" from the change of a StorageNode, from that one on,
 *                                   to its status, "claim MS" from a new claim to what the operator says of it
 *   bench-operator settled N        ends when the operator has counted N nodes and stood still for 5 s
 */
#include "operator/operator.h"
#include "base/mem.h"
#include "base/rand.h"
#include "kube/kube.h"
#include "kube/thread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define NS "default"
#define CLUSTER_NODES 20
#define POLL_MS 10
#define REACT_MAX_MS 60000
#define STILL_MS 5000
#define SENDERS 8

static void wait_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static json_t *node(int i)
{
	cleanup_free char *name = xasprintf("node-%04d", i),
			  *ip = xasprintf("10.0.%d.%d", i / 250, i % 250 + 1),
			  *cluster = xasprintf("c%02d", i / CLUSTER_NODES);

	return json_pack("{ss ss s{ss ss} s{ss s{ss} s{s[s]} s[ss] s{ss}}}", "apiVersion",
			 "coreos.com/v1", "kind", "StorageNode", "metadata", "name", name,
			 "namespace", NS, "spec", "type", "glusterfs", "nodeSelector",
			 "kubernetes.io/hostname", name, "storageNetwork", "ips", ip, "devices",
			 "/dev/sdb", "/dev/sdc", "glusterfs", "cluster", cluster);
}

/* An agent's report of two disks that hold nothing yet. */
static json_t *report(const char *id)
{
	static const char *const names[] = { "/dev/sdb", "/dev/sdc" };
	json_t *devices = json_array();

	for (size_t d = 0; d < ARRAY_SIZE(names); d++) {
		cleanup_free char *wwn = xasprintf("0x%.12s%02zx", id, d),
				  *numbers = xasprintf("8:%zu", 16 * (d + 1));

		json_array_append_new(
			devices, json_pack("{ss ss ss ss sI ss ss}", "device", names[d], "state",
					   "Available", "reason", "", "message", "", "sizeBytes",
					   (json_int_t)1 << 40, "wwn", wwn, "majorMinor", numbers));
	}
	return json_pack("{s{s{sI sI ss ss ss ss s{sb ss si ss ss} so s[] s{sb ss ss}}}}", "status",
			 "agent", "observedGeneration", (json_int_t)1, "planEpoch", (json_int_t)0,
			 "machineId", id, "bootId", id, "version", "bench", "heartbeat",
			 "2026-01-01T00:00:00Z", "glusterd", "running", true, "uuid", id, "pid",
			 1234, "version", "10.3", "message", "", "devices", devices, "bricks",
			 "quota", "enforced", true, "reason", "", "message", "");
}

static int make_node(struct kube *k, int i, struct error *err)
{
	cleanup_json json_t *o = node(i), *patch = NULL;
	char id[UUID_TEXT_MAX];
	int rc = kube_create(k, &KIND_STORAGENODE, o, NULL, err);

	if (rc < 0)
		return rc == -EEXIST ? 0 : rc;
	patch = report(uuid_text(id));
	return kube_patch(k, &KIND_STORAGENODE, NS, object_name(o), "status", KUBE_PATCH_MERGE,
			  patch, NULL, err);
}

/* What one agent reports of its glusterd; the operator answers with a condition and a phase. */
static int change_report(struct kube *k, int i, bool up, struct error *err)
{
	cleanup_free char *name = xasprintf("node-%04d", i);
	cleanup_json json_t *patch =
		json_pack("{s{s{s{sb}}}}", "status", "agent", "glusterd", "running", up);

	return kube_patch(k, &KIND_STORAGENODE, NS, name, "status", KUBE_PATCH_MERGE, patch, NULL,
			  err);
}

static int report_up(struct kube *k, int i, struct error *err)
{
	return change_report(k, i, true, err);
}

static int report_down(struct kube *k, int i, struct error *err)
{
	return change_report(k, i, false, err);
}

/* ---- many at once --------------------------------------------------------------------------- */

struct sending {
	struct kube *kube;
	int (*one)(struct kube *k, int i, struct error *err);
	int count; /* from next on up to this one */
	atomic_int next, failed;
};

static void *send_some(void *arg)
{
	struct sending *s = arg;
	int i;

	while ((i = atomic_fetch_add(&s->next, 1)) < s->count) {
		struct error err = ERROR_INIT;
		int rc = s->one(s->kube, i, &err);

		if (rc < 0 && atomic_fetch_add(&s->failed, 1) == 0)
			(void)fprintf(stderr, "bench-operator: %s\n", error_text(&err, rc));
	}
	return NULL;
}

static int for_each_node(struct kube *k, int first, int count,
			 int (*one)(struct kube *k, int i, struct error *err), struct error *err)
{
	struct sending s = { .kube = k, .one = one, .count = count, .next = first };
	pthread_t threads[SENDERS];

	for (int i = 0; i < SENDERS; i++) {
		if (thread_start(&threads[i], send_some, &s, err) < 0)
			return -EAGAIN;
	}
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	return s.failed ? error_set(err, EIO, "%d of %d failed", s.failed, count) : 0;
}

/* ---- reactions ------------------------------------------------------------------------------ */

/* Looks at an object until done says so; prints how long that took since the change was sent. */
static int await(struct kube *k, const struct kind *kind, const char *name, const char *what,
		 int64_t began, bool (*done)(const json_t *object), struct error *err)
{
	int64_t took = 0;

	while (took < REACT_MAX_MS) {
		cleanup_json json_t *o = NULL;
		int rc = kube_get(k, kind, NS, name, &o, err);

		took = clock_mono_ms(&clock_real) - began;
		if (rc < 0)
			return rc;
		if (done(o)) {
			printf("%s %" PRId64 "\n", what, took);
			return 0;
		}
		wait_ms(POLL_MS);
	}
	return error_set(err, ETIMEDOUT, "nothing came of the change of %s %s", kind->kind, name);
}

static bool node_acted_on(const json_t *o)
{
	return jint(o, "status", "observedGeneration") == jint(o, "metadata", "generation");
}

/* Chosen a pool for it, or said why it waits. */
static bool claim_acted_on(const json_t *o)
{
	return object_annotation(o, QM_ANNOTATION_WAITING) ||
	       object_annotation(o, QM_ANNOTATION_POOL);
}

static int change_node(struct kube *k, int i, struct error *err)
{
	cleanup_free char *name = xasprintf("node-%04d", i);
	cleanup_json json_t *patch = json_pack("{s{sb}}", "spec", "maintenance", true);
	int64_t began = clock_mono_ms(&clock_real);
	int rc = kube_patch(k, &KIND_STORAGENODE, NS, name, NULL, KUBE_PATCH_MERGE, patch, NULL,
			    err);

	return rc < 0 ? rc : await(k, &KIND_STORAGENODE, name, "node", began, node_acted_on, err);
}

/* As Kubernetes leaves a claim that needs a new volume. */
static int new_claim(struct kube *k, const char *class, struct error *err)
{
	char id[UUID_TEXT_MAX];
	cleanup_free char *name = xasprintf("react-%s", uuid_text(id));
	cleanup_json json_t *o =
		json_pack("{ss ss s{ss ss s{ss}} s{s[s] s{s{ss}} ss}}", "apiVersion", "v1", "kind",
			  "PersistentVolumeClaim", "metadata", "name", name, "namespace", NS,
			  "annotations", "volume.kubernetes.io/storage-provisioner", QM_DRIVER,
			  "spec", "accessModes", "ReadWriteMany", "resources", "requests",
			  "storage", "1Gi", "storageClassName", class);
	int64_t began = clock_mono_ms(&clock_real);
	int rc = kube_create(k, &KIND_PVC, o, NULL, err);

	return rc < 0 ? rc : await(k, &KIND_PVC, name, "claim", began, claim_acted_on, err);
}

static int react(struct kube *k, int count, int first, struct error *err)
{
	int rc = 0;

	for (int i = first; rc == 0 && i < first + count; i++) {
		rc = change_node(k, i, err);
		if (rc == 0)
			rc = new_claim(k, "gluster", err);
	}
	return rc;
}

struct standing {
	uint64_t newest; /* version of a StorageNode or StorageStatus */
	int64_t nodes; /* that the StorageStatus counts */
};

static int note(json_t *object, void *userdata)
{
	struct standing *s = userdata;
	uint64_t version = strtoull(object_version(object), NULL, 10);

	if (version > s->newest)
		s->newest = version;
	if (streq(jstr(object, "kind"), KIND_STORAGESTATUS.kind))
		s->nodes = jint(object, "status", "nodes");
	return 0;
}

/* Ends when all nodes are counted, and nothing has been written for a while. */
static int settled(struct kube *k, int nodes, struct error *err)
{
	int64_t since = clock_mono_ms(&clock_real);
	uint64_t last = 0;

	while (clock_mono_ms(&clock_real) - since < STILL_MS) {
		struct standing now = { 0 };
		int rc = kube_list_each(k, &KIND_STORAGENODE, NS, NULL, note, &now, NULL, err);

		if (rc == 0)
			rc = kube_list_each(k, &KIND_STORAGESTATUS, NS, NULL, note, &now, NULL,
					    err);
		if (rc < 0)
			return rc;
		if (now.newest != last || now.nodes != nodes)
			since = clock_mono_ms(&clock_real);
		last = now.newest;
		wait_ms(STILL_MS / 5);
	}
	return 0;
}

int main(int argc, char **argv)
{
	cleanup_with(kube_config_done) struct kube_config config = { 0 };
	struct error err = ERROR_INIT;
	struct kube *k = NULL;
	int rc = kube_config_load(NULL, &config, &err);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rc == 0)
		rc = kube_connect(&config, &k, &err);
	if (rc < 0)
		;
	else if (argc == 3 && streq(argv[1], "nodes"))
		rc = for_each_node(k, 0, atoi(argv[2]), make_node, &err);
	else if (argc == 5 && streq(argv[1], "report"))
		rc = for_each_node(k, atoi(argv[2]), atoi(argv[3]),
				   atoi(argv[4]) ? report_up : report_down, &err);
	else if (argc == 4 && streq(argv[1], "react"))
		rc = react(k, atoi(argv[2]), atoi(argv[3]), &err);
	else if (argc == 3 && streq(argv[1], "settled"))
		rc = settled(k, atoi(argv[2]), &err);
	else
		rc = error_set(&err, EINVAL,
			       "usage: bench-operator nodes N | report I N UP | react N FIRST | "
			       "settled N");
	kube_free(k);
	if (rc < 0)
		(void)fprintf(stderr, "bench-operator: %s\n", error_text(&err, rc));
	return rc < 0;
}
