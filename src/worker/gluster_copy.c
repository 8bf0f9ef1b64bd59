/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/gluster_copy.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "worker/gluster_fs.h"
#include "worker/gluster_tree.h"
#include "worker/gluster_whole.h"

#include <errno.h>
#include <fcntl.h>

#define FILE_TRIES 3 /* of a file that somebody writes to */
#define TREE_SPARE ((int64_t)16 << 20) /* of a tree's copy, beyond twice its size */

static void letter_of(enum volume_kind kind, char letter[static 2])
{
	letter[0] = (char)kind;
	letter[1] = 0;
}

static const char *noun(enum volume_kind kind)
{
	return kind == VOLUME_SNAPSHOT ? "snapshot" : "volume";
}

/* ---- before ------------------------------------------------------------------------------------- */

static bool data_is_there(struct pool_fs *p, enum volume_kind kind, const char *name)
{
	cleanup_object glfs_object_t *dir = NULL, *o = NULL;
	struct stat st;
	if (pool_leaf(p, PART_DATA, kind, name, false, &dir, NULL) == 0)
		o = glfs_h_lookupat(p->fs, dir, name, &st, 0);
	return o;
}

/* The source's info, and its kind: a snapshot has that of its own source. */
static int look_source(struct pool_fs *p, const struct copy_request *r, enum volume_kind *ret_kind,
		       int64_t *ret_size, struct error *err)
{
	cleanup_json json_t *info = NULL;
	struct error why = ERROR_INIT;
	int rc = info_get(p, r->from_kind, r->from, &info, &why);
	if (rc == -ENOENT && data_is_there(p, r->from_kind, r->from))
		return error_set(err, EAGAIN, "%s %s is not complete yet; copy it when it is",
				 noun(r->from_kind), r->from);
	if (rc == -ENOENT)
		return error_set(err, ENOENT, "there is no %s %s in the pool to copy",
				 noun(r->from_kind), r->from);
	if (rc < 0)
		return error_set(err, -rc, "%s", why.message);
	if (!info_ready(p, r->from_kind, r->from, info))
		return error_set(err, EAGAIN,
				 "%s %s is still in the making; copy it when it is ready",
				 noun(r->from_kind), r->from);
	const char *of = jstr(info, "sourceKind");
	*ret_kind = r->from_kind == VOLUME_SNAPSHOT && of ? (enum volume_kind)of[0] : r->from_kind;
	*ret_size = jint(info, "size");
	return 0;
}

static bool is_copy_of(const json_t *info, const struct copy_request *r)
{
	char letter[2];
	letter_of(r->from_kind, letter);
	return streq(jstr(info, "source"), r->from) && streq(jstr(info, "sourceKind"), letter);
}

/* A new one, of which nothing is there yet. */
static void set_place(json_t *info)
{
	char place[UUID_TEXT_MAX];
	json_object_del(info, "object");
	json_object_del(info, "moving");
	json_object_set_new(info, "place", json_string(uuid_text(place)));
}

static int unchanged(const json_t *there, void *userdata, struct error *err)
{
	const json_t *before = userdata;
	if (there == before || json_equal(there, before))
		return 0;
	return error_set(err, EAGAIN, "another worker writes the same info file; ask again");
}

/* What the info says from now on stays, whatever a worker whose time is over was about to write. before: NULL, none. */
static int claim(struct pool_fs *p, const struct copy_request *r, const json_t *before,
		 const json_t *info, struct error *err)
{
	cleanup_json json_t *now = NULL;
	struct error why = ERROR_INIT;
	int rc = 0;
	if (!json_equal(before, info))
		rc = info_replace(p, r->kind, r->name, info, unchanged, (void *)before, err);
	if (rc == 0)
		rc = info_fence(p, r->kind, r->name, err);
	if (rc < 0)
		return rc;
	rc = info_get(p, r->kind, r->name, &now, &why);
	if (rc < 0 && rc != -ENOENT)
		return error_set(err, -rc, "%s", why.message);
	return unchanged(now, (void *)info, err);
}

