/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quartermaster mount CLAIM DIR, umount DIR. The volume is connected with the directory as its
 * consumer, and then bound to the directory. So the record of hostvol, written before the first
 * step, says after a crash what was meant, and both verbs only have to be called again.
 */
#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "cli/claim.h"
#include "core/handle.h"
#include "hostvol/hostvol.h"
#include "local/client.h"
#include "mounts/bind.h"
#include "mounts/records.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#define TIMEOUT_MS 60000
#define STEP_MS 10000
#define QUOTA_MS 30000
#define STACKED_MAX 8

struct mounting {
	struct hostvol *h;
	struct clients_host *clients;
	char *dir; /* absolute */
	int lock; /* one at a time for each directory */
	bool force;
	uint64_t set, clear; /* MOUNT_ATTR_… of the mount at dir */
};

static void warn(enum hostvol_log_level level, const char *message, void *userdata)
{
	if (level >= HOSTVOL_LOG_WARNING)
		(void)fprintf(stderr, "quartermaster: %s\n", message);
}

static int take_lock(struct mounting *m, struct error *err)
{
	char id[HASH_TEXT_MAX];
	cleanup_free char *path = NULL;
	int r;

	hash_of(id, m->dir);
	path = run_path("mount-%s.lock", id);
	r = mkdir_parents(run_dir(), 0755, err);
	if (r < 0)
		return r;
	m->lock = lock_file(path, true, err);
	return m->lock < 0 ? m->lock : 0;
}

static int mounting_begin(struct mounting *m, const char *dir, bool make, int deadline_ms,
			  struct error *err)
{
	cleanup_free char *state = state_path("hostvol"), *run = run_path("hostvol");
	struct hostvol_error failed = { 0 };
	int r;

	if (geteuid() != 0)
		return error_set(err, EPERM, "mounting needs root");
	r = bind_target(dir, make, &m->dir, err);
	if (r < 0)
		return r;
	r = take_lock(m, err);
	if (r < 0)
		return r;
	r = local_clients_host(&m->clients, err);
	if (r < 0)
		return r;
	r = hostvol_open(&(struct hostvol_options){ .size = sizeof(struct hostvol_options),
						    .state_dir = state,
						    .run_dir = run,
						    .host = clients_host(m->clients),
						    .deadline_ms = deadline_ms,
						    .log = warn },
			 &m->h, &failed);
	return from_hostvol(r, &failed, err);
}

static void mounting_done(struct mounting *m)
{
	char id[HASH_TEXT_MAX];

	if (m->lock >= 0) {
		cleanup_free char *path = NULL;

		hash_of(id, m->dir);
		path = run_path("mount-%s.lock", id);
		(void)unlink(path);
		close(m->lock);
	}
	hostvol_close(m->h);
	clients_host_free(m->clients);
	free(m->dir);
}

/* ---- mount ------------------------------------------------------------------------------------ */

/*
 * Before anything is connected: the directory is free, or has this very volume. What a mount that
 * died left for it (another volume, connected but never bound) is ended. *ret_known: it has a record; *ret_shown: and is
 * mounted.
 */
static int check_free(struct mounting *m, const char *volume_id, bool *ret_known, bool *ret_shown,
		      struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	cleanup_json json_t *records = NULL;
	json_t *record;
	size_t i;
	int mounted = bind_find(m->dir, &e, err), r;

	if (mounted < 0)
		return mounted;
	r = records_find(m->h, NULL, m->dir, &records, err);
	if (r < 0)
		return r;
	json_array_foreach (records, i, record) {
		if (streq(jstr(record, "volumeId"), volume_id)) {
			*ret_known = true;
			continue;
		}
		if (mounted && record_is_mount(record, &e))
			return error_set(
				err, EBUSY,
				"volume %s is mounted on %s; first: quartermaster umount %s",
				jstr(record, "volumeId"), m->dir, m->dir);
		r = record_disconnect(m->h, record, m->force ? HOSTVOL_FORCE : 0, err);
		if (r < 0)
			return r;
	}
	if (mounted && !*ret_known)
		return error_set(err, EBUSY,
				 "%s is a mount point already (%s): choose another directory",
				 m->dir, e.source);
	*ret_shown = mounted;
	return 0;
}

