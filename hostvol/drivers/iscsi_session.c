/* SPDX-License-Identifier: Apache-2.0 */
#include "iscsi.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>

#define LOGGED_IN_MS 20000 /* for a session that is being brought back */
#define LOGOUT_TRIES 3
#define SETTLE_MS 30000

const char *iscsi_iface(const struct driver *d)
{
	return streq(d->name, "ISER") ? "hostvol-iser" : "hostvol";
}

/* ---- what is there -------------------------------------------------------------------------- */

static int read_session(const struct call *c, const char *name, const char *iface,
			struct iscsi_session *ret)
{
	struct iscsi_session s = { 0 };
	char line[256], device[600];
	const char *host;
	uint64_t number;

	sys_line(c, line, sizeof(line), "/sys/class/iscsi_session/%s/ifacename", name);
	if (!streq(line, iface) || sscanf(name, "session%u", &s.id) != 1)
		return 0;
	sys_line(c, s.iqn, sizeof(s.iqn), "/sys/class/iscsi_session/%s/targetname", name);
	sys_line(c, s.address, sizeof(s.address),
		 "/sys/class/iscsi_connection/connection%u:0/persistent_address", s.id);
	if (sys_number(c, &number, "/sys/class/iscsi_connection/connection%u:0/persistent_port",
		       s.id) >= 0)
		s.port = (unsigned)number;
	if (sys_number(c, &number, "/sys/class/iscsi_session/%s/tpgt", name) >= 0)
		s.tpgt = (int)number;
	if (sys_number(c, &number, "/sys/class/iscsi_session/%s/target_id", name) >= 0)
		s.at.target = (unsigned)number;
	sys_line(c, line, sizeof(line), "/sys/class/iscsi_session/%s/state", name);
	s.logged_in = streq(line, "LOGGED_IN");
	if (sys_resolve(c, device, sizeof(device), "/sys/class/iscsi_session/%s/device", name) < 0)
		return 0;
	/* …/hostH/sessionN */
	host = strstr(device, "/host");
	if (!host || sscanf(host, "/host%u/", &s.at.host) != 1)
		return 0;
	*ret = s;
	return 1;
}

struct sessions {
	const struct call *c;
	const char *iface;
	int (*fn)(const struct iscsi_session *s, void *userdata);
	void *userdata;
};

static int visit_session(const char *name, void *userdata)
{
	struct sessions *all = userdata;
	struct iscsi_session s;
	int r = read_session(all->c, name, all->iface, &s);

	return r <= 0 ? r : all->fn(&s, all->userdata);
}

int iscsi_sessions_each(const struct call *c, const char *iface,
			int (*fn)(const struct iscsi_session *s, void *userdata), void *userdata)
{
	struct sessions all = { .c = c, .iface = iface, .fn = fn, .userdata = userdata };

	return sys_each(c, "/sys/class/iscsi_session", visit_session, &all);
}

struct search {
	const struct iscsi_path *path;
	struct iscsi_session *found;
};

static int is_it(const struct iscsi_session *s, void *userdata)
{
	struct search *search = userdata;

	if (!streq(s->iqn, search->path->iqn) || !streq(s->address, search->path->address) ||
	    s->port != search->path->port)
		return 0;
	*search->found = *s;
	return 1;
}

int iscsi_session_find(const struct call *c, const char *iface, const struct iscsi_path *p,
		       struct iscsi_session *ret)
{
	return iscsi_sessions_each(c, iface, is_it, &(struct search){ .path = p, .found = ret });
}

struct unit_count {
	const struct iscsi_session *session;
	int count;
};

static int count_unit(const char *name, void *userdata)
{
	struct unit_count *u = userdata;
	unsigned host, channel, target;

	u->count += sscanf(name, "%u:%u:%u:", &host, &channel, &target) == 3 &&
		    host == u->session->at.host && channel == u->session->at.channel &&
		    target == u->session->at.target;
	return 0;
}

int iscsi_session_units(const struct call *c, const struct iscsi_session *s)
{
	struct unit_count u = { .session = s };
	int r = sys_each(c, "/sys/class/scsi_device", count_unit, &u);

	return r < 0 ? r : u.count;
}

/* ---- iscsiadm ------------------------------------------------------------------------------- */