static int begin(struct pool_fs *p, const struct copy_request *r, struct error *err)
{
	enum volume_kind kind = r->kind;
	int64_t size = 0;
	char letter[2], text[TIME_TEXT_MAX];
	int rc = look_source(p, r, &kind, &size, err);
	if (rc < 0)
		return rc;
	if (r->kind != VOLUME_SNAPSHOT && !volume_kinds_fit(r->kind, kind))
		return error_set(err, EINVAL,
				 "%s %s is of another kind (%c) than volume %s is to be (%c)",
				 noun(r->from_kind), r->from, (char)kind, r->name, (char)r->kind);
	if (r->size && r->size < size)
		return error_set(
			err, EINVAL, "%s %s has %lld bytes, more than the %lld of volume %s",
			noun(r->from_kind), r->from, (long long)size, (long long)r->size, r->name);
	letter_of(r->from_kind, letter);
	cleanup_json json_t *info = info_new(p, r->kind, r->name, r->size ? r->size : size);
	json_object_set_new(info, "source", json_string(r->from));
	json_object_set_new(info, "sourceKind", json_string(letter));
	json_object_set_new(info, "created",
			    json_string(time_text(clock_wall_ms(&clock_real), text)));
	json_object_set_new(info, "ready", json_false());
	if (r->owner)
		json_object_set_new(info, "owner", json_string(r->owner));
	if (r->kind == VOLUME_WHOLE)
		set_place(info);
	rc = claim(p, r, NULL, info, err);
	return rc < 0 ? rc : 1;
}

/*
 * A copy in the making is its epoch's own. One that its worker gave back (copy_release) goes on from
 * where it is. One of another epoch that was not given back may still be written to: what is there is thrown
 * away when ours is run (keep_own), so that whoever holds it writes to the trash, and it begins anew. Which epoch is the
 * later one is not asked: a lease that was deleted counts from the beginning, and nothing may be stuck for that.
 */
static int take_over(struct pool_fs *p, const struct copy_request *r, json_t *info,
		     struct error *err)
{
	cleanup_json json_t *before = json_deep_copy(info);
	const json_t *epoch = jget(before, "epoch");
	bool ours =
		json_is_false(jget(info, "ready")) && json_integer_value(epoch) == p->epoch;
	int rc = 0;
	if (epoch && !ours) {
		rc = copy_forget(p, r->kind, r->name, info, err);
		json_object_del(info, "done");
		json_object_del(info, "object");
		json_object_del(info, "place");
		json_object_set_new(info, "ready", json_false());
	}
	if (!ours)
		json_object_set_new(info, "epoch", json_integer(p->epoch));
	if (r->kind == VOLUME_WHOLE && !jstr(info, "place"))
		set_place(info);
	return rc < 0 ? rc : claim(p, r, before, info, err);
}

int copy_prepare(struct pool_fs *p, const struct copy_request *r, struct error *err)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, r->kind, r->name);
	cleanup_json json_t *info = NULL;
	struct error why = ERROR_INIT;
	if (r->kind == VOLUME_SNAPSHOT && r->from_kind == VOLUME_SNAPSHOT)
		return error_set(err, EINVAL, "%s is a snapshot; only a volume has snapshots",
				 r->from);
	int rc = info_get(p, r->kind, r->name, &info, &why);
	if (rc < 0 && rc != -ENOENT)
		return error_set(err, -rc, "%s", why.message);
	if (rc == -ENOENT)
		return begin(p, r, err);
	if (!info_is_of(info, r->owner))
		return info_of_another(r->name, err);
	if (!is_copy_of(info, r))
		return error_set(err, EEXIST, "%s %s is there already, and no copy of %s %s",
				 noun(r->kind), r->name, noun(r->from_kind), r->from);
	if (info_ready(p, r->kind, r->name, info))
		return 0;
	rc = take_over(p, r, info, err);
	return rc < 0 ? rc : 1;
}

