/* SPDX-License-Identifier: Apache-2.0 */
/* What a target's volumes share: locks, sessions, and who must not be disturbed. */
#include "iscsi.h"

#include "base/mem.h"
#include "core/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- locks ---------------------------------------------------------------------------------- */

void iscsi_locks_release(struct iscsi_locks *l)
{
	while (l->count > 0)
		lock_release(&l->held[--l->count]);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int iscsi_target_names(const struct iscsi_paths *paths, const char *names[static ISCSI_PATHS_MAX])
{
	int n = 0;

	for (int i = 0; i < paths->count; i++)
		names[n++] = paths->items[i].iqn;
	qsort(names, (size_t)n, sizeof(*names), by_text);
	for (int i = 1, kept = 1; i <= n; i++) {
		if (i == n)
			return kept;
		if (!streq(names[i], names[kept - 1]))
			names[kept++] = names[i];
	}
	return n;
}

int iscsi_locks_take(const struct call *c, const struct iscsi_paths *paths, struct iscsi_locks *l,
		     struct error *err)
{
	const char *names[ISCSI_PATHS_MAX];
	char id[HASH_TEXT_MAX];
	int n = iscsi_target_names(paths, names), r;

	for (int i = 0; i < n; i++) {
		hash_of(id, names[i]);
		l->held[i] = LOCK_INIT;
		r = lock_take(c, "iscsi", id, &l->held[i], err);
		if (r < 0)
			return r;
		l->count++;
		iscsi_settle(c, names[i]);
	}
	return 0;
}

/* ---- who else ------------------------------------------------------------------------------- */

struct others {
	const struct attachment *of;
	const struct iscsi_paths *paths;
	const char *iqn; /* NULL: of the unit */
	int count;
};

static int count_other(struct attachment *a, void *userdata)
{
	struct others *o = userdata;

	if (streq(a->id, o->of->id) ||
	    (!streq(a->driver->name, "ISCSI") && !streq(a->driver->name, "ISER")))
		return 0;
	if (o->iqn)
		/* one that is being connected is about to use the session */
		o->count += iscsi_uses_target(a, o->iqn);
	else
		/* one that died in the middle is no user; to an audit it is a record all the same */
		o->count += (attachment_has_consumer(a) || !o->of->id[0]) &&
			    iscsi_shares_unit(a, o->paths);
	return 0;
}

int iscsi_count_others(const struct call *c, const struct attachment *a,
		       const struct iscsi_paths *paths, const char *iqn, struct error *err)
{
	struct others o = { .of = a, .paths = paths, .iqn = iqn };
	int r = journal_each(c, count_other, &o, err);

	/* a record that cannot be read may be of anybody: it counts */
	return r < 0 ? r : o.count + r;
}

/* ---- audit ---------------------------------------------------------------------------------- */

struct audit {
	const struct call *c;
	const char *iface;
	bool repair;
	json_t *findings;
	struct error *err;
	int result;
	const struct iscsi_session *session;
};

/* The record of nobody: all others are other ones. */
static const struct attachment nobody = { .id = "" };

static int found(struct audit *audit, const char *kind, const char *name, const char *message,
		 int repaired, const struct error *problem)
{
	const char *action = !audit->repair ? "none" : repaired < 0 ? "failed" : "removed";

	audit->result |= audit->repair && repaired < 0;
	return json_array_append_new(audit->findings,
				     json_pack("{s:s, s:s, s:s, s:s}", "kind", kind, "name", name,
					       "message",
					       problem->message[0] ? problem->message : message,
					       "action", action)) < 0
		       ? no_memory(audit->err)
		       : 0;
}

static int remove_disk(const struct call *c, const char *disk, struct error *err)
{
	struct map map;
	int r = map_of_path(c, disk, &map), mapped = r;

	if (r > 0)
		r = map_remove(c, &map, false, err);
	/* of a map that was written out nothing is left in a path, which may be dead */
	return r < 0 ? r : scsi_remove(c, disk, mapped ? SCSI_UNDO : SCSI_CAREFUL, err);
}

/* A unit in a session of ours that no record names. */
static int audit_unit(const char *name, void *userdata)
{
	struct audit *audit = userdata;
	const struct iscsi_session *s = audit->session;
	struct iscsi_paths paths = { .count = 1 };
	struct error problem = ERROR_INIT;
	struct scsi_address at;
	char disk[DISK_NAME_MAX] = "";
	int r;

	if (sscanf(name, "%u:%u:%u:%" SCNu64, &at.host, &at.channel, &at.target, &at.lun) != 4 ||
	    at.host != s->at.host || at.channel != s->at.channel || at.target != s->at.target)
		return 0;
	snprintf(paths.items[0].iqn, sizeof(paths.items[0].iqn), "%s", s->iqn);
	paths.items[0].lun = at.lun;
	r = iscsi_count_others(audit->c, &nobody, &paths, NULL, audit->err);
	if (r != 0 || scsi_find(audit->c, &at, disk) != 1)
		return r < 0 ? r : 0;
	r = audit->repair ? remove_disk(audit->c, disk, &problem) : 0;
	return found(audit, "disk", disk, "a disk that no record names", r, &problem);
}

static int audit_session(const struct iscsi_session *s, void *userdata)
{
	struct audit *audit = userdata;
	struct iscsi_paths paths = { .count = 1 };
	cleanup_iscsi_locks struct iscsi_locks locks = { .count = 0 };
	struct error problem = ERROR_INIT;
	int r;

	snprintf(paths.items[0].iqn, sizeof(paths.items[0].iqn), "%s", s->iqn);
	r = iscsi_locks_take(audit->c, &paths, &locks, audit->err);
	if (r < 0)
		return r;
	audit->session = s;
	r = sys_each(audit->c, "/sys/class/scsi_device", audit_unit, audit);
	if (r >= 0)
		r = iscsi_count_others(audit->c, &nobody, &paths, s->iqn, audit->err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = audit->repair ? iscsi_logout(audit->c, audit->iface, s->iqn, &problem) : 0;
	return found(audit, "session", s->iqn, "a session that no record names", r, &problem);
}

int iscsi_audit(const struct call *c, const char *iface, bool repair, json_t *findings,
		struct error *err)
{
	struct audit audit = {
		.c = c, .iface = iface, .repair = repair, .findings = findings, .err = err
	};
	int r = iscsi_sessions_each(c, iface, audit_session, &audit);

	return r < 0 ? r : audit.result;
}
