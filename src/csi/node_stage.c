/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"
#include "base/mem.h"
#include "core/driver.h"
#include "core/host.h"
#include "csi/filesystem.h"
#include "csi/handle.h"
#include "csi/node_service.h"
#include "csi/pools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define ATTACH_MS 30000
#define DEFAULT_FS "ext4"
#define PLACE_MODE 0750

/* ---- devices ---------------------------------------------------------------------------------- */

/* A block device to be staged: hostvol's own, or a loop device on its file, perhaps with one above. */
struct device {
	struct loop loop; /* fd -1 for hostvol's own */
	struct linear linear; /* fd -1 for none */
	int pin; /* hostvol's own, held open: while it is, its name and numbers are no other disk's */
	char *path;
};
#define DEVICE_INIT                                                                                \
	{                                                                                          \
		.loop = LOOP_INIT, .linear = LINEAR_INIT, .pin = -1                                \
	}

static void device_done(struct device *d)
{
	linear_close(&d->linear);
	loop_close(&d->loop);
	cleanup_close_p(&d->pin);
	free(d->path);
}

/* A single writer in a GlusterFS volume: what its client does not open again, node_switch.c does. */
static bool can_switch(const json_t *record, const struct loop_options *o)
{
	return o->lock == LOOP_LOCK_WRITER && !o->read_only && *o->sub &&
	       streq(jstr(record, "driverVolumeType"), "GLUSTERFS") && linear_available();
}

/* Without it all goes well until bricks restart. */
static void put_above(const struct loop_options *o, struct device *d)
{
	struct error err = ERROR_INIT;
	int r = linear_make(&d->loop, o->root, o->sub, STEP_MS, &d->linear, &err);

	if (r < 0)
		log_warn("%s will miss a copy whose brick restarts: %s", o->sub,
			 error_text(&err, r));
}

static int device_of_file(const json_t *record, const struct wanted *w, struct device *ret,
			  struct error *err)
{
	struct loop_options o = {
		.root = record_root(record),
		.sub = record_sub(record),
		.lock = w->unlocked	? LOOP_LOCK_NONE
			: w->many_nodes ? LOOP_LOCK_SHARED
					: LOOP_LOCK_WRITER,
		.read_only = w->read_only,
	};
	int r = 0;

	if (can_switch(record, &o)) {
		o.slots = loop_slots(o.sub);
		r = linear_sweep(o.root, o.sub, STEP_MS, err);
	}
	if (r == 0)
		r = loop_attach(&o, ATTACH_MS, &ret->loop, err);
	if (r < 0)
		return r;
	if (o.slots)
		put_above(&o, ret);
	ret->path = xstrdup(ret->linear.fd >= 0 ? ret->linear.device : ret->loop.device);
	return 0;
}

static int device_pin(const char *path, const struct host_stat *st, int *ret, struct error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct stat is;

	if (fd < 0 || fstat(fd, &is) < 0)
		return error_errno(err, errno, "cannot open %s", path);
	if (!S_ISBLK(is.st_mode) || is.st_rdev != makedev(st->major, st->minor))
		return error_set(err, ESTALE, "%s is not %u:%u any more: try again", path,
				 st->major, st->minor);
	*ret = TAKE_FD(fd);
	return 0;
}

static int device_open(const json_t *record, const struct host_stat *st, const struct wanted *w,
		       struct device *ret, struct error *err)
{
	if (st->type == HOST_FILE_REGULAR)
		return device_of_file(record, w, ret, err);
	ret->path = device_node(st->major, st->minor);
	if (!ret->path)
		return error_set(err, ENODEV, "%s is gone", jstr(record, "path"));
	return device_pin(ret->path, st, &ret->pin, err);
}

/* What is staged, compared with what hostvol has now. */
static enum loop_state compare(const struct staged *s, const struct host_stat *st)
{
	if (st->type == HOST_FILE_REGULAR)
		return staged_loop(s);
	return s->major == st->major && s->minor == st->minor ? LOOP_SERVES : LOOP_OTHER;
}

/*
 * 1: staged already. One whose client died is taken away: its users only get errors from it, and
 * the file is used by a new client from now on. So is a device that nothing is behind any more,
 * since its making was interrupted.
 */
static int keep_staged(const struct staged *s, const struct host_stat *st, const struct wanted *w,
		       struct error *err)
{
	enum shape shape = w->block ? SHAPE_DEVICE : SHAPE_FILESYSTEM;
	const char *staging = jstr(s->record, "consumer");
	bool ro = strncmp(s->entry.options ? s->entry.options : "", "ro", 2) == 0;
	bool wanted_ro = w->set & MOUNT_ATTR_RDONLY; /* by its access mode, or by its mount flags */
	enum loop_state state;

