/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_data.h"

#include "base/clock.h"
#include "worker/stretch.h"

#include <errno.h>
#include <unistd.h>

/* The bounds of the next data from *at on; false: a hole is all that is left. */
static bool next_data(glfs_fd_t *fd, int64_t size, int64_t *at, int64_t *ret_end)
{
	*ret_end = size;
	off_t data = glfs_lseek(fd, *at, SEEK_DATA);
	if (data < 0)
		/* where a layer cannot tell, everything is read, and a real trouble shows there */
		return errno != ENXIO;
	if (data >= size)
		return false;
	off_t hole = glfs_lseek(fd, data, SEEK_HOLE);
	*at = data;
	if (hole > data && hole < size)
		*ret_end = hole;
	return true;
}

static int write_all(glfs_fd_t *to, const char *data, size_t len, int64_t at, struct error *err)
{
	while (len) {
		ssize_t n = glfs_pwrite(to, data, len, at, 0, NULL, NULL);
		if (n <= 0)
			return error_errno(err, n < 0 ? errno : EIO, "cannot write a copy");
		data += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

static int write_nonzero(const struct copy_data *c, glfs_fd_t *to, size_t len, int64_t at,
			 struct error *err)
{
	int rc = 0;
	for (size_t start = 0, end; rc == 0 && stretch_next(c->buffer, len, &start, &end);
	     start = end) {
		if (c->left && (*c->left -= (int64_t)(end - start)) < 0)
			return error_set(err, EBUSY, "a copy is larger than it may be");
		rc = write_all(to, c->buffer + start, end - start, at + (int64_t)start, err);
	}
	return rc;
}

static int step(const struct copy_data *c, int64_t at, int64_t *last_ms, struct error *err)
{
	if (!c->progress || clock_mono_ms(&clock_real) - *last_ms < STEP_MS)
		return 0;
	int rc = c->progress(at, c->userdata, err);
	*last_ms = clock_mono_ms(&clock_real);
	return rc;
}

/* *at goes to where it came: the end, or less where the file has become shorter. */
static int copy_range(const struct copy_data *c, glfs_fd_t *from, glfs_fd_t *to, int64_t *at,
		      int64_t end, int64_t *last_ms, struct error *err)
{
	int rc = 0;
	while (rc == 0 && *at < end) {
		struct glfs_stat st = { 0 };
		size_t want = end - *at < COPY_BUFFER ? (size_t)(end - *at) : COPY_BUFFER;
		if (atomic_load(c->stop))
			return error_set(err, ECANCELED, "the copy was stopped");
		ssize_t n = glfs_pread(from, c->buffer, want, *at, 0, &st);
		if (n < 0)
			return error_errno(err, errno, "cannot read what is to be copied");
		if (n == 0)
			return 0;
		if (c->changed && c->changed(&st.glfs_st_mtime, c->userdata))
			return 1;
		rc = write_nonzero(c, to, (size_t)n, *at, err);
		*at += n;
		if (rc == 0)
			rc = step(c, *at, last_ms, err);
	}
	return rc;
}

int copy_data(const struct copy_data *c, glfs_fd_t *from, glfs_fd_t *to, int64_t start,
	      int64_t size, struct error *err)
{
	int64_t at = start, end = size, last_ms = clock_mono_ms(&clock_real);
	/* read at once: that costs less than to ask where its holes are */
	bool small = size - start <= COPY_BUFFER;
	while (at < size && (small || next_data(from, size, &at, &end))) {
		int rc = copy_range(c, from, to, &at, end, &last_ms, err);
		if (rc != 0)
			return rc;
		if (at < end)
			break;
	}
	if (glfs_ftruncate(to, size, NULL, NULL) < 0)
		return error_errno(err, errno, "cannot set the length of a copy");
	return 0;
}
