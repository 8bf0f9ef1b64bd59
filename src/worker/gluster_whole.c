/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_whole.h"

#include "base/mem.h"
#include "base/rand.h"
#include "worker/gluster_attr.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_tree.h"

#include <errno.h>

#define BATCH 64

int whole_open(const struct pool_fs *p, const char *name, struct pool_fs **ret, struct error *err)
{
	struct error why = ERROR_INIT;
	int rc = pool_fs_open(name, (const char *const *)p->hosts.items, p->log_path, p->epoch, ret,
			      &why);

	/* whoever asks has seen that it is there: whatever it is, it passes */
	return rc < 0 ? error_set(err, EAGAIN, "%s", error_text(&why, rc)) : 0;
}

void whole_close(struct pool_fs *w, bool answers)
{
	if (w && answers)
		pool_fs_close(w);
}

static bool is_own(const char *name)
{
	return streq(name, TRASH) || streq(name, COPY_TOP);
}

int whole_check_source(glfs_t *fs, glfs_object_t *tree, struct error *err)
{
	static const char *const own[] = { TRASH, COPY_TOP };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
		struct stat st;
		cleanup_object glfs_object_t *o = glfs_h_lookupat(fs, tree, own[i], &st, 0);
		if (o)
			return error_set(err, EINVAL,
					 "the source has %s at its top, which a whole volume "
					 "cannot have; rename it",
					 own[i]);
	}
	return 0;
}

static int throw_away(struct pool_fs *w, glfs_object_t *dir, const char *name, struct error *err)
{
	char unique[UUID_TEXT_MAX];
	glfs_object_t *trash;
	int rc = pool_keep_dir(w, w->root, TRASH, true, &w->trash, &trash, err);

	if (rc < 0)
		return rc;
	if (glfs_h_rename(w->fs, dir, name, trash, uuid_text(unique)) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot move a part of an older copy away");
	return 0;
}

/* What is in the root and not ours, at most a batch of it; the number. */
static int throw_others(struct pool_fs *w, struct dir_entry *entries, struct error *err)
{
	int count = dir_read(w->fs, w->root, entries, BATCH, err), thrown = 0;

	for (int i = 0; i < count; i++) {
		int rc = is_own(entries[i].name) ? 0 : throw_away(w, w->root, entries[i].name, err);
		if (rc < 0)
			return rc;
		thrown += !is_own(entries[i].name);
	}
	return count < 0 ? count : thrown;
}

int whole_begin(struct pool_fs *w, bool anew, glfs_object_t **ret, struct error *err)
{
	struct dir_entry *entries = xcalloc(BATCH, sizeof(*entries));
	int rc = 0;

	while (anew && (rc = throw_others(w, entries, err)) > 0)
		; /* read anew each time: see move_up */
	free(entries);
	return rc < 0 ? rc : dir_make(w->fs, w->root, COPY_TOP, NULL, ret, err);
}

int whole_discard(struct pool_fs *w, glfs_object_t *dir, const char *name, struct error *err)
{
	return throw_away(w, dir, name, err);
}

/* ---- in the end --------------------------------------------------------------------------------- */

/* Read anew after each batch: a directory that is read while names leave it may pass some over. */
static int move_up(struct pool_fs *w, glfs_object_t *copy, struct error *err)
{
	struct dir_entry *entries = xcalloc(BATCH, sizeof(*entries));
	int rc = 0, count;

	while (rc == 0 && (count = dir_read(w->fs, copy, entries, BATCH, err)) != 0) {
		rc = count < 0 ? count : 0;
		for (int i = 0; i < count && rc == 0; i++)
			if (glfs_h_rename(w->fs, copy, entries[i].name, w->root, entries[i].name) <
			    0)
				rc = error_errno(err, errno, "cannot move %s to its place",
						 entries[i].name);
	}
	free(entries);
	return rc;
}

/* The directory is empty, or missing. */
static int remove_dir(struct pool_fs *w, glfs_object_t *parent, const char *name, struct error *err)
{
	if (glfs_h_unlink(w->fs, parent, name) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot remove %s of a whole volume", name);
	return 0;
}

/* All else in the directory is of older copies, or links. */
static int remove_top(struct pool_fs *w, glfs_object_t *top, const char *name, struct error *err)
{
	cleanup_object glfs_object_t *copy = NULL;
	int rc = dir_open(w->fs, top, name, &copy, err);

	if (rc == 0)
		rc = move_up(w, copy, err);
	if (rc == 0 || rc == -ENOENT)
		rc = throw_away(w, w->root, COPY_TOP, err);
	return rc;
}

int whole_settle(struct pool_fs *w, const char *name, glfs_t *from_fs, glfs_object_t *from,
		 char *buffer, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL;
	struct error why = ERROR_INIT;
	struct stat st;
	int rc = dir_open(w->fs, w->root, COPY_TOP, &top, &why);

	if (rc == 0)
		rc = remove_top(w, top, name, &why);
	if (rc == 0 || rc == -ENOENT)
		rc = pool_fs_purge(w, &why);
	if (rc >= 0)
		rc = remove_dir(w, w->root, TRASH, &why);
	if (rc == 0 && glfs_h_stat(from_fs, from, &st) < 0)
		rc = error_errno(&why, errno, "cannot look at what was copied");
	if (rc == 0)
		rc = attr_copy_extended(from_fs, from, w->fs, w->root, buffer, &why);
	if (rc == 0)
		rc = attr_set(w->fs, w->root, &st, &why);
	return rc < 0 ? error_set(err, -rc, "%s", why.message) : 0;
}
