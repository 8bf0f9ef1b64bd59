/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ephemeral volumes: ephemeral/<node>/<id>. Node services make and remove them (csi/ephemeral_file.h)
 * and set their time every few minutes while they are used; so what has not been touched for days
 * belongs to a machine that is not coming back. When that time was is known by that machine's clock alone: here it is
 * only seen whether it changes, and an attribute of the file says since when it has not (sighting.h).
 */
#include "base/log.h"
#include "base/mem.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_pool.h"
#include "worker/sighting.h"

#include <errno.h>

#define EPHEMERAL_DIR "ephemeral"
#define ABANDONED_S (7 * 86400)
#define SEEN "user.quartermaster.seen"

struct walk {
	struct pool_fs *p;
	const char *node; /* whose directory it is in */
	struct sighting now;
	json_t *found; /* NULL: nobody asks */
};

/* Also where it cannot be written down: then it is not counted, and the file stays. */
static bool is_abandoned(const struct walk *w, glfs_object_t *o, const struct stat *st)
{
	char text[SIGHTING_MAX];
	struct sighting look = w->now, before, known;
	int len = glfs_h_getxattrs(w->p->fs, o, SEEN, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = 0;
	bool seen = sighting_parse(text, &before);

	look.used = st->st_mtim;
	if (sighting_next(seen ? &before : NULL, &look, &known)) {
		sighting_text(&known, text);
		if (glfs_h_setxattrs(w->p->fs, o, SEEN, text, strlen(text), 0) < 0)
			log_warn("cannot note when a file of " EPHEMERAL_DIR
				 "/%s was last used: %m; it is kept",
				 w->node);
	}
	return sighting_is_left(seen ? &before : NULL, &known, ABANDONED_S);
}

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
	if (S_ISREG(st.st_mode) && is_abandoned(w, o, &st)) {
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
	struct walk w = { .p = p, .found = found };
	cleanup_object glfs_object_t *top = NULL;
	int rc = dir_open(p->fs, p->root, EPHEMERAL_DIR, &top, err);

	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	sighting_now(&w.now);
	return dir_each(p->fs, top, look_at_node, &w, err);
}
