/* SPDX-License-Identifier: Apache-2.0 */
#include "../skip.h"
#include "base/file.h"
#include "base/str.h"
#include "unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

static char *root;

static char *in_root(const char *name)
{
	return xasprintf("%s/%s", root, name);
}

static int setup(void **state)
{
	root = temporary_dir();
	return 0;
}

static int teardown(void **state)
{
	int r = remove_tree(root, NULL);

	free(root);
	return r;
}

static size_t entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void writes_and_reads(void **state)
{
	cleanup_free char *path = in_root("f"), *data = NULL, *again = NULL;
	struct error err = ERROR_INIT;
	struct stat st;
	size_t len = 0;

	assert_int_equal(file_write(path, "one\0two", 7, 0640, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(file_read(path, 0, &data, &len, &err), 0);
	assert_int_equal(len, 7);
	assert_memory_equal(data, "one\0two", 8);
	assert_int_equal(file_write(path, "", 0, 0600, &err), 0);
	assert_int_equal(file_read(path, 0, &again, NULL, &err), 0);
	assert_string_equal(again, "");
	assert_int_equal(entries(root), 1); /* no temporary file is left */
}

static void reading_has_a_limit(void **state)
{
	cleanup_free char *path = in_root("f"), *big = xcalloc(1, 100000), *data = NULL,
			  *proc = NULL;
	struct error err = ERROR_INIT;
	char *untouched = path;
	size_t len = 7;

	assert_int_equal(file_write(path, big, 100000, 0600, NULL), 0);
	assert_int_equal(file_read(path, 99999, &untouched, &len, &err), -EFBIG);
	assert_ptr_equal(untouched, path);
	assert_int_equal(len, 7);
	assert_int_equal(file_read(path, 100000, &data, &len, &err), 0);
	assert_int_equal(len, 100000);
	assert_int_equal(file_read("/proc/self/status", 0, &proc, &len, &err), 0);
	assert_true(len > 100); /* has no size, and yet is read whole */
}

static void failures_name_the_file(void **state)
{
	cleanup_free char *missing = in_root("no/such/file"), *dir = in_root("d");
	struct error err = ERROR_INIT;
	char *data = NULL;

	assert_int_equal(file_read(missing, 0, &data, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.message, missing));
	assert_int_equal(file_write(missing, "x", 1, 0600, &err), -ENOENT);
	assert_non_null(strstr(err.message, missing));
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(file_read(dir, 0, &data, NULL, &err), -EISDIR);
	assert_int_equal(file_write(dir, "x", 1, 0600, &err), -EISDIR);
	assert_null(data);
	assert_int_equal(entries(root), 1);
}

static void makes_directories(void **state)
{
	cleanup_free char *deep = in_root("a/b//c/"), *file = in_root("file"),
			  *below = in_root("file/x");
	struct error err = ERROR_INIT;
	struct stat st;

	assert_int_equal(mkdir_parents(deep, 0750, &err), 0);
	assert_int_equal(mkdir_parents(deep, 0750, &err), 0);
	assert_int_equal(stat(deep, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(mkdir_parents("/", 0755, &err), 0);
	assert_int_equal(file_write(file, "", 0, 0600, NULL), 0);
	assert_int_equal(mkdir_parents(file, 0700, &err), -ENOTDIR);
	assert_int_equal(mkdir_parents(below, 0700, &err), -ENOTDIR);
	assert_int_equal(mkdir_parents("", 0700, &err), -EINVAL);
}

static void removes_without_following(void **state)
{
	cleanup_free char *outside = in_root("outside"), *precious = in_root("outside/precious");
	cleanup_free char *tree = in_root("tree"), *sub = in_root("tree/a/b/c"),
			  *file = in_root("tree/a/f");
	cleanup_free char *link = in_root("tree/a/link"), *top_link = in_root("link"),
			  *slash = in_root("tree///");
	struct error err = ERROR_INIT;
	struct stat st;

	assert_int_equal(mkdir_parents(outside, 0700, NULL), 0);
	assert_int_equal(file_write(precious, "x", 1, 0600, NULL), 0);
	assert_int_equal(mkdir_parents(sub, 0700, NULL), 0);
	assert_int_equal(file_write(file, "x", 1, 0600, NULL), 0);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(symlink(outside, top_link), 0);
	assert_int_equal(remove_tree(slash, &err), 0);
	assert_int_equal(lstat(tree, &st), -1);
	assert_int_equal(remove_tree(tree, &err), 0); /* nothing there is fine */
	assert_int_equal(remove_tree(top_link, &err), 0); /* the link, not its target */
	assert_int_equal(lstat(top_link, &st), -1);
	assert_int_equal(stat(precious, &st), 0);
	assert_int_equal(remove_tree("/", &err), -EINVAL);
	assert_int_equal(remove_tree("..", &err), -EINVAL);
	assert_int_equal(remove_tree("/tmp/..", &err), -EINVAL);
}

/* In a mount namespace of its own, so that nothing of it can stay behind. */
static int try_mounts(void)
{
	cleanup_free char *tree = in_root("tree"), *inside = in_root("tree/m"),
			  *outside = in_root("outside");
	cleanup_free char *precious = in_root("outside/precious");
	struct error err = ERROR_INIT;
	struct stat st;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	if (mkdir_parents(inside, 0700, NULL) < 0 || mkdir_parents(outside, 0700, NULL) < 0 ||
	    file_write(precious, "x", 1, 0600, NULL) < 0)
		return 1;
	/* of the same file system, which a comparison of device numbers does not see */
	if (mount(outside, inside, NULL, MS_BIND, NULL) < 0)
		return 2;
	if (remove_tree(tree, &err) != -EXDEV || !strstr(err.message, "mount point"))
		return 3;
	if (remove_tree(inside, &err) != -EXDEV || stat(precious, &st) < 0)
		return 4;
	umount(inside);
	return remove_tree(tree, &err) == 0 ? 0 : 5;
}

static void stops_at_mount_points(void **state)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0)
		_exit(try_mounts());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip_without("a mount namespace, which needs root");
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void clean_paths(void **state)
{
	static const char *const good[] = { "/",     "/a",     "/a/b", "/a/...",
					    "/a/.b", "/a/b..", "/ü x", NULL };
	static const char *const bad[] = { "",	    "a",     "//",	"/a/",	  "/a//b",
					   "/.",    "/..",   "/a/../b", "/a/./b", "/a/..",
					   "/a\nb", "/\x7f", "../a",	"/a\x01", NULL };
	char longest[5000];

	for (const char *const *p = good; *p; p++)
		assert_true(path_is_clean(*p));
	for (const char *const *p = bad; *p; p++)
		if (path_is_clean(*p))
			fail_msg("\"%s\" is not clean", *p);
	assert_false(path_is_clean(NULL));
	memset(longest, 'a', sizeof(longest));
	longest[0] = '/';
	longest[256] = '\0';
	assert_true(path_is_clean(longest));
	longest[256] = 'a';
	longest[257] = '\0';
	assert_false(path_is_clean(longest));
	for (size_t i = 0; i < 4999; i += 2)
		memcpy(longest + i, "/a", 2);
	longest[4999] = '\0';
	assert_false(path_is_clean(longest));
}

static void locks_exclude(void **state)
{
	cleanup_free char *path = in_root("lock"), *link = in_root("link");
	struct error err = ERROR_INIT;
	cleanup_close int a = lock_file(path, false, &err), b = -1;

	assert_true(a >= 0);
	assert_int_equal(lock_file(path, false, &err), -EWOULDBLOCK);
	assert_non_null(strstr(err.message, path));
	close(TAKE_FD(a));
	b = lock_file(path, false, &err);
	assert_true(b >= 0);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(lock_file(link, false, &err), -ELOOP);
}

static void *let_go(void *fd)
{
	usleep(100000);
	close(*(int *)fd);
	return NULL;
}

static void locks_wait(void **state)
{
	cleanup_free char *path = in_root("lock");
	int a = lock_file(path, false, NULL), b;
	pthread_t thread;

	assert_true(a >= 0);
	assert_int_equal(pthread_create(&thread, NULL, let_go, &a), 0);
	b = lock_file(path, true, NULL);
	assert_true(b >= 0);
	close(b);
	pthread_join(thread, NULL);
}

/* A lock on a file that its holder removed guards nothing. */
static void locks_the_file_of_that_name(void **state)
{
	cleanup_free char *path = in_root("lock");
	cleanup_close int a = lock_file(path, false, NULL), b = -1;
	struct stat held, named;

	assert_true(a >= 0);
	assert_int_equal(unlink(path), 0);
	b = lock_file(path, false, NULL);
	assert_true(b >= 0);
	assert_int_equal(fstat(b, &held), 0);
	assert_int_equal(stat(path, &named), 0);
	assert_int_equal(held.st_ino, named.st_ino);
}

#define file_unit_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		file_unit_test(writes_and_reads),
		file_unit_test(reading_has_a_limit),
		file_unit_test(failures_name_the_file),
		file_unit_test(makes_directories),
		file_unit_test(removes_without_following),
		file_unit_test(stops_at_mount_points),
		cmocka_unit_test(clean_paths),
		file_unit_test(locks_exclude),
		file_unit_test(locks_wait),
		file_unit_test(locks_the_file_of_that_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
