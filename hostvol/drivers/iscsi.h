/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "block/scsi_volume.h"
#include "core/lock.h"

/*
 * iSCSI and iSER. All sessions that this library makes are of an interface record of its own
 * ("hostvol", "hostvol-iser"), which the kernel shows with each session: so ours are told from an
 * administrator's at any time, after a crash too, and neither sees the other's node records.
 */

#define ISCSI_NAME_MAX 224
#define ISCSI_PATHS_MAX 16

/* One way to the unit, as the parameters have it. */
struct iscsi_path {
	char iqn[ISCSI_NAME_MAX];
	char host[256]; /* a name or an address, IPv6 without brackets */
	char address[64]; /* once resolved; "" before */
	unsigned port;
	uint64_t lun; /* as the kernel numbers it */
};

struct iscsi_paths {
	struct iscsi_path items[ISCSI_PATHS_MAX];
	int count;
};

/* A session of ours. */
struct iscsi_session {
	unsigned id; /* sessionN */
	struct scsi_address at; /* its target; lun is not set */
	char iqn[ISCSI_NAME_MAX];
	char address[64];
	unsigned port;
	int tpgt;
	bool logged_in;
};

/* ---- iscsi_paths.c ---- */

/* From targetIqn(s), targetPortal(s), targetLun(s): one of each, or as many as there are portals. */
int iscsi_paths_read(const struct attachment *a, struct iscsi_paths *ret, struct error *err);
/* Names to addresses; those that cannot be resolved are left out, with a word to the log. */
int iscsi_paths_resolve(const struct call *c, struct iscsi_paths *paths, struct error *err);
/* One of HOST, HOST:PORT, ADDRESS, [IPV6]:PORT. */
int iscsi_portal_parse(const char *text, struct iscsi_path *ret, struct error *err);
/* Whether a record's volume uses the target; whether it is at one of these units. */
bool iscsi_uses_target(const struct attachment *a, const char *iqn);
bool iscsi_shares_unit(const struct attachment *a, const struct iscsi_paths *paths);

/* ---- iscsi_session.c ---- */

const char *iscsi_iface(const struct driver *d);
/* Calls fn for each of our sessions, of any target, until it returns other than 0. */
int iscsi_sessions_each(const struct call *c, const char *iface,
			int (*fn)(const struct iscsi_session *s, void *userdata), void *userdata);
/* Our session to the path's portal: 1, or 0 for none. */
int iscsi_session_find(const struct call *c, const char *iface, const struct iscsi_path *p,
		       struct iscsi_session *ret);
/* How many units of it the kernel has. */
int iscsi_session_units(const struct call *c, const struct iscsi_session *s);
/*
 * Logs in wherever there is no session yet, in one process for each target. A portal that does not
 * answer is told to the log while another one does.
 */
int iscsi_login(const struct call *c, const struct attachment *a, const struct iscsi_paths *paths,
		struct error *err);
/* Waits for an iscsiadm that a process which died has left behind: it may still log in, or out. */
void iscsi_settle(const struct call *c, const char *iqn);
/* Logs out of every session of ours to the target that has no units, and removes its record. */
int iscsi_logout(const struct call *c, const char *iface, const char *iqn, struct error *err);

/* ---- iscsi_record.c ---- */

bool iscsi_uses_chap(const struct attachment *a);

/*
 * What iscsiadm and iscsid keep of a portal, written by us: mode 0600, with the secrets, which so
 * never stand on a command line. Settings that are not given are those of iscsid.conf.
 */
int iscsi_record_write(const struct call *c, const struct attachment *a, const struct iscsi_path *p,
		       struct error *err);
/*
 * Moves a new record to where iscsid looks for it when it is started again: that has the number
 * of the portal's group in it, which is known after login only.
 */
int iscsi_record_settle(const struct call *c, const struct iscsi_session *s, const char *iface);
/* Removes the portal's record; address NULL: those of all portals of the target. */
int iscsi_record_remove(const struct call *c, const char *iface, const char *iqn,
			const char *address, unsigned port);
/* How many records of ours the target has. */
int iscsi_record_count(const struct call *c, const char *iface, const char *iqn);

/* ---- iscsi_share.c ---- */

/*
 * A volume may be behind several targets, each of which others use too: so besides the lock of the
 * attachment's own target, the lock of every single one is taken, in the order of their names.
 */
struct iscsi_locks {
	struct lock held[ISCSI_PATHS_MAX];
	int count;
};
int iscsi_locks_take(const struct call *c, const struct iscsi_paths *paths, struct iscsi_locks *l,
		     struct error *err);
void iscsi_locks_release(struct iscsi_locks *l);
#define cleanup_iscsi_locks __attribute__((cleanup(iscsi_locks_release)))

/* Names of the targets, each once, in order; borrowed from paths. */
int iscsi_target_names(const struct iscsi_paths *paths, const char *names[static ISCSI_PATHS_MAX]);
/*
 * Under the locks: how many records besides this one's use the target iqn, or, where that is NULL,
 * the unit. One that cannot be read counts, as it may be of anybody.
 */
int iscsi_count_others(const struct call *c, const struct attachment *a,
		       const struct iscsi_paths *paths, const char *iqn, struct error *err);
/* Sessions and disks of ours that no record names (driver.h). */
int iscsi_audit(const struct call *c, const char *iface, bool repair, json_t *findings,
		struct error *err);
