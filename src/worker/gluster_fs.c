/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_fs.h"

#include "base/mem.h"
#include "worker/gluster_copy.h"
#include "worker/gluster_pool.h"
#include "worker/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>

/* ---- create, resize --------------------------------------------------------------------------- */

/*
 * Never shorter: between our look and this, another's worker may have made it longer, and somebody may have
 * written there. So its last byte is allocated, which leaves it alone where it is there; only bricks
 * that cannot do that are told the length.
 */
static int make_longer(glfs_fd_t *fd, int64_t size)
{
	if (size <= 0 || glfs_fallocate(fd, 0, size - 1, 1) == 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return -errno;
	return glfs_ftruncate(fd, size, NULL, NULL) < 0 ? -errno : 0;
}

/* The file, made where missing, is at least that long and on disk. */
static int grow_file(struct pool_fs *p, glfs_object_t *parent, const char *name, int64_t size,
		     bool make, struct error *err)
{
	struct stat st = { 0 };
	glfs_fd_t *fd = NULL;
	cleanup_object glfs_object_t *o = glfs_h_lookupat(p->fs, parent, name, &st, 0);
	if (!o && errno == ENOENT && make)
		o = glfs_h_creat_open(p->fs, parent, name, O_CREAT | O_EXCL | O_RDWR, 0600, &st,
				      &fd);
	if (!o)
		return error_errno(err, errno, "cannot open file %s in the pool", name);
	if (!S_ISREG(st.st_mode))
		return error_set(err, EINVAL,
				 "%s in the pool is not a plain file; nothing was touched, look "
				 "who put it there",
				 name);
	if (!fd && st.st_size >= size)
		return 0;
	if (!fd)
		fd = glfs_h_open(p->fs, o, O_RDWR | O_NOFOLLOW);
	if (!fd)
		return error_errno(err, errno, "cannot open file %s in the pool", name);
	int rc = make_longer(fd, size);
	if (rc < 0) {
		glfs_close(fd);
		return error_errno(err, -rc, "cannot make file %s in the pool %lld bytes long",
				   name, (long long)size);
	}
	return file_keep(fd, err);
}

/* *ret_made: a directory was made, which is not on disk yet. */
static int make_data(struct pool_fs *p, enum volume_kind kind, const char *name, int64_t size,
		     bool *ret_made, struct error *err)
{
	cleanup_object glfs_object_t *parent = NULL, *dir = NULL;
	*ret_made = false;
	if (kind == VOLUME_WHOLE) /* a Gluster volume beside this pool: agents make it */
		return 0;
	int rc = pool_leaf_make(p, PART_DATA, kind, name, ret_made, &parent, err);
	if (rc < 0 || volume_is_tree(kind))
		return rc < 0 ? rc : dir_make(p->fs, parent, name, ret_made, &dir, err);
	*ret_made = false;
	return grow_file(p, parent, name, size, true, err);
}

struct owned {
	struct pool_fs *p;
	enum volume_kind kind;
	const char *name, *owner;
	bool made; /* it has an info already; if not any more, it was removed */
};

static int still_its(const json_t *there, void *userdata, struct error *err)
{
	const struct owned *o = userdata;
	if (!there && o->made)
		return error_set(err, ENOENT, "volume %s was removed", o->name);
	return info_is_of(there, o->owner) ? 0 : info_of_another(o->name, err);
}

static json_t *info_of(const struct pool_fs *p, enum volume_kind kind, const char *name,
		       const char *owner, int64_t size)
{
	json_t *info = info_new(p, kind, name, size);
	if (owner)
		json_object_set_new(info, "owner", json_string(owner));
	return info;
}

static int put_owned(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		     bool made, const json_t *info, struct error *err)
{
	struct owned o = { p, kind, name, owner, made };
	return info_replace(p, kind, name, info, owner ? still_its : NULL, &o, err);
}

/* The info has at least that size; *ret_size is what it has. A torn one is written anew. */
static int grow_info(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		     int64_t size, int64_t *ret_size, struct error *err)
{
	cleanup_json json_t *info = NULL;
	int rc = info_get(p, kind, name, &info, err);
	if (rc < 0)
		return rc;
	if (!info_is_of(info, owner))
		return info_of_another(name, err);
	if (jget(info, "size") && !info_ready(p, kind, name, info))
		return error_set(err, EEXIST, "volume %s is in the making, as a copy of %s", name,
				 jstr(info, "source") ? jstr(info, "source") : "another");
	*ret_size = jint(info, "size");
	if (jget(info, "size") && *ret_size >= size)
		return 0;
	*ret_size = size;
	if (jget(info, "size")) {
		json_object_set_new(info, "size", json_integer(size));
	} else {
		json_decref(info);
		info = info_of(p, kind, name, owner, size);
	}
	return put_owned(p, kind, name, owner, true, info, err);
}

/* Its info is there already. What is made now is put on disk by writing that once more. */
static int create_again(struct pool_fs *p, enum volume_kind kind, const char *name,
			const char *owner, int64_t size, bool there, struct error *err)
{
	cleanup_json json_t *info = NULL;
	bool made = false;
	int rc = grow_info(p, kind, name, owner, size, &size, err);
	if (rc == 0 && !there)
		rc = make_data(p, kind, name, size, &made, err);
	if (rc < 0 || !made)
		return rc;
	rc = info_get(p, kind, name, &info, err);
	return rc < 0 ? rc : put_owned(p, kind, name, owner, true, info, err);
}

/*
 * Of a name that comes again: its info is never there without saying whose it is, and what a worker whose time is over
 * was about to write of the one before is kept from it.
 */
static int create_owned(struct pool_fs *p, enum volume_kind kind, const char *name,
			const char *owner, int64_t size, struct error *err)
{
	cleanup_json json_t *there = NULL, *info = info_of(p, kind, name, owner, size);
	struct error why = ERROR_INIT;
	int rc = info_get(p, kind, name, &there, &why);
	if (rc == -ENOENT) {
		rc = put_owned(p, kind, name, owner, false, info, err);
		if (rc == 0)
			rc = info_fence(p, kind, name, err);
	} else if (rc < 0) {
		error_set(err, -rc, "%s", why.message);
	}
	return rc < 0 ? rc : create_again(p, kind, name, owner, size, false, err);
}

/*
 * there: its data is, and on disk; only the info is written.
 * A new info file is written under its own name: until the caller has recorded the volume, a torn
 * file is completed by the retry, and that spares a rename. One that is there is replaced. It
 * comes first and is written last, synced by the write itself: then the directory is on disk as well.
 */
static int create_once(struct pool_fs *p, enum volume_kind kind, const char *name, int64_t size,
		       bool there, struct error *err)
{
	cleanup_json json_t *info = info_new(p, kind, name, size);
	cleanup_free char *file = xasprintf("%s.json", name), *text = json_text(info);
	cleanup_object glfs_object_t *dir = NULL;
	glfs_fd_t *fd = NULL;
	struct error why = ERROR_INIT;
	bool fresh;
	int rc = pool_leaf_make(p, PART_INFO, kind, name, &fresh, &dir, err);
	if (rc < 0)
		return rc;
	rc = file_create(p->fs, dir, file, O_SYNC, fresh, &fd, &why);
	if (rc == -EEXIST)
		return create_again(p, kind, name, NULL, size, there, err);
	if (rc < 0)
		return error_set(err, -rc, "%s", why.message);
	if (!there)
		rc = make_data(p, kind, name, size, &fresh, err);
	if (rc == 0)
		return file_finish(fd, text, err);
	glfs_close(fd);
	return rc;
}

int pool_fs_create(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		   int64_t size, struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, kind, name);
	if (owner)
		return create_owned(p, kind, name, owner, size, err);
	int rc = create_once(p, kind, name, size, false, err);
	if (rc == -ESTALE || rc == -ENOENT) {
		pool_forget(p);
		rc = create_once(p, kind, name, size, false, err);
	}
	return rc;
}

