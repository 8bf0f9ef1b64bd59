/* SPDX-License-Identifier: Apache-2.0 */
/* The interface's structures to JSON and back, each by a table of its fields. */
#include "base/mem.h"
#include "info.h"

#include <errno.h>
#include <stddef.h>

enum member_type {
	MEMBER_BOOL,
	MEMBER_TEXT, /* always there, "" for none */
	MEMBER_OPTIONAL_TEXT, /* left out where there is none */
	MEMBER_TEXTS, /* an array, left out where there is none */
};

struct member {
	const char *name;
	enum member_type type;
	size_t offset;
};

#define PROPERTY(json, type, field)                                                                \
	{                                                                                          \
		json, type, offsetof(struct hostvol_connector_properties, field)                   \
	}
static const struct member properties_members[] = {
	PROPERTY("doLocalAttach", MEMBER_BOOL, do_local_attach),
	PROPERTY("platform", MEMBER_TEXT, platform),
	PROPERTY("osType", MEMBER_TEXT, os_type),
	PROPERTY("ip", MEMBER_TEXT, ip),
	PROPERTY("host", MEMBER_TEXT, host),
	PROPERTY("multipath", MEMBER_BOOL, multipath),
	PROPERTY("initiator", MEMBER_TEXT, initiator),
	PROPERTY("nqn", MEMBER_OPTIONAL_TEXT, nqn),
	PROPERTY("hostId", MEMBER_OPTIONAL_TEXT, host_id),
	PROPERTY("systemUuid", MEMBER_OPTIONAL_TEXT, system_uuid),
	PROPERTY("sdcGuid", MEMBER_OPTIONAL_TEXT, sdc_guid),
	PROPERTY("wwpns", MEMBER_TEXTS, wwpns),
	PROPERTY("wwnns", MEMBER_TEXTS, wwnns),
	{ 0 },
};

#define ISCSI_DATA(json, type, field)                                                              \
	{                                                                                          \
		json, type, offsetof(struct hostvol_iscsi_connection_data, field)                  \
	}
static const struct member iscsi_members[] = {
	ISCSI_DATA("targetDiscovered", MEMBER_BOOL, target_discovered),
	ISCSI_DATA("targetIqn", MEMBER_TEXT, target_iqn),
	ISCSI_DATA("targetPortal", MEMBER_TEXT, target_portal),
	ISCSI_DATA("targetLun", MEMBER_TEXT, target_lun),
	ISCSI_DATA("volumeId", MEMBER_TEXT, volume_id),
	ISCSI_DATA("authUsername", MEMBER_TEXT, auth_username),
	ISCSI_DATA("authPassword", MEMBER_TEXT, auth_password),
	{ 0 },
};

static void *at(const void *structure, const struct member *m)
{
	return (char *)structure + m->offset;
}

/* ---- to JSON -------------------------------------------------------------------------------- */

static json_t *texts_to_json(char *const *texts)
{
	json_t *a = json_array();

	for (; a && *texts; texts++)
		if (json_array_append_new(a, json_string(*texts)) < 0) {
			json_decref(a);
			return NULL;
		}
	return a;
}

/* New reference, or NULL: left out (*ret_skip) or no memory. */
static json_t *member_to_json(const void *structure, const struct member *m, bool *ret_skip)
{
	char *text, **texts;

	*ret_skip = false;
	switch (m->type) {
	case MEMBER_BOOL:
		return json_boolean(*(bool *)at(structure, m));
	case MEMBER_TEXTS:
		texts = *(char ***)at(structure, m);
		*ret_skip = !texts || !texts[0];
		return *ret_skip ? NULL : texts_to_json(texts);
	default:
		text = *(char **)at(structure, m);
		*ret_skip = m->type == MEMBER_OPTIONAL_TEXT && (!text || !*text);
		return *ret_skip ? NULL : json_string(text ? text : "");
	}
}

