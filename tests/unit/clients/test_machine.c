/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's own software, for who is in a pod: a process in a mount namespace of its own, with
 * programs that nobody else has, stands for the machine's first.
 */
#include "../skip.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "clients/machine.h"
#include "clients/remote.h"
#include "core/host.h"
#include "helper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define PROGRAMS "/usr/sbin" /* in which the machine has other ones than we */

static pid_t first;
static char *proc, *base;
static struct clients_host *host;

/* glusterfs and mount.nfs there; mount.quobyte is nowhere. */
static int furnish(const char *self)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("tmpfs", PROGRAMS, "tmpfs", 0, NULL) < 0)
		return -1;
	return symlink(self, PROGRAMS "/glusterfs") < 0 || symlink(self, PROGRAMS "/mount.nfs") < 0;
}

static pid_t start_machine(const char *self)
{
	int ready[2];
	char byte;
	pid_t pid;

	if (pipe(ready) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (furnish(self) == 0 && write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		return -1;
	close(ready[0]);
	return pid;
}

static int set_up(void **state)
{
	static char name[] = "/tmp/qm-machine-XXXXXX";
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0 || !mkdtemp(name))
		return -1;
	self[len] = '\0';
	base = name;
	first = start_machine(self);
	proc = xasprintf("/proc/%d", (int)first);
	return first < 0 ? -1 : 0;
}

static int remove_cgroups(const char *top)
{
	cleanup_free char *dir = xasprintf("%s/" PROCESS_CGROUP, top);

	return rmdir(dir);
}

static int tear_down(void **state)
{
	DIR *d = opendir("/sys/fs/cgroup");
	struct dirent *e;

	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	free(proc);
	/* an empty one of another's that goes with ours is made again when it is needed */
	remove_cgroups("/sys/fs/cgroup");
	while (d && (e = readdir(d))) {
		cleanup_free char *top = xasprintf("/sys/fs/cgroup/%s", e->d_name);

		if (e->d_name[0] != '.')
			remove_cgroups(top);
	}
	if (d)
		closedir(d);
	return remove_tree(base, NULL);
}

static int begin(void **state)
{
	if (clients_host_new(base, &host, NULL) < 0)
		return -1;
	clients_host_set_proc(host, proc);
	return 0;
}

static int end(void **state)
{
	clients_host_free(host);
	return 0;
}

static void choose(const char *text)
{
	assert_int_equal(clients_host_prefer(host, text, NULL), 0);
}

static int run(const struct host_command *command, struct host_result *ret)
{
	const struct hostvol_host *h = clients_host(host);

	return h->run(h, command, ret);
}

#define COMMAND(...)                                                                               \
	&(struct host_command)                                                                     \
	{                                                                                          \
		.argv = (const char *const[]){ __VA_ARGS__, NULL }, .timeout_ms = 20000            \
	}

/* ---- */

static void runs_what_the_machine_has(void **state)
{
	struct host_result result;

	choose("glusterfs=host");
	assert_int_equal(run(COMMAND("glusterfs", "say", "out", "why"), &result), 0);
	assert_int_equal(result.status, 3);
	assert_string_equal(result.out, "out");
	assert_string_equal(result.err, "why");
	/* what is not of that protocol is ours still, if it is there at all */
	if (run(COMMAND("mount.nfs", "exit", "0"), &result) == 0)
		assert_int_not_equal(result.status, 0);
}

static void even_beside_a_container(void **state)
{
	cleanup_free char *dir = xasprintf("%s/glusterfs", base);
	const struct hostvol_host *h = clients_host(host);
	struct host_result result;
	char id[CLIENT_ID_MAX] = "x";

	assert_int_equal(mkdir(dir, 0700), 0);
	choose("glusterfs=host");
	assert_int_equal(run(COMMAND("glusterfs", "exit", "4"), &result), 0);
	assert_int_equal(result.status, 4);
	h->choose_client(h, "glusterfs", "some", id, sizeof(id));
	assert_string_equal(id, "");
	assert_int_equal(rmdir(dir), 0);
}

static void secret_in_input_only(void **state)
{
	struct host_command *command = COMMAND("mount.nfs", "echo");
	struct host_result result;

	choose("nfs=host");
	command->input = "a secret";
	command->input_len = 8;
	assert_int_equal(run(command, &result), 0);
	assert_true(str_has_prefix(result.out, "a secret\nmount.nfs"));
	assert_null(strstr(result.out + 8, "secret"));
}

static void says_what_is_missing(void **state)
{
	struct host_result result;

	choose("quobyte=host");
	assert_int_equal(run(COMMAND("mount.quobyte", "x"), &result), -ENOENT);
	assert_string_equal(result.err,
			    "this machine has no program mount.quobyte; install it there (Debian: "
			    "quobyte-client), or have it in a container: "
			    "--quobyte-mount-container=IMAGE");
}

static void says_it_of_an_image_too(void **state)
{
	struct host_result result;

	assert_int_equal(run(COMMAND("mount.quobyte", "x"), &result), -ENOENT);
	assert_non_null(strstr(result.err, "--quobyte-mount-container=IMAGE, or host for that of"));
}

/* The process of that last argument, 0 for none. */
static pid_t process_of(const char *last)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	pid_t found = 0;

	while (!found && (e = readdir(d))) {
		cleanup_free char *path = xasprintf("/proc/%s/cmdline", e->d_name), *text = NULL;
		size_t len;

		if (atoi(e->d_name) > 0 && file_read(path, 0, &text, &len, NULL) == 0 &&
		    len > strlen(last) + 1 && streq(text + len - strlen(last) - 1, last))
			found = atoi(e->d_name);
	}
	closedir(d);
	return found;
}