/* 1: is there already. One whose client died is taken away first. */
static int bind_record(struct mounting *m, const json_t *record, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	int r = bind_find(m->dir, &e, err);

	if (r < 0)
		return r;
	if (r > 0) {
		if (!record_is_mount(record, &e))
			return error_set(
				err, EBUSY,
				"%s is a mount point already (%s): choose another directory",
				m->dir, e.source);
		if (bind_probe(m->dir, STEP_MS) >= 0)
			return 1;
		r = bind_unmount(m->dir, true, STEP_MS, err);
		if (r < 0)
			return r;
	}
	r = mkdir_parents(m->dir, 0755, err);
	if (r < 0)
		return r;
	return bind_mount(&(struct bind){ .root = record_root(record),
					  .sub = record_sub(record),
					  .target = m->dir,
					  .set = m->set,
					  .clear = m->clear },
			  STEP_MS, err);
}

/* What is to be mounted: its id, how to connect it, and the claim that must not be on its way out. */
struct what {
	struct session *s;
	const char *claim, *volume_id;
	const json_t *volume;
	char *connection;
};

static int check_claim(const struct what *w, struct error *err)
{
	cleanup_json json_t *claim = NULL;
	int r = kube_get(w->s->kube, &KIND_PVC, w->s->ns, w->claim, &claim, err);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r < 0 || object_deleting(claim) ||
	    !streq(jstr(claim, "spec", "volumeName"), object_name(w->volume)))
		return error_set(err, EBUSY,
				 "claim %s is being deleted, and its volume with it: mount another "
				 "one",
				 w->claim);
	return 0;
}

/*
 * The claim is looked at again when its volume is connected: who lets a claim go that was deleted looks for that after
 * the deletion. So one of the two sees the other. What is mounted keeps the claim; a record alone, of a mount that was
 * interrupted, or from before a reboot, does not.
 */
static int mount_volume(struct mounting *m, const struct what *w, struct error *err)
{
	const char *volume_id = w->volume_id, *connection = w->connection;
	cleanup_free char *text = NULL;
	cleanup_json json_t *record = NULL;
	struct hostvol_error failed = { 0 };
	bool known = false, shown = false;
	int r = check_free(m, volume_id, &known, &shown, err);

	if (r == 0 && !shown)
		r = check_claim(w, err);
	if (r < 0)
		return r;
	r = hostvol_connect_volume_json(m->h, connection, &text, &failed);
	if (r < 0)
		return from_hostvol(r, &failed, err);
	r = json_parse(text, strlen(text), &record, err);
	if (r < 0)
		return r;
	r = shown ? 0 : check_claim(w, err);
	if (r < 0)
		known = false; /* nobody uses what is left of it */
	else
		r = bind_record(m, record, err);
	if (r < 0 && !known)
		(void)record_disconnect(m->h, record, m->force ? HOSTVOL_FORCE : 0, NULL);
	return r;
}

int cmd_mount(struct session *s, const struct args *a)
{
	cleanup_with(mounting_done) struct mounting m = { .lock = -1 };
	cleanup_with(wanted_done) struct wanted flags = { 0 };
	cleanup_json json_t *volume = NULL;
	cleanup_free char *connection = NULL;
	const char *claim = a->words[0], *id;
	struct error err = ERROR_INIT;
	int64_t timeout_ms;
	int r = args_duration(a, "timeout", TIMEOUT_MS, &timeout_ms);

	if (r != QM_OK)
		return r;
	r = claim_wait_bound(s, claim, timeout_ms, &volume);
	if (r != QM_OK)
		return r;
	claim_wait_quota(s, volume, timeout_ms < QUOTA_MS ? timeout_ms : QUOTA_MS);
	r = mounting_begin(&m, a->words[1], true, (int)timeout_ms, &err);
	if (r >= 0) {
		connection = claim_connection(s, volume, m.dir);
		if (!connection || claim_flags(volume, &flags, &err) < 0)
			return QM_FAILED;
		m.set = flags.set;
		m.clear = flags.clear;
		id = jstr(volume, "spec", "csi", "volumeAttributes", "volumeId");
		r = mount_volume(&m,
				 &(struct what){ .s = s,
						 .claim = claim,
						 .volume_id = id ? id : object_name(volume),
						 .volume = volume,
						 .connection = connection },
				 &err);
	}
	if (r < 0) {
		(void)fprintf(stderr, "quartermaster: %s\n", error_text(&err, r));
		return r == -ETIMEDOUT ? QM_TIMED_OUT : QM_FAILED;
	}
	(void)fprintf(s->out, "claim %s is mounted on %s\n", claim, m.dir);
	return QM_OK;
}