static int encode(const void *structure, const struct member *members, char **ret,
		  struct hostvol_error *err)
{
	cleanup_json json_t *o = json_object();
	struct error problem = ERROR_INIT;
	bool skip;

	for (const struct member *m = members; o && m->name; m++) {
		json_t *value = member_to_json(structure, m, &skip);

		if (!skip && json_object_set_new(o, m->name, value) < 0)
			return give_error(&problem, no_memory(&problem), err);
	}
	if (!o)
		return give_error(&problem, no_memory(&problem), err);
	return give_error(&problem, give_json(o, ret, &problem), err);
}

/* ---- from JSON ------------------------------------------------------------------------------ */

static void texts_free(char **texts)
{
	for (size_t i = 0; texts && texts[i]; i++)
		free(texts[i]);
	free(texts);
}

static int wrong_type(const struct member *m, const char *wanted, struct error *err)
{
	return error_set(err, EINVAL, "%s: not %s", m->name, wanted);
}

static int texts_from_json(const struct member *m, const json_t *value, char ***ret,
			   struct error *err)
{
	size_t n = json_array_size(value);
	char **texts;

	if (!json_is_array(value))
		return wrong_type(m, "an array of strings", err);
	texts = calloc(n + 1, sizeof(*texts));
	if (!texts)
		return no_memory(err);
	for (size_t i = 0; i < n; i++) {
		const char *text = json_string_value(json_array_get(value, i));

		texts[i] = text ? strdup(text) : NULL;
		if (!texts[i]) {
			texts_free(texts);
			return text ? no_memory(err) : wrong_type(m, "an array of strings", err);
		}
	}
	*ret = texts;
	return 0;
}

static int member_from_json(void *structure, const struct member *m, const json_t *value,
			    struct error *err)
{
	char *text = NULL;
	int r;

	if (m->type == MEMBER_BOOL) {
		if (!json_is_boolean(value))
			return wrong_type(m, "true or false", err);
		*(bool *)at(structure, m) = json_is_true(value);
		return 0;
	}
	if (m->type == MEMBER_TEXTS)
		return texts_from_json(m, value, at(structure, m), err);
	/* a LUN is a number to others */
	if (json_is_integer(value)) {
		r = text_format(&text, err, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		if (r < 0)
			return r;
	} else if (json_is_string(value)) {
		text = strdup(json_string_value(value));
		if (!text)
			return no_memory(err);
	} else {
		return wrong_type(m, "a string", err);
	}
	free(*(char **)at(structure, m));
	*(char **)at(structure, m) = text;
	return 0;
}

static int decode(const char *json, const struct member *members, void *structure,
		  struct error *err)
{
	cleanup_json json_t *o = NULL;
	int r = json_parse(json ? json : "", json ? strlen(json) : 0, &o, err);

	if (r < 0)
		return r;
	if (!json_is_object(o))
		return error_set(err, EINVAL, "not a JSON object");
	for (const struct member *m = members; m->name; m++) {
		const json_t *value = json_object_get(o, m->name);

		if (value && !json_is_null(value)) {
			r = member_from_json(structure, m, value, err);
			if (r < 0)
				return r;
		} else if (m->type == MEMBER_TEXT || m->type == MEMBER_OPTIONAL_TEXT) {
			char **text = at(structure, m);

			*text = strdup("");
			if (!*text)
				return no_memory(err);
		}
	}
	return 0;
}

static void members_done(void *structure, const struct member *members)
{
	for (const struct member *m = members; m->name; m++) {
		if (m->type == MEMBER_TEXTS)
			texts_free(*(char ***)at(structure, m));
		else if (m->type != MEMBER_BOOL)
			free(*(char **)at(structure, m));
	}
}

/* ---- the structures ------------------------------------------------------------------------- */

int hostvol_connector_properties_to_json(const struct hostvol_connector_properties *p, char **ret,
					 struct hostvol_error *err)
{
	return encode(p, properties_members, ret, err);
}

int hostvol_connector_properties_from_json(const char *json,
					   struct hostvol_connector_properties **ret,
					   struct hostvol_error *err)
{
	struct hostvol_connector_properties *p = calloc(1, sizeof(*p));
	struct error problem = ERROR_INIT;
	int r = p ? decode(json, properties_members, p, &problem) : no_memory(&problem);