/* Also where it is there already: who made it may have died before it was on disk. */
int pool_fs_make(struct pool_fs *p, const char *name, struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, VOLUME_DIRECTORY, name);
	bool made;
	int rc = make_data(p, VOLUME_DIRECTORY, name, 0, &made, err);
	if (rc == -ESTALE || rc == -ENOENT) {
		pool_forget(p);
		rc = make_data(p, VOLUME_DIRECTORY, name, 0, &made, err);
	}
	return rc < 0 ? rc : pool_sync(p, err);
}

static int complete_once(struct pool_fs *p, const char *name, int64_t size, struct error *err)
{
	cleanup_object glfs_object_t *parent = NULL, *dir = NULL;
	int rc = pool_leaf(p, PART_DATA, VOLUME_DIRECTORY, name, false, &parent, err);
	if (rc == 0)
		rc = dir_open(p->fs, parent, name, &dir, err);
	return rc < 0 ? rc : create_once(p, VOLUME_DIRECTORY, name, size, true, err);
}

int pool_fs_complete(struct pool_fs *p, const char *name, int64_t size, struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, VOLUME_DIRECTORY, name);
	int rc = complete_once(p, name, size, err);
	if (rc == -ESTALE || rc == -ENOENT) {
		pool_forget(p);
		rc = complete_once(p, name, size, err);
	}
	return rc;
}

