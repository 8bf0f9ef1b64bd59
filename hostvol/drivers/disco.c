/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DISCO: the storage client on a host of the cluster is asked over TCP to attach a volume, which
 * appears as /dev/dms<ID>.
 */
#include "device.h"
#include "disco_wire.h"
#include "drivers.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

static int check_address(const char *value, struct error *err)
{
	unsigned char bytes[16];

	if (inet_pton(strchr(value, ':') ? AF_INET6 : AF_INET, value, bytes) != 1)
		return error_set(err, EINVAL, "\"%.60s\" is not an IP address", value);
	return 0;
}

int check_port(const char *value, struct error *err)
{
	unsigned long port = strtoul(value, NULL, 10);

	if (port < 1 || port > 65535)
		return error_set(err, EINVAL, "%.30s is not a port (1 to 65535)", value);
	return 0;
}

static const struct param params[] = {
	{ .name = "discoId",
	  .type = PARAM_NUMBER,
	  .required = true,
	  .identity = true,
	  .help = "The number of the volume.",
	  .example = "1234567" },
	{ .name = "serverIp",
	  .aliases = (const char *const[]){ "serverIP", NULL },
	  .required = true,
	  .check = check_address,
	  .help = "The address of the host whose storage client is asked.",
	  .example = "192.0.2.20" },
	{ .name = "serverPort",
	  .type = PARAM_NUMBER,
	  .required = true,
	  .check = check_port,
	  .help = "Its TCP port.",
	  .example = "9898" },
	{ .name = "conf",
	  .type = PARAM_GROUP,
	  .help = "An object with serverIp and serverPort, as some send them." },
	{ 0 },
};

static int disco_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	int r = text_format(&target, err, "DISCO %s", attachment_param(a, "discoId"));

	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

static int disco_find(const struct call *c, struct attachment *a, char **ret, struct error *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/dev/dms%s", attachment_param(a, "discoId"));
	return device_find_at(c, path, ret, err);
}

/* 0: done; 1: the server said no (and *err holds it). */
static int disco_ask(const struct call *c, struct attachment *a, enum disco_op op,
		     struct error *err)
{
	const char *id = attachment_param(a, "discoId"), *ip = attachment_param(a, "serverIp"),
		   *port = attachment_param(a, "serverPort");
	unsigned char request[DISCO_REQUEST_LEN], reply[DISCO_REPLY_LEN];
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	disco_request(request, op, strtoull(id, NULL, 10));
	r = c->host->exchange(c->host, ip, (unsigned)strtoul(port, NULL, 10), request,
			      sizeof(request), reply, sizeof(reply), r);
	if (r < 0)
		return error_errno(err, -r, "cannot ask the DISCO client at %s port %s", ip, port);
	r = disco_reply(reply, sizeof(reply), err);
	if (r == 0)
		return 0;
	error_prefix(err, "the DISCO client at %s will not %s volume %s", ip,
		     op == DISCO_ATTACH ? "attach" : "detach", id);
	return 1;
}

static int disco_attach(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	int r = disco_find(c, a, &path, err);

	if (r != 0)
		return r; /* it is here */
	r = disco_ask(c, a, DISCO_ATTACH, err);
	/* a connection that was not made has asked for nothing */
	if (r > 0 || r == -ECONNREFUSED || r == -EHOSTUNREACH || r == -ENETUNREACH)
		device_refused(a);
	return r > 0 ? -EIO : r;
}

static int disco_detach(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *path = NULL;
	int here = disco_find(c, a, &path, err), r;

	if (here < 0)
		return here;
	/* one that has not come, or has gone on its own, counts as attached there */
	r = disco_ask(c, a, DISCO_DETACH, err);
	if (r > 0)
		return here ? -EIO : 0;
	return r;
}

static const struct device_type type = {
	.find = disco_find,
	.attach = disco_attach,
	.detach = disco_detach,
};

const struct driver driver_disco = {
	.name = "DISCO",
	.title = "DISCO",
	.help = "A volume of DISCO. The storage client of a host is asked over TCP to attach it; "
		"the "
		"device is /dev/dms<discoId>, returned once it is there.",
	.params = params,
	.identity = device_keys,
	.prepare = disco_prepare,
	.connect = device_connect,
	.disconnect = device_disconnect,
	.verify = device_verify,
	.device = &type,
};
