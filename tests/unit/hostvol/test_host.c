/* SPDX-License-Identifier: Apache-2.0 */
/* The real host: processes with deadlines, sub paths, the mount table. */
#include "core/host.h"
#include "core/mountinfo.h"
#include "fake_host.h"

#include "base/clock.h"
#include "base/hung.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

static int run(struct host_result *ret, const char *input, int timeout_ms, const char *const *argv)
{
	return host_real.run(&host_real,
			     &(struct host_command){ .argv = argv,
						     .input = input,
						     .input_len = input ? strlen(input) : 0,
						     .timeout_ms = timeout_ms },
			     ret);
}
#define RUN(ret, input, timeout, ...)                                                              \
	run((ret), (input), (timeout), (const char *const[]){ __VA_ARGS__, NULL })

static void test_run(void **state)
{
	struct host_result r;

	assert_int_equal(RUN(&r, NULL, 5000, "sh", "-c", "echo out; echo err >&2; exit 3"), 0);
	assert_int_equal(r.status, 3);
	assert_string_equal(r.out, "out\n");
	assert_string_equal(r.err, "err\n");
	assert_int_equal(RUN(&r, "secret", 5000, "cat"), 0);
	assert_string_equal(r.out, "secret");
	assert_int_equal(RUN(&r, NULL, 5000, "no-such-program-anywhere"), -ENOENT);
	assert_int_equal(RUN(&r, NULL, 5000, "sh", "-c", "kill -9 $$"), 0);
	assert_int_equal(r.status, 128 + SIGKILL);
	/* only the end of much output is kept */
	assert_int_equal(RUN(&r, NULL, 5000, "sh", "-c", "seq 5000 >&2"), 0);
	assert_non_null(strstr(r.err, "\n5000\n"));
	assert_int_equal(strlen(r.err), sizeof(r.err) - 1);
	/* one that does not read its input is no trouble */
	assert_int_equal(RUN(&r, "secret", 5000, "true"), 0);
}

/* A daemon left behind holds the pipes: that must not be waited for. */
static void test_run_leaves_daemons(void **state)
{
	struct host_result r;
	int64_t start = clock_mono_ms(&clock_real);

	assert_int_equal(RUN(&r, NULL, 10000, "sh", "-c", "setsid sleep 3 & echo $!"), 0);
	assert_true(clock_mono_ms(&clock_real) - start < 2000);
	assert_int_equal(kill(atoi(r.out), SIGKILL), 0);
}

static void test_run_deadline(void **state)
{
	struct host_result r;
	int64_t start = clock_mono_ms(&clock_real);

	assert_int_equal(RUN(&r, NULL, 100, "sleep", "30"), -ETIMEDOUT);
	assert_true(clock_mono_ms(&clock_real) - start < 5000);
}

static int nap(void *arg)
{
	usleep(*(int *)arg * 1000);
	return -EXDEV;
}

