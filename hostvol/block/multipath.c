/* SPDX-License-Identifier: Apache-2.0 */
#include "multipath.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "events.h"
#include "usage.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define COMMAND_MS 30000
#define ALL_PATHS_MS 10000 /* for the rest of its paths to join a map */
#define GONE_MS 30000
#define WWID_TEXT 128
#define WWIDS_MAX (4 << 20)

static int take_map(const char *name, void *userdata)
{
	struct map *m = userdata;

	snprintf(m->disk.name, sizeof(m->disk.name), "%.31s", name);
	return str_has_prefix(name, "dm-");
}

int map_of_path(const struct call *c, const char *path_disk, struct map *ret)
{
	struct map m = { 0 };
	char dir[64];
	int r;

	snprintf(dir, sizeof(dir), "/sys/block/%s/holders", path_disk);
	r = sys_each(c, dir, take_map, &m);
	if (r <= 0)
		return r;
	sys_line(c, m.uuid, sizeof(m.uuid), "/sys/block/%s/dm/uuid", m.disk.name);
	sys_line(c, m.name, sizeof(m.name), "/sys/block/%s/dm/name", m.disk.name);
	if (!str_has_prefix(m.uuid, "mpath-") || disk_read(c, m.disk.name, &m.disk) < 0)
		return 0;
	*ret = m;
	return 1;
}

int map_each_path(const struct call *c, const struct map *m,
		  int (*fn)(const char *name, void *userdata), void *userdata)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/sys/block/%s/slaves", m->disk.name);
	return sys_each(c, dir, fn, userdata);
}

static int count_one(const char *name, void *userdata)
{
	++*(int *)userdata;
	return 0;
}

int map_count_paths(const struct call *c, const struct map *m)
{
	int n = 0;

	map_each_path(c, m, count_one, &n);
	return n;
}

/* 0 where multipathd did as it was told; its words otherwise. */
static int command(const struct call *c, char *reply, size_t size, const char *verb,
		   const char *object, struct error *err)
{
	char text[256];
	int r = call_left(c, COMMAND_MS, err);

	if (r < 0)
		return r;
	snprintf(text, sizeof(text), "%s%s%s", verb, object[0] ? " " : "", object);
	r = c->host->multipathd(c->host, text, reply, size, r);
	if (r < 0)
		return error_errno(err, -r, "multipathd does not answer \"%s\"", text);
	if (str_has_prefix(reply, "fail") || strstr(reply, "error") || strstr(reply, "in use"))
		return error_set(err, EIO, "multipathd says \"%.*s\" to \"%s\"",
				 (int)strcspn(reply, "\n"), reply, text);
	return 0;
}

static int run(const struct call *c, const char *const *argv, struct error *err)
{
	struct host_result result;
	int r = call_left(c, COMMAND_MS, err);

	if (r < 0)
		return r;
	r = c->host->run(c->host, &(struct host_command){ .argv = argv, .timeout_ms = r }, &result);
	if (r < 0)
		return error_errno(err, -r, "cannot run %s", argv[0]);
	if (result.status)
		return error_set(err, EIO, "%s: %.*s", argv[0], (int)strcspn(result.err, "\n"),
				 result.err);
	return 0;
}

/* ---- what is remembered of it --------------------------------------------------------------- */

char *map_names(const struct call *c)
{
	cleanup_free char *path = NULL, *text = NULL;

	if (text_format(&path, NULL, "%s/etc/multipath/wwids", c->host->root) < 0)
		return NULL;
	if (file_read(path, WWIDS_MAX, &text, NULL, NULL) == -ENOENT)
		return strdup("");
	return TAKE_PTR(text);
}

static const char *wwid_of(const struct map *m)
{
	return m->uuid + strlen("mpath-");
}

