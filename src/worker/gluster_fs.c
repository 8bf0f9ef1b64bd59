/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_fs.h"

#include "base/mem.h"
#include "base/rand.h"
#include "worker/gluster_dir.h"
#include "worker/path.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/statvfs.h>

#define TRASH ".quartermaster-trash"
#define PREFIX "subvol"
#define GLUSTER_PORT 24007
#define LOG_LEVEL_OF_GLUSTER 5 /* warnings */

/* Trees of volumes: the directories, and their info files. The first level's handles are kept:
 * all volumes share those 256 directories. */
struct tree {
	glfs_object_t *root;
	glfs_object_t *first[256];
};

struct pool_fs {
	glfs_t *fs;
	glfs_object_t *root, *trash, *info_top;
	struct tree volumes, info;
	pthread_mutex_t lock; /* of the handles above, all of which stay open */
};

/* ---- directories ------------------------------------------------------------------------------ */

/* The directory, from *slot once it is known; of two threads that were as fast one closes its own. */
static int keep_dir(struct pool_fs *p, glfs_object_t *parent, const char *name, bool make,
		    glfs_object_t **slot, glfs_object_t **ret, struct error *err)
{
	pthread_mutex_lock(&p->lock);
	glfs_object_t *o = *slot;
	pthread_mutex_unlock(&p->lock);
	if (!o) {
		int rc = make ? dir_make(p->fs, parent, name, &o, err)
			      : dir_open(p->fs, parent, name, &o, err);
		if (rc < 0)
			return rc;
		pthread_mutex_lock(&p->lock);
		if (*slot) {
			glfs_h_close(o);
			o = *slot;
		}
		*slot = o;
		pthread_mutex_unlock(&p->lock);
	}
	*ret = o;
	return 0;
}

static int tree_root(struct pool_fs *p, struct tree *t, bool make, glfs_object_t **ret,
		     struct error *err)
{
	glfs_object_t *above = p->root;
	if (t == &p->info) {
		int rc = keep_dir(p, p->root, "info", make, &p->info_top, &above, err);
		if (rc < 0)
			return rc;
	}
	return keep_dir(p, above, PREFIX, make, &t->root, ret, err);
}

/* The directory in which the volume's entry is, in one of the trees. */
static int leaf_dir(struct pool_fs *p, struct tree *t, const char *name, bool make,
		    glfs_object_t **ret, struct error *err)
{
	char first[3], second[3];
	glfs_object_t *root, *dir;
	volume_hash(name, first, second);

	int rc = tree_root(p, t, make, &root, err);
	if (rc == 0)
		rc = keep_dir(p, root, first, make, &t->first[strtoul(first, NULL, 16)], &dir, err);
	if (rc < 0)
		return rc;
	return make ? dir_make(p->fs, dir, second, ret, err)
		    : dir_open(p->fs, dir, second, ret, err);
}

/*
 * A kept handle may outlive its directory (someone removed it through a mount): forget them all.
 * They are not closed, since another thread may be using one; this happens next to never.
 */
static void forget_handles(struct pool_fs *p)
{
	pthread_mutex_lock(&p->lock);
	p->trash = p->info_top = NULL;
	p->volumes = p->info = (struct tree){ 0 };
	pthread_mutex_unlock(&p->lock);
}

/* ---- create ----------------------------------------------------------------------------------- */