void copy_release(struct pool_fs *p, enum volume_kind kind, const char *name)
{
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(p, kind, name);
	cleanup_json json_t *info = NULL, *before = NULL;
	if (info_get(p, kind, name, &info, NULL) < 0)
		return;
	before = json_deep_copy(info);
	if (jint(info, "epoch") != p->epoch || !json_is_false(jget(info, "ready")) ||
	    json_object_del(info, "epoch") < 0)
		return;
	info_replace(p, kind, name, info, unchanged, before, NULL);
}

/* ---- the copying -------------------------------------------------------------------------------- */

struct run {
	struct pool_fs *p;
	struct pool_fs *from,
		*to; /* whose the source and the copy are: p, or a whole volume's own */
	const struct copy_request *r;
	const atomic_bool *stop;
	json_t *info;
	glfs_object_t *source, *to_dir;
	struct stat source_st;
	char *buffer;
	glfs_fd_t *from_fd, *to_fd; /* of a file */
	char object[OBJECT_TEXT_MAX]; /* what we write to */
};

/* The info that is there is still this copy's own; -EALREADY: and it says that it is complete. */
static int judge_info(const json_t *info, void *userdata, struct error *err)
{
	const struct run *run = userdata;
	const struct copy_request *r = run->r;
	if (atomic_load(run->stop) || !is_copy_of(info, r) ||
	    (run->info && !streq(jstr(run->info, "created"), jstr(info, "created"))))
		return error_set(err, ECANCELED, "%s %s was removed while it was made",
				 noun(r->kind), r->name);
	if (jint(info, "epoch") != run->p->epoch ||
	    (run->info && jstr(info, "place") &&
	     !streq(jstr(run->info, "place"), jstr(info, "place"))))
		return error_set(err, ECANCELED, "%s %s is made by another worker now",
				 noun(r->kind), r->name);
	if (info_ready(run->p, r->kind, r->name, info))
		return error_set(err, EALREADY, "%s %s is complete", noun(r->kind), r->name);
	return 0;
}

static int check_info(struct run *run, json_t **ret, struct error *err)
{
	cleanup_json json_t *info = NULL;
	struct error why = ERROR_INIT;
	int rc = info_get(run->p, run->r->kind, run->r->name, &info, &why);
	if (rc < 0 && rc != -ENOENT)
		return error_set(err, -rc, "%s", why.message);
	rc = judge_info(info, run, err);
	if (rc == 0)
		*ret = TAKE_PTR(info);
	return rc;
}

static int check_ours(void *userdata, struct error *err)
{
	cleanup_json json_t *info = NULL;
	return check_info(userdata, &info, err);
}

/* The same, as whoever throws something away asks it. */
static int may_throw(void *userdata, struct error *err)
{
	int rc = check_ours(userdata, err);
	return rc < 0 ? rc : 1;
}

static int put_info(struct run *run, const json_t *info, struct error *err)
{
	return info_replace(run->p, run->r->kind, run->r->name, info, judge_info, run, err);
}

/*
 * What stands at the copy's place is gone on with only where the info says that it is this copy's: anything else
 * may be written to by a worker whose time is over, and is thrown away. Whether the copy is ours
 * is asked anew each time that we come into the trash: one that was stopped in between would
 * throw what another has completed. *o is closed then.
 */
static int keep_own(struct run *run, glfs_object_t **o, struct error *err)
{
	char text[OBJECT_TEXT_MAX];
	object_text(*o, text);
	if (streq(text, jstr(run->info, "object")))
		return 0;
	glfs_h_close(TAKE_PTR(*o));
	int rc = pool_throw_checked(run->to, run->to_dir, run->r->name, run->r->name, may_throw,
				    run, err);
	return rc < 0 ? rc : 0;
}

/* The info says what is written to, before anything is. */
static int put_object(struct run *run, glfs_object_t *o, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(run->p, r->kind, r->name);
	cleanup_json json_t *info = NULL;
	object_text(o, run->object);
	if (streq(run->object, jstr(run->info, "object")))
		return 0;
	int rc = check_info(run, &info, err);
	if (rc < 0)
		return rc;
	json_object_del(info, "done"); /* of what is not there any more */
	json_object_set_new(info, "object", json_string(run->object));
	rc = put_info(run, info, err);
	if (rc == 0) {
		json_decref(run->info);
		run->info = TAKE_PTR(info);
	}
	return rc;
}

