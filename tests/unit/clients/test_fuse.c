/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A FUSE file system whose server, client container and asker are killed under a writer that looks
 * at every byte: it sees none of it. With QM_LONG=1 ten times as often.
 */
#include "../skip.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "clients/client.h"
#include "clients/fuse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>

enum { WAIT_MS = 20000, BLOCK = 32 << 10, BLOCKS = 24 };

static char *base, *dir, *store, *point;
static pid_t client;
static struct fuse_keeper *keeper;

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

/* ---- the client ------------------------------------------------------------------------------ */

static json_t *info(void)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *request = json_pack("{s:s}", "op", "info");

	return client_call(dir, request, NULL, 0, 5000, &reply, NULL) < 0 ? NULL
									  : json_incref(reply.text);
}

static void start_client(void)
{
	int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;
	pid_t parent = getpid();

	client = fork();
	assert_true(client >= 0);
	if (client == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			execl(QM_CLIENT, "qm-client", dir, NULL);
		_exit(127);
	}
	for (;; pause_ms(5)) {
		cleanup_json json_t *i = info();

		if (i && jint(i, "pid") == client)
			return;
		assert_true(clock_mono_ms(&clock_real) < end);
	}
}

static void kill_client(void)
{
	if (client <= 0)
		return;
	kill(client, SIGKILL);
	waitpid(client, NULL, 0);
	client = 0;
}

/* What the client says of the file system, or NULL: that it has none. */
static json_t *served(void)
{
	cleanup_json json_t *i = info();
	json_t *one;
	size_t n;

	assert_non_null(i);
	json_array_foreach (json_object_get(i, "fuse"), n, one)
		if (streq(jstr(one, "mountPoint"), point))
			return json_incref(one);
	return NULL;
}

/* The process that serves, once it is another than before. */
static pid_t server(pid_t before)
{
	for (int64_t end = clock_mono_ms(&clock_real) + WAIT_MS;; pause_ms(5)) {
		cleanup_json json_t *one = served();

		assert_non_null(one);
		if (jint(one, "pid") && jint(one, "pid") != before)
			return (pid_t)jint(one, "pid");
		assert_true(clock_mono_ms(&clock_real) < end);
	}
}

/* ---- the writer ------------------------------------------------------------------------------ */

struct progress {
	volatile int rounds, stop;
	char failure[200];
};
static struct progress *progress;
static pid_t writer;

static void fail_writer(const char *what, int round)
{
	snprintf(progress->failure, sizeof(progress->failure), "%s in round %d: %s", what, round,
		 strerror(errno));
	_exit(1);
}

static void fill(unsigned char *block, int round, int n)
{
	for (int i = 0; i < BLOCK; i++)
		block[i] = (unsigned char)(round * 31 + n * 7 + i % 251);
}

static void write_round(int round, const char *path, const char *done)
{
	unsigned char block[BLOCK], seen[BLOCK];
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		fail_writer("create", round);
	for (int i = 0; i < BLOCKS; i++) {
		fill(block, round, i);
		if (write(fd, block, BLOCK) != BLOCK)
			fail_writer("write", round);
	}
	if (fsync(fd) < 0)
		fail_writer("fsync", round);
	for (int i = 0; i < BLOCKS; i++) {
		fill(block, round, i);
		/* what is cached says nothing of the server */
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		if (pread(fd, seen, BLOCK, (off_t)i * BLOCK) != BLOCK)
			fail_writer("read", round);
		if (memcmp(block, seen, BLOCK) != 0)
			fail_writer("compare", round);
	}
	if (rename(path, done) < 0)
		fail_writer("rename", round);
	if (unlink(done) < 0)
		fail_writer("unlink", round);
}

static void start_writer(void)
{
	pid_t parent = getpid();

	memset(progress, 0, sizeof(*progress));
	writer = fork();
	assert_true(writer >= 0);
	if (writer)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* who keeps the descriptor and waits for an answer would wait for ever where nobody serves */
	close_range(3, ~0u, 0);
	if (getppid() != parent)
		_exit(1);
	for (int round = 0; !progress->stop; round++) {
		cleanup_free char *path = xasprintf("%s/file-%d", point, round);
		cleanup_free char *done = xasprintf("%s/done-%d", point, round);

		write_round(round, path, done);
		progress->rounds++;
	}
	_exit(0);
}

/* Until the writer has done so many rounds more, without an error. */
static void await_rounds(int more)
{
	int want = progress->rounds + more;

	for (int64_t end = clock_mono_ms(&clock_real) + WAIT_MS; progress->rounds < want;
	     pause_ms(5)) {
		assert_string_equal(progress->failure, "");
		assert_true(clock_mono_ms(&clock_real) < end);
	}
}

