/* SPDX-License-Identifier: Apache-2.0 */
#include "../skip.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>

#define ARGV(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int run(const char *const *argv, int timeout_ms, struct spawn_result *ret, struct error *err)
{
	return spawn_run(&(struct spawn){ .argv = argv, .timeout_ms = timeout_ms }, ret, err);
}

static void collects_what_is_printed(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	struct error err = ERROR_INIT;

	assert_int_equal(run(ARGV("sh", "-c", "echo out; echo err >&2; exit 3"), 5000, &r, &err),
			 0);
	assert_int_equal(r.status, 3);
	assert_string_equal(r.out.data, "out\n");
	assert_string_equal(r.err.data, "err\n");
}

static void signal_becomes_status(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };

	assert_int_equal(run(ARGV("sh", "-c", "kill -TERM $$"), 5000, &r, NULL), 0);
	assert_int_equal(r.status, 128 + SIGTERM);
	assert_null(r.out.data);
}

static void input_and_environment(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	cleanup_free char *big = xmalloc(1 << 20);
	const struct spawn s = {
		.argv = ARGV("sh", "-c", "wc -c; echo $QM_A-$QM_B-${HOME:+home}"),
		.env = ARGV("QM_A=new", "QM_B=b"),
		.input = big,
		.input_len = 1 << 20,
		.timeout_ms = 5000,
	};

	memset(big, 'x', 1 << 20);
	setenv("QM_A", "old", 1);
	setenv("HOME", "/root", 1);
	assert_int_equal(spawn_run(&s, &r, NULL), 0);
	assert_string_equal(r.out.data, "1048576\nnew-b-home\n");
}

/* A program that does not read what it is given must not cost us our life. */
static void unread_input(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	const struct spawn s = {
		.argv = ARGV("true"), .input = "secret", .input_len = 6, .timeout_ms = 5000
	};

	assert_int_equal(spawn_run(&s, &r, NULL), 0);
	assert_int_equal(r.status, 0);
}

static void output_is_limited(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	const struct spawn s = { .argv = ARGV("sh", "-c", "head -c 3000000 /dev/zero; echo e >&2"),
				 .timeout_ms = 20000,
				 .output_limit = 1000 };

	assert_int_equal(spawn_run(&s, &r, NULL), 0);
	assert_int_equal(r.status, 0);
	assert_int_equal(r.out.len, 1000);
	assert_string_equal(r.err.data, "e\n");
}

static void missing_programs(void **state)
{
	cleanup_free char *dir = temporary_dir(), *script = xasprintf("%s/x", dir),
			  *junk = xasprintf("%s/j", dir);
	struct spawn_result r = { .status = 77 };
	struct error err = ERROR_INIT;

	assert_int_equal(run(ARGV("no-such-program-anywhere"), 1000, &r, &err), -ENOENT);
	assert_non_null(strstr(err.message, "no-such-program-anywhere"));
	assert_int_equal(run(ARGV("/no/such/program"), 1000, &r, &err), -ENOENT);
	assert_int_equal(run(ARGV(""), 1000, &r, &err), -ENOENT);
	assert_int_equal(run(ARGV("/etc/passwd"), 1000, &r, &err), -EACCES);
	assert_int_equal(run(ARGV("/etc"), 1000, &r, &err), -EACCES);
	/* what only exec itself finds out comes back as well */
	assert_int_equal(file_write(script, "#!/no/such/interpreter\n", 23, 0700, NULL), 0);
	assert_int_equal(run(ARGV(script), 1000, &r, &err), -ENOENT);
	assert_int_equal(file_write(junk,
				    "\x7f"
				    "ELFjunk",
				    8, 0700, NULL),
			 0);
	assert_int_equal(run(ARGV(junk), 1000, &r, &err), -ENOEXEC);
	assert_int_equal(r.status, 77);
	remove_tree(dir, NULL);
}