	if (s->shape == SHAPE_DIRECTORY)
		return 0;
	state = compare(s, st);
	if (s->shape != shape || (shape == SHAPE_FILESYSTEM && state == LOOP_OTHER))
		return error_set(err, EEXIST, "%s is staged already, as something else (%s)",
				 staging, s->entry.source);
	if (state != LOOP_SERVES) {
		log_warn("what is staged at %s is dead; it is made again", staging);
		return stage_remove(s, true, err);
	}
	if (shape == SHAPE_FILESYSTEM && ro != wanted_ro)
		return error_set(err, EEXIST, "%s is staged already, %s", staging,
				 ro ? "for reading only" : "for writing, too");
	return 1;
}

/* Whether the storage itself keeps other nodes out, as its driver was told. */
static bool held_by_driver(const json_t *record)
{
	const struct driver *driver;
	const char *name = jstr(record, "driverVolumeType");

	return name && driver_find(name, &driver, NULL) == 0 && driver->exclusive &&
	       json_is_true(jget(record, "data", driver->exclusive));
}

/* Whether the device is another volume's here, too, which needs it as it is. staged: and uses it. */
static bool is_shared(struct csi_node *n, const json_t *record, bool staged)
{
	cleanup_json json_t *records = NULL;
	json_t *other;
	size_t i;

	if (records_find(n->h, NULL, NULL, &records, NULL) < 0)
		return true;
	json_array_foreach (records, i, other) {
		cleanup_with(staged_done) struct staged s = { 0 };

		if (!streq(jstr(other, "path"), jstr(record, "path")) ||
		    streq(jstr(other, "consumer"), jstr(record, "consumer")))
			continue;
		if (!staged || staged_look(other, &s, NULL) < 0 || s.shape != SHAPE_DIRECTORY)
			return true;
	}
	return false;
}

/* A device is either for readers or for writers here, from before it is staged. */
static int set_access(struct csi_node *n, const struct staged *s, const struct host_stat *st,
		      const struct wanted *w, struct error *err)
{
	bool shared;

	if (st->type != HOST_FILE_BLOCK || s->shape != SHAPE_DIRECTORY)
		return 0;
	shared = is_shared(n, s->record, true);
	if (w->read_only)
		return shared ? 0 : device_make_reader(n, st->major, st->minor, err);
	if (shared && device_is_reader(n, st->major, st->minor))
		return error_set(err, EBUSY,
				 "%s is staged here for reading only, too: end the pod that reads it",
				 jstr(s->record, "path"));
	return device_end_reader(n, st->major, st->minor, err); /* of a reader that was killed */
}

/* A file's lock keeps other nodes out; of a device a reservation, or what its driver does. */
static int fence(struct csi_node *n, const struct staged *s, const struct host_stat *st,
		 const struct wanted *w, struct error *err)
{
	const char *path = jstr(s->record, "path");
	int r;

	if (st->type != HOST_FILE_BLOCK || w->read_only || w->many_nodes || w->unfenced ||
	    held_by_driver(s->record))
		return 0;
	if (s->shape != SHAPE_DIRECTORY)
		r = device_fence_kept(n, st->major, st->minor, err);
	else
		r = device_fence(n, jstr(s->record, "consumer"), st->major, st->minor, err);
	if (r == -EOPNOTSUPP)
		return error_set(err, EINVAL,
				 "nothing keeps a second node from writing to %s, which has no "
				 "persistent reservations: set fencing: none in the volume's "
				 "attributes to use it all the same",
				 path);
	return r < 0 ? error_prefix(err, "%s", path) : 0;
}

/*
 * 1: another node has taken it. A reservation of this node's goes only when its last data has gone:
 * whoever comes next would find it half written, and the target refuse the rest. One that is not
 * reserved, or does not answer, is left to hostvol, which looks for itself.
 */