/* ---- umount ----------------------------------------------------------------------------------- */

struct covered {
	const char *dir;
	const json_t *record;
};

static int is_covered(const struct mount_entry *e, void *userdata)
{
	const struct covered *c = userdata;

	return streq(e->mount_point, c->dir) && record_is_mount(c->record, e);
}

/* Something else is mounted there. -EBUSY: over the record's volume, which stays below it; 0: that is not there at all. */
static int look_below(const struct mounting *m, const json_t *record, const char *source,
		      struct error *err)
{
	cleanup_free char *text = NULL;
	int r = file_read("/proc/self/mountinfo", 0, &text, NULL, err);

	if (r == 0)
		r = mountinfo_each(text, is_covered, &(struct covered){ m->dir, record });
	if (r > 0 && m->force)
		(void)fprintf(stderr,
			      "quartermaster: the volume on %s stays below what is mounted over it "
			      "(%s), and goes with that\n",
			      m->dir, source);
	else if (r > 0)
		return error_set(err, EBUSY,
				 "something else (%s) is mounted on %s: unmount that first", source,
				 m->dir);
	return r < 0 ? r : 0;
}

/* All mounts of the record's volume on the directory. */
static int unbind(struct mounting *m, const json_t *record, struct error *err)
{
	for (int i = 0; i < STACKED_MAX; i++) {
		cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
		int r = bind_find(m->dir, &e, err);

		if (r <= 0)
			return r;
		if (!record_is_mount(record, &e))
			return look_below(m, record, e.source, err);
		r = bind_unmount(m->dir, m->force || bind_probe(m->dir, STEP_MS) == -ENOTCONN,
				 STEP_MS, err);
		if (r < 0)
			return r;
	}
	return error_set(err, EBUSY, "%s is still mounted", m->dir);
}

static int unmount_dir(struct mounting *m, struct error *err)
{
	cleanup_with(mount_entry_done) struct mount_entry e = { 0 };
	cleanup_json json_t *records = NULL;
	json_t *record;
	size_t i;
	int r = records_find(m->h, NULL, m->dir, &records, err);

	json_array_foreach (records, i, record) {
		if (r >= 0)
			r = unbind(m, record, err);
		if (r >= 0)
			r = record_disconnect(m->h, record, m->force ? HOSTVOL_FORCE : 0, err);
	}
	if (r < 0 || json_array_size(records))
		return r;
	r = bind_find(m->dir, &e, err);
	if (r > 0)
		return error_set(
			err, EINVAL,
			"%s (%s) was not mounted by quartermaster: use umount(8) if it is meant",
			m->dir, e.source);
	return r;
}

int cmd_umount(struct session *s, const struct args *a)
{
	cleanup_with(mounting_done) struct mounting m = { .lock = -1,
							  .force = args_given(a, "force") };
	struct error err = ERROR_INIT;
	int r = mounting_begin(&m, a->words[0], false, TIMEOUT_MS, &err);

	if (r == -ENOENT)
		return QM_OK; /* no such directory: nothing is mounted on it */
	if (r >= 0)
		r = unmount_dir(&m, &err);
	if (r >= 0)
		return QM_OK;
	(void)fprintf(stderr, "quartermaster: %s\n", error_text(&err, r));
	return r == -ETIMEDOUT ? QM_TIMED_OUT : QM_FAILED;
}

/* ---- verbs ------------------------------------------------------------------------------------ */
