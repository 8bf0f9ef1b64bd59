/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SCALEIO: the gateway is told over HTTPS to map a volume to this host, which it knows by the GUID
 * of the kernel driver scini; the device then appears below /dev/disk/by-id.
 */
#include "device.h"
#include "drivers.h"
#include "scaleio_rest.h"

#include "base/mem.h"
#include "core/params.h"
#include "core/recorded.h"
#include "core/sdc.h"

#include <errno.h>
#include <stdio.h>

#define LINK_DIR "/dev/disk/by-id"
#define ID_MAX 40

/* Codes of the gateway that mean what was asked for; from version 4 on they have other numbers. */
enum {
	SIO_MAPPED_BEFORE = 81,
	SIO_MAPPED_BEFORE_V4 = 4037,
	SIO_NOT_MAPPED = 84,
	SIO_NOT_MAPPED_V4 = 4039,
};

static int check_id(const char *value, struct error *err)
{
	if (strlen(value) >= ID_MAX || value[strspn(value, "0123456789abcdefABCDEF")])
		return error_set(err, EINVAL, "\"%.50s\" is not a hexadecimal number", value);
	return 0;
}

static int check_server(const char *value, struct error *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]";

	if (value[0] == '-' || value[strspn(value, allowed)])
		return error_set(err, EINVAL, "\"%.100s\" is not a host name or an address", value);
	return 0;
}

static int check_user(const char *value, struct error *err)
{
	if (strchr(value, ':'))
		return error_set(err, EINVAL, "a colon cannot stand in a user's name");
	return 0;
}

static int check_guid(const char *value, struct error *err)
{
	if (strlen(value) != SDC_GUID_MAX - 1 || value[strspn(value, "0123456789abcdefABCDEF-")])
		return error_set(err, EINVAL, "\"%.50s\" is not a GUID", value);
	return 0;
}

static const struct param params[] = {
	{ .name = "scaleIoVolumeId",
	  .aliases = (const char *const[]){ "scaleIO_volume_id", "scaleIOVolumeId", NULL },
	  .identity = true,
	  .expectation = true,
	  .check = check_id,
	  .help = "The id of the volume. It or scaleIoVolname is required.",
	  .example = "e3c2a5f400000001" },
	{ .name = "scaleIoVolname",
	  .aliases = (const char *const[]){ "scaleIO_volname", "scaleIOVolname", NULL },
	  .identity = true,
	  .help = "The name of the volume, by which its id is asked for where that is missing.",
	  .example = "vol-data" },
	{ .name = "serverIp",
	  .aliases = (const char *const[]){ "serverIP", NULL },
	  .check = check_server,
	  .help = "The gateway: an address or a host name. Required, unless sdcGuid is given.",
	  .example = "192.0.2.30" },
	{ .name = "serverPort",
	  .type = PARAM_NUMBER,
	  .fallback = "443",
	  .check = check_port,
	  .help = "Its HTTPS port.",
	  .example = "443" },
	{ .name = "serverUsername",
	  .check = check_user,
	  .help = "Who logs in. Required, unless sdcGuid is given.",
	  .example = "admin" },
	{ .name = "serverPassword",
	  .secret = true,
	  .help = "The password. No record keeps it: disconnecting needs it too, or a token, or a "
		  "passwordFile." },
	{ .name = "serverToken",
	  .secret = true,
	  .help = "A token of an earlier login; when the gateway does not take it any more, the "
		  "password gets a new one." },
	{ .name = "passwordFile",
	  .check = check_clean_path,
	  .help = "A file whose first line is the password, read where serverPassword is missing.",
	  .example = "/etc/quartermaster/scaleio-password" },
	{ .name = "iopsLimit", .type = PARAM_NUMBER, .help = "Operations a second of this host." },
	{ .name = "bandwidthLimit",
	  .type = PARAM_NUMBER,
	  .help = "Kilobytes a second of this host." },
	{ .name = "sdcGuid",
	  .check = check_guid,
	  .help = "Says that the storage backend maps the volume to this host by itself: only its "
		  "device is waited for." },
	{ .name = "verifyCertificate",
	  .type = PARAM_BOOLEAN,
	  .fallback = "true",
	  .help = "False takes any certificate for the gateway's: whoever is on the way reads the "
		  "password." },
	{ .name = "certificatePath",
	  .aliases = (const char *const[]){ "serverCertificatePath", NULL },
	  .check = check_clean_path,
	  .help = "The certificate authority (PEM) that signed the gateway's certificate, where "
		  "the system does not know it.",
	  .example = "/etc/quartermaster/scaleio-ca.pem" },
	{ .name = "hostIp",
	  .aliases = (const char *const[]){ "hostIP", NULL },
	  .type = PARAM_IGNORED,
	  .help = "Accepted and ignored: the gateway knows this host by its GUID." },
	{ .name = "configGroup", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ .name = "failedOver", .type = PARAM_IGNORED, .help = "Accepted and ignored." },
	{ 0 },
};