/* The copy is complete, and goes to its place in a whole volume: that is gone on with from now on. */
static int put_moving(struct run *run, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(run->p, r->kind, r->name);
	cleanup_json json_t *info = NULL;
	int rc = check_info(run, &info, err);
	if (rc < 0)
		return rc;
	json_object_set_new(info, "moving", json_true());
	return put_info(run, info, err);
}

static int put_progress(struct run *run, int64_t done, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(run->p, r->kind, r->name);
	cleanup_json json_t *info = NULL;
	int rc = check_info(run, &info, err);
	if (rc < 0)
		return rc;
	json_object_set_new(info, "done", json_integer(done));
	json_object_set_new(info, "sourceTime",
			    json_pack("[I, I]", (json_int_t)run->source_st.st_mtim.tv_sec,
				      (json_int_t)run->source_st.st_mtim.tv_nsec));
	rc = put_info(run, info, err);
	if (rc == 0) {
		json_decref(run->info);
		run->info = TAKE_PTR(info);
	}
	return rc;
}

static int on_progress(int64_t done, void *userdata, struct error *err)
{
	struct run *run = userdata;
	if (glfs_fsync(run->to_fd, NULL, NULL) < 0)
		return error_errno(err, errno, "cannot write a copy");
	return put_progress(run, done, err);
}

static bool same_mtime(const struct stat *a, const struct stat *b)
{
	return a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_size == b->st_size;
}

/* A read told of another mtime: asked once more, since not every layer fills in what a read tells. */
static bool source_changed(const struct timespec *mtime, void *userdata)
{
	struct run *run = userdata;
	struct stat now;
	const struct timespec *was = &run->source_st.st_mtim;
	if (mtime->tv_sec == was->tv_sec && mtime->tv_nsec == was->tv_nsec)
		return false;
	return glfs_fstat(run->from_fd, &now) == 0 && !same_mtime(&run->source_st, &now);
}

/* How much of the file is copied, where its source is what it was then. */
static int64_t done_before(const struct run *run)
{
	const json_t *time = jget(run->info, "sourceTime");
	int64_t done = jint(run->info, "done");
	if (json_integer_value(json_array_get(time, 0)) != run->source_st.st_mtim.tv_sec ||
	    json_integer_value(json_array_get(time, 1)) != run->source_st.st_mtim.tv_nsec)
		return 0;
	return done > 0 && done <= run->source_st.st_size ? done : 0;
}

/*
 * A file is a disk: its copy is good only if nobody wrote to the source from the first read to the last, which its
 * mtime tells (the worker's client caches no attributes). 1: somebody did.
 */
static int try_file(struct run *run, struct error *err)
{
	struct stat after;
	struct copy_data data = { run->stop, run->buffer, on_progress, source_changed, run };
	if (glfs_fstat(run->from_fd, &run->source_st) < 0)
		return error_errno(err, errno, "cannot look at a file to copy");
	int64_t done = done_before(run);
	if (done == 0) {
		int rc = put_progress(run, 0, err);
		if (rc < 0)
			return rc;
	}
	if (glfs_ftruncate(run->to_fd, done, NULL, NULL) < 0)
		return error_errno(err, errno, "cannot begin a copy anew");
	int rc = copy_data(&data, run->from_fd, run->to_fd, done, run->source_st.st_size, err);
	if (rc != 0)
		return rc;
	if (glfs_fstat(run->from_fd, &after) < 0)
		return error_errno(err, errno, "cannot look at a file that was copied");
	return !same_mtime(&run->source_st, &after);
}

