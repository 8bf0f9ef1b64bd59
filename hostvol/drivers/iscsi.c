/* SPDX-License-Identifier: Apache-2.0 */
#include "iscsi.h"

#include "base/mem.h"
#include "core/params.h"
#include "drivers.h"

#include <errno.h>
#include <stdio.h>

/* Values go into a file of lines "key = value". */
static int check_chap(const char *value, struct error *err)
{
	if (strlen(value) > 255 || value[0] == ' ' || value[strlen(value) - 1] == ' ')
		return error_set(err, EINVAL,
				 "longer than 255 bytes, or with a blank at one of its ends");
	return 0;
}

static int check_auth_method(const char *value, struct error *err)
{
	if (strcasecmp(value, "CHAP") != 0 && strcasecmp(value, "None") != 0)
		return error_set(err, EINVAL, "\"%.40s\" is neither \"CHAP\" nor \"None\"", value);
	return 0;
}

static const struct param params[] = {
	{ .name = "targetPortal",
	  .type = PARAM_LIST,
	  .required = true,
	  .help = "Where the target listens, HOST:PORT; several are several paths. An IPv6 address "
		  "stands in brackets; the port is 3260 where it is missing.",
	  .example = "192.0.2.10:3260,192.0.2.11:3260" },
	{ .name = "targetIqn",
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .help = "The target's name; one, or one for each portal.",
	  .example = "iqn.2026-01.net.example:array" },
	{ .name = "targetLun",
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .help = "The volume's number at the target; one, or one for each portal.",
	  .example = "12" },
	SCSI_PARAM_WWN,
	{ .name = "authMethod",
	  .fallback = "CHAP where authUsername is given",
	  .check = check_auth_method,
	  .help = "\"CHAP\", or \"None\"." },
	{ .name = "authUsername",
	  .check = check_chap,
	  .help = "Name by which this host logs in with CHAP." },
	{ .name = "authPassword", .secret = true, .check = check_chap, .help = "Its secret." },
	{ .name = "authUsernameIn",
	  .aliases = (const char *const[]){ "mutualUsername", NULL },
	  .check = check_chap,
	  .help = "Name by which the target proves itself to this host (mutual CHAP)." },
	{ .name = "authPasswordIn",
	  .aliases = (const char *const[]){ "mutualPassword", NULL },
	  .secret = true,
	  .check = check_chap,
	  .help = "Its secret." },
	SCSI_PARAM_MULTIPATH,
	SCSI_PARAM_ENFORCE_MULTIPATH,
	SCSI_PARAM_ADDRESSING_MODE,
	{ .name = "targetDiscovered",
	  .type = PARAM_IGNORED,
	  .help = "Accepted and ignored: the portals that are given are used." },
	{ .name = "discoveryAuthMethod", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "discoveryAuthUsername", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "discoveryAuthPassword",
	  .type = PARAM_IGNORED,
	  .secret = true,
	  .help = "Accepted and ignored." },
	{ 0 },
};

/* ---- where the unit is ---------------------------------------------------------------------- */

struct addresses {
	const struct iscsi_paths *paths;
	struct scsi_paths *out;
};

static int add_address(const struct iscsi_session *s, void *userdata)
{
	struct addresses *a = userdata;

	for (int i = 0; i < a->paths->count && a->out->count < SCSI_PATHS_MAX; i++) {
		const struct iscsi_path *p = &a->paths->items[i];

		/* any portal of the target leads to the unit, also one that was not given this time */
		if (!streq(p->iqn, s->iqn))
			continue;
		a->out->at[a->out->count] = s->at;
		a->out->at[a->out->count++].lun = p->lun;
		break;
	}
	return 0;
}

/* In every session of ours to these targets. */
static int all_addresses(const struct call *c, const struct attachment *a,
			 const struct iscsi_paths *paths, struct scsi_paths *ret)
{
	struct addresses s = { .paths = paths, .out = ret };

	ret->count = 0;
	return iscsi_sessions_each(c, iscsi_iface(a->driver), add_address, &s);
}

