/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fibre Channel. The fabric makes the way: nothing is logged in to, no program is run. What is left
 * is to find which of this host's ports see the target's, and to take the unit there.
 */
#include "base/mem.h"
#include "base/str.h"
#include "block/scsi_volume.h"
#include "core/journal.h"
#include "drivers.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define WWN_DIGITS 16
#define TARGETS_MAX 16

/* The target's ports, the unit's number at each, and which of this host's ports lead there. */
struct fc_targets {
	const char *map; /* "initiator;port;port,…"; NULL: all that see them */
	struct {
		char wwn[WWN_DIGITS + 1];
		uint64_t lun;
	} items[TARGETS_MAX];
	int count;
};

/* 16 digits of "0x5006…", "50:06:…", "5006…", in lower case. */
static int wwn_digits(const char *text, size_t len, char ret[static WWN_DIGITS + 1])
{
	size_t n = 0,
	       i = len > 2 && text[0] == '0' && tolower((unsigned char)text[1]) == 'x' ? 2 : 0;

	for (; i < len; i++) {
		if (text[i] == ':' || text[i] == '-')
			continue;
		if (!isxdigit((unsigned char)text[i]) || n == WWN_DIGITS)
			return -EINVAL;
		ret[n++] = (char)tolower((unsigned char)text[i]);
	}
	ret[n] = '\0';
	return n == WWN_DIGITS ? 0 : -EINVAL;
}

/* A list of names, or of such lists (initiatorTargetMap). */
static int check_wwns(const char *value, struct error *err)
{
	char digits[WWN_DIGITS + 1];

	for (const char *p = value; *p;) {
		size_t len = strcspn(p, ",;");

		if (wwn_digits(p, len, digits) < 0)
			return error_set(err, EINVAL, "\"%.*s\" is no port name of 16 digits",
					 (int)(len < 60 ? len : 60), p);
		p += len;
		p += *p != '\0';
	}
	return 0;
}

static const struct param params[] = {
	{ .name = "targetWwn",
	  .aliases = (const char *const[]){ "targetWwpn", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .check = check_wwns,
	  .help = "The names of the target's ports; every port of this host that sees one is a "
		  "path.",
	  .example = "50060e801049cfd1,50060e801049cfd2" },
	{ .name = "targetLun",
	  .type = PARAM_LIST,
	  .required = true,
	  .identity = true,
	  .help = "The volume's number at the target; one, or one for each port.",
	  .example = "12" },
	SCSI_PARAM_WWN,
	SCSI_PARAM_MULTIPATH,
	SCSI_PARAM_ENFORCE_MULTIPATH,
	SCSI_PARAM_ADDRESSING_MODE,
	{ .name = "initiatorTargetMap",
	  .type = PARAM_MAP,
	  .check = check_wwns,
	  .fallback = "every port of this host that sees the target",
	  .help = "Which ports of the target each of this host's ports is zoned to. Others are not "
		  "asked: a virtual port (NPIV) sees the same target, and another volume there.",
	  .example = "{\"2100001b32817c0a\": [\"50060e801049cfd1\"]}" },
	{ .name = "enableWildcardScan",
	  .type = PARAM_IGNORED,
	  .help = "Accepted and ignored: only the volume itself is looked for." },
	{ .name = "targetDiscovered", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ 0 },
};

static int read_targets(const struct attachment *a, struct fc_targets *ret, struct error *err)
{
	const char *wwn = attachment_param(a, "targetWwn"), *lun = attachment_param(a, "targetLun");
	bool one = !strchr(lun, ',');
	char text[40];
	int r;

	*ret = (struct fc_targets){ .map = attachment_param(a, "initiatorTargetMap") };
	while (*wwn) {
		size_t len = strcspn(wwn, ",");

		if (ret->count == TARGETS_MAX || !*lun)
			return error_set(
				err, EINVAL,
				"targetLun: give one, or as many as targetWwn has (at most %d)",
				TARGETS_MAX);
		if (wwn_digits(wwn, len, ret->items[ret->count].wwn) < 0)
			return error_set(err, EINVAL, "targetWwn: no port name of 16 digits");
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(lun, ","), lun);
		r = scsi_lun(text, attachment_param(a, "addressingMode"),
			     &ret->items[ret->count].lun, err);
		if (r < 0)
			return error_prefix(err, "targetLun");
		ret->count++;
		wwn += len;
		wwn += *wwn == ',';
		if (!one) {
			lun += strcspn(lun, ",");
			lun += *lun == ',';
		}
	}
	return 0;
}