static int fill_file(struct run *run, struct error *err)
{
	int rc = 1;
	run->from_fd = glfs_h_open(run->p->fs, run->source, O_RDONLY | O_NOFOLLOW);
	if (!run->from_fd)
		return error_errno(err, errno, "cannot open %s", run->r->from);
	for (int i = 0; rc == 1 && i < FILE_TRIES; i++)
		rc = try_file(run, err);
	glfs_close(run->from_fd);
	if (rc == 1)
		return error_set(err, EBUSY,
				 "volume %s was written to while it was copied, %d times; stop or "
				 "freeze what uses it",
				 run->r->from, FILE_TRIES);
	int64_t size = jint(run->info, "size");
	if (rc == 0 && size > run->source_st.st_size &&
	    glfs_ftruncate(run->to_fd, size, NULL, NULL) < 0)
		rc = error_errno(err, errno, "cannot make %s longer", run->r->name);
	return rc;
}

static int copy_file(struct run *run, struct error *err)
{
	struct stat st;
	const char *name = run->r->name;
	cleanup_object glfs_object_t *to = glfs_h_lookupat(run->p->fs, run->to_dir, name, &st, 0);
	bool missing = !to && errno == ENOENT;
	int rc = 0;
	if (to && !S_ISREG(st.st_mode))
		return error_set(err, EINVAL, "%s in the pool is not a plain file", name);
	if (to) {
		rc = keep_own(run, &to, err);
		missing = !to;
	}
	if (rc < 0)
		return rc;
	if (to)
		run->to_fd = glfs_h_open(run->p->fs, to, O_RDWR | O_NOFOLLOW);
	else if (missing)
		to = glfs_h_creat_open(run->p->fs, run->to_dir, name, O_CREAT | O_EXCL | O_RDWR,
				       0600, &st, &run->to_fd);
	if (!run->to_fd)
		return error_errno(err, errno, "cannot open %s in the pool", name);
	rc = put_object(run, to, err);
	if (rc == 0)
		rc = fill_file(run, err);
	int kept = file_keep(run->to_fd, rc < 0 ? NULL : err);
	return rc < 0 ? rc : kept;
}

/*
 * A file that is moved while its tree is copied, as logs are, may be in the copy twice; one that is moved ahead of the
 * copy all the time is not to fill the pool.
 */
static int64_t limit_of(int64_t size)
{
	return size > INT64_MAX / 2 - TREE_SPARE ? INT64_MAX : 2 * size + TREE_SPARE;
}

/* Each object's own: two workers never share one. */
static char *links_name(enum volume_kind kind, const char *name, const char *object)
{
	return xasprintf("%c.%s.%s", (char)kind, name, object);
}

static int copy_directory(struct run *run, struct error *err)
{
	struct stat st;
	const char *name = run->r->name;
	cleanup_object glfs_object_t *to = glfs_h_lookupat(run->to->fs, run->to_dir, name, &st, 0);
	bool missing = !to && errno == ENOENT;
	int rc = 0;
	if (to) {
		rc = keep_own(run, &to, err);
		missing = !to;
	}
	if (rc < 0)
		return rc;
	bool resumed = to;
	if (missing)
		to = glfs_h_mkdir(run->to->fs, run->to_dir, name, 0700, &st);
	if (!to)
		return error_errno(err, errno, "cannot make directory %s in the pool", name);
	if (!S_ISDIR(st.st_mode))
		return error_set(err, ENOTDIR, "%s in the pool is not a directory", name);
	rc = put_object(run, to, err);
	if (rc < 0)
		return rc;
	cleanup_free char *links = links_name(run->r->kind, name, run->object);
	struct copy_tree tree = { .p = run->to,
				  .from = run->from->fs,
				  .data = { .stop = run->stop, .buffer = run->buffer },
				  .links_name = links,
				  .limit = limit_of(jint(run->info, "size")) };
	return copy_tree(&tree, run->source, to, resumed, err);
}

/* ---- in the end --------------------------------------------------------------------------------- */

/* A whole volume's info goes last: while it is there, what its Gluster volume shows is the volume. */
static int open_root(struct run *run, glfs_object_t **ret, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_json json_t *info = NULL;
	int rc = info_get(run->p, r->from_kind, r->from, &info, err);
	if (rc < 0)
		return rc;
	*ret = glfs_h_lookupat(run->from->fs, NULL, "/", &run->source_st, 0);
	return *ret ? 0 : error_errno(err, errno, "cannot look into whole volume %s", r->from);
}

