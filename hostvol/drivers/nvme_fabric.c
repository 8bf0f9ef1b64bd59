/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers: made through /dev/nvme-fabrics, deleted through sysfs. */
#include "nvme.h"

#include "base/file.h"
#include "base/mem.h"
#include "block/usage.h"
#include "core/journal.h"
#include "core/lock.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define GONE_MS 30000
#define SHORT_LOSS_S 60

/* ---- marks ---------------------------------------------------------------------------------- */

static int mark_path(const struct call *c, const char *nqn, const struct nvme_address *at,
		     char **ret, struct error *err)
{
	char id[HASH_TEXT_MAX];

	hash_of(id, nqn, at->transport, at->traddr, at->trsvcid);
	return text_format(ret, err, "%s/nvme/%s", c->h->run_dir, id);
}

static int mark_set(const struct call *c, const char *nqn, const struct nvme_address *at,
		    struct error *err)
{
	cleanup_free char *path = NULL, *dir = NULL, *text = NULL;
	int r = mark_path(c, nqn, at, &path, err);

	if (r >= 0)
		r = text_format(&dir, err, "%s/nvme", c->h->run_dir);
	if (r >= 0)
		r = text_format(&text, err, "%s\n", nqn);
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r >= 0)
		r = c->host->write_file(c->host, path, text, strlen(text));
	return r < 0 ? error_errno(err, -r, "cannot write %s", path) : 0;
}

static bool is_marked(const struct call *c, const char *nqn, const struct nvme_address *at)
{
	cleanup_free char *path = NULL;

	return mark_path(c, nqn, at, &path, NULL) >= 0 && access(path, F_OK) == 0;
}

static void mark_clear(const struct call *c, const char *nqn, const struct nvme_address *at)
{
	cleanup_free char *path = NULL;

	if (mark_path(c, nqn, at, &path, NULL) >= 0)
		c->host->remove_file(c->host, path);
}

/* ---- who this host is ----------------------------------------------------------------------- */

#define UUID_LENGTH 36

struct host_names {
	char nqn[NQN_MAX], id[64];
};

/* The UUID that a name ends in ("nqn.2014-08.org.nvmexpress:uuid:…"), or "". */
static const char *uuid_of(const char *nqn)
{
	const char *uuid = strstr(nqn, ":uuid:");

	return uuid && strlen(uuid + 6) == UUID_LENGTH ? uuid + 6 : "";
}

static void read_names(const struct call *c, const struct attachment *a, struct host_names *ret)
{
	const char *nqn = attachment_param(a, "hostNqn"), *id = attachment_param(a, "hostId");

	sys_line(c, ret->nqn, sizeof(ret->nqn), "/etc/nvme/hostnqn");
	sys_line(c, ret->id, sizeof(ret->id), "/etc/nvme/hostid");
	/* another name with the file's identifier would be two names for one host */
	if (nqn && !id && !streq(nqn, ret->nqn) && uuid_of(nqn)[0])
		id = uuid_of(nqn);
	if (nqn)
		snprintf(ret->nqn, sizeof(ret->nqn), "%.223s", nqn);
	if (id)
		snprintf(ret->id, sizeof(ret->id), "%.63s", id);
}

struct names_search {
	const struct host_names *ours;
	struct nvme_controller found;
};

/* Two names with one identifier, or the other way round: storage may take two hosts for one. */
static int differs_by_half(const struct nvme_controller *n, void *userdata)
{
	struct names_search *s = userdata;
	const struct host_names *ours = s->ours;

	if (!n->host_nqn[0] || !ours->nqn[0] || !ours->id[0] || !n->host_id[0] ||
	    streq(n->host_nqn, ours->nqn) == (strcasecmp(n->host_id, ours->id) == 0))
		return 0;
	s->found = *n;
	return 1;
}

static void warn_of_names(const struct call *c, const struct host_names *names)
{
	struct names_search s = { .ours = names };
	const char *uuid = uuid_of(names->nqn);

	if (nvme_controllers_each(c, NULL, differs_by_half, &s) > 0)
		call_log(c, HOSTVOL_LOG_WARNING,
			 "%s is connected as %.100s with the host identifier %.40s, this volume as "
			 "%.100s with %.40s: storage that takes two hosts for one lets them damage "
			 "each other's data; give each host one name and one identifier of its own "
			 "(/etc/nvme/hostnqn, /etc/nvme/hostid)",
			 s.found.name, s.found.host_nqn, s.found.host_id, names->nqn, names->id);
	else if (uuid[0] && names->id[0] && strcasecmp(uuid, names->id) != 0)
		call_log(c, HOSTVOL_LOG_INFO,
			 "the host identifier %.40s is not that of the host's name %.100s: if this "
			 "host was cloned, make both anew (nvme gen-hostnqn)",
			 names->id, names->nqn);
}

/* ---- connect -------------------------------------------------------------------------------- */