int pool_fs_resize(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		   int64_t size, struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, kind, name);
	cleanup_object glfs_object_t *parent = NULL;
	int rc = grow_info(p, kind, name, owner, size, &size, err);
	if (rc == -ENOENT && kind == VOLUME_DIRECTORY && !owner) /* it may have been made by half */
		rc = complete_once(p, name, size, err);
	if (rc < 0 || volume_is_tree(kind))
		return rc;
	/* also where the info was large enough: whoever wrote that may have died before this */
	rc = pool_leaf(p, PART_DATA, kind, name, false, &parent, err);
	return rc < 0 ? rc : grow_file(p, parent, name, size, false, err);
}

/* ---- remove, archive -------------------------------------------------------------------------- */

/* Renames an entry; where it or its directory is missing there is nothing to do (1). */
static int move_entry(struct pool_fs *p, enum pool_part part, enum volume_kind kind,
		      const char *name, const char *from, const char *to, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL;
	int rc = pool_leaf(p, part, kind, name, false, &dir, err);
	if (rc == -ENOENT)
		return 1;
	if (rc < 0)
		return rc;
	if (glfs_h_rename(p->fs, dir, from, dir, to) == 0)
		return 0;
	return errno == ENOENT ? 1 : error_errno(err, errno, "cannot move %s in the pool", from);
}

int pool_fs_discard(struct pool_fs *p, enum volume_kind kind, const char *name, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL;
	struct error why = ERROR_INIT;
	int rc = pool_leaf(p, PART_DATA, kind, name, false, &dir, &why);
	if (rc == 0)
		rc = pool_throw(p, dir, name, name, &why);
	return rc < 0 && rc != -ENOENT ? error_set(err, -rc, "%s", why.message) : 0;
}

static int remove_once(struct pool_fs *p, enum volume_kind kind, const char *name,
		       struct error *err)
{
	cleanup_json json_t *info = NULL;
	int rc = pool_fs_discard(p, kind, name, err);
	if (rc == 0 && info_get(p, kind, name, &info, NULL) == 0)
		rc = copy_forget(p, kind, name, info, err);
	return rc < 0 ? rc : info_remove(p, kind, name, err);
}

/* 1: what is there is that owner's; 0: another's, or nothing, for the info comes first and goes last. */
static int is_its(void *userdata, struct error *err)
{
	const struct owned *o = userdata;
	cleanup_json json_t *info = NULL;
	struct error why = ERROR_INIT;
	int rc = info_get(o->p, o->kind, o->name, &info, &why);
	if (rc < 0)
		return rc == -ENOENT ? 0 : error_set(err, -rc, "%s", why.message);
	return info_is_of(info, o->owner);
}

/* One entry of it, where it is that owner's. */
static int throw_owned(struct owned *o, enum pool_part part, const char *entry, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL;
	struct error why = ERROR_INIT;
	int rc = pool_leaf(o->p, part, o->kind, o->name, false, &dir, &why);
	if (rc == 0)
		rc = pool_throw_checked(o->p, dir, entry, o->name, is_its, o, &why);
	return rc < 0 && rc != -ENOENT ? error_set(err, -rc, "%s", why.message) : 0;
}

