/* SPDX-License-Identifier: Apache-2.0 */
/* All drivers. */
#include "base/mem.h"
#include "base/str.h"
#include "drivers.h"

#include <errno.h>
#include <strings.h>

const struct driver *const drivers[] = {
	&driver_iscsi, &driver_iser,	  &driver_fc,	   &driver_aoe,	    &driver_drbd,
	&driver_nfs,   &driver_glusterfs, &driver_local,   &driver_gpfs,    &driver_huawei,
	&driver_hgst,  &driver_rbd,	  &driver_scaleio, &driver_scality, &driver_quobyte,
	&driver_disco, &driver_vzstorage, &driver_smb,	   &driver_nvmeof,  NULL,
};

static bool is_called(const struct driver *d, const char *name)
{
	if (strcasecmp(d->name, name) == 0)
		return true;
	for (size_t i = 0; d->aliases && d->aliases[i]; i++)
		if (strcasecmp(d->aliases[i], name) == 0)
			return true;
	return false;
}

int driver_find(const char *name, const struct driver **ret, struct error *err)
{
	const char *names[ARRAY_SIZE(drivers)], *near;

	for (size_t i = 0; drivers[i]; i++) {
		if (is_called(drivers[i], name)) {
			*ret = drivers[i];
			return 0;
		}
		names[i] = drivers[i]->name;
	}
	names[ARRAY_SIZE(drivers) - 1] = NULL;
	near = str_suggest(name, names);
	return error_set(err, EINVAL, "driverVolumeType: there is no driver \"%.60s\"%s%s%s", name,
			 near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* ---- as JSON -------------------------------------------------------------------------------- */

static json_t *strings_to_json(const char *const *strings)
{
	json_t *a = json_array();

	for (; a && strings && *strings; strings++)
		if (json_array_append_new(a, json_string(*strings)) < 0) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static json_t *params_to_json(const struct param *table)
{
	static const char *const types[] = {
		[PARAM_STRING] = "string", [PARAM_BOOLEAN] = "boolean", [PARAM_IGNORED] = "any",
		[PARAM_NUMBER] = "number", [PARAM_GROUP] = "object",	[PARAM_LIST] = "list",
		[PARAM_TEXT] = "text",	   [PARAM_MAP] = "object",
	};
	json_t *a = json_array();

	for (const struct param *p = table; a && p->name; p++) {
		json_t *o =
			json_pack("{s:s, s:o, s:s, s:b, s:b, s:s*, s:s*, s:s}", "name", p->name,
				  "aliases", strings_to_json(p->aliases), "type", types[p->type],
				  "required", p->required, "secret", p->secret, "default",
				  p->fallback, "example", p->example, "help", p->help);

		if (!o || json_array_append_new(a, o) < 0) {
			json_decref(a);
			return NULL;
		}
	}
	return a;
}

int drivers_to_json(json_t **ret, struct error *err)
{
	cleanup_json json_t *all = json_array();

	for (size_t i = 0; all && drivers[i]; i++) {
		const struct driver *d = drivers[i];
		json_t *o = json_pack("{s:s, s:s, s:o, s:b, s:s, s:o, s:o}", "name", d->name,
				      "title", d->title, "aliases", strings_to_json(d->aliases),
				      "supported", d->connect != NULL, "help", d->help,
				      "parameters", params_to_json(d->params), "commonParameters",
				      params_to_json(common_params));

		if (!o || json_array_append_new(all, o) < 0)
			return no_memory(err);
	}
	if (!all)
		return no_memory(err);
	*ret = TAKE_PTR(all);
	return 0;
}
