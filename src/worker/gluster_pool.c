/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_pool.h"

#include "base/mem.h"
#include "worker/gluster_fs.h"
#include "worker/path.h"
#include "worker/worker.h"

#include <errno.h>
#include <stdio.h>

#define GLUSTER_PORT 24007
#define FENCE_ROUNDS 8
#define LOG_LEVEL_OF_GLUSTER 5 /* warnings */

/* ---- directories ------------------------------------------------------------------------------ */

static const enum volume_kind kinds[TREES] = { VOLUME_DIRECTORY, VOLUME_FILE, VOLUME_BLOCK,
					       VOLUME_WHOLE, VOLUME_SNAPSHOT };

static struct tree *tree_of(struct pool_fs *p, enum pool_part part, enum volume_kind kind)
{
	size_t i = 0;
	while (i < TREES - 1 && kinds[i] != kind)
		i++;
	return part == PART_INFO ? &p->info[i] : &p->data[i];
}

/*
 * Whether the directory, one of ours, cannot have anything of that name (00 to ff) in it. It can from now on: whoever
 * asks next looks, also where the making failed half-way.
 */
static bool name_is_new(struct pool_fs *p, struct kept *dir, const char *name)
{
	unsigned long i = strtoul(name, NULL, 16);
	pthread_mutex_lock(&p->lock);
	bool tried = dir->tried[i / 8] & 1u << i % 8;
	dir->tried[i / 8] |= (unsigned char)(1u << i % 8);
	bool is_new = dir->ours && !tried;
	pthread_mutex_unlock(&p->lock);
	return is_new;
}

/* Of two threads that were as fast one closes its own. */
static int keep_dir(struct pool_fs *p, glfs_object_t *parent, const char *name, bool make,
		    bool fresh, struct kept *slot, glfs_object_t **ret, struct error *err)
{
	pthread_mutex_lock(&p->lock);
	glfs_object_t *o = slot->dir;
	pthread_mutex_unlock(&p->lock);
	if (!o) {
		int rc = make ? dir_make(p->fs, parent, name, &fresh, &o, err)
			      : dir_open(p->fs, parent, name, &o, err);
		if (rc < 0)
			return rc;
		pthread_mutex_lock(&p->lock);
		if (slot->dir) {
			glfs_h_close(o);
			o = slot->dir;
		} else {
			*slot = (struct kept){ .dir = o, .ours = make && fresh };
		}
		pthread_mutex_unlock(&p->lock);
	}
	*ret = o;
	return 0;
}

int pool_keep_dir(struct pool_fs *p, glfs_object_t *parent, const char *name, bool make,
		  struct kept *slot, glfs_object_t **ret, struct error *err)
{
	return keep_dir(p, parent, name, make, false, slot, ret, err);
}

int pool_tree(struct pool_fs *p, enum pool_part part, enum volume_kind kind, bool make,
	      glfs_object_t **ret, struct error *err)
{
	struct tree *t = tree_of(p, part, kind);
	glfs_object_t *above = p->root;
	if (part == PART_INFO) {
		int rc = pool_keep_dir(p, p->root, "info", make, &p->info_top, &above, err);
		if (rc < 0)
			return rc;
	}
	return pool_keep_dir(p, above, volume_prefix(kind), make, &t->root, ret, err);
}

/* The first level's directory of that name. */
static int first_dir(struct pool_fs *p, enum pool_part part, enum volume_kind kind,
		     const char *first, bool make, struct kept **ret_kept, glfs_object_t **ret,
		     struct error *err)
{
	struct tree *t = tree_of(p, part, kind);
	glfs_object_t *root;
	int rc = pool_tree(p, part, kind, make, &root, err);
	if (rc < 0)
		return rc;
	*ret_kept = &t->first[strtoul(first, NULL, 16)];
	return keep_dir(p, root, first, make, make && name_is_new(p, &t->root, first), *ret_kept,
			ret, err);
}

