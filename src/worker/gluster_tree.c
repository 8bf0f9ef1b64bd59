/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_tree.h"

#include "base/mem.h"
#include "worker/gluster_attr.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>

#define PENDING_MAX 1000000 /* directories side by side; 40 MB of them */

struct copy_pending {
	unsigned char from[GFAPI_HANDLE_LENGTH], to[GFAPI_HANDLE_LENGTH];
	bool resumed;
};

/* An entry to be copied, and where to. */
struct entry {
	glfs_object_t *object;
	const struct stat *st;
	glfs_object_t *to_dir;
	const char *name;
	bool fresh; /* to_dir was made by this run: nothing can be there yet */
};

static bool vanished(int code)
{
	return code == ENOENT || code == ESTALE;
}

/* ---- what is there already ---------------------------------------------------------------------- */

/* Into the trash, whatever it is. */
static int throw_away(struct copy_tree *c, glfs_object_t *dir, const char *name, struct error *err)
{
	int rc = pool_throw(c->p, dir, name, NULL, err);
	return rc < 0 ? rc : 0;
}

/* To the microsecond: bricks without the ctime feature keep no more. */
static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec / 1000 == b.tv_nsec / 1000;
}

static bool complete(const struct stat *copy, const struct stat *of)
{
	return copy->st_mode == of->st_mode && copy->st_uid == of->st_uid &&
	       copy->st_gid == of->st_gid && copy->st_size == of->st_size &&
	       copy->st_rdev == of->st_rdev && same_time(copy->st_mtim, of->st_mtim);
}

static glfs_object_t *look_copy(struct copy_tree *c, const struct entry *e, struct stat *st)
{
	return e->fresh ? NULL : glfs_h_lookupat(c->p->fs, e->to_dir, e->name, st, 0);
}

static bool same_object(glfs_object_t *a, glfs_object_t *b)
{
	unsigned char x[GFAPI_HANDLE_LENGTH], y[GFAPI_HANDLE_LENGTH];
	return glfs_h_extract_handle(a, x, sizeof(x)) > 0 &&
	       glfs_h_extract_handle(b, y, sizeof(y)) > 0 && memcmp(x, y, sizeof(x)) == 0;
}

/* ---- hard links --------------------------------------------------------------------------------- */

static int open_links(struct copy_tree *c, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL;
	if (c->links)
		return 0;
	int rc = dir_make(c->p->fs, c->p->own, COPY_TOP, NULL, &top, err);
	return rc < 0 ? rc : dir_make(c->p->fs, top, c->links_name, NULL, &c->links, err);
}