static int open_source(struct run *run, glfs_object_t **ret, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_object glfs_object_t *dir = NULL;
	struct error why = ERROR_INIT;
	int rc;
	if (r->from_kind == VOLUME_WHOLE) {
		rc = open_root(run, ret, &why);
	} else {
		rc = pool_leaf(run->p, PART_DATA, r->from_kind, r->from, false, &dir, &why);
		if (rc == 0 &&
		    !(*ret = glfs_h_lookupat(run->p->fs, dir, r->from, &run->source_st, 0)))
			rc = error_errno(&why, errno, "cannot open %s in the pool", r->from);
	}
	if (rc == -ENOENT)
		return error_set(err, ENOENT, "%s %s is gone, so it cannot be copied",
				 noun(r->from_kind), r->from);
	return rc < 0 ? error_set(err, -rc, "%s", why.message) : 0;
}

/*
 * A source that was removed meanwhile has gone to the trash, whose emptying looks to the copy as if its
 * user had deleted all: what is not in its place any more was not copied whole.
 */
static int check_source(struct run *run, struct error *err)
{
	unsigned char before[GFAPI_HANDLE_LENGTH], now[GFAPI_HANDLE_LENGTH];
	glfs_object_t *source;
	int rc = open_source(run, &source, err);
	if (rc < 0)
		return rc;
	bool same = glfs_h_extract_handle(run->source, before, sizeof(before)) > 0 &&
		    glfs_h_extract_handle(source, now, sizeof(now)) > 0 &&
		    memcmp(before, now, sizeof(now)) == 0;
	glfs_h_close(source);
	return same ? 0
		    : error_set(err, ENOENT, "%s %s was removed while it was copied",
				noun(run->r->from_kind), run->r->from);
}

static int finish(struct run *run, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(run->p, r->kind, r->name);
	cleanup_json json_t *info = NULL;
	int rc = check_info(run, &info, err);
	if (rc == 0)
		rc = check_source(run, err);
	if (rc == 0)
		rc = copy_forget(run->p, r->kind, r->name, run->info, err);
	if (rc < 0)
		return rc;
	json_object_del(info, "done");
	json_object_del(info, "sourceTime");
	json_object_del(info, "moving");
	json_object_del(info, "place");
	json_object_set_new(info, "ready", json_true());
	if (run->object[0])
		json_object_set_new(info, "object", json_string(run->object));
	return put_info(run, info, err);
}

int copy_forget(struct pool_fs *p, enum volume_kind kind, const char *name, const json_t *info,
		struct error *err)
{
	const char *object = jstr(info, "object");
	if (!object || kind == VOLUME_WHOLE) /* whose goes with its place */
		return 0;
	cleanup_free char *links = links_name(kind, name, object);
	return copy_tree_forget(p, links, err);
}

/* Before anything is locked: it may take its time. */
static int open_wholes(struct run *run, struct error *err)
{
	int rc = 0;
	if (run->r->from_kind == VOLUME_WHOLE)
		rc = whole_open(run->p, run->r->from, &run->from, err);
	if (rc == 0 && run->r->kind == VOLUME_WHOLE)
		rc = whole_open(run->p, run->r->name, &run->to, err);
	return rc;
}

/*
 * What has gone is of the copy: -ENOENT would mean the source. Another took over, or whatever it was passes.
 */
static int gone_is_again(struct run *run, int rc, const struct error *why, struct error *err)
{
	if (rc == -ENOENT || rc == -ESTALE) {
		int again = check_ours(run, err);
		return again < 0 ? again : error_set(err, EAGAIN, "%s", why->message);
	}
	return error_set(err, -rc, "%s", error_text(why, rc));
}

static struct whole_copy whole_of(struct run *run)
{
	return (struct whole_copy){ run->to, jstr(run->info, "place"), check_ours, run };
}

