/* SPDX-License-Identifier: Apache-2.0 */
#include "nvme.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* As the kernel calls it, or NULL. */
static const char *transport_of(const char *value)
{
	static const struct {
		const char *word, *transport;
	} known[] = { { "tcp", "tcp" }, { "rdma", "rdma" }, { "rocev2", "rdma" }, { "fc", "fc" } };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strcasecmp(value, known[i].word) == 0)
			return known[i].transport;
	return NULL;
}

static int check_transport(const char *value, struct error *err)
{
	return transport_of(value)
		       ? 0
		       : error_set(err, EINVAL, "\"%.40s\" is neither tcp nor rdma nor fc", value);
}

/* What becomes an option for the kernel must not end it. */
static int check_word(const char *value, struct error *err)
{
	if (strlen(value) >= NQN_MAX || strpbrk(value, ", \\\"'"))
		return error_set(err, EINVAL,
				 "longer than %d bytes, or with a comma, blank or quote",
				 NQN_MAX - 1);
	return 0;
}

static int check_number(const char *value, struct error *err)
{
	if (!*value || strlen(value) > 9 || strspn(value, "0123456789") != strlen(value))
		return error_set(err, EINVAL, "\"%.40s\" is no number", value);
	return 0;
}

/* The kernel's word for "never" is -1. */
static int check_seconds(const char *value, struct error *err)
{
	return streq(value, "-1") ? 0 : check_number(value, err);
}

static int check_uuid(const char *value, struct error *err)
{
	size_t digits = 0;

	for (const char *p = value; *p; p++) {
		if (*p != '-' && !isxdigit((unsigned char)*p))
			return error_set(err, EINVAL, "\"%.60s\" is not hexadecimal", value);
		digits += *p != '-';
	}
	if (digits != 32)
		return error_set(err, EINVAL, "\"%.60s\" has not 32 digits", value);
	return 0;
}

const struct param nvme_params[] = {
	{ .name = "targetNqn",
	  .aliases = (const char *const[]){ "nqn", NULL },
	  .required = true,
	  .identity = true,
	  .check = check_word,
	  .help = "The name of the subsystem that has the volume.",
	  .example = "nqn.2026-01.net.example:array" },
	{ .name = "targetPortal",
	  .aliases = (const char *const[]){ "portal", "traddr", NULL },
	  .type = PARAM_LIST,
	  .required = true,
	  .help = "Where the subsystem listens, HOST:PORT, or [HOST, PORT, TRANSPORT]; several are "
		  "several paths. For Fibre Channel nn-0x…:pn-0x….",
	  .example = "192.0.2.10:4420,192.0.2.11:4420" },
	{ .name = "targetPort",
	  .aliases = (const char *const[]){ "trsvcid", NULL },
	  .type = PARAM_LIST,
	  .fallback = "4420",
	  .check = check_number,
	  .help = "The port of portals that say none." },
	{ .name = "transportType",
	  .aliases = (const char *const[]){ "transport", "trtype", NULL },
	  .fallback = "tcp",
	  .check = check_transport,
	  .help = "\"tcp\", \"rdma\" (also \"RoCEv2\") or \"fc\", of portals that say none." },
	{ .name = "volUuid",
	  .aliases = (const char *const[]){ "uuid", "volumeUuid", NULL },
	  .identity = true,
	  .expectation = true,
	  .check = check_uuid,
	  .help = "The namespace's UUID. One of volUuid, volumeNguid and nsId must be given; the "
		  "first of them decides.",
	  .example = "3f1c2a9e-0000-4000-8000-000000000001" },
	{ .name = "volumeNguid",
	  .aliases = (const char *const[]){ "nguid", NULL },
	  .identity = true,
	  .expectation = true,
	  .check = check_uuid,
	  .help = "The namespace's NGUID." },
	{ .name = "nsId",
	  .aliases = (const char *const[]){ "nsid", NULL },
	  .type = PARAM_LIST,
	  .identity = true,
	  .check = check_number,
	  .help = "The namespace's number, which the storage may give to another volume." },
	{ .name = "hostNqn",
	  .check = check_word,
	  .fallback = "/etc/nvme/hostnqn",
	  .help = "This host's name to the subsystem. No other host may have it: storage takes two "
		  "that share one for the same, and they damage each other's data. hostvol warns "
		  "when this host's controllers use a name with two identifiers, or an identifier "
		  "with two names." },
	{ .name = "hostId",
	  .check = check_uuid,
	  .fallback = "/etc/nvme/hostid",
	  .help = "This host's identifier, one with its name. Where hostNqn is given alone, and "
		  "ends "
		  "in a UUID, that one." },
	{ .name = "hostTraddr",
	  .check = check_word,
	  .help = "The address of this host that connections leave from. Over Fibre Channel it is "
		  "needed: nn-0x…:pn-0x… of the port." },
	{ .name = "ctrlLossTmo",
	  .type = PARAM_LIST,
	  .check = check_seconds,
	  .fallback = NVME_LOSS_DEFAULT,
	  .help = "Seconds until a subsystem that does not answer is given up, and with it the "
		  "device and what was not written yet: hostvol warns of less than 60. -1 is "
		  "never: then processes that use it wait until it is back or disconnected. A "
		  "controller that is connected already keeps its own." },
	{ .name = "dhchapSecret",
	  .secret = true,
	  .check = check_word,
	  .help = "This host's key, DHHC-1:…, where the subsystem wants to know who connects." },
	{ 0 },
};