static int unfence(struct csi_node *n, const json_t *record, struct error *err)
{
	const char *path = jstr(record, "path");
	struct host_stat st = { 0 };
	int held, r;

	if (is_shared(n, record, false) || n->host->stat(n->host, path, &st, STEP_MS) < 0 ||
	    st.type != HOST_FILE_BLOCK)
		return 0;
	r = device_end_reader(n, st.major, st.minor, err);
	if (r < 0)
		return r;
	held = device_fence_kept(n, st.major, st.minor, NULL);
	if (held > 0)
		r = device_await_idle(n, st.major, st.minor, err);
	if (r < 0)
		return r;
	r = n->host->flush(n->host, path, WRITE_OUT_MS);
	if (held > 0 && r < 0)
		return error_errno(err, -r, "cannot bring what was written to %s to the storage",
				   path);
	return held != 0 && device_unfence(n, st.major, st.minor);
}

int stage_disconnect(struct csi_node *n, const json_t *record, struct error *err)
{
	int lost = unfence(n, record, err), r;

	if (lost < 0)
		return lost;
	r = record_disconnect(n->h, record, 0, err);
	/* what was written here since then cannot be brought to the storage, and must not */
	return r == -EIO && lost ? record_disconnect(n->h, record, HOSTVOL_FORCE, err) : r;
}

/* ---- file systems ----------------------------------------------------------------------------- */

/* The type that is on the device; an empty one is formatted. */
static int settle_fs(const char *device, const struct wanted *w, char type[static FS_NAME_MAX],
		     struct error *err)
{
	const char *want = *w->fs_type ? w->fs_type : DEFAULT_FS;
	int r = filesystem_probe(device, type, err);

	if (r < 0)
		return r;
	if (r > 0) {
		if (*w->fs_type && !streq(type, w->fs_type))
			return error_set(err, EINVAL, "the volume has %s, but %s is asked for",
					 type, w->fs_type);
		return w->read_only ? 0 : filesystem_check(device, type, err);
	}
	if (w->read_only)
		return error_set(err, EBUSY,
				 "the volume is empty, and cannot be formatted for reading only");
	log_info("%s is empty: formatting it as %s", device, want);
	snprintf(type, FS_NAME_MAX, "%s", want);
	return filesystem_make(device, want, err);
}

static int mount_staged(const struct csi_node *n, const struct filesystem_mount *m,
			const struct wanted *w, struct error *err)
{
	int r;

	ungrown_begin(n, m->target, w);
	r = filesystem_mount(m, err);
	/* the device of a reader is read-only itself */
	if (r == -EROFS && w->read_only)
		return error_set(err, EROFS,
				 "the file system on %s has a journal that must be replayed, which "
				 "a reader does not: end its writer, or use it for writing once",
				 m->device);
	if (r == 0)
		r = grow_staged(n, m, w, err);
	if (r < 0)
		ungrown_forget(n, m->target);
	return r;
}

static int stage_filesystem(const struct csi_node *n, const json_t *record,
			    const struct host_stat *st, const char *staging, const struct wanted *w,
			    struct error *err)
{
	cleanup_with(device_done) struct device d = DEVICE_INIT;
	char type[FS_NAME_MAX] = "";
	int r;

	if (w->many_nodes)
		return error_set(err, EINVAL,
				 "a file system of its own can be written by one node only: use a "
				 "directory volume for more");
	r = device_open(record, st, w, &d, err);
	if (r == 0)
		r = settle_fs(d.path, w, type, err);
	if (r < 0)
		return r;
	return mount_staged(n,
			    &(struct filesystem_mount){ .device = d.path,
							.type = type,
							.target = staging,
							.options = w->options,
							.read_only = w->read_only,
							.attributes = w->set },
			    w, err);
}

/* The device's file is bound below the staging path: so the mount table says which one it is. */
static int stage_device(const json_t *record, const struct host_stat *st, const char *staging,
			const struct wanted *w, struct error *err)
{
	cleanup_with(device_done) struct device d = DEVICE_INIT;
	cleanup_free char *place = device_place(staging);
	int r = place_make(place, PLACE_DEVICE, 0600, STEP_MS, err);

	if (r == 0)
		r = device_open(record, st, w, &d, err);
	if (r == 0)
		r = bind_mount(
			&(struct bind){
				.root = d.path, .sub = "", .target = place, .kind = PLACE_DEVICE },
			STEP_MS, err);
	if (r == 0 && d.linear.fd >= 0)
		r = linear_keep(&d.linear, STEP_MS, err);
	else if (r == 0 && d.loop.fd >= 0)
		r = loop_keep(&d.loop, STEP_MS, err);
	if (r < 0) {
		(void)take_away(place, true, STEP_MS, NULL);
		(void)place_remove(place, STEP_MS, NULL);
	}
	return r;
}

