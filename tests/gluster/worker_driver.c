/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the operator's side of qm-gluster by hand, for tests/gluster/worker.sh:
 *   worker-driver PROGRAM LOG_DIR MAX IDLE_MS HOST… < script
 * A line of the script is one of
 *   create|make|complete|resize|remove|archive|find|copy|snapshot|snapshots|stat|list POOL [NAME [SIZE [FROM]]]
 *                                                         prints "OP POOL NAME: rc N, M ms, message"
 *   until LINE                                            the same again until it is neither under way nor interrupted
 *   bg LINE                                               the same in a thread
 *   join                                                  waits for all threads
 *   sleep MS
 *   bench POOL COUNT THREADS [OP]                         COUNT creates, or makes; prints "bench: N/s, median M ms"
 */
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "worker/worker.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#define UNTIL_MS 100000

static struct workers *workers;
static const char *const *hosts;

static int64_t now(void)
{
	return clock_mono_ms(&clock_real);
}

/* "name", or "f:name" where it is not a directory; "name@owner" where the name comes again. Changes the text. */
static struct worker_volume volume_of(char *text)
{
	char *at = strchr(text, '@');
	struct worker_volume v = { VOLUME_DIRECTORY, text, at ? at + 1 : NULL };

	if (at)
		*at = 0;
	if (text[0] && text[1] == ':') {
		v.kind = (enum volume_kind)text[0];
		v.name = text + 2;
	}
	return v;
}

static int run(const char *op, const char *pool, const char *name, int64_t size, const char *from,
	       json_t **result, struct error *err)
{
	const struct worker_ops *ops = workers->ops;
	struct worker_pool p = { .name = pool, .hosts = hosts };
	cleanup_free char *name_text = xstrdup(name), *from_text = xstrdup(from);
	struct worker_volume v = volume_of(name_text), source = volume_of(from_text);
	if (streq(op, "create"))
		return ops->create(workers, &p, &v, size, err);
	if (streq(op, "make"))
		return ops->make(workers, &p, &v, err);
	if (streq(op, "complete"))
		return ops->complete(workers, &p, &v, size, err);
	if (streq(op, "resize"))
		return ops->resize(workers, &p, &v, size, err);
	if (streq(op, "remove"))
		return v.kind == VOLUME_SNAPSHOT ? ops->snapshot_remove(workers, &p, &v, err)
						 : ops->remove(workers, &p, &v, err);
	if (streq(op, "archive"))
		return ops->archive(workers, &p, &v, err);
	if (streq(op, "find"))
		return ops->find(workers, &p, &v, result, err);
	if (streq(op, "copy"))
		return ops->copy(workers, &p, &v, size, &source, err);
	if (streq(op, "snapshot"))
		return ops->snapshot(workers, &p, &source, &v, result, err);
	if (streq(op, "snapshots"))
		return ops->snapshots(workers, &p, result, err);
	if (streq(op, "stat"))
		return ops->stat(workers, &p, result, err);
	return ops->list(workers, &p, result, err);
}

static void *run_line(void *arg)
{
	cleanup_free char *text_of = arg;
	const char *line = text_of;
	bool again = str_has_prefix(line, "until ");
	char op[16] = "", pool[64] = "", name[200] = "-", from[200] = "-";
	long long size = 0;
	struct error err = ERROR_INIT;
	cleanup_json json_t *result = NULL;

	line += again ? strlen("until ") : 0;
	sscanf(line, "%15s %63s %199s %lld %199s", op, pool, name, &size, from);
	int64_t start = now();
	int rc = run(op, pool, name, size, from, &result, &err);
	while (again && (rc == 1 || rc == -EAGAIN) && now() - start < UNTIL_MS) {
		poll(NULL, 0, 50);
		json_decref(TAKE_PTR(result));
		rc = run(op, pool, name, size, from, &result, &err);
	}
	cleanup_free char *text = result ? json_text(result) : NULL;
	printf("%s %s %s: rc %d, %d ms, %s\n", op, pool, name, rc, (int)(now() - start),
	       text ? text : err.message);
	fflush(stdout);
	return NULL;
}

/* ---- bench ------------------------------------------------------------------------------------ */

static struct {
	char pool[64], op[16];
	int count, next;
	int *ms;
	int failed;
} bench;

static void *bench_thread(void *arg)
{
	int i;
	while ((i = __atomic_fetch_add(&bench.next, 1, __ATOMIC_RELAXED)) < bench.count) {
		struct error err = ERROR_INIT;
		cleanup_free char *name = xasprintf("pvc-bench-%d-%d", (int)getpid(), i);
		int64_t start = now();
		if (run(bench.op, bench.pool, name, 1 << 20, "-", NULL, &err) < 0) {
			__atomic_fetch_add(&bench.failed, 1, __ATOMIC_RELAXED);
			printf("# %s\n", err.message);
		}
		bench.ms[i] = (int)(now() - start);
	}
	return arg;
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void run_bench(const char *line)
{
	int threads = 8;
	pthread_t ids[64];
	strcpy(bench.op, "create");
	sscanf(line, "bench %63s %d %d %15s", bench.pool, &bench.count, &threads, bench.op);
	bench.ms = xcalloc((size_t)bench.count, sizeof(int));
	int64_t start = now();
	for (int i = 0; i < threads; i++)
		pthread_create(&ids[i], NULL, bench_thread, NULL);
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	double seconds = (double)(now() - start) / 1000;
	qsort(bench.ms, (size_t)bench.count, sizeof(int), by_value);
	printf("bench: %.0f/s, median %d ms, failed %d\n", bench.count / seconds,
	       bench.ms[bench.count / 2], bench.failed);
	free(bench.ms);
}

/* QM_EPOCH: of the lease that we pretend to have. */
static int64_t epoch_of_test(void *userdata)
{
	const char *text = getenv("QM_EPOCH");
	return text ? strtoll(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	char line[512];
	pthread_t threads[64];
	int count = 0, ms;
	const char *deadline = getenv("QM_DEADLINE_MS"); /* of a call */

	if (argc < 6)
		return 2;
	hosts = (const char *const *)argv + 5;
	struct workers_options options = { .epoch = epoch_of_test,
					   .program = argv[1],
					   .log_dir = argv[2],
					   .max = atoi(argv[3]),
					   .idle_ms = atoi(argv[4]),
					   .deadline_ms = deadline ? atoi(deadline) : 0 };
	if (workers_start(&options, &workers, &err) < 0)
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "sleep %d", &ms) == 1) {
			poll(NULL, 0, ms);
		} else if (str_has_prefix(line, "bench ")) {
			run_bench(line);
		} else if (str_has_prefix(line, "bg ") && count < 64) {
			pthread_create(&threads[count++], NULL, run_line, xstrdup(line + 3));
		} else if (streq(line, "join")) {
			while (count)
				pthread_join(threads[--count], NULL);
		} else if (line[0]) {
			run_line(xstrdup(line));
		}
	}
	while (count)
		pthread_join(threads[--count], NULL);
	workers->ops->free(workers);
	return 0;
}
