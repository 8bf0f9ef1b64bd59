/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trash: what is removed is renamed into it, and deleted there. A worker may be stopped right before such a rename,
 * and go on when another has removed the volume and made one of the same name. So each worker has a directory of its
 * own in the trash, and who comes after it removes that: then the rename fails, since there is nowhere to go. Whoever finds
 * its directory gone makes another, in which it is the newest again, and looks anew at what it was about to throw away.
 */
#include "worker/gluster_pool.h"

#include "base/mem.h"
#include "base/rand.h"
#include "worker/gluster_fs.h"

#include <errno.h>

#define WORKER_PREFIX "worker-"
#define BATCH 64
#define TRIES 16

/* ---- one's own directory ------------------------------------------------------------------------ */

/* 1: it is ours now; 0: it is gone, since another takes over as well, or our own place is. */
static int take_entry(struct pool_fs *p, glfs_object_t *from, const char *name, glfs_object_t *own,
		      struct error *err)
{
	char unique[UUID_TEXT_MAX];
	cleanup_free char *to = xasprintf("purge.%s", uuid_text(unique));

	if (glfs_h_rename(p->fs, from, name, own, to) == 0)
		return 1;
	return errno == ENOENT ? 0
			       : error_errno(err, errno, "cannot take %s over in the trash", name);
}

/*
 * Read anew after each batch: a directory that is read while names leave it may pass some over.
 * -EAGAIN: nothing that is listed can be taken, time after time. Then our own place is gone: a
 * later worker has taken it over, and may itself have been stopped before it took this one.
 */
static int empty_worker(struct pool_fs *p, glfs_object_t *dir, glfs_object_t *own,
			struct error *err)
{
	struct dir_entry *entries = xcalloc(BATCH, sizeof(*entries));
	int rc = 0, count, idle = 0;

	while (rc == 0 && (count = dir_read(p->fs, dir, entries, BATCH, err)) != 0) {
		int taken = 0;
		rc = count < 0 ? count : 0;
		for (int i = 0; i < count && rc >= 0; i++) {
			rc = take_entry(p, dir, entries[i].name, own, err);
			taken += rc > 0;
		}
		idle = taken ? 0 : idle + 1;
		if (rc > 0)
			rc = 0;
		if (rc == 0 && idle == TRIES)
			rc = -EAGAIN;
	}
	free(entries);
	return rc == -ESTALE ? 0 : rc;
}

/* Whoever it is may still throw something into it: until it is gone. */
static int end_worker(struct pool_fs *p, glfs_object_t *top, const char *name, glfs_object_t *own,
		      struct error *err)
{
	int rc = -ENOTEMPTY;

	for (int i = 0; i < TRIES && rc == -ENOTEMPTY; i++) {
		cleanup_object glfs_object_t *dir = NULL;
		rc = dir_open(p->fs, top, name, &dir, err);
		if (rc == 0)
			rc = empty_worker(p, dir, own, err);
		if (rc == 0 && glfs_h_unlink(p->fs, top, name) < 0)
			rc = -errno;
		if (rc == -ENOENT || rc == -ESTALE)
			return 0;
	}
	if (rc == -EAGAIN || rc == -ENOTEMPTY)
		return error_set(err, EAGAIN,
				 "another worker takes over the trash of %s as well; ask again",
				 name);
	return rc < 0 ? error_errno(err, -rc, "cannot take over the trash of %s", name) : 0;
}

struct takeover {
	struct pool_fs *p;
	glfs_object_t *own;
	struct strv others; /* workers */
	struct strv rest; /* of versions that had one trash for all */
	const char *name; /* our own */
};

static int note_other(glfs_object_t *top, const struct dir_entry *e, void *userdata,
		      struct error *err)
{
	struct takeover *t = userdata;
	bool worker = e->is_dir && str_has_prefix(e->name, WORKER_PREFIX);

	if (!streq(e->name, t->name))
		strv_add(worker ? &t->others : &t->rest, e->name);
	return 0;
}

static int take_over(struct takeover *t, glfs_object_t *top, struct error *err)
{
	int rc = dir_each(t->p->fs, top, note_other, t, err);

	for (size_t i = 0; rc == 0 && i < t->others.count; i++)
		rc = end_worker(t->p, top, t->others.items[i], t->own, err);
	for (size_t i = 0; rc >= 0 && i < t->rest.count; i++)
		rc = take_entry(t->p, top, t->rest.items[i], t->own, err);
	strv_done(&t->others);
	strv_done(&t->rest);
	return rc < 0 ? rc : 0;
}