static void deadline_kills_the_group(void **state)
{
	struct spawn_result r = { .status = 77 };
	struct error err = ERROR_INIT;
	int64_t before = clock_mono_ms(&clock_real);
	cleanup_free char *dir = temporary_dir(), *pid_path = xasprintf("%s/pid", dir),
			  *text = NULL;
	cleanup_free char *script = xasprintf("sleep 60 & echo $! > %s; wait", pid_path);
	pid_t grandchild;
	int tries = 0;

	assert_int_equal(run(ARGV("sh", "-c", script), 700, &r, &err), -ETIMEDOUT);
	assert_in_range(clock_mono_ms(&clock_real) - before, 700, 10000);
	assert_non_null(strstr(err.message, "sh did not end within 700 ms"));
	assert_int_equal(r.status, 77);
	assert_int_equal(file_read(pid_path, 0, &text, NULL, NULL), 0);
	grandchild = atoi(text);
	assert_true(grandchild > 1);
	/* gone, or a zombie that nobody has reaped yet */
	while (kill(grandchild, 0) == 0 && tries++ < 200) {
		cleanup_free char *stat_path = xasprintf("/proc/%d/stat", grandchild), *stat = NULL;

		if (file_read(stat_path, 0, &stat, NULL, NULL) < 0 || strstr(stat, ") Z "))
			break;
		usleep(10000);
	}
	assert_in_range(tries, 0, 199);
	remove_tree(dir, NULL);
}

static void deadline_holds_against_a_flood(void **state)
{
	int64_t before = clock_mono_ms(&clock_real);
	struct spawn_result r;

	assert_int_equal(run(ARGV("cat", "/dev/zero"), 300, &r, NULL), -ETIMEDOUT);
	assert_in_range(clock_mono_ms(&clock_real) - before, 300, 10000);
}

/* A daemon that keeps the pipe open, or even goes on writing, is not waited for. */
static void left_behind_daemon(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	int64_t before = clock_mono_ms(&clock_real);

	assert_int_equal(
		run(ARGV("sh", "-c", "(trap '' PIPE; exec timeout 3 yes) & echo started >&2"),
		    20000, &r, NULL),
		0);
	assert_int_equal(r.status, 0);
	assert_string_equal(r.err.data, "started\n");
	assert_true(clock_mono_ms(&clock_real) - before < 2500);
}