static void deadline_kills(void **state)
{
	int64_t begun = clock_mono_ms(&clock_real);
	struct host_command *command = COMMAND("glusterfs", "hang", "machine-hangs");
	struct host_result result;

	choose("glusterfs=host");
	command->timeout_ms = 200;
	assert_int_equal(run(command, &result), -ETIMEDOUT);
	assert_true(clock_mono_ms(&clock_real) - begun < 5000);
	assert_int_equal(process_of("machine-hangs"), 0);
}

static bool is_of_machine(pid_t pid)
{
	cleanup_free char *theirs = xasprintf("/proc/%d/ns/mnt", (int)pid),
			  *wanted = xasprintf("%s/ns/mnt", proc);
	struct stat a, b;

	return stat(theirs, &a) == 0 && stat(wanted, &b) == 0 && a.st_ino == b.st_ino;
}

/* A daemon has to outlive whoever asked, and what that one's container ends with is its cgroup. */
static void daemons_are_the_machines(void **state)
{
	const struct hostvol_host *h = clients_host(host);
	cleanup_free char *path = NULL, *cgroups = NULL;
	struct host_result result;
	pid_t pid;

	choose("glusterfs=host");
	assert_int_equal(run(COMMAND("glusterfs", "daemon", "machine-daemon"), &result), 0);
	assert_int_equal(result.status, 0);
	pid = process_of("machine-daemon");
	assert_int_not_equal(pid, 0);
	assert_true(is_of_machine(pid));
	path = xasprintf("/proc/%d/cgroup", (int)pid);
	assert_int_equal(file_read(path, 0, &cgroups, NULL, NULL), 0);
	assert_non_null(strstr(cgroups, "/" PROCESS_CGROUP "\n"));
	assert_int_equal(h->await_end(h, "glusterfs", "machine-daemon", true, 5000), 0);
	assert_int_equal(process_of("machine-daemon"), 0);
}

/* ---- */

static void choices_that_are_none(void **state)
{
	struct error err = ERROR_INIT;

	assert_int_equal(clients_host_prefer(host, "nfs=host,abc", &err), -EINVAL);
	assert_int_equal(clients_host_prefer(host, "nfs=abc,host", &err), -EINVAL);
	assert_int_equal(clients_host_prefer(host, "aoe=host", &err), -EINVAL);
}

/* Where its own processes are all that is seen, the first is no machine's. */
static void out_of_sight(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct error err = ERROR_INIT;

		if (unshare(CLONE_NEWPID) < 0)
			_exit(2);
		pid = fork();
		if (pid == 0)
			_exit(clients_host_prefer(host, "nfs=host", &err) == -EPERM &&
					      strstr(err.message, "hostPID")
				      ? 0
				      : 1);
		_exit(waitpid(pid, &status, 0) == pid ? WEXITSTATUS(status) : 3);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(runs_what_the_machine_has, begin, end),
		cmocka_unit_test_setup_teardown(even_beside_a_container, begin, end),
		cmocka_unit_test_setup_teardown(secret_in_input_only, begin, end),
		cmocka_unit_test_setup_teardown(says_what_is_missing, begin, end),
		cmocka_unit_test_setup_teardown(says_it_of_an_image_too, begin, end),
		cmocka_unit_test_setup_teardown(deadline_kills, begin, end),
		cmocka_unit_test_setup_teardown(daemons_are_the_machines, begin, end),
		cmocka_unit_test_setup_teardown(choices_that_are_none, begin, end),
		cmocka_unit_test_setup_teardown(out_of_sight, begin, end),
	};

	name = name ? name + 1 : argv[0];
	if (streq(name, "glusterfs") || streq(name, "mount.nfs"))
		return helper_main(argc, argv);
	if (getuid() != 0)
		return all_without("root, to make namespaces");
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