static int sio_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	const char *id = attachment_param(a, "scaleIoVolumeId"),
		   *name = attachment_param(a, "scaleIoVolname"),
		   *server = attachment_param(a, "serverIp");
	cleanup_free char *target = NULL;
	int r;

	if (!id && !name)
		return error_set(err, EINVAL,
				 "SCALEIO needs the parameter \"scaleIoVolumeId\" (or "
				 "\"scaleIoVolname\")");
	if (attachment_param(a, "sdcGuid")) {
		if (!id)
			return error_set(
				err, EINVAL,
				"with sdcGuid the parameter \"scaleIoVolumeId\" is needed");
	} else if (!server || !attachment_param(a, "serverUsername")) {
		return error_set(
			err, EINVAL,
			"SCALEIO needs the parameters \"serverIp\" and \"serverUsername\"");
	}
	r = text_format(&target, err, "SCALEIO %s %s", id ? id : name, id ? "" : server);
	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

/* ---- the gateway ---------------------------------------------------------------------------- */

struct session {
	const struct call *c;
	struct attachment *a;
	bool sent; /* the last request went out, and was not turned away for its token */
	char token[2048];
};

static void session_done(struct session *s)
{
	explicit_bzero(s->token, sizeof(s->token));
}

static struct session session_begin(const struct call *c, struct attachment *a)
{
	struct session s = { .c = c, .a = a };
	const char *token = attachment_secret(c, a, "serverToken");

	snprintf(s.token, sizeof(s.token), "%s", token ? token : "");
	return s;
}

static int send_with(struct session *s, const char *secret, const char *path, const char *body,
		     struct scaleio_reply *ret, struct error *err)
{
	const struct attachment *a = s->a;
	const char *port = attachment_param(a, "serverPort");
	struct scaleio_request q = {
		.server = attachment_param(a, "serverIp"),
		.port = port ? port : "443",
		.user = attachment_param(a, "serverUsername"),
		.secret = secret,
		.path = path,
		.body = body,
		.ca_file = attachment_param(a, "certificatePath"),
		.verify = !json_is_false(jget(a->params, "verifyCertificate")),
	};

	return scaleio_send(s->c, &q, ret, err);
}

/* A new token for the password. */
static int log_in(struct session *s, struct error *err)
{
	const char *password = attachment_secret(s->c, s->a, "serverPassword"),
		   *file = attachment_param(s->a, "passwordFile");
	struct scaleio_reply reply;
	char line[512] = "";
	int r;

	if (!password && file) {
		r = host_read_line(s->c->host, file, line, sizeof(line));
		if (r < 0)
			return error_errno(err, -r, "cannot read the passwordFile %s", file);
		password = line;
	}
	if (!password || !*password)
		return error_set(
			err, EACCES,
			"the ScaleIO gateway wants a login: give serverPassword (no record "
			"keeps it) or a passwordFile");
	r = send_with(s, password, "/api/login", NULL, &reply, err);
	explicit_bzero(line, sizeof(line));
	if (r >= 0 && (reply.status != SCALEIO_OK || !reply.text[0]))
		r = error_set(err, EACCES,
			      "the ScaleIO gateway refuses the login of %s: %s (HTTP %d)",
			      attachment_param(s->a, "serverUsername"),
			      reply.message[0] ? reply.message : "no token", reply.status);
	if (r >= 0)
		memcpy(s->token, reply.text, sizeof(s->token));
	explicit_bzero(&reply, sizeof(reply));
	return r;
}

static int send_request(struct session *s, const char *path, const char *body,
			struct scaleio_reply *ret, struct error *err)
{
	int r = send_with(s, s->token, path, body, ret, err);

	s->sent = r != -ECONNREFUSED;
	return r;
}

static int ask(struct session *s, const char *path, const char *body, struct scaleio_reply *ret,
	       struct error *err)
{
	bool fresh = !s->token[0];
	int r = fresh ? log_in(s, err) : 0;

	s->sent = false;
	if (r >= 0)
		r = send_request(s, path, body, ret, err);
	if (r < 0 || fresh || (ret->status != 401 && ret->status != 403))
		return r;
	/* the token was of another time: a new one, and once more */
	s->sent = false;
	r = log_in(s, err);
	return r < 0 ? r : send_request(s, path, body, ret, err);
}