/* A line of its own, between slashes. */
static bool has_name(const char *names, const char *wwid)
{
	size_t len = strlen(wwid);

	for (const char *p = names; (p = strchr(p, '/')); p += strcspn(p, "\n"))
		if ((p == names || p[-1] == '\n') && strncmp(p + 1, wwid, len) == 0 &&
		    p[len + 1] == '/')
			return true;
	return false;
}

/* Beside the records: like what it stands for, it outlives a reboot. */
static int note_path(const struct call *c, const struct map *m, char **dir, char **path)
{
	char id[HASH_TEXT_MAX];

	hash_of(id, m->uuid);
	if (text_format(dir, NULL, "%s/wwids", c->h->state_dir) < 0)
		return -ENOMEM;
	return text_format(path, NULL, "%s/%s", *dir, id);
}

/* Notes for map_forget that a map was made whose name was not there before. */
static void note(const struct call *c, const struct map *m, const char *before)
{
	cleanup_free char *dir = NULL, *path = NULL;

	if (!before || has_name(before, wwid_of(m)) || note_path(c, m, &dir, &path) < 0 ||
	    c->host->make_dir(c->host, dir, 0700) < 0)
		return;
	c->host->write_file(c->host, path, wwid_of(m), strlen(wwid_of(m)));
}

void map_forget(const struct call *c, const struct map *m)
{
	cleanup_free char *dir = NULL, *path = NULL;
	struct error problem = ERROR_INIT;

	if (note_path(c, m, &dir, &path) < 0 || access(path, F_OK) < 0)
		return;
	if (run(c, (const char *const[]){ "multipath", "-w", wwid_of(m), NULL }, &problem) < 0)
		call_log(c, HOSTVOL_LOG_WARNING, "%s stays in /etc/multipath/wwids: %s", wwid_of(m),
			 problem.message);
	else
		c->host->remove_file(c->host, path);
}

/* ---- coming --------------------------------------------------------------------------------- */

/* Unless it takes all it sees, multipathd makes maps only of those that it was told of by name. */
static bool takes_all(const struct call *c)
{
	static const char key[] = "find_multipaths";
	char config[4096];
	const char *value;

	if (command(c, config, sizeof(config), "show config local", "", NULL) < 0)
		return true;
	value = strstr(config, key);
	value = value ? value + strlen(key) : "";
	value += strspn(value, " \t\"");
	return !str_has_prefix(value, "strict") && !str_has_prefix(value, "smart") &&
	       !str_has_prefix(value, "on") && !str_has_prefix(value, "yes");
}

/* wwid: the name that was added, or "". */
static void introduce(const struct call *c, const char (*paths)[DISK_NAME_MAX], int count,
		      char wwid[static WWID_TEXT])
{
	char device[DISK_NAME_MAX + 8], reply[256];
	struct host_result result;
	int left = call_left(c, COMMAND_MS, NULL);

	wwid[0] = '\0';
	if (left < 0 || takes_all(c))
		return;
	snprintf(device, sizeof(device), "/dev/%s", paths[0]);
	if (c->host->run(c->host,
			 &(struct host_command){
				 .argv = (const char *const[]){ "multipath", "-a", device, NULL },
				 .timeout_ms = left },
			 &result) >= 0)
		sscanf(result.out, "wwid '%127[^']' added", wwid);
	for (int i = 0; i < count; i++)
		command(c, reply, sizeof(reply), "add path", paths[i], NULL);
}

struct wanted {
	const struct call *c;
	const char (*paths)[DISK_NAME_MAX];
	int count;
	struct map *map;
	int have; /* paths in it */
};

static int some_paths(void *arg)
{
	struct wanted *w = arg;
	struct map m;

	w->have = 0;
	for (int i = 0; i < w->count; i++)
		if (map_of_path(w->c, w->paths[i], &m) == 1 &&
		    (!w->have || streq(m.uuid, w->map->uuid))) {
			*w->map = m;
			w->have++;
		}
	return w->have && w->map->disk.size && sys_exists(w->c, "%s", w->map->disk.path);
}

static int all_paths(void *arg)
{
	struct wanted *w = arg;

	return some_paths(w) && w->have == w->count;
}