/* The host program's own children, and its handling of SIGCHLD, are left alone. */
static void test_call(void **state)
{
	int status;

	assert_int_equal(process_call(nap, &(int){ 1 }, NULL, 5000), -EXDEV);
	assert_int_equal(process_call(nap, &(int){ 30000 }, NULL, 50), -ETIMEDOUT);
	assert_int_equal(waitpid(-1, &status, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(process_call(nap, &(int){ 1 }, NULL, 5000), -EXDEV);
	signal(SIGCHLD, SIG_DFL);
}

static int has_open(void *arg)
{
	return fcntl(*(int *)arg, F_GETFD) < 0 ? -errno : 0;
}

/* One that hangs for long keeps nobody else's device open, and is not joined by another. */
static void test_call_that_hangs(void **state)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct host_result result;
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_int_equal(process_call(has_open, &fd, NULL, 5000), -EBADF);
	close(fd);
	hung_leave(pid, nap, "/dev/there", NULL, 0);
	assert_int_equal(process_call(nap, &(int){ 1 }, "/dev/there", 5000), -ETIMEDOUT);
	assert_int_equal(process_call(nap, &(int){ 1 }, "/dev/elsewhere", 5000), -EXDEV);
	assert_int_equal(process_call(has_open, &(int){ 0 }, "/dev/there", 5000), 0);
	for (int i = 1; i < HUNG_MAX; i++)
		hung_leave(pid, nap, NULL, NULL, 0);
	assert_int_equal(process_call(nap, &(int){ 1 }, "/dev/elsewhere", 5000), -ETIMEDOUT);
	assert_int_equal(RUN(&result, NULL, 5000, "true"), -ETIMEDOUT);
	assert_non_null(strstr(result.err, "256 processes hang"));
	kill(pid, SIGKILL);
	while (hung_check(NULL, NULL, NULL) < 0)
		usleep(1000);
	assert_int_equal(process_call(nap, &(int){ 1 }, "/dev/there", 5000), -EXDEV);
	assert_int_equal(RUN(&result, NULL, 5000, "true"), 0);
}

static pid_t tester;
static int asked_here;

/* The C library's, for all of this program: who asks for a file that may not answer? */
int stat(const char *restrict path, struct stat *restrict st)
{
	asked_here += getpid() == tester && strstr(path, "/may-hang");
	return fstatat(AT_FDCWD, path, st, 0);
}

static void test_stat(void **state)
{
	char *dir = temp_make();
	cleanup_free char *path = xasprintf("%s/may-hang", dir);
	struct host_stat st = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	tester = getpid();
	assert_int_equal(ftruncate(fd, 4711), 0);
	close(fd);
	assert_int_equal(host_real.stat(&host_real, path, &st, 5000), 0);
	assert_int_equal(st.type, HOST_FILE_REGULAR);
	assert_int_equal(st.size, 4711);
	assert_int_equal(host_real.stat(&host_real, dir, &st, 5000), 0);
	assert_int_equal(st.type, HOST_FILE_DIRECTORY);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(host_real.stat(&host_real, path, &st, 5000), -ENOENT);
	/* a thread that asks itself waits for as long as the file's server likes */
	assert_int_equal(asked_here, 0);
	temp_remove(dir);
}

static void test_lookup(void **state)
{
	char *dir = temp_make();
	cleanup_free char *a = xasprintf("%s/a", dir), *b = xasprintf("%s/a/b", dir),
			  *link = xasprintf("%s/link", dir), *out = xasprintf("%s/out", dir);

	assert_int_equal(mkdir(a, 0755), 0);
	assert_int_equal(mkdir(b, 0755), 0);
	assert_int_equal(symlink("a", link), 0);
	assert_int_equal(symlink("/etc", out), 0);
	assert_int_equal(host_real.lookup(&host_real, dir, "a/b", 5000), 0);
	assert_int_equal(host_real.lookup(&host_real, dir, "a/c", 5000), -ENOENT);
	assert_int_equal(host_real.lookup(&host_real, dir, "link/b", 5000), -ELOOP);
	assert_int_equal(host_real.lookup(&host_real, dir, "link", 5000), -ELOOP);
	assert_int_equal(host_real.lookup(&host_real, dir, "out", 5000), -ELOOP);
	assert_int_equal(host_real.lookup(&host_real, dir, "../x", 5000), -EXDEV);
	assert_int_equal(host_real.lookup(&host_real, dir, "/etc", 5000), -EXDEV);
	temp_remove(dir);
}

static void test_await_end(void **state)
{
	cleanup_free char *marker = xasprintf("/nonexistent/%d", getpid());
	struct host_result r;
	pid_t pid;

	assert_int_equal(process_await_end("tail", marker, false, 1000), 0);
	/* goes on although there is no such file: busybox's tail, too, which has no --retry */
	assert_int_equal(
		RUN(&r, NULL, 5000, "sh", "-c",
		    "setsid tail -f /dev/null \"$0\" >/dev/null 2>&1 & echo $!",
		    marker),
		0);
	pid = atoi(r.out);
	for (int i = 0; i < 200 && process_await_end("tail", marker, false, 0) == 0; i++)
		usleep(10000);
	assert_int_equal(process_await_end("tail", marker, false, 50), -ETIMEDOUT);
	assert_int_equal(process_await_end("other", marker, true, 50), 0);
	assert_int_equal(kill(pid, 0), 0);
	assert_int_equal(process_await_end("tail", marker, true, 5000), 0);
}

static void test_mountinfo(void **state)
{
	static const char text[] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
				   "30 22 0:40 / /mnt/a\\040b rw - nfs4 h:/e\\040f rw,vers=4.2\n"
				   "31 22 0:41 /sub /mnt/x rw shared:5 master:2 propagate_from:3 - "
				   "fuse.glusterfs h:/v rw\n"
				   "32 31 0:42 / /mnt/x rw - tmpfs none rw\n"
				   "33 short line\n";
	struct mount_entry e = { 0 };

	assert_int_equal(mountinfo_find(text, "/mnt/a b", &e), 1);
	assert_string_equal(e.source, "h:/e f");
	assert_string_equal(e.fs_type, "nfs4");
	assert_string_equal(e.root, "/");
	assert_string_equal(e.device, "0:40");
	mount_entry_done(&e);
	/* the uppermost */
	assert_int_equal(mountinfo_find(text, "/mnt/x", &e), 1);
	assert_string_equal(e.fs_type, "tmpfs");
	mount_entry_done(&e);
	assert_int_equal(mountinfo_find(text, "/mnt", &e), 0);
	assert_int_equal(mountinfo_find("", "/", &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_run),	     cmocka_unit_test(test_run_leaves_daemons),
		cmocka_unit_test(test_run_deadline), cmocka_unit_test(test_call),
		cmocka_unit_test(test_lookup),	     cmocka_unit_test(test_await_end),
		cmocka_unit_test(test_mountinfo),    cmocka_unit_test(test_call_that_hangs),
		cmocka_unit_test(test_stat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
