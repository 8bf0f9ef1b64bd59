/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_whole.h"

#include "base/mem.h"
#include "worker/gluster_attr.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_tree.h"

#include <errno.h>

#define BATCH 64
#define TRIES 8 /* of what another worker may be doing away with just now */

int whole_open(const struct pool_fs *p, const char *name, struct pool_fs **ret, struct error *err)
{
	struct error why = ERROR_INIT;
	int rc = pool_fs_open(name, (const char *const *)p->hosts.items, p->log_path, p->epoch, ret,
			      &why);

	/* whoever asks has seen that it is there: whatever it is, it passes */
	return rc < 0 ? error_set(err, EAGAIN, "%s", error_text(&why, rc)) : 0;
}

static void *close_it(void *w)
{
	pool_fs_close(w);
	return NULL;
}

/* libgfapi waits for up to ten seconds there: nobody else need */
void whole_close(struct pool_fs *w, bool answers)
{
	pthread_t thread;

	if (w && answers && pthread_create(&thread, NULL, close_it, w) == 0)
		pthread_detach(thread);
}

int whole_check_source(glfs_t *fs, glfs_object_t *tree, struct error *err)
{
	struct stat st;
	cleanup_object glfs_object_t *o = glfs_h_lookupat(fs, tree, COPY_TOP, &st, 0);

	return o ? error_set(err, EINVAL,
			     "the source has " COPY_TOP " at its top, which a whole volume cannot "
			     "have; rename it")
		 : 0;
}

/* ---- the place ---------------------------------------------------------------------------------- */

static bool gone(int rc)
{
	return rc == -ENOENT || rc == -ESTALE;
}

static int open_place(const struct whole_copy *c, bool make, glfs_object_t **ret_top,
		      struct error *err)
{
	struct pool_fs *w = c->w;
	cleanup_object glfs_object_t *top = NULL;
	glfs_object_t *own;
	int rc = make ? dir_make(w->fs, w->root, COPY_TOP, NULL, &top, err)
		      : dir_open(w->fs, w->root, COPY_TOP, &top, err);

	if (rc == 0)
		rc = make ? dir_make(w->fs, top, c->place, NULL, &own, err)
			  : dir_open(w->fs, top, c->place, &own, err);
	if (rc < 0)
		return rc;
	if (w->own != w->root)
		glfs_h_close(w->own);
	w->own = own;
	*ret_top = TAKE_PTR(top);
	return 0;
}

/* What was made too late, by us whose time is over, is empty and goes again. */
static void unmake_place(const struct whole_copy *c, glfs_object_t *top)
{
	if (top)
		glfs_h_unlink(c->w->fs, top, c->place);
	glfs_h_unlink(c->w->fs, c->w->root, COPY_TOP);
}

/* While the directory is empty, another may remove it at its end. */
static int make_place(const struct whole_copy *c, glfs_object_t **ret_top, struct error *err)
{
	struct error why = ERROR_INIT;
	int rc = -ENOENT;

	for (int i = 0; i < TRIES && gone(rc); i++)
		rc = open_place(c, true, ret_top, &why);
	if (rc == 0)
		rc = c->check(c->userdata, &why);
	if (rc < 0)
		unmake_place(c, *ret_top);
	return rc < 0 ? error_set(err, -rc, "%s", why.message) : 0;
}

/* All of the places but keep (may be NULL). What is made after the check, by whoever takes over from us, was not read before it. */
static int delete_others(const struct whole_copy *c, glfs_object_t *top, const char *keep,
			 struct error *err)
{
	struct dir_entry *entries = xcalloc(BATCH, sizeof(*entries));
	int rc = 0, others = 1, idle = 0;

	while (rc == 0 && others) {
		int count = dir_read(c->w->fs, top, entries, BATCH, err), deleted = 0;
		rc = count < 0 ? count : c->check(c->userdata, err);
		others = 0;
		for (int i = 0; i < count && rc >= 0; i++) {
			if (streq(entries[i].name, keep))
				continue;
			rc = pool_purge_entry(c->w, top, &entries[i], err);
			others++;
			deleted += rc > 0;
		}
		rc = rc < 0 ? rc : 0;
		idle = deleted ? 0 : idle + 1;
		if (rc == 0 && others && idle == TRIES)
			rc = error_set(err, EAGAIN, "%s is listed but cannot be found",
				       entries[0].name);
	}
	free(entries);
	return rc;
}