int pool_leaf_make(struct pool_fs *p, enum pool_part part, enum volume_kind kind, const char *name,
		   bool *ret_fresh, glfs_object_t **ret, struct error *err)
{
	char first[3], second[3];
	struct kept *kept;
	glfs_object_t *dir;
	volume_hash(name, first, second);

	int rc = first_dir(p, part, kind, first, true, &kept, &dir, err);
	if (rc < 0)
		return rc;
	bool fresh = name_is_new(p, kept, second);
	rc = dir_make(p->fs, dir, second, &fresh, ret, err);
	*ret_fresh = rc == 0 && fresh;
	return rc;
}

int pool_leaf(struct pool_fs *p, enum pool_part part, enum volume_kind kind, const char *name,
	      bool make, glfs_object_t **ret, struct error *err)
{
	char first[3], second[3];
	struct kept *kept;
	glfs_object_t *dir;
	bool fresh;
	if (make)
		return pool_leaf_make(p, part, kind, name, &fresh, ret, err);
	volume_hash(name, first, second);
	int rc = first_dir(p, part, kind, first, false, &kept, &dir, err);
	return rc < 0 ? rc : dir_open(p->fs, dir, second, ret, err);
}

/* They are not closed, since another thread may be using one; this happens next to never. */
void pool_forget(struct pool_fs *p)
{
	pthread_mutex_lock(&p->lock);
	p->info_top = (struct kept){ 0 };
	if (p->own != p->root)
		p->trash = (struct kept){ 0 };
	memset(p->data, 0, sizeof(p->data));
	memset(p->info, 0, sizeof(p->info));
	pthread_mutex_unlock(&p->lock);
}

pthread_mutex_t *pool_name_lock(struct pool_fs *p, enum volume_kind kind, const char *name)
{
	char first[3], second[3];
	volume_hash(name, first, second);
	pthread_mutex_t *lock = &p->names[(strtoul(first, NULL, 16) + (unsigned)kind) % NAME_LOCKS];
	pthread_mutex_lock(lock);
	return lock;
}

/* ---- info files ------------------------------------------------------------------------------- */

json_t *info_new(const struct pool_fs *p, enum volume_kind kind, const char *name, int64_t size)
{
	char first[3], second[3], letter[2] = { (char)kind, 0 };
	volume_hash(name, first, second);
	cleanup_free char *prefix = xasprintf("%s/%s/%s", volume_prefix(kind), first, second);
	json_t *info = json_pack("{s:I, s:s, s:s}", "size", (json_int_t)size, "path_prefix", prefix,
				 "kind", letter);
	if (p->epoch)
		json_object_set_new(info, "epoch", json_integer(p->epoch));
	return info;
}

bool info_is_of(const json_t *info, const char *owner)
{
	const char *is = jstr(info, "owner");
	return !owner || !is || streq(is, owner);
}

int info_of_another(const char *name, struct error *err)
{
	return error_set(err, ESTALE,
			 "volume %s is another one of that name by now; nothing was touched", name);
}

