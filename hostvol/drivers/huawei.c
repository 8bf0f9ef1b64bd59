/* SPDX-License-Identifier: Apache-2.0 */
/* HUAWEISDSHYPERVISOR: the vendor's command line tool attaches a volume and tells its device. */
#include "device.h"
#include "drivers.h"
#include "vendor_text.h"

#include "base/file.h"
#include "base/mem.h"

#include <errno.h>
#include <stdio.h>

#define CLI_DEFAULT "/usr/local/bin/sds/sds_cli"
#define CLI_VARIABLE "HUAWEISDSHYPERVISORCLI_PATH"

/* Codes that mean what was asked for, beside 0. */
enum {
	SDS_ATTACHED_BEFORE = 50151401,
	SDS_ATTACHED_TO_NODE = 50151405,
	SDS_VBS_ABNORMAL = 50151209, /* the node's service is down: it holds no volume */
	SDS_NOT_ATTACHED = 50155007,
};

static const struct param params[] = { { 0 } };

static int sds_prepare(const struct call *c, struct attachment *a, struct error *err)
{
	cleanup_free char *target = NULL;
	int r;

	/* that is what a missing one is made into, as the driver has no other parameter */
	if (streq(a->volume_id, a->driver->name))
		return error_set(
			err, EINVAL,
			"%s needs the parameter \"volumeId\", the name of the volume there",
			a->driver->name);
	r = check_plain_name(a->volume_id, err);
	if (r < 0)
		return error_prefix(err, "volumeId");
	r = text_format(&target, err, "%s %s", a->driver->name, a->volume_id);
	return r < 0 ? r : attachment_set_target(a, TAKE_PTR(target));
}

static int sds_call(const struct call *c, struct attachment *a, const char *method,
		    struct sds_output *ret, struct error *err)
{
	const char *cli = secure_getenv(CLI_VARIABLE);
	struct host_result result;
	int r;

	if (!cli || !*cli)
		cli = CLI_DEFAULT;
	if (!path_is_clean(cli))
		return error_set(err, EINVAL, "%s is not an absolute path", CLI_VARIABLE);
	r = device_run(
		c,
		&(struct host_command){ .argv = (const char *const[]){ cli, "-c", method, "-v",
								       a->volume_id, NULL } },
		&result, err);
	if (r < 0)
		return r;
	/* the tool's own exit status says nothing of the volume: the code does */
	r = sds_output_read(result.out, ret, err);
	return r < 0 ? error_prefix(err, "%s -c %s -v %s (status %d)", cli, method, a->volume_id,
				    result.status)
		     : 0;
}

static int sds_refused(const struct attachment *a, const char *verb, const struct sds_output *out,
		       struct error *err)
{
	return error_set(err, EIO,
			 "cannot %s volume %s: the Huawei SDS client answers code %ld%s%s", verb,
			 a->volume_id, out->code, out->words[0] ? ", " : "", out->words);
}

static int sds_find(const struct call *c, struct attachment *a, char **ret, struct error *err)
{
	struct sds_output out;
	int r = sds_call(c, a, "querydev", &out, err);

	if (r < 0)
		return r;
	if (out.code != 0 || !out.device[0])
		return 0;
	return device_find_at(c, out.device, ret, err);
}

static int sds_attach(const struct call *c, struct attachment *a, struct error *err)
{
	struct sds_output out;
	int r = sds_call(c, a, "attach", &out, err);

	if (r < 0)
		return r;
	switch (out.code) {
	case 0:
	case SDS_ATTACHED_BEFORE:
	case SDS_ATTACHED_TO_NODE:
		return 0;
	default:
		device_refused(a);
		return sds_refused(a, "attach", &out, err);
	}
}

static int sds_detach(const struct call *c, struct attachment *a, struct error *err)
{
	struct sds_output out;
	int r = sds_call(c, a, "detach", &out, err);

	if (r < 0)
		return r;
	switch (out.code) {
	case 0:
	case SDS_VBS_ABNORMAL:
	case SDS_NOT_ATTACHED:
		return 0;
	default:
		return sds_refused(a, "detach", &out, err);
	}
}

static const struct device_type type = {
	.find = sds_find,
	.attach = sds_attach,
	.detach = sds_detach,
};

const struct driver driver_huawei = {
	.name = "HUAWEISDSHYPERVISOR",
	.title = "Huawei SDS Hypervisor",
	.help = "A volume of Huawei's SDS, by its volumeId (required). Needs the vendor's program "
		"sds_cli at " CLI_DEFAULT ", or where the environment variable " CLI_VARIABLE
		" says.",
	.params = params,
	.identity = device_keys,
	.prepare = sds_prepare,
	.connect = device_connect,
	.disconnect = device_disconnect,
	.verify = device_verify,
	.device = &type,
};
