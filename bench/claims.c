/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a claim takes: claims one at a time, from sending it to seeing it Bound; then many at
 * once. Where a directory on a FUSE mount of the pool is given, a plain mkdir there is measured in
 * between, on the same machine at the same time: what the bricks cost alone. See bench/claims.
 *
 * With --bare this program itself answers its claims, as the simplest provisioner there can be: it posts a
 * claim's PersistentVolume as soon as the claim says that one is wanted. With --alone it only posts those
 * volumes, without claims. See bench/provision.
 */
#include "base/mem.h"
#include "base/rand.h"
#include "kube/kube.h"
#include "kube/thread.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#define WAIT_MS 300000
#define LABEL "bench"
#define ANSWERING 16 /* as many as the operator has in work at a time */

struct claim {
	char name[64];
	char uid[40]; /* once a volume is wanted for it */
	int64_t sent, bound; /* µs; 0: not yet */
	bool made, gone; /* its volume */
};

struct bench {
	const char *class, *dir;
	size_t singles, many;
	int senders;
	bool bare, alone; /* whether we answer them; whether there are no claims */
	char run[16]; /* part of every name: claims of an earlier run are not ours */
	char *label;
	struct kube *kube;
	struct claim *claims;
	size_t count;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t bound, made, gone;
	size_t *wanted, wanted_count, wanted_next; /* claims that want a volume of us */
	struct kube_watch *claim_watch, *volume_watch;
	atomic_size_t next;
	atomic_bool failed;
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int fail(const char *what, const struct error *err, int rc)
{
	(void)fprintf(stderr, "bench-claims: %s: %s\n", what, error_text(err, rc));
	return rc;
}

/* ---- what is seen ------------------------------------------------------------------------------ */

/* "bench-RUN-N": N, or -1 where it is not one of this run. */
static long claim_index(const struct bench *b, const char *name)
{
	size_t len = strlen("bench-") + strlen(b->run) + 1;
	long i;

	if (!name || strlen(name) <= len || !str_has_prefix(name, "bench-") ||
	    strncmp(name + strlen("bench-"), b->run, strlen(b->run)) != 0)
		return -1;
	i = strtol(name + len, NULL, 10);
	return i >= 0 && (size_t)i < b->count ? i : -1;
}

static void see_claim(struct bench *b, const struct kube_event *e)
{
	long i = claim_index(b, object_name(e->object));

	if (i >= 0 && b->bare && !b->claims[i].uid[0] &&
	    object_annotation(e->object, "volume.kubernetes.io/storage-provisioner")) {
		(void)snprintf(b->claims[i].uid, sizeof(b->claims[i].uid), "%s",
			       object_uid(e->object));
		b->wanted[b->wanted_count++] = (size_t)i;
	}
	if (i < 0 || !streq(jstr(e->object, "status", "phase"), "Bound") || b->claims[i].bound)
		return;
	b->claims[i].bound = now_us();
	b->bound++;
}

static void see_volume(struct bench *b, const struct kube_event *e)
{
	long i = claim_index(b, jstr(e->object, "spec", "claimRef", "name"));

	if (i >= 0 && e->type == KUBE_ADDED && !b->claims[i].made) {
		b->claims[i].made = true;
		b->made++;
	}
	if (i < 0 || e->type != KUBE_DELETED || b->claims[i].gone)
		return;
	b->claims[i].gone = true;
	b->gone++;
}

static void follow(struct bench *b, struct kube_watch *w,
		   void (*see)(struct bench *b, const struct kube_event *e))
{
	struct error err = ERROR_INIT;
	struct kube_event e;
	int rc;

	while ((rc = b->kube->ops->watch_next(w, WAIT_MS, &e, &err)) > 0) {
		pthread_mutex_lock(&b->lock);
		see(b, &e);
		pthread_cond_broadcast(&b->changed);
		pthread_mutex_unlock(&b->lock);
		json_decref(e.object);
	}
	if (rc != -ECANCELED)
		atomic_store(&b->failed, true);
}

static void *follow_claims(void *arg)
{
	struct bench *b = arg;

	follow(b, b->claim_watch, see_claim);
	return NULL;
}

static void *follow_volumes(void *arg)
{
	struct bench *b = arg;

	follow(b, b->volume_watch, see_volume);
	return NULL;
}

static int wait_for(struct bench *b, const size_t *count, size_t wanted, const char *what)
{
	int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;
	size_t seen;

	pthread_mutex_lock(&b->lock);
	while (*count < wanted && clock_mono_ms(&clock_real) < end && !atomic_load(&b->failed))
		cond_wait_until(&b->changed, &b->lock, end);
	seen = *count;
	pthread_mutex_unlock(&b->lock);
	if (seen >= wanted)
		return 0;
	(void)fprintf(stderr, "bench-claims: only %zu of %zu %s\n", seen, wanted, what);
	return -ETIMEDOUT;
}

/* ---- what is done ------------------------------------------------------------------------------ */

static int send_claim(struct bench *b, size_t i)
{
	struct claim *c = &b->claims[i];
	struct error err = ERROR_INIT;
	cleanup_json json_t *claim = json_pack(
		"{s:s, s:s, s:{s:s, s:s, s:{s:s}}, s:{s:s, s:[s], s:{s:{s:s}}}}", "apiVersion",
		"v1", "kind", "PersistentVolumeClaim", "metadata", "name", c->name, "namespace",
		"default", "labels", LABEL, b->run, "spec", "storageClassName", b->class,
		"accessModes", "ReadWriteMany", "resources", "requests", "storage", "1Mi");
	int rc;

	c->sent = now_us();
	rc = kube_create(b->kube, &KIND_PVC, claim, NULL, &err);
	return rc < 0 ? fail(c->name, &err, rc) : 0;
}

static int delete_claim(struct bench *b, size_t i)
{
	struct error err = ERROR_INIT;
	int rc = kube_delete(b->kube, &KIND_PVC, "default", b->claims[i].name, NULL, &err);

	return rc < 0 && rc != -ENOENT ? fail(b->claims[i].name, &err, rc) : 0;
}

/* As the operator makes them, but for its finalizer; a class is named as its deployment. */
static int post_volume(struct bench *b, size_t i)
{
	struct claim *c = &b->claims[i];
	cleanup_free char *name = xasprintf("pvc-%s", c->uid), *pool = xasprintf("%s-1", b->class),
			  *handle = xasprintf("v1.%s.d.%s", pool, name),
			  *from = xasprintf("10.0.0.1:/%s", pool),
			  *path = xasprintf("subvol/ab/cd/%s", name);
	struct error err = ERROR_INIT;
	cleanup_json json_t *pv = json_pack(
		"{ss ss s{ss s{ss ss} s{ss}} s{s{ss} s[s] ss ss ss s{ss ss ss ss ss} s{ss ss s{ss "
		"ss ss ss ss}}}}",
		"apiVersion", "v1", "kind", "PersistentVolume", "metadata", "name", name, "labels",
		"quartermaster.storage/deployment", b->class, "quartermaster.storage/pool", pool,
		"annotations", "pv.kubernetes.io/provisioned-by", "csi.quartermaster.storage",
		"spec", "capacity", "storage", "1Mi", "accessModes", "ReadWriteMany",
		"persistentVolumeReclaimPolicy", "Retain", "storageClassName", b->class,
		"volumeMode", "Filesystem", "claimRef", "apiVersion", "v1", "kind",
		"PersistentVolumeClaim", "namespace", "default", "name", c->name, "uid", c->uid,
		"csi", "driver", "csi.quartermaster.storage", "volumeHandle", handle,
		"volumeAttributes", "driverVolumeType", "GLUSTERFS", "export", from, "name", path,
		"options", "backup-volfile-servers=10.0.0.2:10.0.0.3", "volumeId", name);
	int rc = kube_create(b->kube, &KIND_PV, pv, NULL, &err);

	return rc < 0 ? fail(name, &err, rc) : 0;
}

static int delete_volume(struct bench *b, size_t i)
{
	cleanup_free char *name = xasprintf("pvc-%s", b->claims[i].uid);
	struct error err = ERROR_INIT;
	int rc = kube_delete(b->kube, &KIND_PV, NULL, name, NULL, &err);

	return rc < 0 && rc != -ENOENT ? fail(name, &err, rc) : 0;
}

/* One of those that answer claims: until each has its volume. */
static void *answer_claims(void *arg)
{
	struct bench *b = arg;
	int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;

	pthread_mutex_lock(&b->lock);
	while (b->wanted_next < b->count && clock_mono_ms(&clock_real) < end &&
	       !atomic_load(&b->failed)) {
		if (b->wanted_next == b->wanted_count) {
			cond_wait_until(&b->changed, &b->lock, end);
			continue;
		}
		size_t i = b->wanted[b->wanted_next++];

		pthread_mutex_unlock(&b->lock);
		if (post_volume(b, i) < 0)
			atomic_store(&b->failed, true);
		pthread_mutex_lock(&b->lock);
		/* the last has to wake the others */
		pthread_cond_broadcast(&b->changed);
	}
	pthread_mutex_unlock(&b->lock);
	return NULL;
}

static int make_dir(struct bench *b, size_t i)
{
	cleanup_free char *path = xasprintf("%s/%s", b->dir, b->claims[i].name);

	return mkdir(path, 0755) < 0 ? -errno : 0;
}

static int remove_dir(struct bench *b, size_t i)
{
	cleanup_free char *path = xasprintf("%s/%s", b->dir, b->claims[i].name);

	return rmdir(path) < 0 ? -errno : 0;
}

struct crowd {
	struct bench *b;
	int (*fn)(struct bench *b, size_t i);
};

static void *take_part(void *arg)
{
	struct crowd *c = arg;
	size_t i;

	while ((i = atomic_fetch_add(&c->b->next, 1)) < c->b->count)
		if (c->fn(c->b, i) < 0)
			atomic_store(&c->b->failed, true);
	return NULL;
}

/* Calls fn for all from the first on, from several threads at once. */
static int all_at_once(struct bench *b, size_t first, int (*fn)(struct bench *b, size_t i))
{
	struct crowd c = { b, fn };
	cleanup_free pthread_t *threads = xcalloc((size_t)b->senders, sizeof(*threads));
	struct error err = ERROR_INIT;
	int started = 0, rc = 0;

	atomic_store(&b->next, first);
	while (started < b->senders && rc == 0) {
		rc = thread_start(&threads[started], take_part, &c, &err);
		started += rc == 0;
	}
	while (started > 0)
		pthread_join(threads[--started], NULL);
	if (rc < 0)
		return fail("starting", &err, rc);
	return atomic_load(&b->failed) ? -EIO : 0;
}

/* ---- what it comes to -------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double ms_at(const int64_t *sorted, size_t count, int percent)
{
	return count ? (double)sorted[(count - 1) * (size_t)percent / 100] / 1000 : 0;
}

/* Sorts the times and prints their spread; the median in ms. */
static double print_spread(const char *what, int64_t *times, size_t count)
{
	qsort(times, count, sizeof(*times), compare);
	printf("%-34s median %7.1f ms   90 %% %7.1f ms   longest %7.1f ms\n", what,
	       ms_at(times, count, 50), ms_at(times, count, 90), ms_at(times, count, 100));
	return ms_at(times, count, 50);
}

static double print_rate(const char *what, size_t count, int64_t us)
{
	double rate = (double)count * 1e6 / (double)us;

	printf("%-34s %zu in %.1f s: %.1f a second\n", what, count, (double)us / 1e6, rate);
	return rate;
}

/* One after the other, a mkdir after each claim. */
static int measure_singles(struct bench *b)
{
	cleanup_free int64_t *claims = xcalloc(b->singles + 1, sizeof(*claims));
	cleanup_free int64_t *dirs = xcalloc(b->singles + 1, sizeof(*dirs));
	double claim_ms, dir_ms;

	for (size_t i = 0; i < b->singles; i++) {
		int rc = send_claim(b, i);

		if (rc == 0)
			rc = wait_for(b, &b->bound, i + 1, "claims are Bound");
		if (rc < 0)
			return rc;
		claims[i] = b->claims[i].bound - b->claims[i].sent;
		int64_t before = now_us();
		if (b->dir && (rc = make_dir(b, i)) < 0)
			return fail(b->dir, NULL, rc);
		dirs[i] = now_us() - before;
	}
	claim_ms = print_spread("one claim, sent to Bound", claims, b->singles);
	if (!b->dir)
		return 0;
	dir_ms = print_spread("one mkdir through FUSE", dirs, b->singles);
	printf("%-34s %.2f\n", "ratio of the medians", claim_ms / dir_ms);
	return 0;
}

static int measure_many(struct bench *b)
{
	cleanup_free int64_t *times = xcalloc(b->many + 1, sizeof(*times));
	int64_t began = now_us();
	double rate, dir_rate;
	int rc = all_at_once(b, b->singles, b->alone ? post_volume : send_claim);

	if (rc == 0)
		rc = wait_for(b, &b->made, b->count, "volumes are there");
	if (rc == 0)
		print_rate("volumes at once, all there", b->many, now_us() - began);
	if (rc < 0 || b->alone)
		return rc;
	rc = wait_for(b, &b->bound, b->count, "claims are Bound");
	if (rc < 0)
		return rc;
	rate = print_rate("claims at once, all Bound", b->many, now_us() - began);
	for (size_t i = 0; i < b->many; i++)
		times[i] = b->claims[b->singles + i].bound - b->claims[b->singles + i].sent;
	print_spread("each of them, sent to Bound", times, b->many);
	if (!b->dir)
		return 0;
	began = now_us();
	rc = all_at_once(b, b->singles, make_dir);
	if (rc < 0)
		return rc;
	dir_rate = print_rate("mkdir at once through FUSE", b->many, now_us() - began);
	printf("%-34s %.2f\n", "ratio of the rates", rate / dir_rate);
	return 0;
}

static int measure_removal(struct bench *b)
{
	int64_t began = now_us();
	int rc = b->alone ? 0 : all_at_once(b, 0, delete_claim);

	if (rc == 0 && (b->bare || b->alone))
		rc = all_at_once(b, 0, delete_volume);
	if (rc == 0)
		rc = wait_for(b, &b->gone, b->count, "volumes are gone");
	if (rc == 0)
		print_rate("claims deleted, volumes gone", b->count, now_us() - began);
	if (b->dir)
		all_at_once(b, 0, remove_dir);
	return rc;
}

static int measure(struct bench *b, bool keep)
{
	pthread_t answering[ANSWERING];
	struct error err = ERROR_INIT;
	int rc = 0, started = 0;

	while (b->bare && started < ANSWERING && rc == 0) {
		rc = thread_start(&answering[started], answer_claims, b, &err);
		started += rc == 0;
	}
	if (rc == 0 && b->singles)
		rc = measure_singles(b);
	if (rc == 0 && b->many)
		rc = measure_many(b);
	atomic_store(&b->failed, atomic_load(&b->failed) || rc < 0);
	pthread_mutex_lock(&b->lock);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	while (started > 0)
		pthread_join(answering[--started], NULL);
	return rc < 0 || keep ? rc : measure_removal(b);
}

/* ---- the program ------------------------------------------------------------------------------- */

static int watch(struct bench *b, const struct kind *kind, const char *ns, const char *labels,
		 struct kube_watch **ret)
{
	struct kube_selector selector = { .labels = labels };
	struct error err = ERROR_INIT;
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;
	int rc = kube_list(b->kube, kind, ns, &selector, &items, &version, &err);