static void child_inherits_nothing(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	cleanup_close int leak = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
	sigset_t set, old;

	assert_true(leak > 2);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, &old);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(run(ARGV("sh", "-c",
				  "ls /proc/$$/fd; exec grep -E 'Sig(Blk|Ign)' /proc/self/status"),
			     5000, &r, NULL),
			 0);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	assert_string_equal(r.out.data,
			    "0\n1\n2\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void check_wants_success(void **state)
{
	cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
	struct error err = ERROR_INIT;
	struct spawn s = { .argv = ARGV("sh", "-c",
					"echo first >&2; echo 'the reason ' >&2; echo >&2; exit 2"),
			   .timeout_ms = 5000 };

	assert_int_equal(spawn_check(&s, NULL, &err), -EIO);
	assert_string_equal(err.message, "sh failed with status 2: the reason");
	s.argv = ARGV("false");
	assert_int_equal(spawn_check(&s, &r, &err), -EIO);
	assert_string_equal(err.message, "false failed with status 1");
	s.argv = ARGV("echo", "x");
	assert_int_equal(spawn_check(&s, &r, &err), 0);
	assert_string_equal(r.out.data, "x\n");
	assert_int_equal(spawn_check(&s, NULL, &err), 0);
}

static int returns(void *arg)
{
	return *(int *)arg;
}

static int hangs(void *arg)
{
	for (;;)
		pause();
	return 0;
}

static int dies(void *arg)
{
	raise(SIGKILL);
	return 0;
}

static void calls_in_a_child(void **state)
{
	struct error err = ERROR_INIT;
	int64_t before = clock_mono_ms(&clock_real);

	assert_int_equal(spawn_call(returns, &(int){ 0 }, 5000, &err), 0);
	assert_int_equal(spawn_call(returns, &(int){ -ESTALE }, 5000, &err), -ESTALE);
	assert_int_equal(err.code, ESTALE);
	assert_int_equal(spawn_call(returns, &(int){ 5 }, 5000, &err), 5);
	assert_int_equal(spawn_call(dies, NULL, 5000, &err), -EIO);
	assert_int_equal(spawn_call(hangs, NULL, 200, &err), -ETIMEDOUT);
	assert_in_range(clock_mono_ms(&clock_real) - before, 200, 15000);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* all are reaped */
	assert_int_equal(errno, ECHILD);
}

struct some_fds {
	int kept, other;
};

/* 1: the one descriptor is there, 2: the other. */
static int which_fds(void *arg)
{
	const struct some_fds *f = arg;

	return (fcntl(f->kept, F_GETFD) >= 0) + 2 * (fcntl(f->other, F_GETFD) >= 0);
}

static void keeps_one_descriptor(void **state)
{
	cleanup_close int low = open("/dev/null", O_RDONLY), mid = open("/dev/null", O_RDONLY),
			  high = fcntl(low, F_DUPFD, 200);
	const int fds[] = { low, mid, high };
	struct error err = ERROR_INIT;

	for (int i = 0; i < 3; i++) {
		struct some_fds f = { .kept = fds[i], .other = fds[(i + 1) % 3] };

		assert_int_equal(spawn_call(which_fds, &f, 5000, &err), 3);
		assert_int_equal(spawn_call_keeping(which_fds, &f, f.kept, NULL, 5000, &err), 1);
		assert_int_equal(spawn_call_keeping(which_fds, &f, -1, NULL, 5000, &err), 0);
		assert_int_equal(which_fds(&f), 3);
	}
	assert_int_equal(spawn_call_keeping(which_fds, &(struct some_fds){ 0, 2 }, -1, NULL, 5000, &err),
			 3);
}

static bool wait_gone(pid_t pid)
{
	for (int i = 0; i < 500; i++) {
		if (kill(pid, 0) < 0)
			return true;
		usleep(10000);
	}
	return false;
}

static char *wait_for_text(const char *path, const char *end)
{
	for (int i = 0; i < 500; i++) {
		char *text = NULL;

		if (file_read(path, 0, &text, NULL, NULL) == 0 && strstr(text, end))
			return text;
		free(text);
		usleep(10000);
	}
	return NULL;
}

static struct spawn_daemon daemon_of(const char *const *argv, const char *log_path)
{
	return (struct spawn_daemon){
		.argv = argv, .log_path = log_path, .netns_fd = -1, .mntns_fd = -1, .keep_fd = -1
	};
}

static void daemon_lives_alone(void **state)
{
	cleanup_free char *dir = temporary_dir(), *log = xasprintf("%s/log", dir), *text = NULL,
			  *want = NULL;
	struct spawn_daemon d = daemon_of(ARGV("sh", "-c",
					       "cut -d ' ' -f 1,4-6 /proc/$$/stat; ls /proc/$$/fd; "
					       "pwd; echo $QM_D >&2; echo end"),
					  log);
	struct error err = ERROR_INIT;
	pid_t pid = 0;
	int parent;

	d.env = ARGV("QM_D=there");
	assert_int_equal(file_write(log, "before\n", 7, 0600, NULL), 0);
	assert_int_equal(spawn_daemon(&d, &pid, &err), 0);
	assert_true(pid > 1);
	text = wait_for_text(log, "end\n");
	assert_non_null(text);
	/* pid, parent, process group, session; the session leader was the process between */
	assert_int_equal(sscanf(text, "before\n%*d %d", &parent), 1);
	assert_int_not_equal(parent, getpid());
	want = xasprintf("before\n%d ", pid);
	assert_memory_equal(text, want, strlen(want));
	assert_non_null(strstr(text, "\n0\n1\n2\n/\nthere\nend\n"));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child of ours is left */
	remove_tree(dir, NULL);
}

static void daemon_that_cannot_start(void **state)
{
	cleanup_free char *dir = temporary_dir(), *script = xasprintf("%s/x", dir);
	struct spawn_daemon d = daemon_of(ARGV("no-such-program-anywhere"), NULL);
	struct error err = ERROR_INIT;
	pid_t pid = 77;

	assert_int_equal(spawn_daemon(&d, &pid, &err), -ENOENT);
	d.argv = ARGV(script);
	assert_int_equal(file_write(script, "#!/no/such/interpreter\n", 23, 0700, NULL), 0);
	assert_int_equal(spawn_daemon(&d, &pid, &err), -ENOENT);
	assert_non_null(strstr(err.message, script));
	d.log_path = "/no/such/dir/log";
	assert_int_equal(spawn_daemon(&d, &pid, &err), -ENOENT);
	assert_non_null(strstr(err.message, "/no/such/dir/log"));
	d = daemon_of(ARGV("true"), NULL);
	d.netns_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* no namespace */
	assert_int_equal(spawn_daemon(&d, &pid, &err), -EINVAL);
	close(d.netns_fd);
	assert_int_equal(pid, 77);
	remove_tree(dir, NULL);
}

static void daemon_keeps_the_lock(void **state)
{
	cleanup_free char *dir = temporary_dir(), *path = xasprintf("%s/lock", dir);
	struct spawn_daemon d = daemon_of(ARGV("sleep", "60"), NULL);
	int lock = lock_file(path, false, NULL);
	pid_t pid = 0;

	assert_true(lock >= 0);
	d.keep_fd = lock;
	assert_int_equal(spawn_daemon(&d, &pid, NULL), 0);
	close(lock);
	assert_int_equal(lock_file(path, false, NULL), -EWOULDBLOCK);
	kill(pid, SIGKILL);
	lock = lock_file(path, true, NULL);
	assert_true(lock >= 0);
	close(lock);
	remove_tree(dir, NULL);
}

/* A process that stays in namespaces of its own until it is killed. */
static pid_t make_namespaces(const char *mark_path)
{
	int ready[2];
	pid_t pid;
	char c = 0;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		bool ok = unshare(CLONE_NEWNS | CLONE_NEWNET) == 0 &&
			  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
			  mount("mark", mark_path, "tmpfs", 0, NULL) == 0;

		c = ok ? 'y' : 'n';
		if (write(ready[1], &c, 1) == 1 && ok)
			pause();
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		c = 'n';
	close(ready[0]);
	if (c == 'y')
		return pid;
	waitpid(pid, NULL, 0);
	return 0;
}

static void daemon_enters_namespaces(void **state)
{
	cleanup_free char *dir = temporary_dir(), *log = xasprintf("%s/log", dir),
			  *mark = xasprintf("%s/mark", dir);
	cleanup_free char *script = xasprintf(
		"grep -c ' %s ' /proc/self/mountinfo; wc -l < /proc/net/dev; echo end", mark);
	cleanup_free char *net = NULL, *mnt = NULL, *text = NULL;
	struct spawn_daemon d = daemon_of(ARGV("sh", "-c", script), log);
	struct error err = ERROR_INIT;
	pid_t holder, pid = 0;

	assert_int_equal(mkdir(mark, 0700), 0);
	holder = make_namespaces(mark);
	if (!holder) {
		remove_tree(dir, NULL);
		skip_without("namespaces, which need root");
	}
	net = xasprintf("/proc/%d/ns/net", holder);
	mnt = xasprintf("/proc/%d/ns/mnt", holder);
	d.netns_fd = open(net, O_RDONLY | O_CLOEXEC);
	d.mntns_fd = open(mnt, O_RDONLY | O_CLOEXEC);
	assert_int_equal(spawn_daemon(&d, &pid, &err), 0);
	text = wait_for_text(log, "end\n");
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	close(d.netns_fd);
	close(d.mntns_fd);
	assert_non_null(text);
	assert_memory_equal(text, "1\n", 2); /* its mount is seen */
	assert_true(wait_gone(pid));
	remove_tree(dir, NULL);
}

static void *run_many(void *arg)
{
	intptr_t failed = 0;

	for (int i = 0; i < 10; i++) {
		cleanup_with(spawn_result_done) struct spawn_result r = { 0 };
		cleanup_free char *word = xasprintf("%d", i);
		int value = -i;

		if (run(ARGV("echo", word), 20000, &r, NULL) < 0 || atoi(r.out.data) != i)
			failed++;
		if (spawn_call(returns, &value, 20000, NULL) != -i)
			failed++;
	}
	return (void *)failed;
}

static void threads(void **state)
{
	pthread_t t[4];
	void *failed;

	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, run_many, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		pthread_join(t[i], &failed);
		assert_null(failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collects_what_is_printed),
		cmocka_unit_test(signal_becomes_status),
		cmocka_unit_test(input_and_environment),
		cmocka_unit_test(unread_input),
		cmocka_unit_test(output_is_limited),
		cmocka_unit_test(missing_programs),
		cmocka_unit_test(deadline_kills_the_group),
		cmocka_unit_test(deadline_holds_against_a_flood),
		cmocka_unit_test(left_behind_daemon),
		cmocka_unit_test(child_inherits_nothing),
		cmocka_unit_test(check_wants_success),
		cmocka_unit_test(calls_in_a_child),
		cmocka_unit_test(keeps_one_descriptor),
		cmocka_unit_test(daemon_lives_alone),
		cmocka_unit_test(daemon_that_cannot_start),
		cmocka_unit_test(daemon_keeps_the_lock),
		cmocka_unit_test(daemon_enters_namespaces),
		cmocka_unit_test(threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
