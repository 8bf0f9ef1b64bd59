/* SPDX-License-Identifier: Apache-2.0 */
#include "info.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdio.h>

#define JSON_TEXT_MAX (256 << 10)

int give_error(const struct error *from, int r, struct hostvol_error *to)
{
	if (r < 0 && to) {
		to->code = -r;
		snprintf(to->message, sizeof(to->message), "%s", error_text(from, r));
	}
	return r;
}

int give_json(const json_t *o, char **ret, struct error *err)
{
	char *text = json_compose(o, JSON_COMPACT);

	if (!text)
		return no_memory(err);
	*ret = text;
	return 0;
}

void info_done(struct info *i)
{
	json_decref(i->o);
	json_decref(i->flat);
	*i = (struct info){ 0 };
}

/* The string at key; -EINVAL where something else stands there. */
static int get_string(const json_t *o, const char *key, const char **ret, struct error *err)
{
	const json_t *value = json_object_get(o, key);

	if (value && !json_is_string(value))
		return error_set(err, EINVAL, "%s: not a string", key);
	if (value)
		*ret = json_string_value(value);
	return 0;
}

/* What is not a parameter, of a flat connection and of a record. */
static bool is_ours(const char *key)
{
	static const char *const keys[] = { "driverVolumeType", "driver_volume_type", "consumer" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (streq(key, keys[i]))
			return true;
	return false;
}

static int flatten(struct info *i, struct error *err)
{
	const char *key;
	json_t *value;

	i->flat = json_object();
	if (!i->flat)
		return no_memory(err);
	json_object_foreach (i->o, key, value)
		if (!is_ours(key) && json_object_set(i->flat, key, value) < 0)
			return no_memory(err);
	i->data = i->flat;
	return 0;
}

static int take_apart(struct info *i, struct error *err)
{
	const json_t *data = json_object_get(i->o, "data");
	int r;

	i->consumer = "";
	r = get_string(i->o, "driver_volume_type", &i->driver, err);
	if (r >= 0)
		r = get_string(i->o, "driverVolumeType", &i->driver, err);
	if (r >= 0)
		r = get_string(i->o, "consumer", &i->consumer, err);
	if (r < 0)
		return r;
	if (!data || json_is_null(data))
		return flatten(i, err);
	if (!json_is_object(data))
		return error_set(err, EINVAL, "data: not an object");
	i->data = data;
	return get_string(i->o, "volumeId", &i->volume_id, err);
}

int info_parse(const char *json, struct info *ret, struct error *err)
{
	cleanup_with(info_done) struct info i = { 0 };
	int r;

	if (!json || strlen(json) > JSON_TEXT_MAX)
		return error_set(err, EINVAL, "no connection info, or one beyond %d bytes",
				 JSON_TEXT_MAX);
	r = json_parse(json, strlen(json), &i.o, err);
	if (r < 0)
		return r;
	if (!json_is_object(i.o))
		return error_set(err, EINVAL, "a connection info is a JSON object");
	r = take_apart(&i, err);
	if (r < 0)
		return r;
	*ret = i;
	i = (struct info){ 0 };
	return 0;
}