/* ---- what this host sees -------------------------------------------------------------------- */

struct search {
	const struct call *c;
	const struct fc_targets *targets;
	struct scsi_paths *out;
	const char *state; /* only ports in this one; NULL: in any */
};

/* The first of what is left of "a;b,c"; returns where the rest begins, NULL at the end. */
static const char *next_wwn(const char *text, char ret[static WWN_DIGITS + 1])
{
	size_t len = strcspn(text, ",;");

	if (!len || wwn_digits(text, len, ret) < 0)
		return NULL;
	return text + len;
}

/* Whether the map sends this host's port (hostN) to the target's. */
static bool leads_to(const struct search *s, unsigned host, const char *target)
{
	const char *p = s->targets->map;
	char line[64], own[WWN_DIGITS + 1], wwn[WWN_DIGITS + 1];
	bool ours = false, first = true;

	if (!p)
		return true;
	sys_line(s->c, line, sizeof(line), "/sys/class/fc_host/host%u/port_name", host);
	if (wwn_digits(line, strlen(line), own) < 0)
		return false;
	while ((p = next_wwn(p, wwn))) {
		if (first)
			ours = streq(wwn, own);
		else if (ours && streq(wwn, target))
			return true;
		first = *p == ',';
		p += *p != '\0';
	}
	return false;
}

static int add_port(const char *name, void *userdata)
{
	struct search *s = userdata;
	char line[64], roles[64], wwn[WWN_DIGITS + 1];
	unsigned host, channel, number;
	uint64_t target;

	if (sscanf(name, "rport-%u:%u-%u", &host, &channel, &number) != 3)
		return 0;
	/* other hosts' ports are seen as well, and have no number as a target */
	sys_line(s->c, roles, sizeof(roles), "/sys/class/fc_remote_ports/%s/roles", name);
	sys_line(s->c, line, sizeof(line), "/sys/class/fc_remote_ports/%s/port_name", name);
	if (!strstr(roles, "FCP Target") || wwn_digits(line, strlen(line), wwn) < 0 ||
	    sys_number(s->c, &target, "/sys/class/fc_remote_ports/%s/scsi_target_id", name) < 0)
		return 0;
	sys_line(s->c, line, sizeof(line), "/sys/class/fc_remote_ports/%s/port_state", name);
	if (s->state && !streq(line, s->state))
		return 0;
	for (int i = 0; i < s->targets->count && s->out->count < SCSI_PATHS_MAX; i++)
		if (streq(wwn, s->targets->items[i].wwn) && leads_to(s, host, wwn))
			s->out->at[s->out->count++] =
				(struct scsi_address){ .host = host,
						       .channel = channel,
						       .target = (unsigned)target,
						       .lun = s->targets->items[i].lun };
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct scsi_address *x = a, *y = b;

	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	return x->target < y->target ? -1 : x->target > y->target;
}

/* Adds them in an order that is the same each time. */
static int find_in_state(const struct call *c, const struct attachment *a, const char *state,
			 struct scsi_paths *ret, struct error *err)
{
	struct fc_targets targets;
	struct search s = { .c = c, .targets = &targets, .out = ret, .state = state };
	int before = ret->count, r = read_targets(a, &targets, err);

	if (r >= 0)
		r = sys_each(c, "/sys/class/fc_remote_ports", add_port, &s);
	if (r >= 0)
		qsort(ret->at + before, (size_t)(ret->count - before), sizeof(ret->at[0]),
		      by_number);
	return r;
}

/* reachable: only what answers now; what the fabric calls marginal does, and comes last. */
static int find_paths(const struct call *c, const struct attachment *a, bool reachable,
		      struct scsi_paths *ret, struct error *err)
{
	int r;

	ret->count = 0;
	if (!reachable)
		return find_in_state(c, a, NULL, ret, err);
	r = find_in_state(c, a, "Online", ret, err);
	return r < 0 ? r : find_in_state(c, a, "Marginal", ret, err);
}

/* ---- operations ----------------------------------------------------------------------------- */