/* Each step looks whose it is, and the last takes the info, by which that is known. */
static int remove_owned(struct pool_fs *p, enum volume_kind kind, const char *name,
			const char *owner, struct error *err)
{
	struct owned o = { p, kind, name, owner, true };
	cleanup_free char *file = xasprintf("%s.json", name);
	cleanup_json json_t *info = NULL;
	int rc = throw_owned(&o, PART_DATA, name, err);
	if (rc == 0 && info_get(p, kind, name, &info, NULL) == 0 && info_is_of(info, owner))
		rc = copy_forget(p, kind, name, info, err);
	return rc < 0 ? rc : throw_owned(&o, PART_INFO, file, err);
}

int pool_fs_remove(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		   struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, kind, name);
	int rc = owner ? remove_owned(p, kind, name, owner, err) : remove_once(p, kind, name, err);
	if (rc == -ESTALE) {
		pool_forget(p);
		rc = owner ? remove_owned(p, kind, name, owner, err) :
			     remove_once(p, kind, name, err);
	}
	return rc;
}

/* 1: something of that name is beside the volume; 0: not. */
static int is_there(struct pool_fs *p, enum pool_part part, enum volume_kind kind, const char *name,
		    const char *entry, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL, *o = NULL;
	struct stat st;
	int rc = pool_leaf(p, part, kind, name, false, &dir, err);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	o = glfs_h_lookupat(p->fs, dir, entry, &st, 0);
	if (o)
		return 1;
	return errno == ENOENT ? 0
			       : error_errno(err, errno, "cannot look for %s in the pool", entry);
}

/*
 * The first of archived-NAME, archived-NAME-2, … that nothing is kept under: an orchestrator's name comes again,
 * and a rename would replace what was kept of the volume before. Where the archiving was
 * interrupted, the data is under its new name already; then it is the first without an info, which goes to it.
 */
static int name_of_archive(struct pool_fs *p, enum volume_kind kind, const char *name, char **ret,
			   struct error *err)
{
	int data = is_there(p, PART_DATA, kind, name, name, err);
	for (int i = 1; data >= 0; i++) {
		cleanup_free char *to = i == 1 ? xasprintf("archived-%s", name)
					       : xasprintf("archived-%s-%d", name, i);
		cleanup_free char *info = xasprintf("%s.json", to);
		int taken = is_there(p, PART_INFO, kind, name, info, err);
		if (taken == 0 && data)
			taken = is_there(p, PART_DATA, kind, name, to, err);
		if (taken == 0)
			*ret = TAKE_PTR(to);
		if (taken <= 0)
			return taken;
	}
	return data;
}

int pool_fs_archive(struct pool_fs *p, enum volume_kind kind, const char *name, const char *owner,
		    struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, kind, name);
	cleanup_free char *to = NULL, *info = xasprintf("%s.json", name);
	struct owned o = { p, kind, name, owner, true };
	int rc = owner ? is_its(&o, err) : 1;
	if (rc <= 0)
		return rc;
	rc = name_of_archive(p, kind, name, &to, err);
	if (rc < 0)
		return rc;
	cleanup_free char *info_to = xasprintf("%s.json", to);
	rc = move_entry(p, PART_DATA, kind, name, name, to, err);
	if (rc >= 0)
		rc = move_entry(p, PART_INFO, kind, name, info, info_to, err);
	return rc < 0 ? rc : 0;
}

/* ---- find, stat, list ------------------------------------------------------------------------- */

/* What is said of a volume or a snapshot: its info file, without what is only for us. */
static json_t *described(enum volume_kind kind, const char *name, const json_t *info, bool ready)
{
	static const char *const more[] = { "source", "sourceKind", "created", "owner" };
	char letter[2] = { (char)kind, 0 };
	/* a snapshot has its source's kind; its own is known */
	const char *of = kind == VOLUME_SNAPSHOT ? jstr(info, "sourceKind") : letter;
	json_t *o = json_pack("{s:s, s:s*, s:I, s:b}", "name", name, "kind", of, "size",
			      (json_int_t)jint(info, "size"), "ready", ready);
	for (size_t i = 0; i < ARRAY_SIZE(more); i++) {
		if (jget(info, more[i]) && !(kind == VOLUME_SNAPSHOT && i == 1))
			json_object_set(o, more[i], jget(info, more[i]));
	}
	return o;
}