/* In the sessions with the portals that were given. */
static void wanted_addresses(const struct call *c, const struct attachment *a,
			     const struct iscsi_paths *paths, struct scsi_paths *ret)
{
	struct iscsi_session s;

	ret->count = 0;
	for (int i = 0; i < paths->count; i++) {
		if (iscsi_session_find(c, iscsi_iface(a->driver), &paths->items[i], &s) != 1 ||
		    !s.logged_in)
			continue;
		ret->at[ret->count] = s.at;
		ret->at[ret->count++].lun = paths->items[i].lun;
	}
}

/* ---- operations ----------------------------------------------------------------------------- */

static int iscsi_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	const char *names[ISCSI_PATHS_MAX];
	cleanup_free char *target = NULL;
	struct iscsi_paths paths;
	int n, r = iscsi_paths_read(a, &paths, err);

	if (r < 0)
		return r;
	if (attachment_param(a, "authPassword") && !attachment_param(a, "authUsername"))
		return error_set(err, EINVAL, "authPassword is given without authUsername");
	n = iscsi_target_names(&paths, names);
	r = text_format(&target, err, "%s", "iSCSI");
	for (int i = 0; i < n && r >= 0; i++) {
		cleanup_free char *before = TAKE_PTR(target);

		r = text_format(&target, err, "%s %s", before, names[i]);
	}
	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

static int connect_on(const struct call *c, struct attachment *a, const struct iscsi_paths *paths,
		      bool multipath, struct error *err)
{
	struct scsi_paths addresses;
	int r = iscsi_login(c, a, paths, err);

	if (r < 0)
		return r;
	wanted_addresses(c, a, paths, &addresses);
	return scsi_volume_connect(c, a, &addresses, multipath, err);
}

/* The first path that works: paths that are not put together would be one volume of several names. */
static int connect_on_one(const struct call *c, struct attachment *a,
			  const struct iscsi_paths *paths, struct error *err)
{
	int r = -ENOENT;

	for (int i = 0; i < paths->count; i++) {
		struct iscsi_paths one = { .items = { paths->items[i] }, .count = 1 };

		r = connect_on(c, a, &one, false, err);
		if (r >= 0 || r == -ESTALE || r == -EBUSY || call_left(c, 0, NULL) < 0)
			break;
	}
	return r;
}

static int iscsi_connect(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_iscsi_locks struct iscsi_locks locks = { .count = 0 };
	struct iscsi_paths paths;
	int multipath, r = iscsi_paths_read(a, &paths, err);

	if (r < 0)
		return r;
	/* a record has no secrets: prepare cannot ask for this one */
	if (iscsi_uses_chap(a) && !attachment_param(a, "authPassword"))
		return error_set(err, EINVAL, "authUsername is given without authPassword");
	multipath = scsi_wants_multipath(c, a, paths.count, err);
	if (multipath < 0)
		return multipath;
	r = iscsi_paths_resolve(c, &paths, err);
	if (r >= 0)
		r = iscsi_locks_take(c, &paths, &locks, err);
	if (r < 0)
		return r;
	return multipath ? connect_on(c, a, &paths, true, err) : connect_on_one(c, a, &paths, err);
}

static int iscsi_disconnect(const struct call *c, struct attachment *a, bool force,
			    struct error *err)
{
	cleanup_iscsi_locks struct iscsi_locks locks = { .count = 0 };
	const char *names[ISCSI_PATHS_MAX];
	struct iscsi_paths paths;
	struct scsi_paths addresses;
	int n, r = iscsi_paths_read(a, &paths, err);