static int await(const struct call *c, const char (*paths)[DISK_NAME_MAX], int count,
		 char wwid[static WWID_TEXT], struct map *ret, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct map m = { 0 };
	struct wanted wanted = { .c = c, .paths = paths, .count = count, .map = &m };
	int r = watch_open(c, &w, err);

	if (r < 0)
		return r;
	if (!some_paths(&wanted))
		introduce(c, paths, count, wwid);
	r = watch_until(c, &w, 0, some_paths, &wanted, err);
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT,
				 "multipathd has made no map of %s within the time: \"multipath "
				 "-ll\" and its log say why",
				 paths[0]);
	if (r >= 0)
		r = watch_until(c, &w, ALL_PATHS_MS, all_paths, &wanted, err);
	if (r == -ETIMEDOUT) {
		call_log(c, HOSTVOL_LOG_WARNING, "%s has %d of %d paths so far", m.name,
			 wanted.have, count);
		r = some_paths(&wanted) ? 0
					: error_set(err, ENODEV, "the map %s went away", m.name);
	}
	if (r < 0)
		return r;
	*ret = m;
	return 0;
}

int map_await(const struct call *c, const char (*paths)[DISK_NAME_MAX], int count,
	      const char *before, struct map *ret, struct error *err)
{
	char wwid[WWID_TEXT] = "";
	int r = await(c, paths, count, wwid, ret, err);

	if (r >= 0) {
		note(c, ret, before);
	} else if (wwid[0] && before && !has_name(before, wwid)) {
		struct call undo = call_undo(c);

		run(&undo, (const char *const[]){ "multipath", "-w", wwid, NULL }, NULL);
	}
	return r;
}

/* ---- going ---------------------------------------------------------------------------------- */

struct departure {
	const struct call *c;
	const struct map *map;
};

static int has_gone(void *arg)
{
	struct departure *d = arg;
	char uuid[160];

	/* its name may be another's by now */
	sys_line(d->c, uuid, sizeof(uuid), "/sys/block/%s/dm/uuid", d->map->disk.name);
	return !streq(uuid, d->map->uuid);
}

/* Users of the map get errors instead of waiting for paths; it goes with the last of them. */
static int let_go(const struct call *c, const struct map *m)
{
	char reply[256];

	command(c, reply, sizeof(reply), "disablequeueing map", m->name, NULL);
	if (run(c, (const char *const[]){ "dmsetup", "remove", "--deferred", m->name, NULL },
		NULL) < 0)
		call_log(c, HOSTVOL_LOG_WARNING, "the map %s stays until somebody removes it",
			 m->name);
	return 0;
}

int map_remove(const struct call *c, const struct map *m, bool force, struct error *err)
{
	struct departure departure = { .c = c, .map = m };
	cleanup_watch struct watch w = WATCH_INIT;
	struct disk now;
	char reply[256];
	int r = watch_open(c, &w, err);

	if (r < 0 || has_gone(&departure) || disk_read(c, m->disk.name, &now) < 0)
		return r;
	r = usage_refuse(c, &now, NULL, err);
	if (r < 0 && !force)
		return r;
	if (r < 0)
		return let_go(c, m);
	r = force ? 0 : disk_flush(c, &now, err);
	if (r < 0)
		return r;
	r = command(c, reply, sizeof(reply), "del map", m->name, NULL);
	if (r < 0)
		r = run(c, (const char *const[]){ "multipath", "-f", m->name, NULL }, err);
	if (r >= 0)
		r = watch_until(c, &w, GONE_MS, has_gone, &departure, err);
	if (r >= 0)
		return 0;
	return force ? let_go(c, m)
		     : error_set(err, EBUSY, "the map %s could not be removed: it is in use",
				 m->name);
}

int map_resize(const struct call *c, const struct map *m, struct error *err)
{
	char reply[256];

	return command(c, reply, sizeof(reply), "resize map", m->name, err);
}