int pool_fs_find(struct pool_fs *p, enum volume_kind kind, const char *name, json_t **ret,
		 struct error *err)
{
	cleanup_json json_t *info = NULL;
	cleanup_object glfs_object_t *parent = NULL, *o = NULL;
	struct stat st;
	int rc = info_get(p, kind, name, &info, err);
	if (rc < 0)
		return rc == -ENOENT
			       ? error_set(err, ENOENT, "there is no %s %s in the pool",
					   kind == VOLUME_SNAPSHOT ? "snapshot" : "volume", name)
			       : rc;
	if (kind == VOLUME_WHOLE) {
		*ret = described(kind, name, info, info_ready(p, kind, name, info));
		return 0;
	}
	/* without its data it is one whose making was interrupted */
	rc = pool_leaf(p, PART_DATA, kind, name, false, &parent, err);
	if (rc == 0 && !(o = glfs_h_lookupat(p->fs, parent, name, &st, 0)))
		rc = error_errno(err, errno, "cannot look for %s in the pool", name);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	*ret = described(kind, name, info, o && info_ready(p, kind, name, info));
	return 0;
}

int pool_fs_stat(struct pool_fs *p, json_t **ret, struct error *err)
{
	struct statvfs st;
	if (glfs_h_statfs(p->fs, p->root, &st) < 0)
		return error_errno(err, errno, "cannot get the size of the pool");
	json_int_t unit = (json_int_t)(st.f_frsize ? st.f_frsize : st.f_bsize);
	*ret = json_pack("{s:I, s:I, s:I}", "capacityBytes", (json_int_t)st.f_blocks * unit,
			 "usedBytes", (json_int_t)(st.f_blocks - st.f_bfree) * unit, "freeBytes",
			 (json_int_t)st.f_bavail * unit);
	return 0;
}

struct listing {
	struct pool_fs *p;
	json_t *found;
	enum volume_kind kind;
	int depth;
};

static int list_entry(glfs_object_t *dir, const struct dir_entry *e, void *userdata,
		      struct error *err)
{
	struct listing *l = userdata;
	size_t len = strlen(e->name);

	if (l->depth < 2 && e->is_dir) {
		cleanup_object glfs_object_t *sub = NULL;
		int rc = dir_open(l->p->fs, dir, e->name, &sub, err);
		if (rc < 0)
			return rc == -ENOENT ? 0 : rc;
		l->depth++;
		rc = dir_each(l->p->fs, sub, list_entry, l, err);
		l->depth--;
		return rc;
	}
	if (l->depth != 2 || !e->is_file || len < 6 || !str_has_suffix(e->name, ".json"))
		return 0;

	/* a file that a crash has torn is listed as well, with size 0: something is there */
	struct buf text = { 0 };
	cleanup_json json_t *info = NULL;
	cleanup_free char *name = xstrndup(e->name, len - 5);
	if (file_get(l->p->fs, dir, e->name, &text, err) == 0 && text.data)
		json_parse(text.data, text.len, &info, NULL);
	json_array_append_new(
		l->found, described(l->kind, name, info, info_ready(l->p, l->kind, name, info)));
	buf_done(&text);
	return 0;
}

int pool_fs_list(struct pool_fs *p, bool snapshots, json_t **ret, struct error *err)
{
	static const enum volume_kind volumes[] = { VOLUME_DIRECTORY, VOLUME_FILE, VOLUME_BLOCK,
						    VOLUME_WHOLE };
	cleanup_json json_t *found = json_array();
	for (size_t i = 0; i < (snapshots ? 1 : ARRAY_SIZE(volumes)); i++) {
		struct listing l = { .p = p,
				     .found = found,
				     .kind = snapshots ? VOLUME_SNAPSHOT : volumes[i] };
		glfs_object_t *root;
		int rc = pool_tree(p, PART_INFO, l.kind, false, &root, err);
		if (rc == 0)
			rc = dir_each(p->fs, root, list_entry, &l, err);
		if (rc < 0 && rc != -ENOENT)
			return rc;
	}
	if (!snapshots) {
		int rc = pool_fs_ephemeral(p, found, err);
		if (rc < 0)
			return rc;
	}
	*ret = TAKE_PTR(found);
	return 0;
}
