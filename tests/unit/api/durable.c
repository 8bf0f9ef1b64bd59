/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

/*
 * A child writes with several threads and says each name once the store has said yes; it is killed in the
 * middle; all that it said must be there. Also: many writers at once.
 */
#define THREADS 4
#define ACKNOWLEDGED 400

static char *dir, *path;

static struct store *open_file(int history)
{
	const struct store_options options = { .path = path, .history = history };
	struct store *s;

	if (store_open(&options, &s, &err) < 0 || store_bootstrap(s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

static int setup(void **state)
{
	const char *base = getenv("TMPDIR");

	(void)state;
	dir = xasprintf("%s/qm-durable.XXXXXX", base && *base ? base : "/tmp");
	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/api.db", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	remove_tree(dir, NULL);
	free(dir);
	free(path);
	return 0;
}

static int write_one(struct store *s, const char *name)
{
	const struct store_write w = { .kind = &KIND_CONFIGMAP, .ns = "default", .manager = "t" };
	cleanup_json json_t *o = configmap(name);

	return store_create(s, &w, o, NULL, NULL);
}

/* ---- the child ---- */

struct writer {
	struct store *s;
	int id, out;
};

static void *write_for_ever(void *arg)
{
	struct writer *w = arg;

	for (int i = 0;; i++) {
		char name[16] = { 0 };

		snprintf(name, sizeof(name), "t%d-%d", w->id, i);
		if (write_one(w->s, name) < 0 || write(w->out, name, sizeof(name)) < 0)
			return NULL;
	}
}

static int child(const char *file, int out)
{
	const struct store_options options = { .path = file };
	struct writer writers[THREADS];
	pthread_t threads[THREADS];
	struct store *s;

	if (store_open(&options, &s, NULL) < 0 || store_bootstrap(s, NULL) < 0)
		return 1;
	for (int i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){ s, i, out };
		pthread_create(&threads[i], NULL, write_for_ever, &writers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* ---- the parent ---- */

static int seen_events;

static void count_event(const struct kube_event *e, void *userdata)
{
	(void)userdata;
	seen_events += e->type == KUBE_ADDED;
}

static void test_killed(void **state)
{
	char names[ACKNOWLEDGED][16], fd[16];
	struct store_query q = { .kind = &KIND_CONFIGMAP };
	struct store_watch *watch;
	struct store *s;
	int pipes[2], code;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(pipes, 0), 0);
	snprintf(fd, sizeof(fd), "%d", pipes[1]);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		execl("/proc/self/exe", "durable", "child", path, fd, (char *)NULL);
		_exit(127);
	}
	close(pipes[1]);
	for (int i = 0; i < ACKNOWLEDGED; i++)
		assert_int_equal(read(pipes[0], names[i], sizeof(names[i])), sizeof(names[i]));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &code, 0), pid);
	assert_true(WIFSIGNALED(code));
	close(pipes[0]);

	s = open_file(0);
	for (int i = 0; i < ACKNOWLEDGED; i++)
		assert_int_equal(store_get(s, &KIND_CONFIGMAP, "default", names[i], NULL, &err), 0);
	/* history too: a watch goes on from before the kill */
	assert_int_equal(store_watch_start(s, &q, "2", count_event, NULL, &watch, &err), 0);
	assert_true(seen_events >= ACKNOWLEDGED);
	store_watch_stop(watch);
	store_close(s);
}

/* ---- many writers ---- */

#define WRITERS 16
#define EACH 25

static struct store *shared;
static atomic_int failures;

static void *create_many(void *arg)
{
	int id = (int)(intptr_t)arg;

	for (int i = 0; i < EACH; i++) {
		char name[32];

		snprintf(name, sizeof(name), "w%d-%d", id, i);
		if (write_one(shared, name) < 0)
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

/* Adds one, again and again, by what it read: a lost update would show in the sum. */
static void *increment(void *arg)
{
	const struct store_write w = { .kind = &KIND_CONFIGMAP, .ns = "default", .name = "sum" };

	(void)arg;
	for (int done = 0; done < EACH;) {
		json_t *o = NULL;
		char text[16];
		int rc;

		if (store_get(shared, &KIND_CONFIGMAP, "default", "sum", &o, NULL) < 0)
			break;
		snprintf(text, sizeof(text), "%d", atoi(jstr(o, "data", "a")) + 1);
		jset(o, json_string(text), "data", "a");
		rc = store_update(shared, &w, o, NULL, NULL);
		json_decref(o);
		done += rc == 0;
		if (rc < 0 && rc != -ESTALE)
			atomic_fetch_add(&failures, 1);
	}
	return NULL;
}

/* Counts events of the live watch; delivery is serialised, so a plain variable will do. */
static int64_t last_version;
static int live;

static void check_order(const struct kube_event *e, void *userdata)
{
	int64_t version = atoll(jstr(e->object, "metadata", "resourceVersion"));

	(void)userdata;
	if (version <= last_version)
		atomic_fetch_add(&failures, 1);
	last_version = version;
	live++;
}

static void run(void *(*fn)(void *))
{
	pthread_t threads[WRITERS];

	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, fn, (void *)(intptr_t)i), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
}

static void test_many_writers(void **state)
{
	struct store_query q = { .kind = &KIND_CONFIGMAP };
	cleanup_json json_t *o = NULL, *list = NULL;
	struct store_watch *watch;

	(void)state;
	shared = open_file(0);
	assert_int_equal(store_watch_start(shared, &q, "", check_order, NULL, &watch, &err), 0);
	run(create_many);
	assert_int_equal(write_one(shared, "sum"), 0);
	run(increment);
	store_watch_stop(watch);
	assert_int_equal(failures, 0);
	assert_int_equal(live, WRITERS * EACH + 1 + WRITERS * EACH);
	assert_int_equal(store_list(shared, &q, &list, &err), 0);
	assert_int_equal(json_array_size(jget(list, "items")), WRITERS * EACH + 1);
	assert_int_equal(store_get(shared, &KIND_CONFIGMAP, "default", "sum", &o, &err), 0);
	assert_int_equal(atoi(jstr(o, "data", "a")), WRITERS * EACH + 1);
	store_close(shared);
}

static void test_reopen(void **state)
{
	struct store *s = open_file(0);
	int64_t version;

	(void)state;
	assert_int_equal(write_one(s, "a"), 0);
	version = store_version(s);
	store_close(s);
	s = open_file(0);
	assert_int_equal(store_version(s), version);
	assert_int_equal(write_one(s, "b"), 0);
	assert_int_equal(store_version(s), version + 1);
	store_close(s);
}

/* A disk that refuses: the write fails, nothing of it stays, and the store goes on when there is room. */
static void test_disk_full(void **state)
{
	struct rlimit before, small;
	struct store *s = open_file(0);
	char name[32];
	int rc = 0, i;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 200 * 1024;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (i = 0; i < 1000 && rc >= 0; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		rc = write_one(s, name);
	}
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(store_get(s, &KIND_CONFIGMAP, "default", name, NULL, &err), -ENOENT);
	assert_int_equal(store_version(s),
			 2 + i - 1); /* two namespaces, and those that went well */
	assert_int_equal(write_one(s, name), 0);
	store_close(s);
	s = open_file(0);
	assert_int_equal(store_version(s), 2 + i);
	store_close(s);
}

static void test_not_a_database(void **state)
{
	const struct store_options options = { .path = path };
	struct store *s = NULL;

	(void)state;
	assert_int_equal(file_write(path, "this is not a database, but long enough to look at", 50,
				    0600, &err),
			 0);
	assert_true(store_open(&options, &s, &err) < 0);
	assert_null(s);
	assert_non_null(strstr(err.message, path));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_writers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reopen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_disk_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_a_database, setup, teardown),
	};

	if (argc == 4 && streq(argv[1], "child"))
		return child(argv[2], atoi(argv[3]));
	return cmocka_run_group_tests_name("api durable", tests, NULL, NULL);
}