	if (r >= 0)
		r = iscsi_locks_take(c, &paths, &locks, err);
	if (r >= 0)
		r = iscsi_count_others(c, a, &paths, NULL, err);
	if (r != 0)
		return r < 0 ? r : 0;
	all_addresses(c, a, &paths, &addresses);
	r = scsi_volume_remove(c, a, &addresses, force, err);
	n = iscsi_target_names(&paths, names);
	for (int i = 0; i < n && r >= 0; i++) {
		r = iscsi_count_others(c, a, &paths, names[i], err);
		if (r == 0)
			r = iscsi_logout(c, iscsi_iface(a->driver), names[i], err);
	}
	return r < 0 ? r : 0;
}

/* The record's paths, and the addresses where they are now. */
static int find_unit(const struct call *c, struct attachment *a, struct scsi_paths *ret,
		     struct error *err)
{
	struct iscsi_paths paths;
	int r = iscsi_paths_read(a, &paths, err);

	return r < 0 ? r : all_addresses(c, a, &paths, ret);
}

static int iscsi_verify(const struct call *c, struct attachment *a, struct error *err)
{
	struct scsi_paths addresses;
	int r = find_unit(c, a, &addresses, err);

	return r < 0 ? r : scsi_volume_verify(c, a, &addresses, err);
}

static int iscsi_extend(const struct call *c, struct attachment *a, json_t *result,
			struct error *err)
{
	struct scsi_paths addresses;
	int r = find_unit(c, a, &addresses, err);

	return r < 0 ? r : scsi_volume_extend(c, a, &addresses, result, err);
}

static int iscsi_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	const char *names[ISCSI_PATHS_MAX];
	struct scsi_paths addresses;
	struct iscsi_paths paths;
	char step[ISCSI_NAME_MAX + 40];
	int n, r = find_unit(c, a, &addresses, err);

	if (r >= 0)
		r = iscsi_paths_read(a, &paths, err);
	if (r >= 0)
		r = iscsi_count_others(c, a, &paths, NULL, err);
	if (r != 0)
		return r < 0 ? r : 0; /* another consumer has it: only the record goes */
	r = scsi_volume_plan(c, a, &addresses, result, err);
	n = iscsi_target_names(&paths, names);
	for (int i = 0; i < n && r >= 0; i++) {
		r = iscsi_count_others(c, a, &paths, names[i], err);
		if (r != 0)
			continue;
		snprintf(step, sizeof(step), "log out of %s", names[i]);
		if (json_array_append_new(jget(result, "steps"), json_string(step)) < 0)
			return no_memory(err);
	}
	return r < 0 ? r : 0;
}

static int tcp_audit(const struct call *c, bool repair, json_t *findings, struct error *err)
{
	return iscsi_audit(c, iscsi_iface(&driver_iscsi), repair, findings, err);
}

static int iser_audit(const struct call *c, bool repair, json_t *findings, struct error *err)
{
	return iscsi_audit(c, iscsi_iface(&driver_iser), repair, findings, err);
}

#define OPERATIONS                                                                                 \
	.params = params, .identity = identity_keys, .form = scsi_volume_form,                     \
	.prepare = iscsi_prepare, .connect = iscsi_connect, .disconnect = iscsi_disconnect,        \
	.verify = iscsi_verify, .extend = iscsi_extend, .plan = iscsi_plan

const struct driver driver_iscsi = {
	.name = "ISCSI",
	.title = "iSCSI",
	.help = "A logical unit of an iSCSI target, on one or several paths. Sessions are this "
		"library's own (interface \"hostvol\"), shared by all volumes of a target; the "
		"last one logs out. Needs open-iscsi on this host, and multipath-tools for "
		"several paths. "
		"As a CSI volume with a single writer it is reserved for its node (SCSI persistent "
		"reservation); a target without "
		"that needs fencing: none.",
	.audit = tcp_audit,
	OPERATIONS,
};

const struct driver driver_iser = {
	.name = "ISER",
	.title = "iSER",
	.help = "As iSCSI, over RDMA (interface \"hostvol-iser\").",
	.audit = iser_audit,
	OPERATIONS,
};