	if (rc == 0)
		rc = b->kube->ops->watch(b->kube, kind, ns, &selector, version, ret, &err);
	return rc < 0 ? fail(kind->plural, &err, rc) : 0;
}

static int run(struct bench *b, bool keep)
{
	cleanup_free char *label = xasprintf(LABEL "=%s", b->run);
	pthread_t claims, volumes;
	struct error err = ERROR_INIT;
	int rc = watch(b, &KIND_PVC, "default", label, &b->claim_watch);

	if (rc == 0)
		rc = watch(b, &KIND_PV, NULL, NULL, &b->volume_watch);
	if (rc == 0)
		rc = thread_start(&claims, follow_claims, b, &err);
	if (rc < 0)
		return rc;
	rc = thread_start(&volumes, follow_volumes, b, &err);
	if (rc == 0) {
		rc = measure(b, keep);
		b->kube->ops->watch_cancel(b->volume_watch);
		pthread_join(volumes, NULL);
	}
	b->kube->ops->watch_cancel(b->claim_watch);
	pthread_join(claims, NULL);
	b->kube->ops->watch_close(b->claim_watch);
	b->kube->ops->watch_close(b->volume_watch);
	return rc;
}

static int connect_api(struct bench *b)
{
	cleanup_with(kube_config_done) struct kube_config config = { 0 };
	struct error err = ERROR_INIT;
	int rc = kube_config_load(NULL, &config, &err);

	if (rc == 0)
		rc = kube_connect(&config, &b->kube, &err);
	return rc < 0 ? fail("the API", &err, rc) : 0;
}

static void name_claims(struct bench *b)
{
	uint32_t id;

	rand_bytes(&id, sizeof(id));
	(void)snprintf(b->run, sizeof(b->run), "%08" PRIx32, id);
	b->count = b->singles + b->many;
	b->claims = xcalloc(b->count + 1, sizeof(*b->claims));
	b->wanted = xcalloc(b->count + 1, sizeof(*b->wanted));
	for (size_t i = 0; i < b->count; i++) {
		(void)snprintf(b->claims[i].name, sizeof(b->claims[i].name), "bench-%s-%zu", b->run,
			       i);
		if (b->alone)
			uuid_text(b->claims[i].uid);
	}
}

static const struct option options[] = { { "single", required_argument, NULL, 's' },
					 { "count", required_argument, NULL, 'n' },
					 { "senders", required_argument, NULL, 'p' },
					 { "class", required_argument, NULL, 'c' },
					 { "dir", required_argument, NULL, 'd' },
					 { "keep", no_argument, NULL, 'k' },
					 { "bare", no_argument, NULL, 'b' },
					 { "alone", no_argument, NULL, 'a' },
					 { 0 } };

static const char usage[] =
	"bench-claims [--single N] [--count N] [--senders N] [--class NAME] [--dir DIR] [--keep] "
	"[--bare|--alone]\n"
	"  --single N    claims one at a time (default 50)\n"
	"  --count N     claims at once (default 1000)\n"
	"  --senders N   threads that send them (default 8)\n"
	"  --class NAME  their StorageClass (default glusterfs)\n"
	"  --dir DIR     on a FUSE mount of a pool: compare with mkdir there\n"
	"  --keep        do not delete them\n"
	"  --bare        post their volumes, too: for a cluster where nobody else does\n"
	"  --alone       post the volumes only (with --single 0)\n";

int main(int argc, char **argv)
{
	struct bench b = { .class = "glusterfs", .singles = 50, .many = 1000, .senders = 8 };
	bool keep = false;
	int c, rc;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 's':
			b.singles = strtoul(optarg, NULL, 10);
			break;
		case 'n':
			b.many = strtoul(optarg, NULL, 10);
			break;
		case 'p':
			b.senders = (int)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			b.class = optarg;
			break;
		case 'd':
			b.dir = optarg;
			break;
		case 'k':
			keep = true;
			break;
		case 'b':
			b.bare = true;
			break;
		case 'a':
			b.alone = true;
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (b.senders < 1 || optind < argc || (b.alone && b.singles)) {
		fputs(usage, stderr);
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_mutex_init(&b.lock, NULL);
	cond_init(&b.changed);
	name_claims(&b);
	rc = connect_api(&b);
	if (rc == 0)
		rc = run(&b, keep);
	kube_free(b.kube);
	free(b.claims);
	free(b.wanted);
	return rc < 0 ? 1 : 0;
}