static void id_text(glfs_object_t *o, char text[static 2 * GFAPI_HANDLE_LENGTH + 1])
{
	unsigned char id[GFAPI_HANDLE_LENGTH] = { 0 };
	glfs_h_extract_handle(o, id, sizeof(id));
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

/* 1: the entry is there now, as another name of a file that was copied before. */
static int link_known(struct copy_tree *c, const struct entry *e, const char *id, struct error *err)
{
	struct stat st, there_st;
	cleanup_object glfs_object_t *known = glfs_h_lookupat(c->p->fs, c->links, id, &st, 0);
	if (!known && errno == ENOENT)
		return 0;
	if (!known)
		return error_errno(err, errno, "cannot look for a hard link");
	if (!complete(&st, e->st))
		return throw_away(c, c->links, id, err);
	cleanup_object glfs_object_t *there = look_copy(c, e, &there_st);
	if (there && same_object(there, known))
		return 1;
	int rc = there ? throw_away(c, e->to_dir, e->name, err) : 0;
	if (rc < 0)
		return rc;
	if (glfs_h_link(c->p->fs, known, e->to_dir, e->name) == 0)
		return 1;
	/* another project's quota, or the most links that a file may have: a file of its own then */
	return errno == EXDEV || errno == EMLINK
		       ? 0
		       : error_errno(err, errno, "cannot make a hard link");
}

static int link_remember(struct copy_tree *c, glfs_object_t *copy, const char *id,
			 struct error *err)
{
	if (glfs_h_link(c->p->fs, copy, c->links, id) < 0 && errno != EEXIST && errno != EXDEV &&
	    errno != EMLINK)
		return error_errno(err, errno, "cannot remember a hard link");
	return 0;
}

int copy_tree_forget(struct pool_fs *p, const char *links_name, struct error *err)
{
	cleanup_object glfs_object_t *top = NULL;
	struct error why = ERROR_INIT;
	int rc = dir_open(p->fs, p->own, COPY_TOP, &top, &why);
	if (rc < 0)
		return rc == -ENOENT ? 0 : error_set(err, -rc, "%s", why.message);
	rc = pool_throw(p, top, links_name, NULL, err);
	return rc < 0 ? rc : 0;
}

/* ---- entries ------------------------------------------------------------------------------------ */

/* Both are open. Content and attributes are on disk before the time is set, which says that it is complete. */
static int fill_file(struct copy_tree *c, const struct entry *e, glfs_fd_t *from, glfs_fd_t *to,
		     glfs_object_t *copy, struct error *err)
{
	int rc = copy_data(&c->data, from, to, 0, e->st->st_size, err);
	if (rc == 0)
		rc = attr_copy_extended(c->from, e->object, c->p->fs, copy, c->data.buffer, err);
	if (rc == 0 && glfs_fsync(to, NULL, NULL) < 0)
		rc = error_errno(err, errno, "cannot write a copy");
	return rc;
}

static int copy_file(struct copy_tree *c, const struct entry *e, glfs_object_t **ret,
		     struct error *err)
{
	struct stat st;
	glfs_fd_t *to = NULL, *from = glfs_h_open(c->from, e->object, O_RDONLY | O_NOFOLLOW);
	if (!from)
		return error_errno(err, errno, "cannot open a file to copy it");
	glfs_object_t *copy = glfs_h_creat_open(c->p->fs, e->to_dir, e->name,
						O_CREAT | O_EXCL | O_WRONLY, 0600, &st, &to);
	int rc = copy ? fill_file(c, e, from, to, copy, err)
		      : error_errno(err, errno, "cannot make a file of a copy");
	glfs_close(from);
	if (to && glfs_close(to) < 0 && rc == 0)
		rc = error_errno(err, errno, "cannot write a copy");
	if (rc == 0)
		*ret = TAKE_PTR(copy);
	if (copy)
		glfs_h_close(copy);
	return rc;
}

static int copy_symlink(struct copy_tree *c, const struct entry *e, glfs_object_t **ret,
			struct error *err)
{
	char target[PATH_MAX];
	struct stat st;
	int len = glfs_h_readlink(c->from, e->object, target, sizeof(target) - 1);
	if (len < 0)
		return error_errno(err, errno, "cannot read a symbolic link");
	target[len] = 0;
	*ret = glfs_h_symlink(c->p->fs, e->to_dir, e->name, target, &st);
	return *ret ? 0 : error_errno(err, errno, "cannot make a symbolic link");
}

static int copy_node(struct copy_tree *c, const struct entry *e, glfs_object_t **ret,
		     struct error *err)
{
	struct stat st;
	*ret = glfs_h_mknod(c->p->fs, e->to_dir, e->name, (e->st->st_mode & S_IFMT) | 0600,
			    e->st->st_rdev, &st);
	return *ret ? 0 : error_errno(err, errno, "cannot make a device or FIFO");
}

static int make_copy(struct copy_tree *c, const struct entry *e, glfs_object_t **ret,
		     struct error *err)
{
	if (S_ISREG(e->st->st_mode))
		return copy_file(c, e, ret, err);
	return S_ISLNK(e->st->st_mode) ? copy_symlink(c, e, ret, err) : copy_node(c, e, ret, err);
}

/* What was kept takes room as well: what its blocks say, but no more than it is long. */
static int count_kept(struct copy_tree *c, const struct stat *st, struct error *err)
{
	int64_t blocks = (int64_t)st->st_blocks * 512;
	if (S_ISREG(st->st_mode))
		c->left -= blocks < st->st_size ? blocks : st->st_size;
	return c->left < 0 ? error_set(err, EBUSY, "a copy is larger than it may be") : 0;
}

/* Anything but a directory. */
static int copy_leaf(struct copy_tree *c, const struct entry *e, struct error *err)
{
	char id[2 * GFAPI_HANDLE_LENGTH + 1];
	struct stat st;
	bool linked = e->st->st_nlink > 1;
	id_text(e->object, id);
	if (linked) {
		int rc = open_links(c, err);
		if (rc == 0)
			rc = link_known(c, e, id, err);
		if (rc != 0)
			return rc < 0 ? rc : 0;
	}
	cleanup_object glfs_object_t *copy = look_copy(c, e, &st);
	if (!copy || !complete(&st, e->st)) {
		int rc = copy ? throw_away(c, e->to_dir, e->name, err) : 0;
		if (copy)
			glfs_h_close(TAKE_PTR(copy));
		if (rc == 0)
			rc = make_copy(c, e, &copy, err);
		if (rc == 0)
			rc = attr_set(c->p->fs, copy, e->st, err);
		if (rc < 0)
			return rc;
	} else {
		int rc = count_kept(c, &st, err);
		if (rc < 0)
			return rc;
	}
	return linked ? link_remember(c, copy, id, err) : 0;
}

/* ---- directories -------------------------------------------------------------------------------- */

static int push(struct copy_tree *c, glfs_object_t *from, glfs_object_t *to, bool resumed,
		struct error *err)
{
	if (c->count >= PENDING_MAX)
		return error_set(err, E2BIG, "the tree has more than %d directories side by side",
				 PENDING_MAX);
	if (c->count == c->room) {
		c->room = c->room ? c->room * 2 : 64;
		c->pending = xrealloc(c->pending, c->room * sizeof(*c->pending));
	}
	struct copy_pending *next = &c->pending[c->count];
	*next = (struct copy_pending){ .resumed = resumed };
	if (glfs_h_extract_handle(from, next->from, sizeof(next->from)) < 0 ||
	    glfs_h_extract_handle(to, next->to, sizeof(next->to)) < 0)
		return error_errno(err, errno, "cannot remember a directory to copy");
	c->count++;
	return 0;
}

/* The copy is nobody's but root's until its owner and mode are set. */
static int begin_dir(struct copy_tree *c, const struct entry *e, struct error *err)
{
	struct stat st;
	cleanup_object glfs_object_t *to = look_copy(c, e, &st);
	bool resumed = to && S_ISDIR(st.st_mode);
	if (to && !resumed) {
		int rc = throw_away(c, e->to_dir, e->name, err);
		if (rc < 0)
			return rc;
		glfs_h_close(TAKE_PTR(to));
	}
	if (!to)
		to = glfs_h_mkdir(c->p->fs, e->to_dir, e->name, 0700, &st);
	if (!to)
		return error_errno(err, errno, "cannot make a directory of a copy");
	return push(c, e->object, to, resumed, err);
}

struct reading {
	struct copy_tree *c;
	glfs_object_t *other;
	bool resumed;
};

/* An entry that is gone when its turn comes is one that was deleted before the copy. */
static int copy_entry(glfs_object_t *dir, const struct dir_entry *d, void *userdata,
		      struct error *err)
{
	struct reading *r = userdata;
	struct stat st;
	if (atomic_load(r->c->data.stop))
		return error_set(err, ECANCELED, "the copy was stopped");
	cleanup_object glfs_object_t *o = glfs_h_lookupat(r->c->from, dir, d->name, &st, 0);
	if (!o)
		return vanished(errno) ? 0 : error_errno(err, errno, "cannot look up what to copy");
	struct entry e = { o, &st, r->other, d->name, !r->resumed };
	int rc = S_ISDIR(st.st_mode) ? begin_dir(r->c, &e, err) : copy_leaf(r->c, &e, err);
	if (rc == 0 || !vanished(-rc))
		return rc;
	/* of the source or of the copy? only the former may go */
	cleanup_object glfs_object_t *again = glfs_h_lookupat(r->c->from, dir, d->name, &st, 0);
	return !again && vanished(errno) ? 0 : rc;
}

/* What the copy has and the source not. */
static int prune_entry(glfs_object_t *dir, const struct dir_entry *d, void *userdata,
		       struct error *err)
{
	struct reading *r = userdata;
	struct stat st;
	cleanup_object glfs_object_t *o = glfs_h_lookupat(r->c->from, r->other, d->name, &st, 0);
	if (o)
		return 0;
	return vanished(errno) ? throw_away(r->c, dir, d->name, err)
			       : error_errno(err, errno, "cannot look up what was copied");
}

/* Its own attributes come last: a default ACL would change what is made in it, and that its times. */
static int copy_dir(struct copy_tree *c, glfs_object_t *from, glfs_object_t *to, bool resumed,
		    struct error *err)
{
	struct stat st;
	if (glfs_h_stat(c->from, from, &st) < 0)
		return vanished(errno)
			       ? 0
			       : error_errno(err, errno, "cannot look at a directory to copy");
	if (resumed)
		attr_drop_default_acl(c->p->fs, to);
	int rc = dir_each(c->from, from, copy_entry, &(struct reading){ c, to, resumed }, err);
	if (rc == 0 && resumed)
		rc = dir_each(c->p->fs, to, prune_entry, &(struct reading){ c, from, resumed },
			      err);
	if (rc == 0)
		rc = attr_copy_extended(c->from, from, c->p->fs, to, c->data.buffer, err);
	return rc < 0 ? rc : attr_set(c->p->fs, to, &st, err);
}

static int copy_pending(struct copy_tree *c, const struct copy_pending *next, struct error *err)
{
	struct stat st;
	unsigned char id[GFAPI_HANDLE_LENGTH];
	memcpy(id, next->from, sizeof(id));
	cleanup_object glfs_object_t *from =
		glfs_h_create_from_handle(c->from, id, sizeof(id), &st);
	if (!from)
		return vanished(errno) ? 0
				       : error_errno(err, errno, "cannot open a directory to copy");
	memcpy(id, next->to, sizeof(id));
	cleanup_object glfs_object_t *to = glfs_h_create_from_handle(c->p->fs, id, sizeof(id), &st);
	if (!to)
		return error_errno(err, errno, "cannot open a directory of a copy");
	int rc = copy_dir(c, from, to, next->resumed, err);
	/* as with an entry: of the source or of the copy? */
	bool gone =
		rc < 0 && vanished(-rc) && glfs_h_stat(c->from, from, &st) < 0 && vanished(errno);
	return gone ? 0 : rc;
}

/* What only the links hold would not be counted when the copy goes on, and so grow each time. */
static int too_large(struct copy_tree *c, struct error *err)
{
	copy_tree_forget(c->p, c->links_name, NULL);
	return error_set(err, EBUSY,
			 "the copy came to more than %lld bytes, far more than its size: files "
			 "were moved within the source while it was copied, or it holds more than "
			 "its size; stop what moves them, or grow it",
			 (long long)c->limit);
}

int copy_tree(struct copy_tree *c, glfs_object_t *from, glfs_object_t *to, bool resumed,
	      struct error *err)
{
	int rc = push(c, from, to, resumed, err);
	c->left = c->limit;
	c->data.left = &c->left;
	while (rc == 0 && c->count) {
		struct copy_pending next = c->pending[--c->count];
		rc = copy_pending(c, &next, err);
	}
	if (c->left < 0)
		rc = too_large(c, err);
	free(c->pending);
	c->pending = NULL;
	c->count = c->room = 0;
	if (c->links)
		glfs_h_close(TAKE_PTR(c->links));
	return rc;
}
