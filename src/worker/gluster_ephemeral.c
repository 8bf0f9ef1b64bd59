/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ephemeral volumes: ephemeral/<node>/<id>. Node services make and remove them (csi/ephemeral_file.h)
 * and set their time every few minutes while they are used; so what has not been touched for days
 * belongs to a machine that is not coming back.
 */
#include "base/log.h"
#include "base/mem.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_pool.h"

#include <errno.h>
#include <time.h>

#define EPHEMERAL_DIR "ephemeral"
#define ABANDONED_S (7 * 86400)

struct walk {
	struct pool_fs *p;
	const char *node; /* whose directory it is in */
	time_t now;
	json_t *found; /* NULL: nobody asks */
};

static int look_at_file(glfs_object_t *dir, const struct dir_entry *e, void *userdata,
			struct error *err)
{
	const struct walk *w = userdata;
	struct stat st = { 0 };
	cleanup_object glfs_object_t *o = glfs_h_lookupat(w->p->fs, dir, e->name, &st, 0);

	if (!o)
		return errno == ENOENT
			       ? 0
			       : error_errno(err, errno,
					     "cannot look at " EPHEMERAL_DIR "/%s/%s in the pool",
					     w->node, e->name);
	if (S_ISREG(st.st_mode) && w->now - st.st_mtime > ABANDONED_S) {
		log_info(EPHEMERAL_DIR "/%s/%s has not been used for a week: it is removed",
			 w->node, e->name);
		if (glfs_h_unlink(w->p->fs, dir, e->name) < 0 && errno != ENOENT)
			return error_errno(err, errno, "cannot remove " EPHEMERAL_DIR "/%s/%s",
					   w->node, e->name);
		return 0;
	}
	if (w->found)
		json_array_append_new(w->found,
				      json_pack("{s:s, s:s, s:I, s:b, s:s}", "name", e->name,
						"kind", "e", "size", (json_int_t)st.st_size,
						"ready", 1, "node", w->node));
	return 0;
}

static int look_at_node(glfs_object_t *dir, const struct dir_entry *e, void *userdata,
			struct error *err)
{
	struct walk *w = userdata;
	cleanup_object glfs_object_t *sub = NULL;
	int rc;

	if (!e->is_dir)
		return 0;
	rc = dir_open(w->p->fs, dir, e->name, &sub, err);
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	w->node = e->name;
	return dir_each(w->p->fs, sub, look_at_file, w, err);
}

int pool_fs_ephemeral(struct pool_fs *p, json_t *found, struct error *err)
{
	struct walk w = { .p = p, .now = time(NULL), .found = found };
	cleanup_object glfs_object_t *top = NULL;
	int rc = dir_open(p->fs, p->root, EPHEMERAL_DIR, &top, err);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	return dir_each(p->fs, top, look_at_node, &w, err);
}