/* ---- in the beginning --------------------------------------------------------------------------- */

/* What is in the root and not ours, at most a batch of it, into the trash; the number. */
static int throw_others(struct pool_fs *w, struct dir_entry *entries, struct error *err)
{
	int count = dir_read(w->fs, w->root, entries, BATCH, err), found = 0, thrown = 0;

	for (int i = 0; i < count; i++) {
		if (streq(entries[i].name, COPY_TOP))
			continue;
		int rc = pool_throw(w, w->root, entries[i].name, NULL, err);
		if (rc < 0)
			return rc;
		found++;
		thrown += rc;
	}
	if (found && !thrown)
		return error_set(err, EAGAIN,
				 "the volume has entries that are listed but cannot be found");
	return count < 0 ? count : thrown;
}

/* By way of the trash in our place: who deletes that one has ended us here. */
static int clear_root(struct pool_fs *w, struct error *err)
{
	struct dir_entry *entries = xcalloc(BATCH, sizeof(*entries));
	int rc;

	while ((rc = throw_others(w, entries, err)) > 0)
		; /* read anew each time: see move_up */
	free(entries);
	if (rc == 0)
		rc = pool_fs_purge(w, err);
	return rc < 0 ? rc : 0;
}

int whole_begin(const struct whole_copy *c, bool anew, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL;
	int rc = make_place(c, &top, err);

	if (rc == 0 && anew)
		rc = delete_others(c, top, c->place, err);
	if (rc == 0 && anew)
		rc = clear_root(c->w, err);
	return rc;
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

/* -ENOENT: it is not there (any more). */
static int move_copy(const struct whole_copy *c, const char *name, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL, *copy = NULL;
	int rc = open_place(c, false, &top, err);

	if (rc == 0)
		rc = dir_open(c->w->fs, c->w->own, name, &copy, err);
	if (rc < 0)
		return rc;
	rc = move_up(c->w, copy, err);
	if (rc == 0)
		rc = remove_dir(c->w, c->w->own, name, err);
	/* that of an entry is none of the copy */
	return gone(rc) ? error_set(err, EAGAIN, "an entry of the copy is gone") : rc;
}

/* Our place, whose copy has been moved, and whatever others have left. */
static int remove_top(const struct whole_copy *c, struct error *err)
{
	struct pool_fs *w = c->w;
	int rc = -ENOTEMPTY;

	for (int i = 0; i < TRIES && rc == -ENOTEMPTY; i++) {
		cleanup_object glfs_object_t *top = NULL;
		rc = dir_open(w->fs, w->root, COPY_TOP, &top, err);
		if (rc == -ENOENT)
			return 0;
		if (rc == 0)
			rc = delete_others(c, top, NULL, err);
		if (rc == 0)
			rc = remove_dir(w, w->root, COPY_TOP, err);
	}
	return rc;
}

/* Nobody can be kept from the root's attributes: one that is stopped right before a step here sets them late. */
static int set_attributes(const struct whole_copy *c, glfs_t *from_fs, glfs_object_t *from,
			  char *buffer, struct error *err)
{
	struct stat st;

	if (glfs_h_stat(from_fs, from, &st) < 0)
		return error_errno(err, errno, "cannot look at what was copied");
	int rc = c->check(c->userdata, err);
	if (rc == 0)
		rc = attr_copy_extended(from_fs, from, c->w->fs, c->w->root, buffer, err);
	if (rc == 0)
		rc = c->check(c->userdata, err);
	return rc < 0 ? rc : attr_set(c->w->fs, c->w->root, &st, err);
}

int whole_settle(const struct whole_copy *c, const char *name, glfs_t *from_fs, glfs_object_t *from,
		 char *buffer, struct error *err)
{
	struct error why = ERROR_INIT;
	int rc = move_copy(c, name, &why);

	/* moved already, if nobody else can have removed it: who does has put his own info before */
	if (rc == -ENOENT)
		rc = c->check(c->userdata, &why);
	if (rc == 0)
		rc = remove_top(c, &why);
	if (rc == 0)
		rc = set_attributes(c, from_fs, from, buffer, &why);
	return rc < 0 ? error_set(err, -rc, "%s", why.message) : 0;
}
