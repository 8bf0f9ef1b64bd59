/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_vendors.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SIO_LINK "/dev/disk/by-id/emc-vol-1-abc1"

/* ---- the vendors' programs ------------------------------------------------------------------ */

static int fails(struct host_result *ret, int status, const char *words)
{
	ret->status = status;
	snprintf(ret->err, sizeof(ret->err), "%s\n", words);
	return 0;
}

static int run_curl(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	struct fake_device *d = fake_device(f, SIO_LINK);
	const char *body = "{}";
	int status = 200;

	if (f->unreachable)
		return fails(ret, 7, "curl: (7) Failed to connect");
	if (strstr(c->input, "/api/login\"")) {
		body = "\"token\"";
	} else if (strstr(c->input, "/getByName::")) {
		snprintf(c->out, c->out_size, "\"%s\"\n200", f->sio_id);
		return 0;
	} else if (f->refuses) {
		status = 500;
		body = "{\"message\":\"no\",\"errorCode\":79}";
	} else if (strstr(c->input, "/addMappedSdc\"") && d->there) {
		status = 500;
		body = "{\"errorCode\":81}";
	} else if (strstr(c->input, "/removeMappedSdc\"") && !d->there) {
		status = 500;
		body = "{\"errorCode\":4039}";
	} else if (strstr(c->input, "MappedSdc\"")) {
		d->there = strstr(c->input, "/addMappedSdc\"") != NULL;
	}
	snprintf(c->out, c->out_size, "%s\n%d", body, status);
	return 0;
}

static int run_sds(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	struct fake_device *d = fake_device(f, "/dev/vdq");
	bool attach = streq(c->argv[2], "attach");
	int code = 0;

	if (f->unreachable)
		return -ENOENT;
	if (streq(c->argv[2], "querydev"))
		code = d->there ? 0 : 1;
	else if (f->refuses)
		code = 50151002;
	else if (d->there == attach)
		code = attach ? 50151401 : 50155007;
	else
		d->there = attach;
	snprintf(ret->out, sizeof(ret->out), "ret_code=%d\ndev_addr=/dev/vdq\n", code);
	return 0;
}

static int run_hgst(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	if (f->unreachable)
		return fails(ret, 1, "no cluster");
	if (streq(c->argv[1], "domain-list")) {
		snprintf(c->out, c->out_size, "192.0.2.7\n192.0.2.1\n");
		return 0;
	}
	if (f->refuses)
		return fails(ret, 3, "locked");
	assert_string_equal(c->argv[5], "192.0.2.1");
	fake_device(f, "/dev/space1")->there = streq(c->argv[7], "ADD");
	return 0;
}

static int run_mount(struct fake *f, const struct host_command *c, struct host_result *ret,
		     const char *source, const char *type)
{
	const char *const *last = c->argv;
	const char *point = c->argv[2];

	if (f->unreachable)
		return -ENOENT;
	if (f->refuses)
		return fails(ret, 32, "mount error(13): Permission denied");
	while (last[1])
		last++;
	fake_mount(f, source, streq(c->argv[0], "pstorage-mount") ? *last : point, type);
	return 0;
}

static void remember_words(struct fake *f, const char *const *words)
{
	for (; words && *words; words++) {
		size_t len = strlen(f->seen);

		snprintf(f->seen + len, sizeof(f->seen) - len, "%s ", *words);
	}
}

static int run_vendor(struct fake *f, const struct host_command *c, struct host_result *ret)
{
	const char *program = c->argv[0];

	remember_words(f, c->argv);
	remember_words(f, c->env);
	if (streq(program, "curl"))
		return run_curl(f, c, ret);
	if (str_has_suffix(program, "/sds_cli"))
		return run_sds(f, c, ret);
	if (streq(program, "vgc-cluster"))
		return run_hgst(f, c, ret);
	if (streq(program, "mount.quobyte"))
		return run_mount(f, c, ret, "quobyte@h/v", "fuse");
	if (streq(program, "mount.sofs"))
		return run_mount(f, c, ret, "/dev/fuse", "fuse");
	if (streq(program, "mount.cifs")) {
		assert_true(!f->seen[0] || strstr(f->seen, "PASSWD_FD=0"));
		assert_int_equal(c->input_len, strlen(SECRET));
		assert_memory_equal(c->input, SECRET, strlen(SECRET));
		return run_mount(f, c, ret, c->argv[1], "cifs");
	}
	if (streq(program, "pstorage")) {
		assert_memory_equal(c->input, SECRET, strlen(SECRET));
		return f->refuses ? fails(ret, 15, "Authentication failed") : 0;
	}
	if (streq(program, "pstorage-mount"))
		return run_mount(f, c, ret, "pstorage://c", "fuse.pstorage");
	return -ENOENT;
}

/* ---- scenarios ------------------------------------------------------------------------------ */

const struct vendor vendors[] = {
	{ "{\"driverVolumeType\":\"DISCO\",\"data\":{\"discoId\":7,\"serverIp\":\"192.0.2.3\","
	  "\"serverPort\":9,\"volumeId\":\"a\"}}",
	  "/dev/dms7" },
	{ "{\"driverVolumeType\":\"HGST\",\"data\":{\"name\":\"space1\",\"volumeId\":\"a\"}}",
	  "/dev/space1" },
	{ "{\"driverVolumeType\":\"HUAWEISDSHYPERVISOR\",\"data\":{\"volumeId\":\"a\"}}",
	  "/dev/vdq" },
	{ "{\"driverVolumeType\":\"SCALEIO\",\"data\":{\"scaleIoVolumeId\":\"abc1\",\"serverIp\":"
	  "\"h\",\"server_username\":\"u\",\"server_password\":\"" SECRET
	  "\",\"iopsLimit\":10,\"volumeId\":\"a\"}}",
	  SIO_LINK },
	{ "{\"driverVolumeType\":\"QUOBYTE\",\"data\":{\"export\":\"h/v\",\"volumeId\":\"a\"}}",
	  NULL },
	{ "{\"driverVolumeType\":\"SCALITY\",\"data\":{\"export\":\"e\",\"name\":\"n\","
	  "\"mount_point_base\":\"@/sofs\",\"volumeId\":\"a\"}}",
	  NULL },
	{ "{\"driverVolumeType\":\"VZSTORAGE\",\"data\":{\"export\":\"h1,h2:/c:" SECRET
	  "\",\"volumeId\":\"a\"}}",
	  NULL },
	{ "{\"driverVolumeType\":\"SMB\",\"data\":{\"export\":\"//h/s\",\"options\":\"username=u,"
	  "password=" SECRET "\",\"volumeId\":\"a\"}}",
	  NULL },
	{ NULL, NULL },
};

char *vendor_json(const struct rig *rig, const struct vendor *v)
{
	const char *at = strchr(v->json, '@');

	if (!at)
		return xstrdup(v->json);
	return xasprintf("%.*s%s%s", (int)(at - v->json), v->json, rig->dir, at + 1);
}

struct rig *vendor_rig(void)
{
	void *state;
	struct rig *rig;

	rig_setup(&state);
	rig = state;
	rig->fake->vendor_run = run_vendor;
	rig->fake->host.root = rig->dir;
	return rig;
}
