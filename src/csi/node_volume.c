/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/handle.h"
#include "csi/node_service.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

int volume_begin(struct csi_node *n, const char *id, struct error *err)
{
	bool taken;

	pthread_mutex_lock(&n->lock);
	taken = strv_contains(&n->busy, id) || (n->switching && record_is_of(n->switching, id));
	if (!taken)
		strv_add(&n->busy, id);
	pthread_mutex_unlock(&n->lock);
	return taken ? error_set(err, EINPROGRESS, "another call works on volume %s", id) : 0;
}

void volume_end(struct csi_node *n, const char *id)
{
	pthread_mutex_lock(&n->lock);
	strv_remove(&n->busy, id);
	pthread_mutex_unlock(&n->lock);
}

bool record_begin(struct csi_node *n, const json_t *record)
{
	bool taken = false;

	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->busy.count; i++)
		taken |= record_is_of(record, n->busy.items[i]);
	if (!taken)
		n->switching = record;
	pthread_mutex_unlock(&n->lock);
	return !taken;
}

void record_end(struct csi_node *n)
{
	pthread_mutex_lock(&n->lock);
	n->switching = NULL;
	pthread_mutex_unlock(&n->lock);
}

int path_of(const struct csi_node *n, const char *what, const char *path, char **ret,
	    struct error *err)
{
	const char *rest = path;
	int r = check_target_path(what, path, n->typed_base, err);

	if (r < 0)
		return r;
	if (n->base)
		rest += strlen(n->typed_base);
	*ret = xasprintf("%s%s", n->base ? n->base : "", rest);
	return 0;
}

/* ---- what is staged --------------------------------------------------------------------------- */

char *device_place(const char *staging)
{
	return xasprintf("%s/device", staging);
}

char *device_node(unsigned major, unsigned minor)
{
	cleanup_free char *path = xasprintf("/sys/dev/block/%u:%u/uevent", major, minor);
	cleanup_free char *text = NULL;
	char *name;

	if (file_read(path, 0, &text, NULL, NULL) < 0)
		return NULL;
	name = strstr(text, "DEVNAME=");
	if (!name)
		return NULL;
	name += strlen("DEVNAME=");
	name[strcspn(name, "\n")] = '\0';
	return xasprintf("/dev/%s", name);
}

void staged_done(struct staged *s)
{
	json_decref(s->record);
	mount_entry_done(&s->entry);
	*s = (struct staged){ 0 };
}

static int look_for_device(const char *staging, struct staged *s, struct error *err)
{
	cleanup_free char *place = device_place(staging);
	struct stat st;
	int r = bind_find(place, &s->entry, err);

	if (r <= 0)
		return r;
	s->shape = SHAPE_DEVICE;
	/* a device's file: its file system is the kernel's own, which always answers */
	if (lstat(place, &st) == 0 && S_ISBLK(st.st_mode)) {
		s->major = major(st.st_rdev);
		s->minor = minor(st.st_rdev);
	}
	return 0;
}

/* A directory of a file system that was bound there by others (quartermaster mount) is one, too. */
static bool is_directory_mount(const json_t *record, const struct mount_entry *e)
{
	return jstr(record, "detail", "source") && record_is_mount(record, e);
}