void object_text(glfs_object_t *o, char text[static OBJECT_TEXT_MAX])
{
	unsigned char id[GFAPI_HANDLE_LENGTH] = { 0 };
	glfs_h_extract_handle(o, id, sizeof(id));
	for (size_t i = 0; i < sizeof(id); i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
}

bool info_ready(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info)
{
	const char *object = jstr(info, "object");
	if (!jget(info, "size") || json_is_false(jget(info, "ready")))
		return false;
	if (!object || kind == VOLUME_WHOLE) /* what stands there is not in this pool */
		return true;
	cleanup_object glfs_object_t *dir = NULL, *o = NULL;
	char text[OBJECT_TEXT_MAX];
	struct stat st;
	if (pool_leaf(p, PART_DATA, kind, name, false, &dir, NULL) < 0 ||
	    !(o = glfs_h_lookupat(p->fs, dir, name, &st, 0)))
		return false;
	object_text(o, text);
	return streq(text, object);
}

/* One for each epoch, so that two workers never write the same. */
static char *temp_name(const struct pool_fs *p, const char *file)
{
	return p->epoch ? xasprintf("%s.%lld.tmp", file, (long long)p->epoch)
			: xasprintf("%s.tmp", file);
}

int info_get(struct pool_fs *p, enum volume_kind kind, const char *name, json_t **ret,
	     struct error *err)
{
	cleanup_free char *file = xasprintf("%s.json", name);
	cleanup_object glfs_object_t *dir = NULL;
	struct buf text = { 0 };
	json_t *info = NULL;
	int rc = pool_leaf(p, PART_INFO, kind, name, false, &dir, err);
	if (rc == 0)
		rc = file_get(p->fs, dir, file, &text, err);
	if (rc == 0 && text.data)
		json_parse(text.data, text.len, &info, NULL);
	buf_done(&text);
	if (rc < 0)
		return rc;
	if (!json_is_object(info)) {
		json_decref(info);
		info = json_object();
	}
	*ret = info;
	return 0;
}

static int ask_check(struct pool_fs *p, enum volume_kind kind, const char *name, info_check check,
		     void *userdata, struct error *err)
{
	cleanup_json json_t *there = NULL;
	int rc = check ? info_get(p, kind, name, &there, err) : -ENOENT;
	if (rc < 0 && rc != -ENOENT)
		return rc;
	return check ? check(there, userdata, err) : 0;
}

/* The second fsync puts the rename itself on disk: what was once said to be ready stays so. */
static int put_once(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
		    info_check check, void *userdata, struct error *err)
{
	cleanup_free char *file = xasprintf("%s.json", name), *temp = temp_name(p, file),
			  *text = json_text(info);
	cleanup_object glfs_object_t *dir = NULL;
	glfs_fd_t *fd;
	int rc = pool_leaf(p, PART_INFO, kind, name, true, &dir, err);
	if (rc < 0)
		return rc;
	if (glfs_h_unlink(p->fs, dir, temp) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot remove file %s in the pool", temp);
	rc = file_make(p->fs, dir, temp, text, &fd, err);
	if (rc < 0)
		return rc;
	if (glfs_fsync(fd, NULL, NULL) < 0)
		rc = error_errno(err, errno, "cannot write file %s in the pool", temp);
	if (rc == 0 && (rc = ask_check(p, kind, name, check, userdata, err)) < 0)
		glfs_h_unlink(p->fs, dir, temp);
	if (rc == 0 && glfs_h_rename(p->fs, dir, temp, dir, file) < 0)
		rc = error_errno(err, errno, "cannot rename file %s in the pool", temp);
	int kept = file_keep(fd, rc < 0 ? NULL : err);
	return rc < 0 ? rc : kept;
}

int info_replace(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
		 info_check check, void *userdata, struct error *err)
{
	int rc = put_once(p, kind, name, info, check, userdata, err);
	if (rc == -ESTALE || rc == -ENOENT) {
		pool_forget(p);
		rc = put_once(p, kind, name, info, check, userdata, err);
	}
	return rc;
}

int info_put(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
	     struct error *err)
{
	return info_replace(p, kind, name, info, NULL, NULL, err);
}

struct fence {
	struct pool_fs *p;
	const char *file;
	int dropped;
};

static int drop_temp(glfs_object_t *dir, const struct dir_entry *e, void *userdata,
		     struct error *err)
{
	struct fence *f = userdata;
	if (!str_has_prefix(e->name, f->file) || !str_has_suffix(e->name, ".tmp"))
		return 0;
	if (glfs_h_unlink(f->p->fs, dir, e->name) < 0 && errno != ENOENT)
		return error_errno(err, errno, "cannot remove file %s in the pool", e->name);
	f->dropped++;
	return 0;
}

/* Read anew once something was removed: the reading may have passed others over. */
int info_fence(struct pool_fs *p, enum volume_kind kind, const char *name, struct error *err)
{
	cleanup_free char *file = xasprintf("%s.json", name);
	cleanup_object glfs_object_t *dir = NULL;
	int rc = pool_leaf(p, PART_INFO, kind, name, false, &dir, err);
	for (int i = 0, more = 1; rc == 0 && more && i < FENCE_ROUNDS; i++) {
		struct fence f = { .p = p, .file = file };
		rc = dir_each(p->fs, dir, drop_temp, &f, err);
		more = f.dropped;
	}
	return rc;
}

int info_remove(struct pool_fs *p, enum volume_kind kind, const char *name, struct error *err)
{
	cleanup_object glfs_object_t *dir = NULL;
	cleanup_free char *file = xasprintf("%s.json", name), *temp = temp_name(p, file);
	int rc = pool_leaf(p, PART_INFO, kind, name, false, &dir, err);
	if (rc == -ENOENT)
		return 0;
	if (rc < 0)
		return rc;
	/* the other is what a killed worker left */
	if ((glfs_h_unlink(p->fs, dir, temp) < 0 && errno != ENOENT) ||
	    (glfs_h_unlink(p->fs, dir, file) < 0 && errno != ENOENT))
		return error_errno(err, errno, "cannot remove file %s in the pool", file);
	return 0;
}

/* ---- open, close ------------------------------------------------------------------------------ */

static void pool_free(struct pool_fs *p)
{
	pthread_mutex_destroy(&p->lock);
	pthread_mutex_destroy(&p->entering);
	pthread_mutex_destroy(&p->sync.lock);
	pthread_cond_destroy(&p->sync.ended);
	for (size_t i = 0; i < NAME_LOCKS; i++)
		pthread_mutex_destroy(&p->names[i]);
	strv_done(&p->hosts);
	free(p->log_path);
	free(p);
}

int pool_fs_open(const char *volume, const char *const *hosts, const char *log_path, int64_t epoch,
		 struct pool_fs **ret, struct error *err)
{
	glfs_t *fs = glfs_new(volume);
	if (!fs)
		return error_errno(err, errno, "cannot open pool %s", volume);
	for (size_t i = 0; hosts[i]; i++)
		glfs_set_volfile_server(fs, "tcp", hosts[i], GLUSTER_PORT);
	glfs_set_logging(fs, log_path, LOG_LEVEL_OF_GLUSTER);
	/* whether a file was written to while it was copied is asked of the bricks, not of a cache */
	glfs_set_xlator_option(fs, "*-md-cache", "md-cache-timeout", "0");
	if (glfs_init(fs) < 0) {
		int code = errno ? errno : EIO;
		/* fs is not given back: a failed one may hang in glfs_fini */
		return error_errno(
			err, code,
			"cannot connect to pool %s; is its volume started and are its nodes up?",
			volume);
	}

	struct stat st;
	struct pool_fs *p = xcalloc(1, sizeof(*p));
	p->fs = fs;
	p->epoch = epoch;
	p->log_path = xstrdup(log_path);
	for (size_t i = 0; hosts[i]; i++)
		strv_add(&p->hosts, hosts[i]);
	pthread_mutex_init(&p->lock, NULL);
	pthread_mutex_init(&p->entering, NULL);
	pthread_mutex_init(&p->sync.lock, NULL);
	pthread_cond_init(&p->sync.ended, NULL);
	for (size_t i = 0; i < NAME_LOCKS; i++)
		pthread_mutex_init(&p->names[i], NULL);
	p->root = glfs_h_lookupat(fs, NULL, "/", &st, 0);
	if (!p->root) {
		int code = errno;
		pool_free(p);
		return error_errno(err, code, "cannot look into pool %s", volume);
	}
	p->own = p->root;
	*ret = p;
	return 0;
}

void pool_fs_close(struct pool_fs *p)
{
	if (p->trash.dir)
		glfs_h_close(p->trash.dir);
	if (p->sync.fd)
		glfs_close(p->sync.fd);
	if (p->own != p->root)
		glfs_h_close(p->own);
	glfs_h_close(p->root);
	glfs_fini(p->fs);
	pool_free(p);
}