/* Without a lock, since it may have much to delete. */
static int start_whole(struct run *run, struct error *err)
{
	struct whole_copy c = whole_of(run);
	struct error why = ERROR_INIT;
	int rc = whole_check_source(run->from->fs, run->source, err);
	if (rc < 0 || jbool(run->info, "moving"))
		return rc;
	run->to->stop = run->stop;
	rc = whole_begin(&c, !jstr(run->info, "object"), &why);
	run->to_dir = run->to->own;
	return rc < 0 ? gone_is_again(run, rc, &why, err) : 0;
}

static int start(struct run *run, struct error *err)
{
	const struct copy_request *r = run->r;
	cleanup_name_lock pthread_mutex_t *lock = pool_name_lock(run->p, r->kind, r->name);
	int rc = check_info(run, &run->info, err);
	if (rc == 0)
		rc = open_source(run, &run->source, err);
	if (rc < 0)
		return rc;
	return r->kind == VOLUME_WHOLE
		       ? 0
		       : pool_leaf(run->p, PART_DATA, r->kind, r->name, true, &run->to_dir, err);
}

/* What is kept beside an object that is the copy no more, since another began anew, is nobody's. */
static void clean_up(const struct run *run)
{
	const struct copy_request *r = run->r;
	cleanup_json json_t *info = NULL, *own = json_pack("{s:s}", "object", run->object);
	int rc = info_get(run->p, r->kind, r->name, &info, NULL);
	if (run->object[0] && (rc == 0 || rc == -ENOENT) &&
	    !streq(jstr(info, "object"), run->object))
		copy_forget(run->p, r->kind, r->name, own, NULL);
}

/* A tree, and where it is one's: to the root of the whole volume. */
static int run_tree(struct run *run, struct error *err)
{
	const struct copy_request *r = run->r;
	struct error why = ERROR_INIT;
	int rc = jbool(run->info, "moving") ? 0 : copy_directory(run, &why);
	if (rc == 0 && r->kind == VOLUME_WHOLE)
		rc = put_moving(run, &why);
	if (rc == 0 && r->kind == VOLUME_WHOLE) {
		struct whole_copy c = whole_of(run);
		rc = whole_settle(&c, r->name, run->from->fs, run->source, run->buffer, &why);
	}
	return rc < 0 ? gone_is_again(run, rc, &why, err) : 0;
}

static void run_done(struct run *run, int rc)
{
	bool answer = rc == 0 || rc == -ECANCELED || rc == -EALREADY;
	if (run->source)
		glfs_h_close(run->source);
	if (run->to_dir && run->r->kind != VOLUME_WHOLE) /* that one is its volume's own */
		glfs_h_close(run->to_dir);
	if (run->from != run->p)
		whole_close(run->from, answer);
	if (run->to != run->p)
		whole_close(run->to, answer);
	json_decref(run->info);
}

int copy_run(struct pool_fs *p, const struct copy_request *r, const atomic_bool *stop,
	     struct error *err)
{
	cleanup_free char *buffer = xmalloc(COPY_BUFFER);
	struct run run = { .p = p, .from = p, .to = p, .r = r, .stop = stop, .buffer = buffer };
	int rc = open_wholes(&run, err);
	if (rc == 0)
		rc = start(&run, err);
	if (rc == 0 && r->kind == VOLUME_WHOLE)
		rc = start_whole(&run, err);
	if (rc == 0 && S_ISDIR(run.source_st.st_mode))
		rc = run_tree(&run, err);
	else if (rc == 0 && S_ISREG(run.source_st.st_mode))
		rc = copy_file(&run, err);
	else if (rc == 0)
		rc = error_set(err, EINVAL, "%s in the pool is neither a file nor a directory",
			       r->from);
	if (rc == 0)
		rc = finish(&run, err);
	if (rc < 0)
		clean_up(&run);
	run_done(&run, rc);
	/* would say that the pool is lost, which is another volume */
	if (rc == -ENOTCONN && (run.from != p || run.to != p))
		return -EAGAIN;
	return rc == -EALREADY ? 0 : rc;
}
