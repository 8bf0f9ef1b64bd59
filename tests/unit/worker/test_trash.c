/* SPDX-License-Identifier: Apache-2.0 */
/* The trash of a pool that is a directory of this machine: the kernel answers in place of libgfapi. */
#include "base/file.h"
#include "base/mem.h"
#include "worker/gluster_pool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HANGS_S 20 /* a test that takes so long has failed */

struct glfs_object {
	int fd; /* 0: none */
};

/* One that is lost stays open until the test ends, since threads may have it. */
static struct glfs_object objects[32];

static struct pool_fs pool;
static char root[64];
static bool lost_at_read, lost_at_ask; /* then a later worker takes our place over */
static int asked, answers; /* how often it was asked whether to throw; and how often it is to be */

static glfs_object_t *object_of(int fd)
{
	glfs_object_t *o = objects;

	if (fd < 0)
		return NULL;
	while (o < objects + ARRAY_SIZE(objects) - 1 && o->fd)
		o++;
	assert_int_equal(o->fd, 0);
	o->fd = fd;
	return o;
}

/* Where *when says so, once. */
static void lose_place(bool *when)
{
	cleanup_free char *top = xasprintf("%s/" TRASH, root);
	DIR *d = *when ? opendir(top) : NULL;

	*when = false;
	for (const struct dirent *e; d && (e = readdir(d));) {
		cleanup_free char *at = xasprintf("%s/%s", top, e->d_name);
		if (e->d_name[0] != '.' && !streq(e->d_name, "worker-old"))
			assert_int_equal(remove_tree(at, NULL), 0);
	}
	if (d)
		closedir(d);
}

/* ---- what is linked in place of GlusterFS ------------------------------------------------------- */

glfs_object_t *glfs_h_lookupat(glfs_t *fs, glfs_object_t *parent, const char *name, struct stat *st,
			       int follow)
{
	if (fstatat(parent->fd, name, st, AT_SYMLINK_NOFOLLOW) < 0)
		return NULL;
	return object_of(openat(parent->fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
}

int glfs_h_rename(glfs_t *fs, glfs_object_t *from, const char *name, glfs_object_t *to,
		  const char *to_name)
{
	return renameat(from->fd, name, to->fd, to_name);
}

int glfs_h_unlink(glfs_t *fs, glfs_object_t *parent, const char *name)
{
	return unlinkat(parent->fd, name, AT_REMOVEDIR);
}

int glfs_h_close(glfs_object_t *o)
{
	close(o->fd);
	o->fd = 0;
	return 0;
}

int dir_open(glfs_t *fs, glfs_object_t *parent, const char *name, glfs_object_t **ret,
	     struct error *err)
{
	struct stat st;

	*ret = glfs_h_lookupat(fs, parent, name, &st, 0);
	return *ret ? 0 : error_errno(err, errno, "cannot open %s", name);
}

int dir_make(glfs_t *fs, glfs_object_t *parent, const char *name, bool *fresh, glfs_object_t **ret,
	     struct error *err)
{
	mkdirat(parent->fd, name, 0755);
	return dir_open(fs, parent, name, ret, err);
}

static int read_dir(glfs_object_t *dir, struct dir_entry *entries, int max, struct error *err)
{
	int count = 0;
	DIR *d = fdopendir(openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (!d)
		return error_errno(err, errno, "cannot read");
	for (const struct dirent *e; count < max && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		entries[count] = (struct dir_entry){ .is_dir = e->d_type == DT_DIR };
		snprintf(entries[count++].name, sizeof(entries->name), "%s", e->d_name);
	}
	closedir(d);
	return count;
}

int dir_read(glfs_t *fs, glfs_object_t *dir, struct dir_entry *entries, int max,
	     struct error *err)
{
	lose_place(&lost_at_read);
	return read_dir(dir, entries, max, err);
}

int dir_each(glfs_t *fs, glfs_object_t *dir, dir_fn fn, void *userdata, struct error *err)
{
	struct dir_entry entries[16];
	int count = read_dir(dir, entries, ARRAY_SIZE(entries), err), rc = 0;

	for (int i = 0; i < count && rc == 0; i++)
		rc = fn(dir, &entries[i], userdata, err);
	return count < 0 ? count : rc;
}

int pool_keep_dir(struct pool_fs *p, glfs_object_t *parent, const char *name, bool make,
		  struct kept *slot, glfs_object_t **ret, struct error *err)
{
	return error_set(err, EINVAL, "no whole volume is here");
}

void pool_forget(struct pool_fs *p)
{
}

/* ---- tests ------------------------------------------------------------------------------------- */

static void put(const char *path)
{
	cleanup_free char *at = xasprintf("%s/%s", root, path);

	assert_int_equal(mkdir(at, 0755), 0);
}

static int count_in(const char *path)
{
	cleanup_free char *at = xasprintf("%s/%s", root, path);
	DIR *d = opendir(at);
	int count = 0;

	if (!d)
		return -1;
	for (const struct dirent *e; (e = readdir(d));)
		count += e->d_name[0] != '.';
	closedir(d);
	return count;
}

static int setup(void **state)
{
	alarm(HANGS_S);
	strcpy(root, "/tmp/qm-trash-XXXXXX");
	assert_non_null(mkdtemp(root));
	pool = (struct pool_fs){ .root = object_of(open(root, O_RDONLY | O_CLOEXEC)) };
	pool.own = pool.root;
	pthread_mutex_init(&pool.lock, NULL);
	pthread_mutex_init(&pool.entering, NULL);
	put("volume");
	put(TRASH);
	put(TRASH "/worker-old");
	put(TRASH "/worker-old/purge.1");
	put(TRASH "/worker-old/purge.2");
	lost_at_read = lost_at_ask = false;
	asked = 0;
	answers = 1;
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		if (objects[i].fd)
			glfs_h_close(&objects[i]);
	alarm(0);
	return remove_tree(root, NULL);
}

static int ask(void *userdata, struct error *err)
{
	lose_place(&lost_at_ask);
	return asked++ < answers;
}

static int throw(void)
{
	return pool_throw_checked(&pool, pool.root, "volume", "volume", ask, NULL, NULL);
}

/* What an earlier worker left is ours, its place is gone, and what is thrown away is beside it. */
static void taken_over(void **state)
{
	assert_int_equal(throw(), 1);
	assert_int_equal(asked, 1);
	assert_int_equal(count_in(TRASH), 1);
	assert_int_equal(count_in("volume"), -1);
	asked = 0;
	assert_int_equal(throw(), 0); /* there is none any more */
}

/* Ours is taken over while we take over the other's: nothing can be moved to it, and that ends. */
static void lost_while_taking_over(void **state)
{
	lost_at_read = true;
	assert_int_equal(throw(), -EAGAIN);
	assert_int_equal(asked, 0);
	assert_int_equal(count_in("volume"), 0);
	assert_int_equal(count_in(TRASH "/worker-old"), 2);
	assert_int_equal(throw(), 1);
	assert_int_equal(count_in(TRASH), 1);
}

/* Ours is taken over after we have asked: it is asked anew, and the answer may be another by then. */
static void lost_after_asking(void **state)
{
	lost_at_ask = true;
	assert_int_equal(throw(), 0);
	assert_int_equal(asked, 2);
	assert_int_equal(count_in("volume"), 0);
	asked = 0;
	answers = 2;
	assert_int_equal(throw(), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(taken_over, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_while_taking_over, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_after_asking, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
