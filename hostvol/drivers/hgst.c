/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HGST: a space of the cluster appears as /dev/NAME on every host that is among its application
 * hosts. This host has to know what the cluster calls it.
 */
#include "device.h"
#include "drivers.h"
#include "vendor_text.h"

#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define CLUSTER_CLI "vgc-cluster"
#define DOMAIN_MAX 65536 /* bytes of the list of the cluster's hosts */

static const struct param params[] = {
	{ .name = "name",
	  .required = true,
	  .identity = true,
	  .check = check_plain_name,
	  .help = "The name of the space.",
	  .example = "space01" },
	{ .name = "noRemoveHost",
	  .aliases = (const char *const[]){ "noremovehost", NULL },
	  .check = check_plain_name,
	  .help = "A host of the cluster that stays among the space's hosts: where it is this one, "
		  "disconnecting leaves the device here.",
	  .example = "storage1" },
	{ 0 },
};

static int hgst_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	int r = text_format(&target, err, "HGST %s", attachment_param(a, "name"));

	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

static int hgst_find(const struct call *c, struct attachment *a, char **ret, struct error *err)
{
	cleanup_free char *path = NULL;
	int r = text_format(&path, err, "/dev/%s", attachment_param(a, "name"));

	return r < 0 ? r : device_find_at(c, path, ret, err);
}

/* ---- what the cluster calls this host ------------------------------------------------------- */

static bool is_number(const char *host)
{
	return strchr(host, ':') || host[strspn(host, "0123456789.")] == '\0';
}

/* Whether a name of the list is this host's: by its own name, or by an address that it has. */
static int is_this_host(const struct call *c, const char *host, bool resolve, struct error *err)
{
	char machine[128], own[128], text[2048];
	const char *word, *p = text;
	struct host_result result;
	size_t len;
	int r;

	if (is_number(host))
		return c->host->has_address(c->host, host);
	r = c->host->identify(c->host, machine, own, sizeof(own));
	if (r < 0)
		return error_errno(err, -r, "cannot read the name of this host");
	if (strcasecmp(host, own) == 0 || !resolve)
		return strcasecmp(host, own) == 0;
	/* in a process of its own: a name server that does not answer has no deadline */
	r = device_run(c,
		       &(struct host_command){
			       .argv = (const char *const[]){ "getent", "ahosts", host, NULL },
			       .out = text,
			       .out_size = sizeof(text) },
		       &result, err);
	if (r < 0)
		return r;
	while (result.status == 0 && (word = next_word(&p, &len))) {
		char address[64];

		snprintf(address, sizeof(address), "%.*s", (int)len, word);
		if (c->host->has_address(c->host, address))
			return 1;
	}
	return 0;
}

static int find_in_domain(const struct call *c, const char *list, bool resolve, char *buf,
			  size_t size, struct error *err)
{
	const char *word;
	size_t len;

	while ((word = next_word(&list, &len))) {
		int r;

		if (len >= size)
			continue;
		memcpy(buf, word, len);
		buf[len] = '\0';
		if (check_plain_name(buf, NULL) < 0)
			continue;
		r = is_this_host(c, buf, resolve, err);
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return -ENODEV;
}

/* What needs no name server is tried first. */
static int find_own_name(const struct call *c, const char *list, char *buf, size_t size,
			 struct error *err)
{
	int r = find_in_domain(c, list, false, buf, size, err);

	if (r == -ENODEV)
		r = find_in_domain(c, list, true, buf, size, err);
	if (r != -ENODEV)
		return r;
	return error_set(
		err, ENODEV,
		"this host is not in the HGST domain: none of the hosts that \"" CLUSTER_CLI
		" domain-list\" prints has one of its addresses");
}

/* The name is recorded: it may be needed when the cluster does not answer any more. */
static int own_name(const struct call *c, struct attachment *a, const char **ret, struct error *err)
{
	cleanup_free char *list = NULL;
	struct host_result result;
	char name[256];
	int r;

	*ret = attachment_detail(a, "clusterHost");
	if (**ret)
		return 0;
	list = calloc(1, DOMAIN_MAX);
	if (!list)
		return no_memory(err);
	r = device_run(
		c,
		&(struct host_command){
			.argv = (const char *const[]){ CLUSTER_CLI, "domain-list", "-1", NULL },
			.out = list,
			.out_size = DOMAIN_MAX },
		&result, err);
	if (r < 0)
		return r;
	if (result.status != 0)
		return error_set(err, EIO,
				 "cannot list the HGST domain, is the cluster running? " CLUSTER_CLI
				 " says: %.200s (status %d)",
				 result.err[0] ? result.err : list, result.status);
	r = find_own_name(c, list, name, sizeof(name), err);
	if (r >= 0)
		r = attachment_set_detail(a, "clusterHost", name, err);
	if (r >= 0)
		*ret = attachment_detail(a, "clusterHost");
	return r;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static int set_host(const struct call *c, struct attachment *a, const char *host,
		    const char *action, struct error *err)
{
	const char *name = attachment_param(a, "name");
	struct host_result result;
	int r = device_run(c,
			   &(struct host_command){
				   .argv = (const char *const[]){ CLUSTER_CLI, "space-set-apphosts",
								  "-n", name, "-A", host,
								  "--action", action, NULL } },
			   &result, err);

	if (r < 0 || result.status == 0)
		return r;
	result.err[strcspn(result.err, "\n")] = '\0';
	error_set(err, EIO, "cannot %s host %s %s space %s: %.200s (" CLUSTER_CLI ", status %d)",
		  streq(action, "ADD") ? "add" : "remove", host,
		  streq(action, "ADD") ? "to" : "from", name,
		  result.err[0] ? result.err : "it does not say why", result.status);
	return 1;
}

static int hgst_attach(const struct call *c, struct attachment *a, struct error *err)
{
	const char *host;
	int r = own_name(c, a, &host, err);

	if (r < 0) {
		device_refused(a);
		return r;
	}
	r = set_host(c, a, host, "ADD", err);
	if (r > 0)
		device_refused(a);
	return r > 0 ? -EIO : r;
}

static int hgst_detach(const struct call *c, struct attachment *a, struct error *err)
{
	const char *keep = attachment_param(a, "noRemoveHost"), *host;
	int r = own_name(c, a, &host, err);

	if (r < 0)
		return r;
	if (keep && strcasecmp(keep, host) == 0)
		return 1;
	r = set_host(c, a, host, "DELETE", err);
	return r > 0 ? -EIO : r;
}

static const struct device_type type = {
	.find = hgst_find,
	.attach = hgst_attach,
	.detach = hgst_detach,
};

const struct driver driver_hgst = {
	.name = "HGST",
	.title = "HGST",
	.help = "A space of an HGST cluster that this host belongs to. The device is /dev/<name>. "
		"Needs "
		"the vendor's program " CLUSTER_CLI " on this host.",
	.params = params,
	.identity = device_keys,
	.prepare = hgst_prepare,
	.connect = device_connect,
	.disconnect = device_disconnect,
	.verify = device_verify,
	.device = &type,
};