/* Twice, as the gateway decodes it twice: a slash in a name is no slash in a path. */
static int encode_twice(const char *text, char *buf, size_t size)
{
	size_t n = 0;

	for (; *text; text++) {
		bool plain = strchr("-._~", *text) || (*text >= '0' && *text <= '9') ||
			     ((*text | 32) >= 'a' && (*text | 32) <= 'z');

		n += (size_t)snprintf(n < size ? buf + n : NULL, n < size ? size - n : 0,
				      plain ? "%c" : "%%25%02X", (unsigned char)*text);
	}
	return n < size ? 0 : -ENAMETOOLONG;
}

static int look_up_id(struct session *s, const char *name, struct error *err)
{
	struct scaleio_reply reply;
	char encoded[2048], path[2200];
	int r;

	if (encode_twice(name, encoded, sizeof(encoded)) < 0)
		return error_set(err, ENAMETOOLONG, "scaleIoVolname is too long");
	snprintf(path, sizeof(path), "/api/types/Volume/instances/getByName::%s", encoded);
	r = ask(s, path, NULL, &reply, err);
	if (r < 0)
		return r;
	if (reply.status != SCALEIO_OK)
		return error_set(err, ENOENT,
				 "the ScaleIO gateway has no volume %.100s: %s (HTTP %d)", name,
				 reply.message, reply.status);
	if (!reply.text[0] || check_id(reply.text, NULL) < 0)
		return error_set(err, EBADMSG, "the ScaleIO gateway gives no id of volume %.100s",
				 name);
	return attachment_set_detail(s->a, "scaleIoId", reply.text, err);
}

/* Of the volume: as given, as recorded, or as the gateway says. */
static int volume_id(const struct call *c, struct attachment *a, const char **ret,
		     struct error *err)
{
	cleanup_with(session_done) struct session s;
	const char *id = attachment_param(a, "scaleIoVolumeId");
	int r = 0;

	s = session_begin(c, a);
	if (!id && !*attachment_detail(a, "scaleIoId"))
		r = look_up_id(&s, attachment_param(a, "scaleIoVolname"), err);
	if (r >= 0)
		*ret = id ? id : attachment_detail(a, "scaleIoId");
	return r;
}

/* ---- this host ------------------------------------------------------------------------------ */

/* As the driver in the kernel has it. Recorded. */
static int host_guid(const struct call *c, struct attachment *a, const char **ret,
		     struct error *err)
{
	char text[SDC_GUID_MAX];
	int r = call_left(c, 0, err);

	if (r < 0)
		return r;
	*ret = attachment_detail(a, "guid");
	if (**ret)
		return 0;
	r = sdc_guid(c->host, r, text, err);
	if (r >= 0)
		r = attachment_set_detail(a, "guid", text, err);
	if (r >= 0)
		*ret = attachment_detail(a, "guid");
	return r;
}

static int sio_find(const struct call *c, struct attachment *a, char **ret, struct error *err)
{
	char suffix[ID_MAX + 2], name[256];
	const char *id;
	int r = volume_id(c, a, &id, err);

	if (r < 0)
		return r;
	snprintf(suffix, sizeof(suffix), "-%s", id);
	r = c->host->find_name(c->host, LINK_DIR, "emc-vol", suffix, name, sizeof(name));
	if (r < 0)
		return error_errno(err, -r, "cannot read " LINK_DIR);
	if (r > 1)
		return error_set(err, EEXIST, "%d links below " LINK_DIR " end with volume %s", r,
				 id);
	if (r == 0)
		return 0;
	r = text_format(ret, err, LINK_DIR "/%s", name);
	return r < 0 ? r : 1;
}

/* ---- steps ---------------------------------------------------------------------------------- */

/* Posts o (stolen) to an action of the volume. */
static int act(struct session *s, const char *action, json_t *o, struct scaleio_reply *ret,
	       struct error *err)
{
	cleanup_json json_t *body = o;
	cleanup_free char *text = body ? json_compose(body, JSON_COMPACT) : NULL;
	char path[200];
	const char *id;
	int r;

	if (!text)
		return no_memory(err);
	r = volume_id(s->c, s->a, &id, err);
	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/api/instances/Volume::%s/action/%s", id, action);
	return ask(s, path, text, ret, err);
}

static int refused(const struct session *s, const char *what, const struct scaleio_reply *reply,
		   struct error *err)
{
	char name[200];