static void end_writer(void)
{
	int status;

	await_rounds(2);
	progress->stop = 1;
	assert_int_equal(waitpid(writer, &status, 0), writer);
	writer = 0;
	assert_string_equal(progress->failure, "");
	assert_int_equal(status, 0);
}

/* ---- */

static int times(int usual)
{
	return getenv("QM_LONG") ? usual * 10 : usual;
}

static void mount_it(void)
{
	const char *const argv[] = { FUSE_SERVER, store, "/dev/fd/3", NULL };
	struct error err = ERROR_INIT;

	assert_int_equal(fuse_keeper_mount(keeper, point, "qm-test", argv, &err), 0);
	assert_string_equal(err.message, "");
}

static int answers(void)
{
	struct statfs fs;

	return statfs(point, &fs) < 0 ? -errno : 0;
}

static int set_up(void **state)
{
	static char name[] = "/tmp/qm-fuse-XXXXXX";

	if (!mkdtemp(name))
		return -1;
	base = name;
	dir = xasprintf("%s/client", base);
	store = xasprintf("%s/store", base);
	point = xasprintf("%s/mount", base);
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	return progress == MAP_FAILED || mkdir(dir, 0700) < 0 || mkdir(store, 0700) < 0 ||
			       mkdir(point, 0700) < 0
		       ? -1
		       : 0;
}

static int tear_down(void **state)
{
	(void)umount2(point, MNT_DETACH);
	kill_client();
	free(dir);
	free(store);
	free(point);
	return remove_tree(base, NULL);
}

static int begin(void **state)
{
	start_client();
	keeper = fuse_keeper_new(dir);
	return 0;
}

