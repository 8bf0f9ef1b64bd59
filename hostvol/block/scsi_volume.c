/* SPDX-License-Identifier: Apache-2.0 */
#include "scsi_volume.h"

#include "base/mem.h"
#include "usage.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define OPEN_MS 5000 /* for a new disk to be opened */

const char *const scsi_volume_form[] = { "map", NULL };

/* The disks of a volume's paths. */
struct disks {
	char names[SCSI_PATHS_MAX][DISK_NAME_MAX];
	int count;
};

int check_addressing_mode(const char *value, struct error *err)
{
	static const char *const modes[] = { "transparent", "SAM", "SAM2", "SAM3-flat" };

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++)
		if (streq(value, modes[i]))
			return 0;
	return error_set(err, EINVAL,
			 "\"%.40s\" is neither \"transparent\" nor \"SAM2\" nor \"SAM3-flat\"",
			 value);
}

int scsi_wants_multipath(const struct call *c, const struct attachment *a, int paths,
			 struct error *err)
{
	const json_t *said = jget(a->params, "multipath");
	bool enforce = jbool(a->params, "enforceMultipath");
	bool wanted = said ? json_is_true(said) : enforce || paths > 1;

	if (!wanted || c->host->multipathd_runs(c->host))
		return wanted;
	if (enforce || said)
		return error_set(err, EOPNOTSUPP,
				 "multipath is asked for, and multipathd does not run (package "
				 "multipath-tools)");
	return 0;
}

static int find_disks(const struct call *c, const struct scsi_paths *paths, struct disks *ret)
{
	ret->count = 0;
	for (int i = 0; i < paths->count; i++) {
		int r = scsi_find(c, &paths->at[i], ret->names[ret->count]);

		if (r < 0)
			return r;
		ret->count += r;
	}
	return 0;
}

/* The map on top of any of the paths. */
static int find_map(const struct call *c, const struct disks *d, struct map *ret)
{
	int r = 0;

	for (int i = 0; i < d->count && r == 0; i++)
		r = map_of_path(c, d->names[i], ret);
	return r;
}

/* ---- connect -------------------------------------------------------------------------------- */

struct question {
	const struct call *c;
	const char *name, *expected, *recorded;
	struct identity *live;
	struct error *err;
	int result;
};

/* A disk that has just come cannot be opened at once. */
static int has_answered(void *arg)
{
	struct question *q = arg;

	q->result = identity_of_scsi(q->c, q->name, q->expected, q->recorded, q->live, q->err);
	return q->result != -ENXIO;
}

static int check_identity(const struct call *c, struct attachment *a, const char *name,
			  struct identity *live, struct error *err)
{
	struct question q = { .c = c,
			      .name = name,
			      .expected = attachment_param(a, "wwn"),
			      .recorded = attachment_detail(a, "identity"),
			      .live = live,
			      .err = err };
	cleanup_watch struct watch w = WATCH_INIT;
	char where[64];
	int r = watch_open(c, &w, err);

	if (r >= 0)
		r = watch_until(c, &w, OPEN_MS, has_answered, &q, err);
	if (r < 0)
		return q.result < 0 ? q.result : r;
	if (q.result < 0)
		return q.result;
	snprintf(where, sizeof(where), "/dev/%s", name);
	return identity_check(a, where, live, q.expected, err);
}

static int remove_stale(const struct call *c, const char *name, struct error *err)
{
	struct map m;
	int r = map_of_path(c, name, &m);

	call_log(c, HOSTVOL_LOG_WARNING,
		 "/dev/%s is a volume that is not there any more; it is removed", name);
	if (r > 0)
		r = map_remove(c, &m, false, err);
	return r < 0 ? r : scsi_remove(c, name, SCSI_UNDO, err);
}

/* One path: its disk, and that it is our volume. */
static int connect_path(const struct call *c, struct attachment *a, const struct scsi_address *at,
			char name[static DISK_NAME_MAX], struct error *err)
{
	struct identity live;
	int r = scsi_find(c, at, name);

	if (r == 0)
		r = scsi_scan(c, at, name, err);
	if (r < 0)
		return r;
	r = check_identity(c, a, name, &live, err);
	/* what the kernel remembers is another volume's: size, and the maps made of it */
	if (r >= 0 && scsi_is_stale(c, name, &live)) {
		r = remove_stale(c, name, err);
		if (r >= 0)
			r = scsi_scan(c, at, name, err);
		if (r >= 0)
			r = check_identity(c, a, name, &live, err);
	}
	return r;
}

static int connect_paths(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
			 struct disks *ret, struct error *err)
{
	struct error problem = ERROR_INIT;
	int r = 0;

