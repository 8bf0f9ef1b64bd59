/* SPDX-License-Identifier: Apache-2.0 */
/* What is used of a volume, and its growth. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "csi/filesystem.h"
#include "csi/node_service.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <time.h>

#define REMEMBERED_MS 3000

/* A path that nothing is published at is not found, whatever it looks like. */
static int find(struct csi_node *n, const char *id, const char *path, char **ret_path,
		struct staged *ret, struct error *err)
{
	int r = check_volume_id(id, false, err);

	if (r < 0)
		return r;
	if (!*path)
		return error_set(err, EINVAL, "volume_path is missing");
	if (path_of(n, "volume_path", path, ret_path, NULL) < 0)
		return error_set(err, ENOENT, "volume %s is not at the given path", id);
	return staged_at(n, id, *ret_path, ret, err);
}

/* ---- usage ------------------------------------------------------------------------------------ */

struct measure {
	const char *root, *sub;
	struct statfs fs; /* in memory that is shared with the child */
};

static int do_measure(void *arg)
{
	struct measure *m = arg;
	cleanup_close int root = place_open(AT_FDCWD, m->root, PLACE_DIRECTORY, 0), fd = -1;

	if (root < 0)
		return root;
	fd = m->sub[0] ? place_open(root, m->sub, PLACE_DIRECTORY, RESOLVE_BENEATH) : TAKE_FD(root);
	if (fd < 0)
		return fd;
	return fstatfs(fd, &m->fs) < 0 ? -errno : 0;
}

/*
 * What is known to hang is the file system, by its number: kubelet asks for each volume every minute,
 * and all those of a pool that does not answer must not cost a child each. Caller frees.
 */
static char *file_system_at(const char *root)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };

	return xstrdup(bind_find(root, &e, NULL) > 0 ? e.device : root);
}

static int measure(const char *root, const char *sub, struct statfs *ret, struct error *err)
{
	cleanup_free char *about = file_system_at(root);
	struct error why = ERROR_INIT;
	struct measure *m =
		mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int r;

	if (m == MAP_FAILED)
		return error_errno(err, errno, "cannot measure %s", root);
	m->root = root;
	m->sub = sub;
	r = spawn_call_keeping(do_measure, m, -1, about, STEP_MS, &why);
	if (r == 0)
		*ret = m->fs;
	munmap(m, sizeof(*m));
	return r < 0 ? error_set(err, -r, "cannot measure %s%s%s: %s", root, *sub ? "/" : "", sub,
				 error_text(&why, r))
		     : 0;
}

/* The file system at path; a directory's staging path stands for the directory itself. */
static int measure_staged(const struct staged *s, const char *path, struct statfs *ret,
			  struct error *err)
{
	bool directory = s->shape == SHAPE_DIRECTORY && streq(jstr(s->record, "consumer"), path);

	return directory ? measure(record_root(s->record), record_sub(s->record), ret, err)
			 : measure(path, "", ret, err);
}

/* From the kernel's own table, so that a device that does not answer delays nobody. */
static int device_bytes(const struct staged *s, int64_t *ret, struct error *err)
{
	cleanup_free char *path = xasprintf("/sys/dev/block/%u:%u/size", s->major, s->minor);
	cleanup_free char *text = NULL;
	int r = file_read(path, 64, &text, NULL, err);

	if (r < 0)
		return r;
	*ret = strtoll(text, NULL, 10) * 512;
	return 0;
}

static void add_usage(struct grpc_call *call, Csi__V1__NodeGetVolumeStatsResponse *reply,
		      Csi__V1__VolumeUsage__Unit unit, int64_t total, int64_t used,
		      int64_t available)
{
	Csi__V1__VolumeUsage *u = grpc_call_message(call, &csi__v1__volume_usage__descriptor);

	u->unit = unit;
	u->total = total;
	u->used = used;
	u->available = available;
	reply->usage[reply->n_usage++] = u;
}

int node_stats(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__NodeGetVolumeStatsRequest *q = request;
	Csi__V1__NodeGetVolumeStatsResponse *a = reply;
	cleanup_with(staged_done) struct staged s = { 0 };
	cleanup_free char *path = NULL;
	struct statfs fs;
	int64_t bytes;
	int r = find(grpc_call_userdata(call), q->volume_id, q->volume_path, &path, &s, err);

	if (r < 0)
		return r;
	a->usage = grpc_call_alloc(call, 2 * sizeof(*a->usage));
	if (s.shape == SHAPE_DEVICE) {
		r = device_bytes(&s, &bytes, err);
		if (r == 0)
			add_usage(call, a, CSI__V1__VOLUME_USAGE__UNIT__BYTES, bytes, 0, 0);
		return r;
	}
	r = measure_staged(&s, path, &fs, err);
	if (r < 0)
		return r;
	add_usage(call, a, CSI__V1__VOLUME_USAGE__UNIT__BYTES, (int64_t)fs.f_blocks * fs.f_bsize,
		  (int64_t)(fs.f_blocks - fs.f_bfree) * fs.f_bsize,
		  (int64_t)fs.f_bavail * fs.f_bsize);
	add_usage(call, a, CSI__V1__VOLUME_USAGE__UNIT__INODES, (int64_t)fs.f_files,
		  (int64_t)(fs.f_files - fs.f_ffree), (int64_t)fs.f_ffree);
	return 0;
}