int stage_present(struct csi_node *n, const json_t *record, const char *staging,
		  const struct wanted *w, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	const char *path = jstr(record, "path");
	struct host_stat st = { 0 };
	int r = n->host->stat(n->host, path, &st, STEP_MS);

	if (r < 0)
		return error_errno(err, -r, "cannot look at %s", path);
	if (st.type == HOST_FILE_DIRECTORY)
		return !w->block ? 0
				 : error_set(err, EINVAL,
					     "the volume is a directory, and no block device");
	if (st.type != HOST_FILE_REGULAR && st.type != HOST_FILE_BLOCK)
		return error_set(err, EINVAL,
				 "%s is neither a directory, a file nor a block device", path);
	r = staged_look((json_t *)record, &s, err);
	if (r == 0)
		r = set_access(n, &s, &st, w, err);
	if (r == 0)
		r = fence(n, &s, &st, w, err);
	if (r == 0)
		r = keep_staged(&s, &st, w, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = place_make(staging, PLACE_DIRECTORY, PLACE_MODE, STEP_MS, err);
	if (r < 0)
		return r;
	return w->block ? stage_device(record, &st, staging, w, err)
			: stage_filesystem(n, record, &st, staging, w, err);
}

/* Ends it, at its last close. */
static int device_detach(const struct staged_loop *l, struct error *err)
{
	if (l->state == LOOP_OTHER)
		return 0;
	return l->is_linear ? linear_detach(&l->linear, STEP_MS, err)
			    : loop_detach(l->number, STEP_MS, err);
}

static int device_await_end(const struct staged_loop *l, struct error *err)
{
	int r = l->is_linear ? linear_await_end(&l->linear, STEP_MS, err) : 0;

	return r < 0 ? r : loop_await_end(l->number, STEP_MS, err);
}

int stage_remove(const struct staged *s, bool force, struct error *err)
{
	const char *staging = jstr(s->record, "consumer");
	cleanup_free char *place = device_place(staging);
	struct staged_loop l;
	int r = 0;

	if (s->shape == SHAPE_DIRECTORY)
		return 0;
	staged_find_loop(s, &l);
	/* nothing that is suspended can be unmounted */
	if (l.is_linear)
		r = linear_settle(&l.linear, STEP_MS, err);
	if (r == 0 && s->shape == SHAPE_FILESYSTEM) {
		r = take_away(staging, force, WRITE_OUT_MS, err);
	} else if (r == 0) {
		/* the device first: without its file in the mount table it would not be found again */
		r = device_detach(&l, err);
		if (r == 0)
			r = take_away(place, force, STEP_MS, err);
		if (r == 0)
			r = place_remove(place, STEP_MS, err);
	}
	/* with force others may use it on, and it goes with the last of them */
	return r == 0 && l.state != LOOP_OTHER && !force ? device_await_end(&l, err) : r;
}

/* ---- calls ------------------------------------------------------------------------------------ */

int connect_volume(struct csi_node *n, const char *connection, json_t **ret, struct error *err)
{
	cleanup_free char *text = NULL;
	struct hostvol_error failed = { 0 };
	int r = hostvol_connect_volume_json(n->h, connection, &text, &failed);

	return r < 0 ? from_hostvol(r, &failed, err) : json_parse(text, strlen(text), ret, err);
}

/* Options of a file system are for the one that hostvol mounts, unless the volume brings its own. */
static const char *options_for(const Csi__V1__NodeStageVolumeRequest *q, const struct wanted *w)
{
	struct map context = MAP_OF(q, volume_context);

	for (size_t i = 0; i < context.count; i++)
		if (streq(context.entries[i]->key, "driverVolumeType"))
			return options_are_of_mount(q->volume_id, context.entries[i]->value)
				       ? w->options
				       : "";
	return "";
}

/*
 * The context, and where this node alone writes also what makes the driver keep others out, if it can.
 * Caller frees the entries.
 */
static struct map context_for(const Csi__V1__NodeStageVolumeRequest *q, const struct wanted *w,
			      struct map_entry *more)
{
	struct map given = MAP_OF(q, volume_context), all = { 0 };
	const struct driver *driver = NULL;

	all.entries = xcalloc(given.count + 1, sizeof(struct map_entry *));
	for (; all.count < given.count; all.count++) {
		struct map_entry *e = all.entries[all.count] = given.entries[all.count];

		if (streq(e->key, "driverVolumeType"))
			(void)driver_find(e->value, &driver, NULL);
	}
	if (!driver || !driver->exclusive || w->read_only || w->many_nodes || w->unfenced)
		return all;
	for (size_t i = 0; i < all.count; i++)
		if (streq(all.entries[i]->key, driver->exclusive))
			return all;
	more->key = (char *)driver->exclusive;
	more->value = (char *)"true";
	all.entries[all.count++] = more;
	return all;
}

/* By its pool's hosts of today. before: its record, where it has one; anew: that is not kept to. */
static int connect_placed(struct csi_node *n, const Csi__V1__NodeStageVolumeRequest *q,
			  const char *staging, const struct wanted *w, const json_t *before,
			  bool anew, bool *ret_moved, json_t **ret, struct error *err)
{
	cleanup_with(placed_done) struct placed p = { 0 };
	struct map_entry exclusive = { 0 };
	struct map context = context_for(q, w, &exclusive);
	char *connection = NULL;
	int r;

	placed_context(n->pools_dir, q->volume_id, context, before, anew, &p);
	*ret_moved = p.moved;
	r = connection_of(p.context, MAP_OF(q, secrets), q->volume_id, staging, options_for(q, w),
			  &connection, err);
	if (r == 0)
		r = connect_volume(n, connection, ret, err);
	connection_free(connection);
	free(context.entries);
	return r;
}

static int stage(struct csi_node *n, const Csi__V1__NodeStageVolumeRequest *q, const char *staging,
		 const struct wanted *w, struct error *err)
{
	cleanup_json json_t *before = NULL, *record = NULL;
	bool moved = false;
	int known = staged_record(n, q->volume_id, staging, &before, err);
	int r = known < 0 ? known
			  : connect_placed(n, q, staging, w, before, false, &moved, &record, err);

	/* what was connected by hosts that are gone, and is not used any more (a reboot) */
	if (r < 0 && moved && record_disconnect(n->h, before, 0, NULL) >= 0) {
		known = 0;
		r = connect_placed(n, q, staging, w, NULL, true, &moved, &record, err);
	}
	if (r < 0)
		return r;
	r = stage_present(n, record, staging, w, err);
	if (r < 0 && !known)
		(void)stage_disconnect(n, record, NULL);
	return r;
}

int node_stage(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__NodeStageVolumeRequest *q = request;
	struct csi_node *n = grpc_call_userdata(call);
	cleanup_with(wanted_done) struct wanted w = { 0 };
	cleanup_free char *staging = NULL;
	int r = check_volume_id(q->volume_id, true, err);

	if (r == 0)
		r = path_of(n, "staging_target_path", q->staging_target_path, &staging, err);
	if (r == 0)
		r = wanted_read(q->volume_capability, &w, err);
	if (r == 0)
		r = context_unfenced(MAP_OF(q, volume_context), &w.unfenced, err);
	if (r == 0)
		r = volume_begin(n, q->volume_id, err);
	if (r < 0)
		return r;
	r = stage(n, q, staging, &w, err);
	volume_end(n, q->volume_id);
	if (r < 0)
		log_warn("cannot stage volume %s: %s", q->volume_id, error_text(err, r));
	else
		log_info("volume %s is staged", q->volume_id);
	return r;
}

static int unstage(struct csi_node *n, const char *id, const char *staging, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	cleanup_json json_t *record = NULL;
	int r = staged_record(n, id, staging, &record, err);

	if (r <= 0)
		return r < 0 ? r : unstage_leftover(n, id, staging, err);
	r = staged_look(record, &s, err);
	if (r == 0)
		r = stage_remove(&s, false, err);
	if (r == 0)
		ungrown_forget(n, staging);
	if (r == 0)
		r = linear_sweep(record_root(record), record_sub(record), STEP_MS, err);
	return r < 0 ? r : stage_disconnect(n, record, err);
}

int node_unstage(struct grpc_call *call, const void *request, void *reply, struct error *err)
{
	const Csi__V1__NodeUnstageVolumeRequest *q = request;
	struct csi_node *n = grpc_call_userdata(call);
	cleanup_free char *staging = NULL;
	int r = check_volume_id(q->volume_id, false, err);

	if (r == 0)
		r = path_of(n, "staging_target_path", q->staging_target_path, &staging, err);
	if (r == 0)
		r = volume_begin(n, q->volume_id, err);
	if (r < 0)
		return r;
	r = unstage(n, q->volume_id, staging, err);
	volume_end(n, q->volume_id);
	if (r < 0) {
		log_warn("cannot unstage volume %s: %s", q->volume_id, error_text(err, r));
		return r;
	}
	log_info("volume %s is unstaged", q->volume_id);
	return 0;
}