	if (r < 0) {
		hostvol_connector_properties_free(p);
		return give_error(&problem, r, err);
	}
	*ret = p;
	return 0;
}

void hostvol_connector_properties_free(struct hostvol_connector_properties *p)
{
	if (!p)
		return;
	members_done(p, properties_members);
	free(p);
}

int hostvol_iscsi_connection_data_to_json(const struct hostvol_iscsi_connection_data *d, char **ret,
					  struct hostvol_error *err)
{
	return encode(d, iscsi_members, ret, err);
}

int hostvol_iscsi_connection_data_from_json(const char *json,
					    struct hostvol_iscsi_connection_data **ret,
					    struct hostvol_error *err)
{
	struct hostvol_iscsi_connection_data *d = calloc(1, sizeof(*d));
	struct error problem = ERROR_INIT;
	int r = d ? decode(json, iscsi_members, d, &problem) : no_memory(&problem);

	if (r < 0) {
		hostvol_iscsi_connection_data_free(d);
		return give_error(&problem, r, err);
	}
	*ret = d;
	return 0;
}

void hostvol_iscsi_connection_data_free(struct hostvol_iscsi_connection_data *d)
{
	if (!d)
		return;
	if (d->auth_password)
		explicit_bzero(d->auth_password, strlen(d->auth_password));
	members_done(d, iscsi_members);
	free(d);
}

static int build_info(const struct hostvol_connection_info *c, json_t **ret, struct error *err)
{
	cleanup_json json_t *o = NULL, *data = NULL;
	const char *text = c->data ? c->data : "{}";
	int r = json_parse(text, strlen(text), &data, err);

	if (r < 0)
		return error_prefix(err, "data");
	if (!json_is_object(data))
		return error_set(err, EINVAL, "data: not a JSON object");
	o = json_pack("{s:s, s:O}", "driverVolumeType",
		      c->driver_volume_type ? c->driver_volume_type : "", "data", data);
	if (!o || (c->consumer && *c->consumer &&
		   json_object_set_new(o, "consumer", json_string(c->consumer)) < 0))
		return no_memory(err);
	*ret = TAKE_PTR(o);
	return 0;
}

int hostvol_connection_info_to_json(const struct hostvol_connection_info *c, char **ret,
				    struct hostvol_error *err)
{
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	int r = build_info(c, &o, &problem);

	if (r >= 0)
		r = give_json(o, ret, &problem);
	return give_error(&problem, r, err);
}

int hostvol_connection_info_from_json(const char *json, struct hostvol_connection_info **ret,
				      struct hostvol_error *err)
{
	cleanup_with(info_done) struct info i = { 0 };
	struct hostvol_connection_info *c = calloc(1, sizeof(*c));
	struct error problem = ERROR_INIT;
	int r = c ? info_parse(json, &i, &problem) : no_memory(&problem);

	if (r >= 0)
		r = give_json(i.data, &c->data, &problem);
	if (r >= 0) {
		c->driver_volume_type = strdup(i.driver ? i.driver : "");
		c->consumer = strdup(i.consumer);
		if (!c->driver_volume_type || !c->consumer)
			r = no_memory(&problem);
	}
	if (r < 0) {
		hostvol_connection_info_free(c);
		return give_error(&problem, r, err);
	}
	*ret = c;
	return 0;
}

void hostvol_connection_info_free(struct hostvol_connection_info *c)
{
	if (!c)
		return;
	/* it may hold secrets */
	if (c->data)
		explicit_bzero(c->data, strlen(c->data));
	free(c->driver_volume_type);
	free(c->data);
	free(c->consumer);
	free(c);
}