/* ---- growth ----------------------------------------------------------------------------------- */

static int grow_loop(const struct staged *s, const struct staged_loop *l, struct error *err)
{
	struct staged below = { .major = LOOP_MAJOR, .minor = l->number };
	int64_t has, is;
	int r = loop_resize(l->number, record_root(s->record), record_sub(s->record), STEP_MS, err);

	if (r < 0 || !l->is_linear)
		return r;
	r = device_bytes(s, &is, err);
	if (r == 0)
		r = device_bytes(&below, &has, err);
	return r < 0 || has == is ? r : linear_resize(&l->linear, STEP_MS, err);
}

static int grow_once(struct csi_node *n, const struct staged *s, struct error *err)
{
	cleanup_free char *text = NULL;
	struct hostvol_error failed = { 0 };
	struct staged_loop l;
	int r;

	staged_find_loop(s, &l);
	if (l.state != LOOP_OTHER)
		return grow_loop(s, &l, err);
	r = hostvol_extend_volume_json(n->h, jstr(s->record, "volumeId"), &text, &failed);
	return from_hostvol(r, &failed, err);
}

/*
 * The storage's client may remember the size from before for a second or two, and tells nobody when not. After that it is
 * still to be tried again: out of range would say that it can never be, and kubelet would not ask any more.
 */
static int grow_device(struct csi_node *n, const struct staged *s, int64_t required, int64_t *ret,
		       struct error *err)
{
	int64_t end = clock_mono_ms(&clock_real) + REMEMBERED_MS;

	for (;;) {
		int r = grow_once(n, s, err);

		if (r >= 0)
			r = device_bytes(s, ret, err);
		if (r < 0)
			return r;
		if (*ret >= required)
			return 0;
		if (clock_mono_ms(&clock_real) > end)
			return error_set(err, EAGAIN,
					 "the device has %lld bytes yet, but %lld are asked for; "
					 "look whether it was made larger where it is kept",
					 (long long)*ret, (long long)required);
		nanosleep(&(struct timespec){ .tv_nsec = 100 * 1000 * 1000 }, NULL);
	}
}

static int grow(struct csi_node *n, const struct staged *s, const char *path, int64_t required,
		int64_t *ret, struct error *err)
{
	cleanup_free char *device = NULL;
	struct statfs fs;
	int r;

	if (s->shape == SHAPE_DIRECTORY) {
		/* its size is a limit in the pool, which is in force where it was set */
		*ret = required;
		r = required ? 0 : measure_staged(s, path, &fs, err);
		if (r == 0 && !required)
			*ret = (int64_t)fs.f_blocks * fs.f_bsize;
		return r;
	}
	r = grow_device(n, s, required, ret, err);
	if (r < 0)
		return r;
	device = device_node(s->major, s->minor);
	return s->shape == SHAPE_FILESYSTEM && device
		       ? filesystem_grow(device, s->entry.fs_type, jstr(s->record, "consumer"), err)
		       : 0;
}

int node_expand(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__NodeExpandVolumeRequest *q = request;
	Csi__V1__NodeExpandVolumeResponse *a = reply;
	struct csi_node *n = grpc_call_userdata(call);
	cleanup_with(staged_done) struct staged s = { 0 };
	cleanup_free char *path = NULL;
	int64_t required = q->capacity_range ? q->capacity_range->required_bytes : 0;
	int r = check_volume_id(q->volume_id, false, err);

	if (r == 0 && required < 0)
		r = error_set(err, EINVAL, "required_bytes is negative");
	/* before it is looked for: its device must not become another volume's meanwhile */
	if (r == 0)
		r = volume_begin(n, q->volume_id, err);
	if (r < 0)
		return r;
	r = find(n, q->volume_id, q->volume_path, &path, &s, err);
	if (r == 0)
		r = grow(n, &s, path, required, &a->capacity_bytes, err);
	if (r == 0)
		ungrown_forget(n, jstr(s.record, "consumer"));
	volume_end(n, q->volume_id);
	if (r < 0)
		log_warn("cannot expand volume %s: %s", q->volume_id, error_text(err, r));
	return r < 0 ? r : 0;
}