	ret->count = 0;
	for (int i = 0; i < paths->count; i++) {
		r = connect_path(c, a, &paths->at[i], ret->names[ret->count], &problem);
		if (r >= 0) {
			ret->count++;
			continue;
		}
		/* another volume on one path, and the paths must not be mixed */
		if (r == -ESTALE || r == -EBUSY || r == -ENOMEM)
			break;
		call_log(c, HOSTVOL_LOG_WARNING, "a path is left out: %s", problem.message);
	}
	if ((r < 0 && (r == -ESTALE || r == -EBUSY || r == -ENOMEM)) || !ret->count) {
		if (err)
			*err = problem;
		return r < 0 ? r : error_set(err, ENOENT, "there is no path to the volume");
	}
	return 0;
}

static int set_path(const struct call *c, struct attachment *a, const struct disk *d,
		    struct error *err)
{
	char path[300];
	char *copy;

	disk_link(c, d, path, sizeof(path));
	copy = strdup(path);
	if (!copy)
		return no_memory(err);
	free(a->path);
	a->path = copy;
	return attachment_set_detail(a, "device", d->path, err);
}

int scsi_volume_connect(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
			bool multipath, struct error *err)
{
	cleanup_free char *names = multipath ? map_names(c) : NULL;
	struct disks disks;
	struct map map = { 0 };
	struct disk d;
	int r = connect_paths(c, a, paths, &disks, err);

	if (r < 0)
		return r;
	if (multipath) {
		r = map_await(c, (const char(*)[DISK_NAME_MAX])disks.names, disks.count, names,
			      &map, err);
		if (r >= 0)
			r = attachment_set_detail(a, "map", map.uuid, err);
		return r < 0 ? r : set_path(c, a, &map.disk, err);
	}
	/* whatever it was connected with before, from now on none is missed */
	json_object_del(a->detail, "map");
	/* multipathd may take a single path too: then only the map can be opened */
	if (map_of_path(c, disks.names[0], &map) == 1)
		return set_path(c, a, &map.disk, err);
	r = disk_read(c, disks.names[0], &d);
	if (r < 0)
		return error_set(err, ENODEV, "/dev/%s went away", disks.names[0]);
	return set_path(c, a, &d, err);
}

/* ---- verify --------------------------------------------------------------------------------- */

int scsi_volume_verify(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		       struct error *err)
{
	bool multipath = attachment_detail(a, "map")[0];
	struct identity live;
	struct disks disks;
	struct map map;
	struct disk d;
	int r = find_disks(c, paths, &disks), good = 0;

	if (r < 0)
		return error_errno(err, -r, "cannot look for the volume's disks");
	if (!disks.count)
		return error_set(err, ENOENT,
				 "the volume is not on this host any more (a reboot, or its target "
				 "went away): connect it again");
	for (int i = 0; i < disks.count; i++) {
		r = check_identity(c, a, disks.names[i], &live, err);
		if (r == -ESTALE)
			return r;
		good += r >= 0;
	}
	if (!good)
		return r;
	r = find_map(c, &disks, &map);
	if (!multipath && r != 1)
		return disk_read(c, disks.names[0], &d) < 0 ? -ENODEV : set_path(c, a, &d, err);
	/* another map may have its number by now: known by its UUID */
	if (multipath && (r != 1 || !streq(map.uuid, attachment_detail(a, "map"))))
		return error_set(err, ENOENT, "the map %s is gone: connect the volume again",
				 attachment_detail(a, "map"));
	return set_path(c, a, &map.disk, err);
}

/* ---- remove --------------------------------------------------------------------------------- */

/* Before anything is touched: -EBUSY where somebody uses a path for himself. */
static int refuse_used(const struct call *c, const struct disks *disks, const char *map,
		       struct error *err)
{
	struct disk d;
	int r = 0;

	for (int i = 0; i < disks->count && r >= 0; i++)
		if (disk_read(c, disks->names[i], &d) >= 0)
			r = usage_refuse(c, &d, map, err);
	return r;
}

int scsi_volume_remove(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		       bool force, struct error *err)
{
	enum scsi_removal how = force			       ? SCSI_FORCE
				: a->state == STATE_CONNECTING ? SCSI_UNDO
							       : SCSI_CAREFUL;
	struct disks disks;
	struct map map;
	bool written;
	int mapped, r = find_disks(c, paths, &disks);

	if (r < 0)
		return error_errno(err, -r, "cannot look for the volume's disks");
	/* whatever was wanted when it was connected: what is there now counts */
	r = mapped = find_map(c, &disks, &map);
	/*
	 * All data goes through the map, which goes only when that is on the storage, now or in a call
	 * before: its paths have nothing of their own to write, and one that is dead could not.
	 */
	written = mapped || attachment_detail(a, "map")[0];
	/* one disk alone is looked at where it is removed */
	if (r >= 0 && !force && (written || disks.count > 1)) {
		r = refuse_used(c, &disks, mapped ? map.disk.name : NULL, err);
		if (how == SCSI_CAREFUL)
			how = written ? SCSI_WRITTEN : SCSI_LOOKED_AT;
	}
	if (r >= 0 && mapped)
		r = map_remove(c, &map, force, err);
	for (int i = 0; i < disks.count && r >= 0; i++)
		r = scsi_remove(c, disks.names[i], how, err);
	if (r >= 0 && mapped)
		map_forget(c, &map);
	return r;
}