/* The text is wiped by the caller: it may hold a secret. */
static int options_text_of(const struct attachment *a, const struct nvme_target *t,
			   const struct nvme_address *at, const struct host_names *names,
			   char **ret, struct error *err)
{
	const char *loss = attachment_param(a, "ctrlLossTmo"),
		   *secret = attachment_param(a, "dhchapSecret");

	return text_format(
		ret, err, "transport=%s,traddr=%s%s%s,nqn=%s%s%s%s%s%s%s,ctrl_loss_tmo=%s%s%s",
		at->transport, at->traddr, at->trsvcid[0] ? ",trsvcid=" : "", at->trsvcid, t->nqn,
		at->host_traddr[0] ? ",host_traddr=" : "", at->host_traddr,
		names->nqn[0] ? ",hostnqn=" : "", names->nqn, names->id[0] ? ",hostid=" : "",
		names->id, loss ? loss : NVME_LOSS_DEFAULT, secret ? ",dhchap_secret=" : "",
		secret ? secret : "");
}

static int connect_one(const struct call *c, const struct attachment *a,
		       const struct nvme_target *t, const struct nvme_address *at,
		       const struct host_names *names, struct error *err)
{
	cleanup_free char *options = NULL;
	struct nvme_controller n;
	char reply[256];
	int r, left;

	if (nvme_controller_find(c, t->nqn, at, &n) == 1)
		return 0;
	r = mark_set(c, t->nqn, at, err);
	if (r >= 0)
		r = options_text_of(a, t, at, names, &options, err);
	if (r < 0)
		return r;
	left = call_left(c, 0, err);
	r = left < 0 ? left : c->host->fabrics(c->host, options, reply, sizeof(reply), left);
	explicit_bzero(options, strlen(options));
	if (r == -EALREADY) /* another came first: it is not ours */
		r = 0;
	else if (r >= 0)
		return 0;
	if (nvme_controller_find(c, t->nqn, at, &n) != 1)
		mark_clear(c, t->nqn, at);
	if (r == -ENOENT || r == -ENODEV)
		return error_set(err, ENODEV,
				 "this host has no NVMe over fabrics: load the module nvme-%s",
				 at->transport);
	/* newer kernels refuse what warn_of_names() warns of */
	if (r == -EINVAL)
		return error_set(
			err, EINVAL,
			"the kernel refuses to connect to %.100s at %s %.100s as %.100s with "
			"the host identifier %.40s: a value that it does not take, or one of "
			"both is in use with another one of the other",
			t->nqn, at->transport, at->traddr, names->nqn, names->id);
	if (r < 0 && left >= 0)
		return error_errno(err, -r, "cannot connect to %.100s at %s %.100s", t->nqn,
				   at->transport, at->traddr);
	return r;
}

int nvme_fabric_connect(const struct call *c, const struct attachment *a,
			const struct nvme_target *t, struct error *err)
{
	const char *loss = attachment_param(a, "ctrlLossTmo");
	struct error problem = ERROR_INIT;
	struct host_names names;
	int good = 0, r = 0;

	read_names(c, a, &names);
	warn_of_names(c, &names);
	if (loss && loss[0] != '-' && atoi(loss) < SHORT_LOSS_S)
		call_log(
			c, HOSTVOL_LOG_WARNING,
			"ctrlLossTmo %s is short: when %.100s does not answer for so many seconds, "
			"the device goes, and what was not written yet is lost",
			loss, t->nqn);
	for (int i = 0; i < t->count; i++) {
		r = connect_one(c, a, t, &t->portals[i], &names, &problem);
		if (r < 0)
			call_log(c, HOSTVOL_LOG_WARNING, "a path is left out: %s", problem.message);
		else
			good++;
	}
	if (!good && err)
		*err = problem;
	return good ? 0 : r;
}

/* ---- disconnect ----------------------------------------------------------------------------- */

struct leaving {
	const struct call *c;
	const char *disk; /* ours: it was looked at already */
	struct error *err;
	const char *nqn;
	char names[NVME_PORTALS_MAX * 2][DISK_NAME_MAX];
	struct nvme_address at[NVME_PORTALS_MAX * 2];
	int count;
};

static int is_used(const char *disk, void *userdata)
{
	struct leaving *l = userdata;
	struct disk d;

	if (streq(disk, l->disk) || disk_read(l->c, disk, &d) < 0)
		return 0;
	return usage_refuse(l->c, &d, NULL, l->err) < 0;
}

static int take_ours(const struct nvme_controller *n, void *userdata)
{
	struct leaving *l = userdata;

	if (l->count == NVME_PORTALS_MAX * 2 || !is_marked(l->c, l->nqn, &n->at))
		return 0;
	snprintf(l->names[l->count], DISK_NAME_MAX, "%s", n->name);
	l->at[l->count++] = n->at;
	return 0;
}