static int fc_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	struct fc_targets targets;
	const char *least;
	char *target = NULL;
	int r = read_targets(a, &targets, err);

	if (r < 0)
		return r;
	/* volumes of one array list the same ports in any order: they lock the same */
	least = targets.items[0].wwn;
	for (int i = 1; i < targets.count; i++)
		least = strcmp(targets.items[i].wwn, least) < 0 ? targets.items[i].wwn : least;
	r = text_format(&target, err, "FC %s", least);
	return r < 0 ? r : attachment_set_target(a, target);
}

static int fc_connect(const struct call *c, struct attachment *a, struct error *err)
{
	struct scsi_paths paths;
	int multipath, r = find_paths(c, a, true, &paths, err);

	if (r < 0)
		return r;
	if (!paths.count)
		return error_set(
			err, ENOTCONN,
			"no Fibre Channel port of this host sees %.100s: look at cabling and "
			"zoning",
			attachment_param(a, "targetWwn"));
	multipath = scsi_wants_multipath(c, a, paths.count, err);
	if (multipath < 0)
		return multipath;
	/* without multipath one path is one device; the others would be the same volume again */
	for (int i = 0; !multipath && i < paths.count; i++) {
		struct scsi_paths one = { .at = { paths.at[i] }, .count = 1 };

		r = scsi_volume_connect(c, a, &one, false, err);
		if (r >= 0 || r == -ESTALE || r == -EBUSY || call_left(c, 0, NULL) < 0)
			break;
	}
	return multipath ? scsi_volume_connect(c, a, &paths, true, err) : r;
}

struct others {
	const struct attachment *of;
	const struct fc_targets *targets;
	int count;
};

static int count_other(struct attachment *a, void *userdata)
{
	struct others *o = userdata;
	struct fc_targets theirs;

	if (a->driver != o->of->driver || !attachment_has_consumer(a) ||
	    streq(a->id, o->of->id) || read_targets(a, &theirs, NULL) < 0)
		return 0;
	for (int i = 0; i < theirs.count; i++)
		for (int j = 0; j < o->targets->count; j++)
			if (theirs.items[i].lun == o->targets->items[j].lun &&
			    streq(theirs.items[i].wwn, o->targets->items[j].wwn)) {
				o->count++;
				return 0;
			}
	return 0;
}

/* Other consumers of the same unit. */
static int count_others(const struct call *c, const struct attachment *a, struct error *err)
{
	struct fc_targets targets;
	struct others o = { .of = a, .targets = &targets };
	int r = read_targets(a, &targets, err);

	if (r >= 0)
		r = journal_each(c, count_other, &o, err);
	return r < 0 ? r : o.count + r;
}

static int fc_disconnect(const struct call *c, struct attachment *a, bool force, struct error *err)
{
	struct scsi_paths paths;
	int r = count_others(c, a, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = find_paths(c, a, false, &paths, err);
	return r < 0 ? r : scsi_volume_remove(c, a, &paths, force, err);
}

static int fc_verify(const struct call *c, struct attachment *a, struct error *err)
{
	struct scsi_paths paths;
	int r = find_paths(c, a, false, &paths, err);

	return r < 0 ? r : scsi_volume_verify(c, a, &paths, err);
}

static int fc_extend(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	struct scsi_paths paths;
	int r = find_paths(c, a, false, &paths, err);

	return r < 0 ? r : scsi_volume_extend(c, a, &paths, result, err);
}

static int fc_plan(const struct call *c, struct attachment *a, json_t *result, struct error *err)
{
	struct scsi_paths paths;
	int r = count_others(c, a, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = find_paths(c, a, false, &paths, err);
	return r < 0 ? r : scsi_volume_plan(c, a, &paths, result, err);
}

const struct driver driver_fc = {
	.name = "FIBRE_CHANNEL",
	.aliases = (const char *const[]){ "FC", NULL },
	.title = "Fibre Channel",
	.help = "A logical unit behind Fibre Channel ports that this host sees, on one or several "
		"paths. Needs multipath-tools for several paths. "
		"As a CSI volume with a single writer it is reserved for its node (SCSI persistent "
		"reservation); a target without "
		"that needs fencing: none.",
	.params = params,
	.identity = identity_keys,
	.form = scsi_volume_form,
	.prepare = fc_prepare,
	.connect = fc_connect,
	.disconnect = fc_disconnect,
	.verify = fc_verify,
	.extend = fc_extend,
	.plan = fc_plan,
};