/* ---- extend --------------------------------------------------------------------------------- */

static int add_path(json_t *array, const char *name, uint64_t before, uint64_t after,
		    const struct error *problem)
{
	return json_array_append_new(
		array, json_pack("{s:s, s:I, s:I, s:s*}", "device", name, "before",
				 (json_int_t)before, "after", (json_int_t)after, "error",
				 problem->message[0] ? problem->message : NULL));
}

static int extend_path(const struct call *c, const char *name, json_t *array, uint64_t *ret)
{
	struct error problem = ERROR_INIT;
	struct disk before = { 0 }, after = { 0 };

	disk_read(c, name, &before);
	after = before;
	if (scsi_rescan(c, name, &problem) >= 0)
		disk_read(c, name, &after);
	*ret = after.size;
	return add_path(array, before.path, before.size, after.size, &problem);
}

int scsi_volume_extend(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		       json_t *result, struct error *err)
{
	json_t *array = json_array();
	uint64_t least = UINT64_MAX, most = 0, size;
	struct error problem = ERROR_INIT;
	struct disks disks;
	struct map map;
	int r;

	if (json_object_set_new(result, "paths", array) < 0)
		return no_memory(err);
	r = scsi_volume_verify(c, a, paths, err);
	if (r < 0)
		return r;
	find_disks(c, paths, &disks);
	for (int i = 0; i < disks.count; i++) {
		if (extend_path(c, disks.names[i], array, &size) < 0)
			return no_memory(err);
		least = size < least ? size : least;
		most = size > most ? size : most;
	}
	/* a map with paths of different sizes would write beyond the end of some */
	if (least != most)
		return error_set(err, EIO,
				 "the paths disagree about the size (%" PRIu64 " and %" PRIu64
				 " bytes): bring the failed path back and extend again",
				 least, most);
	size = least;
	if (find_map(c, &disks, &map) == 1) {
		r = map.disk.size == least ? 0 : map_resize(c, &map, &problem);
		size = disk_read(c, map.disk.name, &map.disk) < 0 ? 0 : map.disk.size;
		if (r >= 0 && size != least)
			r = error_set(&problem, EIO, "%s has %" PRIu64 " bytes, its paths %" PRIu64,
				      map.disk.path, size, least);
		if (r < 0 && err)
			*err = problem;
	}
	if (r < 0)
		return r;
	return json_object_set_new(result, "size", json_integer((json_int_t)size)) < 0
		       ? no_memory(err)
		       : 0;
}

/* ---- plan ----------------------------------------------------------------------------------- */

static int plan_step(json_t *steps, const char *what, const char *name)
{
	char text[200];

	snprintf(text, sizeof(text), "flush and remove %s%s", what, name);
	return json_array_append_new(steps, json_string(text));
}

static int plan_disk(const struct call *c, const char *name, const char *map, json_t *devices,
		     json_t *users, struct error *err)
{
	cleanup_json json_t *list = NULL;
	struct disk d;
	int r = disk_read(c, name, &d);

	if (r < 0)
		return 0;
	r = usage_list(c, &d, map, &list, err);
	if (r < 0)
		return r;
	if (json_array_extend(users, list) < 0 ||
	    json_array_append_new(devices, json_string(d.path)) < 0)
		return no_memory(err);
	return 0;
}

int scsi_volume_plan(const struct call *c, struct attachment *a, const struct scsi_paths *paths,
		     json_t *result, struct error *err)
{
	json_t *devices = json_array(), *users = json_array(), *steps = jget(result, "steps");
	struct disks disks;
	struct map map;
	int r, mapped;

	if (json_object_set_new(result, "devices", devices) < 0 ||
	    json_object_set_new(result, "usedBy", users) < 0)
		return no_memory(err);
	find_disks(c, paths, &disks);
	mapped = find_map(c, &disks, &map);
	r = mapped > 0 ? plan_disk(c, map.disk.name, NULL, devices, users, err) : 0;
	for (int i = 0; i < disks.count && r >= 0; i++)
		r = plan_disk(c, disks.names[i], mapped > 0 ? map.disk.name : NULL, devices, users,
			      err);
	if (r < 0)
		return r;
	if (mapped > 0 && plan_step(steps, "the map ", map.name) < 0)
		return no_memory(err);
	for (int i = 0; i < disks.count; i++)
		if (plan_step(steps, "/dev/", disks.names[i]) < 0)
			return no_memory(err);
	return 0;
}