static int none_there(void *arg)
{
	struct leaving *l = arg;
	struct nvme_controller n;

	for (int i = 0; i < l->count; i++)
		if (nvme_controller_find(l->c, l->nqn, &l->at[i], &n) == 1)
			return 0;
	return 1;
}

int nvme_fabric_disconnect(const struct call *c, const char *nqn, const char *disk, bool force,
			   struct error *err)
{
	struct leaving l = { .c = c, .disk = disk, .nqn = nqn };
	struct error problem = ERROR_INIT;
	cleanup_watch struct watch w = WATCH_INIT;
	char path[80];
	int r;

	l.err = &problem;
	if (!force && nvme_namespaces_each(c, nqn, is_used, &l) != 0) {
		call_log(c, HOSTVOL_LOG_WARNING, "%s stays connected: %s", nqn, problem.message);
		return 0;
	}
	nvme_controllers_each(c, nqn, take_ours, &l);
	for (int i = 0; i < l.count; i++) {
		snprintf(path, sizeof(path), "/sys/class/nvme/%s/delete_controller", l.names[i]);
		r = sys_write(c, path, "1", err);
		if (r < 0 && r != -ENOENT && r != -ENODEV)
			return r;
	}
	/* the kernel answers when they have gone; only others' deletions are still under way then */
	r = none_there(&l);
	if (!r) {
		r = watch_open(c, &w, err);
		if (r >= 0)
			r = watch_until(c, &w, GONE_MS, none_there, &l, err);
	}
	if (r < 0)
		return r == -ETIMEDOUT ? error_set(err, ETIMEDOUT,
						   "controllers of %s were deleted, but have not "
						   "gone in time",
						   nqn)
				       : r;
	for (int i = 0; i < l.count; i++)
		mark_clear(c, nqn, &l.at[i]);
	return 0;
}

/* ---- audit ---------------------------------------------------------------------------------- */

struct audit {
	const struct call *c;
	bool repair;
	json_t *findings;
	struct error *err;
	int result;
	char nqn[NQN_MAX];
	int users;
};

static int count_user(struct attachment *a, void *userdata)
{
	struct audit *audit = userdata;

	audit->users += streq(a->driver->name, "NVMEOF") &&
			streq(attachment_param(a, "targetNqn"), audit->nqn);
	return 0;
}

/* A mark whose subsystem no record names. */
static int audit_mark(const char *name, void *userdata)
{
	struct audit *audit = userdata;
	struct leaving l = { .c = audit->c, .nqn = audit->nqn };
	cleanup_free char *path = NULL, *target = NULL, *text = NULL;
	cleanup_lock struct lock lock = LOCK_INIT;
	struct error problem = ERROR_INIT;
	char id[HASH_TEXT_MAX];
	int r;

	if (text_format(&path, NULL, "%s/nvme/%s", audit->c->h->run_dir, name) < 0 ||
	    file_read(path, NQN_MAX, &text, NULL, NULL) < 0)
		return 0;
	snprintf(audit->nqn, sizeof(audit->nqn), "%.*s", (int)strcspn(text, "\n"), text);
	r = text_format(&target, audit->err, "NVMe %s", audit->nqn);
	if (r < 0)
		return r;
	hash_of(id, target);
	r = lock_take(audit->c, "target", id, &lock, audit->err);
	if (r < 0)
		return r;
	audit->users = 0;
	r = journal_each(audit->c, count_user, audit, audit->err);
	if (r < 0 || audit->users)
		return r < 0 ? r : 0;
	nvme_controllers_each(audit->c, audit->nqn, take_ours, &l);
	if (!l.count) {
		audit->c->host->remove_file(audit->c->host, path);
		return 0;
	}
	r = audit->repair ? nvme_fabric_disconnect(audit->c, audit->nqn, "", false, &problem) : 0;
	audit->result |= r < 0;
	return json_array_append_new(audit->findings,
				     json_pack("{s:s, s:s, s:s, s:s}", "kind", "controller", "name",
					       audit->nqn, "message",
					       problem.message[0]
						       ? problem.message
						       : "a controller that no record names",
					       "action",
					       !audit->repair ? "none"
					       : r < 0	      ? "failed"
							      : "removed")) < 0
		       ? no_memory(audit->err)
		       : 0;
}

int nvme_fabric_audit(const struct call *c, bool repair, json_t *findings, struct error *err)
{
	struct audit audit = { .c = c, .repair = repair, .findings = findings, .err = err };
	struct hostvol_host plain = *c->host;
	struct call below = *c;
	cleanup_free char *dir = NULL;
	int r = text_format(&dir, err, "%s/nvme", c->h->run_dir);

	if (r < 0)
		return r;
	/* the run directory is not below the host's root */
	plain.root = "";
	below.host = &plain;
	r = sys_each(&below, dir, audit_mark, &audit);
	return r < 0 ? r : audit.result;
}