	return error_set(err, reply->status == 401 || reply->status == 403 ? EACCES : EIO,
			 "cannot %s %s: the ScaleIO gateway says \"%s\" (HTTP %d, code %ld)", what,
			 attachment_name(s->a, name, sizeof(name)), reply->message, reply->status,
			 reply->code);
}

static int set_limits(struct session *s, const char *guid, struct error *err)
{
	const char *iops = attachment_param(s->a, "iopsLimit"),
		   *bandwidth = attachment_param(s->a, "bandwidthLimit");
	struct scaleio_reply reply;
	int r;

	if (!iops && !bandwidth)
		return 0;
	r = act(s, "setMappedSdcLimits",
		json_pack("{s:s, s:s*, s:s*}", "guid", guid, "bandwidthLimitInKbps", bandwidth,
			  "iopsLimit", iops),
		&reply, err);
	if (r < 0 || reply.status == SCALEIO_OK)
		return r;
	return refused(s, "set the limits of", &reply, err);
}

static int sio_attach(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_with(session_done) struct session s;
	struct scaleio_reply reply;
	const char *guid;
	int r;

	s = session_begin(c, a);
	if (attachment_param(a, "sdcGuid"))
		return 0;
	r = host_guid(c, a, &guid, err);
	if (r >= 0)
		r = act(&s, "addMappedSdc",
			json_pack("{s:s, s:s}", "guid", guid, "allowMultipleMappings", "TRUE"),
			&reply, err);
	if (r < 0 && !s.sent)
		device_refused(a);
	if (r < 0)
		return r;
	if (reply.status != SCALEIO_OK && reply.code != SIO_MAPPED_BEFORE &&
	    reply.code != SIO_MAPPED_BEFORE_V4) {
		device_refused(a);
		return refused(&s, "map", &reply, err);
	}
	return set_limits(&s, guid, err);
}

static int sio_detach(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_with(session_done) struct session s;
	struct scaleio_reply reply;
	const char *guid;
	int r;

	s = session_begin(c, a);
	if (attachment_param(a, "sdcGuid"))
		return 1; /* the backend unmaps it, after this */
	r = host_guid(c, a, &guid, err);
	if (r >= 0)
		r = act(&s, "removeMappedSdc", json_pack("{s:s}", "guid", guid), &reply, err);
	if (r < 0)
		return r;
	if (reply.status != SCALEIO_OK && reply.code != SIO_NOT_MAPPED &&
	    reply.code != SIO_NOT_MAPPED_V4)
		return refused(&s, "unmap", &reply, err);
	return 0;
}

/* The name may be another volume's by now: known by its id, which is recorded, whoever gives it. */
static int check_volume(const struct call *c, struct attachment *a, struct error *err)
{
	const char *given = attachment_param(a, "scaleIoVolumeId"),
		   *name = attachment_param(a, "scaleIoVolname");
	cleanup_with(session_done) struct session s;
	char before[ID_MAX], now[ID_MAX];
	int r;

	s = session_begin(c, a);
	snprintf(before, sizeof(before), "%s", attachment_detail(a, "scaleIoId"));
	if (!before[0] && !given)
		return 0; /* it is looked up, and then recorded */
	r = given ? attachment_set_detail(a, "scaleIoId", given, err) : look_up_id(&s, name, err);
	if (r < 0)
		return r;
	snprintf(now, sizeof(now), "%s", attachment_detail(a, "scaleIoId"));
	if (!before[0] || streq(now, before))
		return 0;
	r = attachment_set_detail(a, "scaleIoId", before, err);
	return r < 0 ? r : recorded_differs(a, name ? name : a->volume_id, now, before, err);
}

static int sio_connect(const struct call *c, struct attachment *a, struct error *err)
{
	int r = check_volume(c, a, err);

	return r < 0 ? r : device_connect(c, a, err);
}

static const struct device_type type = {
	.find = sio_find,
	.attach = sio_attach,
	.detach = sio_detach,
};

const struct driver driver_scaleio = {
	.name = "SCALEIO",
	.aliases = (const char *const[]){ "powerflex", "vxflexos", NULL },
	.title = "ScaleIO",
	.help = "A volume of ScaleIO (PowerFlex). The gateway maps it to this host; its link "
		"below " LINK_DIR
		" is returned once it is there. Needs the vendor's kernel driver scini "
		"and the program curl on this host.",
	.params = params,
	.identity = (const char *const[]){ "identity", "scaleIoId", NULL },
	.prepare = sio_prepare,
	.connect = sio_connect,
	.disconnect = device_disconnect,
	.verify = device_verify,
	.device = &type,
};
