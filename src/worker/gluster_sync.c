/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_pool.h"

#include <errno.h>
#include <fcntl.h>

#define LENGTH_MAX 65536 /* then it begins anew */

/* Whoever mounts the pool can put something there: it must be a plain file. */
static int open_file(struct pool_fs *p, glfs_fd_t **ret, struct error *err)
{
	struct stat st = { 0 };
	glfs_fd_t *fd = NULL;
	int rc = file_create(p->fs, p->root, SYNC_FILE, O_SYNC | O_APPEND, false, ret, err);
	if (rc != -EEXIST)
		return rc;
	cleanup_object glfs_object_t *o = glfs_h_lookupat(p->fs, p->root, SYNC_FILE, &st, 0);
	if (o && !S_ISREG(st.st_mode))
		return error_set(err, EINVAL,
				 SYNC_FILE " in the pool is not a plain file; look who put it "
					   "there, and remove it");
	if (o)
		fd = glfs_h_open(p->fs, o, O_WRONLY | O_SYNC | O_APPEND | O_NOFOLLOW);
	if (!fd)
		return error_errno(err, errno, "cannot open file " SYNC_FILE " in the pool");
	*ret = fd;
	return 0;
}

static int empty_file(struct pool_sync *s, struct error *err)
{
	if (glfs_ftruncate(s->fd, 0, NULL, NULL) < 0)
		return error_errno(err, errno, "cannot empty file " SYNC_FILE " in the pool");
	s->length = 0;
	return 0;
}

/* By one thread at a time; appended, so that it is longer whatever another worker does to it. */
static int run_round(struct pool_fs *p, struct error *err)
{
	struct pool_sync *s = &p->sync;
	bool opened = !s->fd;
	int rc = opened ? open_file(p, &s->fd, err) : 0;
	if (rc == 0 && (opened || s->length >= LENGTH_MAX))
		rc = empty_file(s, err);
	if (rc == 0 && glfs_write(s->fd, "", 1, 0) != 1)
		rc = error_errno(err, errno ? errno : EIO, "cannot write the pool to disk");
	s->length++;
	if (rc < 0 && s->fd) { /* it may be stale */
		glfs_close(s->fd);
		s->fd = NULL;
	}
	return rc;
}

int pool_sync(struct pool_fs *p, struct error *err)
{
	struct pool_sync *s = &p->sync;
	struct error why = ERROR_INIT;
	pthread_mutex_lock(&s->lock);
	uint64_t mine = s->begun + 1; /* one that is under way may have been too early for us */
	while (s->done < mine) {
		if (s->runs) {
			pthread_cond_wait(&s->ended, &s->lock);
			continue;
		}
		s->runs = true;
		s->begun++;
		pthread_mutex_unlock(&s->lock);
		int rc = run_round(p, &why);
		pthread_mutex_lock(&s->lock);
		s->runs = false;
		s->done = s->begun;
		if (rc < 0) {
			s->failed = s->done;
			s->rc = rc;
		}
		pthread_cond_broadcast(&s->ended);
	}
	/* of a later one, too: that one says nothing about what it found written */
	int rc = s->failed >= mine ? s->rc : 0;
	pthread_mutex_unlock(&s->lock);
	if (rc < 0)
		return error_set(err, -rc, "%s",
				 *why.message ? why.message : "cannot write the pool to disk");
	return 0;
}