static int iscsiadm(const struct call *c, const char *const *argv, struct host_result *result,
		    struct error *err)
{
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	r = c->host->run(c->host, &(struct host_command){ .argv = argv, .timeout_ms = r }, result);
	if (r == -ENOENT)
		return error_set(err, ENOENT, "%.400s",
				 result->err[0] ? result->err
						: "iscsiadm is not installed (package open-iscsi)");
	if (r == -ETIMEDOUT)
		return error_set(err, ETIMEDOUT, "iscsid has not logged %s in time",
				 streq(argv[5], "-l") ? "in" : "out");
	return r < 0 ? error_errno(err, -r, "cannot run iscsiadm") : 0;
}

/* Its last line that says why; what it says of more than one portal comes last, and says nothing. */
static const char *last_words(struct host_result *result)
{
	char *line, *rest, *words = NULL;

	for (line = strtok_r(result->err, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (!strstr(line, "Could not log") || !words)
			words = line;
	return words ? words : "it does not say why";
}

static void portal_text(const char *address, unsigned port, char *buf, size_t size)
{
	snprintf(buf, size, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, port);
}

/* portal NULL: all of our records of the target. */
static int log_in(const struct call *c, const char *iface, const char *iqn, const char *portal,
		  struct error *err)
{
	/* the target's name comes last: by that the process is found where this one dies (iscsi_settle) */
	const char *const one[] = { "iscsiadm", "-m",	"node", "-I", iface, "-l",
				    "-p",	portal, "-T",	iqn,  NULL };
	const char *const all[] = { "iscsiadm", "-m", "node", "-I", iface, "-l", "-T", iqn, NULL };
	struct host_result result;
	int r = iscsiadm(c, portal ? one : all, &result, err);

	if (r < 0 || result.status == 0 || result.status == 15)
		return r;
	if (result.status == 24)
		return error_set(err, EACCES,
				 "the target %.150s refuses this initiator: authUsername and "
				 "authPassword are wrong, or it does not know its name",
				 iqn);
	return error_set(err, EIO, "cannot log in to %.150s: %.200s", iqn, last_words(&result));
}

void iscsi_settle(const struct call *c, const char *iqn)
{
	int left = call_left(c, SETTLE_MS, NULL);

	/* ended, it would leave iscsid at work with nobody to wait for */
	if (left > 0)
		c->host->await_end(c->host, "iscsiadm", iqn, false, left);
}

/* ---- login ---------------------------------------------------------------------------------- */

static bool is_first_of_target(const struct iscsi_paths *paths, int i)
{
	for (int j = 0; j < i; j++)
		if (streq(paths->items[j].iqn, paths->items[i].iqn))
			return false;
	return true;
}

/* Records for the portals of this target that have no session; how many. */
static int write_records(const struct call *c, const struct attachment *a,
			 const struct iscsi_paths *paths, const char *iqn,
			 bool missing[static ISCSI_PATHS_MAX], struct error *err)
{
	struct iscsi_session s;
	int n = 0, r;

	for (int i = 0; i < paths->count; i++) {
		missing[i] =
			streq(paths->items[i].iqn, iqn) &&
			iscsi_session_find(c, iscsi_iface(a->driver), &paths->items[i], &s) != 1;
		if (!missing[i])
			continue;
		/* what a process that died has left of it */
		iscsi_record_remove(c, iscsi_iface(a->driver), iqn, paths->items[i].address,
				    paths->items[i].port);
		r = iscsi_record_write(c, a, &paths->items[i], err);
		if (r < 0)
			return r;
		n++;
	}
	return n;
}

static int login_target(const struct call *c, const struct attachment *a,
			const struct iscsi_paths *paths, const char *iqn, struct error *err)
{
	const char *iface = iscsi_iface(a->driver);
	bool missing[ISCSI_PATHS_MAX];
	char portal[100];
	int r, n = write_records(c, a, paths, iqn, missing, err);

	if (n <= 0)
		return n;
	/* one process for all, where no other portal's record would go with them */
	if (iscsi_record_count(c, iface, iqn) == n)
		return log_in(c, iface, iqn, NULL, err);
	r = 0;
	for (int i = 0; i < paths->count; i++) {
		if (!missing[i])
			continue;
		portal_text(paths->items[i].address, paths->items[i].port, portal, sizeof(portal));
		r = log_in(c, iface, iqn, portal, err);
	}
	return r;
}

struct awaited {
	const struct call *c;
	const char *iface;
	const struct iscsi_path *path;
	struct iscsi_session *session;
};

/* 1: logged in; 0: not yet; -ENOTCONN: there is none. */
static int is_logged_in(void *arg)
{
	struct awaited *w = arg;

	if (iscsi_session_find(w->c, w->iface, w->path, w->session) != 1)
		return -ENOTCONN;
	return w->session->logged_in;
}

int iscsi_login(const struct call *c, const struct attachment *a, const struct iscsi_paths *paths,
		struct error *err)
{
	const char *iface = iscsi_iface(a->driver);
	cleanup_watch struct watch w = WATCH_INIT;
	struct error problem = ERROR_INIT;
	struct iscsi_session s;
	int r, worst = 0, good = 0;

	for (int i = 0; i < paths->count; i++)
		if (is_first_of_target(paths, i)) {
			r = login_target(c, a, paths, paths->items[i].iqn, &problem);
			worst = r < 0 ? r : worst;
		}
	r = watch_open(c, &w, err);
	if (r < 0)
		return r;
	for (int i = 0; i < paths->count; i++) {
		struct awaited awaited = {
			.c = c, .iface = iface, .path = &paths->items[i], .session = &s
		};

		r = watch_until(c, &w, LOGGED_IN_MS, is_logged_in, &awaited, NULL);
		if (r > 0) {
			iscsi_record_settle(c, &s, iface);
			good++;
		} else {
			call_log(c, HOSTVOL_LOG_WARNING, "no session with %s at %s: %s",
				 paths->items[i].iqn, paths->items[i].host, problem.message);
		}
	}
	if (good)
		return 0;
	if (worst < 0) {
		if (err)
			*err = problem;
		return worst;
	}
	return error_set(err, ENOTCONN, "the session with %.150s is broken, and does not come back",
			 paths->items[0].iqn);
}

/* ---- logout --------------------------------------------------------------------------------- */

struct leaving {
	const struct call *c;
	const char *iface, *iqn;
	int ours, empty; /* sessions of the target; those without units */
	unsigned ids[SCSI_PATHS_MAX]; /* of the empty ones */
};

static int count_session(const struct iscsi_session *s, void *userdata)
{
	struct leaving *l = userdata;

	if (!streq(s->iqn, l->iqn))
		return 0;
	l->ours++;
	if (iscsi_session_units(l->c, s) == 0 && l->empty < SCSI_PATHS_MAX)
		l->ids[l->empty++] = s->id;
	return 0;
}

static void look(const struct call *c, const char *iface, const char *iqn, struct leaving *ret)
{
	*ret = (struct leaving){ .c = c, .iface = iface, .iqn = iqn };
	iscsi_sessions_each(c, iface, count_session, ret);
}

static int log_out(const struct call *c, const char *iface, const char *iqn,
		   const struct leaving *l, struct error *err)
{
	struct host_result result = { 0 };
	char id[20];
	int r;

	if (l->ours == l->empty) {
		r = iscsiadm(c,
			     (const char *const[]){ "iscsiadm", "-m", "node", "-I", iface, "-u",
						    "-T", iqn, NULL },
			     &result, err);
		if (r < 0 || result.status == 0)
			return r;
	}
	for (int i = 0; i < l->empty; i++) {
		snprintf(id, sizeof(id), "%u", l->ids[i]);
		r = iscsiadm(c,
			     (const char *const[]){ "iscsiadm", "-m", "session", "-r", id, "-u",
						    "-d", "0", NULL },
			     &result, err);
		if (r < 0)
			return r;
	}
	return result.status ? error_set(err, EIO, "cannot log out of %.150s: %.200s", iqn,
					 last_words(&result))
			     : 0;
}

static int none_empty(void *arg)
{
	const struct leaving *l = arg;
	struct leaving now;

	look(l->c, l->iface, l->iqn, &now);
	return now.empty == 0;
}

int iscsi_logout(const struct call *c, const char *iface, const char *iqn, struct error *err)
{
	cleanup_watch struct watch w = WATCH_INIT;
	struct leaving l;
	int r = watch_open(c, &w, err);

	for (int i = 0; r >= 0 && i < LOGOUT_TRIES; i++) {
		look(c, iface, iqn, &l);
		if (!l.empty)
			break;
		r = log_out(c, iface, iqn, &l, err);
		/* iscsid may be busy with it, bringing it back: it is asked again when that is over */
		if (r == -EIO && i + 1 < LOGOUT_TRIES) {
			watch_until(c, &w, 1000, none_empty, &l, NULL);
			r = 0;
		}
	}
	if (r < 0)
		return r;
	look(c, iface, iqn, &l);
	if (!l.ours)
		iscsi_record_remove(c, iface, iqn, NULL, 0);
	return 0;
}