/* Whatever a test that failed has left. */
static int end(void **state)
{
	if (writer > 0) {
		kill(writer, SIGKILL);
		kill_client();
		fuse_keeper_free(keeper); /* nothing to wait for any more */
		keeper = NULL;
		waitpid(writer, NULL, 0);
		writer = 0;
	}
	(void)umount2(point, MNT_DETACH);
	fuse_keeper_free(keeper);
	keeper = NULL;
	kill_client();
	return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void serves(void **state)
{
	cleanup_json json_t *i = NULL;
	cleanup_free char *below = xasprintf("%s/new", store), *above = xasprintf("%s/new", point);
	struct error err = ERROR_INIT;
	struct stat st;

	mount_it();
	assert_int_equal(file_write(above, "words", 5, 0600, &err), 0);
	assert_int_equal(stat(below, &st), 0);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(unlink(above), 0);
	i = info();
	assert_int_equal(json_array_size(json_object_get(i, "daemons")), 1);
	assert_string_equal(jstr(json_array_get(json_object_get(i, "daemons"), 0), "lastArgument"),
			    point);
	/* unmounted, it ends and is forgotten */
	assert_int_equal(umount2(point, 0), 0);
	for (int64_t until = clock_mono_ms(&clock_real) + WAIT_MS;; pause_ms(5)) {
		cleanup_json json_t *one = served();

		if (!one)
			break;
		assert_true(clock_mono_ms(&clock_real) < until);
	}
	mount_it();
	assert_int_equal(answers(), 0);
}

static void server_killed(void **state)
{
	int count = times(20);
	pid_t pid = 0;

	mount_it();
	start_writer();
	await_rounds(1);
	srand(7);
	for (int i = 0; i < count; i++) {
		pid = server(pid);
		/* most die soon, in whatever they are doing; but not so many in a row that they are given up */
		pause_ms(i % 4 == 3 ? 1050 : rand() % 200);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_string_equal(progress->failure, "");
	}
	end_writer();
	cleanup_json json_t *one = served();
	assert_int_equal(jint(one, "starts"), count + 1);
}

static void client_killed(void **state)
{
	int count = times(5);

	mount_it();
	start_writer();
	for (int i = 0; i < count; i++) {
		await_rounds(1);
		kill_client();
		pause_ms(50);
		start_client();
		assert_int_equal(fuse_keeper_renew(keeper, NULL), 0);
	}
	end_writer();
}

/* The asker ends; its next life takes the descriptor from the client, and saves the mount with it. */
static void asker_killed(void **state)
{
	int count = times(5);

	mount_it();
	start_writer();
	for (int i = 0; i < count; i++) {
		await_rounds(1);
		fuse_keeper_free(keeper);
		keeper = fuse_keeper_new(dir);
		assert_int_equal(fuse_keeper_renew(keeper, NULL), 0);
		kill_client();
		start_client();
		assert_int_equal(fuse_keeper_renew(keeper, NULL), 0);
	}
	end_writer();
}

static void both_killed(void **state)
{
	mount_it();
	assert_int_equal(answers(), 0);
	fuse_keeper_free(keeper);
	keeper = fuse_keeper_new(dir);
	kill_client();
	/* the server ends with its client, and the mount with the server's descriptor */
	for (int64_t until = clock_mono_ms(&clock_real) + WAIT_MS; answers() != -ENOTCONN;
	     pause_ms(5))
		assert_true(clock_mono_ms(&clock_real) < until);
	start_client();
	assert_int_equal(fuse_keeper_renew(keeper, NULL), 0);
	assert_null(served());
	assert_int_equal(answers(), -ENOTCONN);
	/* and there is a new one after that */
	assert_int_equal(umount2(point, MNT_DETACH), 0);
	mount_it();
	assert_int_equal(answers(), 0);
}

static void given_up(void **state)
{
	const char *const argv[] = { "/bin/false", "/dev/fd/3", NULL };

	assert_int_equal(fuse_keeper_mount(keeper, point, "qm-test", argv, NULL), 0);
	for (int64_t until = clock_mono_ms(&clock_real) + WAIT_MS;; pause_ms(20)) {
		cleanup_json json_t *one = served();

		assert_non_null(one);
		if (jstr(one, "message")) {
			assert_non_null(strstr(jstr(one, "message"), "8 times in a row"));
			assert_int_equal(jint(one, "starts"), 8);
			break;
		}
		assert_true(clock_mono_ms(&clock_real) < until);
	}
	/* asked again, it is tried again */
	assert_int_equal(fuse_keeper_renew(keeper, NULL), 0);
	cleanup_json json_t *one = served();
	assert_null(jstr(one, "message"));
}

static void refused(void **state)
{
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *serve = json_pack("{s:s, s:s, s:[s]}", "op", "serveFuse", "mountPoint",
					       point, "argv", FUSE_SERVER),
			    *take = json_pack("{s:s, s:s}", "op", "takeFuse", "mountPoint", point);
	int fd = -1;
	struct error err = ERROR_INIT;

	/* a byte without a descriptor */
	assert_int_equal(client_call(dir, serve, "", 1, 5000, &reply, &err), -EINVAL);
	assert_non_null(strstr(err.message, "no descriptor"));
	assert_int_equal(client_call_fd(dir, take, -1, 5000, &reply, &fd, NULL), -ENOENT);
	/* what is no FUSE descriptor at all is kept by nobody: its server cannot serve */
	mount_it();
	cleanup_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_int_equal(client_call_fd(dir, serve, null, 5000, &reply, NULL, &err), -EEXIST);
	assert_int_equal(client_call_fd(dir, take, -1, 5000, &reply, &fd, NULL), 0);
	assert_true(fd >= 0);
	close(fd);
}

/* A connection that is told of daemons that end. */
static void watched(void **state)
{
	int64_t until = clock_mono_ms(&clock_real) + WAIT_MS;
	cleanup_close int fd = client_watch(dir, 5000, NULL);
	int more[40];
	cleanup_with(client_reply_done) struct client_reply reply = { 0 };
	cleanup_json json_t *run = json_pack("{s:s, s:[s, s, s, s], s:i}", "op", "run", "argv",
					     "setsid", "-f", "sleep", "0.2", "timeoutMs", 5000),
			    *told = NULL;
	cleanup_free char *text = NULL;
	size_t len;

	assert_true(fd >= 0);
	assert_int_equal(client_call(dir, run, NULL, 0, 5000, &reply, NULL), 0);
	assert_int_equal(wire_read_text(fd, &text, &len, until), 0);
	assert_int_equal(json_parse(text, len, &told, NULL), 0);
	assert_int_equal(jint(told, "daemonsEnded"), 1);
	/* those who go away leave room */
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		more[i] = client_watch(dir, 5000, NULL);
		assert_true(more[i] >= 0);
		close(more[i]);
	}
	kill_client();
	assert_int_equal(await_fd(fd, POLLIN, until), 0);
	free(TAKE_PTR(text));
	assert_int_equal(wire_read_text(fd, &text, &len, until), -ECONNRESET);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(serves),	   TEST(server_killed), TEST(client_killed), TEST(asker_killed),
		TEST(both_killed), TEST(given_up),	TEST(refused),	     TEST(watched),
	};

	/* mounts are this process' own, and go with it */
	if (getuid() != 0)
		return all_without("root");
	if (access("/dev/fuse", R_OK | W_OK) < 0)
		return all_without("/dev/fuse");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return all_without("a mount namespace");
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