static int replace_info(struct pool_fs *p, glfs_object_t *dir, const char *file, const char *text,
			struct error *err)
{
	cleanup_free char *temp = xasprintf("%s.tmp", file);
	glfs_fd_t *fd;
	if (glfs_h_unlink(p->fs, dir, temp) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot remove file %s in the pool", temp);
	int rc = file_make(p->fs, dir, temp, text, &fd, err);
	if (rc == 0)
		rc = file_keep(fd, err);
	if (rc < 0)
		return rc;
	if (glfs_h_rename(p->fs, dir, temp, dir, file) < 0)
		return error_errno(err, errno, "cannot rename file %s in the pool", temp);
	return 0;
}

static char *info_text(const char *name, int64_t size)
{
	char first[3], second[3];
	volume_hash(name, first, second);
	return xasprintf("{\"size\": %lld, \"path_prefix\": \"" PREFIX "/%s/%s\"}", (long long)size,
			 first, second);
}

static int make_volume_dir(struct pool_fs *p, const char *name, struct error *err)
{
	cleanup_object glfs_object_t *parent = NULL, *dir = NULL;
	int rc = leaf_dir(p, &p->volumes, name, true, &parent, err);
	return rc < 0 ? rc : dir_make(p->fs, parent, name, &dir, err);
}

/*
 * A new info file is written under its own name: until the caller has recorded the volume, a torn
 * file is completed by the retry, and that spares a rename. One that is there is replaced. It
 * comes first and is synced last: then the directory is on disk as well.
 */
static int create_once(struct pool_fs *p, const char *name, int64_t size, struct error *err)
{
	cleanup_free char *file = xasprintf("%s.json", name), *text = info_text(name, size);
	cleanup_object glfs_object_t *dir = NULL;
	glfs_fd_t *info = NULL;
	struct error made = ERROR_INIT;
	int rc = leaf_dir(p, &p->info, name, true, &dir, err);
	if (rc < 0)
		return rc;
	rc = file_make(p->fs, dir, file, text, &info, &made);
	if (rc < 0 && rc != -EEXIST)
		return error_set(err, -rc, "%s", made.message);

	rc = make_volume_dir(p, name, err);
	if (rc == 0)
		return info ? file_keep(info, err) : replace_info(p, dir, file, text, err);
	if (info)
		glfs_close(info);
	return rc;
}

int pool_fs_create(struct pool_fs *p, const char *name, int64_t size, struct error *err)
{
	int rc = create_once(p, name, size, err);
	if (rc == -ESTALE || rc == -ENOENT) {
		forget_handles(p);
		rc = create_once(p, name, size, err);
	}
	return rc;
}

/* ---- remove, archive -------------------------------------------------------------------------- */

/* Renames an entry; where it or its directory is missing there is nothing to do (1). */
static int move_entry(struct pool_fs *p, struct tree *t, const char *name, const char *from,
		      glfs_object_t *to_dir, const char *to, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL;
	int rc = leaf_dir(p, t, name, false, &dir, err);
	if (rc == -ENOENT)
		return 1;
	if (rc < 0)
		return rc;
	if (glfs_h_rename(p->fs, dir, from, to_dir ? to_dir : dir, to) == 0)
		return 0;
	return errno == ENOENT ? 1 : error_errno(err, errno, "cannot move %s in the pool", from);
}

static int unlink_info(struct pool_fs *p, const char *name, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL;
	cleanup_free char *file = xasprintf("%s.json", name);
	int rc = leaf_dir(p, &p->info, name, false, &dir, err);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	if (glfs_h_unlink(p->fs, dir, file) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot remove file %s in the pool", file);
	return 0;
}

static int remove_once(struct pool_fs *p, const char *name, struct error *err)
{
	char unique[UUID_TEXT_MAX];
	cleanup_free char *to = xasprintf("%s.%s", name, uuid_text(unique));
	glfs_object_t *trash;
	int rc = keep_dir(p, p->root, TRASH, true, &p->trash, &trash, err);
	if (rc == 0)
		rc = move_entry(p, &p->volumes, name, name, trash, to, err);
	return rc < 0 ? rc : unlink_info(p, name, err);
}

int pool_fs_remove(struct pool_fs *p, const char *name, struct error *err)
{
	int rc = remove_once(p, name, err);
	if (rc == -ESTALE) {
		forget_handles(p);
		rc = remove_once(p, name, err);
	}
	return rc;
}

int pool_fs_archive(struct pool_fs *p, const char *name, struct error *err)
{
	cleanup_free char *to = xasprintf("archived-%s", name);
	cleanup_free char *info = xasprintf("%s.json", name),
			  *info_to = xasprintf("archived-%s.json", name);
	int rc = move_entry(p, &p->volumes, name, name, NULL, to, err);
	if (rc >= 0)
		rc = move_entry(p, &p->info, name, info, NULL, info_to, err);
	return rc < 0 ? rc : 0;
}

/* ---- stat, list ------------------------------------------------------------------------------- */

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
	json_array_append_new(l->found, json_pack("{s:s, s:I}", "name", name, "size",
						  (json_int_t)jint(info, "size")));
	buf_done(&text);
	return 0;
}

int pool_fs_list(struct pool_fs *p, json_t **ret, struct error *err)
{
	struct listing l = { .p = p, .found = json_array() };
	glfs_object_t *root;
	int rc = tree_root(p, &p->info, false, &root, err);
	if (rc == 0)
		rc = dir_each(p->fs, root, list_entry, &l, err);
	if (rc < 0 && rc != -ENOENT) {
		json_decref(l.found);
		return rc;
	}
	*ret = l.found;
	return 0;
}

/* ---- trash ------------------------------------------------------------------------------------ */

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
	int rc = keep_dir(p, p->root, TRASH, false, &p->trash, &trash, err);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	return purge_dir(p, trash, trash, 0, err);
}

/* ---- open ------------------------------------------------------------------------------------- */

int pool_fs_open(const char *volume, const char *const *hosts, const char *log_path,
		 struct pool_fs **ret, struct error *err)
{
	glfs_t *fs = glfs_new(volume);
	if (!fs)
		return error_errno(err, errno, "cannot open pool %s", volume);
	for (size_t i = 0; hosts[i]; i++)
		glfs_set_volfile_server(fs, "tcp", hosts[i], GLUSTER_PORT);
	glfs_set_logging(fs, log_path, LOG_LEVEL_OF_GLUSTER);
	if (glfs_init(fs) < 0) {
		int code = errno ? errno : EIO;
		/* fs is not given back: the process is about to end, and a failed one may hang in glfs_fini */
		return error_errno(
			err, code,
			"cannot connect to pool %s; is its volume started and are its nodes up?",
			volume);
	}

	struct stat st;
	struct pool_fs *p = xcalloc(1, sizeof(*p));
	p->fs = fs;
	pthread_mutex_init(&p->lock, NULL);
	p->root = glfs_h_lookupat(fs, NULL, "/", &st, 0);
	if (!p->root) {
		int code = errno;
		free(p);
		return error_errno(err, code, "cannot look into pool %s", volume);
	}
	*ret = p;
	return 0;
}