/* Ours is there before the others are read: of two that come at once at least one sees the other. */
static int enter(struct pool_fs *p, glfs_object_t **ret, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL, *own = NULL;
	char unique[UUID_TEXT_MAX];
	cleanup_free char *name = xasprintf(WORKER_PREFIX "%s", uuid_text(unique));
	int rc = dir_make(p->fs, p->root, TRASH, NULL, &top, err);

	if (rc == 0)
		rc = dir_make(p->fs, top, name, NULL, &own, err);
	if (rc < 0)
		return rc;
	struct takeover t = { .p = p, .own = own, .name = name };
	rc = take_over(&t, top, err);
	if (rc == 0)
		*ret = TAKE_PTR(own);
	return rc;
}

/* Of a whole volume the trash is in the place of its copy, which is a fence itself. */
static int own_trash(struct pool_fs *p, glfs_object_t **ret, struct error *err)
{
	if (p->own != p->root)
		return pool_keep_dir(p, p->own, TRASH, true, &p->trash, ret, err);
	pthread_mutex_lock(&p->entering);
	pthread_mutex_lock(&p->lock);
	glfs_object_t *dir = p->trash.dir;
	pthread_mutex_unlock(&p->lock);
	int rc = dir ? 0 : enter(p, &dir, err);
	pthread_mutex_lock(&p->lock);
	p->trash.dir = rc == 0 ? dir : NULL;
	pthread_mutex_unlock(&p->lock);
	pthread_mutex_unlock(&p->entering);
	if (rc == 0)
		*ret = dir;
	return rc;
}

/* Not closed, since another thread may be using it; this happens next to never. */
void pool_trash_lose(struct pool_fs *p, const glfs_object_t *dir)
{
	pthread_mutex_lock(&p->lock);
	if (p->trash.dir == dir)
		p->trash = (struct kept){ 0 };
	pthread_mutex_unlock(&p->lock);
}

/* ---- throwing ------------------------------------------------------------------------------------ */

/* Is it the entry that is missing, or the trash? */
static int throw_once(struct pool_fs *p, glfs_object_t *dir, const char *name, const char *to,
		      throw_check check, void *userdata, struct error *err)
{
	struct stat st;
	glfs_object_t *trash;
	int rc = own_trash(p, &trash, err);
	if (rc == 0 && check) {
		rc = check(userdata, err);
		if (rc <= 0)
			return rc;
	}
	if (rc < 0)
		return rc;
	if (glfs_h_rename(p->fs, dir, name, trash, to) == 0)
		return 1;
	int code = errno;
	if (code == ENOENT || code == ESTALE) {
		cleanup_object glfs_object_t *o = glfs_h_lookupat(p->fs, dir, name, &st, 0);
		if (!o && errno == ENOENT)
			return 0;
		code = o ? ESTALE : errno;
		pool_trash_lose(p, trash);
	}
	return error_errno(err, code, "cannot move %s into the trash", name);
}

int pool_throw_checked(struct pool_fs *p, glfs_object_t *dir, const char *name, const char *label,
		       throw_check check, void *userdata, struct error *err)
{
	char unique[UUID_TEXT_MAX];
	cleanup_free char *to = xasprintf("purge.%s%s%s", label ? label : "", label ? "." : "",
					  uuid_text(unique));
	int rc = throw_once(p, dir, name, to, check, userdata, err);
	if (rc == -ESTALE) {
		pool_forget(p);
		rc = throw_once(p, dir, name, to, check, userdata, err);
	}
	return rc;
}

int pool_throw(struct pool_fs *p, glfs_object_t *dir, const char *name, const char *label,
	       struct error *err)
{
	return pool_throw_checked(p, dir, name, label, NULL, NULL, err);
}

/* Where there is no trash there is nothing in it. */
int pool_trash(struct pool_fs *p, glfs_object_t **ret, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL;
	int rc = dir_open(p->fs, p->own, TRASH, &top, err);

	return rc < 0 ? rc : own_trash(p, ret, err);
}
