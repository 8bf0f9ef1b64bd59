/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/rand.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_pool.h"

#include <errno.h>

#define PURGE_BATCH 64
#define PURGE_DEPTH 24

static int purge_dir(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir, int depth,
		     struct error *err);

/*
 * A tree deeper than the limit is moved up into the trash directory and found there in the next
 * round, so that no tree costs more than a fixed amount of memory.
 */
static int purge_entry(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir,
		       const struct dir_entry *e, int depth, struct error *err)
{
	char unique[UUID_TEXT_MAX];
	cleanup_object glfs_object_t *sub = NULL;

	if (e->is_dir && depth >= PURGE_DEPTH) {
		if (glfs_h_rename(p->fs, dir, e->name, trash, uuid_text(unique)) < 0)
			return error_errno(err, errno, "cannot move a deep directory");
		return 0;
	}
	if (e->is_dir) {
		int rc = dir_open(p->fs, dir, e->name, &sub, err);
		if (rc == 0)
			rc = purge_dir(p, trash, sub, depth + 1, err);
		if (rc < 0)
			return rc;
	}
	if (glfs_h_unlink(p->fs, dir, e->name) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot delete %s", e->name);
	return 0;
}

/* Empties a directory; the number of entries that were in it. */
static int purge_dir(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir, int depth,
		     struct error *err)
{
	struct dir_entry *entries = xcalloc(PURGE_BATCH, sizeof(*entries));
	int rc = 0, count, total = 0;

	while (rc == 0 && (count = dir_read(p->fs, dir, entries, PURGE_BATCH, err)) != 0) {
		rc = count < 0 ? count : 0;
		for (int i = 0; i < count && rc == 0; i++)
			rc = purge_entry(p, trash, dir, &entries[i], depth, err);
		total += count;
	}
	free(entries);
	return rc < 0 ? rc : total;
}

int pool_fs_purge(struct pool_fs *p, struct error *err)
{
	glfs_object_t *trash;
	int rc = pool_keep_dir(p, p->root, TRASH, false, &p->trash, &trash, err);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	return purge_dir(p, trash, trash, 0, err);
}