int staged_look(json_t *record, struct staged *ret, struct error *err)
{
	const char *staging = jstr(record, "consumer");
	struct staged s = { .shape = SHAPE_DIRECTORY, .record = json_incref(record) };
	int r = bind_find(staging, &s.entry, err);

	if (r > 0 && !is_directory_mount(record, &s.entry)) {
		s.shape = SHAPE_FILESYSTEM;
		if (sscanf(s.entry.device, "%u:%u", &s.major, &s.minor) != 2)
			s.major = s.minor = 0;
	} else if (r == 0) {
		r = look_for_device(staging, &s, err);
	}
	if (r < 0) {
		staged_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

bool staged_is(const struct staged *s, const struct mount_entry *e)
{
	if (s->shape == SHAPE_DIRECTORY)
		return record_is_mount(s->record, e);
	return streq(s->entry.device, e->device) && streq(s->entry.root, e->root);
}

void staged_find_loop(const struct staged *s, struct staged_loop *ret)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	const char *root = record_root(s->record);
	unsigned major, minor;
	dev_t now = 0;

	*ret = (struct staged_loop){ .state = LOOP_OTHER, .number = s->minor };
	if (s->major != LOOP_MAJOR) {
		ret->is_linear = linear_look(s->major, s->minor, &ret->linear) &&
				 ret->linear.count > 0;
		ret->number = ret->linear.loops[0];
	}
	if (!root || (s->major != LOOP_MAJOR && !ret->is_linear))
		return;
	if (bind_find(root, &e, NULL) > 0 && sscanf(e.device, "%u:%u", &major, &minor) == 2)
		now = makedev(major, minor);
	ret->state = loop_look(ret->number, root, record_sub(s->record), now, STEP_MS);
}

enum loop_state staged_loop(const struct staged *s)
{
	struct staged_loop l;

	staged_find_loop(s, &l);
	return l.state;
}

int staged_record(struct csi_node *n, const char *id, const char *staging, json_t **ret,
		  struct error *err)
{
	cleanup_json json_t *records = NULL;
	json_t *record;
	size_t i;
	int r = records_find(n->h, NULL, staging, &records, err);

	if (r < 0)
		return r;
	json_array_foreach (records, i, record)
		if (record_is_of(record, id)) {
			*ret = json_incref(record);
			return 1;
		}
	return 0;
}

int staged_candidates(struct csi_node *n, const char *id, json_t **ret, struct error *err)
{
	cleanup_json json_t *records = NULL;
	struct handle h;
	bool ours = handle_parse(id, &h, NULL) == 0;
	int r = records_find(n->h, id, NULL, &records, err);

	if (r == 0 && !json_array_size(records)) {
		json_decref(TAKE_PTR(records));
		/* one with a "volumeId" of its own in its context */
		r = records_find(n->h, ours ? h.name : NULL, NULL, &records, err);
	}
	if (r == 0) {
		ephemeral_settle(n, records);
		*ret = TAKE_PTR(records);
	}
	return r;
}

static int look_at(json_t *record, const char *path, const struct mount_entry *e, bool mounted,
		   struct staged *ret, struct error *err)
{
	cleanup_with(staged_done) struct staged s = { 0 };
	int r = staged_look(record, &s, err);

	if (r < 0)
		return r;
	if (mounted ? !staged_is(&s, e) : !streq(jstr(record, "consumer"), path))
		return 0;
	*ret = s;
	s = (struct staged){ 0 };
	return 1;
}

int staged_at(struct csi_node *n, const char *id, const char *path, struct staged *ret,
	      struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	cleanup_json json_t *records = NULL;
	json_t *record;
	size_t i;
	int mounted = bind_find(path, &e, err);
	int r = mounted < 0 ? mounted : staged_candidates(n, id, &records, err);

	json_array_foreach (records, i, record)
		if (r == 0 && record_is_of(record, id))
			r = look_at(record, path, &e, mounted > 0, ret, err);
	if (r < 0)
		return r;
	return r > 0 ? 0 : error_set(err, ENOENT, "volume %s is not at %s", id, path);
}

struct elsewhere {
	const struct staged *s;
	const char *target;
	char *device; /* the staging path's own */
	char *found;
};

static int is_elsewhere(const struct mount_entry *e, void *userdata)
{
	struct elsewhere *w = userdata;
	const json_t *record = w->s->record;

	if (!staged_is(w->s, e) || streq(e->mount_point, w->target) ||
	    streq(e->mount_point, jstr(record, "consumer")) || streq(e->mount_point, w->device) ||
	    streq(e->mount_point, record_root(record)))
		return 0;
	w->found = xstrdup(e->mount_point);
	return 1;
}

int staged_elsewhere(const struct staged *s, const char *target, char **ret, struct error *err)
{
	cleanup_free char *text = NULL, *device = device_place(jstr(s->record, "consumer"));
	struct elsewhere w = { .s = s, .target = target, .device = device };
	int r;

	/* the mount table does not say enough of a local directory to know it by that alone */
	if (s->shape == SHAPE_DIRECTORY && !jstr(s->record, "detail", "source"))
		return 0;
	r = file_read("/proc/self/mountinfo", 0, &text, NULL, err);
	if (r < 0)
		return r;
	r = mountinfo_each(text, is_elsewhere, &w);
	if (r > 0)
		*ret = w.found;
	return r < 0 ? error_errno(err, -r, "cannot read the mount table") : r;
}

/* ---- taking away ------------------------------------------------------------------------------ */

/* Nothing is taken from those who only get errors, or no answer at all, from a mount. */
static bool is_lost(const char *path)
{
	int r = bind_probe(path, STEP_MS / 2);

	return bind_is_dead(r) || r == -ETIMEDOUT;
}

int take_away(const char *path, bool force, int timeout_ms, struct error *err)
{
	for (int i = 0; i < STACKED_MAX; i++) {
		cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
		int r = bind_find(path, &e, err);

		if (r <= 0)
			return r;
		r = bind_unmount(path, force, timeout_ms, err);
		if ((r == -EBUSY && is_lost(path)) || r == -ETIMEDOUT)
			r = bind_unmount(path, true, STEP_MS, err);
		if (r == -EBUSY)
			return error_set(err, EBUSY, "%s is in use; see by whom: fuser -vm %s",
					 path, path);
		/* -EINVAL: somebody else was faster */
		if (r < 0 && r != -EINVAL)
			return r;
	}
	return error_set(err, EBUSY, "%s is still mounted", path);
}