/* "0x500…", with or without 0x: 64 bits; what follows it. */
static const char *read_wwn(const char *text, uint64_t *ret)
{
	size_t digits;

	if (str_has_prefix(text, "0x") || str_has_prefix(text, "0X"))
		text += 2;
	digits = strspn(text, "0123456789abcdefABCDEF");
	if (digits == 0 || digits > 16)
		return NULL;
	*ret = strtoull(text, NULL, 16);
	return text + digits;
}

int nvme_fc_address_parse(const char *text, char *buf, size_t size, struct error *err)
{
	uint64_t node, port;
	const char *p = str_has_prefix(text, "nn-") ? read_wwn(text + 3, &node) : NULL;

	p = p && str_has_prefix(p, ":pn-") ? read_wwn(p + 4, &port) : NULL;
	if (!p || *p)
		return error_set(err, EINVAL, "\"%.100s\" is not nn-0x…:pn-0x…", text);
	/* the kernel takes 16 digits, and what it shows is compared with this */
	snprintf(buf, size, "nn-0x%016" PRIx64 ":pn-0x%016" PRIx64, node, port);
	return 0;
}

static bool is_port(const char *text)
{
	return check_number(text, NULL) == 0 && strtoul(text, NULL, 10) - 1 < 65535;
}

/* HOST, HOST:PORT, [IPV6]:PORT, or IPV6 alone, which has more than one colon. */
static int split_host(char *host, struct nvme_address *a, const char *text, struct error *err)
{
	char *colon = strchr(host, ':'), *end;

	if (host[0] == '[' && (end = strchr(host, ']'))) {
		*end++ = '\0';
		host++;
		if (*end == ':')
			snprintf(a->trsvcid, sizeof(a->trsvcid), "%.15s", end + 1);
		else if (*end)
			*host = '\0';
	} else if (colon && colon == strrchr(host, ':')) {
		*colon = '\0';
		snprintf(a->trsvcid, sizeof(a->trsvcid), "%.15s", colon + 1);
	}
	if (!host[0] || strpbrk(host, "[]") || strlen(host) >= sizeof(a->traddr) ||
	    !is_port(a->trsvcid))
		return error_set(err, EINVAL, "\"%.100s\" is not HOST:PORT", text);
	snprintf(a->traddr, sizeof(a->traddr), "%.127s", host);
	return 0;
}

int nvme_portal_parse(const char *text, const char *transport, const char *port,
		      struct nvme_address *ret, struct error *err)
{
	struct nvme_address a = { 0 };
	char copy[200], *host = copy, *second, *end;
	int r;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy) ||
	    check_word(text, NULL) < 0)
		return error_set(err, EINVAL, "\"%.100s\" is no portal", text);
	snprintf(a.trsvcid, sizeof(a.trsvcid), "%.15s", port);
	end = strstr(copy, "://");
	if (end) { /* tcp://HOST:PORT */
		*end = '\0';
		transport = copy;
		host = end + 3;
	}
	end = strchr(host, ';');
	if (end) { /* HOST;PORT;TRANSPORT, of an array */
		*end++ = '\0';
		second = strchr(end, ';');
		if (second) {
			*second++ = '\0';
			transport = second;
		}
		snprintf(a.trsvcid, sizeof(a.trsvcid), "%.15s", end);
	}
	r = check_transport(transport, err);
	if (r < 0)
		return r;
	snprintf(a.transport, sizeof(a.transport), "%s", transport_of(transport));
	if (streq(a.transport, "fc")) { /* has no ports */
		a.trsvcid[0] = '\0';
		r = nvme_fc_address_parse(host, a.traddr, sizeof(a.traddr), err);
	} else {
		r = split_host(host, &a, text, err);
	}
	if (r >= 0)
		*ret = a;
	return r;
}

/* Where the connection leaves this host from. */
static int set_source(struct nvme_address *a, const char *source, struct error *err)
{
	if (streq(a->transport, "fc")) {
		if (!source)
			return error_set(
				err, EINVAL,
				"hostTraddr is missing: over Fibre Channel the kernel must "
				"be told by which port of this host (nn-0x…:pn-0x…)");
		return nvme_fc_address_parse(source, a->host_traddr, sizeof(a->host_traddr), err);
	}
	if (source)
		snprintf(a->host_traddr, sizeof(a->host_traddr), "%.127s", source);
	return 0;
}

int nvme_target_read(const struct attachment *a, struct nvme_target *ret, struct error *err)
{
	const char *portals = attachment_param(a, "targetPortal"),
		   *port = attachment_param(a, "targetPort"),
		   *transport = attachment_param(a, "transportType"),
		   *out = attachment_param(a, "hostTraddr");
	char text[200];
	int r;

	*ret = (struct nvme_target){ .nqn = attachment_param(a, "targetNqn"),
				     .want = { .uuid = attachment_param(a, "volUuid"),
					       .nguid = attachment_param(a, "volumeNguid"),
					       .nsid = attachment_param(a, "nsId") } };
	if (!ret->want.uuid && !ret->want.nguid && !ret->want.nsid)
		return error_set(
			err, EINVAL,
			"none of volUuid, volumeNguid and nsId is given: which namespace?");
	for (const char *p = portals; *p;) {
		size_t len = strcspn(p, ",");

		if (ret->count == NVME_PORTALS_MAX)
			return error_set(err, EINVAL, "targetPortal: more than %d",
					 NVME_PORTALS_MAX);
		snprintf(text, sizeof(text), "%.*s", (int)len, p);
		r = nvme_portal_parse(text, transport ? transport : "tcp", port ? port : "4420",
				      &ret->portals[ret->count], err);
		if (r < 0)
			return error_prefix(err, "targetPortal");
		r = set_source(&ret->portals[ret->count++], out, err);
		if (r < 0)
			return r;
		p += len;
		p += *p == ',';
	}
	return 0;
}
