/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/rand.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_pool.h"

#include <errno.h>

#define PURGE_BATCH 64
#define PURGE_DEPTH 24
#define FULL_TRIES 16 /* of a directory in which somebody else still makes or deletes something */

static int purge_dir(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir, int depth,
		     struct error *err);

/* 1: it was there. */
static int delete_entry(struct pool_fs *p, glfs_object_t *dir, const char *name, struct error *err)
{
	if (glfs_h_unlink(p->fs, dir, name) == 0)
		return 1;
	return errno == ENOENT ? 0 : error_errno(err, errno, "cannot delete %s", name);
}

static int purge_sub(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir, const char *name,
		     int depth, struct error *err)
{
	cleanup_object glfs_object_t *sub = NULL;
	int rc = dir_open(p->fs, dir, name, &sub, err);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	for (int i = 0; i < FULL_TRIES; i++) {
		rc = purge_dir(p, trash, sub, depth + 1, err);
		if (rc >= 0)
			rc = delete_entry(p, dir, name, err);
		if (rc != -ENOTEMPTY)
			break;
	}
	return rc;
}

/*
 * A tree deeper than the limit is moved up into the trash directory and found there in the next
 * round, so that no tree costs more than a fixed amount of memory. 1: it is not here any more; 0: it was not.
 */
static int purge_entry(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir,
		       const struct dir_entry *e, int depth, struct error *err)
{
	char unique[UUID_TEXT_MAX];

	if (e->is_dir && depth >= PURGE_DEPTH) {
		if (glfs_h_rename(p->fs, dir, e->name, trash, uuid_text(unique)) < 0)
			return error_errno(err, errno, "cannot move a deep directory");
		return 1;
	}
	return e->is_dir ? purge_sub(p, trash, dir, e->name, depth, err)
			 : delete_entry(p, dir, e->name, err);
}

/* Empties a directory; the number of entries that were in it. */
static int purge_dir(struct pool_fs *p, glfs_object_t *trash, glfs_object_t *dir, int depth,
		     struct error *err)
{
	struct dir_entry *entries = xcalloc(PURGE_BATCH, sizeof(*entries));
	int rc = 0, count, total = 0, idle = 0;

	while (rc == 0 && (count = dir_read(p->fs, dir, entries, PURGE_BATCH, err)) != 0) {
		int gone = 0;
		rc = count < 0 ? count : 0;
		if (p->stop && atomic_load(p->stop))
			rc = error_set(err, ECANCELED, "the deletion was stopped");
		for (int i = 0; i < count && rc >= 0; i++) {
			rc = purge_entry(p, trash, dir, &entries[i], depth, err);
			gone += rc > 0;
		}
		idle = gone ? 0 : idle + 1;
		if (rc > 0)
			rc = 0;
		if (rc == 0 && idle == FULL_TRIES)
			rc = error_set(err, EAGAIN, "%s is listed but cannot be found",
				       entries[0].name);
		total += gone;
	}
	free(entries);
	return rc < 0 ? rc : total;
}

int pool_purge_entry(struct pool_fs *p, glfs_object_t *dir, const struct dir_entry *e,
		     struct error *err)
{
	return purge_entry(p, dir, dir, e, 0, err);
}

int pool_fs_purge(struct pool_fs *p, struct error *err)
{
	glfs_object_t *trash;
	int rc = pool_trash(p, &trash, err);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	rc = purge_dir(p, trash, trash, 0, err);
	if ((rc == -ENOENT || rc == -ESTALE) && p->own == p->root) {
		pool_trash_lose(p, trash);
		return 0;
	}
	return rc;
}
